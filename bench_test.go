package gosimnet_test

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

// inBubble runs f in a bubble, and reports the real time that it took. Benchmarks' own
// timers would read the bubble's clock there.
func inBubble(b *testing.B, f func()) time.Duration {
	b.Helper()
	start := time.Now()
	ran := false
	synctest.Test(new(testing.T), func(*testing.T) { f(); ran = true })
	if !ran {
		b.Fatal("the bubble failed")
	}
	return time.Since(start)
}

func pingPong(c net.Conn, n int) {
	buf := make([]byte, 64)
	for range n {
		if _, err := c.Write(buf); err != nil {
			panic(err)
		}
		if _, err := io.ReadFull(c, buf); err != nil {
			panic(err)
		}
	}
}

func echo64(c net.Conn) {
	buf := make([]byte, 64)
	for {
		if _, err := io.ReadFull(c, buf); err != nil {
			return
		}
		if _, err := c.Write(buf); err != nil {
			return
		}
	}
}

// pipePingPong is what others are measured against.
func pipePingPong(n int) time.Duration {
	a, c := net.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() { echo64(c) })
	start := time.Now()
	pingPong(a, n)
	took := time.Since(start)
	a.Close()
	wg.Wait()
	return took
}

func pair(s *gosimnet.Simnet, network, address string) (client, server net.Conn) {
	l, err := s.Host("b").Listen(network, address)
	if err != nil {
		panic(err)
	}
	client, err = s.Host("a").Dial(network, "b"+address)
	if err != nil {
		panic(err)
	}
	if server, err = l.Accept(); err != nil {
		panic(err)
	}
	l.Close()
	return client, server
}

func simPingPong(b *testing.B, n int, cfg gosimnet.SimNetConfig) time.Duration {
	return inBubble(b, func() {
		s, err := gosimnet.New(&cfg)
		if err != nil {
			panic(err)
		}
		defer s.Close()
		c, server := pair(s, "tcp", ":80")
		var wg sync.WaitGroup
		wg.Go(func() { echo64(server) })
		pingPong(c, n)
		c.Close()
		wg.Wait()
	})
}

// against reports how many times longer f takes than g, measured alternately.
func against(b *testing.B, f, g func(n int) time.Duration) {
	var tf, tg time.Duration
	const rounds = 5
	n := max(1, b.N/rounds)
	for range rounds {
		tg += g(n)
		tf += f(n)
	}
	b.ReportMetric(float64(tf)/float64(tg), "×pipe")
	b.ReportMetric(float64(tf)/float64(rounds*n), "ns/op")
}

func BenchmarkPingPong(b *testing.B) {
	cfg := gosimnet.SimNetConfig{MinHop: time.Millisecond, TraceLimit: -1}
	against(b, func(n int) time.Duration { return simPingPong(b, n, cfg) }, pipePingPong)
}

func BenchmarkPingPongTraced(b *testing.B) {
	cfg := gosimnet.SimNetConfig{MinHop: time.Millisecond}
	against(b, func(n int) time.Duration { return simPingPong(b, n, cfg) }, pipePingPong)
}

func pipeBulk(n int) time.Duration {
	a, c := net.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() {
		buf := make([]byte, 32<<10)
		for {
			if _, err := c.Read(buf); err != nil {
				return
			}
		}
	})
	start := time.Now()
	buf := make([]byte, 32<<10)
	for range n {
		a.Write(buf)
	}
	took := time.Since(start)
	a.Close()
	wg.Wait()
	return took
}

func BenchmarkBulk(b *testing.B) {
	b.SetBytes(32 << 10)
	against(b, func(n int) time.Duration {
		return inBubble(b, func() {
			s, _ := gosimnet.New(&gosimnet.SimNetConfig{MinHop: time.Millisecond, TraceLimit: -1})
			defer s.Close()
			c, server := pair(s, "tcp", ":80")
			var wg sync.WaitGroup
			wg.Go(func() {
				buf := make([]byte, 32<<10)
				for {
					if _, err := server.Read(buf); err != nil {
						return
					}
				}
			})
			buf := make([]byte, 32<<10)
			for range n {
				if _, err := c.Write(buf); err != nil {
					panic(err)
				}
			}
			c.Close()
			wg.Wait()
		})
	}, pipeBulk)
}

func BenchmarkDial(b *testing.B) {
	took := inBubble(b, func() {
		s, _ := gosimnet.New(&gosimnet.SimNetConfig{MinHop: time.Millisecond, TraceLimit: -1})
		defer s.Close()
		l, _ := s.Host("b").Listen("tcp", ":80")
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Close()
			}
		}()
		a := s.Host("a")
		for range b.N {
			c, err := a.Dial("tcp", "b:80")
			if err != nil {
				panic(err)
			}
			c.Close()
		}
	})
	b.ReportMetric(float64(took)/float64(b.N), "ns/op")
}

func BenchmarkIdleDay(b *testing.B) {
	const hosts = 1000
	var day time.Duration
	for range b.N {
		inBubble(b, func() {
			s, _ := gosimnet.New(nil)
			defer s.Close()
			l, _ := s.Host("server").Listen("tcp", ":80")
			for i := range hosts {
				if _, err := s.Host(fmt.Sprint("h", i)).Dial("tcp", "server:80"); err != nil {
					panic(err)
				}
				l.Accept()
			}
			real := realNow()
			time.Sleep(24 * time.Hour)
			day += realNow() - real
		})
	}
	b.ReportMetric(float64(day)/float64(b.N), "ns/day")
}

// chatting is the real time in which hosts send a message a second each, for so many seconds, all at one instant or at instants of their own.
type chatting func(cfg *gosimnet.SimNetConfig, hosts, seconds int, apart bool) time.Duration

// BenchmarkChatter is the real time of a message, among hosts that send one a second each for a minute, all at one instant or at instants of
// their own; to connect them does not count. For comparison it says what the hosts' sleeping alone costs.
func BenchmarkChatter(b *testing.B) { benchmarkChatter(b, chatter) }

// benchmarkChatter measures what chatters among few hosts and among many.
func benchmarkChatter(b *testing.B, chatter chatting) {
	for _, hosts := range []int{10, 1000, 10000} {
		b.Run(fmt.Sprint(hosts, " at once"), func(b *testing.B) { measureChatter(b, hosts, false, chatter, nil) })
		b.Run(fmt.Sprint(hosts, " apart"), func(b *testing.B) { measureChatter(b, hosts, true, chatter, nil) })
	}
	off := &gosimnet.SimNetConfig{BarrierOff: true}
	b.Run("1000 at once, BarrierOff", func(b *testing.B) { measureChatter(b, 1000, false, chatter, off) })
}

func measureChatter(b *testing.B, hosts int, apart bool, chatter chatting, cfg *gosimnet.SimNetConfig) {
	const seconds = 60
	rounds := max(1, 1000/hosts)
	var took, asleep time.Duration
	for range b.N * rounds {
		inBubble(b, func() { took += chatter(cfg, hosts, seconds, apart) })
		inBubble(b, func() { asleep += sleepers(hosts, seconds, apart) })
	}
	messages := float64(b.N * rounds * hosts * seconds)
	b.ReportMetric(float64(took)/messages, "ns/msg")
	b.ReportMetric(float64(asleep)/messages, "ns/sleep")
	b.ReportMetric(float64(took)/float64(asleep), "×sleep")
	b.ReportMetric(0, "ns/op")
}

// chatter is chatting over streams to one server.
func chatter(cfg *gosimnet.SimNetConfig, hosts, seconds int, apart bool) time.Duration {
	s, _ := gosimnet.New(cfg)
	defer s.Close()
	l, _ := s.Host("server").Listen("tcp", ":80")
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				buf := make([]byte, 64)
				for {
					if _, err := io.ReadFull(c, buf); err != nil {
						return
					}
				}
			}()
		}
	}()
	conns := make([]net.Conn, hosts)
	for i := range conns {
		c, err := s.Host(fmt.Sprint("h", i)).Dial("tcp", "server:80")
		if err != nil {
			panic(err)
		}
		conns[i] = c
	}
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	return each(hosts, seconds, apart, func(i int, buf []byte) { conns[i].Write(buf) })
}

// sleepers is chatter without messages.
func sleepers(hosts, seconds int, apart bool) time.Duration {
	return each(hosts, seconds, apart, func(int, []byte) {})
}

// each lets goroutines do something a second each, all at once or spread over the second, and reports how long that takes.
func each(n, seconds int, apart bool, do func(i int, buf []byte)) time.Duration {
	before := wallNow()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			buf := make([]byte, 64)
			if apart {
				time.Sleep(time.Duration(i) * time.Second / time.Duration(n))
			}
			for range seconds {
				time.Sleep(time.Second)
				do(i, buf)
			}
			time.Sleep(time.Second)
		})
	}
	wg.Wait()
	return wallNow() - before
}

func BenchmarkMemory(b *testing.B) {
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const n = 10000
	var perHost, perConn float64
	goroutines := 0
	for range b.N {
		inBubble(b, func() {
			s, _ := gosimnet.New(nil)
			defer s.Close()
			before := heap()
			g := runtime.NumGoroutine()
			for i := range n {
				s.Host(fmt.Sprint("h", i))
			}
			made := heap()
			l, _ := s.Host("h0").Listen("tcp", ":80")
			conns := make([]net.Conn, 0, 2*n)
			for i := range n {
				c, err := s.Host(fmt.Sprint("h", i)).Dial("tcp", "h0:80")
				if err != nil {
					panic(err)
				}
				d, _ := l.Accept()
				conns = append(conns, c, d)
			}
			time.Sleep(time.Second)
			perHost += float64(made-before) / n
			perConn += float64(heap()-made) / n
			goroutines += runtime.NumGoroutine() - g
			runtime.KeepAlive(conns)
		})
	}
	b.ReportMetric(perHost/float64(b.N), "B/host")
	b.ReportMetric(perConn/float64(b.N), "B/conn")
	b.ReportMetric(float64(goroutines)/float64(b.N), "goroutines")
}
