// Package scenario runs a scenario of real software over a simulated network several times with one seed, and says in
// the test's log how much virtual time passed in how much real time, and whether the runs were alike.
package scenario

import (
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/simtest"
)

// A Scenario says what software runs, and what is expected of its repetition.
type Scenario struct {
	Software string // the module and its version, or "net/http"
	Shows    string // what the scenario shows, in a few words

	// Config makes the networks. Nil is the defaults.
	Config *gosimnet.SimNetConfig

	// Slow scenarios, of which a run takes seconds, run twice unless RunsVariable says otherwise.
	Slow bool

	// Repeats says that all runs with one seed have one TraceHash, and fails the test if they do not.
	Repeats bool

	// Why says, of a scenario that does not repeat, what in the software is random and what a user can do about it.
	// It is for the log.
	Why string
}

// RunsVariable names the environment variable that sets how often a scenario runs.
const RunsVariable = "SIMNET_SCENARIO_RUNS"

// runs is how often a scenario runs: twenty times unless the variable says otherwise, but only twice when it is slow, or
// when the race detector or -short makes time dear.
func runs(t *testing.T, slow bool) int {
	s := os.Getenv(RunsVariable)
	if s == "" {
		if slow || raceEnabled || testing.Short() {
			return 2
		}
		return 20
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q: want a number, 1 or more", RunsVariable, s)
	}
	return n
}

// outcome is what one run came to.
type outcome struct {
	hash          string
	virtual, real time.Duration
}

// Run runs f several times, each time in a bubble and a network of its own, with the seed that the config gives. What
// the process shares is seeded as well: crypto/rand by testing/cryptotest, and the global source of math/rand (not that
// of math/rand/v2, which has no seed). It must not be called in a parallel test.
func Run(t *testing.T, s Scenario, f func(t *testing.T, net *gosimnet.Simnet)) {
	t.Helper()
	t.Setenv("GODEBUG", "randseednop=0")
	var all []outcome
	for i := range runs(t, s.Slow) {
		ok := t.Run(fmt.Sprintf("run=%d", i+1), func(t *testing.T) { all = append(all, once(t, s, f)) })
		if !ok || t.Skipped() {
			return
		}
	}
	report(t, s, all)
}

// once runs f once.
func once(t *testing.T, s Scenario, f func(t *testing.T, net *gosimnet.Simnet)) (o outcome) {
	const seed = 1
	cryptotest.SetGlobalRandom(t, seed)
	//lint:ignore SA1019 the software under test draws from the global source, and nothing else seeds that
	rand.Seed(seed)
	began := time.Now()
	simtest.Run(t, func(t *testing.T, net *gosimnet.Simnet) {
		start := time.Now()
		f(t, net)
		o.virtual = time.Since(start)
		synctest.Wait()
		o.hash = fmt.Sprint(net.TraceHash())
	}, simtest.WithConfig(s.Config))
	o.real = time.Since(began)
	return o
}

// report logs what the runs came to, and fails the test if they should have been alike and were not.
func report(t *testing.T, s Scenario, all []outcome) {
	t.Helper()
	alike, total := 0, time.Duration(0)
	for _, o := range all {
		if o.hash == all[0].hash {
			alike++
		}
		total += o.real
	}
	mean := total / time.Duration(len(all))
	t.Logf("scenario | %s | %s | virtual %v | real %v | repeats %d/%d | %s",
		s.Software, s.Shows, all[0].virtual.Round(time.Microsecond), mean.Round(time.Millisecond), alike, len(all), s.Why)
	if s.Repeats && alike != len(all) {
		t.Errorf("%d of %d runs have the trace hash of the first", alike, len(all))
	}
}
