package gosimnet

import (
	"net/netip"
)

// packetKind says what a packet is for.
type packetKind uint8

const (
	kindSYN packetKind = iota
	kindSYNACK
	kindACK // the third packet of a handshake
	kindData
	kindFIN
	kindRST
	kindProbe // a keep-alive or window probe
	kindMessage
	kindDatagram
	kindICMP
)

func (k packetKind) String() string {
	return [...]string{"SYN", "SYN/ACK", "ACK", "data", "FIN", "RST", "probe", "message", "datagram", "ICMP"}[k]
}

// flow is one direction of a conversation. Its key names it for the canonical order and for every
// random draw, and is made of names and numbers only, so that no other flow can change it.
type flow struct {
	net      *Simnet
	from, to *Host
	src, dst netip.AddrPort
	network  string
	key      uint64
	n        uint64 // packets so far
	asked    uint64 // calls so far
	link     *link
	faults   circuitFaults // as of generation
	asOf     uint64
	traced   uint64 // its number in the trace; 0: not yet named there
}

// packet is one transmission, from the call that sends it to its arrival or loss.
type packet struct {
	event        // its arrival
	flow   *flow //
	kind   packetKind
	issued int64
	size   int // payload bytes
	count  int // packets on the wire that it stands for
	lat    int64
	latGen uint64
	near   bool // made by the network itself, near its receiver: no link carries it

	conn       *Conn       // whom a handshake, reset or probe concerns: the receiving end
	dial       *dial       // for SYN, SYN/ACK and the RST that refuses
	half       *half       // for data and FIN
	segment    uint64      // its number in half
	start, end uint64      // stream offsets
	circuit    *Circuit    // for messages: the receiving end
	socket     *PacketConn // for datagrams: the sender; for ICMP: the receiver
	payload    []byte
	whence     string  // the caller's file and line, if that is recorded
	next       *packet // in the pool
}

// newPacket takes a packet out of the network's pool.
func (s *Simnet) newPacket(f *flow, k packetKind) *packet {
	p := s.spare
	if p == nil {
		p = &packet{}
	} else {
		s.spare = p.next
		p.next = nil
	}
	p.flow, p.kind, p.count = f, k, 1
	p.act = p
	return p
}

// release gives a packet back to the pool.
func (s *Simnet) release(p *packet) {
	*p = packet{next: s.spare}
	s.spare = p
}

// send issues p: its fate is decided at admission.
func (s *Simnet) send(p *packet) {
	f := p.flow
	p.issued = s.t
	if s.cfg.RecordCallers {
		p.whence = caller()
	}
	p.event.host, p.event.key, p.event.n = f.to, f.key, f.n
	f.n++
	s.estimate(p)
	s.issue(issued{host: f.to, key: f.key, n: p.event.n, op: p}, s.clear(p.issued+p.lat+1))
}

// sendAt sends p as if at an earlier instant, at the admission of the operation that it belongs to.
func (s *Simnet) sendAt(p *packet, at int64) {
	f := p.flow
	p.issued = at
	p.event.host, p.event.key, p.event.n = f.to, f.key, f.n
	f.n++
	s.estimate(p)
	p.admit(at)
}

// estimate draws the latency of p from the link as it is now.
func (s *Simnet) estimate(p *packet) {
	l := p.flow.way()
	p.latGen = l.generation
	p.lat = p.flow.delay(l, drawLatency, p.event.n)
}

// way is the link that the flow takes.
func (f *flow) way() *link {
	if f.link == nil {
		f.link = f.net.linkBetween(f.from, f.to)
	}
	return f.link
}

// admit decides whether p leaves, and when it arrives.
func (p *packet) admit(int64) {
	f := p.flow
	s := f.net
	l := f.way()
	l.stats.Sent.add(p)
	s.tracePacket(EventSend, p, p.issued, "")
	if cause := p.leaving(); cause != "" {
		s.lose(p, cause, p.issued)
		return
	}
	s.launch(p, p.issued)
}

// launch puts p on the link at an instant.
func (s *Simnet) launch(p *packet, at int64) {
	l := p.flow.way()
	if p.latGen != l.generation {
		s.estimate(p)
	}
	l.stats.InFlight.add(p)
	due := l.arrival(at, p.lat)
	s.after(&p.event, max(due, at+1))
}

// fire is the arrival.
func (p *packet) fire(now int64) {
	s := p.flow.net
	if p.near {
		if p.flow.to.powerOff {
			s.release(p)
		} else {
			p.deliver(now)
		}
		return
	}
	l := p.flow.way()
	l.stats.InFlight.sub(p)
	if cause := p.arriving(); cause != "" {
		s.lose(p, cause, now)
		return
	}
	l.stats.Delivered.add(p)
	s.tracePacket(EventDeliver, p, now, "")
	p.flow.to.clock = max(p.flow.to.clock, p.flow.from.clock) + 1
	p.deliver(now)
}

// leaving is why p does not get onto the link, or "".
func (p *packet) leaving() string {
	f := p.flow
	if f.from.off(f.src.Port()) {
		return CausePower
	}
	if f.from == f.to {
		return ""
	}
	if f.isolated() {
		return CauseIsolated
	}
	if f.happens(f.current().drop, drawDropSend, p.event.n) {
		return CauseDropSend
	}
	if cut := f.way().cut; cut != nil {
		return cut.stop(p)
	}
	if l := f.way(); l.loses(p) {
		return CauseLoss
	}
	return ""
}

// arriving is why p does not come out of the link, or "".
func (p *packet) arriving() string {
	f := p.flow
	if f.to.off(f.dst.Port()) {
		return CausePower
	}
	if f.from == f.to {
		return ""
	}
	if f.isolated() {
		return CauseIsolated
	}
	if cut := f.way().cut; cut != nil {
		return cut.stop(p)
	}
	if f.happens(f.current().deaf, drawDeafRead, p.event.n) {
		return CauseDeafRead
	}
	return ""
}

// lose ends p, which a cause stopped: it is gone, or kept by the partition, or refused.
func (s *Simnet) lose(p *packet, cause string, now int64) {
	l := p.flow.way()
	if cause == causeHeld {
		s.tracePacket(EventHeld, p, now, CausePartition)
		s.hold(p)
		return
	}
	s.tracePacket(EventLost, p, now, cause)
	l.stats.lose(p, cause)
	if cause == CauseRejected {
		p.reject(now)
	}
	p.lost(cause, now)
}

// deliver hands p to whom it is for.
func (p *packet) deliver(now int64) {
	switch p.kind {
	case kindSYN:
		p.dial.arrive(now)
	case kindSYNACK:
		p.dial.answered(now)
	case kindACK:
		p.conn.confirm(now)
	case kindData, kindFIN:
		p.half.arrive(p, now)
	case kindRST:
		p.reset(now)
	case kindProbe:
		p.conn.probed(p, now)
	case kindMessage:
		p.circuit.arrive(p, now)
		return // the packet is the message
	case kindDatagram:
		p.flow.to.arriveDatagram(p, now)
		return
	case kindICMP:
		p.socket.refused()
	}
	p.flow.net.release(p)
}

// reset is the arrival of an RST at a dial or at a connection.
func (p *packet) reset(now int64) {
	if p.dial != nil {
		p.dial.refused(now)
		return
	}
	p.conn.gotReset(now)
}

// lost tells whom it concerns that p is gone, so that it can be sent again.
func (p *packet) lost(cause string, now int64) {
	s := p.flow.net
	switch p.kind {
	case kindSYN, kindSYNACK:
		p.dial.unanswered(cause, now)
	case kindACK:
		p.conn.unconfirmed(now)
	case kindData, kindFIN:
		p.half.lost(p, now)
	case kindProbe:
		p.half.lost(p, now)
	case kindRST:
		if p.conn != nil {
			p.conn.pathChanged(now)
		}
	case kindMessage:
		p.circuit.lost(p, cause, now)
		return
	}
	s.release(p)
}
