package gosimnet

import (
	"cmp"
	"iter"
	"slices"
	"time"
	"unsafe"
)

// waiter is one goroutine that waits to be woken, by a token in its channel. In a bubble the channel is a timer's: the scheduler can leave
// the next step to it, if it is the one that the step will wake, which saves a switch of goroutines. The timer
// alone would not do: it expires only when all the bubble's goroutines have come to rest, and some never do,
// but go on asking whether another has been woken. Waking never blocks, and a wake-up too many costs no more than another look.
type waiter struct {
	token  chan time.Time
	timer  *time.Timer // in a bubble
	coming sources     // of what is in the channel, or will be
	woken  bool
	queued bool // among those to be woken one by one
	what   call
	by     priority
	since  int64
}

// call is what a goroutine waits in.
type call uint8

const (
	callRead call = iota
	callWrite
	callAccept
	callClose
	callDial
	callLookup
)

// String is the call in a word.
func (c call) String() string {
	return [...]string{"read", "write", "accept", "close", "dial", "lookup"}[c]
}

// sources are those that send to a waiter's channel.
type sources uint8

const (
	fromTimer sources = 1 << iota
	fromOthers
)

// priority is a place in the canonical order of one instant.
type priority struct {
	host *Host
	line uint64 // the link
	key  uint64 // the flow
	n    uint64
}

// compare is the canonical order of one instant. Packets of one link come in the order in which they arrive, so that what a burst wakes needs no sorting.
func (a *priority) compare(b *priority) int {
	switch {
	case a.host != b.host:
		return a.host.compare(b.host)
	case a.line != b.line:
		return cmp.Compare(a.line, b.line)
	case a.key != b.key:
		return cmp.Compare(a.key, b.key)
	}
	return cmp.Compare(a.n, b.n)
}

// turn is a waiter that is to be woken at an instant of its own.
type turn struct {
	w     *waiter
	asked int64 // since when
}

// compare is the order in which waiters are woken.
func (t turn) compare(o turn) int {
	if t.asked != o.asked {
		return cmp.Compare(t.asked, o.asked)
	}
	return t.w.by.compare(&o.w.by)
}

// afterCalls is added to the numbers of writers that wait for their turn: others who wait for the same direction come before them.
const afterCalls = 16

// waiter takes a waiter out of the network's pool.
func (s *scheduler) waiter(by priority, what call) *waiter {
	var w *waiter
	if last := len(s.idle) - 1; last >= 0 {
		w = s.idle[last]
		s.idle = s.idle[:last]
		if w.coming != 0 {
			w.quiet()
		}
	} else {
		w = s.newWaiter()
	}
	w.by, w.since, w.what, w.woken = by, s.t, what, false
	s.inside++
	return w
}

func (s *scheduler) newWaiter() *waiter {
	if !s.virtual {
		return &waiter{token: make(chan time.Time, 1)}
	}
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &waiter{timer: t, token: sendable(t.C)}
}

// sendable is the channel of a timer for others than the timer to send to: to wait for one channel costs much less than to select from two. The language
// lets a channel that both sends and receives become one that only receives, and both are the same word in memory. What has been sent is lost when the timer is set
// anew, so nobody does that once the waiter is marked as woken.
func sendable(c <-chan time.Time) chan time.Time { return *(*chan time.Time)(unsafe.Pointer(&c)) }

// quiet takes a token that was left, and stops a timer that has not sent its own.
func (w *waiter) quiet() {
	w.coming = 0
	if w.timer != nil {
		w.timer.Stop()
	}
	select {
	case <-w.token:
	default:
	}
}

// received notes that a token has been taken. If both may have sent it, one may send another.
func (w *waiter) received() {
	if w.coming != fromTimer|fromOthers {
		w.coming = 0
	}
}

// wake lets the waiter go on. It has been marked as woken.
func (w *waiter) wake() {
	select {
	case w.token <- time.Time{}:
	default:
	}
}

// done gives a waiter back. One that is still to be woken, because it left for another reason, loses its turn: nobody
// would make the step that is left to it.
func (s *scheduler) done(w *waiter) {
	if w.queued {
		s.unqueue(w)
	}
	s.idle = append(s.idle, w)
	s.left()
}

// left counts one goroutine fewer inside; Close waits for the last.
func (s *scheduler) left() {
	if s.inside--; s.inside == 0 && s.closed {
		close(s.ended)
	}
}

// unqueue takes a waiter out of those that are to be woken one by one.
func (s *scheduler) unqueue(w *waiter) {
	w.queued = false
	i := s.turn + slices.IndexFunc(s.ready[s.turn:], func(t turn) bool { return t.w == w })
	s.ready = slices.Delete(s.ready, i, i+1)
	if s.turn == len(s.ready) {
		s.ready, s.turn = s.ready[:0], 0
	}
}

// waitlist is those who wait for one thing, first come first served. The first, as almost always the only one, needs no list.
type waitlist struct {
	head *waiter
	rest []*waiter
}

func (l *waitlist) empty() bool { return l.head == nil }

func (l *waitlist) add(w *waiter) {
	if l.head == nil {
		l.head = w
	} else {
		l.rest = append(l.rest, w)
	}
}

func (l *waitlist) remove(w *waiter) {
	switch {
	case l.head != w:
		if i := slices.Index(l.rest, w); i >= 0 {
			l.rest = slices.Delete(l.rest, i, i+1)
		}
	case len(l.rest) > 0:
		l.head = l.rest[0]
		l.rest = slices.Delete(l.rest, 0, 1)
	default:
		l.head = nil
	}
}

// all lists them, in the order in which they came.
func (l *waitlist) all() iter.Seq[*waiter] {
	return func(yield func(*waiter) bool) {
		if l.head == nil || !yield(l.head) {
			return
		}
		for _, w := range l.rest {
			if !yield(w) {
				return
			}
		}
	}
}

// since is when the first of them began to wait.
func (l *waitlist) since() int64 {
	if l.head == nil {
		return 0
	}
	return l.head.since
}

// first is the one that the next wake-up would be for, or nil.
func (l *waitlist) first() *waiter {
	w := l.head
	if w == nil || w.woken || w.queued || w.timer == nil {
		return nil
	}
	return w
}

// await waits in a list until woken. Meanwhile it does the scheduler's steps that are left to it.
func (s *scheduler) await(l *waitlist, by priority, what call) {
	w := s.waiter(by, what)
	l.add(w)
	for !w.woken && !s.closed {
		s.leave()
		<-w.token
		s.resume(w)
		w.received()
	}
	l.remove(w)
	s.done(w)
}

// awaitOr waits in a list until woken or done. Meanwhile it does the scheduler's steps that are left to it.
func (s *scheduler) awaitOr(done <-chan struct{}, l *waitlist, by priority, what call) {
	if done == nil {
		s.await(l, by, what)
		return
	}
	w := s.waiter(by, what)
	l.add(w)
	for ended := false; !w.woken && !ended && !s.closed; {
		s.leave()
		select {
		case <-w.token:
			s.resume(w)
			w.received()
		case <-done:
			ended = true
			s.resume(w)
		}
	}
	l.remove(w)
	s.done(w)
}

// resume locks the network again after a wait, and makes the step that was left to the waiter.
func (s *scheduler) resume(w *waiter) {
	s.reenter()
	switch {
	case s.closed:
	case s.armed <= s.t:
		s.self = w
		s.step()
		s.self = nil
	case s.alarm == w: // not yet due, and w may be gone by then: leave finds another
		s.armed, s.alarm = never, nil
	}
}

// wakeNow wakes w as soon as the lock is released.
func (s *scheduler) wakeNow(w *waiter) {
	if !w.woken {
		w.woken = true
		if w != s.self {
			w.coming |= fromOthers
			s.wakes = append(s.wakes, w)
		}
	}
}

// wakeNext wakes w at an instant of its own, after those that earlier instants were to wake; those of one instant
// come in canonical order. After Close there are no more instants.
func (s *scheduler) wakeNext(w *waiter) {
	switch {
	case s.many || s.closed:
		s.wakeNow(w)
	case !w.woken && !w.queued:
		w.queued = true
		t := turn{w, s.t}
		if last := len(s.ready) - 1; last >= s.turn && t.compare(s.ready[last]) < 0 {
			s.mixed = true
		}
		s.ready = append(s.ready, t)
	}
}

// wakeOne takes the next of those who wait for an instant of their own.
func (s *scheduler) wakeOne() {
	if s.turn == len(s.ready) {
		return
	}
	if s.mixed {
		slices.SortStableFunc(s.ready[s.turn:], turn.compare)
		s.mixed = false
	}
	w := s.ready[s.turn].w
	s.ready[s.turn].w = nil
	w.queued = false
	s.wakeNow(w)
	if s.turn++; s.turn == len(s.ready) {
		s.ready, s.turn = s.ready[:0], 0
	}
}

// wakeFirst wakes the first of a list at an instant of its own.
func (s *scheduler) wakeFirst(l *waitlist) {
	if l.head != nil {
		s.wakeNext(l.head)
	}
}

// wakeAll wakes everybody in a list, each at an instant of its own, or all as soon as the lock is released.
func (s *scheduler) wakeAll(l *waitlist, now bool) {
	for w := range l.all() {
		if now {
			s.wakeNow(w)
		} else {
			s.wakeNext(w)
		}
	}
}
