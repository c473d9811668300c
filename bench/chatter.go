package bench

import (
	"sync"
	"time"
)

// A rhythm says when the first of so many ports sends: each sends once a second.
type rhythm func(i, ports int) time.Duration

// atOnce lets all ports send at one instant, the worst case.
func atOnce(int, int) time.Duration { return 0 }

// apart spreads them evenly over the second.
func apart(i, ports int) time.Duration { return time.Duration(i) * time.Second / time.Duration(ports) }

// talkers is how many hosts chatter.
const talkers = 1000

// Chatter lets a thousand hosts send 64 bytes a second each, all at one instant.
func Chatter() Work {
	off := quiet()
	off.BarrierOff = true
	w := chatterOf("chatter, 1,000 hosts at one instant", atOnce)
	w.Contenders = append(w.Contenders,
		Contender{sim + " streams, BarrierOff", chatter(simulatedFleet(sim, off), talkers, atOnce)},
		Contender{sim + " UDP, BarrierOff", chatter(simulatedDatagrams(sim, off), talkers, atOnce)})
	return w
}

// ChatterApart is the same with hosts at instants of their own.
func ChatterApart() Work {
	return chatterOf("chatter, 1,000 hosts, each at its instant", apart)
}

func chatterOf(name string, when rhythm) Work {
	return Work{
		Name: name, Per: "packet", Times: 60_000, Shown: CPUTime,
		Contenders: []Contender{
			{"sleepers alone", chatter(sleepers(), talkers, when)},
			{"timers alone", chatter(timers(), talkers, when)},
			{sim + " streams", chatter(simulatedFleet(sim, quiet()), talkers, when)},
			{sim + " UDP", chatter(simulatedDatagrams(sim, quiet()), talkers, when)},
			{"pion vnet UDP", chatter(pion("pion vnet", latency), talkers, when)},
			{"marcopolo simnet UDP", chatter(marcoPolo("marcopolo simnet"), talkers, when)},
		},
	}
}

// StreamChatterGrowth tells how the cost of a packet grows with the hosts.
func StreamChatterGrowth() Work {
	return chatterGrowth("chatter by hosts at one instant, streams", simulatedFleet(sim, quiet()), atOnce)
}

// DatagramChatterGrowth is the same with datagrams.
func DatagramChatterGrowth() Work {
	return chatterGrowth("chatter by hosts at one instant, UDP", simulatedDatagrams(sim, quiet()), atOnce)
}

// SleeperGrowth tells how much of that growth is the runtime's own: the goroutines sleep, and send nothing.
func SleeperGrowth() Work {
	return chatterGrowth("chatter by hosts at one instant, sleepers alone", sleepers(), atOnce)
}

// TimerGrowth tells how it grows with the least that a network can do.
func TimerGrowth() Work {
	return chatterGrowth("chatter by hosts at one instant, timers alone", timers(), atOnce)
}

// StreamChatterGrowthApart is the growth with hosts at instants of their own.
func StreamChatterGrowthApart() Work {
	return chatterGrowth("chatter by hosts, each at its instant, streams", simulatedFleet(sim, quiet()), apart)
}

// DatagramChatterGrowthApart is the same with datagrams.
func DatagramChatterGrowthApart() Work {
	return chatterGrowth("chatter by hosts, each at its instant, UDP", simulatedDatagrams(sim, quiet()), apart)
}

// TimerGrowthApart is the same with the least that a network can do.
func TimerGrowthApart() Work {
	return chatterGrowth("chatter by hosts, each at its instant, timers alone", timers(), apart)
}

func chatterGrowth(name string, p datagrams, when rhythm) Work {
	w := Work{Name: name, Per: "packet", Times: 100_000, Shown: CPUTime}
	for _, hosts := range []int{10, 100, 1000, 10_000} {
		w.Contenders = append(w.Contenders, Contender{numbered(p.name, hosts, "hosts"), chatter(p, hosts, when)})
	}
	return w
}

// chatter lets each of so many ports send once a second until about n packets are sent after a while that is not
// measured.
func chatter(p datagrams, hosts int, when rhythm) func(n int) Sample {
	return func(n int) (s Sample) {
		const before = 2 // seconds, in which buffers grow to their size
		seconds := max(1, n/hosts)
		p.open(hosts, func(ports []port) {
			var readers, writers sync.WaitGroup
			for i, p := range ports {
				readers.Go(p.drain)
				writers.Go(func() { p.chat(when(i, hosts), before+seconds) })
			}
			time.Sleep((before+1)*time.Second - time.Microsecond)
			s = measure(hosts*seconds, writers.Wait)
			for _, p := range ports {
				p.close()
			}
			readers.Wait()
		})
		return s
	}
}

// chat sends once a second, after a while.
func (p port) chat(first time.Duration, seconds int) {
	buf := make([]byte, size)
	time.Sleep(first)
	for range seconds {
		time.Sleep(time.Second)
		check(p.send(buf))
	}
	time.Sleep(time.Second / 2) // until the last has arrived
}

// drain receives for as long as anything comes.
func (p port) drain() {
	buf := make([]byte, size)
	for {
		if _, err := p.receive(buf); err != nil {
			return
		}
	}
}

// DatagramsInFlight sends datagrams at so short intervals that so many are under way at once over one link.
func DatagramsInFlight() Work {
	w := Work{Name: "UDP one way, by packets in flight", Per: "datagram", Times: 50_000, Shown: CPUTime}
	for _, inFlight := range []int{1, 10, 100, 1000, 10_000} {
		run := paced(simulatedDatagrams(sim, quiet()), latency/time.Duration(inFlight))
		w.Contenders = append(w.Contenders, Contender{numbered(sim, inFlight, "in flight"), run})
	}
	return w
}

// paced sends a datagram at each interval, to a port whose owner reads them as they arrive.
func paced(p datagrams, interval time.Duration) func(n int) Sample {
	return func(n int) (s Sample) {
		p.open(2, func(ports []port) {
			var reader sync.WaitGroup
			reader.Go(ports[1].drain)
			s = measure(n, func() {
				buf := make([]byte, size)
				for range n {
					check(ports[0].send(buf))
					time.Sleep(interval)
				}
				time.Sleep(2 * latency)
			})
			ports[1].close()
			reader.Wait()
		})
		return s
	}
}

// IdleDay lets a virtual day pass while nothing is sent over open connections, or, with peers that have none,
// between open sockets.
func IdleDay() Work {
	w := Work{Name: "idle virtual day, open connections", Per: "day", Times: 100, Shown: CPUTime}
	for _, hosts := range []int{10, 100, 1000, 10_000} {
		w.Contenders = append(w.Contenders, Contender{numbered(sim, hosts, "hosts"), idle(simulatedFleet(sim, quiet()), hosts)})
	}
	w.Contenders = append(w.Contenders,
		Contender{numbered("pion vnet", 1000, "sockets"), idle(pion("pion vnet", latency), 1000)},
		Contender{numbered("marcopolo simnet", 1000, "sockets"), idle(marcoPolo("marcopolo simnet"), 1000)},
	)
	return w
}

// idle lets days pass.
func idle(p datagrams, hosts int) func(days int) Sample {
	return func(days int) (s Sample) {
		p.open(hosts, func([]port) {
			time.Sleep(time.Minute)
			s = measure(days, func() { time.Sleep(time.Duration(days) * 24 * time.Hour) })
		})
		return s
	}
}
