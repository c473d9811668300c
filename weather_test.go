package gosimnet_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

// under runs f in a bubble with a network of hosts a, b, c … under a weather, and with a trace that forgets little.
func under(t *testing.T, seed uint64, hosts int, w gosimnet.Weather, f func(t *testing.T, s *gosimnet.Simnet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newNet(t, &gosimnet.SimNetConfig{Seed: seed, TraceLimit: 1 << 18})
		for _, h := range "abcdefghij"[:hosts] {
			s.Host(string(h))
		}
		must(t, s.SetWeather(w))
		f(t, s)
		s.Close()
		time.Sleep(time.Second) // until the hosts' software has ended
	})
}

// fault is one fault of a weather, as the trace shows it.
type fault struct {
	what       string // cause, from and to
	began, end time.Duration
}

func (f fault) lasted() time.Duration { return f.end - f.began }

// faults lists what the trace shows from begin on, in the order of beginning; what did not end has lasted until now.
func faults(s *gosimnet.Simnet, begin time.Time) (all []fault) {
	open := make(map[string][]int)
	for e := range s.Trace() {
		name := strings.TrimPrefix(e.Cause, "clog ")
		if e.Kind != gosimnet.EventPower && e.Cause != "degraded" && e.Cause != "clog" && name == e.Cause && !strings.Contains(e.Cause, "Packets ") {
			continue
		}
		switch { // one name for a beginning and an end
		case e.Kind == gosimnet.EventPower:
			name = "power of " + e.From
		case e.Cause == "clog":
			name = "clog " + e.From + "→" + e.To
		case name != e.Cause:
			name = e.Cause
		default:
			name = strings.TrimSpace(e.Cause + " " + e.From + "→" + e.To)
		}
		at := e.Time.Sub(begin)
		if e.Kind == gosimnet.EventFault || e.Cause == "SHUTDOWN" {
			open[name] = append(open[name], len(all))
			all = append(all, fault{name, at, time.Since(begin)})
		} else if is := open[name]; len(is) > 0 {
			all[is[0]].end = at
			open[name] = is[1:]
		}
	}
	return all
}

// named are the faults whose name begins so.
func named(all []fault, prefix string) []fault {
	return slices.DeleteFunc(slices.Clone(all), func(f fault) bool { return !strings.HasPrefix(f.what, prefix) })
}

// floored is the mean of an exponential duration that is never below a floor.
func floored(mean, floor float64) float64 { return floor + mean*math.Exp(-floor/mean) }

func dividing(shape gosimnet.PartitionShape, mode gosimnet.PartitionMode) (w gosimnet.Weather) {
	p := &w.Partitions
	p.Every, p.Last, p.MinTogether, p.MinApart = 10*time.Second, 5*time.Second, 4*time.Second, 3*time.Second
	p.Shape, p.Mode = shape, mode
	return w
}

func TestAutomaticPartitionsComeAndGo(t *testing.T) {
	begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	under(t, 1, 5, dividing(gosimnet.UniformSize, gosimnet.DropPackets), func(t *testing.T, s *gosimnet.Simnet) {
		time.Sleep(24 * time.Hour)
		all := faults(s, begin)
		var lasted, gaps []float64
		for i, f := range all {
			if !strings.HasPrefix(f.what, "DropPackets UniformSize: ") {
				t.Fatalf("a fault called %q", f.what)
			}
			lasted = append(lasted, f.lasted().Seconds())
			since := time.Duration(0)
			if i > 0 {
				since = all[i-1].end
			}
			gaps = append(gaps, (f.began - since).Seconds())
		}
		if slices.Min(lasted[:len(lasted)-1]) < 3 || slices.Min(gaps) < 4 {
			t.Errorf("the shortest partition lasted %v s, the shortest gap %v s", slices.Min(lasted), slices.Min(gaps))
		}
		near(t, "seconds that partitions last", mean(lasted), floored(5, 3), 0.05)
		near(t, "seconds between partitions", mean(gaps), floored(10, 4), 0.05)
	})
}

func TestAutomaticPartitionsOfEachShapeAndMode(t *testing.T) {
	for _, shape := range allShapes {
		for _, mode := range []gosimnet.PartitionMode{gosimnet.DropPackets, gosimnet.HoldPackets, gosimnet.RejectPackets} {
			for _, oneWay := range []bool{false, true} {
				w := dividing(shape, mode)
				w.Partitions.OneWay = oneWay
				under(t, 2, 5, w, func(t *testing.T, s *gosimnet.Simnet) {
					for len(s.GetSimnetSnapshot().Cuts) == 0 {
						time.Sleep(time.Second)
					}
					if cuts := s.GetSimnetSnapshot().Cuts; len(cuts) != 1 || !strings.HasPrefix(cuts[0], fmt.Sprint(mode, " ", shape, ": ")) {
						t.Errorf("in force: %v", cuts)
					}
					h := hearings(t, s)
					if h.symmetric() == oneWay || len(h.sides()) < 2 {
						t.Errorf("%v, one way %v: %v", shape, oneWay, h)
					}
				})
			}
		}
	}
}

func TestWeatherHurtsOnlyTheHostsNamed(t *testing.T) {
	var w gosimnet.Weather
	w.Hosts = []string{"a", "b", "c"}
	w.Partitions.Every, w.Partitions.Last = 2*time.Second, time.Second
	w.Clogs.Every, w.Clogs.Last = time.Second, time.Second
	w.PowerCuts.Every, w.PowerCuts.Last = 5*time.Second, time.Second
	w.Degrade.Every, w.Degrade.Last = time.Second, time.Second
	w.Degrade.To = gosimnet.LinkConfig{Loss: 1}
	under(t, 3, 5, w, func(t *testing.T, s *gosimnet.Simnet) {
		murmur(t, s, 60)
		for id, stats := range s.AllLinkStats() {
			spared := strings.ContainsAny(id.From, "de") && strings.ContainsAny(id.To, "de")
			half := spared || strings.ContainsAny(id.From+id.To, "de")
			for cause, n := range stats.LostTo {
				if spared || half && cause != gosimnet.CausePower {
					t.Errorf("%v: %d lost to %s", id, n.Packets, cause)
				}
			}
			if !half && stats.LostTo[gosimnet.CauseLoss].Packets == 0 {
				t.Errorf("%v was never degraded: %v", id, stats)
			}
		}
		all := faults(s, time.Now())
		for _, f := range all {
			if ends := f.what[strings.LastIndex(f.what, " ")+1:]; strings.ContainsAny(ends, "de") { // as in "clog a→b"
				t.Errorf("hurt: %s", f.what)
			}
		}
		for _, kind := range []string{"DropPackets", "clog", "power", "degraded"} {
			if len(named(all, kind)) == 0 {
				t.Errorf("no fault of the kind %s", kind)
			}
		}
	})
}

// murmur sends a datagram every 50 ms from each host to each other one, for so many seconds.
func murmur(t *testing.T, s *gosimnet.Simnet, seconds int) {
	t.Helper()
	for _, from := range s.Hosts() {
		from.Run(func(ctx context.Context) error {
			c, err := from.ListenPacket("udp", ":9")
			if err != nil {
				return err
			}
			defer c.Close()
			for ctx.Err() == nil {
				for _, to := range s.Hosts() {
					if to != from {
						c.WriteTo([]byte("x"), udpAddr(to.Addrs()[0].AsSlice(), 9))
					}
				}
				time.Sleep(50 * ms)
			}
			return nil
		})
	}
	time.Sleep(time.Duration(seconds) * time.Second)
}

func TestPowerCutsLeaveAMajority(t *testing.T) {
	for _, c := range []struct{ hosts, atMost, off, want int }{
		{5, 0, 0, 2}, {3, 0, 0, 1}, {4, 0, 0, 1}, {2, 0, 0, 0}, {5, 1, 0, 1}, {5, 4, 0, 4}, {5, 0, 1, 1}, {5, 0, 2, 0}, {3, 3, 0, 3},
	} {
		var w gosimnet.Weather
		w.PowerCuts.Every, w.PowerCuts.Last, w.PowerCuts.AtMost = 5*time.Second, 30*time.Second, c.atMost
		under(t, 4, c.hosts, w, func(t *testing.T, s *gosimnet.Simnet) {
			for _, h := range s.Hosts()[:c.off] {
				must(t, second(s.AlterHost(h.Name(), gosimnet.SHUTDOWN)))
			}
			most := 0
			var starts atomic.Int64
			for _, h := range s.Hosts() {
				h.Run(func(ctx context.Context) error {
					starts.Add(1)
					<-ctx.Done()
					return nil
				})
			}
			var once sync.Map
			for range 20_000 {
				time.Sleep(500 * ms)
				off := 0
				for _, h := range s.Hosts() {
					if h.PoweredOff() {
						once.Store(h, true)
						off++
					}
				}
				most = max(most, off)
			}
			hurt := 0
			once.Range(func(any, any) bool { hurt++; return true })
			if most != c.want+c.off || c.want > 0 && hurt != c.hosts {
				t.Errorf("%+v: up to %d hosts were off at once, and %d ever", c, most, hurt)
			}
			cuts := named(faults(s, time.Now()), "power")
			if restarts := int(starts.Load()) - (c.hosts - c.off); c.want > 0 && (restarts < 100 || restarts > len(cuts) || restarts < len(cuts)-c.want-c.off) {
				t.Errorf("%+v: %d power cuts, and %d restarts", c, len(cuts), restarts)
			}
		})
	}
}

func TestClogsOfTheWeatherLoseNothing(t *testing.T) {
	var w gosimnet.Weather
	w.Clogs.Every, w.Clogs.Last = 2*time.Second, 3*time.Second
	under(t, 4, 3, w, func(t *testing.T, s *gosimnet.Simnet) {
		begin := time.Now()
		murmur(t, s, 600)
		must(t, s.SetWeather(gosimnet.Weather{}))
		time.Sleep(time.Minute)
		clogs := named(faults(s, begin), "clog")
		hit := make(map[string]int)
		var lasted []float64
		for _, f := range clogs {
			hit[f.what]++
			lasted = append(lasted, f.lasted().Seconds())
		}
		if len(hit) != 6 {
			t.Errorf("clogged: %v, want each of six links", hit)
		}
		near(t, "seconds that clogs last", mean(lasted), 3, 0.2)
		near(t, "clogs", float64(len(clogs)), 600/5.0, 0.15)
		for id, stats := range s.AllLinkStats() {
			if stats.Lost.Packets > 0 || stats.Held.Packets > 0 {
				t.Errorf("%v: %v", id, stats)
			}
		}
	})
}

func TestDegradedLinksAreRestored(t *testing.T) {
	var w gosimnet.Weather
	w.Hosts = []string{"a", "b"}
	w.Degrade.Every, w.Degrade.Last = 20*time.Second, 20*time.Second
	w.Degrade.To = gosimnet.LinkConfig{Latency: gosimnet.Constant(70 * ms)}
	under(t, 6, 3, w, func(t *testing.T, s *gosimnet.Simnet) {
		begin := time.Now()
		setLink(t, s, "a", "b", gosimnet.LinkConfig{Latency: gosimnet.Constant(20 * ms), BitsPerSecond: 8000, Ordering: gosimnet.Unordered}) // a byte a millisecond
		var got []arrival
		var wg sync.WaitGroup
		wg.Go(func() { got = volley(t, s, "a", "b", 6000, 10, 100*ms, time.Second) })
		wg.Wait()
		bad := named(faults(s, begin), "degraded a→b")
		degraded, plain := 0, 0
		for _, a := range got {
			within := slices.ContainsFunc(bad, func(f fault) bool { return f.began <= a.sent && a.sent < f.end })
			want := 30 * ms
			if within {
				want = 80 * ms // the rate stays
				degraded++
			} else {
				plain++
			}
			if !around(a.took(), want) {
				t.Fatalf("packet %d, sent at %v, took %v, want %v", a.n, a.sent, a.took(), want)
			}
		}
		if degraded < 500 || plain < 500 || degraded+plain != 6000 {
			t.Errorf("%d packets met the degraded link, %d did not", degraded, plain)
		}
	})
}

func TestWhatDegradesALinkReplacesWhatItNamesAlone(t *testing.T) {
	for _, c := range []struct {
		is, to gosimnet.LinkConfig
		lost   float64
		took   time.Duration
	}{
		{gosimnet.LinkConfig{Loss: 0.5}, gosimnet.LinkConfig{Latency: gosimnet.Constant(50 * ms)}, 0.5, 50 * ms},
		{gosimnet.LinkConfig{Loss: 0.5}, gosimnet.LinkConfig{Loss: 0.9}, 0.9, 10 * ms},
		{gosimnet.LinkConfig{Loss: 0.9}, gosimnet.LinkConfig{Burst: &gosimnet.GilbertElliott{LossGood: 0.2}}, 0.2, 10 * ms},
		{gosimnet.LinkConfig{Burst: &gosimnet.GilbertElliott{LossGood: 0.9}}, gosimnet.LinkConfig{Loss: 0.2}, 0.2, 10 * ms},
		{gosimnet.LinkConfig{BitsPerSecond: 8000}, gosimnet.LinkConfig{BitsPerSecond: 800}, 0, 50 * ms},
	} {
		var w gosimnet.Weather
		w.Degrade.Every, w.Degrade.Last, w.Degrade.To = 1, 100*time.Hour, c.to
		under(t, 7, 2, w, func(t *testing.T, s *gosimnet.Simnet) {
			setLink(t, s, "", "", c.is)
			time.Sleep(time.Second)
			from, to := "a", "b"
			if len(named(faults(s, time.Now()), "degraded a→b")) == 0 {
				from, to = to, from
			}
			got := volley(t, s, from, to, 2000, 4, time.Second, time.Minute)
			if lost := 1 - float64(len(got))/2000; math.Abs(lost-c.lost) > 0.05 {
				t.Errorf("%v made worse by %v: %.3f lost, want %.3f", c.is, c.to, lost, c.lost)
			}
			if took := got[0].took(); !around(took, c.took) {
				t.Errorf("%v made worse by %v: took %v, want %v", c.is, c.to, took, c.took)
			}
		})
	}
}

// storm is everything at once.
func storm() (w gosimnet.Weather) {
	w = dividing(gosimnet.RandomHalves, gosimnet.HoldPackets)
	w.Clogs.Every, w.Clogs.Last = time.Second, 5*time.Second
	w.PowerCuts.Every, w.PowerCuts.Last = 5*time.Second, 20*time.Second
	w.Degrade.Every, w.Degrade.Last = time.Second, 5*time.Second
	w.Degrade.To = gosimnet.LinkConfig{Loss: 0.9}
	return w
}

func TestHealMendsEverything(t *testing.T) {
	for seed := range uint64(10) {
		under(t, seed, 5, storm(), func(t *testing.T, s *gosimnet.Simnet) {
			setLink(t, s, "", "", gosimnet.LinkConfig{Latency: gosimnet.Constant(30 * ms), Loss: 0.5, Duplicate: 0.5, Corrupt: 0.5, Reorder: 0.5})
			setLink(t, s, "b", "", gosimnet.LinkConfig{Latency: gosimnet.Constant(30 * ms), Burst: &gosimnet.GilbertElliott{LossGood: 1}})
			must(t, s.SetUplink("a", gosimnet.LinkConfig{BitsPerSecond: 1e6}))
			must(t, second(s.Partition(gosimnet.DropPackets, []string{"a"}, []string{"b", "c"})))
			must(t, second(s.CutLink(gosimnet.RejectPackets, "c", "")))
			must(t, second(s.Clog("d", "", 0)))
			must(t, s.SwizzleClog(100*time.Second))
			must(t, s.FaultHost("a", gosimnet.DropDeafSpec{UpdateDropSends: true, DropSendsNewProb: 1, UpdateDeafReads: true, DeafReadsNewProb: 0.5}, false))
			must(t, second(s.AlterHost("b", gosimnet.ISOLATE)))
			must(t, second(s.AlterHost("e", gosimnet.SHUTDOWN)))
			time.Sleep(20 * time.Second)
			s.Heal()
			for _, h := range s.Hosts() {
				if h.PoweredOff() != (h.Name() == "e") || h.State() != gosimnet.HEALTHY {
					t.Errorf("seed %d: %s: %v, off %v", seed, h.Name(), h.State(), h.PoweredOff())
				}
			}
			must(t, second(s.AlterHost("e", gosimnet.POWERON)))
			if z := s.GetSimnetSnapshot(); len(z.Cuts) > 0 || z.Weather != "" {
				t.Errorf("seed %d: in force: %v, %v", seed, z.Cuts, z.Weather)
			}
			events := len(faults(s, time.Now()))
			before := maps.Collect(s.AllLinkStats())
			for range 5 {
				for h, who := range hearings(t, s) {
					if who != "abcde" {
						t.Errorf("seed %d: %s hears %s", seed, h, who)
					}
				}
			}
			for id, stats := range s.AllLinkStats() {
				was := before[id]
				if stats.Lost != was.Lost || stats.Held.Packets > 0 || stats.Duplicated.Packets > was.Duplicated.Packets || stats.Corrupted.Packets > was.Corrupted.Packets {
					t.Errorf("seed %d: %v: %v, and when healed %v", seed, id, stats, was)
				}
			}
			if took := volley(t, s, "b", "c", 1, 125, 0, time.Second)[0].took(); !around(took, 30*ms) {
				t.Errorf("seed %d: a latency of 30ms has become %v", seed, took)
			}
			if took := volley(t, s, "a", "c", 1, 125, 0, time.Second)[0].took(); !around(took, 31*ms) {
				t.Errorf("seed %d: with a millisecond at the uplink a packet took %v", seed, took)
			}
			time.Sleep(time.Hour)
			if more := faults(s, time.Now())[events:]; len(more) > 0 {
				t.Errorf("seed %d: after Heal: %v", seed, more)
			}
		})
	}
}

func TestHealedStreamsComeRight(t *testing.T) {
	for seed := range uint64(5) {
		under(t, seed, 3, storm(), func(t *testing.T, s *gosimnet.Simnet) {
			w := storm()
			w.PowerCuts.Every = 0 // which ends streams
			must(t, s.SetWeather(w))
			time.AfterFunc(time.Minute, s.Heal)
			crossBothWays(t, s, 4<<20)
		})
	}
}

func TestWeatherThatDoesNothingCostsNothing(t *testing.T) {
	calm := storm()
	calm.Partitions.Every, calm.Clogs.Every, calm.PowerCuts.Every, calm.Degrade.Every = 0, 0, 0, 0
	for _, w := range []gosimnet.Weather{{}, calm} {
		under(t, 1, 5, w, func(t *testing.T, s *gosimnet.Simnet) {
			client, _ := streamPair(t, s)
			defer client.Close()
			time.Sleep(time.Minute)
			before := s.GetSimnetSnapshot().Loopi
			time.Sleep(24 * time.Hour)
			if steps := s.GetSimnetSnapshot().Loopi - before; steps != 0 {
				t.Errorf("%v: %d steps in a day without faults", w, steps)
			}
		})
	}
	rare := gosimnet.Weather{}
	rare.Clogs.Every, rare.Clogs.Last = time.Hour, time.Minute
	under(t, 1, 5, rare, func(t *testing.T, s *gosimnet.Simnet) {
		time.Sleep(24 * time.Hour)
		clogs := len(named(faults(s, time.Now()), "clog"))
		if steps := s.GetSimnetSnapshot().Loopi; clogs < 5 || steps > int64(2*clogs+2) {
			t.Errorf("%d steps for %d clogs", steps, clogs)
		}
	})
}

func TestFaultsThatLastForever(t *testing.T) {
	var w gosimnet.Weather
	w.Partitions.Every, w.Partitions.MinApart, w.Partitions.MinTogether = time.Second, math.MaxInt64, time.Second
	under(t, 1, 3, w, func(t *testing.T, s *gosimnet.Simnet) {
		time.Sleep(time.Hour)
		if cuts := s.GetSimnetSnapshot().Cuts; len(cuts) != 1 {
			t.Errorf("after an hour there are %q, want one partition", cuts)
		}
		w.Partitions.MinTogether = math.MaxInt64
		s.Heal()
		must(t, s.SetWeather(w))
		time.Sleep(time.Hour)
		if cuts := s.GetSimnetSnapshot().Cuts; len(cuts) != 0 {
			t.Errorf("partitions that never come: %q", cuts)
		}
	})
}

func TestANewWeatherReplacesTheOneSoFar(t *testing.T) {
	begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	w := dividing(gosimnet.IsolateSingle, gosimnet.DropPackets)
	w.Partitions.MinApart = 60 * time.Second
	under(t, 1, 3, w, func(t *testing.T, s *gosimnet.Simnet) {
		for len(s.GetSimnetSnapshot().Cuts) == 0 {
			time.Sleep(time.Second)
		}
		var clogs gosimnet.Weather
		clogs.Clogs.Every, clogs.Clogs.Last = time.Second, time.Second
		must(t, s.SetWeather(clogs))
		time.Sleep(10 * time.Minute)
		all := faults(s, begin)
		if apart := named(all, "DropPackets"); len(apart) != 1 || apart[0].lasted() < time.Minute || apart[0].lasted() > 2*time.Minute {
			t.Errorf("partitions: %v, want the one that was there, for as long as it would have lasted", apart)
		}
		if n := len(named(all, "clog")); n < 200 {
			t.Errorf("%d clogs of the new weather in ten minutes", n)
		}
		must(t, s.SetWeather(gosimnet.Weather{}))
		time.Sleep(time.Minute)
		ended := len(faults(s, begin))
		time.Sleep(time.Hour)
		if n := len(faults(s, begin)); n != ended {
			t.Errorf("%d faults after the end of the weather", n-ended)
		}
	})
}

func TestTheSeedMakesTheWeatherWhateverTheTraffic(t *testing.T) {
	run := func(seed uint64, traffic bool) (all []fault) {
		begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
		under(t, seed, 5, storm(), func(t *testing.T, s *gosimnet.Simnet) {
			if traffic {
				murmur(t, s, 60)
			} else {
				time.Sleep(time.Minute)
			}
			all = faults(s, begin)
		})
		return all
	}
	same := func(a, b fault) bool { return a.what == b.what && around(a.began, b.began) && around(a.end, b.end) }
	quiet := run(1, false)
	if !slices.EqualFunc(quiet, run(1, true), same) {
		t.Error("traffic has changed the weather")
	}
	if slices.EqualFunc(quiet, run(2, false), same) || len(quiet) < 20 {
		t.Errorf("another seed makes the same %d faults", len(quiet))
	}
}

func TestImpossibleWeatherIsAnErrorThatNamesFieldAndValue(t *testing.T) {
	s := newNet(t, nil)
	s.Host("a")
	for _, c := range []struct {
		set   func(w *gosimnet.Weather)
		names []string
	}{
		{func(w *gosimnet.Weather) { w.Partitions.Every = -1 }, []string{"Weather.Partitions.Every", "-1ns"}},
		{func(w *gosimnet.Weather) { w.Partitions.Last = -1 }, []string{"Weather.Partitions.Last", "-1ns"}},
		{func(w *gosimnet.Weather) { w.Partitions.MinApart = -1 }, []string{"Weather.Partitions.MinApart", "-1ns"}},
		{func(w *gosimnet.Weather) { w.Partitions.MinTogether = -1 }, []string{"Weather.Partitions.MinTogether", "-1ns"}},
		{func(w *gosimnet.Weather) { w.Partitions.Shape = 8 }, []string{"Weather.Partitions.Shape", "8"}},
		{func(w *gosimnet.Weather) { w.Partitions.Mode = 3 }, []string{"Weather.Partitions.Mode", "3"}},
		{func(w *gosimnet.Weather) { w.Clogs.Every = -time.Second }, []string{"Weather.Clogs.Every", "-1s"}},
		{func(w *gosimnet.Weather) { w.Clogs.Last = -time.Second }, []string{"Weather.Clogs.Last", "-1s"}},
		{func(w *gosimnet.Weather) { w.PowerCuts.Every = -time.Second }, []string{"Weather.PowerCuts.Every", "-1s"}},
		{func(w *gosimnet.Weather) { w.PowerCuts.Last = -time.Second }, []string{"Weather.PowerCuts.Last", "-1s"}},
		{func(w *gosimnet.Weather) { w.PowerCuts.AtMost = -2 }, []string{"Weather.PowerCuts.AtMost", "-2"}},
		{func(w *gosimnet.Weather) { w.Degrade.Every = -time.Second }, []string{"Weather.Degrade.Every", "-1s"}},
		{func(w *gosimnet.Weather) { w.Degrade.Last = -time.Second }, []string{"Weather.Degrade.Last", "-1s"}},
		{func(w *gosimnet.Weather) { w.Degrade.To.Loss = 1.5 }, []string{"Weather.Degrade.To.Loss", "1.5"}},
		{func(w *gosimnet.Weather) { w.Hosts = []string{"a", "nobody"} }, []string{"nobody"}},
		{func(w *gosimnet.Weather) { w.Hosts = []string{"a", "a"} }, []string{`"a"`, "twice"}},
	} {
		var w gosimnet.Weather
		c.set(&w)
		errorNames(t, s.SetWeather(w), c.names...)
	}
	s.Close()
	if err := s.SetWeather(storm()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	s.Heal() // it does nothing
}

func TestSwarmDrawsTheSameForTheSameSeed(t *testing.T) {
	seen := make(map[string]bool)
	for seed := range uint64(100) {
		l, w := gosimnet.Swarm(seed, "a", "b")
		l2, w2 := gosimnet.Swarm(seed, "a", "b")
		text := l.String() + "; " + w.String()
		if again := l2.String() + "; " + w2.String(); again != text {
			t.Errorf("seed %d: %s, and then %s", seed, text, again)
		}
		seen[text] = true
	}
	if len(seen) != 100 {
		t.Errorf("a hundred seeds have drawn %d swarms", len(seen))
	}
}

func TestSwarmStaysWithinLimits(t *testing.T) {
	const seeds = 2000
	drawn := make(map[string]float64)
	count := func(what string, is bool) {
		if is {
			drawn[what]++
		}
	}
	shapes := make(map[gosimnet.PartitionShape]bool)
	for seed := range uint64(seeds) {
		l, w := gosimnet.Swarm(seed, "a")
		lost := l.Loss
		if b := l.Burst; b != nil {
			lost = b.LossBad * b.GoodToBad / (b.GoodToBad + b.BadToGood)
		}
		if lost > 0.1+1e-9 || l.Duplicate > 0.1 || l.Reorder > 0.1 || l.Corrupt != 0 || w.Degrade.To.Loss > 0.3 || w.PowerCuts.AtMost != 0 {
			t.Errorf("seed %d: %v; %v", seed, l, w)
		}
		p := w.Partitions
		if p.Every > 0 && (p.Every < 5*time.Second || p.Last > 10*time.Second || p.MinTogether < time.Second || p.MinApart <= 0) {
			t.Errorf("seed %d: %v", seed, w)
		}
		if !slices.Equal(w.Hosts, []string{"a"}) || l.Latency == nil {
			t.Errorf("seed %d: hosts %v, latency %v", seed, w.Hosts, l.Latency)
		}
		shapes[p.Shape] = true
		for what, is := range map[string]bool{"loss": lost > 0, "duplicates": l.Duplicate > 0, "reordering": l.Reorder > 0, "unordered": l.Ordering == gosimnet.Unordered,
			"rate": l.BitsPerSecond > 0, "MTU": l.MTU > 0, "partitions": p.Every > 0, "clogs": w.Clogs.Every > 0, "power": w.PowerCuts.Every > 0, "degrade": w.Degrade.Every > 0} {
			count(what, is)
		}
		count("bursts", l.Burst != nil)
	}
	for what, n := range drawn {
		want := 0.5
		if what == "bursts" {
			want = 0.25
		}
		near(t, what, n/seeds, want, 0.1)
	}
	if len(drawn) != 11 || len(shapes) != len(allShapes) {
		t.Errorf("drawn: %v, and %d shapes", drawn, len(shapes))
	}
}

func TestSwarmSaysWhatWasDrawn(t *testing.T) {
	for seed := range uint64(50) {
		l, w := gosimnet.Swarm(seed, "one", "two")
		text := l.String() + "\n" + w.String()
		for word, is := range map[string]bool{"loss": l.Loss > 0, "bursts": l.Burst != nil, "duplicates": l.Duplicate > 0, "reorders": l.Reorder > 0, "Unordered": l.Ordering == gosimnet.Unordered,
			"Mbit/s": l.BitsPerSecond > 0, "queue": l.QueueBytes > 0, "MTU": l.MTU > 0, "partitions": w.Partitions.Every > 0, "clogs every": w.Clogs.Every > 0,
			"power cuts every": w.PowerCuts.Every > 0, "degraded links": w.Degrade.Every > 0, "one-way": w.Partitions.Every > 0 && w.Partitions.OneWay} {
			if word == "loss" && (l.Burst != nil || w.Degrade.Every > 0) {
				continue
			}
			if strings.Contains(text, word) != is {
				t.Errorf("seed %d: drawn %s is %v, but it says:\n%s", seed, word, is, text)
			}
		}
	}
	if text := (gosimnet.Weather{}).String() + ", " + (gosimnet.LinkConfig{}).String(); text != "calm, default link" {
		t.Errorf("nothing is %q", text)
	}
}

// swarmRun is a short life of a cluster under everything that a seed draws: datagrams, streams and circuits among all hosts.
func swarmRun(t *testing.T, seed uint64) (hash string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l, w := gosimnet.Swarm(seed)
		s := newNet(t, &gosimnet.SimNetConfig{Seed: seed, Link: l, TracePayload: true})
		for _, h := range "abcde" {
			s.Host(string(h))
		}
		// Twenty times as often, for the life is short.
		for _, every := range []*time.Duration{&w.Partitions.Every, &w.Partitions.MinTogether, &w.Clogs.Every, &w.PowerCuts.Every, &w.Degrade.Every} {
			*every /= 20
		}
		must(t, s.SetWeather(w))
		for _, h := range s.Hosts() {
			h.Run(func(ctx context.Context) error { return chatterbox(ctx, s, h) })
		}
		time.Sleep(5 * time.Second)
		s.Heal()
		time.Sleep(time.Second)
		for h, who := range hearings(t, s) {
			if who != "abcde" {
				t.Errorf("seed %d: healed, %s hears %s\n%v\n%v", seed, h, who, l, w)
			}
		}
		hash = s.TraceHash()
		s.Close()
		time.Sleep(time.Second)
	})
	return hash
}

// chatterbox answers whoever dials, and dials and writes to all others, until its power goes.
func chatterbox(ctx context.Context, s *gosimnet.Simnet, h *gosimnet.Host) error {
	tcp, err := h.Listen("tcp", ":80")
	if err != nil {
		return err
	}
	udp, err := h.ListenPacket("udp", ":80")
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { tcp.Close(); udp.Close() })
	go func() {
		for {
			c, err := tcp.Accept()
			if err != nil {
				return
			}
			go func() { io.Copy(c, c); c.Close() }()
		}
	}()
	for i := 0; ctx.Err() == nil; i++ {
		for _, to := range s.Hosts() {
			if to == h {
				continue
			}
			udp.WriteTo(fmt.Appendf(nil, "%s %d", h.Name(), i), udpAddr(to.Addrs()[0].AsSlice(), 80))
			if c, err := h.DialTimeout("tcp", to.Name()+":80", 300*ms); err == nil {
				c.SetDeadline(time.Now().Add(300 * ms))
				fmt.Fprintf(c, "%s %d", h.Name(), i)
				c.Read(make([]byte, 100))
				c.Close()
			}
		}
		time.Sleep(100 * ms)
	}
	return nil
}

func TestTheSeedReproducesAllOfIt(t *testing.T) {
	const all = 9484 // it draws every family of faults
	if l, w := gosimnet.Swarm(all); l.Burst == nil || l.BitsPerSecond == 0 || l.Overflow != gosimnet.DropRandom || l.Duplicate == 0 || l.Reorder == 0 || l.Ordering != gosimnet.Unordered ||
		w.Partitions.Every == 0 || w.Clogs.Every == 0 || w.PowerCuts.Every == 0 || w.Degrade.Every == 0 {
		t.Errorf("seed %d draws %v; %v", all, l, w)
	}
	want, runs := swarmRun(t, all), 100
	if raced {
		runs = 10
	}
	for range runs {
		if got := swarmRun(t, all); got != want {
			t.Fatalf("hash %s, and then %s", want, got)
		}
	}
	if swarmRun(t, all+1) == want {
		t.Error("another seed has the same hash")
	}
}

func TestSwarmsHeal(t *testing.T) {
	for seed := range uint64(20) {
		swarmRun(t, seed)
	}
}
