package gosimnet

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"iter"
	"net/netip"
	"runtime"
	"strings"
	"time"
)

// The kinds of events in a trace.
const (
	EventSend      = "send"      // a packet was sent
	EventLost      = "lost"      // it was lost: Cause says why
	EventHeld      = "held"      // a partition, clog or rule keeps it
	EventDeliver   = "deliver"   // it arrived
	EventDuplicate = "duplicate" // it arrived once more
	EventOpen      = "open"      // a dial succeeded
	EventAccept    = "accept"    // a connection was accepted
	EventRefuse    = "refuse"    // a dial met no listener
	EventClose     = "close"     // Close, or with the cause "write" CloseWrite, was called
	EventReset     = "reset"     // an end of a connection was reset
	EventTimeout   = "timeout"   // an end of a connection, or a dial, gave up
	EventFault     = "fault"     // the test made something worse; Cause says what
	EventRepair    = "repair"    // or better
	EventPower     = "power"     // a host was switched on or off
	EventTimer     = "timer"     // a SimTimer fired
)

// The causes of losses, in traces and in LinkStats.
const (
	CauseLoss      = "loss"      // the link's Loss or Burst
	CauseCorrupt   = "corrupt"   // a stream's segment whose checksum is wrong
	CauseQueue     = "queue"     // the queue for a wire was full
	CauseRule      = "rule"      // a rule
	CauseCleared   = "cleared"   // ClearLink
	CauseDropSend  = "dropsend"  // a faulty network card at the sender
	CauseDeafRead  = "deaf"      // a faulty network card at the receiver
	CauseIsolated  = "isolated"  // the sender or the receiver is cut off
	CausePartition = "partition" // a partition or a cut link, in the mode DropPackets
	CauseRejected  = "rejected"  // a partition or a cut link, in the mode RejectPackets
	CausePower     = "power"     // the sender or the receiver has no power
	CauseBacklog   = "backlog"   // a SYN met a listener whose backlog is full; in LinkStats it is Delivered and Overflowed
	CauseOverflow  = "overflow"  // a full receive queue; in LinkStats it is Delivered and Overflowed
	CauseLate      = "late"      // of a delivery: deliverDroppedSends
)

// causeHeld is the internal mark of a packet that a cut holds.
const causeHeld = "held"

// Event is one entry of a trace.
type Event struct {
	Time     time.Time
	Kind     string         // EventSend …
	From, To string         // hosts; of faults, the names given
	Network  string         // "tcp" …
	Src, Dst netip.AddrPort //
	N        uint64         // the packet's number in its flow, from 0
	Size     int            // its payload bytes
	Cause    string         // why it was lost, or what the fault was
	What     string         // of packets: "SYN", "data", "FIN", "message" …
	Issued   time.Time      // when the packet was sent
}

// String is the event in one line.
func (e Event) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %-7s", e.Time.UTC().Format("15:04:05.000000000"), e.Kind)
	if e.From != "" || e.To != "" {
		fmt.Fprintf(&b, " %s→%s", end(e.From, e.Src), end(e.To, e.Dst))
	}
	if e.What != "" {
		fmt.Fprintf(&b, " %s #%d %d B", e.What, e.N, e.Size)
	}
	if e.Cause != "" {
		fmt.Fprintf(&b, " (%s)", e.Cause)
	}
	return b.String()
}

func end(host string, at netip.AddrPort) string {
	if host == "" {
		return "*"
	}
	if at.Port() == 0 {
		return host
	}
	return fmt.Sprintf("%s:%d", host, at.Port())
}

// record is an event as it is kept.
type record struct {
	at     int64
	issued int64
	kind   string
	cause  string
	flow   *flow
	host   *Host
	n      uint64
	size   int
	rare   *rarely
	what   packetKind
	packet bool
}

// rarely is what few records have. Those of packets, which do without, are written twice a packet.
type rarely struct {
	from, to string // of faults
	whence   string // of a call, if that is recorded
}

// more is what few records have, if this one has it.
func (r *record) more() rarely {
	if r.rare == nil {
		return rarely{}
	}
	return *r.rare
}

// tracer hashes every event and keeps the last.
type tracer struct {
	hash  hash.Hash
	buf   []byte
	last  int64 // the time of the last event that was encoded
	ring  []record
	harm  []record // the last faults, which other events do not drive out
	count int64    // of all events
	flows uint64   // named so far
	spare *noted
}

// add logs an event. Events come in canonical order.
func (t *tracer) add(s *Simnet, r record) {
	t.encode(r.kind, r.cause, r.what, t.named(r.flow), r.at, r.n, r.size)
	if r.flow == nil {
		t.encodeNames(&r)
	}
	if kept := t.next(s.cfg.TraceLimit); kept != nil {
		*kept = r
	}
	if r.fault() {
		t.harm = append(t.harm, r)
		t.harm = t.harm[max(0, len(t.harm)-keptFaults):]
	}
}

// keptFaults is how many faults a snapshot shows at most.
const keptFaults = 64

// fault reports whether the event is a fault or the end of one.
func (r *record) fault() bool {
	return r.flow == nil && (r.kind == EventFault || r.kind == EventRepair || r.kind == EventPower)
}

// faults lists the last faults, oldest first, those of calls of this very instant included.
func (s *Simnet) faults() (all []Event) {
	for i := range s.trace.harm {
		all = append(all, s.event(&s.trace.harm[i]))
	}
	for r := range s.fresh() {
		if r.fault() {
			all = append(all, s.event(r))
		}
	}
	return all[max(0, len(all)-keptFaults):]
}

const hashBlock = 4 << 10

// name introduces a flow: by names and its key, not by addresses and ports, which may depend on who asked for one first.
func (t *tracer) name(f *flow) {
	t.flows++
	f.traced = t.flows
	b := append(t.buf, 0)
	b = appendString(b, f.network)
	for _, h := range [...]*Host{f.from, f.to} {
		if h == nil {
			b = append(b, 0)
		} else {
			b = appendString(b, h.name)
		}
	}
	t.buf = binary.LittleEndian.AppendUint64(b, f.key)
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// encode appends an event of a flow to what is to be hashed; flow 0 is none.
func (t *tracer) encode(kind, cause string, what packetKind, flow uint64, at int64, n uint64, size int) {
	if len(t.buf) >= hashBlock {
		t.flush()
	}
	b := append(t.buf, kind[0], kind[2], byte(len(kind)), byte(what))
	b = binary.AppendVarint(b, at-t.last)
	b = binary.AppendUvarint(b, flow)
	b = binary.AppendUvarint(b, n)
	b = binary.AppendUvarint(b, uint64(size))
	t.buf = appendString(b, cause)
	t.last = at
}

// encodeNames appends what an event without a flow is about.
func (t *tracer) encodeNames(r *record) {
	b := appendString(appendString(t.buf, r.more().from), r.more().to)
	if r.host != nil {
		b = appendString(b, r.host.name)
	}
	t.buf = b
}

// named is the number of a flow in what is hashed, which it gets there on its first appearance.
func (t *tracer) named(f *flow) uint64 {
	if f == nil {
		return 0
	}
	if f.traced == 0 {
		t.name(f)
	}
	return f.traced
}

// next is the place for one more record, or nil if none are kept.
func (t *tracer) next(limit int) *record {
	t.count++
	switch {
	case limit <= 0:
		return nil
	case len(t.ring) < limit:
		t.ring = append(t.ring, record{})
		return &t.ring[len(t.ring)-1]
	}
	return &t.ring[(t.count-1)%int64(limit)]
}

func (t *tracer) flush() {
	t.hash.Write(t.buf)
	t.buf = t.buf[:0]
}

// tracePacket logs what becomes of a packet. If a call of a user brought it about, it waits for its place.
func (s *Simnet) tracePacket(kind string, p *packet, at int64, cause string) {
	for _, r := range s.recordings {
		r.note(kind, p, at, cause)
	}
	if !s.acting {
		s.notePacket(kind, p, at, cause)
		return
	}
	t := &s.trace
	t.encode(kind, cause, p.kind, t.named(p.flow), at, p.number, p.size)
	if r := t.next(s.cfg.TraceLimit); r != nil {
		r.fill(kind, p, at, cause)
	}
	if s.cfg.TracePayload && kind == EventSend {
		s.tracePayload(p)
	}
}

// notePacket lets what a call brought about wait for its place.
func (s *Simnet) notePacket(kind string, p *packet, at int64, cause string) {
	o := s.newNoted()
	o.rec.fill(kind, p, at, cause)
	s.issue(o, p.flow.place(p.flow.to, p.number, p.rankOf(kind)))
}

// fill makes r what has become of a packet.
func (r *record) fill(kind string, p *packet, at int64, cause string) {
	r.at, r.issued, r.kind, r.cause = at, p.issued, kind, cause
	r.flow, r.n, r.size, r.what, r.packet = p.flow, p.number, p.size, p.kind, true
	r.host, r.rare = nil, nil
	if p.whence != "" {
		r.rare = &rarely{whence: p.whence}
	}
}

// rankOf is the place of what a call does to p among what else is done to it at one instant.
func (p *packet) rankOf(kind string) int {
	rank := 4
	switch kind {
	case EventLost:
		rank = 6
	case EventHeld:
		rank = 8
	}
	if p.copied {
		rank++
	}
	if p.resent {
		rank += 10
	}
	return rank
}

// tracePayload covers the bytes of a packet.
func (s *Simnet) tracePayload(p *packet) {
	s.trace.flush()
	for _, b := range p.bytes() {
		s.trace.hash.Write(b)
	}
}

// bytes lists the payload of a packet, in pieces.
func (p *packet) bytes() [][]byte {
	if p.half != nil {
		return p.half.payloadOf(p)
	}
	return [][]byte{p.payload}
}

// traceFault logs a fault or a repair.
func (s *Simnet) traceFault(kind, origin, target, what string) {
	s.traceAbout("", kind, origin, target, what)
}

// traceAbout logs a fault or a repair of something that has a name of its own: what is done at one instant to one thing
// stays in order, and different things go by their names.
func (s *Simnet) traceAbout(name, kind, origin, target, what string) {
	key := hashString(hashString(hashString(0, origin), target), name)
	s.noteFor(priority{key: key, n: ranked(uint64(s.issues), 1)}, record{kind: kind, rare: &rarely{from: origin, to: target}, cause: what})
}

// noteFor logs what a call did at a place in the canonical order of this instant.
func (s *Simnet) noteFor(by priority, r record) {
	r.at, r.issued = s.t, s.t
	o := s.newNoted()
	o.rec = r
	s.issue(o, by)
}

// note logs a call on a connection, in canonical order among those of this instant.
func (s *Simnet) note(f *flow, kind, cause string) {
	f.asked++
	s.noteFor(f.place(f.from, uint64(f.asked), 1), record{kind: kind, cause: cause, flow: f, host: f.from})
}

// noted is an event that waits for its place in the trace.
type noted struct {
	net  *Simnet
	rec  record
	next *noted // of those that are not in use
}

// newNoted takes one out of the pool.
func (s *Simnet) newNoted() *noted {
	o := s.trace.spare
	if o == nil {
		return &noted{net: s}
	}
	s.trace.spare, o.next = o.next, nil
	return o
}

func (o *noted) needed(int64) int64 { return never }

func (o *noted) admit(int64) {
	if o.rec.host != nil {
		o.rec.host.clock++
	}
	t := &o.net.trace
	t.add(o.net, o.rec)
	o.rec, o.next = record{}, t.spare
	t.spare = o
}

// log logs an event on a flow. If a call of a user brought it about, it waits for its place.
func (s *Simnet) log(r record) {
	if s.acting {
		s.trace.add(s, r)
		return
	}
	r.flow.asked++
	s.noteFor(r.flow.place(r.flow.to, uint64(r.flow.asked), 1), r)
}

// TraceHash is the SHA-256, in hexadecimal, over all events so far in canonical order: times, flows, numbers, sizes and outcomes, and, with
// SimNetConfig.TracePayload, payloads. What was called at this very instant is not yet among them, except after Close. Two runs with
// the same hash went the same way. A caller that lives by another clock than the network gets "".
func (s *Simnet) TraceHash() string {
	sum := ""
	_ = s.look(func() {
		s.trace.flush()
		sum = hex.EncodeToString(s.trace.hash.Sum(nil))
	})
	return sum
}

// Trace lists the events that are retained, oldest first. It shows the events as of its first step, and may be
// called after Close.
func (s *Simnet) Trace() iter.Seq[Event] {
	return func(yield func(Event) bool) {
		var events []Event
		_ = s.look(func() {
			for r := range s.records() {
				events = append(events, s.event(r))
			}
		})
		for _, e := range events {
			if !yield(e) {
				return
			}
		}
	}
}

// look runs f with the network locked. After Close that may be done from anywhere, by whatever clock.
func (s *Simnet) look(f func()) error {
	err := s.control(func() error { f(); return nil })
	if err == nil {
		return nil
	}
	s.locked(func() {
		if s.closed {
			f()
			err = nil
		}
	})
	return err
}

// records lists what is retained, oldest first, and after it what calls of this very instant have done.
func (s *Simnet) records() iter.Seq[*record] {
	return func(yield func(*record) bool) {
		t := &s.trace
		n := int64(len(t.ring))
		for i := range n {
			if !yield(&t.ring[(max(0, t.count-n)+i)%n]) {
				return
			}
		}
		if s.cfg.TraceLimit <= 0 {
			return
		}
		s.fresh()(yield)
	}
}

// fresh lists what calls of this very instant have done.
func (s *Simnet) fresh() iter.Seq[*record] {
	return func(yield func(*record) bool) {
		for _, i := range s.canonical(s.pending) {
			if o, ok := s.pending[i].op.(*noted); ok && !yield(&o.rec) {
				return
			}
		}
	}
}

// event is a record for users.
func (s *Simnet) event(r *record) Event {
	e := Event{Time: s.time(r.at), Issued: s.time(r.issued), Kind: r.kind, From: r.more().from, To: r.more().to, N: r.n, Size: r.size, Cause: r.cause}
	if r.host != nil {
		e.From = r.host.name
	}
	if r.packet {
		e.What = r.what.String()
	}
	if f := r.flow; f != nil {
		e.From, e.Network, e.Src, e.Dst = f.from.name, f.network, f.src, f.dst
		e.To = f.dst.Addr().String()
		if f.to != nil {
			e.To = f.to.name
		}
	}
	return e
}

// caller is the file and line outside this package that made a call, or "" for what the network does by itself.
func caller() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		f, more := frames.Next()
		inside := strings.HasPrefix(f.Function, "github.com/glycerine/gosimnet.") && !strings.HasSuffix(f.File, "_test.go")
		if !inside && f.Function != "" {
			if strings.HasPrefix(f.Function, "runtime.") {
				return ""
			}
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		if !more {
			return ""
		}
	}
}
