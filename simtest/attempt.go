package simtest

import (
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

// linger is how much virtual time passes after a network has been closed. The slowest goroutines known, of connections that back off
// before they dial again, wait two minutes.
const linger = 5 * time.Minute

// attempt is one run of f with one seed, in one bubble.
type attempt struct {
	plan      *plan
	seed      uint64
	outer     *testing.T
	hadFailed bool // outer, before
	t         *testing.T
	net       *gosimnet.Simnet
	limit     *time.Timer
	skipped   bool
	hash      string
	told      bool // the report has been made

	mu   sync.Mutex
	snap *gosimnet.SimnetSnapshot // as of the first look after the failure
}

func (p *plan) attempt(t *testing.T, seed uint64) *attempt {
	return &attempt{plan: p, seed: seed, outer: t, hadFailed: t.Failed()}
}

// play is the bubble, and all of it that can be seen from outside. It returns only if nothing failed.
func (a *attempt) play() {
	a.outer.Helper()
	defer watch(a.outer)()
	defer a.deadlocked()
	synctest.Test(a.outer, a.inside)
}

// deadlocked reports before a panic of synctest goes on.
func (a *attempt) deadlocked() {
	if e := recover(); e != nil {
		a.outer.Errorf("simtest: seed %d: %v%s", a.seed, e, advice(e))
		a.report()
		panic(e)
	}
}

// advice is what a user can do about a deadlock.
func advice(e any) string {
	switch text := fmt.Sprint(e); {
	case strings.Contains(text, "goroutines remain"):
		return "\nThe goroutines that are left are listed below. End them before f returns, or in t.Cleanup; those of net/http called persistConn wait until somebody " +
			"has read and closed the body of a response. One that a library starts once for the whole process, at its first use, must be started before Run, in TestMain say."
	case strings.Contains(text, "goroutines in bubble are blocked"):
		return "\nThe goroutines are listed below. What they wait for is not the network, whose end would have woken them."
	}
	return ""
}

// inside is what happens in the bubble.
func (a *attempt) inside(t *testing.T) {
	t.Helper()
	a.t = t
	cfg := a.plan.cfg
	cfg.Seed = a.seed
	net, err := gosimnet.New(&cfg)
	if err != nil {
		t.Fatalf("simtest: %v", err)
	}
	a.net = net
	t.Logf("simtest: seed %d", a.seed)
	a.limit = time.AfterFunc(a.plan.limit, a.overtime)
	t.Cleanup(a.finish)
	defer a.look()
	defer a.caught()
	a.plan.f(t, net)
}

// caught turns a panic of f into a failure.
func (a *attempt) caught() {
	if e := recover(); e != nil {
		a.t.Errorf("panic: %v\n\n%s", e, debug.Stack())
	}
}

// overtime is the end of f's time: closing the network ends all waiting for it.
func (a *attempt) overtime() {
	a.t.Errorf("simtest: f has not ended after %v of virtual time: somebody waits for what does not come; the network is closed now", a.plan.limit)
	a.look()
	a.net.Close()
}

// look takes the picture for the report, once, if there is to be one.
func (a *attempt) look() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.snap == nil && a.failed() {
		a.snap = a.net.GetSimnetSnapshot()
	}
}

// failed reports whether the run has failed, in the bubble's name or in that of the test around it.
func (a *attempt) failed() bool {
	return a.t != nil && a.t.Failed() || !a.hadFailed && a.outer.Failed()
}

// finish ends the run, after the cleanups of f.
func (a *attempt) finish() {
	a.limit.Stop()
	a.look()
	rest()
	a.net.Close()
	a.hash = a.net.TraceHash()
	time.Sleep(linger)
	a.look()
	a.skipped = a.t.Skipped()
	if a.failed() {
		a.report()
	}
}

// rest lets everybody finish what they do at this instant, so that what they ask of the network comes before its end, in every run. It
// ends at a whole microsecond, when the network itself does nothing.
func rest() {
	now := time.Now()
	time.Sleep(now.Truncate(time.Microsecond).Add(time.Microsecond).Sub(now))
}
