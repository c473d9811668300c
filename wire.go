package gosimnet

import (
	"bufio"
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
// times are computed when it enters; they change only if one before it is evicted.
type wire struct {
	net      *Simnet
	link     *link // whose wire it is; nil: an uplink or downlink
	key      uint64
	rate     int64 // bits per second
	trace    *DeliveryTrace
	limit    int // bytes that may wait
	overflow Overflow
	busy     int64     // until when
	rest     int64     // of the division that gave busy, in 1/rate of a nanosecond
	used     int       // bytes of the trace's present opportunity
	queue    []*packet // that wait
	waiting  int       // their bytes
	peak     int       // the most there were
	entered  uint64    // packets so far
}

// newWire makes the wire that a config asks for, or nil if it does not limit the rate. What an earlier wire
// is busy with goes on.
func (s *Simnet) newWire(old *wire, cfg LinkConfig, key uint64) *wire {
	if cfg.BitsPerSecond == 0 && cfg.Trace == nil {
		return nil
	}
	w := old
	if w == nil {
		w = &wire{net: s, key: key}
	}
	w.rate, w.trace, w.limit, w.overflow = cfg.BitsPerSecond, cfg.Trace, cfg.QueueBytes, cfg.Overflow
	if w.limit == 0 {
		w.limit = defaultQueue
	}
	return w
}

// enter puts p into the queue at an instant, or reports that it has no place there.
func (w *wire) enter(p *packet, at int64) bool {
	w.advance(at)
	w.entered++
	for w.busy > at && w.waiting+p.size > w.limit {
		victim := w.victim(p)
		if victim == p {
			return false
		}
		w.evict(victim, at)
	}
	p.wire = w
	p.begins = max(at, w.busy)
	p.ends = w.serve(p.begins, p.size)
	if p.begins > at {
		w.queue = append(w.queue, p)
		w.waiting += p.size
		w.peak = max(w.peak, w.waiting)
	}
	return true
}

// advance lets those leave the queue whose transmission has begun.
func (w *wire) advance(at int64) {
	n := 0
	for n < len(w.queue) && w.queue[n].begins <= at {
		w.waiting -= w.queue[n].size
		n++
	}
	w.queue = slices.Delete(w.queue, 0, n)
}

// serve is when a transmission ends that begins at an instant; the wire is busy until then.
func (w *wire) serve(begin int64, size int) int64 {
	if begin > w.busy {
		w.rest, w.used = 0, 0
	}
	if w.trace != nil {
		w.busy, w.used = w.trace.serve(begin, w.used, size)
		return w.busy
	}
	total := int64(size)*8*int64(time.Second) + w.rest
	w.busy = begin + total/w.rate
	w.rest = total % w.rate
	return w.busy
}

// victim chooses who makes room.
func (w *wire) victim(p *packet) *packet {
	switch {
	case w.overflow == DropNewest || len(w.queue) == 0:
		return p
	case w.overflow == DropOldest:
		return w.queue[0]
	}
	i := draw(w.net.seed, w.key, drawVictim, w.entered<<16+uint64(len(w.queue))) % uint64(len(w.queue)+1)
	if i == uint64(len(w.queue)) {
		return p
	}
	return w.queue[i]
}

// evict loses a packet that waits; those behind it move up.
func (w *wire) evict(victim *packet, at int64) {
	i := slices.Index(w.queue, victim)
	behind := w.queue[i+1:]
	w.busy, w.rest, w.used = victim.begins, 0, 0
	floor := victim.floor
	for _, p := range behind {
		p.begins = w.busy
		p.ends = w.serve(p.begins, p.size)
		p.floor = floor
		floor = p.retime()
	}
	if w.link != nil && floor > 0 {
		w.link.lastDue = floor
	}
	w.queue = slices.Delete(w.queue, i, i+1)
	w.waiting -= victim.size
	w.net.agenda.remove(&victim.event)
	victim.flow.way().stats.InFlight.sub(victim)
	w.net.lose(victim, CauseQueue, at)
}

// DeliveryTrace is a recorded radio link: the instants at which it could deliver a packet of up to 1500 bytes, as Mahimahi records
// them. A trace is repeated for ever. Make one with ParseTrace.
type DeliveryTrace struct {
	at    []int64 // nanoseconds from the beginning of the trace, ascending
	cycle int64
}

const opportunity = 1500 // bytes

// ParseTrace reads a trace in Mahimahi's format: one line for each opportunity, with its time in whole milliseconds from the beginning. Times may
// repeat, and must not fall; the last is the length of the trace, and must not be 0. Empty lines are skipped.
func ParseTrace(r io.Reader) (*DeliveryTrace, error) {
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

// opportunityAfter is the first opportunity at or after an instant.
func (t *DeliveryTrace) opportunityAfter(at int64) (round int64, i int) {
	round = at / t.cycle
	i, _ = slices.BinarySearch(t.at, at-round*t.cycle)
	if i == len(t.at) {
		return round + 1, 0
	}
	return round, i
}

// serve sends size bytes from an instant on, at which some of the present opportunity may be used already, and
// tells when the last of them leaves, and how much of that opportunity is used then.
func (t *DeliveryTrace) serve(begin int64, used, size int) (end int64, usedThen int) {
	round, i := t.opportunityAfter(begin)
	if used > 0 && used+size <= opportunity {
		return begin, used + size
	}
	if used > 0 { // the present opportunity is the last of those at this instant that have been used
		size -= opportunity - used
		begin++
		round, i = t.opportunityAfter(begin)
	}
	for size > opportunity {
		size -= opportunity
		if i++; i == len(t.at) {
			round, i = round+1, 0
		}
	}
	return round*t.cycle + t.at[i], size
}
