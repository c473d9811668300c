// Package simtest runs tests over a simulated network: in virtual time, once for each of several seeds, and with a report when one fails.
//
//	func TestService(t *testing.T) {
//		simtest.Run(t, func(t *testing.T, net *gosimnet.Simnet) {
//			listener, err := net.Host("server").Listen("tcp", ":80")
//			…
//		})
//	}
//
// # The command line
//
// These environment variables, and the flags of the same meaning, change what all Runs of a test binary do. A flag wins over its variable, and both win over
// what the test's own options say. An impossible value fails the test.
//
//	SIMNET_SEED       -simnet.seed       the seed, decimal or 0x and hexadecimal; one, unless the number of seeds is set too
//	SIMNET_RUNS       -simnet.runs       the number of seeds
//	SIMNET_CHECK      -simnet.check      1: as CheckDeterminism; 0: not
//	SIMNET_ARTIFACTS  -simnet.artifacts  as WithArtifacts
//
// Flags are known only to the test binaries of packages that import this one: for "go test ./..." use the variables.
package simtest

import (
	"fmt"
	"testing"

	"github.com/glycerine/gosimnet"
)

// Run calls f once for each seed, each time in a synctest bubble of its own, with a network made there. With several seeds each is a subtest, "seed=7". With one, the
// config's unless options or the command line say otherwise, there is no subtest. Run must not be called inside a bubble.
//
// When f has returned and its cleanups have run, the network is closed, and some minutes of virtual time pass, so that goroutines which linger, as those of
// net/http do, can end. One that does not end is a deadlock to synctest, which panics. A library that starts a goroutine once for the whole process must do so before Run.
//
// What a process shares outlives bubbles. A timer that a library has put into a sync.Pool in one bubble is of no use in the next: the runtime ends the
// process then, with the words "synctest channel from outside bubble". Two calls of runtime.GC at the beginning of f empty all pools; Run does not make them, since most tests do
// without, and they may take longer than f.
//
// If a run fails, by t.Error, t.Fatal, a panic of f or a deadlock, the test's log gets a report: the seed, a line that runs it again, the last faults, the network as it was when f
// ended, and the last events. A panic of f is turned into a failure, so that the other tests go on. A panic of another
// goroutine ends the process before a report can be made; with -v the seed is in the log nevertheless.
//
// A call that waits for ever fails the run, too: see WithTimeout. If virtual time cannot pass, because a goroutine waits for a mutex whose holder
// waits for time to pass, Run ends the process after some seconds of real time, and says who waits where. If a goroutine waits for a channel that was made outside of the
// bubble, which holds the bubble's time as well, Run says so in the test's log, which -v shows at once, and goes on waiting. If f is skipped, so is the test.
func Run(t *testing.T, f func(t *testing.T, net *gosimnet.Simnet), opts ...Option) {
	t.Helper()
	p, err := newPlan(f, opts)
	if err != nil {
		t.Fatalf("simtest: %v", err)
	}
	p.name = t.Name()
	if p.runs == 1 {
		p.run(t, p.first)
		return
	}
	for i := range p.runs {
		seed := p.first + uint64(i)
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { p.run(t, seed) })
	}
}

// run is one seed: once, or twice if both runs are to be compared.
func (p *plan) run(t *testing.T, seed uint64) {
	t.Helper()
	first := p.attempt(t, seed)
	first.play()
	if first.skipped {
		t.SkipNow()
	}
	if !p.check {
		return
	}
	second := p.attempt(t, seed)
	second.play()
	if difference := compare(first, second); difference != "" {
		t.Errorf("simtest: seed %d ran differently the second time\n%s", seed, difference)
		second.report()
	}
}
