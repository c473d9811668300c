package postgres

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// latency is that of every link, one way; a query and its answer take two of them.
const latency = 10 * time.Millisecond

// setup is how long a new connection takes: the dial, and the answer to the client's first message.
const setup = 4 * latency

// stopwatch begins at an instant of virtual time.
type stopwatch time.Time

func start() stopwatch { return stopwatch(time.Now()) }

// at checks that something happened so long after the start, to the microsecond.
func (s stopwatch) at(t *testing.T, what string, want time.Duration) {
	t.Helper()
	if got := time.Since(time.Time(s)).Truncate(time.Microsecond); got != want {
		t.Errorf("%s came after %v, want %v", what, got, want)
	}
}

// until sleeps until so long after the start.
func (s stopwatch) until(after time.Duration) {
	time.Sleep(time.Until(time.Time(s).Add(after)))
}
