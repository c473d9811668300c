package gosimnet_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

// slow is a link on which a packet of 125 bytes takes a millisecond on the wire, and then 10 ms.
func slow(queue int, o gosimnet.Overflow) gosimnet.LinkConfig {
	return gosimnet.LinkConfig{Latency: gosimnet.Constant(10 * ms), BitsPerSecond: 1e6, QueueBytes: queue, Overflow: o}
}

// arrivals are the numbers and times of those that are wanted, as "0@11ms 1@12ms".
func arrivals(as []arrival) string {
	var parts []string
	for _, a := range as {
		parts = append(parts, fmt.Sprintf("%d@%v", a.n, a.at.Round(us)))
	}
	return strings.Join(parts, " ")
}

func wantArrivals(t *testing.T, what string, as []arrival, want string) {
	t.Helper()
	if got := arrivals(as); got != want {
		t.Errorf("%s:\n%s, want\n%s", what, got, want)
	}
}

func TestSerializationDelayIsExact(t *testing.T) {
	for _, c := range []struct {
		rate int64
		size int
		want time.Duration
	}{
		{1e6, 125, ms},
		{1e6, 1472, 11776 * us},
		{gosimnet.Mbps10, 1000, 800 * us},
		{gosimnet.Mbps100, 1000, 80 * us},
		{gosimnet.Gbps1, 1000, 8 * us},
		{gosimnet.Gbps10, 1000, 800},
		{gosimnet.Gbps25, 1000, 320},
		{gosimnet.Gbps40, 1000, 200},
		{gosimnet.Gbps100, 1000, 80},
		{9600, 12, 10 * ms},
		{1, 10, 80 * time.Second},
		{3, 30, 80 * time.Second},
	} {
		as, _ := overLink(t, 1, gosimnet.LinkConfig{Latency: gosimnet.Constant(5 * ms), BitsPerSecond: c.rate}, 3, c.size, 0, time.Hour)
		for i, a := range as {
			if want := 5*ms + time.Duration(i+1)*c.want; (a.took() - want).Abs() > 5 {
				t.Errorf("at %d bit/s packet %d of %d bytes took %v, want %v", c.rate, i, c.size, a.took(), want)
			}
		}
	}
}

func TestLongRunsDoNotDrift(t *testing.T) {
	statistics(t)
	const rate, size = 7e6, 4 // 4571 3/7 ns each
	as, _ := overLink(t, 1, gosimnet.LinkConfig{Latency: gosimnet.Constant(ms), BitsPerSecond: rate, QueueBytes: 1 << 20}, many, size, 0, time.Second)
	for _, a := range as {
		if want := ms + time.Duration((a.n+1)*size*8*1e9/rate); (a.took() - want).Abs() > 5 {
			t.Fatalf("packet %d took %v, want %v", a.n, a.took(), want)
		}
	}
	// A queue in which places become free drifts no more.
	as, _ = overLink(t, 1, gosimnet.LinkConfig{Latency: gosimnet.Constant(ms), BitsPerSecond: rate, QueueBytes: 100 * size, Overflow: gosimnet.DropRandom}, 20_000, size, 3*us, time.Second)
	for i, a := range as {
		if want := ms + time.Duration((i+1)*size*8*1e9/rate); (a.at - want).Abs() > 5 {
			t.Fatalf("arrival %d came at %v, want %v", i, a.at, want)
		}
	}
}

// Packets that come at random, and each take the same time, wait as Pollaczek's and Khinchin's formula says.
func TestUtilisationAndWaiting(t *testing.T) {
	statistics(t)
	for _, c := range []struct{ load, waits, within float64 }{{0.5, 0.5, 0.05}, {0.9, 4.5, 0.1}} {
		as, stats := poisson(t, c.load, 1<<20)
		if len(as) != many {
			t.Fatalf("load %v: %d of %d arrived", c.load, len(as), many)
		}
		near(t, fmt.Sprint("utilisation at ", c.load), many*1e-3/as[len(as)-1].at.Seconds(), c.load, 0.01)
		near(t, fmt.Sprint("waiting at ", c.load, ", in services"), (mean(delays(as))-0.011)/1e-3, c.waits, c.within)
		if stats.QueuePeak < 125*5 || stats.QueuePeak > 125*200 {
			t.Errorf("load %v: up to %d bytes have waited", c.load, stats.QueuePeak)
		}
	}
	const room = 20 * 125
	as, stats := poisson(t, 1.5, room)
	near(t, "delivered at 1.5", float64(len(as))/many, 1/1.5, 0.01)
	near(t, "utilisation at 1.5", float64(len(as))*1e-3/as[len(as)-1].at.Seconds(), 1, 0.001)
	if got := stats.LostTo[gosimnet.CauseQueue].Packets; got != uint64(many-len(as)) || stats.QueuePeak != room {
		t.Errorf("%d lost at the queue, %d do not arrive; up to %d bytes have waited, want %d", got, many-len(as), stats.QueuePeak, room)
	}
	if ds := delays(as); ds[len(ds)-1] > 0.010+0.021+1e-6 || mean(ds) < 0.010+0.015 {
		t.Errorf("the queue was full, but packets took %v s on average, %v at most", mean(ds), ds[len(ds)-1])
	}
}

// poisson sends packets of a millisecond each at random instants, at a part of the rate.
func poisson(t *testing.T, load float64, queue int) (as []arrival, stats gosimnet.LinkStats) {
	t.Helper()
	dice := rand.New(rand.NewPCG(1, 2))
	synctest.Test(t, func(t *testing.T) {
		s := twoHosts(t, slow(queue, gosimnet.DropNewest))
		as = volleyAt(t, s, "a", "b", many, 125, func() time.Duration { return time.Duration(dice.ExpFloat64() / load * float64(ms)) }, time.Minute)
		stats = statsOf(t, s, "a", "b")
	})
	return as, stats
}

func TestFullQueuesDropTheNewest(t *testing.T) {
	as, stats := overLink(t, 1, slow(3*125, gosimnet.DropNewest), 10, 125, 0, time.Second)
	wantArrivals(t, "one on the wire, three in the queue", as, "0@11ms 1@12ms 2@13ms 3@14ms")
	if lost := stats.LostTo[gosimnet.CauseQueue]; lost.Packets != 6 || lost.Bytes != 6*125 || stats.QueuePeak != 375 {
		t.Errorf("lost %+v, peak %d", lost, stats.QueuePeak)
	}
	as, _ = overLink(t, 1, slow(3*125, gosimnet.DropNewest), 10, 125, 600*us, time.Second)
	wantArrivals(t, "a place is free again every millisecond", as, "0@11ms 1@12ms 2@13ms 3@14ms 4@15ms 5@16ms 6@17ms 7@18ms 9@19ms")
}

func TestFullQueuesDropTheOldest(t *testing.T) {
	as, stats := overLink(t, 1, slow(3*125, gosimnet.DropOldest), 10, 125, 0, time.Second)
	wantArrivals(t, "those that came last move up", as, "0@11ms 7@12ms 8@13ms 9@14ms")
	if lost := stats.LostTo[gosimnet.CauseQueue]; lost.Packets != 6 || stats.QueuePeak != 375 {
		t.Errorf("lost %+v, peak %d", lost, stats.QueuePeak)
	}
}

func TestALargePacketTakesThePlaceOfSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := twoHosts(t, slow(3*125, gosimnet.DropOldest))
		wantArrivals(t, "two small ones", sizes(t, s, 125, 125, 125, 125, 250), "0@11ms 3@12ms 4@14ms")
	})
	for _, o := range []gosimnet.Overflow{gosimnet.DropNewest, gosimnet.DropOldest, gosimnet.DropRandom} {
		synctest.Test(t, func(t *testing.T) {
			s := twoHosts(t, slow(3*125, o))
			wantArrivals(t, "what fits nowhere evicts nobody", sizes(t, s, 125, 125, 125, 500), "0@11ms 1@12ms 2@13ms")
		})
		synctest.Test(t, func(t *testing.T) {
			s := twoHosts(t, slow(3*125, o))
			wantArrivals(t, "a free wire takes everything", sizes(t, s, 500, 125), "0@14ms 1@15ms")
		})
	}
}

// sizes sends packets of some sizes from a to b at once, and lists those that arrive.
func sizes(t *testing.T, s *gosimnet.Simnet, sizes ...int) (as []arrival) {
	t.Helper()
	sink := listenUDP(t, s, "b", ":7")
	from := listenUDP(t, s, "a", ":0")
	dst := udpAddr(s.Host("b").Addrs()[0].AsSlice(), 7)
	start := time.Now()
	for i, size := range sizes {
		b := make([]byte, size)
		b[0] = byte(i)
		if _, err := from.WriteTo(b, dst); err != nil {
			t.Fatal(err)
		}
	}
	sink.SetReadDeadline(time.Now().Add(time.Second))
	buf := make([]byte, 1500)
	for {
		if _, _, err := sink.ReadFrom(buf); err != nil {
			return as
		}
		as = append(as, arrival{int(buf[0]), 0, time.Since(start)})
	}
}

// A packet that waits survives each later one with probability 3/4 if three wait and one comes.
func TestFullQueuesDropARandomOne(t *testing.T) {
	const rounds = 5000
	survived := make([]float64, 8)
	synctest.Test(t, func(t *testing.T) {
		s := newNet(t, &gosimnet.SimNetConfig{Link: slow(3*125, gosimnet.DropRandom), TraceLimit: -1})
		s.Host("a")
		s.Host("b")
		sink := listenUDP(t, s, "b", ":7")
		from := listenUDP(t, s, "a", ":0")
		dst := udpAddr(s.Host("b").Addrs()[0].AsSlice(), 7)
		b := make([]byte, 125)
		for range rounds {
			start := time.Now()
			for i := range survived {
				b[0] = byte(i)
				from.WriteTo(b, dst)
			}
			last := -1
			for k := range 4 {
				sink.ReadFrom(b)
				if at := time.Since(start); int(b[0]) <= last || !around(at, time.Duration(11+k)*ms) {
					t.Fatalf("packet %d came after %d, at %v", b[0], last, at)
				}
				last = int(b[0])
				survived[last]++
			}
			time.Sleep(ms)
		}
	})
	if survived[0] != rounds {
		t.Errorf("the packet on the wire survived %v of %d times", survived[0], rounds)
	}
	for i := 1; i < len(survived); i++ {
		later := len(survived) - max(i, 4) // packets that find the queue full while i is there, itself included
		near(t, fmt.Sprint("packet ", i, " survives"), survived[i]/rounds, math.Pow(0.75, float64(later)), 0.07)
	}
}

// sender sends datagrams from a host to others, a microsecond apart.
type sender struct {
	t      *testing.T
	s      *gosimnet.Simnet
	socket *gosimnet.PacketConn
}

func newSender(t *testing.T, s *gosimnet.Simnet, host string) *sender {
	return &sender{t, s, listenUDP(t, s, host, ":9")}
}

func (o *sender) send(size int, to ...string) {
	o.t.Helper()
	for _, name := range to {
		if _, err := o.socket.WriteTo(make([]byte, size), udpAddr(o.s.Host(name).Addrs()[0].AsSlice(), 7)); err != nil {
			o.t.Fatal(err)
		}
		time.Sleep(us)
	}
}

// delivered lists what has arrived so far, by the trace, as "a→b@11ms a→c@12ms", with times since the first was sent.
func delivered(s *gosimnet.Simnet) string {
	var parts []string
	var start time.Time
	for e := range s.Trace() {
		if start.IsZero() && e.Kind == gosimnet.EventSend {
			start = e.Time
		}
		if e.Kind == gosimnet.EventDeliver {
			parts = append(parts, fmt.Sprintf("%s→%s@%v", e.From, e.To, e.Time.Sub(start).Round(10*us)))
		}
	}
	return strings.Join(parts, " ")
}

func wantDelivered(t *testing.T, s *gosimnet.Simnet, what, want string) {
	t.Helper()
	if got := delivered(s); got != want {
		t.Errorf("%s:\n%s, want\n%s", what, got, want)
	}
}

// someHosts is a network of hosts a, b, c and d, 10 ms apart.
func someHosts(t *testing.T) *gosimnet.Simnet {
	t.Helper()
	s := newNet(t, nil)
	for _, h := range []string{"a", "b", "c", "d"} {
		s.Host(h)
	}
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestUplinksAreSharedByAllThatAHostSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := someHosts(t)
		must(t, s.SetUplink("a", gosimnet.LinkConfig{BitsPerSecond: 1e6, QueueBytes: 500}))
		a, d := newSender(t, s, "a"), newSender(t, s, "d")
		a.send(125, "b", "c", "b", "d", "c", "b", "b")
		d.send(125, "b")
		a.send(125, "a")
		time.Sleep(time.Second)
		wantDelivered(t, s, "the sixth and seventh find the queue full", "a→a@20µs d→b@10.01ms a→b@11ms a→c@12ms a→b@13ms a→d@14ms a→c@15ms")
		if stats := statsOf(t, s, "a", "b"); stats.LostTo[gosimnet.CauseQueue].Packets != 2 {
			t.Errorf("a→b: %v", stats)
		}
		if peer := s.GetSimnetSnapshot().Peermap["a"]; peer.UplinkPeak != 500 || peer.DownlinkPeak != 0 {
			t.Errorf("up to %d bytes have waited, and %d for the downlink", peer.UplinkPeak, peer.DownlinkPeak)
		}
	})
}

func TestDownlinksAreSharedByAllThatAHostReceives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := someHosts(t)
		must(t, s.SetDownlink("b", gosimnet.LinkConfig{BitsPerSecond: 1e6}))
		a, c := newSender(t, s, "a"), newSender(t, s, "c")
		a.send(125, "b", "b", "d")
		c.send(125, "b", "d")
		time.Sleep(time.Second)
		wantDelivered(t, s, "one a millisecond", "a→d@10ms c→d@10ms a→b@11ms a→b@12ms c→b@13ms")
		if peer := s.GetSimnetSnapshot().Peermap["b"]; peer.DownlinkPeak != 250 {
			t.Errorf("up to %d bytes have waited", peer.DownlinkPeak)
		}
	})
}

func TestPacketsCrossUplinkLinkAndDownlinkInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := someHosts(t)
		must(t, s.SetUplink("a", gosimnet.LinkConfig{BitsPerSecond: 1e6}))
		setLink(t, s, "a", "b", gosimnet.LinkConfig{Latency: gosimnet.Constant(20 * ms), BitsPerSecond: 5e5})
		must(t, s.SetDownlink("b", gosimnet.LinkConfig{BitsPerSecond: 2e6}))
		newSender(t, s, "a").send(125, "b", "b")
		time.Sleep(time.Second)
		// The first takes 1 + 2 + 20 + 0.5 ms; the second waits for the link, the slowest.
		wantDelivered(t, s, "two packets", "a→b@23.5ms a→b@25.5ms")
	})
}

func TestLinksWithARateAreSharedByAllFlows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := twoHosts(t, slow(0, gosimnet.DropNewest))
		one := newSender(t, s, "a")
		two := &sender{t, s, listenUDP(t, s, "a", ":10")}
		for range 3 {
			one.send(125, "b")
			two.send(250, "b")
		}
		newSender(t, s, "b").send(125, "a") // the other direction is another link
		time.Sleep(time.Second)
		wantDelivered(t, s, "first come, first served", "a→b@11ms b→a@11.01ms a→b@13ms a→b@14ms a→b@16ms a→b@17ms a→b@19ms")
	})
}

func TestStreamsShareTheRateOfALink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := twoHosts(t, gosimnet.LinkConfig{BitsPerSecond: 8e6, QueueBytes: 1 << 20})
		client, server := streamPair(t, s)
		second, other := streamPair(t, s)
		const size = 1 << 20
		start := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() { client.Write(make([]byte, size)) })
		wg.Go(func() { second.Write(make([]byte, size)) })
		for _, c := range []io.Reader{server, other} {
			wg.Go(func() {
				if _, err := io.ReadFull(c, make([]byte, size)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		near(t, "seconds for 2 MiB at 1 MB/s", time.Since(start).Seconds(), 2*size/1e6, 0.02)
	})
}

func TestANewRateGovernsWhatStillWaits(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(s *gosimnet.Simnet) error
	}{
		{"ten times as fast", "a→b@11ms a→b@11.1ms a→b@11.2ms a→b@11.3ms a→b@11.4ms", func(s *gosimnet.Simnet) error {
			return s.SetLink("a", "b", gosimnet.LinkConfig{BitsPerSecond: 10e6})
		}},
		{"half as fast", "a→b@11ms a→b@13ms a→b@15ms a→b@17ms a→b@19ms", func(s *gosimnet.Simnet) error {
			return s.SetLink("", "b", gosimnet.LinkConfig{BitsPerSecond: 500e3})
		}},
		{"no limit any more", "a→b@11ms a→b@11ms a→b@11ms a→b@11ms a→b@11ms", func(s *gosimnet.Simnet) error {
			return s.SetLink("a", "", gosimnet.LinkConfig{})
		}},
		{"a shorter queue evicts nobody", "a→b@11ms a→b@12ms a→b@13ms a→b@14ms", func(s *gosimnet.Simnet) error {
			return s.SetLink("a", "b", gosimnet.LinkConfig{BitsPerSecond: 1e6, QueueBytes: 1})
		}},
		{"an opportunity every 2 ms", "a→b@11ms a→b@12ms a→b@12ms a→b@12ms a→b@12ms", func(s *gosimnet.Simnet) error {
			tr, err := gosimnet.ParseTrace(strings.NewReader("2\n"))
			if err != nil {
				return err
			}
			return s.SetLink("a", "b", gosimnet.LinkConfig{Trace: tr})
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := twoHosts(t, gosimnet.LinkConfig{BitsPerSecond: 1e6})
			a := newSender(t, s, "a")
			a.send(125, "b", "b", "b", "b")
			time.Sleep(400 * us)
			must(t, c.change(s))
			a.send(125, "b")
			time.Sleep(time.Second)
			wantDelivered(t, s, c.name, c.want)
		})
	}
}

func TestAnUplinkThatIsTakenAwayLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := someHosts(t)
		must(t, s.SetUplink("a", gosimnet.LinkConfig{BitsPerSecond: 1e6}))
		must(t, s.SetDownlink("c", gosimnet.LinkConfig{BitsPerSecond: 1e6}))
		a := newSender(t, s, "a")
		a.send(125, "b", "b", "c", "c")
		time.Sleep(100 * us)
		must(t, s.SetUplink("a", gosimnet.LinkConfig{}))
		a.send(125, "d")
		time.Sleep(10 * ms)
		must(t, s.SetDownlink("c", gosimnet.LinkConfig{}))
		time.Sleep(time.Second)
		wantDelivered(t, s, "what is being sent goes on, and the others with it", "a→b@11ms a→b@11ms a→c@11ms a→c@11ms a→d@11ms")
	})
}

func TestNobodyOvertakesWhatIsOnAnUplinkOrDownlinkThatIsTakenAway(t *testing.T) {
	for name, set := range map[string]func(*gosimnet.Simnet, gosimnet.LinkConfig) error{
		"uplink":   func(s *gosimnet.Simnet, cfg gosimnet.LinkConfig) error { return s.SetUplink("a", cfg) },
		"downlink": func(s *gosimnet.Simnet, cfg gosimnet.LinkConfig) error { return s.SetDownlink("b", cfg) },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := twoHosts(t, straight(10*ms))
			must(t, set(s, gosimnet.LinkConfig{BitsPerSecond: 100e3, QueueBytes: 300})) // 10 ms for 125 bytes
			go func() {
				time.Sleep(25 * ms)
				must(t, set(s, gosimnet.LinkConfig{}))
			}()
			got := volley(t, s, "a", "b", 10, 125, 4*ms, time.Second)
			want := map[string]string{
				"uplink":   "0@20ms 1@30ms 2@40ms 3@40ms 5@40ms 7@40ms 8@42ms 9@46ms",
				"downlink": "0@20ms 1@30ms 2@30ms 3@30ms 4@30ms 5@30ms 6@34ms 7@38ms 8@42ms 9@46ms",
			}[name]
			wantArrivals(t, name, got, want)
		})
	}
}

func TestAnUplinkGovernsWhatIsSentAtItsInstant(t *testing.T) {
	for _, c := range []struct {
		what string
		set  func(s *gosimnet.Simnet, cfg gosimnet.LinkConfig) error
	}{
		{"uplink", func(s *gosimnet.Simnet, cfg gosimnet.LinkConfig) error { return s.SetUplink("a", cfg) }},
		{"downlink", func(s *gosimnet.Simnet, cfg gosimnet.LinkConfig) error { return s.SetDownlink("b", cfg) }},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := twoHosts(t, straight(10*ms))
			took := func(change gosimnet.LinkConfig) time.Duration {
				sink, from := listenUDP(t, s, "b", ":7"), listenUDP(t, s, "a", ":9")
				defer sink.Close()
				defer from.Close()
				start := time.Now()
				from.WriteTo(make([]byte, 125), udpAddr(s.Host("b").Addrs()[0].AsSlice(), 7))
				must(t, c.set(s, change))
				must(t, second(sink.Read(make([]byte, 125))))
				return time.Since(start)
			}
			for _, c := range []struct {
				rate int64
				want time.Duration
			}{{0, 10 * ms}, {1e6, 11 * ms}, {1e5, 20 * ms}, {1e6, 11 * ms}, {0, 10 * ms}} {
				if got := took(gosimnet.LinkConfig{BitsPerSecond: c.rate}); !around(got, c.want) {
					t.Errorf("with %d bit/s a packet took %v, want %v", c.rate, got, c.want)
				}
			}
		})
	}
}

func TestEvictedPacketsOfStreamsAreSentAgain(t *testing.T) {
	for _, o := range []gosimnet.Overflow{gosimnet.DropNewest, gosimnet.DropOldest, gosimnet.DropRandom} {
		synctest.Test(t, func(t *testing.T) {
			s := twoHosts(t, gosimnet.LinkConfig{Latency: gosimnet.Uniform(ms, 20*ms), BitsPerSecond: 20e6, QueueBytes: 10_000, Overflow: o})
			crossBothWays(t, s, 256<<10)
			if statsOf(t, s, "a", "b").LostTo[gosimnet.CauseQueue].Packets == 0 {
				t.Error("the queue was never full")
			}
		})
	}
}

func TestOrderSurvivesEvictions(t *testing.T) {
	as, stats := overLink(t, 1, gosimnet.LinkConfig{Latency: gosimnet.Uniform(ms, 100*ms), BitsPerSecond: 1e6, QueueBytes: 2000, Overflow: gosimnet.DropRandom},
		20_000, 125, 600*us, time.Second)
	if !slices.IsSorted(numbers(as)) {
		t.Error("packets were reordered")
	}
	near(t, "delivered", float64(len(as)), 12_000, 0.01)
	if stats.LostTo[gosimnet.CauseQueue].Packets+uint64(len(as)) != 20_000 {
		t.Errorf("%d arrived: %v", len(as), stats)
	}
}

// traced is a link with a recorded trace, and no other delay to speak of.
func traced(t *testing.T, lines string) gosimnet.LinkConfig {
	t.Helper()
	tr, err := gosimnet.ParseTrace(strings.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	return gosimnet.LinkConfig{Latency: gosimnet.Constant(us), Trace: tr}
}

func TestTracesOfDeliveryOpportunities(t *testing.T) {
	for _, c := range []struct {
		name, lines string
		sizes       []int
		want        string
	}{
		{"a large packet each", "2\n3\n\n7\n", []int{1400, 1400, 1400, 1400}, "0@2.001ms 1@3.001ms 2@7.001ms 3@9.001ms"},
		{"small ones share", "2\n3\n7", []int{500, 500, 500, 500, 1400}, "0@2.001ms 1@2.001ms 2@2.001ms 3@3.001ms 4@7.001ms"},
		{"what does not fit goes on in the next", "2\n3\n7", []int{1000, 1000, 1000}, "0@2.001ms 1@3.001ms 2@3.001ms"},
		{"several at one instant", "1\n1\n1\n4", []int{1400, 1400, 1400, 1400, 1400}, "0@1.001ms 1@1.001ms 2@1.001ms 3@4.001ms 4@5.001ms"},
		{"one at the beginning", "0\n4", []int{1400, 1400, 1400, 1400}, "0@1µs 1@4.001ms 2@4.001ms 3@8.001ms"},
		{"only one", "5", []int{1400, 1400, 1400}, "0@5.001ms 1@10.001ms 2@15.001ms"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := twoHosts(t, traced(t, c.lines))
			wantArrivals(t, c.name, sizes(t, s, c.sizes...), c.want)
		})
	}
}

func TestOpportunitiesThatNobodyUsesAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := twoHosts(t, traced(t, "1\n2\n3\n4\n10\n"))
		a := newSender(t, s, "a")
		time.Sleep(3500 * us)
		a.send(1000, "b", "b", "b", "b")
		time.Sleep(time.Second)
		// 3.5 ms after the beginning: two share 4 ms, less 500 bytes that go on at 10 ms with the third, and so on.
		a.send(1400, "b") // what the last has left of its opportunity is gone, too
		time.Sleep(time.Second)
		wantDelivered(t, s, "five packets", "a→b@500µs a→b@6.5ms a→b@6.5ms a→b@7.5ms a→b@1.0005s")
	})
}

func TestTracesLimitTheRate(t *testing.T) {
	var lines strings.Builder
	for i := range 1000 { // two opportunities in three milliseconds on average
		if i%3 != 0 {
			fmt.Fprintln(&lines, i)
		}
	}
	fmt.Fprintln(&lines, 1000)
	cfg := traced(t, lines.String())
	cfg.QueueBytes = 1 << 29
	as, _ := overLink(t, 1, cfg, 20_000, 750, 0, time.Hour)
	near(t, "bytes a second", 20_000*750/as[len(as)-1].at.Seconds(), 667*1500, 0.002)
}

func TestTracesWithTextAreErrorsThatNameLineAndText(t *testing.T) {
	for _, c := range []struct {
		text  string
		names []string
	}{
		{"1\n2\nhello\n3\n", []string{"line 3", `"hello"`}},
		{"1\n-2\n", []string{"line 2", `"-2"`}},
		{"1.5\n", []string{"line 1", `"1.5"`}},
		{"1\n\n5\n4\n", []string{"line 4", "4", "later"}},
		{"99999999999999999999\n", []string{"line 1", `"99999999999999999999"`}},
		{"", []string{"no length"}},
		{"0\n0\n", []string{"no length"}},
	} {
		_, err := gosimnet.ParseTrace(strings.NewReader(c.text))
		errorNames(t, err, c.names...)
	}
	errorNames(t, second(gosimnet.ParseTrace(nil)), "nothing")
	if _, err := gosimnet.ParseTrace(iotest.ErrReader(io.ErrUnexpectedEOF)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a reader that fails: %v", err)
	}
}
