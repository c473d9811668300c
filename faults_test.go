package gosimnet_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
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

// noError ends the test if there is an error.
func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// about reports whether a time is the one that was wanted, but for the nanoseconds that wake-ups are kept apart.
func about(got, want time.Duration) bool { return got >= want && got < want+time.Microsecond }

// openCircuit opens a message circuit between two hosts.
func openCircuit(t *testing.T, s *gosimnet.Simnet, from, to string) (client, server net.Conn) {
	t.Helper()
	name := fmt.Sprintf("%s for %s", to, from)
	l, err := s.Host(to).Listen("simnet", name)
	noError(t, err)
	defer l.Close()
	client, err = s.Host(from).Dial("simnet", name)
	noError(t, err)
	server, err = l.Accept()
	noError(t, err)
	return client, server
}

// openStream opens a stream between two hosts.
func openStream(t *testing.T, s *gosimnet.Simnet, from, to, port string) (client, server net.Conn) {
	t.Helper()
	l, err := s.Host(to).Listen("tcp", port)
	noError(t, err)
	defer l.Close()
	client, err = s.Host(from).Dial("tcp", to+port)
	noError(t, err)
	server, err = l.Accept()
	noError(t, err)
	return client, server
}

// say writes messages.
func say(t *testing.T, c net.Conn, messages ...string) {
	t.Helper()
	for _, m := range messages {
		if _, err := c.Write([]byte(m)); err != nil {
			t.Fatalf("Write of %q: %v", m, err)
		}
	}
}

// count lists the numbers from one to another, as messages.
func count(from, to int) (all []string) {
	for i := from; i <= to; i++ {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

// heard reads messages for a while.
func heard(t *testing.T, c net.Conn, while time.Duration) (all []string) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(while))
	defer c.SetReadDeadline(time.Time{})
	b := make([]byte, 100)
	for {
		n, err := c.Read(b)
		if err != nil {
			return all
		}
		all = append(all, string(b[:n]))
	}
}

// wantHeard compares what arrives within a second with what is wanted.
func wantHeard(t *testing.T, c net.Conn, want ...string) {
	t.Helper()
	if got := heard(t, c, time.Second); !slices.Equal(got, want) {
		t.Errorf("%v→%v: heard %q, want %q", c.RemoteAddr(), c.LocalAddr(), got, want)
	}
}

func drop(p float64) gosimnet.DropDeafSpec {
	return gosimnet.DropDeafSpec{UpdateDropSends: true, DropSendsNewProb: p}
}

func deaf(p float64) gosimnet.DropDeafSpec {
	return gosimnet.DropDeafSpec{UpdateDeafReads: true, DeafReadsNewProb: p}
}

// threeHosts is a network of hosts a, b and c, 10 ms apart.
func threeHosts(t *testing.T, cfg *gosimnet.SimNetConfig) *gosimnet.Simnet {
	t.Helper()
	s := newNet(t, cfg)
	for _, name := range []string{"a", "b", "c"} {
		s.Host(name)
	}
	return s
}

// bubble runs a test in a bubble, with a network of three hosts.
func bubble(t *testing.T, f func(t *testing.T, s *gosimnet.Simnet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, threeHosts(t, nil)) })
}

func wantState(t *testing.T, h *gosimnet.Host, want gosimnet.Faultstate) {
	t.Helper()
	if got := h.State(); got != want {
		t.Errorf("%s is %v, want %v", h.Name(), got, want)
	}
}

func alter(t *testing.T, s *gosimnet.Simnet, host string, a, undo gosimnet.Alteration) {
	t.Helper()
	if got, err := s.AlterHost(host, a); err != nil || got != undo {
		t.Errorf("AlterHost(%q, %v): undo %v, %v, want %v", host, a, got, err, undo)
	}
}

func TestDropSendsLosesWhatOriginSends(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		ab, ba := openCircuit(t, s, "a", "b")
		ac, ca := openCircuit(t, s, "a", "c")
		noError(t, s.FaultCircuit("a", "b", drop(1), false))
		say(t, ab, "lost")
		say(t, ba, "back")
		say(t, ac, "elsewhere")
		wantHeard(t, ba)
		wantHeard(t, ab, "back")
		wantHeard(t, ca, "elsewhere")
		if n := statsOf(t, s, "a", "b").LostTo[gosimnet.CauseDropSend]; n != (gosimnet.LinkCount{Packets: 1, Bytes: 4}) {
			t.Errorf("%+v were lost to the sender's card", n)
		}
	})
}

func TestDeafReadsLosesWhatReachesOrigin(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		ab, ba := openCircuit(t, s, "a", "b")
		cb, bc := openCircuit(t, s, "c", "b")
		noError(t, s.FaultCircuit("b", "a", deaf(1), false))
		say(t, ab, "unheard")
		say(t, cb, "heard")
		say(t, ba, "out")
		wantHeard(t, ba)
		wantHeard(t, bc, "heard")
		wantHeard(t, ab, "out")
		if n := statsOf(t, s, "a", "b").LostTo[gosimnet.CauseDeafRead].Packets; n != 1 {
			t.Errorf("%d packets were lost to deafness", n)
		}
	})
}

func TestEmptyTargetIsEveryTargetPresentAndFuture(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		noError(t, s.FaultCircuit("a", "", drop(1), false))
		s.Host("newcomer")
		for _, to := range []string{"b", "newcomer"} {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			if _, err := s.Host("a").DialContext(ctx, "tcp", to+":1"); err == nil || errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("Dial from a faulty host to %s: %v", to, err)
			}
			cancel()
			if _, err := s.Host("c").Dial("tcp", to+":1"); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("Dial from a healthy host to %s: %v", to, err)
			}
		}
	})
}

func TestFaultOfOneEndpoint(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		c80, s80 := openStream(t, s, "a", "b", ":80")
		c81, s81 := openStream(t, s, "a", "b", ":81")
		noError(t, s.FaultCircuit("b:80", "a", drop(1), false))
		say(t, s80, "through 80")
		say(t, s81, "through 81")
		wantHeard(t, c80)
		wantHeard(t, c81, "through 81")
		say(t, c80, "to 80")
		wantHeard(t, s80, "to 80")

		noError(t, s.FaultCircuit("b:80", "", drop(0), true))
		wantHeard(t, c80, "through 80")

		noError(t, s.FaultCircuit("a", "b:81", drop(1), false))
		say(t, c80, "to 80")
		say(t, c81, "to 81")
		wantHeard(t, s80, "to 80")
		wantHeard(t, s81)
	})
}

func TestFaultOfANamedEndpoint(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		ab, ba := openCircuit(t, s, "a", "b")
		ab2, ba2 := openCircuit(t, s, "a", "b")
		noError(t, s.FaultCircuit(ab2.LocalAddr().String(), "", drop(1), false))
		say(t, ab, "one")
		say(t, ab2, "two")
		wantHeard(t, ba, "one")
		wantHeard(t, ba2)
	})
}

func TestHalfIsAFairCoin(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		ab, ba := openCircuit(t, s, "a", "b")
		noError(t, s.FaultHost("a", drop(0.5), false))
		const n = 4000
		came := make([]bool, n)
		for i := range n {
			say(t, ab, fmt.Sprint(i))
			if i%100 == 99 {
				for _, m := range heard(t, ba, time.Second) {
					var k int
					fmt.Sscan(m, &k)
					came[k] = true
				}
			}
		}
		arrivals, changes := 0, 0
		for i, c := range came {
			if c {
				arrivals++
			}
			if i > 0 && c != came[i-1] {
				changes++
			}
		}
		const four = 4 * 0.5 * 63.25 // standard deviations of n fair coins
		if math.Abs(float64(arrivals-n/2)) > four || math.Abs(float64(changes-n/2)) > four {
			t.Errorf("of %d messages %d arrived, in %d runs: no fair coin", n, arrivals, changes)
		}
	})
}

func TestProbabilitiesThatAreNotUpdatedStay(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		ab, ba := openCircuit(t, s, "a", "b")
		noError(t, s.FaultHost("a", drop(1), false))
		noError(t, s.FaultHost("a", deaf(1), false))
		noError(t, s.FaultHost("a", gosimnet.DropDeafSpec{DropSendsNewProb: 0, DeafReadsNewProb: 0}, false))
		say(t, ab, "out")
		say(t, ba, "in")
		wantHeard(t, ba)
		wantHeard(t, ab)
		wantState(t, s.Host("a"), gosimnet.FAULTY)
		wantState(t, s.Host("b"), gosimnet.HEALTHY)
		noError(t, s.FaultHost("a", deaf(0), false))
		say(t, ba, "in again")
		wantHeard(t, ab, "in again")
		wantState(t, s.Host("a"), gosimnet.FAULTY)
		noError(t, s.FaultHost("a", drop(0), false))
		wantState(t, s.Host("a"), gosimnet.HEALTHY)
	})
}

func TestTheLastFaultOfACircuitCounts(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		ab, ba := openCircuit(t, s, "a", "b")
		ac, ca := openCircuit(t, s, "a", "c")
		noError(t, s.FaultHost("a", drop(1), false))
		noError(t, s.FaultCircuit("a", "b", drop(0), false))
		say(t, ab, "healthy circuit of a faulty host")
		say(t, ac, "lost")
		wantHeard(t, ba, "healthy circuit of a faulty host")
		wantHeard(t, ca)
		noError(t, s.FaultHost("a", drop(0), false))
		noError(t, s.FaultCircuit("a", "b", drop(1), false))
		say(t, ab, "lost")
		say(t, ac, "healthy")
		wantHeard(t, ba)
		wantHeard(t, ca, "healthy")
	})
}

func TestHealthAndPowerAreThreeFacts(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		a := s.Host("a")
		noError(t, s.FaultHost("a", drop(0.5), false))
		wantState(t, a, gosimnet.FAULTY)
		alter(t, s, "a", gosimnet.ISOLATE, gosimnet.UNISOLATE)
		wantState(t, a, gosimnet.FAULTY_ISOLATED)
		alter(t, s, "a", gosimnet.SHUTDOWN, gosimnet.POWERON)
		alter(t, s, "a", gosimnet.POWERON, gosimnet.SHUTDOWN)
		wantState(t, a, gosimnet.FAULTY_ISOLATED)
		noError(t, s.RepairHost("a", false, false, false, false))
		wantState(t, a, gosimnet.ISOLATED)
		noError(t, s.FaultHost("a", deaf(0.1), false))
		alter(t, s, "a", gosimnet.UNISOLATE, gosimnet.ISOLATE)
		wantState(t, a, gosimnet.FAULTY)
		alter(t, s, "a", gosimnet.SHUTDOWN, gosimnet.POWERON)
		noError(t, s.AllHealthy(false, false))
		wantState(t, a, gosimnet.HEALTHY)
		if !a.PoweredOff() {
			t.Error("healing switched the host on")
		}
		noError(t, s.AllHealthy(true, false))
		if a.PoweredOff() {
			t.Error("the host is off, although it was to be switched on")
		}
	})
}

func TestRepairHostTouchesTheHostAlone(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		for _, h := range []string{"a", "b"} {
			noError(t, s.FaultHost(h, drop(1), false))
			alter(t, s, h, gosimnet.ISOLATE, gosimnet.UNISOLATE)
			alter(t, s, h, gosimnet.SHUTDOWN, gosimnet.POWERON)
		}
		for _, step := range []struct {
			unIsolate, powerOn bool
			want               gosimnet.Faultstate
			off                bool
		}{{false, false, gosimnet.ISOLATED, true}, {true, false, gosimnet.HEALTHY, true}, {false, true, gosimnet.HEALTHY, false}} {
			noError(t, s.RepairHost("a", step.unIsolate, step.powerOn, false, false))
			wantState(t, s.Host("a"), step.want)
			if off := s.Host("a").PoweredOff(); off != step.off {
				t.Errorf("after %+v the power is off: %v", step, off)
			}
		}
		wantState(t, s.Host("b"), gosimnet.FAULTY_ISOLATED)
		if !s.Host("b").PoweredOff() {
			t.Error("the repair of one host switched another on")
		}
		noError(t, s.RepairHost("nobody", true, true, true, false))
		wantState(t, s.Host("b"), gosimnet.HEALTHY)
		if s.Host("b").PoweredOff() {
			t.Error("the repair of all hosts left one off")
		}
	})
}

func TestRepairCircuitTouchesTheOriginAlone(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		c80, s80 := openStream(t, s, "a", "b", ":80")
		c81, s81 := openStream(t, s, "a", "b", ":81")
		noError(t, s.FaultHost("b", drop(1), false))
		noError(t, s.FaultHost("a", drop(1), false))
		noError(t, s.RepairCircuit("b:80", true, true, false))
		say(t, s80, "repaired")
		say(t, s81, "still lost")
		wantHeard(t, c80, "repaired")
		wantHeard(t, c81)
		say(t, c80, "lost")
		wantHeard(t, s80)
		wantState(t, s.Host("b"), gosimnet.FAULTY)

		noError(t, s.RepairCircuit("b", false, false, true))
		wantHeard(t, c81, "still lost")
		wantState(t, s.Host("b"), gosimnet.HEALTHY)
		wantState(t, s.Host("a"), gosimnet.FAULTY)
	})
}

func TestRepairOfAnEndpointUnisolatesItAlone(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		c80, s80 := openStream(t, s, "a", "b", ":80")
		for _, name := range []string{"b:80", "b:81"} {
			if undo, err := s.AlterCircuit(name, gosimnet.ISOLATE, false); err != nil || undo != gosimnet.UNISOLATE {
				t.Fatal(undo, err)
			}
		}
		wantState(t, s.Host("b"), gosimnet.HEALTHY)
		say(t, s80, "cut off")
		wantHeard(t, c80)
		noError(t, s.RepairCircuit("b:80", false, false, true))
		wantHeard(t, c80)
		noError(t, s.RepairCircuit("b:80", true, false, true))
		wantHeard(t, c80, "cut off")
		if undo, err := s.AlterCircuit("b:81", gosimnet.UNISOLATE, false); err != nil || undo != gosimnet.ISOLATE {
			t.Errorf("the other endpoint: undo %v, %v", undo, err)
		}
	})
}

func TestWithheldMessagesAreDeliveredAtOnceInTheOrderSent(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		ab, ba := openCircuit(t, s, "a", "b")
		both := gosimnet.DropDeafSpec{UpdateDropSends: true, DropSendsNewProb: 0.5}
		noError(t, s.FaultHost("a", both, false))
		noError(t, s.FaultHost("b", deaf(0.5), false))
		for _, m := range count(1, 60) {
			say(t, ab, m)
			time.Sleep(ms)
		}
		first := heard(t, ba, time.Second)
		if len(first) == 0 || len(first) > 40 {
			t.Fatalf("%d of 60 messages came through two fair coins", len(first))
		}
		noError(t, s.AllHealthy(false, false))
		wantHeard(t, ba)
		start := time.Now()
		noError(t, s.AllHealthy(false, true))
		rest := heard(t, ba, ms)
		if took := time.Since(start); took > ms+time.Microsecond {
			t.Errorf("the withheld messages took %v", took)
		}
		var want []string
		for _, m := range count(1, 60) {
			if !slices.Contains(first, m) {
				want = append(want, m)
			}
		}
		if !slices.Equal(rest, want) {
			t.Errorf("delivered late: %v, want %v", rest, want)
		}
		noError(t, s.AllHealthy(false, true))
		wantHeard(t, ba)
	})
}

func TestLateDeliveryIsOfTheRelaxedFaultAlone(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		ab, ba := openCircuit(t, s, "a", "b")
		ac, ca := openCircuit(t, s, "a", "c")
		cb, bc := openCircuit(t, s, "c", "b")
		noError(t, s.FaultHost("a", drop(1), false))
		noError(t, s.FaultHost("b", deaf(1), false))
		noError(t, s.FaultHost("c", drop(1), false))
		say(t, ac, "a to c")
		say(t, cb, "c to b")
		say(t, ab, "a to b")
		time.Sleep(time.Second)

		noError(t, s.FaultCircuit("a", "c", drop(0), true))
		wantHeard(t, ca, "a to c")
		wantHeard(t, ba)
		wantHeard(t, bc)

		noError(t, s.FaultCircuit("a", "b", drop(0), true)) // its deaf receiver would still lose it
		wantHeard(t, ba)
		noError(t, s.RepairHost("b", false, false, false, true)) // what a's card has lost is no fault of b's
		wantHeard(t, ba)
		noError(t, s.FaultCircuit("a", "b", drop(0), true))
		wantHeard(t, ba, "a to b")
		wantHeard(t, bc)
		noError(t, s.RepairHost("c", false, false, false, true))
		wantHeard(t, bc, "c to b")
	})
}

func TestIsolationWithholds(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		ab, ba := openCircuit(t, s, "a", "b")
		cb, bc := openCircuit(t, s, "c", "b")
		alter(t, s, "b", gosimnet.ISOLATE, gosimnet.UNISOLATE)
		say(t, ab, "to b")
		say(t, ba, "from b")
		say(t, cb, "c to b")
		wantHeard(t, ba)
		wantHeard(t, ab)
		noError(t, s.RepairHost("b", false, false, false, true))
		wantHeard(t, ba)
		noError(t, s.RepairHost("b", true, false, false, true))
		wantHeard(t, ba, "to b")
		wantHeard(t, ab, "from b")
		wantHeard(t, bc, "c to b")
	})
}

func TestIsolationStopsWhatIsUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		ab, ba := openCircuit(t, s, "a", "b")
		say(t, ab, "under way")
		time.Sleep(5 * ms)
		alter(t, s, "b", gosimnet.ISOLATE, gosimnet.UNISOLATE)
		wantHeard(t, ba)
		alter(t, s, "b", gosimnet.UNISOLATE, gosimnet.ISOLATE)
		if n := statsOf(t, s, "a", "b").LostTo[gosimnet.CauseIsolated].Packets; n != 1 {
			t.Errorf("%d packets were lost to isolation", n)
		}
		wantHeard(t, ba)
		noError(t, s.RepairHost("b", false, false, false, true))
		wantHeard(t, ba, "under way")
	})
}

func TestAFaultGovernsWhatIsSentAtItsInstant(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		ab, ba := openCircuit(t, s, "a", "b")
		say(t, ab, "sent before the fault, at its instant")
		noError(t, s.FaultHost("a", drop(1), false))
		time.Sleep(time.Nanosecond)
		noError(t, s.FaultHost("a", drop(0), false))
		say(t, ab, "sent after it")
		wantHeard(t, ba, "sent after it")
	})
}

func TestFaultsDelayStreams(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		client, server := openStream(t, s, "a", "b", ":80")
		noError(t, s.FaultHost("a", drop(0.3), false))
		noError(t, s.FaultHost("b", deaf(0.3), false))
		sent := strings.Repeat("0123456789", 20_000)
		go func() {
			client.Write([]byte(sent))
			client.Close()
		}()
		got, err := io.ReadAll(server)
		if err != nil || string(got) != sent {
			t.Errorf("%d of %d bytes came, %v", len(got), len(sent), err)
		}
	})
}

func TestLateDeliveryRetransmitsStreamsNow(t *testing.T) {
	for _, now := range []bool{false, true} {
		bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
			client, server := openStream(t, s, "a", "b", ":80")
			noError(t, s.FaultCircuit("a", "b", drop(1), false))
			start := time.Now()
			say(t, client, "x")
			time.Sleep(7 * time.Second) // retransmissions are due 0.2, 0.4, 0.8 … 6.4 and 12.8 s after the first
			noError(t, s.FaultCircuit("a", "b", drop(0), now))
			_, err := io.ReadFull(server, make([]byte, 1))
			noError(t, err)
			want := 12800*ms + 10*ms
			if now {
				want = 7*time.Second + 10*ms
			}
			if took := time.Since(start); !about(took, want) {
				t.Errorf("with deliverDroppedSends %v the byte took %v, want %v", now, took, want)
			}
		})
	}
}

func TestLateDeliveryToAPeerThatIsGone(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		ab, ba := openCircuit(t, s, "a", "b")
		cb, bc := openCircuit(t, s, "c", "b")
		noError(t, s.FaultHost("a", drop(1), false))
		noError(t, s.FaultHost("c", drop(1), false))
		say(t, ab, "to one who closes")
		say(t, cb, "from one whose power goes")
		time.Sleep(time.Second)
		noError(t, ba.Close())
		alter(t, s, "c", gosimnet.SHUTDOWN, gosimnet.POWERON)
		noError(t, s.AllHealthy(true, true))
		wantHeard(t, bc)
		if _, err := ba.Read(make([]byte, 9)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Read after Close: %v", err)
		}
	})
}

func TestRetentionIsBoundedAndCounted(t *testing.T) {
	for _, test := range []struct {
		retention int
		want      []string
		forgotten uint64
	}{{3, count(8, 10), 7}, {-1, nil, 10}, {0, count(1, 10), 0}} {
		synctest.Test(t, func(t *testing.T) {
			s := threeHosts(t, &gosimnet.SimNetConfig{Retention: test.retention})
			ab, ba := openCircuit(t, s, "a", "b")
			noError(t, s.FaultHost("a", drop(1), false))
			say(t, ab, count(1, 10)...)
			time.Sleep(time.Second)
			z := s.GetSimnetSnapshot().Peermap["a"]
			if z.Forgotten != test.forgotten || z.Conn[0].DroppedSendQ.Len() != len(test.want) {
				t.Errorf("retention %d: %d forgotten, %d kept", test.retention, z.Forgotten, z.Conn[0].DroppedSendQ.Len())
			}
			noError(t, s.AllHealthy(false, true))
			wantHeard(t, ba, test.want...)
		})
	}
}

func TestAlterationsAndTheirUndo(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		for _, step := range []struct{ do, undo gosimnet.Alteration }{
			{gosimnet.POWERON, gosimnet.UNDEFINED},
			{gosimnet.UNISOLATE, gosimnet.UNDEFINED},
			{gosimnet.SHUTDOWN, gosimnet.POWERON},
			{gosimnet.SHUTDOWN, gosimnet.UNDEFINED},
			{gosimnet.ISOLATE, gosimnet.UNISOLATE},
			{gosimnet.ISOLATE, gosimnet.UNDEFINED},
			{gosimnet.POWERON, gosimnet.SHUTDOWN},
			{gosimnet.UNISOLATE, gosimnet.ISOLATE},
		} {
			alter(t, s, "a", step.do, step.undo)
			if undo, err := s.AlterCircuit("b:80", step.do, false); undo != step.undo || err != nil {
				t.Errorf("AlterCircuit(b:80, %v): undo %v, %v, want %v", step.do, undo, err, step.undo)
			}
			if undo, err := s.AlterCircuit("c:80", step.do, true); undo != step.undo || err != nil {
				t.Errorf("AlterCircuit(c:80, %v) of the whole host: undo %v, %v, want %v", step.do, undo, err, step.undo)
			}
		}
		alter(t, s, "b", gosimnet.SHUTDOWN, gosimnet.POWERON)
		if undo, err := s.AlterCircuit("b:80", gosimnet.SHUTDOWN, true); undo != gosimnet.UNDEFINED || err != nil {
			t.Errorf("the whole host was off already: undo %v, %v", undo, err)
		}
	})
}

func TestAnEndpointWithoutPower(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		c80, s80 := openStream(t, s, "a", "b", ":80")
		c81, s81 := openStream(t, s, "a", "b", ":81")
		l, err := s.Host("b").Listen("tcp", ":80")
		noError(t, err)
		_, err = s.AlterCircuit("b:80", gosimnet.SHUTDOWN, false)
		noError(t, err)
		say(t, c81, "alive")
		wantHeard(t, s81, "alive")
		if _, err := s80.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Read at the endpoint without power: %v", err)
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept at the endpoint without power: %v", err)
		}
		if _, err := s.Host("b").Listen("tcp", ":80"); !errors.Is(err, syscall.ENETDOWN) {
			t.Errorf("Listen at the endpoint without power: %v", err)
		}
		_, err = s.AlterCircuit("b:80", gosimnet.POWERON, false)
		noError(t, err)
		say(t, c80, "x")
		if _, err := c80.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("Read from an endpoint that has forgotten the stream: %v", err)
		}
		_, err = s.Host("b").Listen("tcp", ":80")
		noError(t, err)
	})
}

func TestPowerCutTakesEverythingOfTheHost(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		b := s.Host("b")
		client, server := openStream(t, s, "a", "b", ":80")
		l, err := b.Listen("tcp", ":81")
		noError(t, err)
		u, err := b.ListenPacket("udp", ":82")
		noError(t, err)
		timer := b.NewTimer(time.Second)
		ended := make(chan error, 4)
		go func() { _, err := server.Read(make([]byte, 1)); ended <- err }()
		go func() { _, err := l.Accept(); ended <- err }()
		go func() { _, _, err := u.ReadFrom(make([]byte, 1)); ended <- err }()
		go func() { _, err := b.Dial("tcp", "c:80"); ended <- err }()
		time.Sleep(5 * ms)
		start := time.Now()
		alter(t, s, "b", gosimnet.SHUTDOWN, gosimnet.POWERON)
		for range 4 {
			if err := <-ended; !errors.Is(err, net.ErrClosed) {
				t.Errorf("a call that waited: %v", err)
			}
		}
		if took := time.Since(start); took > time.Microsecond {
			t.Errorf("the calls that waited took %v", took)
		}
		for call, err := range map[string]error{
			"Dial": second(b.Dial("tcp", "a:1")), "Listen": second(b.Listen("tcp", ":83")), "ListenPacket": second(b.ListenPacket("udp", ":84")),
		} {
			if !errors.Is(err, syscall.ENETDOWN) {
				t.Errorf("%s without power: %v", call, err)
			}
		}
		say(t, client, "x")
		time.Sleep(2 * time.Second)
		select {
		case <-timer.C:
			t.Error("a timer of a host without power fired")
		default:
		}
		alter(t, s, "b", gosimnet.POWERON, gosimnet.SHUTDOWN)
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the peer's Read: %v", err)
		}
		if _, err := s.Host("a").Dial("tcp", "b:81"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("Dial to a listener of before the power cut: %v", err)
		}
		for _, port := range []string{":80", ":81", ":82"} {
			_, err := b.Listen("tcp", port)
			noError(t, err)
		}
	})
}

// Those whom a power cut is to wake, one an instant, may be gone before it is their turn: because somebody closes what they read from, or
// cancels what they dial. The network goes on for all others.
func TestTimeGoesOnWhenThoseToBeWokenHaveLeft(t *testing.T) {
	const each = 3
	leave := map[string]func(t *testing.T, s *gosimnet.Simnet, calls *sync.WaitGroup) (leave func()){
		"closed": func(t *testing.T, s *gosimnet.Simnet, calls *sync.WaitGroup) func() {
			var conns []net.Conn
			for n := range each {
				_, c := openStream(t, s, "a", "b", fmt.Sprint(":", 80+n))
				conns = append(conns, c)
				calls.Go(func() { c.Read(make([]byte, 1)) })
			}
			return func() {
				for _, c := range conns {
					c.Close()
				}
			}
		},
		"cancelled": func(t *testing.T, s *gosimnet.Simnet, calls *sync.WaitGroup) func() {
			ctx, cancel := context.WithCancel(t.Context())
			for n := range each {
				calls.Go(func() { s.Host("b").DialContext(ctx, "tcp", fmt.Sprint("10.9.9.9:", 80+n)) })
			}
			return cancel
		},
	}
	for name, wait := range leave {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
				client, server := openStream(t, s, "c", "d", ":80")
				var calls sync.WaitGroup
				leave := wait(t, s, &calls)
				time.Sleep(50 * ms)
				alter(t, s, "b", gosimnet.SHUTDOWN, gosimnet.POWERON)
				leave()
				calls.Wait()
				say(t, client, "x")
				noError(t, server.SetReadDeadline(time.Now().Add(time.Second)))
				if _, err := server.Read(make([]byte, 1)); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestSoftwareRunsWithThePower(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		b := s.Host("b")
		var running, runs atomic.Int32
		stop := make(chan struct{}, 1)
		program := func(ctx context.Context) error {
			running.Add(1)
			runs.Add(1)
			defer running.Add(-1)
			select {
			case <-ctx.Done():
				time.Sleep(10 * ms) // it takes its time
			case <-stop:
			}
			return nil
		}
		want := func(wantRunning, wantRuns int32) {
			t.Helper()
			synctest.Wait()
			if running.Load() != wantRunning || runs.Load() != wantRuns {
				t.Errorf("%d running after %d runs, want %d after %d", running.Load(), runs.Load(), wantRunning, wantRuns)
			}
		}
		b.Run(program)
		want(1, 1)
		alter(t, s, "b", gosimnet.SHUTDOWN, gosimnet.POWERON)
		want(1, 1)
		time.Sleep(5 * ms)
		alter(t, s, "b", gosimnet.POWERON, gosimnet.SHUTDOWN)
		want(1, 1) // never two at a time
		time.Sleep(6 * ms)
		want(1, 2)
		stop <- struct{}{}
		want(0, 2) // it has ended by itself: the next power-on starts it
		alter(t, s, "b", gosimnet.SHUTDOWN, gosimnet.POWERON)
		alter(t, s, "b", gosimnet.POWERON, gosimnet.SHUTDOWN)
		want(1, 3)
		alter(t, s, "b", gosimnet.SHUTDOWN, gosimnet.POWERON)
		time.Sleep(time.Second)
		want(0, 3)
		b.Run(program) // not now: there is no power
		want(0, 3)
		alter(t, s, "b", gosimnet.POWERON, gosimnet.SHUTDOWN)
		want(2, 5)
		s.Close()
		time.Sleep(time.Second)
		want(0, 5)
	})
}

func TestSoftwareThatFailsIsReported(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		b := s.Host("b")
		b.Run(func(ctx context.Context) error {
			if _, err := b.Listen("tcp", "c:80"); err != nil {
				return err
			}
			return nil
		})
		b.Run(func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err() // follows from the power cut
		})
		time.Sleep(ms)
		z := s.GetSimnetSnapshot()
		if errs := z.Peermap["b"].ProgErrs; len(errs) != 1 || !errors.Is(errs[0], syscall.EADDRNOTAVAIL) {
			t.Errorf("errors of the software: %v", errs)
		}
		if text := z.String(); !strings.Contains(text, "cannot assign requested address") {
			t.Errorf("the snapshot does not tell the error:\n%s", text)
		}
		alter(t, s, "b", gosimnet.SHUTDOWN, gosimnet.POWERON)
		time.Sleep(ms)
		if errs := s.GetSimnetSnapshot().Peermap["b"].ProgErrs; len(errs) != 1 {
			t.Errorf("errors of the software after a power cut: %v", errs)
		}
	})
}

func TestLoopbackNeedsNoNetwork(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		client, server := openStream(t, s, "a", "a", ":80")
		noError(t, s.FaultHost("a", gosimnet.DropDeafSpec{UpdateDeafReads: true, DeafReadsNewProb: 1, UpdateDropSends: true, DropSendsNewProb: 1}, false))
		alter(t, s, "a", gosimnet.ISOLATE, gosimnet.UNISOLATE)
		_, err := s.CutLink(gosimnet.DropPackets, "", "")
		noError(t, err)
		say(t, client, "x")
		wantHeard(t, server, "x")
	})
}

// badFault is a fault call that must fail.
type badFault struct {
	name string
	call func(s *gosimnet.Simnet) error
	says string
}

func badFaults() []badFault {
	nan := math.NaN()
	return []badFault{
		{"unknown origin", func(s *gosimnet.Simnet) error { return s.FaultCircuit("x", "a", drop(1), false) }, `"x"`},
		{"unknown target", func(s *gosimnet.Simnet) error { return s.FaultCircuit("a", "x", drop(1), false) }, `"x"`},
		{"unknown endpoint", func(s *gosimnet.Simnet) error { return s.FaultCircuit("x:80", "", drop(1), false) }, `"x:80"`},
		{"no port", func(s *gosimnet.Simnet) error { return s.FaultCircuit("a:0", "", drop(1), false) }, `"a:0"`},
		{"port beyond all", func(s *gosimnet.Simnet) error { return s.FaultCircuit("a:65536", "", drop(1), false) }, `"a:65536"`},
		{"empty origin", func(s *gosimnet.Simnet) error { return s.FaultCircuit("", "a", drop(1), false) }, "empty"},
		{"unknown host", func(s *gosimnet.Simnet) error { return s.FaultHost("x", drop(1), false) }, `"x"`},
		{"empty host", func(s *gosimnet.Simnet) error { return s.FaultHost("", drop(1), false) }, "empty"},
		{"an endpoint is no host", func(s *gosimnet.Simnet) error { return s.FaultHost("a:80", drop(1), false) }, `"a:80"`},
		{"drop -1", func(s *gosimnet.Simnet) error { return s.FaultHost("a", drop(-1), false) }, "DropSendsNewProb is -1"},
		{"drop 2", func(s *gosimnet.Simnet) error { return s.FaultHost("a", drop(2), false) }, "DropSendsNewProb is 2"},
		{"drop NaN", func(s *gosimnet.Simnet) error { return s.FaultHost("a", drop(nan), false) }, "DropSendsNewProb is NaN"},
		{"drop Inf", func(s *gosimnet.Simnet) error { return s.FaultHost("a", drop(math.Inf(1)), false) }, "DropSendsNewProb is +Inf"},
		{"deaf -1", func(s *gosimnet.Simnet) error { return s.FaultCircuit("a", "b", deaf(-1), false) }, "DeafReadsNewProb is -1"},
		{"deaf NaN", func(s *gosimnet.Simnet) error { return s.FaultCircuit("a", "b", deaf(nan), false) }, "DeafReadsNewProb is NaN"},
		{"repair unknown", func(s *gosimnet.Simnet) error { return s.RepairCircuit("x", true, true, true) }, `"x"`},
		{"repair empty", func(s *gosimnet.Simnet) error { return s.RepairCircuit("", true, true, true) }, "empty"},
		{"repair unknown host", func(s *gosimnet.Simnet) error { return s.RepairHost("x", true, true, false, true) }, `"x"`},
		{"repair empty host", func(s *gosimnet.Simnet) error { return s.RepairHost("", true, true, false, true) }, "empty"},
		{"alter unknown", func(s *gosimnet.Simnet) error { return second(s.AlterHost("x", gosimnet.ISOLATE)) }, `"x"`},
		{"alter empty", func(s *gosimnet.Simnet) error { return second(s.AlterHost("", gosimnet.ISOLATE)) }, "empty"},
		{"alter undefined", func(s *gosimnet.Simnet) error { return second(s.AlterHost("a", gosimnet.UNDEFINED)) }, "UNDEFINED"},
		{"alter 5", func(s *gosimnet.Simnet) error { return second(s.AlterHost("a", 5)) }, "Alteration(5)"},
		{"alter -1", func(s *gosimnet.Simnet) error { return second(s.AlterCircuit("a", -1, true)) }, "Alteration(-1)"},
		{"alter unknown endpoint", func(s *gosimnet.Simnet) error { return second(s.AlterCircuit("x:1", gosimnet.ISOLATE, false)) }, `"x:1"`},
		{"reset unknown", func(s *gosimnet.Simnet) error { return second(s.ResetConns("a", "x")) }, `"x"`},
		{"partition of one", func(s *gosimnet.Simnet) error { return second(s.Partition(gosimnet.DropPackets, []string{"a"})) }, "1 group"},
		{"partition of none", func(s *gosimnet.Simnet) error { return second(s.Partition(gosimnet.DropPackets)) }, "0 groups"},
		{"partition unknown", func(s *gosimnet.Simnet) error {
			return second(s.Partition(gosimnet.DropPackets, []string{"a"}, []string{"x"}))
		}, `"x"`},
		{"partition empty name", func(s *gosimnet.Simnet) error {
			return second(s.Partition(gosimnet.DropPackets, []string{"a"}, []string{""}))
		}, "empty"},
		{"partition twice", func(s *gosimnet.Simnet) error {
			return second(s.Partition(gosimnet.DropPackets, []string{"a", "b"}, []string{"b"}))
		}, `"b"`},
		{"partition mode", func(s *gosimnet.Simnet) error { return second(s.Partition(3, []string{"a"}, []string{"b"})) }, "PartitionMode(3)"},
		{"cut mode", func(s *gosimnet.Simnet) error { return second(s.CutLink(-1, "a", "b")) }, "PartitionMode(-1)"},
		{"cut unknown", func(s *gosimnet.Simnet) error { return second(s.CutLink(gosimnet.HoldPackets, "x", "b")) }, `"x"`},
	}
}

func TestImpossibleFaultsAreErrorsAndChangeNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		for _, bad := range badFaults() {
			if err := bad.call(s); err == nil || !strings.Contains(err.Error(), bad.says) {
				t.Errorf("%s: %v, want an error that tells of %s", bad.name, err, bad.says)
			}
		}
		if text := s.GetSimnetSnapshot().String(); !strings.Contains(text, "all healthy") {
			t.Errorf("after calls that failed:\n%s", text)
		}
		s.Close()
		for _, bad := range badFaults() {
			if err := bad.call(s); !errors.Is(err, net.ErrClosed) && !strings.Contains(fmt.Sprint(err), bad.says) {
				t.Errorf("%s, after Close: %v", bad.name, err)
			}
		}
	})
}

func TestFaultsAfterClose(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		s.Close()
		s.Close()
		for call, err := range map[string]error{
			"FaultCircuit":  s.FaultCircuit("a", "b", drop(1), true),
			"FaultHost":     s.FaultHost("a", drop(1), true),
			"RepairCircuit": s.RepairCircuit("a", true, true, true),
			"RepairHost":    s.RepairHost("a", true, true, false, true),
			"AllHealthy":    s.AllHealthy(true, true),
			"AlterCircuit":  second(s.AlterCircuit("a", gosimnet.SHUTDOWN, true)),
			"AlterHost":     second(s.AlterHost("a", gosimnet.ISOLATE)),
			"Partition":     second(s.Partition(gosimnet.DropPackets, []string{"a"}, []string{"b"})),
			"CutLink":       second(s.CutLink(gosimnet.DropPackets, "a", "b")),
			"ResetConns":    second(s.ResetConns("a", "b")),
		} {
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("%s after Close: %v", call, err)
			}
		}
	})
}

func TestFaultsAreTraced(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		time.Sleep(time.Second)
		noError(t, s.FaultHost("a", drop(1), false))
		alter(t, s, "b", gosimnet.ISOLATE, gosimnet.UNISOLATE)
		alter(t, s, "b", gosimnet.SHUTDOWN, gosimnet.POWERON)
		heal, err := s.Partition(gosimnet.HoldPackets, []string{"a"}, []string{"b"})
		noError(t, err)
		time.Sleep(time.Second)
		heal()
		noError(t, s.AllHealthy(true, false))
		var kinds []string
		for e := range s.Trace() {
			kinds = append(kinds, fmt.Sprintf("%s %s %v", e.Kind, e.From, e.Time.Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))))
		}
		for _, want := range []string{"fault a 1s", "fault b 1s", "power b 1s", "fault  1s", "repair  2s"} {
			if !slices.Contains(kinds, want) {
				t.Errorf("no %q among %q", want, kinds)
			}
		}
	})
}
