package gosimnet_test

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

// A reader opens its window while the sender cannot hear it; when it can again, the rest must come.
func TestWindowsThatOpenWhileTheWayBackIsDown(t *testing.T) {
	for _, c := range []struct {
		name  string
		block func(s *gosimnet.Simnet) (func(), error)
	}{
		{"clog", func(s *gosimnet.Simnet) (func(), error) { return s.Clog("b", "a", 0) }},
		{"dropping cut", func(s *gosimnet.Simnet) (func(), error) { return s.CutLink(gosimnet.DropPackets, "b", "a") }},
		{"holding cut", func(s *gosimnet.Simnet) (func(), error) { return s.CutLink(gosimnet.HoldPackets, "b", "a") }},
		{"isolation", func(s *gosimnet.Simnet) (func(), error) {
			_, err := s.AlterHost("b", gosimnet.ISOLATE)
			return func() { s.AlterHost("b", gosimnet.UNISOLATE) }, err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newNet(t, &gosimnet.SimNetConfig{ReceiveBuffer: 4096})
				s.Host("a")
				s.Host("b")
				client, server := streamPair(t, s)
				const size = 64 << 10
				wrote := make(chan error, 1)
				go func() {
					_, err := client.Write(make([]byte, size))
					wrote <- err
				}()
				time.Sleep(time.Second)
				heal, err := c.block(s)
				must(t, err)
				if _, err := io.ReadFull(server, make([]byte, 4096)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				start := time.Now()
				heal()
				server.SetReadDeadline(time.Now().Add(time.Minute))
				if n, err := io.ReadFull(server, make([]byte, size-4096)); err != nil {
					t.Fatalf("read %d bytes of the rest: %v", n, err)
				}
				t.Log(time.Since(start))
				must(t, <-wrote)
			})
		})
	}
}
