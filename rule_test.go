package gosimnet_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

// letter is the classifier of these tests: the kind of a payload is its first byte.
func letter(network string, payload []byte) string { return network + ":" + string(payload[:1]) }

// ruled sends the datagrams "A0", "B1", "A2", "B3" … from a to b, one a millisecond over 10 ms, under a rule, and lists what arrives, as "A0@10ms".
func ruled(t *testing.T, n int, cfg gosimnet.LinkConfig, rules ...gosimnet.Rule) (got []string, stats gosimnet.LinkStats) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cfg.Latency = gosimnet.Constant(10 * ms)
		s := twoHosts(t, cfg)
		s.Classify(letter)
		for _, r := range rules {
			s.AddRule(r)
		}
		sink, from := listenUDP(t, s, "b", ":7"), listenUDP(t, s, "a", ":5")
		dst := udpAddr(s.Host("b").Addrs()[0].AsSlice(), 7)
		start := time.Now()
		go func() {
			for i := range n {
				fmt.Fprintf(to{from, dst}, "%c%d", "AB"[i%2], i)
				time.Sleep(ms)
			}
		}()
		sink.SetReadDeadline(start.Add(time.Minute))
		buf := make([]byte, 100)
		for {
			m, _, err := sink.ReadFrom(buf)
			if err != nil {
				break
			}
			got = append(got, fmt.Sprintf("%s@%v", buf[:m], time.Since(start).Round(10*us)))
		}
		stats = statsOf(t, s, "a", "b")
	})
	return got, stats
}

// to writes datagrams to an address.
type to struct {
	from *gosimnet.PacketConn
	dst  net.Addr
}

func (w to) Write(b []byte) (int, error) { return w.from.WriteTo(b, w.dst) }

// on gives a verdict on the packets that are meant, and passes the others.
func on(meant func(p *gosimnet.Packet) bool, v gosimnet.Verdict) gosimnet.Rule {
	return func(p *gosimnet.Packet) gosimnet.Verdict {
		if meant(p) {
			return v
		}
		return gosimnet.Pass()
	}
}

func number(n uint64) func(p *gosimnet.Packet) bool {
	return func(p *gosimnet.Packet) bool { return p.N == n }
}

func TestVerdictsOnDatagrams(t *testing.T) {
	unordered := gosimnet.LinkConfig{Ordering: gosimnet.Unordered}
	for _, c := range []struct {
		name  string
		cfg   gosimnet.LinkConfig
		rules []gosimnet.Rule
		want  string
	}{
		{"pass", unordered, []gosimnet.Rule{on(number(1), gosimnet.Pass())}, "A0@10ms B1@11ms A2@12ms B3@13ms"},
		{"the zero verdict", unordered, []gosimnet.Rule{on(number(1), gosimnet.Verdict{})}, "A0@10ms B1@11ms A2@12ms B3@13ms"},
		{"drop the second", unordered, []gosimnet.Rule{on(number(1), gosimnet.Drop())}, "A0@10ms A2@12ms B3@13ms"},
		{"hold the second for ever", unordered, []gosimnet.Rule{on(number(1), gosimnet.Hold())}, "A0@10ms A2@12ms B3@13ms"},
		{"delay the second", unordered, []gosimnet.Rule{on(number(1), gosimnet.Delay(5*ms))}, "A0@10ms A2@12ms B3@13ms B1@16ms"},
		{"delay on an ordered link", gosimnet.LinkConfig{}, []gosimnet.Rule{on(number(1), gosimnet.Delay(5*ms))}, "A0@10ms B1@16ms A2@16ms B3@16ms"},
		{"no delay", unordered, []gosimnet.Rule{on(number(1), gosimnet.Delay(-ms))}, "A0@10ms B1@11ms A2@12ms B3@13ms"},
		{"duplicate", unordered, []gosimnet.Rule{on(number(1), gosimnet.Duplicate())}, "A0@10ms B1@11ms B1@11ms A2@12ms B3@13ms"},
		{"reject", unordered, []gosimnet.Rule{on(number(1), gosimnet.Reject())}, "A0@10ms A2@12ms B3@13ms"},
		{"the first verdict wins", unordered, []gosimnet.Rule{on(number(0), gosimnet.Delay(20*ms)), on(number(0), gosimnet.Drop()), on(number(1), gosimnet.Drop())},
			"A2@12ms B3@13ms A0@30ms"},
		{"a kind", unordered, []gosimnet.Rule{on(func(p *gosimnet.Packet) bool { return p.Kind == "udp:B" }, gosimnet.Drop())}, "A0@10ms A2@12ms"},
		{"all but a kind", unordered, []gosimnet.Rule{on(func(p *gosimnet.Packet) bool { return p.Kind != "udp:B" }, gosimnet.Drop())}, "B1@11ms B3@13ms"},
		{"a port", unordered, []gosimnet.Rule{on(func(p *gosimnet.Packet) bool { return p.Dst.Port() == 7 && p.Src.Port() == 5 }, gosimnet.Drop())}, ""},
		{"another port", unordered, []gosimnet.Rule{on(func(p *gosimnet.Packet) bool { return p.Dst.Port() == 8 }, gosimnet.Drop())}, "A0@10ms B1@11ms A2@12ms B3@13ms"},
		{"a protocol", unordered, []gosimnet.Rule{on(func(p *gosimnet.Packet) bool { return p.Network == "udp" }, gosimnet.Drop())}, ""},
		{"the other protocol", unordered, []gosimnet.Rule{on(func(p *gosimnet.Packet) bool { return p.Network == "tcp" }, gosimnet.Drop())}, "A0@10ms B1@11ms A2@12ms B3@13ms"},
		{"a link", unordered, []gosimnet.Rule{on(func(p *gosimnet.Packet) bool { return p.From == "b" && p.To == "a" }, gosimnet.Drop())}, "A0@10ms B1@11ms A2@12ms B3@13ms"},
		{"payloads", unordered, []gosimnet.Rule{on(func(p *gosimnet.Packet) bool { return bytes.HasSuffix(p.Payload, []byte("2")) && p.Size == 2 }, gosimnet.Drop())}, "A0@10ms B1@11ms B3@13ms"},
		{"a nil rule", unordered, []gosimnet.Rule{nil}, "A0@10ms B1@11ms A2@12ms B3@13ms"},
	} {
		got, _ := ruled(t, 4, c.cfg, c.rules...)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
}

func TestRulesWithinATimeWindow(t *testing.T) {
	begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of every bubble
	window := func(p *gosimnet.Packet) bool {
		at := p.Time.Sub(begin)
		return at >= 2*ms && at < 4*ms
	}
	if got, _ := ruled(t, 6, gosimnet.LinkConfig{}, on(window, gosimnet.Drop())); strings.Join(got, " ") != "A0@10ms B1@11ms A4@14ms B5@15ms" {
		t.Errorf("dropped from 2ms to 4ms: %v", got)
	}
}

// A rule may depend on what the test does meanwhile: it decides when the packet leaves, not when somebody first needs to know.
func TestRulesDecideWhenPacketsLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := twoHosts(t, straight(time.Second))
		sink, from := listenUDP(t, s, "b", ":7"), listenUDP(t, s, "a", ":5")
		dst := udpAddr(s.Host("b").Addrs()[0].AsSlice(), 7)
		var lossy atomic.Bool
		s.AddRule(func(*gosimnet.Packet) gosimnet.Verdict {
			if lossy.Load() {
				return gosimnet.Drop()
			}
			return gosimnet.Pass()
		})
		for i, loses := range []bool{false, true, false} {
			lossy.Store(loses)
			fmt.Fprint(to{from, dst}, i)
			time.Sleep(ms)
		}
		sink.SetReadDeadline(time.Now().Add(time.Minute))
		for _, want := range "02" {
			buf := make([]byte, 10)
			if n, _, err := sink.ReadFrom(buf); err != nil || string(buf[:n]) != string(want) {
				t.Errorf("%q, %v; want %c", buf[:n], err, want)
			}
		}
	})
}

func TestRulesSeeEveryPacketOfAStreamAsItLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := twoHosts(t, straight(time.Second))
		begin := time.Now()
		var mu sync.Mutex
		var seen []string
		s.AddRule(func(p *gosimnet.Packet) gosimnet.Verdict {
			mu.Lock()
			defer mu.Unlock()
			if now := time.Now(); !about(now.Sub(p.Time), 0) {
				t.Errorf("%s, sent after %v, is seen after %v", p.What, p.Time.Sub(begin), now.Sub(begin))
			}
			seen = append(seen, p.What)
			return gosimnet.Pass()
		})
		client, server := streamPair(t, s)
		must(t, second(client.Write([]byte("x"))))
		must(t, second(server.Read(make([]byte, 1))))
		must(t, client.Close())
		time.Sleep(ms)
		mu.Lock()
		defer mu.Unlock()
		if got := strings.Join(seen, " "); got != "SYN SYN/ACK ACK data FIN" {
			t.Errorf("seen: %s", got)
		}
	})
}

func TestVerdictsAreCounted(t *testing.T) {
	verdicts := []gosimnet.Verdict{gosimnet.Drop(), gosimnet.Hold(), gosimnet.Duplicate(), gosimnet.Reject(), gosimnet.Corrupt(), gosimnet.Pass()}
	got, stats := ruled(t, 6, gosimnet.LinkConfig{}, func(p *gosimnet.Packet) gosimnet.Verdict { return verdicts[p.N] })
	if len(got) != 4 {
		t.Errorf("arrived: %v", got)
	}
	count := func(packets uint64) gosimnet.LinkCount {
		return gosimnet.LinkCount{Packets: packets, Bytes: 2 * packets}
	}
	sameStats(t, "counters", stats, gosimnet.LinkStats{Sent: count(6), Delivered: count(4), Lost: count(2), Held: count(1), Duplicated: count(1), Corrupted: count(1),
		Rejected: count(1), LostTo: map[string]gosimnet.LinkCount{gosimnet.CauseRule: count(1), gosimnet.CauseRejected: count(1)}})
	if stats.Rejected != count(1) {
		t.Errorf("rejected: %v", stats.Rejected)
	}
}

func TestTheCorruptVerdictFlipsOneBitOnce(t *testing.T) {
	// The link would corrupt every packet, too; the same bit twice would be none.
	got, stats := ruled(t, 10, gosimnet.LinkConfig{Corrupt: 1}, on(number(3), gosimnet.Corrupt()))
	for i, g := range got {
		text, _, _ := strings.Cut(g, "@")
		clean := fmt.Sprintf("%c%d", "AB"[i%2], i)
		if wrong := bits.OnesCount8(text[0]^clean[0]) + bits.OnesCount8(text[1]^clean[1]); wrong != 1 {
			t.Errorf("datagram %d: %d bits are wrong", i, wrong)
		}
	}
	if len(got) != 10 || stats.Corrupted.Packets != 10 {
		t.Errorf("%d arrived: %v", len(got), stats)
	}
}

func TestHeldPacketsAreReleasedInOrder(t *testing.T) {
	for _, how := range []string{"removal", "Heal"} {
		synctest.Test(t, func(t *testing.T) {
			s := twoHosts(t, straight(10*ms))
			remove := s.AddRule(on(func(p *gosimnet.Packet) bool { return p.Network == "udp" }, gosimnet.Hold()))
			other := s.AddRule(on(func(p *gosimnet.Packet) bool { return true }, gosimnet.Pass()))
			time.AfterFunc(100*ms, func() {
				if got := statsOf(t, s, "a", "b"); got.Held.Packets != 10 {
					t.Errorf("held: %v", got)
				}
				if how == "Heal" {
					s.Heal()
				} else {
					remove()
					remove()
				}
				other()
			})
			as := volley(t, s, "a", "b", 20, 4, 11*ms, time.Second)
			want := 20
			if how == "Heal" { // the rule goes on holding what comes later
				want = 10
			}
			if len(as) != want || !slices.IsSorted(numbers(as)) {
				t.Fatalf("%s: arrived: %v", how, numbers(as))
			}
			for _, a := range as[:10] {
				if !around(a.at, 110*ms) {
					t.Errorf("%s: packet %d came at %v, want 110ms", how, a.n, a.at)
				}
			}
		})
	}
}

func TestVerdictsOnStreams(t *testing.T) {
	data := func(p *gosimnet.Packet) bool { return p.What == "data" && p.From == "a" }
	once := func(v gosimnet.Verdict) gosimnet.Rule {
		done := false
		return func(p *gosimnet.Packet) gosimnet.Verdict {
			if done || !data(p) {
				return gosimnet.Pass()
			}
			done = true
			return v
		}
	}
	for _, c := range []struct {
		name string
		rule gosimnet.Rule
		took time.Duration
		err  error
	}{
		{"pass", once(gosimnet.Pass()), 10 * ms, nil},
		{"drop one", once(gosimnet.Drop()), 210 * ms, nil}, // a retransmission time-out
		{"corrupt one", once(gosimnet.Corrupt()), 210 * ms, nil},
		{"duplicate one", once(gosimnet.Duplicate()), 10 * ms, nil},
		{"delay one", once(gosimnet.Delay(35 * ms)), 45 * ms, nil},
		{"drop all", on(data, gosimnet.Drop()), time.Minute, os.ErrDeadlineExceeded},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := twoHosts(t, straight(10*ms))
			client, server := streamPair(t, s)
			s.AddRule(c.rule)
			start := time.Now()
			text := []byte("three segments of four bytes")
			go func() {
				for part := range slices.Chunk(text, 10) {
					client.Write(part)
				}
			}()
			server.SetReadDeadline(start.Add(time.Minute))
			got := make([]byte, len(text))
			_, err := io.ReadFull(server, got)
			if took := time.Since(start); !errors.Is(err, c.err) || !around(took, c.took) {
				t.Errorf("%s: %v after %v, want %v after %v", c.name, err, took, c.err, c.took)
			}
			if err == nil && !bytes.Equal(got, text) {
				t.Errorf("%s: read %q", c.name, got)
			}
		})
	}
}

func TestTheRejectVerdictResetsTheSenderOfAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := twoHosts(t, straight(10*ms))
		client, server := streamPair(t, s)
		remove := s.AddRule(on(func(p *gosimnet.Packet) bool { return p.What == "data" }, gosimnet.Reject()))
		start := time.Now()
		must(t, second(client.Write([]byte("x"))))
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) || !around(time.Since(start), 10*ms) {
			t.Errorf("the sender: %v after %v", err, time.Since(start))
		}
		remove()
		must(t, second(server.Write([]byte("y")))) // the other end learns of it by what it sends itself
		if _, err := server.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) || !around(time.Since(start), 30*ms) {
			t.Errorf("the receiver: %v after %v", err, time.Since(start))
		}
	})
}

func TestRulesOnThePhasesOfAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := twoHosts(t, straight(10*ms))
		var seen []string
		s.AddRule(func(p *gosimnet.Packet) gosimnet.Verdict {
			seen = append(seen, fmt.Sprintf("%s→%s %v %s", p.From, p.To, p.Phase, p.What))
			return gosimnet.Pass()
		})
		client, server := streamPair(t, s)
		client.Write([]byte("x"))
		server.Read(make([]byte, 1))
		client.Close()
		time.Sleep(time.Second)
		server.Write([]byte("nobody reads this"))
		time.Sleep(time.Second)
		server.Close()
		time.Sleep(time.Second)
		want := []string{"a→b PhaseOpen SYN", "b→a PhaseOpen SYN/ACK", "a→b PhaseOpen ACK", "a→b PhaseData data", "a→b PhaseClose FIN", "b→a PhaseData data", "a→b PhaseReset RST"}
		if !slices.Equal(seen, want) {
			t.Errorf("a rule sees\n%s, want\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
		}
	})
}

func TestRulesOnDials(t *testing.T) {
	for _, c := range []struct {
		phase   string
		verdict gosimnet.Verdict
		took    time.Duration
		err     error
	}{
		{"SYN", gosimnet.Drop(), 127 * time.Second, syscall.ETIMEDOUT},
		{"SYN", gosimnet.Hold(), 127 * time.Second, syscall.ETIMEDOUT},
		{"SYN", gosimnet.Reject(), 10 * ms, syscall.ECONNREFUSED},
		{"SYN", gosimnet.Delay(50 * ms), 70 * ms, nil},
		{"SYN", gosimnet.Duplicate(), 20 * ms, nil},
		{"SYN/ACK", gosimnet.Drop(), 127 * time.Second, syscall.ETIMEDOUT},
		{"SYN/ACK", gosimnet.Delay(5 * ms), 25 * ms, nil},
		{"ACK", gosimnet.Drop(), 20 * ms, nil}, // the client does not know
	} {
		synctest.Test(t, func(t *testing.T) {
			s := twoHosts(t, straight(10*ms))
			l, err := s.Host("b").Listen("tcp", ":80")
			must(t, err)
			defer l.Close()
			s.AddRule(on(func(p *gosimnet.Packet) bool { return p.What == c.phase }, c.verdict))
			start := time.Now()
			_, err = s.Host("a").Dial("tcp", "b:80")
			if took := time.Since(start); !errors.Is(err, c.err) || !around(took, c.took) {
				t.Errorf("%s: %v after %v, want %v after %v", c.phase, err, took, c.err, c.took)
			}
		})
	}
}

func TestTheRejectVerdictTellsConnectedSockets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := twoHosts(t, straight(10*ms))
		s.AddRule(on(func(p *gosimnet.Packet) bool { return p.Network == "udp" }, gosimnet.Reject()))
		c, err := s.Host("a").Dial("udp", "b:7")
		must(t, err)
		start := time.Now()
		must(t, second(c.Write([]byte("x"))))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNREFUSED) || !around(time.Since(start), 10*ms) {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		loose := listenUDP(t, s, "a", ":9")
		must(t, second(loose.WriteTo([]byte("x"), udpAddr(s.Host("b").Addrs()[0].AsSlice(), 7))))
		loose.SetReadDeadline(time.Now().Add(time.Second))
		if _, _, err := loose.ReadFrom(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("unconnected: %v", err)
		}
	})
}

func TestRulesOnCircuits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := twoHosts(t, straight(10*ms))
		l, err := s.Host("b").Listen("simnet", "service")
		must(t, err)
		c, err := s.Host("a").Dial("simnet", "service")
		must(t, err)
		server, err := l.Accept()
		must(t, err)
		s.Classify(letter)
		remove := s.AddRule(func(p *gosimnet.Packet) gosimnet.Verdict {
			switch p.Kind {
			case "simnet:D":
				return gosimnet.Drop()
			case "simnet:H":
				return gosimnet.Hold()
			case "simnet:T":
				return gosimnet.Duplicate()
			}
			return gosimnet.Pass()
		})
		for _, m := range []string{"one", "Dropped", "Held", "Two", "three"} {
			must(t, second(c.Write([]byte(m))))
		}
		time.AfterFunc(time.Second, remove)
		var got []string
		buf := make([]byte, 100)
		for range 5 {
			n, err := server.Read(buf)
			must(t, err)
			got = append(got, string(buf[:n]))
		}
		if want := []string{"one", "Two", "Two", "three", "Held"}; !slices.Equal(got, want) {
			t.Errorf("read %q, want %q", got, want)
		}
	})
}

func TestDeliveredPacketsAreCountedByKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := twoHosts(t, straight(10*ms))
		client, server := streamPair(t, s)
		if got := s.Delivered(); len(got) != 0 {
			t.Errorf("handshakes carry no payload: %v", got)
		}
		send := func(texts ...string) {
			for _, text := range texts {
				must(t, second(client.Write([]byte(text))))
				must(t, second(server.Read(make([]byte, 100))))
			}
		}
		check := func(want map[string]uint64) {
			t.Helper()
			if got := s.Delivered(); !maps.Equal(got, want) {
				t.Errorf("delivered %v, want %v", got, want)
			}
		}
		send("x", "y")
		check(map[string]uint64{"": 2})
		s.Classify(func(_ string, payload []byte) string { return strings.TrimRight(string(payload), "0123456789") })
		send("append1", "append2", "vote1", "42")
		check(map[string]uint64{"": 3, "append": 2, "vote": 1})
		remove := s.AddRule(on(func(p *gosimnet.Packet) bool { return p.Kind == "vote" }, gosimnet.Drop()))
		client.Write([]byte("vote2"))
		time.Sleep(time.Minute) // what is lost is not counted, nor is what is sent again and lost again
		check(map[string]uint64{"": 3, "append": 2, "vote": 1})
		remove()
		time.Sleep(2 * time.Minute)
		check(map[string]uint64{"": 3, "append": 2, "vote": 2})
		s.Classify(nil)
		must(t, second(server.Read(make([]byte, 100))))
		send("vote3")
		check(map[string]uint64{"": 4, "append": 2, "vote": 2})
		s.Delivered()["vote"] = 99
		check(map[string]uint64{"": 4, "append": 2, "vote": 2})
	})
}

func TestARestartClearsNoPartitionAndNoFilter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := someHosts(t)
		must(t, second(s.Partition(gosimnet.DropPackets, []string{"a"}, []string{"b"})))
		s.AddRule(on(func(p *gosimnet.Packet) bool { return p.From == "a" && p.To == "c" }, gosimnet.Drop()))
		must(t, second(s.Clog("a", "d", 0)))
		must(t, second(s.AlterHost("a", gosimnet.SHUTDOWN)))
		time.Sleep(time.Second)
		must(t, second(s.AlterHost("a", gosimnet.POWERON)))
		newSender(t, s, "a").send(4, "b", "c", "d", "a")
		newSender(t, s, "b").send(4, "a", "c")
		time.Sleep(time.Second)
		wantDelivered(t, s, "after a restart", "a→a@10µs b→c@10.01ms")
	})
}

func TestAHostThatIsOffReceivesNothingAndReceivesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := twoHosts(t, straight(10*ms))
		a := newSender(t, s, "a")
		a.send(4, "b") // under way when the power goes
		must(t, second(s.AlterHost("b", gosimnet.SHUTDOWN)))
		a.send(4, "b")
		time.Sleep(20 * ms)
		a.send(4, "b") // it arrives when the power is back
		time.Sleep(5 * ms)
		must(t, second(s.AlterHost("b", gosimnet.POWERON)))
		sink := listenUDP(t, s, "b", ":7")
		a.send(4, "b")
		sink.SetReadDeadline(time.Now().Add(time.Second))
		got := 0
		for buf := make([]byte, 10); ; got++ {
			if _, _, err := sink.ReadFrom(buf); err != nil {
				break
			}
		}
		if stats := statsOf(t, s, "a", "b"); got != 2 || stats.LostTo[gosimnet.CausePower].Packets != 2 {
			t.Errorf("%d arrived: %v", got, stats)
		}
	})
}

// conversed lets sockets of the hosts a and b send to each other three times, a first and b in answer, or, crossing, b at the same time besides, and lists the
// numbers of what leaves each of them.
func conversed(t *testing.T, port string, crossing bool) (fromA, fromB []uint64) {
	t.Helper()
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		a, b := listenUDP(t, s, "a", port), listenUDP(t, s, "b", port)
		s.AddRule(func(p *gosimnet.Packet) gosimnet.Verdict {
			if p.From == "a" {
				fromA = append(fromA, p.N)
			} else {
				fromB = append(fromB, p.N)
			}
			return gosimnet.Pass()
		})
		at := func(c *gosimnet.PacketConn, host string) *net.UDPAddr {
			return udpAt(s.Host(host).Addrs()[0].String(), c.LocalAddr().(*net.UDPAddr).Port)
		}
		for range 3 {
			if send(t, a, "question", at(b, "b")); crossing {
				send(t, b, "another", at(a, "a"))
				hear(t, a)
			}
			hear(t, b)
			send(t, b, "answer", at(a, "a"))
			hear(t, a)
		}
	})
	return fromA, fromB
}

// hear takes a datagram.
func hear(t *testing.T, c *gosimnet.PacketConn) {
	t.Helper()
	if _, _, err := c.ReadFrom(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
}

func TestTheDatagramsOfTwoSocketsAreNumberedThroughout(t *testing.T) {
	three, six := []uint64{0, 1, 2}, []uint64{0, 1, 2, 3, 4, 5}
	for _, port := range []string{":7", ":51820", ":0"} {
		if a, b := conversed(t, port, false); !slices.Equal(a, three) || !slices.Equal(b, three) {
			t.Errorf("port %s: questions %d and answers %d, want %d of each", port, a, b, three)
		}
		if a, b := conversed(t, port, true); !slices.Equal(a, three) || !slices.Equal(b, six) {
			t.Errorf("port %s, crossing: questions %d, want %d, and from b %d, want %d", port, a, three, b, six)
		}
	}
}

func TestRulesKnowPacketsByTheirProtocol(t *testing.T) {
	for _, network := range []string{"tcp", "tcp4", "tcp6", "udp", "udp4", "udp6"} {
		t.Run(network, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := twoHosts(t, gosimnet.LinkConfig{})
				if network[:3] == "udp" {
					listenUDP(t, s, "b", ":7")
				} else if _, err := s.Host("b").Listen("tcp", ":7"); err != nil {
					t.Fatal(err)
				}
				seen, classified := make(map[string]bool), make(map[string]bool)
				s.Classify(func(network string, _ []byte) string { classified[network] = true; return "" })
				s.AddRule(func(p *gosimnet.Packet) gosimnet.Verdict { seen[p.Network] = true; return gosimnet.Pass() })
				recording := s.RecordFates()
				c, err := s.Host("a").Dial(network, "b:7")
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				if _, err := c.Write([]byte("x")); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				for _, f := range recording.Fates() {
					seen[f.Network] = true
				}
				for e := range s.Trace() {
					if e.Kind == gosimnet.EventSend {
						seen[e.Network] = true
					}
				}
				if want := map[string]bool{network[:3]: true}; !maps.Equal(seen, want) || !maps.Equal(classified, want) {
					t.Errorf("rules, recordings and traces know %v, the classifier %v; want %v", seen, classified, want)
				}
			})
		})
	}
}
