package scenario

import (
	"net"
	"testing"
	"time"

	"github.com/glycerine/gosimnet"
)

// A Clock measures the virtual time since it was started.
type Clock struct{ Start time.Time }

// StartClock starts a clock.
func StartClock() Clock { return Clock{time.Now()} }

// Elapsed is the time since the clock was started.
func (c Clock) Elapsed() time.Duration { return time.Since(c.Start) }

// Until sleeps until so long after the start.
func (c Clock) Until(after time.Duration) { time.Sleep(time.Until(c.Start.Add(after))) }

// At fails the test unless just so much time has passed. Every packet arrives a few nanoseconds after its latency
// is over, so that up to a microsecond more is right.
func (c Clock) At(t *testing.T, what string, want time.Duration) {
	t.Helper()
	c.Within(t, what, want, time.Microsecond)
}

// Within fails the test unless so much time has passed, and less than so much more.
func (c Clock) Within(t *testing.T, what string, want, more time.Duration) {
	t.Helper()
	if got := c.Elapsed(); got < want || got >= want+more {
		t.Errorf("%s after %v, want %v and less than %v more", what, got, want, more)
	}
}

// Listen listens for streams on a host, for as long as the test runs.
func Listen(t *testing.T, h *gosimnet.Host, address string) net.Listener {
	t.Helper()
	l, err := h.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// PowerCycle takes a host's power away, and gives it back after a while.
func PowerCycle(t *testing.T, net *gosimnet.Simnet, host string, off time.Duration) {
	t.Helper()
	for _, step := range []gosimnet.Alteration{gosimnet.SHUTDOWN, gosimnet.POWERON} {
		if _, err := net.AlterHost(host, step); err != nil {
			t.Fatal(err)
		}
		if step == gosimnet.SHUTDOWN {
			time.Sleep(off)
		}
	}
}

// Must is the value of a call that must not fail: Must(f())(t).
func Must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
