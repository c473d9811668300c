package hashiraft

import (
	"runtime"
	"testing"

	"go.uber.org/goleak"
)

// TestMain has goroutines run one after the other, so that those that start at one instant draw from math/rand's global source in
// the same order in most runs, where a map's order does not come in.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	goleak.VerifyTestMain(m)
}
