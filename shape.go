package gosimnet

import (
	"fmt"
	"slices"
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
	return s.cutting(mode, shape.String(), func() (func(from, to *Host) bool, error) {
		if shape < UniformSize || shape > MajoritiesRing {
			return nil, fmt.Errorf("gosimnet: unknown shape %v", shape)
		}
		among, err := s.hostsNamed(hosts)
		if err != nil {
			return nil, err
		}
		if need := shape.least(); len(among) < need {
			return nil, fmt.Errorf("gosimnet: %v needs %d hosts, not %d", shape, need, len(among))
		}
		s.shaped++
		return shape.matcher(among, oneWay, dice{s.seed, uint64(shape), drawShape, s.shaped << 20}), nil
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

// matcher tells which links a partition of the hosts stops.
func (p PartitionShape) matcher(hosts []*Host, oneWay bool, d dice) func(from, to *Host) bool {
	n := len(hosts)
	switch p {
	case Bridge:
		return bridge(hosts, oneWay)
	case MajoritiesRing:
		return ring(d.shuffle(hosts), oneWay)
	case Halves:
		return sides(hosts, n/2, oneWay)
	case UniformPartition:
		return coins(hosts, oneWay, &d)
	}
	first := 1
	switch p {
	case UniformSize:
		first = 1 + d.upTo(n-1)
	case RandomHalves:
		first = n / 2
	case MinorityThird:
		first = max(1, n/3)
	}
	return sides(d.shuffle(hosts), first, oneWay)
}

// sides divides hosts after the first few.
func sides(hosts []*Host, first int, oneWay bool) func(from, to *Host) bool {
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
	}
}

// coins lets each host choose a side.
func coins(hosts []*Host, oneWay bool, d *dice) func(from, to *Host) bool {
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
func bridge(hosts []*Host, oneWay bool) func(from, to *Host) bool {
	place, middle := places(hosts), len(hosts)/2+1
	return func(from, to *Host) bool {
		a, b := place[from], place[to]
		apart := a != 0 && b != 0 && (a < middle && b > middle || a > middle && b < middle)
		return apart && (a < b || !oneWay)
	}
}

// ring lets each host hear its nearest neighbours on a ring, as few as make a majority with itself, an equal number on
// both sides; of three hosts, only the one that comes after it.
func ring(hosts []*Host, oneWay bool) func(from, to *Host) bool {
	place, n := places(hosts), len(hosts)
	after := Majority(n) / 2
	before := after
	if before+1+after == n {
		before--
	}
	return func(from, to *Host) bool {
		a, b := place[from], place[to]
		if a == 0 || b == 0 || a > b && oneWay {
			return false
		}
		apart := (a - b + n) % n
		return apart > after && n-apart > before
	}
}
