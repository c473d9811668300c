package bench

import (
	"io"
	"net"
	"sync"
	"time"
)

// size is that of a message, in bytes.
const size = 64

// warmUp is how often ping-pongs are played before they are measured.
const warmUp = 100

// StreamPingPong sends 64 bytes over a stream, and back.
func StreamPingPong() Work {
	return Work{
		Name: "stream ping-pong, 1 ms latency", Per: "round trip", Times: 20_000, Shown: CPUTime,
		Contenders: []Contender{
			{"net.Pipe", streamPingPong(pipe())},
			{"net.Pipe in a bubble", streamPingPong(bubbled(pipe()))},
			{"timers alone", timerPingPong(false)},
			{"timers, in a select", timerPingPong(true)},
			{"timers and a relay", relayedPingPong},
			{sim, streamPingPong(simulated(sim, quiet()))},
			{"bufconn", streamPingPong(buffered())},
			{"loopback", streamPingPong(loopback())},
		},
	}
}

// StreamPingPongLossy is the same while one packet in a hundred is lost.
func StreamPingPongLossy() Work {
	lossy := quiet()
	lossy.Link.Loss = 0.01
	return Work{
		Name: "stream ping-pong, 1 % loss", Per: "round trip", Times: 20_000, Shown: CPUTime,
		Contenders: []Contender{
			{"net.Pipe", streamPingPong(pipe())},
			{sim, streamPingPong(simulated(sim, lossy))},
		},
	}
}

// TracedPingPong tells what the trace costs.
func TracedPingPong() Work {
	off, on, payload := quiet(), quiet(), quiet()
	on.TraceLimit = 0
	payload.TraceLimit, payload.TracePayload = 0, true
	return Work{
		Name: "stream ping-pong, traced", Per: "round trip", Times: 20_000, Shown: CPUTime,
		Contenders: []Contender{
			{sim + ", no events retained", streamPingPong(simulated(sim, off))},
			{sim, streamPingPong(simulated(sim, on))},
			{sim + ", payload hashed", streamPingPong(simulated(sim, payload))},
		},
	}
}

// DatagramPingPong sends 64 bytes in a datagram, and back.
func DatagramPingPong() Work {
	return Work{
		Name: "UDP ping-pong, 1 ms latency", Per: "round trip", Times: 20_000, Shown: CPUTime,
		Contenders: []Contender{
			{"net.Pipe", datagramPingPong(pipedDatagrams())},
			{sim, datagramPingPong(simulatedDatagrams(sim, quiet()))},
			{"pion vnet", datagramPingPong(pion("pion vnet", latency))},
			{"pion vnet, no latency", datagramPingPong(pion("pion vnet", 0))},
			{"marcopolo simnet", datagramPingPong(marcoPolo("marcopolo simnet"))},
			{"loopback", datagramPingPong(loopbackDatagrams())},
		},
	}
}

// streamPingPong plays over a stream.
func streamPingPong(p streams) func(n int) Sample {
	return func(n int) (s Sample) {
		p.pair(func(client, server net.Conn) {
			var wg sync.WaitGroup
			wg.Go(func() { echo(server) })
			trips(client, warmUp)
			s = measure(n, func() { trips(client, n) })
			client.Close()
			wg.Wait()
		})
		return s
	}
}

// trips makes so many round trips.
func trips(c net.Conn, n int) {
	buf := make([]byte, size)
	for range n {
		must(c.Write(buf))
		must(io.ReadFull(c, buf))
	}
}

// echo sends back what it receives, for as long as anything comes.
func echo(c net.Conn) {
	buf := make([]byte, size)
	for {
		if _, err := io.ReadFull(c, buf); err != nil {
			return
		}
		must(c.Write(buf))
	}
}

// datagramPingPong plays with datagrams.
func datagramPingPong(p datagrams) func(n int) Sample {
	return func(n int) (s Sample) {
		p.open(2, func(ports []port) {
			var wg sync.WaitGroup
			wg.Go(func() { ports[1].echo() })
			ports[0].trips(warmUp)
			s = measure(n, func() { ports[0].trips(n) })
			ports[1].close()
			wg.Wait()
		})
		return s
	}
}

func (p port) trips(n int) {
	buf := make([]byte, size)
	for range n {
		check(p.send(buf))
		must(p.receive(buf))
	}
}

func (p port) echo() {
	buf := make([]byte, size)
	for {
		n, err := p.receive(buf)
		if err != nil {
			return
		}
		check(p.send(buf[:n]))
	}
}

// timerPingPong is the least that a round trip with latency can cost in a bubble: two goroutines in turn set the
// timer that the other one waits for. This is two timers and four switches of goroutines, because the bubble's own
// goroutine runs, too, each time that virtual time moves. With selects they wait for something else besides, as a
// reader does, who can also be woken by a deadline or a close.
func timerPingPong(selects bool) func(n int) Sample {
	wait := func(timer *time.Timer, _ chan struct{}) { <-timer.C }
	if selects {
		wait = func(timer *time.Timer, token chan struct{}) {
			select {
			case <-timer.C:
			case <-token:
			}
		}
	}
	return func(n int) (s Sample) {
		inBubble(func() {
			client, server := time.NewTimer(time.Hour), time.NewTimer(time.Hour)
			var wg sync.WaitGroup
			wg.Go(func() {
				token := make(chan struct{}, 1)
				for range n {
					wait(server, token)
					client.Reset(latency)
				}
			})
			s = measure(n, func() {
				token := make(chan struct{}, 1)
				for range n {
					server.Reset(latency)
					wait(client, token)
				}
			})
			wg.Wait()
		})
		return s
	}
}

// relayedPingPong is the same with a goroutine between the two that waits for the timers, as a network has it whose
// scheduler is a goroutine: six switches.
func relayedPingPong(n int) (s Sample) {
	inBubble(func() {
		timer, client, server := time.NewTimer(time.Hour), make(chan struct{}), make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for range n {
				<-timer.C
				server <- struct{}{}
				<-timer.C
				client <- struct{}{}
			}
			close(server)
		})
		wg.Go(func() {
			for range server {
				timer.Reset(latency)
			}
		})
		s = measure(n, func() {
			for range n {
				timer.Reset(latency)
				<-client
			}
		})
		wg.Wait()
	})
	return s
}
