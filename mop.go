package gosimnet

import (
	"cmp"
	"fmt"
	"time"
)

// MopKind says what a message operation is.
type MopKind string

// The kinds of message operations.
const (
	MopSend  MopKind = "SEND"  // a packet, message or segment that was sent
	MopRead  MopKind = "READ"  // a call that waits for something to arrive
	MopTimer MopKind = "TIMER" // a timer, deadline or retransmission that waits for its time
)

// Mop is a message operation: one entry of the queues that a snapshot shows.
type Mop struct {
	Kind   MopKind
	Origin string        // the endpoint that sends, reads or set the timer
	Target string        // the other endpoint; "" for timers
	N      uint64        // the number of the packet within its flow
	Size   int           // payload bytes
	Issued time.Duration // when the operation was issued, since the network began
	Due    time.Duration // when it arrives or fires, or was lost; for reads the same as Issued
	What   string        // in words: "data", "message", "SYN", "read", "accept", "deadline", "retransmission" …

	packet *packet // what a lost message would need to be delivered after all
	key    uint64
	lost   bool
}

// compare is the order of a queue: time, then flow and number, so that it is the same in every run.
func (m *Mop) compare(o *Mop) int {
	return cmp.Or(cmp.Compare(m.Due, o.Due), cmp.Compare(m.key, o.key), cmp.Compare(m.N, o.N),
		cmp.Compare(m.What, o.What), cmp.Compare(m.Origin, o.Origin), cmp.Compare(m.Issued, o.Issued))
}

// String describes the operation in one line.
func (m Mop) String() string {
	switch {
	case m.Kind == MopSend:
		return fmt.Sprintf("%s #%d of %d B %s→%s, sent at %v%s", m.What, m.N, m.Size, m.Origin, m.Target, m.Issued, m.end())
	case m.Target != "" && m.What == "read":
		return fmt.Sprintf("read %s from %s since %v", m.Origin, m.Target, m.Issued)
	case m.Target != "":
		return fmt.Sprintf("%s %s to %s since %v", m.What, m.Origin, m.Target, m.Issued)
	}
	return fmt.Sprintf("%s at %s since %v, due %v", m.What, m.Origin, m.Issued, m.Due)
}

// end tells when a packet arrives, or was lost, if that was not when it was sent.
func (m Mop) end() string {
	switch {
	case !m.lost:
		return fmt.Sprintf(", due %v", m.Due)
	case m.Due > m.Issued:
		return fmt.Sprintf(", lost at %v", m.Due)
	}
	return ""
}
