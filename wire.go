package gosimnet

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Overflow says which packet is lost when the queue for a wire is full.
type Overflow int

// The policies.
const (
	DropNewest Overflow = iota // the packet that finds it full
	DropOldest                 // the one that has waited longest
	DropRandom                 // any of those that wait, or the new one, with equal probability
)

// String is the name of the constant.
func (o Overflow) String() string {
	return nameOf(int(o), "Overflow", "DropNewest", "DropOldest", "DropRandom")
}

// The usual speeds, in bits per second.
const (
	Mbps10  int64 = 10e6
	Mbps100 int64 = 100e6
	Gbps1   int64 = 1e9
	Gbps10  int64 = 10e9
	Gbps25  int64 = 25e9
	Gbps40  int64 = 40e9
	Gbps100 int64 = 100e9
)

// wire sends one packet after the other, at a rate or at the opportunities of a trace, and lets the others wait in a queue. A packet's
// times are computed when it enters; they change only if one before it is evicted, or the rate changes.
type wire struct {
	net      *Simnet
	link     *link // whose wire it is; nil: an uplink or downlink
	key      uint64
	rate     int64 // bits per second
	trace    *DeliveryTrace
	limit    int // bytes that may wait
	overflow Overflow
	progress
	queue   []waiting // from first on; those before it have left
	first   int
	backlog int    // bytes in the queue
	peak    int    // the most there were
	entered uint64 // packets so far
}

// progress is how far a wire has come with what it has been given.
type progress struct {
	busy int64 // until when
	rest int64 // of the division that gave busy, in 1/rate of a nanosecond
	slot int64 // the opportunity of the trace that was used last, or will be first
	used int   // bytes of it
}

// waiting is a packet in the queue for a wire.
type waiting struct {
	p      *packet
	begins int64    // its transmission
	before progress // of the wire, without it and those behind it
	floor  int64    // when the packet before it on an ordered link arrives
}

// limited reports whether there is a wire, and it has a rate.
func (w *wire) limited() bool { return w != nil && (w.rate > 0 || w.trace != nil) }

// takes reports whether packets have to go by the wire at an instant: it has a rate, or had one, and what was being sent then still is.
func (w *wire) takes(at int64) bool { return w != nil && (w.limited() || w.busy > at) }

// least is the least time that the wire takes for a packet.
func (w *wire) least(size int) int64 {
	if w == nil || w.rate == 0 || w.trace != nil {
		return 0
	}
	return int64(size) * 8 * int64(time.Second) / w.rate
}

// most is the most bytes that have waited for the wire, if there is one.
func (w *wire) most() int {
	if w == nil {
		return 0
	}
	return w.peak
}

// wireFor makes the wire that a config asks for, nil for none, or changes what is there. What is being sent then goes on,
// and what waits goes at the new rate.
func (s *Simnet) wireFor(w *wire, cfg LinkConfig, key uint64, l *link) *wire {
	if w == nil {
		if cfg.BitsPerSecond == 0 && cfg.Trace == nil {
			return nil
		}
		w = &wire{net: s, link: l, key: key}
	}
	w.limit, w.overflow = cfg.QueueBytes, cfg.Overflow
	if w.limit == 0 {
		w.limit = defaultQueue
	}
	if w.rate != cfg.BitsPerSecond || w.trace != cfg.Trace {
		w.rate, w.trace = cfg.BitsPerSecond, cfg.Trace
		w.changed()
	}
	return w
}

// changed lets what waits go at a rate that is new.
func (w *wire) changed() {
	w.advance(w.net.t)
	if w.first < len(w.queue) {
		e := w.queue[w.first]
		w.again(w.first, progress{busy: e.before.busy}, e.floor)
		if !w.limited() { // nothing can change their times any more
			w.queue, w.first, w.backlog = nil, 0, 0
		}
	} else {
		w.progress = progress{busy: w.busy}
	}
}

// enter puts p into the queue at an instant, or reports that it has no place there.
func (w *wire) enter(p *packet, at int64) bool {
	w.advance(at)
	w.entered++
	if p.stage != stageLink {
		p.event.key, p.event.n = w.key, w.entered
	}
	for w.busy > at && w.backlog+p.size > w.limit && w.limited() {
		i := w.victim(p.size)
		if i == len(w.queue) {
			return false
		}
		w.evict(i, at)
	}
	p.wire = w
	e := waiting{p, max(at, w.busy), w.progress, w.floor()}
	p.leaves(w.serve(e.begins, p.size))
	if e.begins > at && w.limited() { // without a limit nothing can change its times
		w.queue = append(w.queue, e)
		w.backlog += p.size
		w.peak = max(w.peak, w.backlog)
	}
	return true
}

// floor is when the last packet of an ordered link arrives.
func (w *wire) floor() int64 {
	if w.link == nil {
		return 0
	}
	return w.link.lastDue
}

// advance lets those leave the queue whose transmission has begun.
func (w *wire) advance(at int64) {
	for w.first < len(w.queue) && w.queue[w.first].begins <= at {
		w.backlog -= w.queue[w.first].p.size
		w.queue[w.first] = waiting{}
		w.first++
	}
	switch {
	case w.first == len(w.queue):
		w.queue, w.first = w.queue[:0], 0
	case w.first > len(w.queue)/2:
		w.queue, w.first = slices.Delete(w.queue, 0, w.first), 0
	}
}

// serve is when a transmission ends that begins at an instant; the wire is busy until then.
func (w *wire) serve(begin int64, size int) int64 {
	switch {
	case w.trace != nil:
		w.slot, w.used = w.trace.serve(begin, w.slot, w.used, size)
		w.busy = w.trace.time(w.slot)
	case w.rate > 0:
		if begin > w.busy {
			w.rest = 0
		}
		total := int64(size)*8*int64(time.Second) + w.rest
		w.busy, w.rest = begin+total/w.rate, total%w.rate
	default:
		w.busy = begin
	}
	return w.busy
}

// victim chooses who makes room for size bytes: a place in the queue, or its end for the new packet.
func (w *wire) victim(size int) int {
	n := len(w.queue) - w.first
	switch {
	case w.overflow == DropNewest || n == 0 || size > w.limit:
		return len(w.queue)
	case w.overflow == DropOldest:
		return w.first
	}
	return w.first + int(draw(w.net.seed, w.key, drawVictim, w.entered<<16+uint64(n))%uint64(n+1))
}

// evict loses a packet that waits.
func (w *wire) evict(i int, at int64) { w.net.snatch(w.queue[i].p, CauseQueue, at) }

// withdraw takes p out of the queue, if it waits there; those behind it move up.
func (w *wire) withdraw(p *packet) {
	for i := w.first; i < len(w.queue); i++ {
		if e := w.queue[i]; e.p == p {
			w.queue = slices.Delete(w.queue, i, i+1)
			w.backlog -= p.size
			w.again(i, e.before, e.floor)
			return
		}
	}
}

// again lets those from a place of the queue on be sent anew, after what came before them.
func (w *wire) again(i int, before progress, floor int64) {
	w.progress = before
	if w.link != nil {
		w.link.lastDue = floor
	}
	for ; i < len(w.queue); i++ {
		e := &w.queue[i]
		e.begins, e.before, e.floor = w.busy, w.progress, w.floor()
		e.p.leaves(w.serve(e.begins, e.p.size))
	}
}

// DeliveryTrace is a recorded radio link: the instants at which it could deliver a packet of up to 1500 bytes, as Mahimahi records
// them. A trace is repeated for ever. Make one with ParseTrace.
type DeliveryTrace struct {
	at    []int64 // nanoseconds from the beginning of the trace, ascending
	cycle int64
}

const opportunity = 1500 // bytes

// ParseTrace reads a trace in Mahimahi's format: one line for each opportunity, with its time in whole milliseconds from the beginning. Times may
// repeat, and must not fall; the last is the length of the trace, and must not be 0. Empty lines are skipped. What is no such line is an
// error that tells its number and text.
func ParseTrace(r io.Reader) (*DeliveryTrace, error) {
	if r == nil {
		return nil, errors.New("gosimnet: trace: nothing to read it from")
	}
	t := &DeliveryTrace{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		ms, err := strconv.ParseUint(text, 10, 40)
		if err != nil {
			return nil, fmt.Errorf("gosimnet: trace, line %d: %q is not a time in milliseconds", n, text)
		}
		at := int64(ms) * int64(time.Millisecond)
		if at < t.cycle {
			return nil, fmt.Errorf("gosimnet: trace, line %d: %d comes after a later time", n, ms)
		}
		t.at = append(t.at, at)
		t.cycle = at
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("gosimnet: trace: %w", err)
	}
	if t.cycle == 0 {
		return nil, fmt.Errorf("gosimnet: trace: it has no length")
	}
	return t, nil
}

// time is when opportunity n is, from the beginning of the network.
func (t *DeliveryTrace) time(n int64) int64 {
	per := int64(len(t.at))
	return n/per*t.cycle + t.at[n%per]
}

// next is the number of the first opportunity at or after an instant.
func (t *DeliveryTrace) next(at int64) int64 {
	if at <= 0 {
		return 0
	}
	round := (at - 1) / t.cycle // one ends where the next begins
	i, _ := slices.BinarySearch(t.at, at-round*t.cycle)
	return round*int64(len(t.at)) + int64(i)
}

// serve sends size bytes from an instant on, after some bytes of an opportunity have been used, and tells
// the opportunity by which the last of them leave, and how much of that is used then.
func (t *DeliveryTrace) serve(begin, slot int64, used, size int) (int64, int) {
	if next := t.next(begin); next > slot {
		slot, used = next, 0
	}
	for size > opportunity-used {
		size -= opportunity - used
		slot, used = slot+1, 0
	}
	return slot, used + size
}
