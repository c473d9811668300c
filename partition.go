package gosimnet

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// PartitionMode is what a partition does with the packets that it stops.
type PartitionMode int

// The modes.
const (
	DropPackets   PartitionMode = iota // they are lost
	HoldPackets                        // they are kept, and delivered in order when the partition heals
	RejectPackets                      // they are answered: streams and dials by an RST
)

// String is the name of the constant.
func (m PartitionMode) String() string {
	return nameOf(int(m), "PartitionMode", "DropPackets", "HoldPackets", "RejectPackets")
}

// cut stops packets from some hosts to others. A packet crosses a link only if no cut is there when it leaves, nor when it arrives.
type cut struct {
	mode    PartitionMode
	matches func(from, to *Host) bool
	name    string // for reports
	since   int64
	held    []*packet
	healed  bool
	clog    bool  // it stops packets where they arrive, and holds them
	end     event // of the clog
	net     *Simnet
}

// stop is what happens to a packet at the cut.
func (c *cut) stop(p *packet) string {
	switch c.mode {
	case HoldPackets:
		c.held = append(c.held, p)
		p.clogged = c.clog
		return causeHeld
	case RejectPackets:
		return CauseRejected
	}
	return CausePartition
}

// cutOf is the cut, or the clog, that a link's packets meet first, the oldest.
func (s *Simnet) cutOf(from, to *Host, clog bool) *cut {
	if from == to {
		return nil
	}
	for _, c := range s.cuts {
		if c.clog == clog && c.matches(from, to) {
			return c
		}
	}
	return nil
}

// Partition stops all packets between hosts of different groups, in both directions. Hosts in no group keep all their links. It lasts until heal is called, which
// may be done more than once; partitions add up. An unknown host, one that is named twice, an unknown mode and fewer than two groups are errors.
func (s *Simnet) Partition(mode PartitionMode, groups ...[]string) (heal func(), err error) {
	return s.cutting(mode, func(c *cut) error {
		if len(groups) < 2 {
			return fmt.Errorf("gosimnet: a partition of %d groups divides nothing", len(groups))
		}
		group := make(map[*Host]int)
		var who []string
		for i, names := range groups {
			var hosts []*Host
			for _, name := range names {
				h, err := s.mustHost(name)
				if err != nil {
					return err
				}
				if group[h] != 0 {
					return fmt.Errorf("gosimnet: host %q is named twice in a partition", name)
				}
				group[h] = i + 1
				hosts = append(hosts, h)
			}
			who = append(who, namesOf(hosts, false))
		}
		c.name = strings.Join(who, apart(false))
		c.matches = func(from, to *Host) bool {
			a, b := group[from], group[to]
			return a != 0 && b != 0 && a != b
		}
		return nil
	})
}

// CutLink stops all packets from origin to target, in this one direction; "" is any host. See Partition.
func (s *Simnet) CutLink(mode PartitionMode, origin, target string) (heal func(), err error) {
	return s.cutting(mode, func(c *cut) error {
		a, b, err := s.hostPair(origin, target)
		if err != nil {
			return err
		}
		c.name = end(origin, netip.AddrPort{}) + "→" + end(target, netip.AddrPort{})
		c.matches = func(from, to *Host) bool {
			return (a == nil || a == from) && (b == nil || b == to)
		}
		return nil
	})
}

// cutting puts a cut into force, once its maker has said what it stops and what it is called.
func (s *Simnet) cutting(mode PartitionMode, maker func(c *cut) error) (heal func(), err error) {
	if mode < DropPackets || mode > RejectPackets {
		return nil, fmt.Errorf("gosimnet: unknown mode %v", mode)
	}
	c := &cut{mode: mode, net: s}
	err = s.control(func() error {
		if err := maker(c); err != nil {
			return err
		}
		s.addCut(c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return func() {
		_ = s.control(func() error {
			s.mendCut(c)
			return nil
		})
	}, nil
}

// addCut puts a cut into force.
func (s *Simnet) addCut(c *cut) {
	s.enforce(c)
	s.traceAbout(c.title(), EventFault, "", "", c.title())
	s.pathsChanged(nil, nil)
}

// enforce puts a cut or a clog among the others; those of one instant go by their titles.
func (s *Simnet) enforce(c *cut) {
	c.since = s.t
	s.cuts = append(s.cuts, c)
	slices.SortStableFunc(s.cuts, func(a, b *cut) int {
		return cmp.Or(cmp.Compare(a.since, b.since), cmp.Compare(a.title(), b.title()))
	})
	s.recut()
}

// title is the cut in reports.
func (c *cut) title() string {
	if c.clog {
		return c.name
	}
	return c.mode.String() + " " + c.name
}

// mendCut ends a cut, unless it has ended.
func (s *Simnet) mendCut(c *cut) {
	if !c.healed {
		s.traceAbout(c.title(), EventRepair, "", "", c.title())
		s.heal(c)
	}
}

// recut finds the cut of every link.
func (s *Simnet) recut() {
	for l := range s.links() {
		l.cut, l.clog = s.cutOf(l.from, l.to, false), s.cutOf(l.from, l.to, true)
	}
}

// heal ends a cut or clog and lets go what it held, in order.
func (s *Simnet) heal(c *cut) {
	if c.healed {
		return
	}
	c.healed = true
	s.agenda.remove(&c.end)
	s.cuts = slices.DeleteFunc(s.cuts, func(o *cut) bool { return o == c })
	s.recut()
	s.releaseHeld(&c.held)
	s.pathsChanged(nil, nil)
	if c.mode == HoldPackets {
		for k := range s.connsOf(nil) {
			if k.up && c.matches(k.host, k.peer.host) {
				k.in.answerAgain()
			}
		}
	}
}

// releaseHeld lets go what a cut, clog or rule held, in the order sent.
func (s *Simnet) releaseHeld(list *[]*packet) {
	held := *list
	*list = nil
	for _, p := range asSent(held) {
		s.released++
		p.event.key, p.event.n = 0, s.released // their order also where they arrive at one instant
		s.letGo(p)
	}
}

// asSent sorts packets in the order sent.
func asSent(ps []*packet) []*packet {
	slices.SortStableFunc(ps, func(a, b *packet) int {
		x, y := a.flow.place(a.flow.to, a.number, 0), b.flow.place(b.flow.to, b.number, 0)
		return cmp.Or(cmp.Compare(a.issued, b.issued), x.compare(&y))
	})
	return ps
}

// hold keeps a packet that a cut stopped.
func (s *Simnet) hold(p *packet) {
	p.flow.way().stats.Held.add(p)
	switch p.kind {
	case kindData, kindFIN:
		if seg := p.half.segments.find(p.segment); seg != nil && seg.state != segmentArrived {
			seg.state = segmentHeld
		}
		p.half.awaitRetry(s.t)
	default: // what it is part of goes on as if it were lost
		p.missed(causeHeld, s.t)
	}
}

// unhold takes a packet off the books of those that are held.
func (s *Simnet) unhold(p *packet) {
	p.flow.way().stats.Held.sub(p)
	if p.half != nil && p.kind != kindProbe {
		if seg := p.half.segments.find(p.segment); seg != nil && seg.state == segmentHeld {
			seg.state = segmentSent
		}
	}
}

// letGo sends a packet that was held on its way, now.
func (s *Simnet) letGo(p *packet) {
	s.unhold(p)
	switch cut := p.flow.way().cut; {
	case cut != nil:
		s.lose(p, cut.stop(p), s.t)
	case p.clogged: // it has come all the way
		p.clogged = false
		p.flow.way().stats.InFlight.add(p)
		s.after(&p.event, s.t)
	default:
		s.launch(p, s.t)
	}
}

// reject answers a packet that a cut rejected: dials and streams get an RST from nearby.
func (p *packet) reject(now int64) {
	s := p.flow.net
	answer := s.newPacket(p.flow, kindRST)
	answer.near = true
	switch {
	case p.kind == kindSYN:
		answer.dial = p.dial
		answer.flow = &p.dial.conn.in.flow
	case p.half != nil:
		answer.conn = p.half.writer
		answer.flow = &p.half.reader.out.flow
	case p.circuit != nil:
		answer.conn = p.circuit.conn.peer
		answer.flow = &p.circuit.conn.out.flow
	case p.socket != nil && p.kind == kindDatagram && p.socket.remote.IsValid() && !many(p.flow.dst.Addr()): // RFC 1122, section 3.2.2
		answer.kind, answer.socket = kindICMP, p.socket
		answer.flow = p.socket.back(p.flow)
	default:
		s.release(answer)
		return
	}
	f := answer.flow
	answer.event.host, answer.event.key, answer.event.n = f.to, f.key, p.number
	s.after(&answer.event, now+p.lat)
}

// ResetConns sends an RST to both ends of every stream between two hosts, at once, without the network's help, and reports how
// many streams that were; "" is any host. An unknown host is an error.
func (s *Simnet) ResetConns(origin, target string) (n int, err error) {
	err = s.control(func() error {
		a, b, err := s.hostPair(origin, target)
		if err != nil {
			return err
		}
		for c := range s.connsOf(nil) {
			if c.dialed && c.up && !c.reset && !c.forgotten && between(c, a, b) {
				n++
				c.gotReset(s.t)
				c.peer.gotReset(s.t)
			}
		}
		s.traceAbout("reset", EventFault, origin, target, "reset")
		return nil
	})
	return n, err
}

// between reports whether a connection joins two hosts, either way round; nil is any.
func between(c *Conn, a, b *Host) bool {
	is := func(h, want *Host) bool { return want == nil || h == want }
	return is(c.host, a) && is(c.peer.host, b) || is(c.host, b) && is(c.peer.host, a)
}
