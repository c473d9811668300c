package gosimnet

import (
	"cmp"
	"errors"
	"math"
	"net"
	"slices"
	"sync"
	"time"
)

// never is the instant after all others.
const never = math.MaxInt64

// wrongClock is how far a clock must be from the network's to be another one: a bubble's
// clock begins in 2000, so that a bubble and the wall are decades apart.
const wrongClock = 24 * 365 * 24 * time.Hour

var errWrongClock = errors.New("gosimnet: a network made inside a synctest bubble was used outside it, or the other way round")

// scheduler is the part of a Simnet that makes time pass.
//
// One goroutine waits on one timer, which is armed for the next instant at which anything can have to
// be done, by whoever brought that about: a call costs no switch to the scheduler and back. A timer in the future is also
// the barrier that makes runs repeat: in a bubble it fires only when every goroutine has come to rest,
// so that all operations of earlier instants are in the pending list by then.
//
// The lock is held for memory moves only, never across anything that waits.
type scheduler struct {
	mu      sync.Mutex
	start   time.Time
	virtual bool  // inside a bubble
	phase   int64 // the instant 0 within its microsecond
	t       int64 // the present instant, valid while locked

	timer   *time.Timer
	ended   chan struct{} // the goroutine has
	armed   int64         // what the timer is set to, or never
	agenda  agenda
	pending []issued  // issued at t or earlier, not yet admitted
	wanted  int64     // the first instant that needs one of them admitted, or never
	batch   []issued  // room for the operations being admitted
	ready   []*waiter // to be woken, one an instant
	turn    int       // whose turn it is among ready
	idle    []*waiter // the pool
	wakes   []*waiter // to be woken as soon as the lock is released

	many   bool // several goroutines may be woken at one instant
	steps  int64
	issues int64
	closed bool
}

// issued is an operation that has been issued and waits to be admitted in canonical order.
type issued struct {
	at   int64
	host *Host
	key  uint64
	n    uint64
	rank int // among the operations of one flow and instant
	by   int64
	op   admissible
}

// admissible is an operation whose fate is decided at admission.
type admissible interface{ admit(at int64) }

// begin sets the clock going.
func (s *scheduler) begin(many bool) {
	s.start = time.Now()
	s.virtual = s.start.Year() < 2015
	s.phase = s.start.UnixNano() % 1000
	s.many = many || !s.virtual
	s.armed, s.wanted = never, never
	s.timer = time.NewTimer(time.Hour)
	s.timer.Stop()
	s.ended = make(chan struct{})
	go s.run()
}

// enter locks the network at the present instant. The error is net.ErrClosed after Close, or says
// that the caller lives by another clock than the network; the network is not locked then.
func (s *scheduler) enter() error {
	now := time.Since(s.start)
	if now < 0 || !s.virtual && now > wrongClock {
		return errWrongClock
	}
	s.mu.Lock()
	s.t = max(s.t, int64(now))
	if s.closed {
		s.mu.Unlock()
		return net.ErrClosed
	}
	return nil
}

// reenter locks again, after a wait, whether the network has been closed meanwhile or not.
func (s *scheduler) reenter() {
	s.mu.Lock()
	s.t = max(s.t, int64(time.Since(s.start)))
}

// locked runs f with the lock held, whatever the caller's clock: it may not look at the time.
func (s *scheduler) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// leave arms the timer for what is next, unlocks, and wakes whom the caller's operation woke.
func (s *scheduler) leave() {
	s.arm()
	switch len(s.wakes) {
	case 0:
		s.mu.Unlock()
	case 1:
		w := s.wakes[0]
		s.wakes[0] = nil
		s.wakes = s.wakes[:0]
		s.mu.Unlock()
		w.wake()
	default:
		wakes := s.wakes
		s.wakes = nil
		s.mu.Unlock()
		for _, w := range wakes {
			w.wake()
		}
	}
}

// wakeNext wakes w at an instant of its own, after those that are to be woken already.
func (s *scheduler) wakeNext(w *waiter) {
	if s.many {
		s.wakes = append(s.wakes, w)
		return
	}
	if !w.queued {
		w.queued = true
		s.ready = append(s.ready, w)
	}
}

// clear moves an instant off the round microseconds, where users' own timers fire.
func (s *scheduler) clear(at int64) int64 {
	if (at+s.phase)%1000 == 0 {
		at++
	}
	return at
}

// after schedules e for what is due at an instant: the nanosecond after it, clear of round ones.
func (s *scheduler) after(e *event, due int64) { s.agenda.add(e, s.clear(due+1)) }

// exactly schedules e for the instant itself, or for the present if it is past.
func (s *scheduler) exactly(e *event, at int64) {
	e.exact = true
	s.agenda.add(e, at)
}

// issue puts an operation into the pending list; by is the first instant that can need its outcome.
func (s *scheduler) issue(op issued, by int64) {
	op.at, op.by = s.t, by
	s.pending = append(s.pending, op)
	s.wanted = min(s.wanted, by)
	s.issues++
}

// admitBefore admits, in canonical order, everything that was issued before an instant.
// On the wall clock an instant means little, and all is admitted.
func (s *scheduler) admitBefore(t int64) {
	if len(s.pending) == 0 {
		return
	}
	if !s.virtual {
		t = never
	}
	batch, kept := s.batch[:0], s.pending[:0]
	s.wanted = never
	for _, op := range s.pending {
		if op.at < t {
			batch = append(batch, op)
		} else {
			kept = append(kept, op)
			s.wanted = min(s.wanted, op.by)
		}
	}
	clear(s.pending[len(kept):])
	s.pending = kept
	if len(batch) > 1 {
		slices.SortFunc(batch, issued.compare)
	}
	for _, op := range batch {
		op.op.admit(op.at)
	}
	clear(batch)
	s.batch = batch
}

// compare is the canonical order of operations.
func (op issued) compare(o issued) int {
	if op.at != o.at {
		return cmp.Compare(op.at, o.at)
	}
	if op.host != o.host {
		return op.host.compare(o.host)
	}
	return cmp.Or(cmp.Compare(op.key, o.key), cmp.Compare(op.n, o.n), cmp.Compare(op.rank, o.rank))
}

// run is the scheduler's goroutine.
func (s *scheduler) run() {
	for {
		<-s.timer.C
		if !s.step() {
			close(s.ended)
			return
		}
	}
}

// step is what happens at an instant: it admits what earlier instants issued, lets happen what is due, and
// wakes at most one goroutine, besides those whose deadlines are exactly now.
func (s *scheduler) step() (more bool) {
	s.reenter()
	s.armed = never
	if s.closed {
		s.mu.Unlock()
		return false
	}
	s.steps++
	s.admitBefore(s.t)
	for s.agenda.earliest() <= s.t {
		s.agenda.pop().act.fire(s.t)
	}
	s.wakeOne()
	s.leave()
	return true
}

// wakeOne takes the next of those who wait for an instant of their own.
func (s *scheduler) wakeOne() {
	if s.turn == len(s.ready) {
		return
	}
	w := s.ready[s.turn]
	s.ready[s.turn] = nil
	w.queued = false
	s.wakes = append(s.wakes, w)
	if s.turn++; s.turn == len(s.ready) {
		s.ready, s.turn = s.ready[:0], 0
	}
}

// arm sets the timer for the first instant at which anything can have to be done. It leaves a timer
// that fires earlier alone: a step too many does no harm.
func (s *scheduler) arm() {
	next := min(s.agenda.earliest(), s.wanted)
	if s.turn < len(s.ready) {
		next = min(next, s.clear(s.t+1))
	}
	if next >= s.armed || s.closed {
		return
	}
	if next <= s.t {
		next = s.clear(s.t + 1)
	}
	if next < s.armed {
		s.armed = next
		s.timer.Reset(time.Duration(next - s.t))
	}
}

// halt ends time: no step does anything after it. The caller holds the lock, releases it with leave, and waits for ended.
func (s *scheduler) halt() {
	s.closed = true
	s.timer.Reset(0)
	s.wakes = append(s.wakes, s.ready[s.turn:]...)
	s.ready, s.pending, s.agenda = nil, nil, agenda{}
}
