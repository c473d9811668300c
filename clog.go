package gosimnet

import (
	"fmt"
	"slices"
	"time"
)

// Clog keeps everything that arrives over the links from origin to target, one direction, for d, or, if d is zero or less, until unclog is called; "" is any
// host. Then all of it is delivered at once, in order. Clogs add up. An unknown host is an error.
func (s *Simnet) Clog(origin, target string, d time.Duration) (unclog func(), err error) {
	var c *cut
	err = s.control(func() error {
		a, b, err := s.hostPair(origin, target)
		if err != nil {
			return err
		}
		c = s.clog(a, b, d)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return func() { _ = s.control(func() error { s.unclog(c); return nil }) }, nil
}

// clog clogs the links between hosts; nil is any.
func (s *Simnet) clog(a, b *Host, d time.Duration) *cut {
	c := &cut{mode: HoldPackets, clog: true, net: s, name: "clog " + hostOrAny(a) + "→" + hostOrAny(b)}
	c.matches = func(from, to *Host) bool { return (a == nil || a == from) && (b == nil || b == to) }
	c.end = event{act: c, host: a, key: hashString(0, c.name)}
	s.enforce(c)
	s.traceAbout(c.name, EventFault, hostOrAny(a), hostOrAny(b), "clog")
	s.pathsChanged(nil, nil)
	if d > 0 {
		s.after(&c.end, s.t+int64(min(d, century))-1)
	}
	return c
}

func (s *Simnet) unclog(c *cut) {
	if !c.healed {
		s.traceAbout(c.name, EventRepair, "", "", c.name)
		s.heal(c)
	}
}

// fire is the end of a clog.
func (c *cut) fire(int64) { c.net.unclog(c) }

func hostOrAny(h *Host) string {
	if h == nil {
		return "*"
	}
	return h.name
}

// ClearLink loses everything that is under way from origin to target, one direction, or is held there by a clog, a partition or a rule, and reports how many packets
// that were; "" is any host. Streams send it again. What is sent at this very instant is not under way yet. An unknown host is an error.
func (s *Simnet) ClearLink(origin, target string) (n int, err error) {
	err = s.control(func() error {
		a, b, err := s.hostPair(origin, target)
		if err != nil {
			return err
		}
		on := func(p *packet) bool { return setting{origin: a, target: b}.matches(p.flow.from, p.flow.to) }
		s.traceAbout(CauseCleared, EventFault, hostOrAny(a), hostOrAny(b), CauseCleared)
		for _, p := range asSent(s.flying(on)) {
			s.snatch(p, CauseCleared, s.t)
			n++
		}
		for _, p := range asSent(s.takeHeld(on)) {
			s.unhold(p)
			s.lose(p, CauseCleared, s.t)
			n++
		}
		return nil
	})
	return n, err
}

// flying lists the packets that are under way on some links.
func (s *Simnet) flying(on func(p *packet) bool) (ps []*packet) {
	for e := range s.agenda.all() {
		if p, ok := e.act.(*packet); ok && !p.near && !p.late && on(p) {
			ps = append(ps, p)
		}
	}
	return ps
}

// takeHeld takes from those who hold packets what is on some links.
func (s *Simnet) takeHeld(on func(p *packet) bool) (ps []*packet) {
	take := func(held *[]*packet) {
		*held = slices.DeleteFunc(*held, func(p *packet) bool {
			if on(p) {
				ps = append(ps, p)
			}
			return on(p)
		})
	}
	for _, c := range s.cuts {
		take(&c.held)
	}
	for _, r := range s.rules {
		take(&r.held)
	}
	return ps
}

// SwizzleClog clogs the links to hosts, or to all for none named, one after the other at random instants in the first half of a window, and unclogs them in another random order in
// the second half: FoundationDB found that this finds what simple partitions do not. All is released when the window is over. An unknown host, one that is named
// twice, and a window below a microsecond are errors.
func (s *Simnet) SwizzleClog(window time.Duration, hosts ...string) error {
	if window < time.Microsecond {
		return fmt.Errorf("gosimnet: a window of %v is too short", window)
	}
	return s.control(func() error {
		among, err := s.hostsNamed(hosts)
		if err != nil {
			return err
		}
		s.shaped++
		d := dice{s.seed, s.shaped, drawSwizzle, 0}
		half := min(window, century) / 2
		for _, h := range d.shuffle(among) {
			begin, end := s.t+d.within(half), s.t+int64(half)+d.within(half)
			key := d.word()
			s.later(begin, key, func() {
				c := s.clog(nil, h, 0)
				s.spell(func() { s.unclog(c) }, max(s.t, end), key)
			})
		}
		return nil
	})
}
