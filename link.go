package gosimnet

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// LinkConfig says what a link, one direction between two hosts, does to packets. The zero value is the default.
type LinkConfig struct {
	// Latency is the one-way delay of a packet; a round trip costs both directions'. Nil is
	// uniform over the network's MinHop … MaxHop. It is never less than 1 ns.
	Latency Latency
	// Loss is the probability, from 0 to 1, that a packet is lost, each independently of the others. On a stream it is the
	// probability for each transmission of a segment; the stream sends again, so that nothing but time is lost.
	Loss float64
	// MTU is the largest packet in bytes, headers included; 0 is 1500. A lossy link carries streams in segments of 40
	// bytes less; a link without loss carries up to 64 KiB as one, as segmentation offload does.
	MTU int
}

const (
	defaultMTU  = 1500
	headerBytes = 40        // of TCP and IPv4, without options
	offload     = 64 << 10  // the largest segment, as with segmentation offload
	minMTU      = 68        // RFC 791
	maxMTU      = 64 << 10  // of the IPv4 length field, about
	minLatency  = 1         // nanosecond; a link of none would let two goroutines spin at one instant for ever
	loopbackLat = 10 * 1000 // nanoseconds between a host and itself
)

// validate reports the first impossible field, naming it and its value.
func (c LinkConfig) validate(where string) error {
	if c.Latency != nil {
		if err := c.Latency.validate(); err != nil {
			return fmt.Errorf("gosimnet: %sLatency: %w", where, err)
		}
	}
	if !probability(c.Loss) {
		return fmt.Errorf("gosimnet: %sLoss is %v, want a probability from 0 to 1", where, c.Loss)
	}
	if c.MTU != 0 && (c.MTU < minMTU || c.MTU > maxMTU) {
		return fmt.Errorf("gosimnet: %sMTU is %d, want %d to %d, or 0 for %d", where, c.MTU, minMTU, maxMTU, defaultMTU)
	}
	return nil
}

func probability(p float64) bool { return p >= 0 && p <= 1 }

// Latency is a distribution of one-way delays. Each draw is a pure function of the seed, the flow and the packet's
// number in it. Make one with Constant or Uniform.
type Latency interface {
	fmt.Stringer
	validate() error
	delay(word uint64) time.Duration // for one random word
	least() time.Duration            // no delay is less
}

// Constant is always d, which must be at least 1 ns.
func Constant(d time.Duration) Latency { return uniform{d, d} }

// Uniform is evenly spread from min to max, both included; min must be at least 1 ns and max no less than min.
func Uniform(min, max time.Duration) Latency { return uniform{min, max} }

type uniform struct{ min, max time.Duration }

func (u uniform) String() string {
	if u.min == u.max {
		return u.min.String()
	}
	return fmt.Sprintf("%v…%v", u.min, u.max)
}

func (u uniform) validate() error {
	if u.min < minLatency {
		return fmt.Errorf("%v is below 1ns", u.min)
	}
	if u.max < u.min {
		return fmt.Errorf("the greatest, %v, is below the least, %v", u.max, u.min)
	}
	return nil
}

func (u uniform) least() time.Duration { return u.min }

func (u uniform) delay(word uint64) time.Duration {
	if u.max == u.min {
		return u.min
	}
	return u.min + time.Duration(unit(word)*float64(u.max-u.min+1))
}

// LinkCount counts packets and their payload bytes.
type LinkCount struct{ Packets, Bytes uint64 }

func (c *LinkCount) add(p *packet) {
	c.Packets += uint64(p.count)
	c.Bytes += uint64(p.size)
}

func (c *LinkCount) sub(p *packet) {
	c.Packets -= uint64(p.count)
	c.Bytes -= uint64(p.size)
}

// LinkStats counts what became of the packets of one link since the network began. At every instant
// Sent = Delivered + Lost + Held + InFlight, in packets and in bytes. A retransmission is a packet of its own;
// the bare acknowledgements of a stream are not packets here. Packets that their sender issued at this very
// instant are not yet counted.
type LinkStats struct {
	Sent, Delivered, Lost, Held, InFlight LinkCount
	LostTo                                map[string]LinkCount // by cause
}

// lose counts a lost packet.
func (c *LinkStats) lose(p *packet, cause string) {
	c.Lost.add(p)
	if c.LostTo == nil {
		c.LostTo = make(map[string]LinkCount)
	}
	n := c.LostTo[cause]
	n.add(p)
	c.LostTo[cause] = n
}

// link is one direction between two hosts.
type link struct {
	from, to   *Host
	cfg        LinkConfig // with its defaults filled in
	generation uint64     // of cfg
	constant   int64      // the latency, if it is always the same
	tick       int64      // arrivals are rounded up to it; 0: not at all
	lastDue    int64      // no packet arrives before the one before it
	cut        *cut       // the partition that stops it, or nil
	stats      LinkStats
}

// linkBetween is the link from one host to another, made on first use.
func (s *Simnet) linkBetween(from, to *Host) *link {
	if l := from.links[to]; l != nil {
		return l
	}
	l := &link{from: from, to: to}
	if from.links == nil {
		from.links = make(map[*Host]*link)
	}
	from.links[to] = l
	s.configure(l)
	l.cut = s.cutOf(from, to)
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
	l.cfg = s.cfg.Link
	if l.from == l.to {
		l.cfg = LinkConfig{Latency: Constant(loopbackLat)}
	}
	for _, c := range s.settings {
		if c.matches(l.from, l.to) && (l.from != l.to || c.origin != nil && c.target != nil) {
			l.cfg = c.cfg
		}
	}
	if l.cfg.Latency == nil {
		l.cfg.Latency = s.hops
	}
	if l.cfg.MTU == 0 {
		l.cfg.MTU = defaultMTU
	}
	l.tick = int64(s.scenario.Tick)
	l.constant = 0
	if u, ok := l.cfg.Latency.(uniform); ok && u.min == u.max {
		l.constant = l.least()
	}
	l.generation++
}

// latency is the delay of one packet.
func (l *link) latency(word uint64) int64 {
	return max(minLatency, int64(l.cfg.Latency.delay(word)))
}

// least is the least delay of any packet.
func (l *link) least() int64 { return max(minLatency, int64(l.cfg.Latency.least())) }

// arrival is when a packet that leaves at an instant arrives: never before the one before it.
func (l *link) arrival(at, latency int64) int64 {
	due := at + latency
	if l.tick > 0 {
		due = (due + l.tick - 1) / l.tick * l.tick
	}
	l.lastDue = max(l.lastDue, due)
	return l.lastDue
}

// loses draws the fate of p.
func (l *link) loses(p *packet) bool {
	loss := l.cfg.Loss
	if loss > 0 && p.count > 1 { // fragments, each of which may be the one that is missing
		loss = 1 - math.Pow(1-loss, float64(p.count))
	}
	return p.flow.happens(loss, drawLoss, p.event.n)
}

// segment is the largest piece of a stream that crosses the link as one packet.
func (l *link) segment() int {
	if l.cfg.Loss > 0 {
		return l.cfg.MTU - headerBytes
	}
	return offload
}

// wirePackets is how many packets of the MTU a segment stands for.
func (l *link) wirePackets(size int) int {
	per := l.cfg.MTU - headerBytes
	return max(1, (size+per-1)/per)
}

// dead reports whether the link lets nothing through, however often it is tried.
func (l *link) dead() bool { return l.cut != nil || l.cfg.Loss >= 1 }

// SetLink sets what the link from origin to target does, one direction only, from this instant on; packets under way keep
// the delay they have. "" means any host, present or future; loopback changes only where it is named on both sides.
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
		s.settings = append(slices.DeleteFunc(s.settings, func(c setting) bool { return c.coveredBy(from, to) }), setting{from, to, cfg})
		s.reconfigure()
		s.traceFault(EventFault, origin, target, "link")
		return nil
	})
}

// coveredBy reports whether a new setting for from and to leaves nothing of c.
func (c setting) coveredBy(from, to *Host) bool {
	loopback := c.origin != nil && c.origin == c.target
	any := from == nil || to == nil
	return (from == nil || from == c.origin) && (to == nil || to == c.target) && !(loopback && any)
}

// reconfigure applies changed settings to every link, and what they mean to what is pending.
func (s *Simnet) reconfigure() {
	for l := range s.links() {
		s.configure(l)
	}
	s.reestimate()
	s.pathsChanged(nil, nil)
}

// LinkStats tells what became of the packets from origin to target, two hosts. The counters of hosts that never
// met are zero. An unknown or empty name is an error.
func (s *Simnet) LinkStats(origin, target string) (stats LinkStats, err error) {
	err = s.control(func() error {
		from, err := s.mustHost(origin)
		if err != nil {
			return err
		}
		to, err := s.mustHost(target)
		if err != nil {
			return err
		}
		if l := from.links[to]; l != nil {
			stats = l.stats
			stats.LostTo = maps.Clone(stats.LostTo)
		}
		return nil
	})
	return stats, err
}

// fails is the probability that a packet gets lost for any reason, as the path is now.
func (f *flow) fails() float64 {
	if f.from == f.to {
		return 0
	}
	l, c := f.way(), f.current()
	if l.dead() || f.isolated() {
		return 1
	}
	return 1 - (1-l.cfg.Loss)*(1-c.drop)*(1-c.deaf)
}
