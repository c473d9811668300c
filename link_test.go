package gosimnet_test

import (
	"bytes"
	"crypto/sha256"
	"io"
	"maps"
	"math"
	"math/bits"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

// straight is a link of a constant latency.
func straight(latency time.Duration) gosimnet.LinkConfig {
	return gosimnet.LinkConfig{Latency: gosimnet.Constant(latency)}
}

// twoHosts is a network of hosts a and b.
func twoHosts(t *testing.T, cfg gosimnet.LinkConfig) *gosimnet.Simnet {
	t.Helper()
	s := newNet(t, &gosimnet.SimNetConfig{Link: cfg})
	s.Host("a")
	s.Host("b")
	return s
}

func setLink(t *testing.T, s *gosimnet.Simnet, from, to string, cfg gosimnet.LinkConfig) {
	t.Helper()
	if err := s.SetLink(from, to, cfg); err != nil {
		t.Fatal(err)
	}
}

func TestIndependentLoss(t *testing.T) {
	statistics(t)
	for _, p := range []float64{0.001, 0.02, 0.5, 0.99} {
		as, stats := overLink(t, 3, gosimnet.LinkConfig{Loss: p}, many, 4, 10*us, time.Second)
		lost := many - len(as)
		// Four standard deviations of the binomial distribution.
		if off := math.Abs(float64(lost) - p*many); off > 4*math.Sqrt(p*(1-p)*many) {
			t.Errorf("loss %v: %d of %d lost", p, lost, many)
		}
		if got := stats.LostTo[gosimnet.CauseLoss].Packets; got != uint64(lost) || stats.Delivered.Packets != uint64(len(as)) {
			t.Errorf("loss %v: counted %d lost and %d delivered, want %d and %d", p, got, stats.Delivered.Packets, lost, len(as))
		}
		// Losses in a row are as many as chance makes: their mean is 1/(1-p).
		runs := lossRuns(as, many)
		near(t, "losses in a row", mean(runs), 1/(1-p), 4*math.Sqrt(p/float64(len(runs))))
	}
}

// lossRuns are the numbers of packets that were lost in a row.
func lossRuns(as []arrival, n int) (runs []float64) {
	got := make([]bool, n)
	for _, a := range as {
		got[a.n] = true
	}
	run := 0
	for _, ok := range got {
		if !ok {
			run++
		} else if run > 0 {
			runs = append(runs, float64(run))
			run = 0
		}
	}
	return runs
}

func TestBurstsFollowGilbertAndElliott(t *testing.T) {
	statistics(t)
	const toBad, toGood = 0.01, 0.25
	as, _ := overLink(t, 4, gosimnet.LinkConfig{Burst: &gosimnet.GilbertElliott{GoodToBad: toBad, BadToGood: toGood, LossBad: 1}}, many, 4, 10*us, time.Second)
	near(t, "loss rate", float64(many-len(as))/many, toBad/(toBad+toGood), 0.08)
	runs := lossRuns(as, many)
	near(t, "length of bursts", mean(runs), 1/toGood, 0.08)
	near(t, "deviation of their length", deviation(runs), math.Sqrt(1-toGood)/toGood, 0.12)
	// Gaps begin as often as bursts do: once in 1/toBad + 1/toGood packets.
	near(t, "bursts", float64(len(runs)), many/(1/toBad+1/toGood), 0.08)
}

func TestBurstsLoseInBothStates(t *testing.T) {
	statistics(t)
	b := &gosimnet.GilbertElliott{GoodToBad: 0.1, BadToGood: 0.3, LossGood: 0.02, LossBad: 0.6}
	as, _ := overLink(t, 5, gosimnet.LinkConfig{Burst: b, Loss: 1}, many, 4, 10*us, time.Second)
	near(t, "loss rate, with Loss replaced", float64(many-len(as))/many, 0.75*0.02+0.25*0.6, 0.04)
}

func TestLossOfEverything(t *testing.T) {
	for _, cfg := range []gosimnet.LinkConfig{{Loss: 1}, {Burst: &gosimnet.GilbertElliott{LossGood: 1, LossBad: 1}}} {
		as, stats := overLink(t, 1, cfg, 10_000, 4, us, time.Second)
		if len(as) != 0 || stats.Lost.Packets != 10_000 {
			t.Errorf("%v: %d arrived, %d counted as lost", cfg, len(as), stats.Lost.Packets)
		}
	}
}

func TestEveryPacketArrivesExactlyOnceUnderHeavyJitter(t *testing.T) {
	for _, o := range []gosimnet.Ordering{gosimnet.Ordered, gosimnet.Unordered} {
		as, stats := overLink(t, 6, gosimnet.LinkConfig{Latency: gosimnet.Uniform(ms, 31*ms), Ordering: o}, 20_000, 4, ms, time.Second)
		ns := numbers(as)
		sorted := slices.IsSorted(ns)
		slices.Sort(ns)
		if len(slices.Compact(ns)) != 20_000 || len(as) != 20_000 {
			t.Errorf("%v: %d datagrams arrived, want each of 20000 once", o, len(as))
		}
		if sorted != (o == gosimnet.Ordered) {
			t.Errorf("%v: in order is %v, under jitter of thirty times the gap", o, sorted)
		}
		if stats.Duplicated.Packets+stats.Lost.Packets > 0 {
			t.Errorf("%v: %v", o, stats)
		}
		for _, a := range as {
			if a.took() < ms {
				t.Fatalf("%v: packet %d took %v, below the least delay", o, a.n, a.took())
			}
		}
	}
}

func TestOrderedLinksKeepTheOrderOfAllFlows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := twoHosts(t, gosimnet.LinkConfig{Latency: gosimnet.Replay(30*ms, ms, ms)})
		sink := listenUDP(t, s, "b", ":7")
		dst := udpAddr(s.Host("b").Addrs()[0].AsSlice(), 7)
		var sockets []*gosimnet.PacketConn
		for range 30 {
			sockets = append(sockets, listenUDP(t, s, "a", ":0"))
		}
		for i := range 300 {
			sockets[rand.IntN(len(sockets))].WriteTo([]byte{byte(i), byte(i >> 8)}, dst)
			time.Sleep(100 * us)
		}
		time.Sleep(100 * ms)
		buf := make([]byte, 2)
		for i := range 300 {
			if _, _, err := sink.ReadFrom(buf); err != nil {
				t.Fatal(err)
			}
			if got := int(buf[0]) | int(buf[1])<<8; got != i {
				t.Fatalf("datagram %d came as number %d", got, i)
			}
		}
	})
}

func TestDuplicates(t *testing.T) {
	statistics(t)
	as, stats := overLink(t, 7, gosimnet.LinkConfig{Latency: gosimnet.Uniform(ms, 9*ms), Ordering: gosimnet.Unordered, Duplicate: 0.3}, many, 4, 10*us, time.Second)
	times := make(map[int][]time.Duration)
	for _, a := range as {
		times[a.n] = append(times[a.n], a.took())
	}
	twice, same := 0, 0
	for n := range many {
		switch ts := times[n]; len(ts) {
		case 1:
		case 2:
			twice++
			if ts[0] == ts[1] {
				same++
			}
		default:
			t.Fatalf("datagram %d arrived %d times", n, len(ts))
		}
	}
	near(t, "arrived twice", float64(twice), 0.3*many, 0.02)
	if same > twice/100 {
		t.Errorf("%d of %d second arrivals took as long as the first", same, twice)
	}
	if stats.Duplicated.Packets != uint64(twice) || stats.Duplicated.Bytes != uint64(4*twice) {
		t.Errorf("counted %v, want %d", stats.Duplicated, twice)
	}
}

// The second of two packets may well come first, also when nothing else happens meanwhile.
func TestDuplicatesTakeTimesOfTheirOwn(t *testing.T) {
	const n = 10_000
	rule := on(func(*gosimnet.Packet) bool { return true }, gosimnet.Duplicate())
	for name, c := range map[string]struct {
		duplicate float64
		rules     []gosimnet.Rule
	}{"by the link": {1, nil}, "by a rule": {0, []gosimnet.Rule{rule}}} {
		synctest.Test(t, func(t *testing.T) {
			s := newNet(t, &gosimnet.SimNetConfig{Seed: 1, TraceLimit: -1, Link: gosimnet.LinkConfig{Latency: gosimnet.Uniform(ms, 9*ms), Ordering: gosimnet.Unordered, Duplicate: c.duplicate}})
			s.Host("a")
			s.Host("b")
			for _, r := range c.rules {
				s.AddRule(r)
			}
			as := volley(t, s, "a", "b", n, 4, time.Second, time.Second)
			var first, second []float64
			for i := 0; i+1 < len(as); i += 2 {
				first, second = append(first, as[i].took().Seconds()), append(second, as[i+1].took().Seconds())
			}
			near(t, "packets, "+name, float64(len(as)), 2*n, 0)
			near(t, "the first comes after, "+name, mean(first), 0.001+0.008/3, 0.02)
			near(t, "the second comes after, "+name, mean(second), 0.001+0.008*2/3, 0.02)
		})
	}
}

func TestDuplicatesOfWhatFindsTheQueueFull(t *testing.T) {
	as, stats := overLink(t, 8, gosimnet.LinkConfig{Duplicate: 1, BitsPerSecond: 8e6, QueueBytes: 5000}, 1000, 1000, 500*us, time.Second)
	if len(as) == 0 || stats.LostTo[gosimnet.CauseQueue].Packets == 0 || stats.Duplicated.Packets != 1000 {
		t.Errorf("%d arrived: %v", len(as), stats)
	}
}

func TestCorruptionFlipsExactlyOneBit(t *testing.T) {
	const n, size = 20_000, 40
	synctest.Test(t, func(t *testing.T) {
		s := twoHosts(t, gosimnet.LinkConfig{Corrupt: 0.25})
		sink := listenUDP(t, s, "b", ":7")
		from := listenUDP(t, s, "a", ":0")
		dst := udpAddr(s.Host("b").Addrs()[0].AsSlice(), 7)
		clean := bytes.Repeat([]byte{0x5a}, size)
		flipped := make([]float64, 8*size)
		hurt := 0
		buf := make([]byte, 100)
		for range n {
			from.WriteTo(clean, dst)
			m, _, err := sink.ReadFrom(buf)
			if err != nil || m != size {
				t.Fatal(m, err)
			}
			wrong := 0
			for i := range clean {
				for d := buf[i] ^ clean[i]; d != 0; d &= d - 1 {
					flipped[8*i+bits.TrailingZeros8(d)]++
					wrong++
				}
			}
			if wrong > 1 {
				t.Fatalf("%d bits of a datagram are wrong", wrong)
			}
			hurt += wrong
		}
		near(t, "corrupted", float64(hurt), 0.25*n, 0.05)
		// Each bit is hit about 15.6 times; chi² of 319 degrees of freedom.
		chi, want := 0.0, float64(hurt)/(8*size)
		for _, f := range flipped {
			chi += (f - want) * (f - want) / want
		}
		near(t, "chi² of the bits", chi, 319, 0.25)
		if got := statsOf(t, s, "a", "b").Corrupted; got.Packets != uint64(hurt) || got.Bytes != uint64(size*hurt) {
			t.Errorf("counted %v, want %d", got, hurt)
		}
		if string(clean) != strings.Repeat("\x5a", size) {
			t.Error("the sender's own bytes were changed")
		}
	})
}

func TestReorderLetsPacketsJumpTheQueue(t *testing.T) {
	statistics(t)
	const p = 0.1
	as, _ := overLink(t, 9, gosimnet.LinkConfig{Latency: gosimnet.Constant(10 * ms), Reorder: p}, many, 4, 10*us, time.Second)
	jumped, fractions := 0, []float64(nil)
	for _, a := range as {
		switch {
		case around(a.took(), 10*ms):
		case a.took() < 10*ms:
			jumped++
			fractions = append(fractions, float64(a.took())/float64(10*ms))
		default:
			t.Fatalf("packet %d took %v", a.n, a.took())
		}
	}
	near(t, "jumped", float64(jumped), p*many, 0.04)
	slices.Sort(fractions)
	if d := distance(fractions, func(x float64) float64 { return min(1, max(0, x)) }); d > 0.0196 {
		t.Errorf("fractions of the latency are not uniform: distance %.4f", d)
	}
	if slices.IsSorted(numbers(as)) {
		t.Error("nothing was overtaken")
	}
}

func TestStreamsSurviveALinkThatDoesEverything(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  gosimnet.LinkConfig
	}{
		{"loss", gosimnet.LinkConfig{Loss: 0.2}},
		{"bursts", gosimnet.LinkConfig{Burst: &gosimnet.GilbertElliott{GoodToBad: 0.02, BadToGood: 0.2, LossBad: 0.9}}},
		{"corruption, duplicates, jumps", gosimnet.LinkConfig{Corrupt: 0.1, Duplicate: 0.5, Reorder: 0.5, Ordering: gosimnet.Unordered, Latency: gosimnet.Uniform(ms, 40*ms)}},
		{"a short queue", gosimnet.LinkConfig{BitsPerSecond: 20e6, QueueBytes: 20_000, Overflow: gosimnet.DropRandom}},
		{"a queue that drops the oldest", gosimnet.LinkConfig{BitsPerSecond: 20e6, QueueBytes: 20_000, Overflow: gosimnet.DropOldest, MTU: 600}},
		{"all of it", gosimnet.LinkConfig{Loss: 0.02, Corrupt: 0.02, Duplicate: 0.1, Reorder: 0.1, Ordering: gosimnet.Unordered, Latency: gosimnet.Pareto(ms, 2),
			BitsPerSecond: 50e6, QueueBytes: 50_000, Overflow: gosimnet.DropRandom, MTU: 576}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := twoHosts(t, c.cfg)
				crossBothWays(t, s, 512<<10)
				statsOf(t, s, "a", "b")
				statsOf(t, s, "b", "a")
			})
		})
	}
}

// crossBothWays is crossStream over a new stream.
func crossBothWays(t *testing.T, s *gosimnet.Simnet, size int) {
	t.Helper()
	client, server := streamPair(t, s)
	crossStream(t, client, server, size)
}

// crossStream sends random bytes over a stream in both directions at once; they must arrive as they are.
func crossStream(t *testing.T, client, server net.Conn, size int) {
	t.Helper()
	data := make([]byte, size)
	rand.NewChaCha8([32]byte{1}).Read(data)
	want := sha256.Sum256(data)
	var wg sync.WaitGroup
	for _, c := range []net.Conn{client, server} {
		wg.Go(func() {
			if n, err := c.Write(data); n != size || err != nil {
				t.Errorf("wrote %d: %v", n, err)
			}
			c.(*gosimnet.Conn).CloseWrite()
		})
		wg.Go(func() {
			got, err := io.ReadAll(c)
			if sha256.Sum256(got) != want || err != nil {
				t.Errorf("read %d bytes, want %d, the same: %v", len(got), size, err)
			}
		})
	}
	wg.Wait()
	client.Close()
	server.Close()
}

// streamPair is a stream from a to b.
func streamPair(t *testing.T, s *gosimnet.Simnet) (client, server net.Conn) {
	t.Helper()
	l, err := s.Host("b").Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = s.Host("a").Dial("tcp", "b:80"); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return client, server
}

func TestDatagramsTravelInFragmentsOfTheMTU(t *testing.T) {
	for _, c := range []struct {
		size, mtu int
		v6        bool
		fragments uint64
	}{
		{0, 0, false, 1},
		{1472, 0, false, 1}, // 1500 less 20 and 8
		{1473, 0, false, 2},
		{1472 + 1480, 0, false, 2},
		{1472 + 1481, 0, false, 3},
		{65507, 0, false, 45},
		{1452, 0, true, 1}, // 1500 less 40 and 8
		{1453, 0, true, 2},
		{548, 576, false, 1},
		{549, 576, false, 2}, // of 552 bytes at most, a multiple of eight
		{552 - 8 + 552, 576, false, 2},
		{552 - 8 + 553, 576, false, 3},
		{8972, 9000, false, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := twoHosts(t, gosimnet.LinkConfig{MTU: c.mtu})
			sink := listenUDP(t, s, "b", ":7")
			from := listenUDP(t, s, "a", ":0")
			addrs := s.Host("b").Addrs()
			dst := udpAddr(addrs[0].AsSlice(), 7)
			if c.v6 {
				dst = udpAddr(addrs[1].AsSlice(), 7)
			}
			if _, err := from.WriteTo(make([]byte, c.size), dst); err != nil {
				t.Fatal(err)
			}
			if n, _, err := sink.ReadFrom(make([]byte, 64<<10)); n != c.size || err != nil {
				t.Fatal(n, err)
			}
			got := statsOf(t, s, "a", "b").Delivered
			if got.Packets != c.fragments || got.Bytes != uint64(c.size) {
				t.Errorf("%+v: counted %+v", c, got)
			}
		})
	}
}

func TestADatagramIsLostWithAnyOfItsFragments(t *testing.T) {
	const p, size = 0.1, 1472 + 4*1480 // five fragments
	as, _ := overLink(t, 10, gosimnet.LinkConfig{Loss: p}, 20_000, size, 100*us, time.Second)
	near(t, "datagrams", float64(len(as)), 20_000*math.Pow(1-p, 5), 0.025)
}

func TestSmallMTUsCarryStreamsInSmallSegments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := twoHosts(t, gosimnet.LinkConfig{MTU: 140, BitsPerSecond: gosimnet.Mbps100})
		client, server := streamPair(t, s)
		before := statsOf(t, s, "a", "b")
		go client.Write(make([]byte, 1000))
		if _, err := io.ReadFull(server, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		after := statsOf(t, s, "a", "b")
		if got := after.Delivered.Packets - before.Delivered.Packets; got != 10 {
			t.Errorf("1000 bytes took %d packets, want 10 of 140 bytes, less 40 for headers", got)
		}
	})
}

func TestSettingsChangeWhilePacketsAreUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := twoHosts(t, straight(100*ms))
		sink := listenUDP(t, s, "b", ":7")
		from := listenUDP(t, s, "a", ":0")
		dst := udpAddr(s.Host("b").Addrs()[0].AsSlice(), 7)
		start := time.Now()
		send := func(b string) { from.WriteTo([]byte(b), dst) }
		send("slow")
		time.Sleep(10 * ms)
		setLink(t, s, "a", "b", gosimnet.LinkConfig{Latency: gosimnet.Constant(20 * ms), Ordering: gosimnet.Unordered})
		send("quick")
		time.Sleep(10 * ms)
		setLink(t, s, "a", "b", gosimnet.LinkConfig{Latency: gosimnet.Constant(10 * ms), Loss: 1})
		send("lost")
		time.Sleep(5 * ms)
		setLink(t, s, "a", "b", straight(10*ms))
		send("ordered") // it waits for the slow one
		for _, want := range []struct {
			text string
			at   time.Duration
		}{{"quick", 30 * ms}, {"slow", 100 * ms}, {"ordered", 100 * ms}} {
			buf := make([]byte, 10)
			n, _, err := sink.ReadFrom(buf)
			if at := time.Since(start); err != nil || string(buf[:n]) != want.text || !around(at, want.at) {
				t.Errorf("%q at %v: %v, want %q at %v", buf[:n], at, err, want.text, want.at)
			}
		}
	})
}

func TestASettingGovernsWhatIsSentAtItsInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := twoHosts(t, straight(time.Second))
		l, err := s.Host("b").Listen("tcp", ":80")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		start := time.Now()
		dialled := make(chan time.Duration)
		go func() {
			c, err := s.Host("a").Dial("tcp", "b:80")
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			dialled <- time.Since(start)
		}()
		synctest.Wait()
		setLink(t, s, "", "", straight(ms))
		if took := <-dialled; !around(took, 2*ms) {
			t.Errorf("the dial took %v, want 2ms", took)
		}
	})
}

func TestEmptyNamesSetEveryLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newNet(t, nil)
		for _, h := range []string{"a", "b", "c"} {
			s.Host(h)
		}
		check := func(when string, wants map[string]time.Duration) {
			t.Helper()
			for link, want := range wants {
				from, to, _ := strings.Cut(link, ">")
				if took := volley(t, s, from, to, 1, 4, 0, time.Second)[0].took(); !around(took, want) {
					t.Errorf("%s: %s takes %v, want %v", when, link, took, want)
				}
			}
		}
		check("at first", map[string]time.Duration{"a>b": 10 * ms, "a>a": 10 * us})
		setLink(t, s, "a", "", straight(20*ms))
		check("all from a", map[string]time.Duration{"a>b": 20 * ms, "a>c": 20 * ms, "b>a": 10 * ms, "b>c": 10 * ms, "a>a": 10 * us})
		setLink(t, s, "", "c", straight(30*ms))
		check("all to c", map[string]time.Duration{"a>b": 20 * ms, "a>c": 30 * ms, "b>c": 30 * ms, "c>b": 10 * ms, "c>c": 10 * us})
		setLink(t, s, "a", "c", straight(40*ms))
		check("a to c", map[string]time.Duration{"a>b": 20 * ms, "a>c": 40 * ms, "b>c": 30 * ms})
		setLink(t, s, "a", "a", straight(50*ms))
		s.Host("d")
		check("a host that came later", map[string]time.Duration{"a>d": 20 * ms, "d>c": 30 * ms, "d>a": 10 * ms, "a>a": 50 * ms})
		setLink(t, s, "", "", straight(60*ms))
		check("every link", map[string]time.Duration{"a>b": 60 * ms, "a>c": 60 * ms, "c>b": 60 * ms, "a>a": 50 * ms, "b>b": 10 * us})
	})
}

func TestChangingOneLinkChangesNoOther(t *testing.T) {
	run := func(change bool) (other, same []arrival) {
		synctest.Test(t, func(t *testing.T) {
			s := newNet(t, &gosimnet.SimNetConfig{Seed: 3, Link: gosimnet.LinkConfig{
				Latency: gosimnet.Uniform(ms, 20*ms), Loss: 0.2, Duplicate: 0.1, Reorder: 0.1, Ordering: gosimnet.Unordered, BitsPerSecond: 1e6, QueueBytes: 1000, Overflow: gosimnet.DropRandom}})
			for _, h := range []string{"a", "b", "c", "d"} {
				s.Host(h)
			}
			if change {
				setLink(t, s, "a", "b", gosimnet.LinkConfig{Latency: gosimnet.Normal(50*ms, ms), Loss: 0.4})
			}
			var wg sync.WaitGroup
			wg.Go(func() { same = volley(t, s, "a", "b", 2000, 100, 700*us, time.Second) })
			wg.Go(func() { other = volley(t, s, "c", "d", 2000, 100, 700*us, time.Second) })
			wg.Wait()
		})
		return other, same
	}
	plainOther, plainSame := run(false)
	changedOther, changedSame := run(true)
	if slices.Equal(plainSame, changedSame) {
		t.Error("the change had no effect on its own link")
	}
	if !slices.EqualFunc(plainOther, changedOther, func(a, b arrival) bool { return a.n == b.n && around(a.at, b.at) }) {
		t.Error("the change had an effect on another link")
	}
}

func TestImpossibleLinksAreErrorsThatNameFieldAndValue(t *testing.T) {
	for _, c := range []struct {
		cfg   gosimnet.LinkConfig
		names []string
	}{
		{gosimnet.LinkConfig{Loss: 1.5}, []string{"Loss", "1.5"}},
		{gosimnet.LinkConfig{Loss: -0.1}, []string{"Loss", "-0.1"}},
		{gosimnet.LinkConfig{Loss: math.NaN()}, []string{"Loss", "NaN"}},
		{gosimnet.LinkConfig{Duplicate: 2}, []string{"Duplicate", "2"}},
		{gosimnet.LinkConfig{Corrupt: 7}, []string{"Corrupt", "7"}},
		{gosimnet.LinkConfig{Reorder: math.Inf(1)}, []string{"Reorder", "Inf"}},
		{gosimnet.LinkConfig{Burst: &gosimnet.GilbertElliott{GoodToBad: 1.1}}, []string{"Burst.GoodToBad", "1.1"}},
		{gosimnet.LinkConfig{Burst: &gosimnet.GilbertElliott{BadToGood: -1}}, []string{"Burst.BadToGood", "-1"}},
		{gosimnet.LinkConfig{Burst: &gosimnet.GilbertElliott{LossGood: 3}}, []string{"Burst.LossGood", "3"}},
		{gosimnet.LinkConfig{Burst: &gosimnet.GilbertElliott{LossBad: math.NaN()}}, []string{"Burst.LossBad", "NaN"}},
		{gosimnet.LinkConfig{Ordering: 9}, []string{"Ordering", "9"}},
		{gosimnet.LinkConfig{BitsPerSecond: -1}, []string{"BitsPerSecond", "-1"}},
		{gosimnet.LinkConfig{Trace: &gosimnet.DeliveryTrace{}}, []string{"Trace"}},
		{gosimnet.LinkConfig{QueueBytes: -5}, []string{"QueueBytes", "-5"}},
		{gosimnet.LinkConfig{QueueBytes: math.MaxInt}, []string{"QueueBytes", "9223372036854775807"}},
		{gosimnet.LinkConfig{Overflow: 3}, []string{"Overflow", "3"}},
		{gosimnet.LinkConfig{MTU: 67}, []string{"MTU", "67"}},
		{gosimnet.LinkConfig{MTU: 1 << 20}, []string{"MTU", "1048576"}},
		{gosimnet.LinkConfig{MTU: -1}, []string{"MTU", "-1"}},
	} {
		errorNames(t, settingError(t, c.cfg), c.names...)
	}
	s := newNet(t, nil)
	s.Host("a")
	errorNames(t, s.SetLink("a", "nobody", gosimnet.LinkConfig{}), "nobody")
	errorNames(t, s.SetLink("nobody", "", gosimnet.LinkConfig{}), "nobody")
	errorNames(t, s.SetUplink("nobody", gosimnet.LinkConfig{}), "nobody")
	errorNames(t, s.SetDownlink("", gosimnet.LinkConfig{}), "empty")
	errorNames(t, second(s.LinkStats("a", "nobody")), "nobody")
	errorNames(t, second(s.LinkStats("", "a")), "empty")
}

func TestUsualPathsArePossible(t *testing.T) {
	for _, cfg := range []gosimnet.LinkConfig{gosimnet.LAN(), gosimnet.WAN(), gosimnet.Transatlantic(), gosimnet.Satellite(), gosimnet.Mobile3G(), gosimnet.LossyWiFi()} {
		as, _ := overLink(t, 1, cfg, 1000, 100, 10*ms, time.Minute)
		if len(as) < 900 {
			t.Errorf("%v: %d of 1000 packets arrived", cfg, len(as))
		}
	}
}

func TestCountersOfAllLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newNet(t, nil)
		for _, h := range []string{"a", "b", "c"} {
			s.Host(h)
		}
		setLink(t, s, "b", "c", gosimnet.LinkConfig{Loss: 1})
		volley(t, s, "b", "c", 3, 100, ms, time.Second)
		volley(t, s, "a", "b", 5, 200, ms, time.Second)
		volley(t, s, "b", "a", 7, 300, ms, time.Second)
		want := map[gosimnet.LinkID]gosimnet.LinkStats{
			{From: "a", To: "b"}: {Sent: gosimnet.LinkCount{Packets: 5, Bytes: 1000}, Delivered: gosimnet.LinkCount{Packets: 5, Bytes: 1000}},
			{From: "b", To: "a"}: {Sent: gosimnet.LinkCount{Packets: 7, Bytes: 2100}, Delivered: gosimnet.LinkCount{Packets: 7, Bytes: 2100}},
			{From: "b", To: "c"}: {Sent: gosimnet.LinkCount{Packets: 3, Bytes: 300}, Lost: gosimnet.LinkCount{Packets: 3, Bytes: 300},
				LostTo: map[string]gosimnet.LinkCount{gosimnet.CauseLoss: {Packets: 3, Bytes: 300}}},
		}
		var order []string
		for id, stats := range s.AllLinkStats() {
			order = append(order, id.String())
			sameStats(t, id.String(), stats, want[id])
		}
		if !slices.Equal(order, []string{"a→b", "b→a", "b→c"}) {
			t.Errorf("links in the order %v", order)
		}
		snap := s.GetSimnetSnapshot()
		for _, l := range snap.Links {
			sameStats(t, "snapshot of "+l.LinkID.String(), l.LinkStats, want[l.LinkID])
			clear(l.LostTo) // a snapshot shares nothing with the network
		}
		sameStats(t, "after the snapshot was changed", statsOf(t, s, "b", "c"), want[gosimnet.LinkID{From: "b", To: "c"}])
		if text := snap.LongString(); len(snap.Links) != 3 || !strings.Contains(text, "link b→c: sent 3 (300 B)") || strings.Contains(text, "link a→b") {
			t.Errorf("snapshot of %d links:\n%s", len(snap.Links), text)
		}
		for range s.AllLinkStats() {
			break
		}
		s.Close()
		if n := len(maps.Collect(s.AllLinkStats())); n != 3 {
			t.Errorf("%d links after Close, want 3", n)
		}
	})
}

// TestWhatAHostHasNoRoomForIsCounted: the link has delivered it, and nobody will read it.
func TestWhatAHostHasNoRoomForIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newNet(t, &gosimnet.SimNetConfig{Backlog: 1})
		s.Host("a")
		sink := listenUDP(t, s, "b", ":7")
		must(t, sink.SetReadBuffer(10_000))
		from := listenUDP(t, s, "a", ":0")
		for range 100 {
			from.WriteTo(make([]byte, 1000), udpAddr(s.Host("b").Addrs()[0].AsSlice(), 7))
		}
		time.Sleep(time.Second)
		must(t, sink.SetReadDeadline(time.Now().Add(ms)))
		read := uint64(0)
		for {
			if _, _, err := sink.ReadFrom(make([]byte, 1000)); err != nil {
				break
			}
			read++
		}
		stats := statsOf(t, s, "a", "b")
		if want := (gosimnet.LinkCount{Packets: 100 - read, Bytes: 1000 * (100 - read)}); read == 0 || read == 100 || stats.Overflowed != want || stats.Delivered.Packets != 100 {
			t.Errorf("%d of 100 datagrams were read; %v", read, stats)
		}

		l, err := s.Host("b").Listen("tcp", ":80")
		must(t, err)
		defer l.Close()
		for range 3 { // one more than Backlog waits for Accept; the last sends three SYNs in four seconds
			if c, err := s.Host("c").DialTimeout("tcp", "b:80", 4*time.Second); err == nil {
				defer c.Close()
			}
		}
		if got := statsOf(t, s, "c", "b").Overflowed; got != (gosimnet.LinkCount{Packets: 3}) {
			t.Errorf("%d SYNs found the backlog full, want 3", got.Packets)
		}
	})
}

func sameStats(t *testing.T, what string, got, want gosimnet.LinkStats) {
	t.Helper()
	if got.String() != want.String() || !maps.Equal(got.LostTo, want.LostTo) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
