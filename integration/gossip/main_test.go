package gossip

import (
	"runtime"
	"testing"

	"go.uber.org/goleak"
)

// TestMain has goroutines run one after the other, so that those that start at one instant draw from math/rand's
// global source in the same order in nearly every run.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	goleak.VerifyTestMain(m)
}
