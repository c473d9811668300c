package gosimnet_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

// What becomes of the packets of one flow says nothing of another's, however much alike the names and ports of the two are.
func TestFlowsOfSimilarNamesHaveFatesOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newNet(t, &gosimnet.SimNetConfig{Link: gosimnet.LinkConfig{Loss: 0.5}, TraceLimit: 100_000})
		fates := make(map[string][]string)
		for i, name := range []string{"a", "c", "d", "e", "f", "g"} {
			for port := 100; port < 108; port++ {
				if i == 0 {
					_, err := s.Host("b").ListenPacket("udp", fmt.Sprint(":", port))
					noError(t, err)
				}
				c, err := s.Host(name).Dial("udp", fmt.Sprint("b:", port))
				noError(t, err)
				say(t, c, count(1, 64)...)
			}
		}
		time.Sleep(time.Second)
		for e := range s.Trace() {
			if e.Kind == gosimnet.EventLost {
				flow := fmt.Sprint(e.From, "→", e.Dst.Port())
				fates[flow] = append(fates[flow], fmt.Sprint(e.N))
			}
		}
		for one, lost := range fates {
			for other, alike := range fates {
				if one < other && slices.Equal(lost, alike) {
					t.Errorf("%s and %s lose the same %d of 64 datagrams", one, other, len(lost))
				}
			}
		}
		if len(fates) != 6*8 {
			t.Errorf("%d flows have lost something, want 48", len(fates))
		}
	})
}
