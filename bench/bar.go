package bench

import "fmt"

// A Bar is what this library has to reach at some work.
type Bar struct {
	What      string // in words
	Work      string
	Contender string
	Of        Quantity
	Ratio     bool // to the work's first contender, in pairs; else the quantity itself
	AtLeast   bool // else at most
	Limit     float64
	Peer      string // the best figure that was measured of others, in words
}

// A Verdict says whether a bar is reached.
type Verdict int

// The verdicts.
const (
	Met    Verdict = iota // by the median
	Unsure                // not by the median, but by a quarter of the measurements: it may be noise
	Missed                // by the median and by more than the noise
)

// String is the verdict in words.
func (v Verdict) String() string { return [...]string{"met", "not met, within noise", "missed"}[v] }

// Judge compares measurements with the bar.
func (b Bar) Judge(s Spread) Verdict {
	best := s.Q1
	if b.AtLeast {
		best = s.Q3
	}
	switch {
	case b.reached(s.Median):
		return Met
	case b.reached(best):
		return Unsure
	}
	return Missed
}

func (b Bar) reached(v float64) bool {
	if b.AtLeast {
		return v >= b.Limit
	}
	return v <= b.Limit
}

// Measured is what a contender's measurements come to, as the bar counts.
func (b Bar) Measured(pairs []Pair) Spread {
	if b.Ratio {
		return Ratios(pairs, b.Of)
	}
	return Values(pairs, b.Of)
}

// Format is a figure as the bar counts.
func (b Bar) Format(v float64) string {
	if b.Ratio {
		return FormatRatio(v)
	}
	return b.Of.Format(v)
}

// String is the limit in words.
func (b Bar) String() string {
	if b.AtLeast {
		return "≥ " + b.Format(b.Limit)
	}
	return "≤ " + b.Format(b.Limit)
}

// FormatRatio is a ratio in words.
func FormatRatio(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f ×", v)
	}
	return fmt.Sprintf("%.2f ×", v)
}

// Bars are all bars.
func Bars() []Bar {
	const streams, udp = sim + " streams", sim + " UDP"
	ratio := func(what string, w Work, contender string, limit float64, peer string) Bar {
		return Bar{What: what, Work: w.Name, Contender: contender, Of: CPUTime, Ratio: true, Limit: limit, Peer: peer}
	}
	value := func(what string, w Work, contender string, of Quantity, limit float64, peer string) Bar {
		return Bar{What: what, Work: w.Name, Contender: contender, Of: of, Limit: limit, Peer: peer}
	}
	bulk := ratio("stream bulk throughput, 32 KiB writes", StreamBulk(), sim, 0.7,
		"0.12 – 0.14 × with faults, 0.6 – 1.0 × without")
	bulk.Of, bulk.AtLeast = Throughput, true
	const (
		µs, ms, kiB = 1e3, 1e6, 1 << 10
		roundTrip   = 2 // messages
	)
	thousand, tenThousand := numbered(sim, 1000, "hosts"), numbered(sim, 10_000, "hosts")
	return []Bar{
		ratio("stream ping-pong, 1 ms latency", StreamPingPong(), sim, 1.7, "2.45 ×"),
		ratio("UDP ping-pong, 1 ms latency", DatagramPingPong(), sim, 1.7, "4.16 ×; without latency 2.09 ×"),
		bulk,
		ratio("HTTP/1.1 GET against bufconn", HTTPGet(), sim, 1.1, "1.0 ×"),
		value("dial, accept, close", Dial(), sim, CPUTime, 10*µs, "30 µs"),
		value("a packet of chatter, 1,000 hosts at one instant, streams", Chatter(), streams, CPUTime, 2*µs, "6.5 µs"),
		value("a packet of chatter, 1,000 hosts at one instant, UDP", Chatter(), udp, CPUTime, 2*µs, "6.5 µs"),
		value("the same, each at its instant, streams", ChatterApart(), streams, CPUTime, 2*µs, "6.5 µs"),
		value("the same, each at its instant, UDP", ChatterApart(), udp, CPUTime, 2*µs, "6.5 µs"),
		value("idle virtual day, 1,000 hosts", IdleDay(), thousand, CPUTime, 1*ms, "free without connections"),
		value("memory per host", MemoryPerHost(), sim, HeldMemory, 4*kiB, "7 – 23 KiB"),
		value("goroutines per host", MemoryPerHost(), sim, HeldGoroutines, 0, "1 – 3"),
		value("memory per connection, both ends", MemoryPerConnection(), sim, HeldMemory, 4*kiB, "7 – 23 KiB"),
		value("goroutines per connection", MemoryPerConnection(), sim, HeldGoroutines, 0, "1 – 3"),
		ratio("cost per packet, 10,000 hosts against 10, at one instant, streams", StreamChatterGrowth(), tenThousand, 1.5, "2.6 – 3 × at 1,000"),
		ratio("cost per packet, 10,000 hosts against 10, at one instant, UDP", DatagramChatterGrowth(), tenThousand, 1.5, "2.6 – 3 × at 1,000"),
		ratio("the same, each at its instant, streams", StreamChatterGrowthApart(), tenThousand, 1.5, "2.6 – 3 × at 1,000"),
		ratio("the same, each at its instant, UDP", DatagramChatterGrowthApart(), tenThousand, 1.5, "2.6 – 3 × at 1,000"),
		value("allocations, stream round trip: 2 messages", StreamPingPong(), sim, Allocations, 2*roundTrip, "280 a message"),
		value("allocations, UDP round trip: 2 messages", DatagramPingPong(), sim, Allocations, 2*roundTrip, "280 a message"),
		value("allocations, packet of chatter, streams", Chatter(), streams, Allocations, 2, "280 a message"),
		value("allocations, packet of chatter, UDP", Chatter(), udp, Allocations, 2, "280 a message"),
	}
}
