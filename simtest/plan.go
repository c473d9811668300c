package simtest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/glycerine/gosimnet"
)

// Option changes what Run does.
type Option func(*plan)

// plan is what Run has been told to do.
type plan struct {
	name      string // of the test that called Run
	f         func(t *testing.T, net *gosimnet.Simnet)
	cfg       gosimnet.SimNetConfig
	first     uint64 // seed
	given     bool   // it was, by an option
	runs      int
	check     bool
	artifacts string
	limit     time.Duration // of f, in virtual time
	bad       error         // the first impossible option
	repeat    []string      // variables that the line to run a seed again needs besides the seed
}

// forever is the limit of f if there is none: only a call that waits for ever takes so long.
const forever = 100 * 365 * 24 * time.Hour

// WithConfig makes networks of a config, which is copied. Its seed is the first seed, if WithSeed does not say otherwise. Nil is the defaults.
func WithConfig(cfg *gosimnet.SimNetConfig) Option {
	return func(p *plan) {
		p.cfg = gosimnet.SimNetConfig{}
		if cfg != nil {
			p.cfg = *cfg
		}
	}
}

// WithSeed sets the first seed.
func WithSeed(seed uint64) Option {
	return func(p *plan) { p.first, p.given = seed, true }
}

// WithSeeds runs n seeds: the first, and those that follow it, each one more than the one before. Less than 1 fails the test.
func WithSeeds(n int) Option {
	return func(p *plan) {
		if p.runs = n; n < 1 && p.bad == nil {
			p.bad = fmt.Errorf("WithSeeds(%d): want 1 or more", n)
		}
	}
}

// CheckDeterminism runs each seed twice and fails the test if the two runs' TraceHash differ. It then shows the first event that differs, if that is
// among those that are retained. For this the config's TraceLimit, if it is zero, becomes 262,144.
func CheckDeterminism() Option {
	return func(p *plan) { p.check = true }
}

// WithArtifacts writes files about a run that fails into a directory, which is made if need be: the report, the snapshot and the trace, named after the test and the seed. A
// relative path is relative to the directory of the test's package. "" writes nothing.
func WithArtifacts(dir string) Option {
	return func(p *plan) { p.artifacts = dir }
}

// WithTimeout fails a run in which f has not ended after so much virtual time. The report then shows who waits for what, and the network is closed, which ends all waiting for
// the network. Without this option the limit is a century, which passes in no time if all goroutines are blocked, but never
// comes if one of them wakes up now and then. Zero and less fail the test.
func WithTimeout(limit time.Duration) Option {
	return func(p *plan) {
		if p.limit = limit; limit <= 0 && p.bad == nil {
			p.bad = fmt.Errorf("WithTimeout(%v): want a positive duration", limit)
		}
	}
}

// newPlan joins the options, the environment and the flags.
func newPlan(f func(t *testing.T, net *gosimnet.Simnet), opts []Option) (*plan, error) {
	p := &plan{f: f, runs: 1, limit: forever}
	for _, o := range opts {
		if o != nil {
			o(p)
		}
	}
	switch {
	case f == nil:
		return nil, errors.New("nothing to run: f is nil")
	case p.bad != nil:
		return nil, p.bad
	}
	if !p.given {
		p.first = p.cfg.Seed
		if p.first == 0 {
			p.first = uint64(p.cfg.InitialSimnetScenario)
		}
	}
	p.cfg.InitialSimnetScenario = 0
	if err := p.override(); err != nil {
		return nil, err
	}
	if p.check && p.cfg.TraceLimit == 0 {
		p.cfg.TraceLimit = checkedTrace
	}
	return p, nil
}
