package gosimnet_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

const (
	ms = time.Millisecond
	us = time.Microsecond

	many = 100_000 // packets, for statistics
)

// law is what a latency ought to be, in seconds.
type law struct {
	latency         gosimnet.Latency
	mean, deviation float64
	cumulative      func(x float64) float64
}

func laws() []law {
	gauss := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	return []law{
		{gosimnet.Uniform(10*ms, 30*ms), 0.020, 0.020 / math.Sqrt(12), func(x float64) float64 {
			return min(1, max(0, (x-0.010)/0.020))
		}},
		{gosimnet.Exponential(5*ms, 20*ms), 0.020, 0.015, func(x float64) float64 {
			return max(0, 1-math.Exp(-(x-0.005)/0.015))
		}},
		{gosimnet.Normal(50*ms, 5*ms), 0.050, 0.005, func(x float64) float64 {
			return gauss((x - 0.050) / 0.005)
		}},
		{gosimnet.Pareto(10*ms, 5), 0.0125, 0.010 * math.Sqrt(5.0/3) / 4, func(x float64) float64 {
			return max(0, 1-math.Pow(0.010/x, 5))
		}},
		{gosimnet.Mixture(gosimnet.Band{Weight: 3, Latency: gosimnet.Uniform(10*ms, 12*ms)}, gosimnet.Band{Weight: 1, Latency: gosimnet.Exponential(50*ms, 60*ms)}),
			0.75*0.011 + 0.25*0.060, math.Sqrt(0.75*(0.011*0.011+0.002*0.002/12) + 0.25*(0.060*0.060+0.010*0.010) - 0.02325*0.02325), func(x float64) float64 {
				return 0.75*min(1, max(0, (x-0.010)/0.002)) + 0.25*max(0, 1-math.Exp(-(x-0.050)/0.010))
			}},
	}
}

// overLink is a volley from a to b over a link, in a network of its own.
func overLink(t *testing.T, seed uint64, cfg gosimnet.LinkConfig, n, size int, gap, while time.Duration) (as []arrival, stats gosimnet.LinkStats) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newNet(t, &gosimnet.SimNetConfig{Seed: seed, Link: cfg, TraceLimit: -1})
		s.Host("a")
		s.Host("b")
		as = volley(t, s, "a", "b", n, size, gap, while)
		stats = statsOf(t, s, "a", "b")
	})
	return as, stats
}

// statsOf are the counters of a link, which must add up.
func statsOf(t *testing.T, s *gosimnet.Simnet, from, to string) gosimnet.LinkStats {
	t.Helper()
	stats, err := s.LinkStats(from, to)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		of   func(gosimnet.LinkCount) uint64
	}{
		{"packets", func(c gosimnet.LinkCount) uint64 { return c.Packets }},
		{"bytes", func(c gosimnet.LinkCount) uint64 { return c.Bytes }},
	} {
		in := c.of(stats.Sent) + c.of(stats.Duplicated)
		out := c.of(stats.Delivered) + c.of(stats.Lost) + c.of(stats.Held) + c.of(stats.InFlight)
		lost := uint64(0)
		for _, n := range stats.LostTo {
			lost += c.of(n)
		}
		if in != out || lost != c.of(stats.Lost) {
			t.Errorf("link %s→%s: counters of %s do not add up: %+v", from, to, c.what, stats)
		}
	}
	return stats
}

func TestLatenciesFollowTheirLaws(t *testing.T) {
	statistics(t)
	for _, l := range laws() {
		t.Run(fmt.Sprint(l.latency), func(t *testing.T) {
			as, _ := overLink(t, 1, gosimnet.LinkConfig{Latency: l.latency, Ordering: gosimnet.Unordered}, many, 4, 10*us, time.Minute)
			if len(as) != many {
				t.Fatalf("%d of %d arrived", len(as), many)
			}
			ds := delays(as)
			near(t, "mean", mean(ds), l.mean, 0.01)
			near(t, "deviation", deviation(ds), l.deviation, 0.02)
			if d := distance(ds, l.cumulative); d > 0.0062 {
				t.Errorf("distance from the law: %.4f", d)
			}
		})
	}
}

func TestLatenciesOfConsecutivePacketsAreIndependent(t *testing.T) {
	statistics(t)
	as, _ := overLink(t, 2, gosimnet.LinkConfig{Latency: gosimnet.Uniform(ms, 3*ms), Ordering: gosimnet.Unordered, Loss: 0.5}, many, 4, 10*us, time.Second)
	slices.SortFunc(as, func(a, b arrival) int { return a.n - b.n })
	m, sum, n := 0.002, 0.0, 0
	for i := range as[1:] {
		if as[i+1].n == as[i].n+1 {
			sum += (as[i].took().Seconds() - m) * (as[i+1].took().Seconds() - m)
			n++
		}
	}
	if r := sum / float64(n) / (0.002 * 0.002 / 12); math.Abs(r) > 0.03 {
		t.Errorf("correlation %.3f", r)
	}
	near(t, "mean of those that are not lost", mean(delays(as)), m, 0.01)
}

func TestConstantLatencyIsExact(t *testing.T) {
	as, _ := overLink(t, 1, gosimnet.LinkConfig{Latency: gosimnet.Constant(7 * ms)}, 1000, 4, 300*us, time.Second)
	for _, a := range as {
		if !around(a.took(), 7*ms) {
			t.Fatalf("packet %d took %v", a.n, a.took())
		}
	}
}

func TestTheLeastLatencyIsOneNanosecond(t *testing.T) {
	as, _ := overLink(t, 1, gosimnet.LinkConfig{Latency: gosimnet.Constant(1)}, 10, 4, us, ms)
	for _, a := range as {
		if a.took() < 1 || a.took() > 10 {
			t.Errorf("packet %d took %v", a.n, a.took())
		}
	}
	as, _ = overLink(t, 1, gosimnet.LinkConfig{Latency: gosimnet.Normal(us, ms), Ordering: gosimnet.Unordered}, 1000, 4, us, time.Second)
	if len(as) != 1000 || delays(as)[0] < 1e-9 {
		t.Errorf("%d arrived, the first after %v s", len(as), delays(as)[0])
	}
}

func TestDefaultLatencyIsUniformBetweenTheHops(t *testing.T) {
	statistics(t)
	synctest.Test(t, func(t *testing.T) {
		s := newNet(t, &gosimnet.SimNetConfig{MinHop: 2 * ms, MaxHop: 6 * ms, Link: gosimnet.LinkConfig{Ordering: gosimnet.Unordered}})
		s.Host("a")
		s.Host("b")
		ds := delays(volley(t, s, "a", "b", many, 4, 10*us, time.Second))
		if d := distance(ds, func(x float64) float64 { return min(1, max(0, (x-0.002)/0.004)) }); d > 0.0062 {
			t.Errorf("distance from the law: %.4f", d)
		}
	})
}

func TestReplayedLatenciesComeInOrderAndAgain(t *testing.T) {
	list := []time.Duration{5 * ms, 20 * ms, ms, 40 * ms, 2 * ms}
	as, _ := overLink(t, 1, gosimnet.LinkConfig{Latency: gosimnet.Replay(list...)}, 100, 4, 100*ms, time.Second)
	for _, a := range as {
		if want := list[a.n%len(list)]; !around(a.took(), want) {
			t.Errorf("packet %d took %v, want %v", a.n, a.took(), want)
		}
	}
}

func TestPerPairOffsetsAreDrawnOnceForEachPairAndDirection(t *testing.T) {
	statistics(t)
	const hosts = 100
	offsets := func(seed uint64) (all []float64) {
		synctest.Test(t, func(t *testing.T) {
			s := newNet(t, &gosimnet.SimNetConfig{Seed: seed, TraceLimit: -1, Link: gosimnet.LinkConfig{
				Latency: gosimnet.PerPair(gosimnet.Constant(10*ms), gosimnet.Exponential(1, 20*ms))}})
			all = everyPair(t, s, hosts)
		})
		return all
	}
	ds := offsets(1)
	if again := offsets(1); !slices.Equal(ds, again) {
		t.Error("the same seed has drawn other offsets")
	}
	other := offsets(2)
	slices.Sort(ds)
	slices.Sort(other)
	if slices.Equal(ds, other) {
		t.Error("another seed has drawn the same offsets")
	}
	// Of 9900 samples the distance exceeds 0.0196 once in a thousand times.
	if d := distance(ds, func(x float64) float64 { return max(0, 1-math.Exp(-(x-0.010)/0.020)) }); d > 0.0196 {
		t.Errorf("distance from the law: %.4f", d)
	}
}

// everyPair sends three datagrams from each host to each other one and lists how long they took, which must be the same for all three.
func everyPair(t *testing.T, s *gosimnet.Simnet, hosts int) (all []float64) {
	t.Helper()
	var sockets []*gosimnet.PacketConn
	for i := range hosts {
		name := fmt.Sprint("h", i)
		s.Host(name)
		sockets = append(sockets, listenUDP(t, s, name, ":7"))
	}
	buf := make([]byte, 1)
	for i, from := range sockets {
		for j, to := range sockets {
			if i == j {
				continue
			}
			dst := s.Host(fmt.Sprint("h", j)).Addrs()[0].AsSlice()
			var took [3]time.Duration
			for k := range took {
				start := time.Now()
				if _, err := from.WriteTo(buf, udpAddr(dst, 7)); err != nil {
					t.Fatal(err)
				}
				if _, _, err := to.ReadFrom(buf); err != nil {
					t.Fatal(err)
				}
				took[k] = time.Since(start)
			}
			if !around(took[0], took[1]) || !around(took[1], took[2]) {
				t.Fatalf("packets of one pair took %v", took)
			}
			all = append(all, took[0].Seconds())
		}
	}
	return all
}

func TestLatencyIsDrawnAnewForEachFlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newNet(t, &gosimnet.SimNetConfig{Link: gosimnet.LinkConfig{Latency: gosimnet.Uniform(ms, 9*ms), Ordering: gosimnet.Unordered}})
		s.Host("a")
		s.Host("b")
		first := volley(t, s, "a", "b", 100, 4, 10*ms, time.Second)
		second := volley(t, s, "a", "b", 100, 4, 10*ms, time.Second)
		same := 0
		for i := range first {
			if first[i].took() == second[i].took() {
				same++
			}
		}
		if same > 1 {
			t.Errorf("%d of 100 packets of two flows took the same time", same)
		}
	})
}

func TestImpossibleLatenciesAreErrorsThatNameTheValue(t *testing.T) {
	for _, c := range []struct {
		latency gosimnet.Latency
		want    string
	}{
		{gosimnet.Constant(0), "0s"},
		{gosimnet.Constant(-ms), "-1ms"},
		{gosimnet.Uniform(0, ms), "0s"},
		{gosimnet.Uniform(2*ms, ms), "2ms"},
		{gosimnet.Uniform(ms, 1e6*time.Hour), "1000000h"},
		{gosimnet.Exponential(0, ms), "0s"},
		{gosimnet.Exponential(ms, ms), "1ms"},
		{gosimnet.Exponential(ms, 1e6*time.Hour), "1000000h"},
		{gosimnet.Normal(0, ms), "0s"},
		{gosimnet.Normal(ms, -ms), "-1ms"},
		{gosimnet.Pareto(0, 2), "0s"},
		{gosimnet.Pareto(ms, 0), "0"},
		{gosimnet.Pareto(ms, math.NaN()), "NaN"},
		{gosimnet.Pareto(ms, math.Inf(1)), "Inf"},
		{gosimnet.Mixture(), "no bands"},
		{gosimnet.Mixture(gosimnet.Band{Weight: 1}), "band 0"},
		{gosimnet.Mixture(gosimnet.Band{Weight: -2, Latency: gosimnet.Constant(ms)}), "-2"},
		{gosimnet.Mixture(gosimnet.Band{Weight: 1, Latency: gosimnet.Constant(0)}), "0s"},
		{gosimnet.Mixture(gosimnet.Band{Weight: 1e308, Latency: gosimnet.Constant(1)}, gosimnet.Band{Weight: 1e308, Latency: gosimnet.Constant(2)}), "band 1"},
		{gosimnet.PerPair(gosimnet.Constant(ms), nil), "nil"},
		{gosimnet.PerPair(nil, gosimnet.Constant(ms)), "nil"},
		{gosimnet.PerPair(gosimnet.Constant(ms), gosimnet.Constant(-1)), "-1ns"},
		{gosimnet.Replay(), "no delays"},
		{gosimnet.Replay(ms, 0), "delay 1"},
	} {
		errorNames(t, settingError(t, gosimnet.LinkConfig{Latency: c.latency}), "Latency", c.want)
	}
}

func TestLatencyBeyondEveryTestIsAYearAtMost(t *testing.T) {
	as, _ := overLink(t, 1, gosimnet.LinkConfig{Latency: gosimnet.Pareto(time.Second, 0.01), Ordering: gosimnet.Unordered}, 100, 4, 0, 366*24*time.Hour)
	if len(as) != 100 {
		t.Errorf("%d of 100 arrived within a year", len(as))
	}
}
