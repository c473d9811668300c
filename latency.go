package gosimnet

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Latency is a distribution of one-way delays. Each draw is a pure function of the seed, the flow and the packet's
// number in it. No delay is below 1 ns or above a year, and settings that are so are impossible.
type Latency interface {
	fmt.Stringer
	validate() error
	delay(d sample) time.Duration
	least() time.Duration // no delay is less
}

const (
	longest = 365 * 24 * time.Hour // delay
	century = 100 * longest
)

// possible is why a delay is impossible, or nil.
func possible(d time.Duration) error {
	switch {
	case d < minLatency:
		return fmt.Errorf("%v is below 1ns", d)
	case d > longest:
		return fmt.Errorf("%v is above a year", d)
	}
	return nil
}

// impossibleTime is why a field that is a time, or zero, is impossible, or nil. What has no end may be as long as can be said; the others not above a year.
func impossibleTime(field string, d, most time.Duration) error {
	switch {
	case d < 0:
		return fmt.Errorf("gosimnet: %s is %v, want no negative duration", field, d)
	case d > most:
		return fmt.Errorf("gosimnet: %s is %v, above a year", field, d)
	}
	return nil
}

// impossibleHops is why two bounds of a latency do not fit, or nil; without the greater there is one.
func impossibleHops(of string, least, most time.Duration) error {
	if most != 0 && most < least {
		return fmt.Errorf("gosimnet: %s.MaxHop is %v, below MinHop, %v", of, most, least)
	}
	return nil
}

// sample is what a delay is drawn for.
type sample struct {
	word uint64 // random, of this packet
	n    uint64 // the number of the packet in its flow
	pair uint64 // random, of this pair of hosts and direction
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
	if u.max < u.min {
		return fmt.Errorf("the greatest, %v, is below the least, %v", u.max, u.min)
	}
	return cmp.Or(possible(u.min), possible(u.max))
}

func (u uniform) least() time.Duration { return u.min }

func (u uniform) delay(d sample) time.Duration {
	if u.max == u.min {
		return u.min
	}
	return u.min + time.Duration(unit(d.word)*float64(u.max-u.min+1))
}

// Exponential is min and an exponentially distributed rest; mean is that of the whole, and must be above min, which
// must be at least 1 ns.
func Exponential(min, mean time.Duration) Latency { return exponential{min, mean} }

type exponential struct{ min, mean time.Duration }

func (e exponential) String() string { return fmt.Sprintf("exponential(%v, mean %v)", e.min, e.mean) }

func (e exponential) validate() error {
	if e.mean <= e.min {
		return fmt.Errorf("the mean, %v, is not above the least, %v", e.mean, e.min)
	}
	return cmp.Or(possible(e.min), possible(e.mean))
}

func (e exponential) least() time.Duration { return e.min }

func (e exponential) delay(d sample) time.Duration {
	return saturate(float64(e.min) - math.Log1p(-unit(d.word))*float64(e.mean-e.min))
}

// saturate makes a delay of a number of nanoseconds, from one to a year.
func saturate(ns float64) time.Duration {
	switch {
	case ns < minLatency:
		return minLatency
	case ns < float64(longest):
		return time.Duration(ns)
	}
	return longest
}

// Normal is normally distributed; what would be below 1 ns is 1 ns. The mean must be at least 1 ns, the deviation not negative.
func Normal(mean, stddev time.Duration) Latency { return normal{mean, stddev} }

type normal struct{ mean, stddev time.Duration }

func (n normal) String() string { return fmt.Sprintf("normal(%v ± %v)", n.mean, n.stddev) }

func (n normal) validate() error {
	if n.stddev < 0 || n.stddev > longest {
		return fmt.Errorf("the deviation is %v, want 0 to a year", n.stddev)
	}
	return possible(n.mean)
}

func (n normal) least() time.Duration { return minLatency }

func (n normal) delay(d sample) time.Duration {
	u := (float64(d.word>>11) + 0.5) / (1 << 53)
	return saturate(float64(n.mean) + math.Sqrt2*math.Erfinv(2*u-1)*float64(n.stddev))
}

// Pareto has a long tail: it exceeds x with the probability (min/x)^shape. Min must be at least 1 ns and shape positive; a mean
// exists for shapes above 1: min × shape / (shape-1).
func Pareto(min time.Duration, shape float64) Latency { return pareto{min, shape} }

type pareto struct {
	min   time.Duration
	shape float64
}

func (p pareto) String() string { return fmt.Sprintf("pareto(%v, shape %v)", p.min, p.shape) }

func (p pareto) validate() error {
	if !(p.shape > 0) || math.IsInf(p.shape, 1) {
		return fmt.Errorf("the shape is %v, want a positive number", p.shape)
	}
	return possible(p.min)
}

func (p pareto) least() time.Duration { return p.min }

func (p pareto) delay(d sample) time.Duration {
	return saturate(float64(p.min) * math.Pow(1-unit(d.word), -1/p.shape))
}

// Band is one of several distributions that a Mixture chooses from.
type Band struct {
	Weight  float64 // relative to the others'; it must be positive
	Latency Latency // it must not be nil
}

// Mixture chooses one of the bands for each packet, by weight: two narrow bands, say, are a path with a detour.
func Mixture(bands ...Band) Latency { return mixture(slices.Clone(bands)) }

type mixture []Band

func (m mixture) String() string {
	var parts []string
	for _, b := range m {
		parts = append(parts, fmt.Sprintf("%v × %v", b.Weight, b.Latency))
	}
	return "one of " + strings.Join(parts, ", ")
}

func (m mixture) validate() error {
	if len(m) == 0 {
		return fmt.Errorf("a mixture of no bands")
	}
	total := 0.0
	for i, b := range m {
		if total += b.Weight; !(b.Weight > 0) || math.IsInf(total, 1) { // an infinite sum would always choose the last band
			return fmt.Errorf("the weight of band %d is %v, want a positive number, and a finite sum", i, b.Weight)
		}
		if b.Latency == nil {
			return fmt.Errorf("band %d has no latency", i)
		}
		if err := b.Latency.validate(); err != nil {
			return fmt.Errorf("band %d: %w", i, err)
		}
	}
	return nil
}

func (m mixture) least() time.Duration {
	least := m[0].Latency.least()
	for _, b := range m[1:] {
		least = min(least, b.Latency.least())
	}
	return least
}

func (m mixture) delay(d sample) time.Duration {
	total := 0.0
	for _, b := range m {
		total += b.Weight
	}
	x := unit(d.word) * total
	d.word = mix(d.word + golden)
	for _, b := range m[:len(m)-1] {
		if x -= b.Weight; x < 0 {
			return b.Latency.delay(d)
		}
	}
	return m[len(m)-1].Latency.delay(d)
}

// PerPair adds to each delay an offset that is drawn once for each pair of hosts and direction, and stays: some pairs are
// farther apart than others.
func PerPair(base, offset Latency) Latency { return perPair{base, offset} }

type perPair struct{ base, offset Latency }

func (p perPair) String() string { return fmt.Sprintf("%v, and %v for each pair", p.base, p.offset) }

func (p perPair) validate() error {
	for _, l := range []Latency{p.base, p.offset} {
		if l == nil {
			return fmt.Errorf("a part of PerPair is nil")
		}
		if err := l.validate(); err != nil {
			return err
		}
	}
	return nil
}

func (p perPair) least() time.Duration { return p.base.least() + p.offset.least() }

func (p perPair) delay(d sample) time.Duration {
	return p.base.delay(d) + p.offset.delay(sample{word: d.pair, n: d.pair, pair: d.pair})
}

// Replay is the delays of a list, in order and over again: packet n of a flow takes the n-th. Each must be at least 1 ns.
func Replay(delays ...time.Duration) Latency { return replay(slices.Clone(delays)) }

type replay []time.Duration

func (r replay) String() string { return fmt.Sprintf("replay of %d delays", len(r)) }

func (r replay) validate() error {
	if len(r) == 0 {
		return fmt.Errorf("a replay of no delays")
	}
	for i, d := range r {
		if err := possible(d); err != nil {
			return fmt.Errorf("delay %d of the replay: %w", i, err)
		}
	}
	return nil
}

func (r replay) least() time.Duration {
	least := r[0]
	for _, d := range r {
		least = min(least, d)
	}
	return least
}

func (r replay) delay(d sample) time.Duration { return r[d.n%uint64(len(r))] }
