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
	link     *link
	line     uint64 // the link's place in the canonical order, once there is a link
	key      uint64
	n        uint64 // packets so far
	traced   uint64 // its number in the trace; 0: not yet named there
	asOf     uint32 // generation of faults
	asked    uint32 // calls so far
	faults   circuitFaults
	src, dst netip.AddrPort
	network  string
	sink     *PacketConn // that got the last datagram
	sunk     uint64      // generation of its host's sockets then
}

// unpowered reports whether the sender's end has no power.
func (f *flow) unpowered() bool {
	return f.net.harmed && f.from.off(f.src.Port())
}

// unreachable reports whether the receiver's end has no power.
func (f *flow) unreachable() bool {
	return f.net.harmed && f.to.off(f.dst.Port())
}

// packet is one transmission, from the call that sends it to its arrival or loss. What every packet needs comes first, so that a stream's
// take three cache lines.
type packet struct {
	event  // its arrival, or its leaving a wire
	flow   *flow
	number uint64 // in the flow, from 0
	issued int64
	lat    int64
	due    int64   // when it leaves the wire that it waits for or is on, or arrives
	half   *half   // for data and FIN
	spare  *packet // the next in the pool
	ahead  *event  // the one before it in a run of the agenda
	size   int     // payload bytes

	latGen    uint64
	segment   uint64 // its number in half
	start     uint64 // where in the stream
	extra     int64  // nanoseconds that it travels longer, by a rule
	wire      *wire  // that it waits for, or is on
	fate      *Fate  // what a recording says of it, or nil
	count     int32  // packets on the wire that it stands for
	kind      packetKind
	stage     stage
	near      bool // made by the network itself, near its receiver: no link carries it
	late      bool // a lost message that is delivered after all
	copied    bool // the second of two
	clogged   bool // it is held where it arrives
	twice     bool // a second one is to be made
	doubled   bool // it has been made
	resent    bool // it has been sent before, and is sent once more
	jumps     bool // it jumps the queue
	corrupted bool // a bit of it has been flipped

	conn    *Conn       // whom a handshake, reset or probe concerns: the receiving end
	dial    *dial       // for SYN, SYN/ACK and the RST that refuses
	circuit *Circuit    // for messages: the receiving end
	socket  *PacketConn // for datagrams: the sender; for ICMP: the receiver
	payload []byte
	room    []byte // of payload, if that is the packet's own
	class   string
	cause   string // why it was lost
	whence  string // the caller's file and line, if that is recorded
}

// end is where in the stream its bytes end.
func (p *packet) end() uint64 { return p.start + uint64(p.size) }

// newPacket takes a packet out of the network's pool.
func (s *Simnet) newPacket(f *flow, k packetKind) *packet {
	p := s.spare
	if p == nil {
		p = &packet{}
	} else {
		s.spare = p.spare
		p.spare = nil
	}
	p.flow, p.kind, p.count = f, k, 1
	p.act = p
	return p
}

// mostRoom is the most bytes that a packet in the pool keeps for the next payload.
const mostRoom = 2 << 10

// carry gives p a copy of b for a payload.
func (p *packet) carry(b []byte) {
	p.room = append(p.room[:0], b...)
	p.payload, p.size = p.room, len(b)
}

// release gives a packet back to the pool.
func (s *Simnet) release(p *packet) {
	room := p.room
	if cap(room) > mostRoom {
		room = nil
	}
	*p = packet{spare: s.spare, room: room}
	s.spare = p
}

// send issues p: its fate is decided at admission.
func (s *Simnet) send(p *packet) {
	f := p.flow
	p.issued = s.t
	if s.cfg.RecordCallers {
		p.whence = caller()
	}
	p.event.host, p.number = f.to, f.n
	f.n++
	s.issue(p, f.place(f.to, p.number, 0))
}

func (p *packet) needed(at int64) int64 {
	s := p.flow.net
	s.estimate(p)
	if len(s.rules) > 0 {
		return s.clear(at + 1) // what rules say may change later
	}
	l := p.flow.way()
	if l.wired {
		at += l.service(p)
	}
	if !l.plain && p.loose() {
		return s.clear(at + p.soonest(l) + 1)
	}
	return s.clear(at + p.lat + 1)
}

// soonest is the least time that p can take, or a second p, whose time has not been drawn.
func (p *packet) soonest(l *link) int64 {
	switch {
	case !p.doubles(l):
		return p.lat
	case p.jumps:
		return minLatency
	}
	return min(p.lat, l.least())
}

// sendAt sends p as if at an earlier instant, at the admission of the operation that it belongs to.
func (s *Simnet) sendAt(p *packet, at int64) {
	f := p.flow
	p.issued = at
	p.event.host, p.number = f.to, f.n
	f.n++
	s.estimate(p)
	p.admit(at)
}

// estimate draws the latency of p from the link as it is now.
func (s *Simnet) estimate(p *packet) {
	l := p.flow.way()
	p.latGen = l.generation
	if (s.replayed != nil || p.fate != nil) && s.ordain(p) {
		return
	}
	why := drawLatency
	if p.copied {
		why = drawDuplicateLatency
	}
	p.lat = p.flow.delay(l, why, p.number)
	if l.plain {
		p.jumps = false
		return
	}
	if p.jumps = p.loose() && p.flow.happens(l.cfg.Reorder, drawReorder, p.number); p.jumps {
		p.lat = max(minLatency, int64(float64(p.lat)*unit(draw(s.seed, p.flow.key, drawReorder, ^p.number))))
	}
}

// loose reports whether p may be overtaken, doubled and corrupted: a stream would hide it.
func (p *packet) loose() bool { return p.kind == kindMessage || p.kind == kindDatagram }

// way is the link that the flow takes.
func (f *flow) way() *link {
	if f.link != nil {
		return f.link
	}
	return f.find()
}

// find looks up the link.
func (f *flow) find() *link {
	f.link = f.net.linkBetween(f.from, f.to)
	f.line = f.link.key
	return f.link
}

// place is where number n of the flow comes at one instant, or what concerns it and has a rank, among what concerns a host.
func (f *flow) place(h *Host, n uint64, rank int) priority {
	if f.link == nil && f.from != nil && f.to != nil {
		f.find()
	}
	return priority{host: h, line: f.line, key: f.key, n: ranked(n, rank)}
}

// admit decides whether p leaves, and when it arrives.
func (p *packet) admit(int64) {
	f := p.flow
	s := f.net
	l := f.way()
	switch p.kind {
	case kindData:
		p.count = int32(l.segments(p.size))
		if p.half.young == p {
			p.half.young = nil
		}
	case kindDatagram:
		p.count = int32(l.fragments(p.size, f.dst.Addr()))
	}
	l.stats.Sent.add(p)
	s.tracePacket(EventSend, p, p.issued, "")
	if cause := p.leaving(); cause != "" {
		s.lose(p, cause, p.issued)
		return
	}
	s.launch(p, p.issued)
}

// stage is how far p has come on its way.
type stage uint8

const (
	stageUplink   stage = iota // waits for the sender's uplink
	stageLink                  // waits for the link's wire, or is on it
	stageDownlink              // waits for the receiver's downlink
)

// launch sends p on its way, and its double after it.
func (s *Simnet) launch(p *packet, at int64) {
	l := p.flow.way()
	if p.latGen != l.generation {
		s.estimate(p)
	}
	var double *packet
	if (!l.plain || p.twice) && p.doubles(l) {
		double = s.double(p)
	}
	l.stats.InFlight.add(p)
	p.enter(stageUplink, at)
	if double != nil {
		l.stats.Duplicated.add(double)
		s.tracePacket(EventDuplicate, double, at, "")
		s.launch(double, at)
	}
}

// doubles reports whether a second p is to be made. There is one at most, even if a partition holds p and it is launched again.
func (p *packet) doubles(l *link) bool {
	if p.doubled || !p.loose() || l.from == l.to {
		return false
	}
	return p.twice || p.flow.happens(l.cfg.Duplicate, drawDuplicate, p.number)
}

// double makes a second p.
func (s *Simnet) double(p *packet) *packet {
	c := s.newPacket(p.flow, p.kind)
	c.issued, c.number, c.size, c.count, c.class, c.extra = p.issued, p.number, p.size, p.count, p.class, p.extra
	c.circuit, c.socket, c.event.host = p.circuit, p.socket, p.event.host
	c.carry(p.payload)
	c.copied, c.resent, c.corrupted = true, p.resent, p.corrupted
	p.doubled, c.doubled = true, true
	if c.circuit != nil {
		c.circuit.held += c.size
	}
	s.estimate(c)
	return c
}

// waits reports whether p waits for its turn where the rate is limited.
func (p *packet) waits() bool { return !p.jumps && p.flow.from != p.flow.to }

// enter is p's coming to a stage at an instant.
func (p *packet) enter(at stage, now int64) {
	f, l := p.flow, p.flow.way()
	switch {
	case l.access && at == stageUplink && f.from.uplink.takes(now) && p.waits():
		p.queue(f.from.uplink, at, now)
	case at == stageDownlink:
		p.queue(f.to.downlink, at, now)
	case l.wired && l.wire.limited() && !p.jumps:
		l.number(p)
		p.queue(l.wire, stageLink, now)
	default:
		l.number(p)
		p.stage = stageLink
		p.due = l.arrival(p, now)
		f.net.after(&p.event, p.due)
	}
}

// queue lets p wait for a wire, or loses it there.
func (p *packet) queue(w *wire, at stage, now int64) {
	p.stage = at
	if !w.enter(p, now) {
		p.flow.way().stats.InFlight.sub(p)
		p.flow.net.lose(p, CauseQueue, now)
	}
}

// leaves schedules what follows when p leaves its wire.
func (p *packet) leaves(at int64) {
	p.due = at
	if p.stage == stageLink {
		p.due = p.flow.way().arrival(p, at)
	}
	p.flow.net.after(&p.event, p.due)
}

// fire is p's coming out of a stage, at last its arrival.
func (p *packet) fire(now int64) {
	f := p.flow
	if p.late {
		p.arriveLate(now)
		return
	}
	if p.near {
		if f.to.powerOff {
			f.net.release(p)
		} else {
			p.deliver(now)
		}
		return
	}
	if p.wire != nil {
		p.wire.advance(p.due)
		p.wire = nil
	}
	switch {
	case p.stage == stageUplink:
		p.enter(stageLink, p.due)
	case p.stage == stageLink && p.flow.way().access && f.to.downlink.takes(p.due) && p.waits():
		p.enter(stageDownlink, p.due)
	default:
		p.arrive(now)
	}
}

// arrive is the end of p's way.
func (p *packet) arrive(now int64) {
	f := p.flow
	s, l := f.net, f.way()
	l.stats.InFlight.sub(p)
	if cause := p.arriving(); cause != "" {
		s.lose(p, cause, now)
		return
	}
	l.stats.Delivered.add(p)
	s.tracePacket(EventDeliver, p, now, "")
	s.countDelivery(p)
	p.receipt()
	p.deliver(now)
}

// receipt moves the receiver's logical clock past the sender's.
func (p *packet) receipt() { p.flow.to.clock = max(p.flow.to.clock, p.flow.from.clock) + 1 }

// leaving is why p does not get onto the link, or "".
func (p *packet) leaving() string {
	f := p.flow
	if f.unpowered() {
		return CausePower
	}
	if f.from == f.to {
		return ""
	}
	if p.fate != nil {
		return f.net.fulfil(p)
	}
	if f.isolated() {
		return CauseIsolated
	}
	if f.happens(f.current().drop, drawDropSend, p.number) {
		return CauseDropSend
	}
	if cut := f.way().cut; cut != nil {
		return cut.stop(p)
	}
	if s := f.net; s.inspected() {
		if cause := s.inspect(p); cause != "" {
			return cause
		}
	}
	l := f.way()
	if l.plain {
		return ""
	}
	if l.loses(p) {
		return CauseLoss
	}
	if f.happens(l.cfg.Corrupt, drawCorrupt, p.number) {
		return f.net.corrupt(p)
	}
	return ""
}

// arriving is why p does not come out of the link, or "".
func (p *packet) arriving() string {
	f := p.flow
	if f.unreachable() {
		return CausePower
	}
	if f.from == f.to || p.fate != nil {
		return ""
	}
	if f.isolated() {
		return CauseIsolated
	}
	if cut := f.way().cut; cut != nil {
		return cut.stop(p)
	}
	if clog := f.way().clog; clog != nil {
		return clog.stop(p)
	}
	if f.happens(f.current().deaf, drawDeafRead, p.number) {
		return CauseDeafRead
	}
	return ""
}

// snatch loses p, which is under way.
func (s *Simnet) snatch(p *packet, cause string, now int64) {
	if p.wire != nil {
		p.wire.withdraw(p)
		p.wire = nil
	}
	s.agenda.remove(&p.event)
	p.flow.way().stats.InFlight.sub(p)
	s.lose(p, cause, now)
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

// lost ends p, which is gone.
func (p *packet) lost(cause string, now int64) {
	if p.kind == kindMessage {
		p.circuit.lost(p, cause, now)
		return
	}
	p.missed(cause, now)
	p.flow.net.release(p)
}

// missed tells whom it concerns that p does not arrive, so that it can be sent again.
func (p *packet) missed(cause string, now int64) {
	switch p.kind {
	case kindSYN:
		p.dial.unanswered(cause, now)
	case kindSYNACK:
		p.dial.unanswered(cause, now)
		p.dial.conn.peer.unconfirmed(now)
	case kindACK:
		p.conn.unconfirmed(now)
	case kindData, kindFIN, kindProbe:
		p.half.lost(p, now)
	case kindRST:
		if p.dial != nil {
			p.dial.unanswered(cause, now)
		} else {
			p.conn.pathChanged(now)
		}
	}
}
