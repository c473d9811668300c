package gosimnet

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// SimnetBatch is a list of faults and repairs that apply whole, at one instant. Make one with Simnet.NewSimnetBatch. Fill it by one goroutine; after SubmitBatch it
// may only be asked for Done, Err and Snapshot.
type SimnetBatch struct {
	net     *Simnet
	when    time.Time
	asap    bool
	verbs   []verb
	event   event
	virtual bool // made inside a bubble

	mu        sync.Mutex
	submitted bool
	over      bool
	done      chan struct{} // made when it is asked for
	err       error
	snap      *SimnetSnapshot
}

var errOtherBatch = errors.New("gosimnet: the batch was not made by this network")

// NewSimnetBatch makes an empty batch that will apply at subwhen, or, with subAsap, when it is submitted. An instant
// that is past is now.
func (s *Simnet) NewSimnetBatch(subwhen time.Time, subAsap bool) *SimnetBatch {
	return &SimnetBatch{net: s, when: subwhen, asap: subAsap, virtual: virtual(time.Now())}
}

// wrongClock reports whether the caller lives by another clock than who made the batch.
func (b *SimnetBatch) wrongClock() bool { return b.net != nil && virtual(time.Now()) != b.virtual }

func (b *SimnetBatch) add(v verb) {
	b.verbs = append(b.verbs, v)
}

// FaultCircuit adds Simnet.FaultCircuit.
func (b *SimnetBatch) FaultCircuit(origin, target string, dd DropDeafSpec, deliverDroppedSends bool) {
	b.add(b.net.faultCircuit(origin, target, dd, deliverDroppedSends))
}

// FaultHost adds Simnet.FaultHost.
func (b *SimnetBatch) FaultHost(hostName string, dd DropDeafSpec, deliverDroppedSends bool) {
	b.add(b.net.faultHost(hostName, dd, deliverDroppedSends))
}

// RepairCircuit adds Simnet.RepairCircuit.
func (b *SimnetBatch) RepairCircuit(originName string, unIsolate, powerOnIfOff, deliverDroppedSends bool) {
	b.add(b.net.repair(originName, unIsolate, powerOnIfOff, deliverDroppedSends))
}

// RepairHost adds Simnet.RepairHost.
func (b *SimnetBatch) RepairHost(originName string, unIsolate, powerOnIfOff, allHosts, deliverDroppedSends bool) {
	b.add(b.net.repairHost(originName, unIsolate, powerOnIfOff, allHosts, deliverDroppedSends))
}

// AllHealthy adds Simnet.AllHealthy.
func (b *SimnetBatch) AllHealthy(powerOnIfOff, deliverDroppedSends bool) {
	b.add(b.net.repairHost("", true, powerOnIfOff, true, deliverDroppedSends))
}

// AlterCircuit adds Simnet.AlterCircuit, without an undo.
func (b *SimnetBatch) AlterCircuit(simnodeName string, alter Alteration, wholeHost bool) {
	b.add(b.net.alter(simnodeName, alter, wholeHost, new(Alteration)))
}

// AlterHost adds Simnet.AlterHost, without an undo.
func (b *SimnetBatch) AlterHost(simnodeName string, alter Alteration) {
	b.add(b.net.alter(simnodeName, alter, true, new(Alteration)))
}

// GetSimnetSnapshot adds a look at the network as it is at this place of the batch: see Snapshot.
func (b *SimnetBatch) GetSimnetSnapshot() {
	b.add(verb{check: func() error { return nil }, apply: func() { b.snap = b.net.snapshot() }})
}

// SubmitBatch hands a batch in and does not block. When its instant comes, every verb is checked, and then all are applied
// in order; if one is impossible, none is. A batch that is submitted twice stays as it was.
func (s *Simnet) SubmitBatch(batch *SimnetBatch) {
	if batch == nil || batch.wrongClock() {
		return
	}
	if err := s.enter(); err != nil {
		if batch.submit() {
			batch.finish(err)
		}
		return
	}
	defer s.leave()
	if !batch.submit() {
		return
	}
	if batch.net != s {
		batch.finish(errOtherBatch)
		return
	}
	at := int64(batch.when.Sub(s.start))
	if batch.asap || at <= s.t {
		batch.fire(s.t)
		return
	}
	s.submitted++
	batch.event = event{act: batch, n: s.submitted}
	s.batches = append(s.batches, batch)
	s.exactly(&batch.event, at)
}

// fire applies the batch.
func (b *SimnetBatch) fire(int64) {
	b.net.batches = slices.DeleteFunc(b.net.batches, func(o *SimnetBatch) bool { return o == b })
	for i, v := range b.verbs {
		if err := v.check(); err != nil {
			b.finish(fmt.Errorf("verb %d of the batch: %w", i, err))
			return
		}
	}
	for _, v := range b.verbs {
		v.apply()
	}
	b.finish(nil)
}

// submit reports whether the batch is submitted for the first time.
func (b *SimnetBatch) submit() (first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	first = !b.submitted
	b.submitted = true
	return first
}

// finish makes the outcome known.
func (b *SimnetBatch) finish(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over, b.err = true, err
	if b.done != nil {
		close(b.done)
	}
}

// Done is closed when the batch has been applied, or has failed, or its network was closed before.
func (b *SimnetBatch) Done() <-chan struct{} {
	if b.wrongClock() {
		done := make(chan struct{})
		close(done)
		return done
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done == nil {
		b.done = make(chan struct{})
		if b.over {
			close(b.done)
		}
	}
	return b.done
}

// Err is the outcome: nil if the batch was applied or its time has not come, the error of its first impossible verb if nothing of it was, net.ErrClosed if
// the network was closed before.
func (b *SimnetBatch) Err() error {
	if b.wrongClock() {
		return errWrongClock
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Snapshot is what the batch's GetSimnetSnapshot has seen; nil before, and without one.
func (b *SimnetBatch) Snapshot() *SimnetSnapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		return nil
	}
	return b.snap
}

// abandonBatches ends the batches whose time has not come, because the network closes.
func (s *Simnet) abandonBatches() {
	for _, b := range s.batches {
		b.finish(net.ErrClosed)
	}
	s.batches = nil
}
