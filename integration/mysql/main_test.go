package mysql

import (
	"io"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"
)

// TestMain silences what driver and server log about connections that break, for that is what happens here on
// purpose.
func TestMain(m *testing.M) {
	logrus.SetOutput(io.Discard)
	mysql.SetLogger(&mysql.NopLogger{})
	goleak.VerifyTestMain(m)
}

// latency is that of every link, one way; a statement and its answer take two of them.
const latency = 10 * time.Millisecond

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
