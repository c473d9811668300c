package gosimnet_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

func TestOneWriteIsOneMessage(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		ab, ba := openCircuit(t, s, "a", "b")
		say(t, ab, "first", "second")
		if n, err := ab.Write(nil); n != 0 || err != nil {
			t.Errorf("Write of nothing: %d, %v", n, err)
		}
		say(t, ab, "third")
		time.Sleep(time.Second)
		b := make([]byte, 3)
		for _, want := range []string{"fir", "st", "sec", "ond"} {
			if n, err := ba.Read(b); err != nil || string(b[:n]) != want {
				t.Errorf("Read: %q, %v, want %q", b[:n], err, want)
			}
		}
		if n, err := ba.Read(nil); n != 0 || err != nil {
			t.Errorf("Read into nothing: %d, %v", n, err)
		}
		wantHeard(t, ba, "third")
	})
}

func TestMessagesTakeTheLatencyAndKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := threeHosts(t, &gosimnet.SimNetConfig{MinHop: ms, MaxHop: 50 * ms})
		ab, ba := openCircuit(t, s, "a", "b")
		say(t, ab, count(1, 100)...)
		wantHeard(t, ba, count(1, 100)...)
		start := time.Now()
		say(t, ab, "x")
		ba.Read(make([]byte, 1))
		if took := time.Since(start); took < ms || took > 51*ms {
			t.Errorf("a message took %v", took)
		}
	})
}

func TestMessagesOfAnySizeUpToTheLargest(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		ab, ba := openCircuit(t, s, "a", "b")
		largest := make([]byte, gosimnet.UserMaxPayload)
		pattern(largest, 1, 0)
		if n, err := ab.Write(append(largest, 0)); n != 0 || !errors.Is(err, syscall.EMSGSIZE) {
			t.Errorf("Write of one byte too many: %d, %v", n, err)
		}
		if n, err := ab.Write(largest); n != len(largest) || err != nil {
			t.Errorf("Write of the largest message: %d, %v", n, err)
		}
		got := make([]byte, len(largest)+1)
		if n, err := ba.Read(got); err != nil || !bytes.Equal(got[:n], largest) {
			t.Errorf("Read of the largest message: %d, %v", n, err)
		}
	})
}

func TestCircuitClosesAfterItsMessages(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		ab, ba := openCircuit(t, s, "a", "b")
		say(t, ab, "one", "two")
		noError(t, ab.Close())
		if err := ab.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("second Close: %v", err)
		}
		for _, want := range []string{"one", "two"} {
			b := make([]byte, 9)
			if n, err := ba.Read(b); err != nil || string(b[:n]) != want {
				t.Errorf("Read: %q, %v", b[:n], err)
			}
		}
		for range 2 {
			if n, err := ba.Read(make([]byte, 9)); n != 0 || err != io.EOF {
				t.Errorf("Read at the end: %d, %v", n, err)
			}
		}
		for call, err := range map[string]error{
			"Read": second(ab.Read(make([]byte, 1))), "Write": second(ab.Write([]byte("x"))), "SetDeadline": ab.SetDeadline(time.Now()),
		} {
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("%s after Close: %v", call, err)
			}
		}
		say(t, ba, "into the void")
		time.Sleep(time.Second)
		if _, err := ba.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("Write to a peer that has closed: %v", err)
		}
	})
}

func TestCircuitDeadlines(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		ab, ba := openCircuit(t, s, "a", "b")
		start := time.Now()
		ba.SetReadDeadline(start.Add(100 * ms))
		var ne net.Error
		if _, err := ba.Read(make([]byte, 9)); !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &ne) || !ne.Timeout() || time.Since(start) != 100*ms {
			t.Errorf("Read after %v: %v", time.Since(start), err)
		}
		say(t, ab, "kept")
		time.Sleep(time.Second)
		if _, err := ba.Read(make([]byte, 9)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Read past the deadline, with a message there: %v", err)
		}
		wantHeard(t, ba, "kept")
		ab.SetWriteDeadline(time.Now().Add(-1))
		if n, err := ab.Write([]byte("x")); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Write past the deadline: %d, %v", n, err)
		}
		ab.SetDeadline(time.Time{})
		say(t, ab, "again")
		wantHeard(t, ba, "again")
	})
}

func TestFullCircuitBlocksTheWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := threeHosts(t, &gosimnet.SimNetConfig{SendBuffer: 1000, ReceiveBuffer: 1000})
		ab, ba := openCircuit(t, s, "a", "b")
		message := strings.Repeat("x", 400)
		say(t, ab, message, message, message, message, message)
		ab.SetWriteDeadline(time.Now().Add(time.Second))
		if n, err := ab.Write([]byte(message)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Write to a full circuit: %d, %v", n, err)
		}
		ab.SetWriteDeadline(time.Time{})
		start := time.Now()
		time.AfterFunc(300*ms, func() { ba.Read(make([]byte, 400)) })
		say(t, ab, message)
		if took := time.Since(start); !about(took, 300*ms) {
			t.Errorf("Write waited %v for room", took)
		}
		if got := heard(t, ba, time.Second); len(got) != 20 { // 5 messages, read 100 bytes at a time
			t.Errorf("%d reads", len(got))
		}
		if n, err := ab.Write(make([]byte, 5000)); n != 5000 || err != nil {
			t.Errorf("Write of a message above the limit into an empty circuit: %d, %v", n, err)
		}
	})
}

func TestLostMessagesMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := threeHosts(t, &gosimnet.SimNetConfig{SendBuffer: 1000, ReceiveBuffer: 1000})
		ab, _ := openCircuit(t, s, "a", "b")
		for _, fault := range []func() error{
			func() error { return s.FaultHost("a", drop(1), false) },
			func() error { return s.FaultHost("b", deaf(1), false) },
			func() error { return s.SetLink("a", "b", gosimnet.LinkConfig{Loss: 1}) },
			func() error { return second(s.AlterHost("b", gosimnet.ISOLATE)) },
			func() error { return second(s.CutLink(gosimnet.DropPackets, "a", "b")) },
		} {
			noError(t, fault())
			ab.SetWriteDeadline(time.Now().Add(time.Second))
			for range 50 {
				if _, err := ab.Write(make([]byte, 400)); err != nil {
					t.Fatal(err)
				}
			}
			noError(t, s.AllHealthy(false, false))
		}
	})
}

func TestWritersOfOneCircuitTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := threeHosts(t, &gosimnet.SimNetConfig{SendBuffer: 50, ReceiveBuffer: 50})
		ab, ba := openCircuit(t, s, "a", "b")
		say(t, ab, strings.Repeat("x", 90))
		big := make([]byte, 80)
		go func() {
			ab.SetWriteDeadline(time.Now().Add(time.Second))
			if _, err := ab.Write(big); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the first writer: %v", err)
			}
			ab.SetWriteDeadline(time.Time{})
		}()
		time.Sleep(ms)
		for _, m := range count(1, 5) {
			go ab.Write([]byte(m))
			time.Sleep(ms)
		}
		time.Sleep(2 * time.Second)
		wantHeard(t, ba, append([]string{strings.Repeat("x", 90)}, count(1, 5)...)...)
	})
}

func TestEndpointNames(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		b := s.Host("b")
		l, err := b.Listen("gosimnet", "any string: [even] this/one")
		noError(t, err)
		if a := l.Addr(); a.Network() != "gosimnet" || a.String() != "any string: [even] this/one" {
			t.Errorf("Addr is %v %v", a.Network(), a)
		}
		c, err := s.Host("a").Dial("gosimnet", "any string: [even] this/one")
		noError(t, err)
		server, err := l.Accept()
		noError(t, err)
		for what, a := range map[string]net.Addr{
			"the client's RemoteAddr": c.RemoteAddr(), "the server's LocalAddr": server.LocalAddr(),
		} {
			if _, ok := a.(*gosimnet.SimNetAddr); !ok || a.String() != l.Addr().String() || a.Network() != "gosimnet" {
				t.Errorf("%s is %T %v %v", what, a, a.Network(), a)
			}
		}
		if c.LocalAddr().String() != "a" || server.RemoteAddr().String() != "a" {
			t.Errorf("the client is %v and %v, want a", c.LocalAddr(), server.RemoteAddr())
		}
		c2, err := s.Host("a").Dial("gosimnet", l.Addr().String())
		noError(t, err)
		if c2.LocalAddr().String() == c.LocalAddr().String() {
			t.Errorf("two circuits from %v", c2.LocalAddr())
		}
		noError(t, c.Close())
		time.Sleep(2 * time.Minute)
		c3, err := s.Host("a").Dial("gosimnet", l.Addr().String())
		noError(t, err)
		if c3.LocalAddr().String() != "a" {
			t.Errorf("the name that was given back is not used again: %v", c3.LocalAddr())
		}
	})
}

func TestNamesAreUniqueWhileInUse(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		b := s.Host("b")
		l, err := b.Listen("simnet", "")
		noError(t, err)
		if l.Addr().String() != "b" {
			t.Errorf("Addr is %v, want the host's name", l.Addr())
		}
		for what, err := range map[string]error{
			"the same name at the same host": second(b.Listen("simnet", "b")),
			"the same name at another host":  second(s.Host("c").Listen("simnet", "b")),
			"the name of another host":       second(b.Listen("simnet", "c")),
		} {
			var oe *net.OpError
			if !errors.Is(err, syscall.EADDRINUSE) || !errors.As(err, &oe) || oe.Op != "listen" {
				t.Errorf("Listen on %s: %v", what, err)
			}
		}
		noError(t, l.Close())
		_, err = b.Listen("simnet", "b")
		noError(t, err)

		d := s.Host("a").Dialer()
		d.LocalAddr = l.Addr()
		if _, err := d.Dial("simnet", "b"); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("Dial from a name that is in use: %v", err)
		}
	})
}

// The name that a client is given must not keep its host from listening.
func TestAHostThatHasDialledCanListenByItsName(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		ab, ba := openCircuit(t, s, "a", "b")
		l, err := s.Host("a").Listen("simnet", "")
		noError(t, err)
		c, err := s.Host("c").Dial("simnet", "a")
		noError(t, err)
		server, err := l.Accept()
		noError(t, err)
		noError(t, ab.Close())
		say(t, c, "hello")
		wantHeard(t, server, "hello")
		_, err = s.Host("c").Dial("simnet", "a")
		noError(t, err)
		ba.Close()
	})
}

func TestDialOfCircuitsThatAreNotThere(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		a := s.Host("a")
		start := time.Now()
		if _, err := a.Dial("simnet", "b"); !errors.Is(err, syscall.ECONNREFUSED) || !about(time.Since(start), 20*ms) {
			t.Errorf("Dial of a host that does not listen, after %v: %v", time.Since(start), err)
		}
		var dns *net.DNSError
		if _, err := a.Dial("simnet", "nobody"); !errors.As(err, &dns) || !dns.IsNotFound || dns.Name != "nobody" {
			t.Errorf("Dial of an unknown name: %v", err)
		}
		l, err := s.Host("b").Listen("simnet", "service")
		noError(t, err)
		noError(t, l.Close())
		if _, err := a.Dial("simnet", "service"); err == nil {
			t.Error("Dial of a name that was given back succeeded")
		}
		for range 3 {
			if c, err := s.Host("b").Listen("simnet", "service"); err != nil {
				t.Error(err)
			} else if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// What is listened on and dialled at one instant is found, whoever comes first.
func TestListenAndDialOfOneInstant(t *testing.T) {
	for range 20 {
		bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
			done := make(chan error)
			go func() {
				c, err := s.Host("a").Dial("simnet", "service")
				if err == nil {
					err = c.Close()
				}
				done <- err
			}()
			go func() {
				l, err := s.Host("b").Listen("simnet", "service")
				if err == nil {
					_, err = l.Accept()
				}
				done <- err
			}()
			noError(t, <-done)
			noError(t, <-done)
		})
	}
}

func TestConcurrentDialsOfOneHostHaveNamesOfTheirOwn(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		l, err := s.Host("b").Listen("simnet", "")
		noError(t, err)
		clients := make(chan net.Conn)
		for range 10 {
			go func() {
				c, err := s.Host("a").Dial("simnet", "b")
				noError(t, err)
				clients <- c
			}()
		}
		var local, remote []string
		for range 10 {
			server, err := l.Accept()
			noError(t, err)
			remote = append(remote, server.RemoteAddr().String())
			local = append(local, (<-clients).LocalAddr().String())
		}
		slices.Sort(local)
		slices.Sort(remote)
		if len(slices.Compact(slices.Clone(local))) != 10 || !slices.Equal(local, remote) {
			t.Errorf("the clients are %q, and %q to the server", local, remote)
		}
	})
}

func TestCircuitsGiveNamesBackWhateverHappens(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		a := s.Host("a")
		l, err := s.Host("b").Listen("simnet", "")
		noError(t, err)
		fromA := func() net.Conn {
			c, err := a.Dial("simnet", "b")
			noError(t, err)
			if c.LocalAddr().String() != "a" {
				t.Errorf("the name a is not free: %v", c.LocalAddr())
			}
			_, err = l.Accept()
			noError(t, err)
			return c
		}
		fromA().Close()
		if _, err := a.DialTimeout("simnet", "b", 5*ms); err == nil {
			t.Error("a dial ended before the answer")
		}
		fromA().Close()
		if _, err := a.Dial("simnet", "c"); err == nil {
			t.Error("a dial of nobody succeeded")
		}
		fromA()
		alter(t, s, "a", gosimnet.SHUTDOWN, gosimnet.POWERON)
		alter(t, s, "a", gosimnet.POWERON, gosimnet.SHUTDOWN)
		fromA()
	})
}

func TestUnreliableLinksUnderACircuit(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		ab, ba := openCircuit(t, s, "a", "b")
		noError(t, s.SetLink("a", "b", gosimnet.LinkConfig{Loss: 0.3, Duplicate: 0.3}))
		say(t, ab, count(1, 200)...)
		seen := make(map[string]int)
		for _, m := range heard(t, ba, time.Second) {
			seen[m]++
		}
		twice := 0
		for m, n := range seen {
			if n > 2 {
				t.Errorf("message %s came %d times", m, n)
			}
			if n == 2 {
				twice++
			}
		}
		if len(seen) < 110 || len(seen) > 170 || twice < 20 {
			t.Errorf("of 200 messages %d came, %d of them twice", len(seen), twice)
		}
	})
}

func TestCircuitTellsWhoWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := threeHosts(t, &gosimnet.SimNetConfig{SendBuffer: 10, ReceiveBuffer: 10})
		ab, _ := openCircuit(t, s, "a", "b")
		say(t, ab, strings.Repeat("x", 20))
		go ab.Write([]byte("x"))
		time.Sleep(time.Second)
		z := s.GetSimnetSnapshot().Peermap["a"].Conn[0]
		if z.ReadQ.Len() != 1 || !strings.Contains(fmt.Sprint(z), "write") {
			t.Errorf("the blocked writer is not shown:\n%v", z)
		}
	})
}

// Writers that wait for their turn keep it, in whatever order they wake up when the connection ends.
func TestWritersOfAnEndedConnectionAllGetTheirTurn(t *testing.T) {
	for network, address := range map[string]string{"tcp": "b:80", "simnet": "b"} {
		t.Run(network, func(t *testing.T) {
			for range 50 {
				s, err := gosimnet.New(&gosimnet.SimNetConfig{SendBuffer: 100, ReceiveBuffer: 100, BarrierOff: true, MinHop: time.Microsecond})
				noError(t, err)
				l, err := s.Host("b").Listen(network, strings.TrimPrefix(address, "b"))
				noError(t, err)
				client, err := s.Host("a").Dial(network, address)
				noError(t, err)
				server, err := l.Accept()
				noError(t, err)
				var writers sync.WaitGroup
				for range 20 {
					writers.Go(func() {
						for n, err := 0, error(nil); err == nil; n++ {
							_, err = client.Write(make([]byte, 60))
						}
					})
				}
				time.Sleep(time.Millisecond)
				noError(t, server.Close())
				done := make(chan struct{})
				go func() { writers.Wait(); close(done) }()
				select {
				case <-done:
				case <-time.After(10 * time.Second):
					t.Fatal("writers still wait ten seconds after the end of the connection")
				}
				s.Close()
			}
		})
	}
}
