package gosimnet

import (
	"slices"
	"time"
)

// Swarm draws a link and a weather for hosts, or for all for none named, within limits that a healthy cluster of replicas survives: each family of
// faults is there or not, by the toss of a coin, and each figure is drawn anew. What no protocol without checksums
// survives, Corrupt, is not drawn. The same seed draws the same. Their String methods say what was drawn.
func Swarm(seed uint64, hosts ...string) (LinkConfig, Weather) {
	d := swarm{dice{mix(seed + golden), 0, drawSwarm, 0}}
	l := d.link()
	return l, d.weather(l.Latency.least(), hosts)
}

// swarm draws options.
type swarm struct{ dice }

func (d *swarm) coin() bool { return d.word()&1 == 0 }

// between is a duration from least to most.
func (d *swarm) between(least, most time.Duration) time.Duration {
	return least + time.Duration(d.within(most-least))
}

// below is a number from 0 to most, or, by the toss of a coin, 0.
func (d *swarm) below(most float64) float64 {
	if d.coin() {
		return 0
	}
	return unit(d.word()) * most
}

// latency draws a distribution whose mean is at most 50 ms.
func (d *swarm) latency() Latency {
	const ms = time.Millisecond
	floor := d.between(ms/10, 20*ms)
	switch d.upTo(5) {
	case 0:
		return Constant(floor)
	case 1:
		return Uniform(floor, floor+d.between(ms/10, 60*ms))
	case 2:
		return Normal(floor, floor/5)
	case 3:
		return PerPair(Exponential(floor, floor+d.between(ms/10, 10*ms)), Uniform(1, 20*ms))
	}
	return Exponential(floor, floor+d.between(ms/10, 30*ms))
}

// link draws a link that loses one packet in ten at most.
func (d *swarm) link() (l LinkConfig) {
	l.Latency = d.latency()
	if l.Loss = d.below(0.1); l.Loss > 0 && d.coin() {
		burst := 0.05 + 0.45*unit(d.word()) // the probability that a burst ends
		l.Burst = &GilbertElliott{GoodToBad: burst * l.Loss / (1 - l.Loss), BadToGood: burst, LossBad: 1}
		l.Loss = 0
	}
	l.Duplicate, l.Reorder = d.below(0.1), d.below(0.1)
	if d.coin() {
		l.Ordering = Unordered
	}
	if d.coin() {
		l.BitsPerSecond = 5e6 + d.within(995e6)
		l.QueueBytes = 16<<10 + d.upTo(240<<10)
		l.Overflow = Overflow(d.upTo(int(DropRandom) + 1))
	}
	if d.coin() {
		l.MTU = 576 + d.upTo(9000-576)
	}
	return l
}

// weather draws faults that come rarely, and one of each kind at a time, so that there are times without any.
func (d *swarm) weather(floor time.Duration, hosts []string) (w Weather) {
	const ms, sec = time.Millisecond, time.Second
	w.Hosts = slices.Clone(hosts)
	if d.coin() {
		p := &w.Partitions
		p.Every, p.Last = d.between(5*sec, 60*sec), d.between(sec, 10*sec)
		p.MinTogether, p.MinApart = d.between(sec, 5*sec), d.between(ms, sec)
		p.Shape, p.OneWay = PartitionShape(d.upTo(int(MajoritiesRing)+1)), d.coin()
		p.Mode = PartitionMode(d.upTo(int(RejectPackets) + 1))
	}
	if d.coin() {
		w.Clogs.Every, w.Clogs.Last = d.between(sec, 20*sec), d.between(10*ms, 2*sec)
	}
	if d.coin() {
		w.PowerCuts.Every, w.PowerCuts.Last = d.between(10*sec, 120*sec), d.between(100*ms, 10*sec)
	}
	if d.coin() {
		w.Degrade.Every, w.Degrade.Last = d.between(5*sec, 60*sec), d.between(sec, 10*sec)
		w.Degrade.To = LinkConfig{Latency: Uniform(floor, floor+d.between(50*ms, 500*ms)), Loss: 0.3 * unit(d.word())}
	}
	return w
}
