package gosimnet

import (
	"maps"
	"net/netip"
	"slices"
	"time"
)

// Phase is the part of a stream's or circuit's life that a packet belongs to.
type Phase int

// The phases. Datagrams belong to PhaseData.
const (
	PhaseOpen  Phase = iota // SYN, SYN/ACK, and the ACK that ends a handshake
	PhaseData               // data, messages, datagrams, probes, ICMP messages
	PhaseClose              // FIN
	PhaseReset              // RST
)

// String is the name of the constant.
func (p Phase) String() string {
	return nameOf(int(p), "Phase", "PhaseOpen", "PhaseData", "PhaseClose", "PhaseReset")
}

// Packet is a packet as rules see it, when it leaves its sender.
type Packet struct {
	From, To string         // hosts
	Network  string         // "tcp", "udp", "simnet" …, without the family of addresses
	Src, Dst netip.AddrPort //
	Kind     string         // what the classifier says of the payload; "" without one
	What     string         // "SYN", "data", "FIN", "message", "datagram" …
	N        uint64         // its number in its flow, from 0; a retransmission has one of its own
	Size     int            // payload bytes
	Payload  []byte         // they may be looked at until the rule returns, and not changed; a retransmission may come without
	Phase    Phase
	Time     time.Time // when it was sent
}

// Rule decides what becomes of a packet that leaves its sender, at the end of the instant at which it was sent, so that it may depend on what the test changes from one instant to another. It runs with the network locked: it must not block, must not call the network, and
// may not keep p or its payload. The bare acknowledgements of streams are not shown to rules.
type Rule func(p *Packet) Verdict

// Verdict is a rule's decision. Make one with Pass, Drop, Hold, Delay, Duplicate, Reject or Corrupt; the zero Verdict is Pass.
type Verdict struct {
	kind  verdictKind
	delay time.Duration
}

type verdictKind uint8

const (
	verdictPass verdictKind = iota
	verdictDrop
	verdictHold
	verdictDelay
	verdictDuplicate
	verdictReject
	verdictCorrupt
)

// Pass leaves the packet to the next rule, and to the network.
func Pass() Verdict { return Verdict{} }

// Drop loses the packet. A stream sends it again.
func Drop() Verdict { return Verdict{kind: verdictDrop} }

// Hold keeps the packet until the rule is removed, or Heal is called.
func Hold() Verdict { return Verdict{kind: verdictHold} }

// Delay lets the packet travel for so much longer, a year at most, overtaken by others unless the link is ordered. Zero and less is Pass.
func Delay(d time.Duration) Verdict {
	if d <= 0 {
		return Verdict{}
	}
	return Verdict{kind: verdictDelay, delay: min(d, longest)}
}

// Duplicate delivers a datagram or message twice. A stream's packets are not harmed by it.
func Duplicate() Verdict { return Verdict{kind: verdictDuplicate} }

// Reject loses the packet and answers it, as a firewall does: streams and dials get an RST, connected datagram
// sockets an ICMP message.
func Reject() Verdict { return Verdict{kind: verdictReject} }

// Corrupt flips a bit of a datagram or message. A stream's packet is lost by it, for its checksum is wrong.
func Corrupt() Verdict { return Verdict{kind: verdictCorrupt} }

// rule is an installed Rule.
type rule struct {
	decide Rule
	held   []*packet
	gone   bool
}

// AddRule installs a rule for all packets that are issued from this instant on. Of several rules the first, in order of installation, whose verdict is not Pass wins. The function that
// it returns removes the rule and lets go, in order, what it holds; it may be called more than once. A nil rule, and
// a closed network, install nothing.
func (s *Simnet) AddRule(r Rule) (remove func()) {
	if r == nil {
		return func() {}
	}
	installed := &rule{decide: r}
	err := s.control(func() error {
		s.rules = append(s.rules, installed)
		s.resegment()
		return nil
	})
	if err != nil {
		return func() {}
	}
	return func() {
		_ = s.control(func() error {
			if !installed.gone {
				installed.gone = true
				s.rules = slices.DeleteFunc(s.rules, func(o *rule) bool { return o == installed })
				s.releaseHeld(&installed.held)
				s.resegment()
			}
			return nil
		})
	}
}

// Classify sets the function that names the kind of a packet by its payload: of a datagram, a message, or a segment of a stream. It runs with the network locked, as rules do. Nil is none:
// every packet is of the kind "".
func (s *Simnet) Classify(f func(network string, payload []byte) string) {
	_ = s.control(func() error {
		s.classify = f
		s.resegment()
		return nil
	})
}

// Delivered counts the packets with a payload that have been delivered so far, by kind.
func (s *Simnet) Delivered() map[string]uint64 {
	counts := make(map[string]uint64)
	_ = s.look(func() {
		maps.Copy(counts, s.delivered)
		if s.unclassified > 0 {
			counts[""] += s.unclassified
		}
	})
	return counts
}

// countDelivery counts p among its kind.
func (s *Simnet) countDelivery(p *packet) {
	switch {
	case p.kind != kindData && p.kind != kindMessage && p.kind != kindDatagram:
	case p.class == "":
		s.unclassified++
	default:
		if s.delivered == nil {
			s.delivered = make(map[string]uint64)
		}
		s.delivered[p.class]++
	}
}

// inspected reports whether somebody looks at payloads, so that streams are cut into segments of the MTU.
func (s *Simnet) inspected() bool { return len(s.rules) > 0 || s.classify != nil }

// inspect classifies p and asks the rules. It returns the cause for which p does not leave, or "".
func (s *Simnet) inspect(p *packet) string {
	if v, r := s.ask(p); r != nil {
		return s.execute(v, p, r)
	}
	return ""
}

// ask classifies p and finds the first rule that does not let it pass, or nil.
func (s *Simnet) ask(p *packet) (Verdict, *rule) {
	if !s.inspected() {
		return Pass(), nil
	}
	payload := p.flat()
	if s.classify != nil && len(payload) > 0 {
		p.class = s.classify(p.flow.network, payload)
	}
	s.shown = p
	f := p.flow
	shown := Packet{From: f.from.name, To: f.to.name, Network: f.network, Src: f.src, Dst: f.dst, Kind: p.class, What: p.kind.String(),
		N: p.number, Size: p.size, Payload: payload, Phase: p.phase(), Time: s.time(p.issued)}
	for _, r := range s.rules {
		copy := shown
		if v := r.decide(&copy); v.kind != verdictPass {
			return v, r
		}
	}
	return Pass(), nil
}

// execute does what a rule has decided.
func (s *Simnet) execute(v Verdict, p *packet, r *rule) string {
	switch v.kind {
	case verdictDrop:
		return CauseRule
	case verdictHold:
		r.held = append(r.held, p)
		return causeHeld
	case verdictDelay:
		p.extra += int64(v.delay)
	case verdictDuplicate:
		p.twice = true
	case verdictReject:
		return CauseRejected
	case verdictCorrupt:
		return s.corrupt(p)
	}
	return ""
}

// phase is the part of a life that p belongs to.
func (p *packet) phase() Phase {
	switch p.kind {
	case kindSYN, kindSYNACK, kindACK:
		return PhaseOpen
	case kindFIN:
		return PhaseClose
	case kindRST:
		return PhaseReset
	}
	return PhaseData
}

// flat is the payload in one piece.
func (p *packet) flat() []byte {
	parts := p.bytes()
	if len(parts) == 1 {
		return parts[0]
	}
	return slices.Concat(parts...)
}

// corrupt flips a bit of a datagram or message; a stream's packet fails its checksum.
func (s *Simnet) corrupt(p *packet) string {
	if p.kind != kindMessage && p.kind != kindDatagram {
		return CauseCorrupt
	}
	if len(p.payload) > 0 && !p.corrupted {
		p.corrupted = true                  // once: a second flip would mend it
		p.payload = slices.Clone(p.payload) // other copies of it may be under way
		p.flow.way().stats.Corrupted.add(p)
		bit := draw(s.seed, p.flow.key, drawBit, p.number) % uint64(8*len(p.payload))
		p.payload[bit/8] ^= 1 << (bit % 8)
	}
	return ""
}
