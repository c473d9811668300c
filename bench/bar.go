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
	return []Bar{
		{What: "stream ping-pong, 1 ms latency", Work: StreamPingPong().Name, Contender: sim, Of: CPUTime, Ratio: true, Limit: 1.7, Peer: "2.45 ×"},
		{What: "UDP ping-pong, 1 ms latency", Work: DatagramPingPong().Name, Contender: sim, Of: CPUTime, Ratio: true, Limit: 1.7, Peer: "4.16 ×; without latency 2.09 ×"},
		{What: "stream bulk throughput, 32 KiB writes", Work: StreamBulk().Name, Contender: sim, Of: Throughput, Ratio: true, AtLeast: true, Limit: 0.7, Peer: "0.12 – 0.14 × with faults, 0.6 – 1.0 × without"},
		{What: "HTTP/1.1 GET against bufconn", Work: HTTPGet().Name, Contender: sim, Of: CPUTime, Ratio: true, Limit: 1.1, Peer: "1.0 ×"},
		{What: "dial, accept, close", Work: Dial().Name, Contender: sim, Of: CPUTime, Limit: 10e3, Peer: "30 µs"},
		{What: "a packet of chatter, 1,000 hosts, streams", Work: Chatter().Name, Contender: streams, Of: CPUTime, Limit: 2e3, Peer: "6.5 µs"},
		{What: "a packet of chatter, 1,000 hosts, UDP", Work: Chatter().Name, Contender: udp, Of: CPUTime, Limit: 2e3, Peer: "6.5 µs"},
		{What: "idle virtual day, 1,000 hosts", Work: IdleDay().Name, Contender: numbered(sim, 1000, "hosts"), Of: CPUTime, Limit: 1e6, Peer: "free without connections"},
		{What: "memory per host", Work: MemoryPerHost().Name, Contender: sim, Of: HeldMemory, Limit: 4 << 10, Peer: "7 – 23 KiB"},
		{What: "goroutines per host", Work: MemoryPerHost().Name, Contender: sim, Of: HeldGoroutines, Limit: 0, Peer: "1 – 3"},
		{What: "memory per connection, both ends", Work: MemoryPerConnection().Name, Contender: sim, Of: HeldMemory, Limit: 4 << 10, Peer: "7 – 23 KiB"},
		{What: "goroutines per connection", Work: MemoryPerConnection().Name, Contender: sim, Of: HeldGoroutines, Limit: 0, Peer: "1 – 3"},
		{What: "cost per packet, 10,000 hosts against 10, streams", Work: StreamChatterGrowth().Name, Contender: numbered(sim, 10_000, "hosts"), Of: CPUTime, Ratio: true, Limit: 1.5, Peer: "2.6 – 3 × at 1,000"},
		{What: "cost per packet, 10,000 hosts against 10, UDP", Work: DatagramChatterGrowth().Name, Contender: numbered(sim, 10_000, "hosts"), Of: CPUTime, Ratio: true, Limit: 1.5, Peer: "2.6 – 3 × at 1,000"},
		{What: "allocations, stream round trip: 2 messages", Work: StreamPingPong().Name, Contender: sim, Of: Allocations, Limit: 4, Peer: "280 a message"},
		{What: "allocations, UDP round trip: 2 messages", Work: DatagramPingPong().Name, Contender: sim, Of: Allocations, Limit: 4, Peer: "280 a message"},
		{What: "allocations, packet of chatter, streams", Work: Chatter().Name, Contender: streams, Of: Allocations, Limit: 2, Peer: "280 a message"},
		{What: "allocations, packet of chatter, UDP", Work: Chatter().Name, Contender: udp, Of: Allocations, Limit: 2, Peer: "280 a message"},
	}
}
