package gosimnet

import (
	"cmp"
	"errors"
	"math"
	"net"
	"runtime"
	"slices"
	"sync"
	"time"
)

// never is the instant after all others.
const never = math.MaxInt64

var errUnmade = errors.New("gosimnet: a network that New has not made")

var errWrongClock = errors.New("gosimnet: a network made inside a synctest bubble was used outside it, or the other way round")

// scheduler is the part of a Simnet that makes time pass.
//
// Whatever happens by itself happens in a step, at the next instant at which anything can have to be done. A timer is armed for it by
// whoever brought that about, so that a call costs no switch to the scheduler and back. The step is made by the
// goroutine that it will wake, if that can be told, and by the scheduler's own goroutine otherwise: at an instant there is one step. The timer in the future is also
// the barrier that makes runs repeat: in a bubble it fires only when every goroutine has come to rest,
// so that all operations of earlier instants are in the pending list by then.
//
// The lock is held for memory moves only, never across anything that waits.
type scheduler struct {
	mu      sync.Mutex
	start   time.Time
	virtual bool  // inside a bubble
	began   int64 // start, in nanoseconds since 1970
	phase   int64 // the instant 0 within its microsecond
	t       int64 // the present instant, valid while locked

	timer   *time.Timer
	quit    chan struct{} // closed by Close
	inside  int           // goroutines that wait in calls, and the scheduler's
	ended   chan struct{} // they all have left, after Close
	set     int64         // what the timer is set to, or never
	armed   int64         // when the next step happens, or never
	alarm   *waiter       // who makes it; nil: the goroutine
	self    *waiter       // who makes the present one, if a waiter does
	agenda  agenda
	pending []issued // issued at t or earlier, not yet admitted
	wanted  int64    // the first instant that needs one of them admitted, or never
	needed  admissible
	batch   []issued  // room for the operations being admitted
	order   []int32   // and for their order
	ready   []turn    // to be woken, one an instant
	turn    int       // whose turn it is among ready
	mixed   bool      // ready is to be sorted first
	idle    []*waiter // the pool
	wakes   []*waiter // to be woken as soon as the lock is released

	acting bool // what happens is the network's doing, not a caller's
	many   bool // several goroutines may be woken at one instant
	steps  int64
	issues int64
	closed bool
}

// issued is an operation that has been issued and waits to be admitted in canonical order.
type issued struct {
	at int64
	by int64
	priority
	op admissible
}

// ranked is the number of an operation that comes after number n of its flow, or is it, by its rank among those that do.
func ranked(n uint64, rank int) uint64 { return n<<5 | uint64(rank) }

// admissible is an operation whose fate is decided at admission.
type admissible interface {
	admit(at int64)
	needed(at int64) int64 // the first instant that can need its outcome, if it was issued at an instant
}

// begin sets the clock going.
func (s *scheduler) begin(many bool) {
	s.start = time.Now()
	s.virtual = virtual(s.start)
	s.began = s.start.UnixNano()
	s.phase = s.began % 1000
	s.many = many || !s.virtual
	s.set, s.armed, s.wanted = never, never, never
	s.timer = time.NewTimer(time.Hour)
	s.timer.Stop()
	s.quit, s.ended = make(chan struct{}), make(chan struct{})
	s.inside = 1
	go s.run()
}

// virtual reports whether a time that was just taken is a bubble's: those, and only those, have no monotonic reading.
func virtual(now time.Time) bool { return now == now.Round(0) }

// since is an instant as the network counts them. A bubble's clock has one reading, and it is quicker to take it as a number.
func (s *scheduler) since(now time.Time) int64 {
	if s.virtual {
		return now.UnixNano() - s.began
	}
	return int64(now.Sub(s.start))
}

// enter locks the network at the present instant. The error is net.ErrClosed after Close, or says
// that the caller lives by another clock than the network; the network is not locked then.
func (s *scheduler) enter() error {
	if s.ended == nil {
		return errUnmade
	}
	now := time.Now()
	if virtual(now) != s.virtual {
		return errWrongClock
	}
	s.mu.Lock()
	s.t = max(s.t, s.since(now))
	if s.closed {
		s.mu.Unlock()
		return net.ErrClosed
	}
	s.catchUp()
	return nil
}

// catchUp brings the network up to the present before a call changes it: who comes first at an instant, the one that makes the
// step or a caller, is chance, and must make no difference.
func (s *scheduler) catchUp() {
	if s.armed <= s.t {
		s.step()
	} else {
		s.admitBefore(s.t)
	}
}

// reenter locks again, after a wait, whether the network has been closed meanwhile or not.
func (s *scheduler) reenter() {
	s.mu.Lock()
	s.t = max(s.t, s.since(time.Now()))
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

// yield lets a call go on that is about to come to its end, or copies bytes outside the lock. To be woken by it would take another instant, and
// whether it is over already is chance.
func (s *scheduler) yield() {
	s.leave()
	runtime.Gosched()
	s.mu.Lock()
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

// issue puts an operation into the pending list.
func (s *scheduler) issue(op admissible, by priority) {
	s.pending = append(s.pending, issued{at: s.t, by: op.needed(s.t), priority: by, op: op})
	s.want(&s.pending[len(s.pending)-1])
	s.issues++
}

// want notes when a pending operation is needed.
func (s *scheduler) want(op *issued) {
	if op.by < s.wanted {
		s.wanted, s.needed = op.by, op.op
	}
}

// admitBefore admits, in canonical order, everything that was issued before an instant.
// On the wall clock an instant means little, and all is admitted.
func (s *scheduler) admitBefore(t int64) {
	if !s.virtual {
		t = never
	}
	if len(s.pending) == 0 || s.pending[0].at >= t {
		return
	}
	if len(s.pending) == 1 {
		s.admitOnly()
	} else {
		s.admitAll(t)
	}
}

// admitAll admits those of several operations that were issued before an instant.
func (s *scheduler) admitAll(t int64) {
	batch, kept := s.batch[:0], s.pending[:0]
	s.wanted, s.needed = never, nil
	for i := range s.pending {
		if op := &s.pending[i]; op.at < t {
			batch = append(batch, *op)
		} else {
			kept = append(kept, *op)
			s.want(op)
		}
	}
	clear(s.pending[len(kept):])
	s.pending = kept
	acting := s.acting
	s.acting = true
	for _, i := range s.canonical(batch) {
		batch[i].op.admit(batch[i].at)
	}
	s.acting = acting
	clear(batch)
	s.batch = batch
}

// canonical lists the places of operations in their canonical order. To sort places is quicker than to move operations.
func (s *scheduler) canonical(batch []issued) []int32 {
	s.order = s.order[:0]
	for i := range batch {
		s.order = append(s.order, int32(i))
	}
	slices.SortFunc(s.order, func(a, b int32) int { return batch[a].compare(&batch[b]) })
	return s.order
}

// admitOnly admits the one operation that is pending.
func (s *scheduler) admitOnly() {
	op, at := s.pending[0].op, s.pending[0].at
	s.pending[0].op = nil
	s.pending = s.pending[:0]
	s.wanted, s.needed = never, nil
	acting := s.acting
	s.acting = true
	op.admit(at)
	s.acting = acting
}

// compare is the canonical order of operations.
func (op *issued) compare(o *issued) int {
	if op.at != o.at {
		return cmp.Compare(op.at, o.at)
	}
	return op.priority.compare(&o.priority)
}

// run is the scheduler's goroutine. It makes the steps that no waiter makes.
func (s *scheduler) run() {
	for {
		select {
		case <-s.timer.C:
		case <-s.quit:
		}
		s.reenter()
		s.fired()
		if s.closed {
			s.left()
			s.mu.Unlock()
			return
		}
		if s.armed <= s.t {
			s.step()
		}
		s.leave()
	}
}

// step is what happens at an instant: it admits what earlier instants issued, lets happen what is due, and
// wakes at most one goroutine, besides those whose deadlines are exactly now.
func (s *scheduler) step() {
	s.armed, s.alarm = never, nil
	s.steps++
	s.admitBefore(s.t)
	s.acting = true
	for s.agenda.earliest() <= s.t {
		s.agenda.pop().act.fire(s.t)
	}
	s.acting = false
	s.wakeOne()
}

// next is the first instant at which anything can have to be done, and the waiter that this will wake, if that is easily told.
func (s *scheduler) next() (at int64, who *waiter) {
	if s.turn < len(s.ready) {
		if w := s.ready[s.turn].w; !s.mixed && !w.woken { // one that something else has woken may be gone
			return s.clear(s.t + 1), w
		}
		return s.clear(s.t + 1), nil
	}
	if s.wanted < s.agenda.earliest() {
		return s.wanted, beneficiary(s.needed)
	}
	if len(s.agenda.slots) == 0 {
		return never, nil
	}
	return s.agenda.slots[0].at, beneficiary(s.agenda.slots[0].ev.act)
}

// beneficiary is the waiter that something will wake, or nil if that is not easily told. It may be another that wakes, or nobody.
func beneficiary(of any) *waiter {
	switch e := of.(type) {
	case *packet:
		return e.beneficiary()
	case *ackEvent:
		return e.room.first()
	case *deadline:
		return e.list.first()
	}
	return nil
}

// beneficiary is the waiter that p will wake by its arrival.
func (p *packet) beneficiary() *waiter {
	switch {
	case p.half != nil:
		return p.half.readers.first()
	case p.circuit != nil:
		return p.circuit.conn.in.readers.first()
	case p.flow.sink != nil:
		return p.flow.sink.readers.first()
	case p.dial != nil:
		return p.dial.waiting.first()
	case p.kind == kindACK && p.conn.listener != nil:
		return p.conn.listener.acceptors.first()
	}
	return nil
}

// arm sees to it that a step happens at the next instant that needs one: a timer that fires earlier is left
// alone, for a step too many does no harm.
func (s *scheduler) arm() {
	if s.closed {
		return
	}
	next, who := s.next()
	if next >= s.armed {
		return
	}
	if next <= s.t {
		next = s.clear(s.t + 1)
	}
	if who != nil && who.timer != nil {
		s.armed, s.alarm = next, who
		who.coming |= fromTimer
		who.timer.Reset(time.Duration(next - s.t))
		return
	}
	s.fired()
	s.armed, s.alarm = min(next, s.set), nil
	if next < s.set {
		s.set = next
		s.timer.Reset(time.Duration(next - s.t))
	}
}

// fired forgets the instant of a timer that has fired, also before its goroutine has had its turn: if the next step were left to that instant, it
// would wake somebody where another has been woken.
func (s *scheduler) fired() {
	if s.set <= s.t {
		s.set = never
	}
}

// halt ends time: no step does anything after it. The caller holds the lock, releases it with leave, and waits for ended.
// It does not let the timer fire at once, which Go 1.25 hangs on in a bubble (golang.org/issue/76052).
func (s *scheduler) halt() {
	s.closed = true
	s.timer.Stop()
	close(s.quit)
	for s.turn < len(s.ready) {
		s.wakeOne()
	}
	s.pending = nil
	s.agenda.clear()
}
