package bench

import (
	"io"
	"net"
	"sync"
)

// StreamBulk sends much over a stream in one direction.
func StreamBulk() Work { return streamBulk("stream bulk, 32 KiB writes", "32 KiB", 32<<10, 5_000) }

// StreamBulkLarge is the same by large writes.
func StreamBulkLarge() Work { return streamBulk("stream bulk, 1 MiB writes", "1 MiB", 1<<20, 200) }

func streamBulk(name, per string, size, times int) Work {
	return Work{
		Name: name, Per: per, Times: times, Shown: Throughput,
		Contenders: []Contender{
			{"net.Pipe", sendBulk(pipe(), size)},
			{sim, sendBulk(simulated(sim, quiet()), size)},
			{"bufconn", sendBulk(buffered(), size)},
			{"loopback", sendBulk(loopback(), size)},
		},
	}
}

// sendBulk writes so many bytes n times, and waits until all have been read.
func sendBulk(p streams, size int) func(n int) Sample {
	return func(n int) (s Sample) {
		p.pair(func(client, server net.Conn) {
			s = measure(n, func() {
				var wg sync.WaitGroup
				wg.Go(func() { readBytes(server, size*n) })
				buf := make([]byte, size)
				for range n {
					must(client.Write(buf))
				}
				wg.Wait()
			})
		})
		return s
	}
}

// readBytes reads so many bytes, 32 KiB at a time, as io.Copy does.
func readBytes(c net.Conn, n int) {
	buf := make([]byte, 32<<10)
	for n > 0 {
		got, err := c.Read(buf)
		if err != nil {
			panic(err)
		}
		n -= got
	}
}

const (
	large = 1400 // bytes of a large datagram
	burst = 32   // datagrams that are under way at once
)

// DatagramBulk sends large datagrams in one direction, of which none may be lost: each burst is answered before the
// next one.
func DatagramBulk() Work {
	return Work{
		Name: "UDP bulk, 1400 B, none dropped", Per: "datagram", Times: 100 * burst, Shown: CPUTime,
		Contenders: []Contender{
			{"net.Pipe", datagramBulk(pipedDatagrams())},
			{sim, datagramBulk(simulatedDatagrams(sim, quiet()))},
			{"pion vnet", datagramBulk(pion("pion vnet", latency))},
			{"marcopolo simnet", datagramBulk(marcoPolo("marcopolo simnet"))},
			{"loopback", datagramBulk(loopbackDatagrams())},
		},
	}
}

// datagramBulk sends bursts; it ends only if nothing is lost.
func datagramBulk(p datagrams) func(n int) Sample {
	return func(n int) (s Sample) {
		bursts := max(1, n/burst)
		p.open(2, func(ports []port) {
			var wg sync.WaitGroup
			wg.Go(func() { ports[1].acknowledge(bursts + 1) })
			ports[0].burst()
			s = measure(bursts*burst, func() {
				for range bursts {
					ports[0].burst()
				}
			})
			wg.Wait()
		})
		return s
	}
}

// burst sends a burst, and waits for the answer.
func (p port) burst() {
	buf := make([]byte, large)
	for range burst {
		check(p.send(buf))
	}
	must(p.receive(buf))
}

// acknowledge receives so many bursts, and answers each.
func (p port) acknowledge(bursts int) {
	buf := make([]byte, large)
	for range bursts {
		for range burst {
			if n := must(p.receive(buf)); n != large {
				panic(io.ErrShortBuffer)
			}
		}
		check(p.send(buf[:1]))
	}
}
