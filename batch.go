package gosimnet

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"time"
)

// SimnetBatch is a list of faults and repairs that apply whole, at one instant. Fill it by one goroutine; after SubmitBatch it
// may only be asked for Done, Err and Snapshot.
type SimnetBatch struct {
	net       *Simnet
	when      time.Time
	asap      bool
	verbs     []verb
	submitted bool
	event     event
	done      chan struct{}
	err       error
	snap      *SimnetSnapshot
}

var (
	errOtherBatch = errors.New("gosimnet: the batch was made by another network")
)

// NewSimnetBatch makes an empty batch that will apply at subwhen, or, with subAsap, when it is submitted. An instant
// that is past is now.
func (s *Simnet) NewSimnetBatch(subwhen time.Time, subAsap bool) *SimnetBatch {
	return &SimnetBatch{net: s, when: subwhen, asap: subAsap, done: make(chan struct{})}
}

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
	if batch == nil {
		return
	}
	if err := s.enter(); err != nil {
		if !batch.submitted {
			batch.submitted = true
			batch.finish(err)
		}
		return
	}
	defer s.leave()
	if batch.submitted {
		return
	}
	batch.submitted = true
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

// finish makes the outcome known.
func (b *SimnetBatch) finish(err error) {
	b.err = err
	close(b.done)
}

// Done is closed when the batch has been applied, or has failed, or its network was closed before.
func (b *SimnetBatch) Done() <-chan struct{} { return b.done }

// Err is the outcome: nil if the batch was applied or its time has not come, the error of its first impossible verb if nothing of it was, net.ErrClosed if
// the network was closed before.
func (b *SimnetBatch) Err() error {
	select {
	case <-b.done:
		return b.err
	default:
		return nil
	}
}

// Snapshot is what the batch's GetSimnetSnapshot has seen; nil before, and without one.
func (b *SimnetBatch) Snapshot() *SimnetSnapshot {
	select {
	case <-b.done:
		return b.snap
	default:
		return nil
	}
}

// abandonBatches ends the batches whose time has not come, because the network closes.
func (s *Simnet) abandonBatches() {
	for _, b := range s.batches {
		b.finish(net.ErrClosed)
	}
	s.batches = nil
}
