package gosimnet

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// PartitionShape says who can hear whom while a partition lasts. The names are Jepsen's and those of simulators of replicated state
// machines.
type PartitionShape int

// The shapes.
const (
	UniformSize      PartitionShape = iota // two sides; the size of the first is uniform from 1 to all but one, and who is in it is random
	UniformPartition                       // two sides; each host tosses a coin, until both have somebody
	IsolateSingle                          // one random host alone
	Halves                                 // the first half of the hosts, as listed, and the second, which has one more if their number is odd
	RandomHalves                           // two random halves
	MinorityThird                          // a random third, rounded down but at least one, and the rest
	Bridge                                 // two halves that hear only the host between them, which hears both
	MajoritiesRing                         // a random ring, in which each host hears a majority, and no two the same one; of three hosts each hears one, in one direction
)

// String is the name of the constant.
func (p PartitionShape) String() string {
	return nameOf(int(p), "PartitionShape", "UniformSize", "UniformPartition", "IsolateSingle", "Halves", "RandomHalves", "MinorityThird", "Bridge", "MajoritiesRing")
}

// Majority is how many of n hosts are a quorum: more than half.
func Majority(n int) int { return n/2 + 1 }

// Minority is how many of n hosts may fail so that a majority is left.
func Minority(n int) int { return n - Majority(n) }

// PartitionShaped partitions hosts, or all for none named, in a shape, with the randomness that the seed gives. OneWay stops only the packets from the first side
// to the second; in a Bridge or a MajoritiesRing, those from a host to one that comes later in the list. It needs
// two hosts, a Bridge three, and a MajoritiesRing three. See Partition.
func (s *Simnet) PartitionShaped(mode PartitionMode, shape PartitionShape, oneWay bool, hosts ...string) (heal func(), err error) {
	return s.cutting(mode, func(c *cut) error {
		if shape < UniformSize || shape > MajoritiesRing {
			return fmt.Errorf("gosimnet: unknown shape %v", shape)
		}
		among, err := s.hostsNamed(hosts)
		if err != nil {
			return err
		}
		if need := shape.least(); len(among) < need {
			return fmt.Errorf("gosimnet: %v needs %d hosts, not %d", shape, need, len(among))
		}
		s.shaped++
		c.divide(shape, among, oneWay, dice{s.seed, uint64(shape), drawShape, s.shaped << 20})
		return nil
	})
}

// hostsNamed finds hosts, or all for no names.
func (s *Simnet) hostsNamed(names []string) ([]*Host, error) {
	if len(names) == 0 {
		return s.sortedHosts(), nil
	}
	var hosts []*Host
	for _, name := range names {
		h, err := s.mustHost(name)
		if err != nil {
			return nil, err
		}
		if slices.Contains(hosts, h) {
			return nil, fmt.Errorf("gosimnet: host %q is named twice", name)
		}
		hosts = append(hosts, h)
	}
	return hosts, nil
}

func (p PartitionShape) least() int {
	if p == Bridge || p == MajoritiesRing {
		return 3
	}
	return 2
}

// dice is a stream of draws for one purpose.
type dice struct {
	seed, key uint64
	why       purpose
	n         uint64
}

func (d *dice) word() uint64 {
	d.n++
	return draw(d.seed, d.key, d.why, d.n)
}

// upTo is a number from 0 to n-1.
func (d *dice) upTo(n int) int { return int(d.word() % uint64(n)) }

// within is a number of nanoseconds from 0 to below t.
func (d *dice) within(t time.Duration) int64 { return int64(unit(d.word()) * float64(t)) }

// shuffle orders hosts at random.
func (d *dice) shuffle(hosts []*Host) []*Host {
	hosts = slices.Clone(hosts)
	for i := len(hosts) - 1; i > 0; i-- {
		j := d.upTo(i + 1)
		hosts[i], hosts[j] = hosts[j], hosts[i]
	}
	return hosts
}

// divide makes the cut a partition of the hosts.
func (c *cut) divide(p PartitionShape, hosts []*Host, oneWay bool, d dice) {
	var who string
	switch p {
	case Bridge:
		c.matches, who = bridge(hosts, oneWay)
	case MajoritiesRing:
		c.matches, who = ring(d.shuffle(hosts), oneWay)
	case Halves:
		c.matches, who = sides(hosts, len(hosts)/2, oneWay)
	case UniformPartition:
		c.matches, who = coins(hosts, oneWay, &d)
	default:
		first := p.first(len(hosts), &d)
		c.matches, who = sides(d.shuffle(hosts), first, oneWay)
	}
	c.name = p.String() + ": " + who
}

// first is how many of n hosts are on the first of two sides.
func (p PartitionShape) first(n int, d *dice) int {
	switch p {
	case UniformSize:
		return 1 + d.upTo(n-1)
	case RandomHalves:
		return n / 2
	case MinorityThird:
		return max(1, n/3)
	}
	return 1
}

// namesOf lists hosts for reports, by name unless their order counts; not more than can be read.
func namesOf(hosts []*Host, inOrder bool) string {
	const most = 16
	var names []string
	for _, h := range hosts {
		names = append(names, h.name)
	}
	if !inOrder {
		slices.Sort(names)
	}
	if more := len(names) - most; more > 0 {
		names = append(names[:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// apart is how reports separate two sides.
func apart(oneWay bool) string {
	if oneWay {
		return " → "
	}
	return " | "
}

// sides divides hosts after the first few.
func sides(hosts []*Host, first int, oneWay bool) (stops func(from, to *Host) bool, who string) {
	side := make(map[*Host]int, len(hosts))
	for i, h := range hosts {
		side[h] = 1
		if i >= first {
			side[h] = 2
		}
	}
	return func(from, to *Host) bool {
		a, b := side[from], side[to]
		return a != 0 && b != 0 && (a < b || a > b && !oneWay)
	}, namesOf(hosts[:first], false) + apart(oneWay) + namesOf(hosts[first:], false)
}

// coins lets each host choose a side.
func coins(hosts []*Host, oneWay bool, d *dice) (stops func(from, to *Host) bool, who string) {
	for {
		var heads, tails []*Host
		for _, h := range hosts {
			if d.word()&1 == 0 {
				heads = append(heads, h)
			} else {
				tails = append(tails, h)
			}
		}
		if len(heads) > 0 && len(tails) > 0 {
			return sides(append(heads, tails...), len(heads), oneWay)
		}
	}
}

// places numbers hosts from 1.
func places(hosts []*Host) map[*Host]int {
	place := make(map[*Host]int, len(hosts))
	for i, h := range hosts {
		place[h] = i + 1
	}
	return place
}

// bridge divides hosts but for the one in the middle.
func bridge(hosts []*Host, oneWay bool) (stops func(from, to *Host) bool, who string) {
	place, middle := places(hosts), len(hosts)/2+1
	return func(from, to *Host) bool {
		a, b := place[from], place[to]
		across := a != 0 && b != 0 && (a < middle && b > middle || a > middle && b < middle)
		return across && (a < b || !oneWay)
	}, namesOf(hosts[:middle-1], false) + apart(oneWay) + namesOf(hosts[middle:], false) + ", between them " + hosts[middle-1].name
}

// ring lets each host hear its nearest neighbours on a ring, as few as make a majority with itself, an equal number on
// both sides; of three hosts, only the one that comes after it.
func ring(hosts []*Host, oneWay bool) (stops func(from, to *Host) bool, who string) {
	place, n := places(hosts), len(hosts)
	after := Majority(n) / 2
	before := after
	if before+1+after == n {
		before--
	}
	who = namesOf(hosts, true)
	if oneWay {
		who += ", one way"
	}
	return func(from, to *Host) bool {
		a, b := place[from], place[to]
		if a == 0 || b == 0 || a > b && oneWay {
			return false
		}
		ahead := (a - b + n) % n
		return ahead > after && n-ahead > before
	}, who
}
