package gosimnet_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

// useElsewhere calls a network from another clock than its own: every error says so.
func useElsewhere(t *testing.T, s *gosimnet.Simnet, c io.Reader) {
	t.Helper()
	for call, err := range map[string]error{
		"Dial":       second(s.Host("a").Dial("tcp", "b:80")),
		"Listen":     second(s.Host("a").Listen("tcp", ":81")),
		"AddHost":    second(s.AddHost("c")),
		"Read":       second(c.Read(make([]byte, 1))),
		"FaultHost":  s.FaultHost("a", gosimnet.DropDeafSpec{}, false),
		"AlterHost":  second(s.AlterHost("a", gosimnet.SHUTDOWN)),
		"DialCancel": second(s.Host("b").DialContext(context.Background(), "tcp", "a:80")),
		"Snapshot":   s.GetSimnetSnapshot().GetSimnetStatusErr,
	} {
		if err == nil || !strings.Contains(err.Error(), "synctest bubble") {
			t.Errorf("%s by the wrong clock: %v", call, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func connected(t *testing.T, s *gosimnet.Simnet) io.Reader {
	t.Helper()
	if _, err := s.Host("b").Listen("tcp", ":80"); err != nil {
		t.Fatal(err)
	}
	c, err := s.Host("a").Dial("tcp", "b:80")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestUseOutsideTheBubbleIsAnError(t *testing.T) {
	for _, age := range []time.Duration{0, 30 * 365 * 24 * time.Hour} {
		inside, used := make(chan func(), 1), make(chan struct{})
		go func() {
			defer close(used)
			(<-inside)()
		}()
		synctest.Test(t, func(t *testing.T) {
			s := newNet(t, nil)
			time.Sleep(age)
			c := connected(t, s)
			inside <- func() { useElsewhere(t, s, c) }
			<-used
			if _, err := s.Host("a").Dial("tcp", "b:80"); err != nil {
				t.Errorf("Dial inside, after the use outside: %v", err)
			}
		})
	}
}

func TestUseInsideABubbleIsAnError(t *testing.T) {
	s := newNet(t, &gosimnet.SimNetConfig{MinHop: time.Microsecond})
	c := connected(t, s)
	synctest.Test(t, func(t *testing.T) {
		useElsewhere(t, s, c)
		time.Sleep(40 * 365 * 24 * time.Hour)
		useElsewhere(t, s, c)
	})
	if _, err := s.Host("a").Dial("tcp", "b:80"); err != nil {
		t.Errorf("Dial outside, after the use inside: %v", err)
	}
}
