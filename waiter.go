package gosimnet

import "slices"

// waiter is one goroutine that waits to be woken. The channel holds one token, so that
// waking never blocks; a stale token costs its owner one more look at what it waits for.
type waiter struct {
	ch     chan struct{}
	queued bool // in the list of those to be woken one by one
	since  int64
	what   string
}

func (w *waiter) wake() {
	select {
	case w.ch <- struct{}{}:
	default:
	}
}

// waiter takes a waiter out of the network's pool.
func (s *scheduler) waiter(what string) *waiter {
	var w *waiter
	if last := len(s.idle) - 1; last >= 0 {
		w = s.idle[last]
		s.idle = s.idle[:last]
		select {
		case <-w.ch:
		default:
		}
	} else {
		w = &waiter{ch: make(chan struct{}, 1)}
	}
	w.since, w.what = s.t, what
	return w
}

// done gives a waiter back. One that is still to be woken is left to the garbage collector.
func (s *scheduler) done(w *waiter) {
	if !w.queued {
		s.idle = append(s.idle, w)
	}
}

// waitlist is those who wait for one thing, first come first served.
type waitlist []*waiter

func (l *waitlist) add(w *waiter) { *l = append(*l, w) }

func (l *waitlist) remove(w *waiter) {
	if i := slices.Index(*l, w); i >= 0 {
		*l = slices.Delete(*l, i, i+1)
	}
}

func (l waitlist) empty() bool { return len(l) == 0 }

// await waits in a list until woken, and reports for how long the list was right: it is out of it afterwards.
func (s *scheduler) await(l *waitlist, what string) {
	w := s.waiter(what)
	l.add(w)
	s.leave()
	<-w.ch
	s.mu.Lock() // who woke it, at this very instant, has set the time
	l.remove(w)
	s.done(w)
}

// wakeFirst wakes the first of a list at an instant of its own.
func (s *scheduler) wakeFirst(l waitlist) {
	if len(l) > 0 {
		s.wakeNext(l[0])
	}
}

// wakeAll wakes everybody in a list, each at an instant of its own, or all as soon as the lock is released.
func (s *scheduler) wakeAll(l waitlist, now bool) {
	for _, w := range l {
		if now {
			s.wakes = append(s.wakes, w)
		} else {
			s.wakeNext(w)
		}
	}
}
