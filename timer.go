package gosimnet

import "time"

// SimTimer is a timer of a host, like a time.Timer with a channel: it fires at its exact instant, unless the host
// loses power before, which withdraws it. Its methods may be called by any goroutine.
type SimTimer struct {
	event
	// C gets the time when the timer fires. It holds one value.
	C     <-chan time.Time
	c     chan time.Time
	host  *Host
	since int64
	place int // one more than its index among the host's timers; 0: not armed
}

// NewTimer makes a timer that fires after d; zero and less is at once. On a host without power, and after
// Close, it never fires. Discard it when it is of no use any more.
func (h *Host) NewTimer(d time.Duration) *SimTimer {
	c := make(chan time.Time, 1)
	t := &SimTimer{C: c, c: c, host: h}
	t.act = t
	if h.enter() != nil {
		return t
	}
	t.event.host = h
	t.start(d)
	h.net.leave()
	return t
}

// start arms the timer. Its channel must be empty.
func (t *SimTimer) start(d time.Duration) {
	h := t.host
	if h.powerOff {
		return
	}
	t.since = h.net.t
	if d <= 0 {
		h.net.noteFor(priority{host: h, n: ranked(0, 1)}, record{kind: EventTimer, host: h})
		t.tell()
		return
	}
	h.timers = append(h.timers, t)
	t.place = len(h.timers)
	at := h.net.t + int64(d)
	if at < 0 {
		at = never - 1
	}
	h.net.exactly(&t.event, at)
}

// tell sends the time.
func (t *SimTimer) tell() {
	select {
	case t.c <- t.host.net.time(t.host.net.t):
	default:
	}
}

// fire is the timer's instant.
func (t *SimTimer) fire(now int64) {
	t.withdraw()
	t.host.net.trace.add(t.host.net, record{at: now, kind: EventTimer, host: t.host})
	t.host.clock++
	t.tell()
}

// withdraw disarms the timer and reports whether it was armed.
func (t *SimTimer) withdraw() bool {
	h := t.host
	if t.place == 0 {
		return false
	}
	last := h.timers[len(h.timers)-1]
	h.timers[t.place-1], last.place = last, t.place
	h.timers = h.timers[:len(h.timers)-1]
	t.place = 0
	h.net.agenda.remove(&t.event)
	return true
}

// Stop disarms the timer and reports whether it was armed. As with time.Timer, no value that was
// sent before is received after Stop has returned.
func (t *SimTimer) Stop() (wasArmed bool) {
	if t.host == nil || t.host.enter() != nil {
		return false
	}
	defer t.host.net.leave()
	return t.quiet()
}

// quiet disarms the timer and empties its channel.
func (t *SimTimer) quiet() bool {
	armed := t.withdraw()
	select {
	case <-t.c:
		armed = true
	default:
	}
	return armed
}

// Reset arms the timer anew and reports whether it was armed.
func (t *SimTimer) Reset(d time.Duration) (wasArmed bool) {
	if t.host == nil || t.host.enter() != nil {
		return false
	}
	defer t.host.net.leave()
	armed := t.quiet()
	t.start(d)
	return armed
}

// Discard is Stop: the network forgets the timer.
func (t *SimTimer) Discard() (wasArmed bool) { return t.Stop() }
