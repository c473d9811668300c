package gosimnet

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
)

// LinkConfig says what a link, one direction between two hosts, does to packets. The zero value is the default.
//
// Streams survive all of it: what loss and corruption do to them is delay, and duplication and reordering are invisible.
type LinkConfig struct {
	// Latency is the one-way delay of a packet; a round trip costs both directions'. Nil is
	// uniform over the network's MinHop … MaxHop. It is never less than 1 ns.
	Latency Latency
	// Loss is the probability, from 0 to 1, that a packet is lost, each independently of the others. On a stream it is the
	// probability for each transmission of a segment; the stream sends again, so that nothing but time is lost.
	Loss float64
	// Burst is bursty loss, in place of Loss; nil is none.
	Burst *GilbertElliott
	// Duplicate is the probability that a datagram or message arrives twice, each time with a delay of its own.
	Duplicate float64
	// Corrupt is the probability that a bit of a datagram or message is flipped; a stream's segment is lost by it, for
	// its checksum is wrong, and sent again.
	Corrupt float64
	// Reorder is the probability that a datagram or message jumps the queue: it takes a random fraction of its latency, waits for
	// no wire, and overtakes what is in its way, whatever the Ordering.
	Reorder float64
	// Ordering is Ordered, the default, if no packet may overtake another by jitter, and Unordered if datagrams and messages may.
	Ordering Ordering
	// BitsPerSecond is the rate of the wire; 0 is no limit. A packet leaves when those before it have left, and takes its payload's
	// bits, headers not counted, divided by the rate.
	BitsPerSecond int64
	// Trace replaces BitsPerSecond by recorded opportunities to send, counted from the beginning of the network.
	Trace *DeliveryTrace
	// QueueBytes is how much may wait for the wire; 0 is 256 KiB. What is being sent does not wait any more.
	QueueBytes int
	// Overflow says who is lost when that is full.
	Overflow Overflow
	// MTU is the largest packet in bytes, headers included; 0 is 1500. A link that loses packets or limits their rate carries streams in segments of 40
	// bytes less; others carry up to 64 KiB as one, as segmentation offload does. Datagrams above it, with the 28 bytes of their
	// headers over IPv4 and 48 over IPv6, travel in fragments, and are lost if any of those is.
	MTU int
}

// GilbertElliott is a link with two states, good and bad, that changes between them with a probability before each packet, and loses
// packets with a probability that depends on the state (Gilbert 1960, Elliott 1963). It begins in the good one. Bursts of the
// bad state last 1/BadToGood packets on average. All are probabilities from 0 to 1.
type GilbertElliott struct{ GoodToBad, BadToGood, LossGood, LossBad float64 }

// Ordering says whether jitter may let a packet overtake another one.
type Ordering int

// The orderings.
const (
	Ordered   Ordering = iota // never
	Unordered                 // datagrams and messages may
)

// String is the name of the constant.
func (o Ordering) String() string { return nameOf(int(o), "Ordering", "Ordered", "Unordered") }

const (
	drawKeyOfLinks = 0x6c696e6b

	defaultMTU   = 1500
	defaultQueue = 256 << 10
	headerBytes  = 40        // of TCP and IPv4, without options
	offload      = 64 << 10  // the largest segment, as with segmentation offload
	minMTU       = 68        // RFC 791
	maxMTU       = 64 << 10  // of the IPv4 length field, about
	minLatency   = 1         // nanosecond; a link of none would let two goroutines spin at one instant for ever
	loopbackLat  = 10 * 1000 // nanoseconds between a host and itself
)

// validate reports the first impossible field, naming it and its value.
func (c LinkConfig) validate(where string) error {
	if c.Latency != nil {
		if err := c.Latency.validate(); err != nil {
			return fmt.Errorf("gosimnet: %sLatency: %w", where, err)
		}
	}
	ps := []namedProbability{{"Loss", c.Loss}, {"Duplicate", c.Duplicate}, {"Corrupt", c.Corrupt}, {"Reorder", c.Reorder}}
	if b := c.Burst; b != nil {
		ps = append(ps, namedProbability{"Burst.GoodToBad", b.GoodToBad}, namedProbability{"Burst.BadToGood", b.BadToGood},
			namedProbability{"Burst.LossGood", b.LossGood}, namedProbability{"Burst.LossBad", b.LossBad})
	}
	for _, p := range ps {
		if !probability(p.value) {
			return fmt.Errorf("gosimnet: %s%s is %v, want a probability from 0 to 1", where, p.name, p.value)
		}
	}
	if c.Ordering < Ordered || c.Ordering > Unordered {
		return fmt.Errorf("gosimnet: %sOrdering is %v, want Ordered or Unordered", where, c.Ordering)
	}
	if c.BitsPerSecond < 0 {
		return fmt.Errorf("gosimnet: %sBitsPerSecond is %d, want no negative rate", where, c.BitsPerSecond)
	}
	if c.QueueBytes < 0 || c.QueueBytes > maxBuffer {
		return fmt.Errorf("gosimnet: %sQueueBytes is %d, want 0 to %d", where, c.QueueBytes, maxBuffer)
	}
	if c.Overflow < DropNewest || c.Overflow > DropRandom {
		return fmt.Errorf("gosimnet: %sOverflow is %v, want DropNewest, DropOldest or DropRandom", where, c.Overflow)
	}
	if c.Trace != nil && c.Trace.cycle == 0 {
		return fmt.Errorf("gosimnet: %sTrace has no opportunity; make one with ParseTrace", where)
	}
	if c.MTU != 0 && (c.MTU < minMTU || c.MTU > maxMTU) {
		return fmt.Errorf("gosimnet: %sMTU is %d, want %d to %d, or 0 for %d", where, c.MTU, minMTU, maxMTU, defaultMTU)
	}
	return nil
}

// String tells what is not the default.
func (c LinkConfig) String() string {
	var parts []string
	add := func(on bool, format string, args ...any) {
		if on {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(c.Latency != nil, "latency %v", c.Latency)
	add(c.Loss > 0 && c.Burst == nil, "loss %.3g", c.Loss)
	if b := c.Burst; b != nil {
		add(true, "bursts %.3g/%.3g, loss %.3g/%.3g", b.GoodToBad, b.BadToGood, b.LossGood, b.LossBad)
	}
	add(c.Duplicate > 0, "duplicates %.3g", c.Duplicate)
	add(c.Corrupt > 0, "corrupts %.3g", c.Corrupt)
	add(c.Reorder > 0, "reorders %.3g", c.Reorder)
	add(c.Ordering != Ordered, "%v", c.Ordering)
	add(c.BitsPerSecond > 0, "%.3g Mbit/s", float64(c.BitsPerSecond)/1e6)
	add(c.Trace != nil, "a delivery trace")
	add(c.QueueBytes > 0, "queue %d B", c.QueueBytes)
	add(c.Overflow != DropNewest, "%v", c.Overflow)
	add(c.MTU > 0, "MTU %d", c.MTU)
	if len(parts) == 0 {
		return "default link"
	}
	return strings.Join(parts, ", ")
}

// mended is the link without what it does to packets besides carrying them.
func (c LinkConfig) mended() LinkConfig {
	c.Loss, c.Burst, c.Duplicate, c.Corrupt, c.Reorder = 0, nil, 0, 0, 0
	return c
}

// worse is the link with what another one has, where that is not zero.
func (c LinkConfig) worse(o LinkConfig) LinkConfig {
	c.Latency = cmp.Or(o.Latency, c.Latency)
	c.Loss, c.Duplicate = cmp.Or(o.Loss, c.Loss), cmp.Or(o.Duplicate, c.Duplicate)
	c.Corrupt, c.Reorder = cmp.Or(o.Corrupt, c.Corrupt), cmp.Or(o.Reorder, c.Reorder)
	c.Ordering, c.Overflow = cmp.Or(o.Ordering, c.Ordering), cmp.Or(o.Overflow, c.Overflow)
	c.QueueBytes, c.MTU = cmp.Or(o.QueueBytes, c.QueueBytes), cmp.Or(o.MTU, c.MTU)
	if o.Loss > 0 || o.Burst != nil {
		c.Burst = o.Burst
	}
	if o.BitsPerSecond > 0 || o.Trace != nil {
		c.BitsPerSecond, c.Trace = o.BitsPerSecond, o.Trace
	}
	return c
}

// own is a copy that its maker cannot change any more.
func (c LinkConfig) own() LinkConfig {
	if c.Burst != nil {
		b := *c.Burst
		c.Burst = &b
	}
	return c
}

type namedProbability struct {
	name  string
	value float64
}

func probability(p float64) bool { return p >= 0 && p <= 1 }

// link is one direction between two hosts.
type link struct {
	// What every packet needs comes first, so that it takes few cache lines.
	generation uint64 // of cfg
	constant   int64  // the latency, if it is always the same
	lastDue    int64  // no packet arrives before the one before it
	tick       int64  // arrivals are rounded up to it; 0: not at all
	numbered   uint64 // packets so far
	key        uint64 // of its own random draws, and of its packets' order
	cut        *cut   // the partition that stops it, or nil
	clog       *cut   // what keeps packets at its end, or nil
	payload    int    // of a segment that is one packet
	plain      bool   // cfg neither loses, doubles, corrupts nor reorders
	unordered  bool   // cfg lets packets overtake
	wired      bool   // a wire is on the way: the link's, its sender's uplink or its receiver's downlink
	access     bool   // an uplink or downlink is on the way, or was
	bad        bool   // the state of its Burst
	stats      LinkStats

	wire     *wire // nil: no limit
	from, to *Host
	cfg      LinkConfig  // with its defaults filled in
	passed   uint64      // packets that Burst has seen
	spoilt   *LinkConfig // what is worse about it for a while, by the weather, or nil
	dials    []dialCount
}

// dialCount counts the dials over a link of one kind.
type dialCount struct {
	of conversation
	n  uint64
}

// countDial counts one more dial of a kind, and tells how many there were before.
func (l *link) countDial(k conversation) uint64 {
	for i := range l.dials {
		if d := &l.dials[i]; d.of == k {
			d.n++
			return d.n - 1
		}
	}
	l.dials = append(l.dials, dialCount{k, 1})
	return 0
}

// conversation is a kind of conversations between two hosts, of which there may be several.
type conversation struct {
	transport transport
	port      uint16
}

// key is the identity of number n of them that a host of a name begins with somebody.
func (k conversation) key(name string, n uint64, whom string) uint64 {
	return hashString(hashString(uint64(k.transport)<<16|uint64(k.port), name)+n, whom)
}

// linkBetween is the link from one host to another, made on first use.
func (s *Simnet) linkBetween(from, to *Host) *link {
	if l := from.links[to]; l != nil {
		return l
	}
	l := &link{from: from, to: to, key: hashString(hashString(drawKeyOfLinks, from.name), to.name)}
	if from.links == nil {
		from.links = make(map[*Host]*link)
	}
	from.links[to] = l
	s.configure(l)
	l.cut, l.clog = s.cutOf(from, to, false), s.cutOf(from, to, true)
	return l
}

// setting is one SetLink call: the last that matches a link counts.
type setting struct {
	origin, target *Host // nil: any
	cfg            LinkConfig
}

func (c setting) matches(from, to *Host) bool {
	return (c.origin == nil || c.origin == from) && (c.target == nil || c.target == to)
}

// configure gives a link the settings that apply to it. Loopback takes only what names it.
func (s *Simnet) configure(l *link) {
	l.cfg = s.usual
	if l.from == l.to {
		l.cfg = LinkConfig{Latency: Constant(loopbackLat), MTU: maxMTU}
	}
	for _, c := range s.settings {
		if c.matches(l.from, l.to) && (l.from != l.to || c.origin != nil && c.target != nil) {
			l.cfg = c.cfg
		}
	}
	if l.spoilt != nil {
		l.cfg = l.cfg.worse(*l.spoilt)
	}
	if l.cfg.Latency == nil {
		l.cfg.Latency = s.hops
	}
	if l.cfg.MTU == 0 {
		l.cfg.MTU = defaultMTU
	}
	l.tick = int64(s.scenario.Tick)
	l.plain = l.cfg.Loss == 0 && l.cfg.Burst == nil && l.cfg.Duplicate == 0 && l.cfg.Corrupt == 0 && l.cfg.Reorder == 0
	l.unordered = l.cfg.Ordering == Unordered
	l.payload = l.cfg.MTU - headerBytes
	l.constant = 0
	if u, ok := l.cfg.Latency.(uniform); ok && u.min == u.max {
		l.constant = l.least()
	}
	l.wire = s.wireFor(l.wire, l.cfg, l.key, l)
	l.rewired()
	l.generation++
}

// latency is the delay of one packet.
func (l *link) latency(d sample) int64 {
	return max(minLatency, int64(l.cfg.Latency.delay(d)))
}

// least is the least delay of any packet.
func (l *link) least() int64 { return max(minLatency, int64(l.cfg.Latency.least())) }

// rewired notes whether a wire is on the way.
func (l *link) rewired() {
	l.wired = l.wire.limited() || l.from != l.to && (l.from.uplink.limited() || l.to.downlink.limited())
	l.access = l.from != l.to && (l.from.uplink != nil || l.to.downlink != nil)
}

// service is the time that p takes on the wires of its way if it does not have to wait for them.
func (l *link) service(p *packet) (ns int64) {
	if p.jumps {
		return 0
	}
	if ns = l.wire.least(p.size); l.from != l.to {
		ns += l.from.uplink.least(p.size) + l.to.downlink.least(p.size)
	}
	return ns
}

// number gives p its place in the order of those that come to the link, which settles who arrives first at one instant.
func (l *link) number(p *packet) {
	l.numbered++
	p.event.key, p.event.n = l.key, l.numbered
}

// arrival is when p arrives that leaves the wire at an instant: on an ordered link never before the one before it.
func (l *link) arrival(p *packet, at int64) int64 {
	due := at + p.lat + p.extra
	if l.tick > 0 {
		due = (due + l.tick - 1) / l.tick * l.tick
	}
	if p.jumps || l.unordered && p.loose() {
		if p.fate != nil {
			return max(at+minLatency, p.issued+p.lat)
		}
		return due
	}
	l.lastDue = max(l.lastDue, due)
	return l.lastDue
}

// loses draws the fate of p.
func (l *link) loses(p *packet) bool {
	if l.cfg.Burst != nil {
		return l.bursts(p)
	}
	loss := l.cfg.Loss
	if loss > 0 && p.count > 1 { // fragments, each of which may be the one that is missing
		loss = 1 - math.Pow(1-loss, float64(p.count))
	}
	return p.flow.happens(loss, drawLoss, p.number)
}

// bursts steps the link's two-state loss, once for each packet on the wire.
func (l *link) bursts(p *packet) (lost bool) {
	b, seed := l.cfg.Burst, p.flow.net.seed
	for range p.count {
		change, loss := b.GoodToBad, b.LossGood
		if l.bad {
			change = b.BadToGood
		}
		if unit(draw(seed, l.key, drawBurstState, l.passed)) < change {
			l.bad = !l.bad
		}
		if l.bad {
			loss = b.LossBad
		}
		lost = unit(draw(seed, l.key, drawBurst, l.passed)) < loss || lost
		l.passed++
	}
	return lost
}

// segment is the largest piece of a stream that crosses the link as one packet.
func (l *link) segment(inspected bool) int {
	if l.wired || inspected || !l.plain && (l.cfg.Loss > 0 || l.cfg.Burst != nil || l.cfg.Corrupt > 0) {
		return l.payload
	}
	return offload
}

// segments is how many packets of the MTU a segment stands for.
func (l *link) segments(size int) int {
	if size <= l.payload {
		return 1
	}
	return (size + l.payload - 1) / l.payload
}

// fragments is how many packets a datagram takes. All but the last carry a multiple of eight bytes (RFC 791, RFC 8200).
func (l *link) fragments(size int, to netip.Addr) int {
	size += 8 // the header of UDP
	ip, more := 20, 0
	if to.Is6() {
		ip, more = 40, 8
	}
	if size <= l.cfg.MTU-ip {
		return 1
	}
	per := (l.cfg.MTU - ip - more) &^ 7
	return (size + per - 1) / per
}

// drops is the probability that the link loses a packet, in the long run.
func (l *link) drops() float64 {
	switch {
	case l.cut != nil || l.clog != nil:
		return 1
	case l.plain:
		return 0
	}
	loss := l.cfg.Loss
	if b := l.cfg.Burst; b != nil {
		loss = b.LossGood
		if sum := b.GoodToBad + b.BadToGood; sum > 0 {
			loss += (b.LossBad - b.LossGood) * b.GoodToBad / sum
		}
	}
	return 1 - (1-loss)*(1-l.cfg.Corrupt)
}

// SetLink sets what the link from origin to target does, one direction only, from this instant on. Packets under way keep
// the delay they have, but those that wait for the wire go at its new rate. "" means any host, present or future; loopback changes only where it is named on both sides.
// The last call that matches a link counts. An unknown host or an impossible value is an error that names it.
func (s *Simnet) SetLink(origin, target string, cfg LinkConfig) error {
	if err := cfg.validate("LinkConfig."); err != nil {
		return err
	}
	return s.control(func() error {
		from, to, err := s.hostPair(origin, target)
		if err != nil {
			return err
		}
		s.settings = append(slices.DeleteFunc(s.settings, func(c setting) bool { return c.coveredBy(from, to) }), setting{from, to, cfg.own()})
		s.reconfigure(from, to)
		s.traceAbout("link", EventFault, origin, target, "link: "+cfg.String())
		s.remember("link " + hostOrAny(from) + "→" + hostOrAny(to) + ": " + cfg.String())
		return nil
	})
}

// coveredBy reports whether a new setting for from and to leaves nothing of c.
func (c setting) coveredBy(from, to *Host) bool {
	loopback := c.origin != nil && c.origin == c.target
	any := from == nil || to == nil
	return (from == nil || from == c.origin) && (to == nil || to == c.target) && !(loopback && any)
}

// reconfigure applies changed settings to the links between hosts, nil being any, and what they mean to what is pending.
func (s *Simnet) reconfigure(from, to *Host) {
	if from != nil && to != nil {
		if l := from.links[to]; l != nil {
			s.configure(l)
		}
	} else {
		for l := range s.links() {
			if (setting{origin: from, target: to}).matches(l.from, l.to) {
				s.configure(l)
			}
		}
	}
	s.resegment()
	if from == nil {
		from, to = to, nil
	}
	s.pathsChanged(from, to)
}

// mendLinks takes from all links what they do to packets besides carrying them.
func (s *Simnet) mendLinks() {
	s.usual = s.usual.mended()
	for i := range s.settings {
		s.settings[i].cfg = s.settings[i].cfg.mended()
	}
	s.reconfigure(nil, nil)
}

// SetUplink limits the rate of everything that a host sends, whoever it is for. Of cfg only BitsPerSecond, Trace, QueueBytes and
// Overflow count; without a rate there is no limit: what is being sent then goes on, and what comes after it waits for it. Packets wait for the uplink first, and then
// for their link. A datagram to several hosts crosses the uplink once for each of them, where a real one leaves the copies to the switch. An unknown or empty name and an impossible value are errors.
func (s *Simnet) SetUplink(host string, cfg LinkConfig) error {
	return s.setAccess(host, cfg, "uplink", func(h *Host) **wire { return &h.uplink })
}

// SetDownlink limits the rate of everything that a host receives, whoever it is from: see SetUplink. It comes last on a packet's way.
func (s *Simnet) SetDownlink(host string, cfg LinkConfig) error {
	return s.setAccess(host, cfg, "downlink", func(h *Host) **wire { return &h.downlink })
}

func (s *Simnet) setAccess(host string, cfg LinkConfig, what string, wireOf func(*Host) **wire) error {
	if err := cfg.validate("LinkConfig."); err != nil {
		return err
	}
	return s.control(func() error {
		h, err := s.mustHost(host)
		if err != nil {
			return err
		}
		w := wireOf(h)
		*w = s.wireFor(*w, cfg, hashString(hashString(drawKeyOfLinks, h.name), what), nil)
		for l := range s.links() {
			l.rewired()
		}
		s.resegment()
		s.traceAbout(what, EventFault, host, "", what)
		return nil
	})
}

// fails is the probability that a packet gets lost for any reason, as the path is now.
func (f *flow) fails() float64 {
	if f.from == f.to {
		return 0
	}
	l, c := f.way(), f.current()
	switch drops := l.drops(); {
	case f.isolated():
		return 1
	case drops == 0 && c == circuitFaults{}:
		return 0
	default:
		return 1 - (1-drops)*(1-c.drop)*(1-c.deaf)
	}
}
