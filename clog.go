package gosimnet

import (
	"fmt"
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
	s.cuts = append(s.cuts, c)
	s.recut()
	s.traceFault(EventFault, hostOrAny(a), hostOrAny(b), "clog")
	s.pathsChanged(nil, nil)
	if d > 0 {
		s.after(&c.end, s.t+int64(min(d, century))-1)
	}
	return c
}

func (s *Simnet) unclog(c *cut) {
	if !c.healed {
		s.traceFault(EventRepair, "", "", c.name)
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
