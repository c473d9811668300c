package gosimnet

import (
	"slices"
	"syscall"
)

// The retransmission times of a stream, as Linux has them.
const (
	minRTO  = 200e6 // nanoseconds: TCP_RTO_MIN
	maxRTO  = 120e9 // TCP_RTO_MAX
	synWait = 1e9   // TCP_TIMEOUT_INIT, of a SYN and of a SYN/ACK
)

// half is one direction of a stream: what one end has written and the other has not yet read. It knows both ends, so that
// bytes lie in one queue from Write to Read, and what happens between is numbers: written ≥ sent ≥ acked at the
// sender, arrived ≥ taken at the receiver, sent ≥ arrived ≥ acked.
//
// On a healthy path only arrivals are events. When an acknowledgement comes back is computed when the segment
// arrives, and looked up when somebody needs to know.
type half struct {
	// What every segment needs comes together, so that it takes few cache lines.
	flow
	retryAt    int64 // of the next retransmission
	writer     *Conn
	data       byteQueue
	written    uint64 // by Write
	sent       uint64
	acked      uint64  // as the sender knows
	edge       uint64  // how far the sender may send, as it knows
	young      *packet // the last new data of an instant, not admitted yet: more may join it
	reader     *Conn
	arrived    uint64 // in order, at the receiver
	taken      uint64 // by Read
	advertised uint64 // the last edge that the receiver told
	lastAck    int64  // when the last acknowledgement comes back; they do not overtake
	rtt        int64  // the last that was measured
	finQueued  bool
	finSent    bool
	finArrived bool
	finAcked   bool
	dead       bool  // nothing more is sent: reset, or its sender has lost its memory
	reading    bool  // somebody copies bytes out of data
	discarded  bool  // nobody will read what is written
	blocked    bool  // the Write whose turn it is waits for room
	telling    bool  // an update is to be admitted
	untold     bool  // the last was lost
	hurried    bool  // the next retransmission was asked for
	tries      int32 // since base
	segments   segments
	progress   int64  // when the sender last heard of something new
	base       int64  // since when it heard of nothing new, with something outstanding
	writers    uint64 // calls of Write so far
	writes     uint64 // those that are over: they take turns
	readers    waitlist
	updates    []update // of the edge alone, on their way to the sender

	ack   event // something that the sender waits for comes back
	retry event
	turns waitlist
	room  waitlist // the one in Write, waiting for room
}

// update is an acknowledgement that tells nothing but how far the sender may send.
type update struct {
	at   int64
	edge uint64
}

type (
	ackEvent   half
	retryEvent half
)

// fire is the return of an acknowledgement that the sender waits for.
func (e *ackEvent) fire(now int64) { (*half)(e).acknowledged(now) }

// fire is the end of a retransmission time-out.
func (e *retryEvent) fire(now int64) { (*half)(e).retransmit(now) }

// open readies a direction whose flow has been named.
func (h *half) open(writer, reader *Conn) {
	h.writer, h.reader = writer, reader
	h.edge = uint64(reader.receiveBuffer())
	h.advertised = h.edge
	h.ack = event{host: writer.host, key: h.key, n: afterPackets + 1, act: (*ackEvent)(h)}
	h.retry = event{host: writer.host, key: h.key, n: afterPackets + 2, act: (*retryEvent)(h)}
}

// free is how many bytes Write may still put in.
func (h *half) free() int {
	return max(0, h.writer.sendBuffer()-int(h.written-h.acked))
}

// unsent reports whether something waits for the window.
func (h *half) unsent() bool { return h.sent < h.written || h.finQueued && !h.finSent }

// outstanding reports whether the sender waits for the receiver.
func (h *half) outstanding() bool { return h.unsent() || h.segments.len() > 0 }

// unread is what a Read would find.
func (h *half) unread() int { return int(h.arrived - h.taken) }

// transmit sends what the window allows.
func (h *half) transmit() {
	if h.dead || !h.writer.up {
		return
	}
	if h.sent < h.written {
		most, end := uint64(h.way().segment(h.net.inspected())), min(h.written, h.edge)
		if h.young != nil {
			h.join(most, end)
		}
		for h.sent < end {
			n := min(most, end-h.sent)
			h.young = h.transmission(h.segments.add(h.sent, n, h.net.t))
			h.sent += n
		}
	}
	if h.finQueued && !h.finSent && h.sent == h.written {
		h.finSent = true
		n := h.segments.add(h.sent, 0, h.net.t)
		h.segments.get(n).fin = true
		h.transmission(n)
	}
	if h.stuck() {
		h.awaitRetry(h.net.t)
	}
	h.attend()
}

// join lets data leave in the segment that carries what the same instant has sent before, as Linux does (tcp_autocorking) while a segment waits for
// the network card: how many goroutines write at an instant, and which of them gather their bytes into how many writes, is often chance. Rules and
// classifiers see what each Write has sent.
func (h *half) join(most, end uint64) {
	p := h.young
	if p.issued != h.net.t || h.net.inspected() || uint64(p.size) >= most {
		return
	}
	more := min(most-uint64(p.size), end-h.sent)
	p.size += int(more)
	h.sent += more
	h.segments.get(p.segment).end = h.sent
}

// transmission puts a segment onto the link, for the first time or again.
func (h *half) transmission(n uint64) *packet {
	seg := h.segments.get(n)
	seg.state = segmentSent
	kind := kindData
	if seg.fin {
		kind = kindFIN
	}
	p := h.net.newPacket(&h.flow, kind)
	p.half, p.segment, p.start = h, n, seg.start
	p.size = int(seg.end - seg.start)
	h.net.send(p)
	return p
}

// resegment cuts anew what streams have sent at this very instant, for links, and who looks at their packets, as they are now: who is first at
// an instant, a writer or whoever changes a link, must make no difference.
func (s *Simnet) resegment() {
	var cut []*half
	for i := len(s.pending) - 1; i >= 0; i-- {
		p, ok := s.pending[i].op.(*packet)
		if !ok || p.half == nil || !p.half.withdraw(p) {
			continue
		}
		s.pending = slices.Delete(s.pending, i, i+1)
		s.issues--
		if !slices.Contains(cut, p.half) {
			cut = append(cut, p.half)
		}
		s.release(p)
	}
	for _, h := range cut {
		h.transmit()
	}
	s.reestimate()
}

// withdraw takes back the last segment, unless it is not p's, or not sent at this instant for the first time.
func (h *half) withdraw(p *packet) bool {
	last := h.segments.end() - 1
	if p.kind == kindProbe || h.segments.len() == 0 || p.segment != last || p.number != h.flow.n-1 {
		return false
	}
	seg := h.segments.get(last)
	if seg.first != h.net.t || seg.state != segmentSent {
		return false
	}
	h.flow.n--
	h.segments.count--
	h.sent = seg.start
	h.finSent = h.finSent && !seg.fin
	h.young = nil
	return true
}

// payloadOf lists the bytes of a data packet, as long as they are not read.
func (h *half) payloadOf(p *packet) [][]byte {
	if p.start < h.taken || h.discarded {
		return nil
	}
	return h.data.window(nil, int(p.start-h.taken), p.size)
}

// arrive is the arrival of a segment at the receiver. Data for a connection that is closed, or shut in both directions, ends it, as on Linux, and what the
// receiver itself has not got across is lost. Data that had arrived before is only acknowledged once more.
func (h *half) arrive(p *packet, now int64) {
	c := h.reader
	if (c.closed || c.readShut && c.out.finQueued) && p.size > 0 && p.end() > h.arrived && !c.deaf() {
		c.end(syscall.ECONNRESET)
	}
	if c.deaf() {
		h.rejected(p, now)
		return
	}
	if !c.up {
		c.confirm(now)
	}
	c.heard = now
	if seg := h.segments.find(p.segment); seg != nil && seg.state != segmentArrived {
		seg.state = segmentArrived
		h.advance()
	}
	h.acknowledge(p.number, p.issued, now)
}

// rejected answers a segment that nobody is there for with RST.
func (h *half) rejected(p *packet, now int64) {
	h.net.sendReset(&h.reader.out.flow, h.writer)
	if seg := h.segments.find(p.segment); seg != nil {
		seg.state = segmentLost
		h.awaitRetry(now)
	}
}

// advance moves what has arrived in order into the receiver's buffer.
func (h *half) advance() {
	before, fin := h.arrived, h.finArrived
	for seg := h.segments.firstMissing(); seg != nil && seg.state == segmentArrived; seg = h.segments.firstMissing() {
		h.segments.ordered++
		h.arrived = seg.end
		h.finArrived = h.finArrived || seg.fin
	}
	if h.arrived != before || h.finArrived != fin {
		h.net.wakeFirst(&h.readers)
	}
	if h.finArrived && !fin {
		h.writer.settled()
		h.reader.settled()
	}
}

// acknowledge answers packet n: everything that has arrived in order is known to the sender when the answer
// has crossed the way back, if it does. It tells the round trip too, from when the packet was sent, as TCP's timestamps do;
// never is a packet that tells nothing of it.
func (h *half) acknowledge(n uint64, sent, now int64) {
	back := &h.reader.out.flow
	if h.happens(back.fails(), drawAckLoss, n) {
		h.awaitRetry(now)
		return
	}
	at := max(h.lastAck, now+h.delay(back.way(), drawAckLatency, n))
	h.lastAck = at
	h.advertised, h.untold = h.taken+uint64(h.reader.receiveBuffer()), false
	if !h.segments.cover(at, h.advertised, at-sent) {
		h.updates = append(h.updates, update{at, h.advertised})
	}
	h.attend()
}

// answerAgain tells the sender what it has not heard, when the way back is free again.
func (h *half) answerAgain() {
	h.net.issue((*answerOp)(h), h.reader.out.place(h.writer.host, 0, 3))
}

// answerOp is an answer that is given again, as things are at the end of the instant.
type answerOp half

func (o *answerOp) needed(at int64) int64 { return (*windowOp)(o).needed(at) }

func (o *answerOp) admit(at int64) {
	h := (*half)(o)
	h.settle(at)
	if !h.dead && (h.unanswered() || h.unheard()) && !h.reader.deaf() {
		h.acknowledge(h.segments.base, never, at)
	}
}

// opened tells the sender, once there is much of it, that Read has made room.
func (h *half) opened() {
	if h.telling || !h.ajar(h.advertised) {
		return
	}
	h.telling = true
	h.net.issue((*windowOp)(h), h.reader.out.place(h.writer.host, h.taken, 2))
}

// ajar reports whether the receiver has much more room than up to an edge.
func (h *half) ajar(edge uint64) bool {
	buffer := h.reader.receiveBuffer()
	return !h.dead && !h.finArrived && int64(h.taken+uint64(buffer)-edge) >= int64(max(1, buffer/2))
}

// windowOp is an update of the window, whose fate the path decides as it is at the end of the instant of the Read.
type windowOp half

func (o *windowOp) needed(at int64) int64 {
	return o.net.clear(at + o.reader.out.way().least() + 1)
}

func (o *windowOp) admit(at int64) {
	h := (*half)(o)
	h.telling = false
	if !h.ajar(h.advertised) {
		return
	}
	edge := h.taken + uint64(h.reader.receiveBuffer())
	back := &h.reader.out.flow
	if h.happens(back.fails(), drawProbe, edge) {
		h.untold = true
		h.awaitRetry(at)
		return
	}
	h.advertised, h.untold = edge, false
	due := max(h.lastAck, at+h.delay(back.way(), drawProbe, edge+1))
	h.lastAck = due
	h.updates = append(h.updates, update{due, edge})
	h.attend()
}

// attend schedules the return of the next acknowledgement if somebody waits for it.
func (h *half) attend() {
	if h.dead || !(h.unsent() || h.blocked || h.writer.lingering || h.tries > 0) {
		return
	}
	if at := h.nextAck(); at != never && (!h.ack.scheduled() || h.ack.at > at+1) {
		h.net.after(&h.ack, at)
	}
}

// nextAck is when the next acknowledgement comes back.
func (h *half) nextAck() int64 {
	at := h.segments.nextAck()
	if len(h.updates) > 0 {
		at = min(at, h.updates[0].at)
	}
	return at
}

// settle brings the sender's knowledge up to an instant.
func (h *half) settle(now int64) {
	for h.segments.len() > 0 && h.segments.front().ackAt <= now {
		seg := h.segments.front()
		h.acked, h.edge = seg.end, max(h.edge, seg.edge)
		h.finAcked = h.finAcked || seg.fin
		if seg.rtt > 0 {
			h.rtt = seg.rtt
		}
		h.progress, h.tries = seg.ackAt, 0
		h.writer.heard = max(h.writer.heard, seg.ackAt)
		h.segments.pop()
	}
	if len(h.updates) > 0 {
		h.settleUpdates(now)
	}
}

// settleUpdates takes the updates that have come back.
func (h *half) settleUpdates(now int64) {
	n := 0
	for n < len(h.updates) && h.updates[n].at <= now {
		if h.updates[n].edge > h.edge {
			h.edge = h.updates[n].edge
			if h.segments.len() == 0 { // a wider window says nothing of segments under way
				h.progress, h.tries = h.updates[n].at, 0
			}
		}
		h.writer.heard = max(h.writer.heard, h.updates[n].at)
		n++
	}
	if n > 0 {
		h.updates = append(h.updates[:0], h.updates[n:]...)
	}
}

// acknowledged is what the sender does when it hears from the receiver.
func (h *half) acknowledged(now int64) {
	h.settle(now)
	if h.retry.scheduled() {
		h.awaitRetry(now)
	}
	h.transmit()
	h.tellWriter()
	if h.finAcked {
		h.net.wakeAll(&h.writer.closers, false)
	}
	h.attend()
}

// tellWriter wakes a blocked writer if there is room enough: a third of the buffer, as on Linux.
func (h *half) tellWriter() {
	if h.blocked && h.free() >= max(1, h.writer.sendBuffer()/3) {
		h.net.wakeFirst(&h.room)
	}
}

// lost is the loss of a segment or probe under way.
func (h *half) lost(p *packet, now int64) {
	if seg := h.segments.find(p.segment); p.kind != kindProbe && seg != nil && seg.state != segmentArrived {
		seg.state = segmentLost
	}
	h.awaitRetry(now)
}

// rto is the first retransmission time-out.
func (h *half) rto() int64 { return min(maxRTO, max(minRTO, 2*h.rtt)) }

// awaitRetry sets the retransmission time-out going, because something did not come through. The n-th retransmission is
// due 2ⁿ⁻¹ time-outs after the last progress, but no more than two minutes after the one before. Progress sets it going anew.
func (h *half) awaitRetry(now int64) {
	if h.dead || !h.outstanding() {
		return
	}
	h.settle(now)
	if h.retry.scheduled() && (h.hurried || h.tries > 0 || h.progress <= h.base) {
		return
	}
	if h.tries == 0 {
		h.base = h.stalledSince(now)
		h.retryAt = h.base + h.rto()
	}
	h.net.after(&h.retry, max(now, min(h.retryAt, h.patience())))
}

// patience is when the sender gives up. Answers to window probes show that the receiver lives, even if it never
// reads; only a UserTimeout ends that.
func (h *half) patience() int64 {
	since := h.base
	if h.segments.len() == 0 && h.net.cfg.UserTimeout == 0 {
		since = max(since, h.writer.heard)
	}
	return since + h.net.userTimeout()
}

// stalledSince is when the sender began to wait for what it waits for.
func (h *half) stalledSince(now int64) int64 {
	if h.segments.len() == 0 {
		return max(h.progress, now)
	}
	return max(h.progress, h.segments.front().first)
}

// retransmit sends again what was lost, and gives up after the user time-out.
func (h *half) retransmit(now int64) {
	h.settle(now)
	hurried := h.hurried
	h.hurried = false
	if h.dead || !h.troubled() {
		return
	}
	if hurried {
		h.resend(now)
		return
	}
	if since := h.stalledSince(now); h.tries == 0 && since > h.base && h.segments.len() > 0 {
		h.base, h.retryAt = since, since+h.rto()
		if h.retryAt > now {
			h.net.after(&h.retry, h.retryAt)
			return
		}
	}
	if now >= h.patience() {
		h.writer.fail(syscall.ETIMEDOUT, now)
		return
	}
	h.tries++
	h.retryAt = max(h.retryAt, now-2) // an event is a nanosecond or two late
	h.retryAt += min(h.retryAt-h.base, maxRTO)
	h.resend(now)
}

// troubled reports whether the sender would wait in vain.
func (h *half) troubled() bool {
	return h.segments.lost() > 0 || h.segments.held() > 0 || h.unanswered() || h.stuck()
}

// unanswered reports whether segments have arrived in order and the answer has been lost.
func (h *half) unanswered() bool { return h.segments.covered < h.segments.ordered }

// stuck reports whether the sender waits for the window alone, and knows of nothing that would open it.
func (h *half) stuck() bool {
	return h.segments.len() == 0 && h.unsent() && h.nextAck() == never && (h.net.cfg.UserTimeout > 0 || !h.healthy() || h.unheard())
}

// unheard reports whether the receiver has more room than the sender knows, and nothing that would tell it is on its way.
func (h *half) unheard() bool {
	return h.unsent() && h.nextAck() == never && (h.edge < h.advertised || h.untold)
}

// resend transmits everything that is lost, or what makes the receiver answer if only its answers are.
func (h *half) resend(now int64) {
	again := 0
	for n := h.segments.base; n < h.segments.end(); n++ {
		if h.segments.get(n).state == segmentLost {
			h.transmission(n)
			again++
		}
	}
	switch {
	case again > 0:
	case h.unanswered():
		h.transmission(h.segments.base)
		h.segments.front().state = segmentArrived
	case h.segments.held() > 0, h.stuck() && h.healthy() && !h.unheard():
		h.awaitRetry(now)
	case h.stuck():
		h.probe()
	}
	h.transmit()
}

// probe makes the receiver tell its window, or that it is still there.
func (h *half) probe() {
	p := h.net.newPacket(&h.flow, kindProbe)
	p.half, p.conn = h, h.reader
	h.net.send(p)
}

// healthy reports whether everything comes through, there and back.
func (h *half) healthy() bool {
	return h.flow.fails() == 0 && h.reader.out.flow.fails() == 0 && !h.reader.forgotten && !h.reader.reset
}

// pathChanged looks at the direction after a fault: acknowledgements under way on a link that is down are lost,
// and what is outstanding may have to be sent again.
func (h *half) pathChanged(now int64) {
	if h.dead {
		return
	}
	h.settle(now)
	if h.reader.out.flow.fails() == 1 {
		h.segments.uncover()
		h.updates = h.updates[:0]
		h.net.agenda.remove(&h.ack)
	}
	if h.outstanding() && !h.healthy() {
		h.awaitRetry(now)
	}
}

// hurry retransmits at the next instant what was lost, without counting it as a try.
func (h *half) hurry() {
	h.settle(h.net.t)
	if h.dead || h.segments.lost() == 0 {
		return
	}
	h.hurried = true
	h.net.after(&h.retry, h.net.t)
}

// kill ends the direction: nothing more is sent. What is under way may still arrive, and what has arrived stays readable.
func (h *half) kill() {
	h.dead = true
	h.net.agenda.remove(&h.ack)
	h.net.agenda.remove(&h.retry)
	h.updates = nil
}

// discard forgets the bytes, which nobody will read.
func (h *half) discard() {
	h.discarded = true
	if !h.reading {
		h.data.clear(&h.net.buffers)
	}
}

type segmentState uint8

const (
	segmentSent segmentState = iota
	segmentLost
	segmentHeld
	segmentArrived
)

// segment is a piece of a stream that has been sent and whose acknowledgement has not come back.
type segment struct {
	start, end uint64
	edge       uint64 // what its acknowledgement tells
	first      int64  // when it was sent for the first time
	ackAt      int64  // when its acknowledgement comes back, or never
	rtt        int64  // that this tells, if positive
	state      segmentState
	fin        bool
}

// what is the segment in words.
func (g *segment) what() string {
	if g.fin && g.start == g.end {
		return kindFIN.String()
	}
	return kindData.String()
}

// segments is a queue of them, numbered from the first of the stream; a ring whose size is a power of two.
type segments struct {
	ring    []segment
	few     [2]segment // the first ring
	base    uint64     // number of the first
	count   int
	ordered uint64 // number of the first that has not arrived in order
	covered uint64 // number of the first whose acknowledgement is not on its way
}

func (q *segments) len() int    { return q.count }
func (q *segments) end() uint64 { return q.base + uint64(q.count) }

func (q *segments) get(n uint64) *segment { return &q.ring[n&uint64(len(q.ring)-1)] }

// find is the segment of a number, or nil if it has been acknowledged.
func (q *segments) find(n uint64) *segment {
	if n < q.base || n >= q.end() {
		return nil
	}
	return q.get(n)
}

func (q *segments) front() *segment { return q.get(q.base) }

// add appends a segment of so many bytes, sent at an instant, and returns its number.
func (q *segments) add(start, size uint64, at int64) uint64 {
	if q.count == len(q.ring) {
		q.grow()
	}
	n := q.end()
	q.count++
	*q.get(n) = segment{start: start, end: start + size, first: at, ackAt: never}
	return n
}

func (q *segments) grow() {
	if q.ring == nil {
		q.ring = q.few[:]
		return
	}
	larger := segments{ring: make([]segment, 2*len(q.ring)), base: q.base, count: q.count}
	for n := q.base; n < q.end(); n++ {
		*larger.get(n) = *q.get(n)
	}
	q.ring = larger.ring
}

// pop forgets the first.
func (q *segments) pop() {
	q.base++
	q.count--
	q.ordered, q.covered = max(q.ordered, q.base), max(q.covered, q.base)
}

// firstMissing is the first segment that has not arrived in order.
func (q *segments) firstMissing() *segment { return q.find(q.ordered) }

// cover sends an acknowledgement for everything that has arrived in order, and reports whether it told anything new.
func (q *segments) cover(at int64, edge uint64, rtt int64) bool {
	before := q.covered
	for ; q.covered < q.ordered; q.covered++ {
		s := q.get(q.covered)
		s.ackAt, s.edge, s.rtt = at, edge, rtt
	}
	return q.covered > before
}

// uncover loses the acknowledgements that are on their way.
func (q *segments) uncover() {
	for n := q.base; n < q.covered; n++ {
		q.get(n).ackAt = never
	}
	q.covered = q.base
}

func (q *segments) nextAck() int64 {
	if q.count == 0 {
		return never
	}
	return q.front().ackAt
}

func (q *segments) lost() int { return q.in(segmentLost) }
func (q *segments) held() int { return q.in(segmentHeld) }

// in counts the segments in a state.
func (q *segments) in(state segmentState) (n int) {
	for i := q.base; i < q.end(); i++ {
		if q.get(i).state == state {
			n++
		}
	}
	return n
}
