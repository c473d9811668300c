// Package referee watches a cluster that replicates a log by the Raft protocol, and says what of the protocol's
// promises it has broken: never two leaders in a term, never two entries at one index, and nothing that a client
// was promised lost.
package referee

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// An Election is a node becoming the leader of a term.
type Election struct {
	Node string
	Term uint64
	Time time.Time
}

// A Promise is an entry that a leader has told a client is committed.
type Promise struct {
	Leader string
	Index  uint64
	Value  string
	Time   time.Time
}

// Referee watches one cluster. Nodes and clients tell it what happens, at the moment when it does. It must be made
// in the bubble that it is used in; New makes one.
type Referee struct {
	elections chan Election

	mu       sync.Mutex
	leaders  map[uint64]string            // by term
	entries  map[uint64]string            // by index, as the first node that applied it has it
	applied  map[string]map[uint64]string // by node, since its last start, and index
	promises []Promise
	broken   []string
}

// New makes a referee of a cluster that has not started.
func New() *Referee {
	return &Referee{
		elections: make(chan Election, 10_000),
		leaders:   map[uint64]string{},
		entries:   map[uint64]string{},
		applied:   map[string]map[uint64]string{},
	}
}

// breach notes a broken promise. It is called with the lock held.
func (r *Referee) breach(format string, args ...any) {
	r.broken = append(r.broken, fmt.Sprintf(format, args...))
}

// Started says that a node starts, with a state machine that has applied nothing.
func (r *Referee) Started(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.applied[node] = map[uint64]string{}
}

// Elected says that a node becomes the leader of a term.
func (r *Referee) Elected(node string, term uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if other, taken := r.leaders[term]; taken && other != node {
		r.breach("%s and %s both lead in term %d", other, node, term)
	}
	r.leaders[term] = node
	r.elections <- Election{node, term, time.Now()}
}

// Applied says that a node applies the committed entry at an index.
func (r *Referee) Applied(node string, index uint64, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first, known := r.entries[index]
	if known && first != value {
		r.breach("%s applies %q at %d, where %q was applied before", node, value, index, first)
	}
	if !known {
		r.entries[index] = value
	}
	r.applied[node][index] = value
}

// Promised says that a leader has told a client that its value is committed at an index.
func (r *Referee) Promised(leader string, index uint64, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.promises = append(r.promises, Promise{leader, index, value, time.Now()})
}

// Promises are all promises so far, in order.
func (r *Referee) Promises() []Promise {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.promises)
}

// NextElection waits so long for the next election of which it has not told yet.
func (r *Referee) NextElection(patience time.Duration) (e Election, ok bool) {
	select {
	case e = <-r.elections:
		return e, true
	default:
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case e = <-r.elections:
		return e, true
	case <-timer.C:
		return Election{}, false
	}
}

// Breaches are the promises that were broken so far. Those to clients are broken if one of the nodes, which are to
// have had the time to catch up, has not applied what was promised.
func (r *Referee) Breaches(nodes ...string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	broken := slices.Clone(r.broken)
	for _, node := range nodes {
		for _, p := range r.promises {
			if got, ok := r.applied[node][p.Index]; !ok || got != p.Value {
				broken = append(broken, fmt.Sprintf("%s has %q at %d, where %s promised %q", node, got, p.Index, p.Leader, p.Value))
			}
		}
	}
	return broken
}
