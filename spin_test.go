package gosimnet_test

import (
	"errors"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

// Software that asks again and again whether another goroutine is through lets no time pass. Who waits is woken all the same,
// also while data is under way to it.
func TestCallsWakeOthersWhileSomebodySpins(t *testing.T) {
	for _, test := range []struct {
		name string
		call func(c net.Conn) error
		want error
	}{
		{"Close", net.Conn.Close, net.ErrClosed},
		{"SetReadDeadline", func(c net.Conn) error { return c.SetReadDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, peer := lossyPair(t, gosimnet.SimNetConfig{})
				var done atomic.Bool
				go func() {
					if _, err := c.Read(make([]byte, 1)); !errors.Is(err, test.want) {
						t.Errorf("Read: %v, want %v", err, test.want)
					}
					done.Store(true)
				}()
				time.Sleep(time.Second)
				if _, err := peer.Write([]byte("x")); err != nil {
					t.Error(err)
				}
				if err := test.call(c); err != nil {
					t.Error(err)
				}
				for start := realNow(); !done.Load(); runtime.Gosched() {
					if realNow()-start > 5*time.Second {
						t.Fatal("Read still waits after five seconds of spinning")
					}
				}
			})
		})
	}
}
