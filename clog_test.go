package gosimnet_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

func TestClogsKeepPacketsAndReleaseThemInOrderAtOnce(t *testing.T) {
	for _, o := range []gosimnet.Ordering{gosimnet.Ordered, gosimnet.Unordered} {
		synctest.Test(t, func(t *testing.T) {
			s := twoHosts(t, gosimnet.LinkConfig{Latency: gosimnet.Uniform(5*ms, 15*ms), Ordering: o})
			s.Host("c")
			unclog, err := s.Clog("a", "b", 200*ms)
			must(t, err)
			other := make(chan []arrival)
			go func() { other <- volley(t, s, "a", "c", 20, 4, 10*ms, time.Second) }()
			during := make(chan gosimnet.LinkStats, 1)
			time.AfterFunc(199*ms, func() { during <- statsOf(t, s, "a", "b") })
			as := volley(t, s, "a", "b", 40, 100, 5*ms, time.Second)
			if len(as) != 40 || !slices.IsSorted(numbers(as)[:37]) {
				t.Fatalf("%v: arrived: %v", o, numbers(as))
			}
			for _, a := range as {
				if a.at < 200*ms || a.sent < 185*ms && !around(a.at, 200*ms) {
					t.Errorf("%v: packet %d, sent at %v, came at %v, want 200ms", o, a.n, a.sent, a.at)
				}
			}
			if stats := <-during; stats.Held.Packets < 36 || stats.Held.Packets+stats.InFlight.Packets != 40 || stats.Delivered.Packets != 0 {
				t.Errorf("%v: while clogged: %v", o, stats)
			}
			if stats := statsOf(t, s, "a", "b"); stats.Held.Packets != 0 || stats.Delivered.Packets != 40 {
				t.Errorf("%v: in the end: %v", o, stats)
			}
			for _, a := range <-other {
				if a.took() > 16*ms {
					t.Errorf("%v: packet %d of another link took %v", o, a.n, a.took())
				}
			}
			unclog() // it is over already
		})
	}
}

func TestClogsOfSeveralLinksReleaseInTheOrderSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := someHosts(t)
		must(t, second(s.Clog("", "b", time.Second)))
		sink := listenUDP(t, s, "b", ":7")
		var sockets []*gosimnet.PacketConn
		for _, from := range []string{"a", "c", "d"} {
			sockets = append(sockets, listenUDP(t, s, from, ":9"))
		}
		for i := range 60 {
			fmt.Fprint(to{sockets[i*i%7%3], udpAddr(s.Host("b").Addrs()[0].AsSlice(), 7)}, i)
			time.Sleep(ms)
		}
		buf := make([]byte, 10)
		for i := range 60 {
			n, _, err := sink.ReadFrom(buf)
			if err != nil || string(buf[:n]) != fmt.Sprint(i) {
				t.Fatalf("%q comes as number %d, %v", buf[:n], i, err)
			}
		}
	})
}

func TestClogsLastUntilTheyAreEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := someHosts(t)
		a, c := newSender(t, s, "a"), newSender(t, s, "c")
		a.send(4, "b", "c") // a clog keeps what is under way, too
		time.Sleep(time.Millisecond)
		fromA, err := s.Clog("a", "", 0)
		must(t, err)
		toB, err := s.Clog("", "b", -1)
		must(t, err)
		c.send(4, "b", "d", "a")
		time.Sleep(time.Hour - ms - 5*us) // after the first was sent
		wantDelivered(t, s, "a clogged, and b", "c→d@11ms c→a@11ms")
		fromA()
		fromA()
		time.Sleep(time.Second)
		wantDelivered(t, s, "b clogged", "c→d@11ms c→a@11ms a→c@1h0m0s")
		toB()
		time.Sleep(time.Second)
		wantDelivered(t, s, "nobody clogged", "c→d@11ms c→a@11ms a→c@1h0m0s a→b@1h0m1s c→b@1h0m1s")
		c.send(4, "b")
		time.Sleep(time.Second)
		if got := statsOf(t, s, "c", "b"); got.Delivered.Packets != 2 {
			t.Errorf("afterwards: %v", got)
		}
	})
}

func TestClogsAndPartitionsAndPower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := someHosts(t)
		a := newSender(t, s, "a")
		unclog, err := s.Clog("a", "", 0)
		must(t, err)
		a.send(4, "b", "c", "d")
		time.Sleep(time.Second)
		heal, err := s.Partition(gosimnet.DropPackets, []string{"a"}, []string{"b"})
		must(t, err)
		must(t, second(s.AlterHost("c", gosimnet.SHUTDOWN)))
		unclog()
		time.Sleep(time.Second)
		wantDelivered(t, s, "b cut off and c without power", "a→d@1s")
		for to, cause := range map[string]string{"b": gosimnet.CausePartition, "c": gosimnet.CausePower} {
			if stats := statsOf(t, s, "a", to); stats.LostTo[cause].Packets != 1 || stats.Held.Packets != 0 {
				t.Errorf("a→%s: %v", to, stats)
			}
		}
		heal()
	})
}

func TestStreamsThroughClogs(t *testing.T) {
	for _, way := range []struct{ from, to string }{{"a", "b"}, {"b", "a"}, {"", ""}} {
		synctest.Test(t, func(t *testing.T) {
			s := twoHosts(t, straight(10*ms))
			go func() {
				for range 5 {
					time.Sleep(37 * ms)
					if _, err := s.Clog(way.from, way.to, 100*ms); err != nil {
						t.Error(err)
					}
				}
			}()
			crossBothWays(t, s, 4<<20)
			for _, l := range s.GetSimnetSnapshot().Links {
				if l.Lost.Packets > 0 || l.Held.Packets > 0 {
					t.Errorf("clog %q→%q: %v", way.from, way.to, l)
				}
			}
		})
	}
}

func TestAcknowledgementsOfACloggedWayBackComeWhenItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := twoHosts(t, straight(10*ms))
		client, server := streamPair(t, s)
		go io.Copy(io.Discard, server)
		must(t, second(s.Clog("b", "a", 5*time.Second)))
		start := time.Now()
		if _, err := client.Write(make([]byte, 1<<20)); err != nil { // twice what both buffers hold
			t.Fatal(err)
		}
		if took := time.Since(start); took < 5*time.Second || took > 5*time.Second+100*ms {
			t.Errorf("Write returned after %v, want when the clog is over, 5s", took)
		}
	})
}

func TestDialsThroughClogs(t *testing.T) {
	for _, way := range []struct{ from, to string }{{"a", "b"}, {"b", "a"}} {
		synctest.Test(t, func(t *testing.T) {
			s := twoHosts(t, straight(10*ms))
			l, err := s.Host("b").Listen("tcp", ":80")
			must(t, err)
			defer l.Close()
			must(t, second(s.Clog(way.from, way.to, 2*time.Second)))
			start := time.Now()
			c, err := s.Host("a").Dial("tcp", "b:80")
			must(t, err)
			if took := time.Since(start); took < 2*time.Second || took > 2*time.Second+20*ms+us {
				t.Errorf("clog %s→%s: the dial took %v, want 2s and what is left of a round trip", way.from, way.to, took)
			}
			peer, err := l.Accept()
			must(t, err)
			go c.Write([]byte("hello"))
			if _, err := io.ReadFull(peer, make([]byte, 5)); err != nil {
				t.Error(err)
			}
			c.Close()
			peer.Close()

			must(t, second(s.Clog(way.from, way.to, 0)))
			start = time.Now()
			_, err = s.Host("a").Dial("tcp", "b:80")
			if took := time.Since(start); !errors.Is(err, syscall.ETIMEDOUT) || !around(took, 127*time.Second) {
				t.Errorf("clog %s→%s for ever: %v after %v, want ETIMEDOUT after 127s", way.from, way.to, err, took)
			}
		})
	}
}

func TestIdleStreamsThroughClogs(t *testing.T) {
	for _, c := range []struct {
		lasts time.Duration
		ends  bool
	}{{2 * time.Minute, false}, {4 * time.Minute, true}} {
		synctest.Test(t, func(t *testing.T) {
			s := twoHosts(t, straight(10*ms))
			client, _ := streamPair(t, s)
			must(t, second(s.Clog("a", "b", c.lasts)))
			client.SetReadDeadline(time.Now().Add(10 * time.Minute))
			_, err := client.Read(make([]byte, 1))
			if errors.Is(err, syscall.ETIMEDOUT) != c.ends {
				t.Errorf("a clog of %v: %v", c.lasts, err)
			}
		})
	}
}

func TestCircuitsThroughClogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := twoHosts(t, straight(10*ms))
		l, err := s.Host("b").Listen("simnet", "b")
		must(t, err)
		c, err := s.Host("a").Dial("simnet", "b")
		must(t, err)
		server, err := l.Accept()
		must(t, err)
		must(t, second(s.Clog("a", "b", time.Second)))
		for i := range 10 {
			fmt.Fprint(c, "message ", i)
			time.Sleep(ms)
		}
		start := time.Now()
		buf := make([]byte, 100)
		for i := range 10 {
			n, err := server.Read(buf)
			if want := fmt.Sprint("message ", i); err != nil || string(buf[:n]) != want {
				t.Fatalf("read %q, %v, want %q", buf[:n], err, want)
			}
		}
		if took := time.Since(start); !around(took, 990*ms) {
			t.Errorf("the messages came after %v", took)
		}
	})
}

func TestClearedLinksLoseWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := someHosts(t)
		setLink(t, s, "a", "b", gosimnet.LinkConfig{BitsPerSecond: 1e6})
		must(t, s.SetUplink("d", gosimnet.LinkConfig{BitsPerSecond: 1e6}))
		a, d := newSender(t, s, "a"), newSender(t, s, "d")
		must(t, second(s.Clog("a", "c", time.Second)))
		must(t, second(s.CutLink(gosimnet.HoldPackets, "c", "b")))
		s.AddRule(on(func(p *gosimnet.Packet) bool { return p.From == "b" && p.To == "a" }, gosimnet.Hold()))
		newSender(t, s, "b").send(125, "a")
		newSender(t, s, "c").send(125, "b")
		a.send(125, "c", "b", "b", "b", "b")
		d.send(125, "b", "a", "b", "a")
		time.Sleep(20 * ms)
		a.send(125, "b", "b", "b", "c")
		time.Sleep(2 * ms)
		for _, c := range []struct {
			from, to string
			n        int
		}{{"a", "b", 3}, {"d", "b", 0}, {"a", "", 2}, {"", "a", 1}, {"", "", 1}} {
			if n, err := s.ClearLink(c.from, c.to); n != c.n || err != nil {
				t.Errorf("%q→%q: %d cleared, %v, want %d", c.from, c.to, n, err, c.n)
			}
		}
		a.send(125, "b") // the wire has been free since the first of the three left
		time.Sleep(2 * time.Second)
		s.Heal()
		time.Sleep(time.Second)
		for id, want := range map[string]uint64{"a→b": 5, "a→c": 0, "d→b": 2, "d→a": 2, "b→a": 0, "c→b": 0} {
			from, to, _ := strings.Cut(id, "→")
			stats := statsOf(t, s, from, to)
			if stats.Delivered.Packets != want || stats.Held.Packets+stats.InFlight.Packets > 0 || stats.LostTo[gosimnet.CauseCleared].Packets != stats.Sent.Packets-want {
				t.Errorf("%s: %v, want %d delivered", id, stats, want)
			}
		}
		errorNames(t, second(s.ClearLink("a", "nobody")), "nobody")
	})
}

func TestOthersMoveUpWhenALinkIsClearedBehindASharedUplink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := someHosts(t)
		must(t, s.SetUplink("a", gosimnet.LinkConfig{BitsPerSecond: 1e6}))
		newSender(t, s, "a").send(125, "b", "c", "b", "c", "d")
		if n, err := s.ClearLink("a", "c"); n != 2 || err != nil {
			t.Errorf("%d cleared, %v", n, err)
		}
		time.Sleep(time.Second)
		wantDelivered(t, s, "those to b and d", "a→b@11ms a→b@12ms a→d@13ms")
	})
}

func TestStreamsOverClearedLinksLoseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := twoHosts(t, gosimnet.LinkConfig{BitsPerSecond: 50e6})
		go func() {
			time.Sleep(25 * ms) // until the connection is made
			for range 10 {
				time.Sleep(17 * ms)
				if _, err := s.ClearLink("", ""); err != nil {
					t.Error(err)
				}
			}
		}()
		crossBothWays(t, s, 1<<20)
		if n := statsOf(t, s, "a", "b").LostTo[gosimnet.CauseCleared].Packets; n == 0 {
			t.Error("nothing was cleared")
		}
	})
}

func TestSwizzleClog(t *testing.T) {
	differ := 0
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			s := newNet(t, &gosimnet.SimNetConfig{Seed: seed, TraceLimit: 10_000})
			names := []string{"a", "b", "c", "d", "e"}
			for _, h := range append(names, "spared") {
				s.Host(h)
			}
			start := time.Now()
			must(t, s.SwizzleClog(10*time.Second, names...))
			as := make(chan []arrival, 2)
			for _, to := range []string{"b", "spared"} {
				go func() { as <- volley(t, s, "a", to, 1000, 4, 10*ms, time.Second) }()
			}
			time.Sleep(20 * time.Second)
			clogged, released := swizzles(t, s, start)
			if slices.Sort(clogged); !slices.Equal(clogged, names) {
				t.Errorf("seed %d: clogged %v, want each of %v once", seed, clogged, names)
			}
			if !slices.IsSorted(released) {
				differ++
			}
			for range 2 {
				if got := <-as; len(got) != 1000 || !slices.IsSorted(numbers(got)) {
					t.Errorf("seed %d: %d arrived, want all, in order", seed, len(got))
				}
			}
			if stats := statsOf(t, s, "a", "spared"); stats.Held.Packets+stats.Lost.Packets > 0 {
				t.Errorf("seed %d: a→spared: %v", seed, stats)
			}
		})
	}
	if differ < 8 {
		t.Errorf("of ten seeds %d release in a random order", differ)
	}
	s := newNet(t, nil)
	s.Host("a")
	errorNames(t, s.SwizzleClog(time.Second, "nobody"), "nobody")
	errorNames(t, s.SwizzleClog(time.Second, "a", "a"), "a", "twice")
	errorNames(t, s.SwizzleClog(0, "a"), "0s")
	errorNames(t, s.SwizzleClog(-time.Second), "-1s")
}

// swizzles lists the hosts in the order of their clogs, all of which must come in the first half of ten seconds, and in that of their releases, in the second.
func swizzles(t *testing.T, s *gosimnet.Simnet, start time.Time) (clogged, released []string) {
	t.Helper()
	for e := range s.Trace() {
		at := e.Time.Sub(start)
		switch {
		case e.Kind == gosimnet.EventFault && e.Cause == "clog":
			clogged = append(clogged, e.To)
			if at > 5*time.Second {
				t.Errorf("%s clogged at %v", e.To, at)
			}
		case e.Kind == gosimnet.EventRepair:
			_, to, _ := strings.Cut(e.Cause, "→")
			released = append(released, to)
			if at < 5*time.Second || at > 10*time.Second {
				t.Errorf("%s released at %v", to, at)
			}
		}
	}
	return clogged, released
}

func TestImpossibleClogsAreErrors(t *testing.T) {
	s := newNet(t, nil)
	s.Host("a")
	errorNames(t, second(s.Clog("a", "nobody", time.Second)), "nobody")
	errorNames(t, second(s.Clog("nobody", "", time.Second)), "nobody")
	s.Close()
	if _, err := s.Clog("a", "", time.Second); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// A reader opens its window while the sender cannot hear it; when it can again, the rest must come.
func TestWindowsThatOpenWhileTheWayBackIsDown(t *testing.T) {
	for _, c := range []struct {
		name  string
		block func(s *gosimnet.Simnet) (func(), error)
	}{
		{"clog", func(s *gosimnet.Simnet) (func(), error) { return s.Clog("b", "a", 0) }},
		{"dropping cut", func(s *gosimnet.Simnet) (func(), error) { return s.CutLink(gosimnet.DropPackets, "b", "a") }},
		{"holding cut", func(s *gosimnet.Simnet) (func(), error) { return s.CutLink(gosimnet.HoldPackets, "b", "a") }},
		{"isolation", func(s *gosimnet.Simnet) (func(), error) {
			_, err := s.AlterHost("b", gosimnet.ISOLATE)
			return func() { s.AlterHost("b", gosimnet.UNISOLATE) }, err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newNet(t, &gosimnet.SimNetConfig{ReceiveBuffer: 4096})
				s.Host("a")
				s.Host("b")
				client, server := streamPair(t, s)
				const size = 64 << 10
				wrote := make(chan error, 1)
				go func() {
					_, err := client.Write(make([]byte, size))
					wrote <- err
				}()
				time.Sleep(time.Second)
				heal, err := c.block(s)
				must(t, err)
				if _, err := io.ReadFull(server, make([]byte, 4096)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				start := time.Now()
				heal()
				server.SetReadDeadline(time.Now().Add(time.Minute))
				if n, err := io.ReadFull(server, make([]byte, size-4096)); err != nil {
					t.Fatalf("read %d bytes of the rest: %v", n, err)
				}
				if took := time.Since(start); took > 2*time.Second {
					t.Errorf("the rest took %v", took)
				}
				must(t, <-wrote)
			})
		})
	}
}
