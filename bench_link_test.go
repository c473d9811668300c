package gosimnet_test

import (
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/glycerine/gosimnet"
)

// used is the processor time that f takes.
func used(f func()) time.Duration {
	start := realNow()
	f()
	return realNow() - start
}

// ratio reports how many times more processor time f takes than g for n of what they do, measured alternately, and how much it is for one.
func ratio(b *testing.B, unit string, f, g func(n int)) {
	const rounds = 5
	n := max(1, b.N/rounds)
	var tf, tg time.Duration
	for range rounds {
		tg += used(func() { g(n) })
		tf += used(func() { f(n) })
	}
	b.ReportMetric(float64(tf)/float64(tg), unit)
	b.ReportMetric(float64(tf)/float64(rounds*n), "cpu-ns/op")
	b.ReportMetric(0, "ns/op")
}

func BenchmarkDatagramPingPong(b *testing.B) {
	cfg := gosimnet.SimNetConfig{MinHop: time.Millisecond, TraceLimit: -1}
	ratio(b, "×pipe", func(n int) {
		inBubble(b, func() {
			s, err := gosimnet.New(&cfg)
			if err != nil {
				panic(err)
			}
			defer s.Close()
			server, err := s.Host("b").ListenPacket("udp", ":7")
			if err != nil {
				panic(err)
			}
			client, err := s.Host("a").Dial("udp", "b:7")
			if err != nil {
				panic(err)
			}
			var wg sync.WaitGroup
			wg.Go(func() { echo64Datagrams(server.(*gosimnet.PacketConn)) })
			pingPong(client, n)
			server.Close()
			wg.Wait()
		})
	}, func(n int) { pipePingPong(n) })
}

func echo64Datagrams(c *gosimnet.PacketConn) {
	buf := make([]byte, 64)
	for {
		n, from, err := c.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		if _, err := c.WriteToUDPAddrPort(buf[:n], from); err != nil {
			return
		}
	}
}

// BenchmarkDatagramChatter is the same of a datagram to the next host.
func BenchmarkDatagramChatter(b *testing.B) { benchmarkChatter(b, datagramChatter) }

// datagramChatter is chatting by datagrams, of each host to the next.
func datagramChatter(cfg *gosimnet.SimNetConfig, hosts, seconds int, apart bool) time.Duration {
	s, err := gosimnet.New(cfg)
	if err != nil {
		panic(err)
	}
	defer s.Close()
	sockets := make([]*gosimnet.PacketConn, hosts)
	addrs := make([]*net.UDPAddr, hosts)
	for i := range sockets {
		h := s.Host(fmt.Sprint("h", i))
		c, err := h.ListenPacket("udp", ":7")
		if err != nil {
			panic(err)
		}
		sockets[i], addrs[i] = c.(*gosimnet.PacketConn), udpAddr(h.Addrs()[0].AsSlice(), 7)
	}
	var readers sync.WaitGroup
	for _, c := range sockets {
		readers.Go(func() {
			buf := make([]byte, 64)
			for {
				if _, _, err := c.ReadFromUDPAddrPort(buf); err != nil {
					return
				}
			}
		})
	}
	took := each(hosts, seconds, apart, func(i int, buf []byte) { sockets[i].WriteTo(buf, addrs[(i+1)%hosts]) })
	for _, c := range sockets {
		c.Close()
	}
	readers.Wait()
	return took
}

// BenchmarkLimitedLink compares a link with a rate, a queue and loss to a plain one.
func BenchmarkLimitedLink(b *testing.B) {
	limited := gosimnet.LinkConfig{Latency: gosimnet.Constant(time.Millisecond), BitsPerSecond: gosimnet.Mbps100, QueueBytes: 64 << 10, Loss: 0.01}
	plain := gosimnet.LinkConfig{Latency: gosimnet.Constant(time.Millisecond)}
	b.Run("datagrams", func(b *testing.B) {
		ratio(b, "×plain", func(n int) { sendOneWay(b, limited, n) }, func(n int) { sendOneWay(b, plain, n) })
	})
	b.Run("stream", func(b *testing.B) {
		limited := limited
		limited.Loss = 1e-4 // else the stream sends mostly once more, and waits
		pp := func(cfg gosimnet.LinkConfig) func(n int) {
			return func(n int) { simPingPong(b, n, gosimnet.SimNetConfig{Link: cfg, TraceLimit: -1}) }
		}
		ratio(b, "×plain", pp(limited), pp(plain))
	})
}

// sendOneWay sends n datagrams, faster than they can leave for a while and then slower.
func sendOneWay(b *testing.B, cfg gosimnet.LinkConfig, n int) {
	inBubble(b, func() {
		s, err := gosimnet.New(&gosimnet.SimNetConfig{Link: cfg, TraceLimit: -1})
		if err != nil {
			panic(err)
		}
		defer s.Close()
		c, err := s.Host("b").ListenPacket("udp", ":7")
		if err != nil {
			panic(err)
		}
		sink := c.(*gosimnet.PacketConn)
		var wg sync.WaitGroup
		wg.Go(func() {
			buf := make([]byte, 64)
			for {
				if _, _, err := sink.ReadFromUDPAddrPort(buf); err != nil {
					return
				}
			}
		})
		client, err := s.Host("a").Dial("udp", "b:7")
		if err != nil {
			panic(err)
		}
		buf := make([]byte, 64) // 5.12 µs at 100 Mbit/s
		for i := range n {
			client.Write(buf)
			time.Sleep(time.Duration(1+i%12) * time.Microsecond)
		}
		time.Sleep(time.Second)
		sink.Close()
		wg.Wait()
	})
}
