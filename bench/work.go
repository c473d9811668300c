package bench

import (
	"fmt"
	"time"
)

// latency is one-way, of every peer that has one.
const latency = time.Millisecond

// A Work is something that this library and its peers are measured at.
type Work struct {
	Name  string
	Per   string   // what is done once: "round trip"
	Times int      // how often it is done in one measurement
	Shown Quantity // what the comparison is about
	Kept  bool     // what is made stays until the measurement is over: so many at once as Times says, and no more
	// Contenders do the work. The first is the one that the others are compared with.
	Contenders []Contender
}

// A Contender is one way to get a work done.
type Contender struct {
	Name string
	Run  func(times int) Sample
}

// Contender finds one by name.
func (w Work) Contender(name string) (Contender, error) {
	for _, c := range w.Contenders {
		if c.Name == name {
			return c, nil
		}
	}
	return Contender{}, fmt.Errorf("%s has no contender %q", w.Name, name)
}

// Works are all works, in the order in which they are shown.
func Works() []Work {
	var all []Work
	for _, w := range []func() Work{
		StreamPingPong, StreamPingPongLossy, StreamBulk, StreamBulkLarge, Dial, HTTPGet, GRPCUnary,
		DatagramPingPong, DatagramBulk, DatagramsInFlight,
		Chatter, ChatterApart, StreamChatterGrowth, DatagramChatterGrowth, SleeperGrowth, TimerGrowth,
		StreamChatterGrowthApart, DatagramChatterGrowthApart, TimerGrowthApart, IdleDay, ElectionStorm,
		OpenConnections, PingPongAmongConnections, MemoryPerHost, MemoryPerConnection,
		LimitedStream, LimitedDatagrams, TracedPingPong, Snapshot,
	} {
		all = append(all, w())
	}
	return all
}

// sim is what this library is called among the contenders.
const sim = "gosimnet"

// hostName is that of a host by number.
func hostName(i int) string { return fmt.Sprint("h", i) }
