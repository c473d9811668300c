package gosimnet

import (
	"iter"

	"github.com/glycerine/rbtree"
)

// event is something that is going to happen, embedded in what it happens to,
// so that scheduling it again allocates nothing.
type event struct {
	at    int64  // it fires at the first step at or after this instant (nanoseconds since the network began)
	host  *Host  // whose event it is: the first key of the canonical order
	key   uint64 // the flow: the second key
	n     uint64 // the number within the flow: the third
	pos   int32  // one more than its place in the agenda; 0: not there; inRun: behind another
	exact bool   // a deadline or a user's timer: fires exactly at its instant, whoever else does
	act   actor
	next  *event // in its run
}

// inRun is the place of an event that follows another.
const inRun = -1

// afterPackets is added to the numbers of the timers of a flow, which come after the packets of an instant.
const afterPackets = 1 << 62

// actor is what an event calls, with the network locked.
type actor interface{ fire(now int64) }

// scheduled reports whether the event is waiting in the agenda.
func (e *event) scheduled() bool { return e.pos != 0 }

// before is the canonical order of events and operations of one network: by time, then
// by names and numbers, never by who came to the scheduler first.
func (e *event) before(o *event) bool {
	if e.at != o.at {
		return e.at < o.at
	}
	if e.exact != o.exact {
		return e.exact
	}
	if e.host != o.host {
		return e.host.before(o.host)
	}
	if e.key != o.key {
		return e.key < o.key
	}
	return e.n < o.n
}

// agenda is the index of next events over all hosts: a four-way heap of the events
// themselves. A red-black tree would serve as well; the heap needs no node per event. Packets that are added in the order in which they will come, as those of a burst are,
// and all of them where latencies are alike, make a run, which takes one place and is not compared again. Deadlines and other timers do not join any: they would keep
// the packets that come before them from it.
type agenda struct {
	slots []slot
	last  *event // the packet that was added last
}

// slot is the first of a run.
type slot struct {
	at int64
	ev *event
}

// all lists the events, in no order.
func (a *agenda) all() iter.Seq[*event] {
	return func(yield func(*event) bool) {
		for _, s := range a.slots {
			for e := s.ev; e != nil; e = e.next {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// earliest is the instant of the first event, or never.
func (a *agenda) earliest() int64 {
	if len(a.slots) == 0 {
		return never
	}
	return a.slots[0].at
}

// add schedules e, or moves it if it is scheduled already.
func (a *agenda) add(e *event, at int64) {
	if e.pos == inRun || e.next != nil {
		a.remove(e)
	}
	e.at = at
	p, _ := e.act.(*packet)
	switch l := a.last; {
	case e.pos != 0:
		a.move(e)
	case p != nil && l != nil && l.pos != 0 && l.before(e):
		l.next, p.ahead, e.pos, a.last = e, l, inRun, e
	default:
		if p != nil {
			a.last = e
		}
		a.slots = append(a.slots, slot{})
		a.up(len(a.slots)-1, e)
	}
}

// move lets e, which is a run of its own, rise or sink to where it belongs.
func (a *agenda) move(e *event) {
	i := int(e.pos) - 1
	a.slots[i].at = e.at
	if i > 0 && a.less(slot{e.at, e}, a.slots[(i-1)/4]) {
		a.up(i, e)
	} else {
		a.down(i, e)
	}
}

// remove takes e out; it does nothing if e is not scheduled.
func (a *agenda) remove(e *event) {
	i, next := int(e.pos)-1, e.next
	switch {
	case e.pos == 0:
		return
	case e.pos == inRun:
		a.unlink(e)
	case next != nil:
		next.act.(*packet).ahead = nil
		a.down(i, next)
	default:
		a.shrink(i)
	}
	e.pos, e.next = 0, nil
}

// unlink takes an event out of the run that it is in.
func (a *agenda) unlink(e *event) {
	p := e.act.(*packet)
	p.ahead.next = e.next
	if e.next != nil {
		e.next.act.(*packet).ahead = p.ahead
	}
	p.ahead = nil
}

// shrink takes out the run at place i.
func (a *agenda) shrink(i int) {
	last := len(a.slots) - 1
	moved := a.slots[last].ev
	a.slots[last] = slot{}
	a.slots = a.slots[:last]
	if i < last {
		moved.pos = int32(i) + 1
		a.move(moved)
	}
}

// clear takes all events out.
func (a *agenda) clear() {
	for _, s := range a.slots {
		for e := s.ev; e != nil; {
			next := e.next
			e.pos, e.next = 0, nil
			e = next
		}
	}
	a.slots, a.last = nil, nil
}

// pop removes and returns the first event.
func (a *agenda) pop() *event {
	e := a.slots[0].ev
	a.remove(e)
	return e
}

func (a *agenda) less(x, y slot) bool {
	if x.at != y.at {
		return x.at < y.at
	}
	return x.ev.before(y.ev)
}

func (a *agenda) put(i int, s slot) {
	a.slots[i] = s
	s.ev.pos = int32(i) + 1
}

// up lets e rise from place i, which is free.
func (a *agenda) up(i int, e *event) {
	s := slot{e.at, e}
	for i > 0 {
		parent := (i - 1) / 4
		if !a.less(s, a.slots[parent]) {
			break
		}
		a.put(i, a.slots[parent])
		i = parent
	}
	a.put(i, s)
}

// down lets e sink from place i, which is free.
func (a *agenda) down(i int, e *event) {
	s := slot{e.at, e}
	for {
		first := 4*i + 1
		if first >= len(a.slots) {
			break
		}
		least := first
		for c := first + 1; c < min(first+4, len(a.slots)); c++ {
			if a.less(a.slots[c], a.slots[least]) {
				least = c
			}
		}
		if !a.less(a.slots[least], s) {
			break
		}
		a.put(i, a.slots[least])
		i = least
	}
	a.put(i, s)
}

// MopQueue is an ordered queue of operations, as snapshots show them: by time, then
// in canonical order. Its zero value and a nil *MopQueue are empty queues. A queue in a snapshot
// belongs to whoever asked for the snapshot; it shares nothing with the network.
type MopQueue struct {
	tree *rbtree.Tree
}

func newMopQueue() *MopQueue {
	return &MopQueue{rbtree.NewTree(func(a, b rbtree.Item) int { return a.(*Mop).compare(b.(*Mop)) })}
}

// Len is the number of operations in the queue.
func (q *MopQueue) Len() int {
	if q == nil || q.tree == nil {
		return 0
	}
	return q.tree.Len()
}

// All lists the operations, first first.
func (q *MopQueue) All() iter.Seq[Mop] {
	return func(yield func(Mop) bool) {
		if q == nil || q.tree == nil {
			return
		}
		for it := q.tree.Min(); !it.Limit(); it = it.Next() {
			if !yield(*it.Item().(*Mop)) {
				return
			}
		}
	}
}

func (q *MopQueue) add(m *Mop) { q.tree.Insert(m) }

// popFirst removes and returns the first operation; the queue must not be empty.
func (q *MopQueue) popFirst() *Mop {
	it := q.tree.Min()
	m := it.Item().(*Mop)
	q.tree.DeleteWithIterator(it)
	return m
}

// take removes and lists the lost messages that are wanted.
func (q *MopQueue) take(wanted func(p *packet) bool) (all []*Mop) {
	for m := range q.All() {
		if wanted(m.packet) {
			all = append(all, &m)
		}
	}
	for _, m := range all {
		q.tree.DeleteWithKey(m)
	}
	return all
}
