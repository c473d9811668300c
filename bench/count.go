package bench

import (
	"net"
	"sync"

	"github.com/glycerine/gosimnet"
)

// A Count tells how often the network does something for one operation of its user. Unlike times, counts are the
// same on every machine, but for the switches.
type Count struct {
	What        string
	Steps       float64 // of the scheduler: instants at which the network does something, each after a timer, as a rule
	Operations  float64 // issued to it: packets, as a rule
	Allocations float64
	Switches    float64 // of goroutines, among them the bubble's own, which runs each time that virtual time moves
}

// Counts counts for the usual operations, each done n times.
func Counts(n int) []Count {
	return []Count{
		countStream("stream round trip, 64 B", n, func(client, server net.Conn) func(n int) {
			go echo(server)
			return func(n int) { trips(client, n) }
		}),
		countStream("stream write of 32 KiB, and its reading", n, func(client, server net.Conn) func(n int) {
			buf := make([]byte, 32<<10)
			return func(n int) {
				var reader sync.WaitGroup
				reader.Go(func() { readBytes(server, n*len(buf)) })
				for range n {
					must(client.Write(buf))
				}
				reader.Wait()
			}
		}),
		count("UDP round trip, 64 B", n, func(s *gosimnet.Simnet) func(n int) {
			ports := ring(simulatedSockets(s, 2))
			go ports[1].echo()
			return ports[0].trips
		}),
		count("dial, accept, close", n, func(s *gosimnet.Simnet) func(n int) {
			sp := newSpread(s, 1)
			return func(n int) {
				for i := range n {
					client, server := sp.connect(i)
					check(client.Close())
					check(server.Close())
				}
			}
		}),
	}
}

func countStream(what string, n int, start func(client, server net.Conn) func(n int)) Count {
	return count(what, n, func(s *gosimnet.Simnet) func(n int) { return start(newSpread(s, 1).connect(0)) })
}

// count does what start returns n times, after a warm-up, in a network of its own.
func count(what string, n int, start func(s *gosimnet.Simnet) func(n int)) (c Count) {
	simulate(quiet(), func(s *gosimnet.Simnet) {
		do := start(s)
		do(warmUp)
		before := s.GetSimnetSnapshot()
		sample := measure(n, func() { do(n) })
		after := s.GetSimnetSnapshot()
		c = Count{
			What:        what,
			Steps:       float64(after.Loopi-before.Loopi) / float64(n),
			Operations:  float64(after.Xcountsn-before.Xcountsn) / float64(n),
			Allocations: Allocations.Of(sample),
			Switches:    GoroutineSwitches.Of(sample),
		}
	})
	return c
}
