package gosimnet_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/glycerine/gosimnet"
)

// divide partitions hosts a and b.
func divide(t *testing.T, s *gosimnet.Simnet, mode gosimnet.PartitionMode) (heal func()) {
	t.Helper()
	heal, err := s.Partition(mode, []string{"a"}, []string{"b"})
	noError(t, err)
	return heal
}

// cutOneWay cuts the link from a to b alone.
func cutOneWay(t *testing.T, s *gosimnet.Simnet, mode gosimnet.PartitionMode) (heal func()) {
	t.Helper()
	heal, err := s.CutLink(mode, "a", "b")
	noError(t, err)
	return heal
}

func TestDroppedPacketsAreLost(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		ab, ba := openCircuit(t, s, "a", "b")
		ac, ca := openCircuit(t, s, "a", "c")
		heal := divide(t, s, gosimnet.DropPackets)
		say(t, ab, "there")
		say(t, ba, "back")
		say(t, ac, "to a host in no group")
		wantHeard(t, ba)
		wantHeard(t, ab)
		wantHeard(t, ca, "to a host in no group")
		heal()
		heal()
		wantHeard(t, ba)
		noError(t, s.AllHealthy(false, true)) // a partition is no fault of a host, and withholds nothing
		wantHeard(t, ba)
		say(t, ab, "healed")
		wantHeard(t, ba, "healed")
		if n := statsOf(t, s, "a", "b").LostTo[gosimnet.CausePartition].Packets; n != 1 {
			t.Errorf("%d packets were lost to the partition", n)
		}
	})
}

func TestHeldPacketsAreDeliveredInOrderAfterTheHeal(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		ab, ba := openCircuit(t, s, "a", "b")
		heal := divide(t, s, gosimnet.HoldPackets)
		for _, m := range count(1, 20) {
			say(t, ab, m)
			time.Sleep(3 * ms)
		}
		wantHeard(t, ba)
		if n := statsOf(t, s, "a", "b").Held; n.Packets != 20 {
			t.Errorf("%+v are held", n)
		}
		heal()
		wantHeard(t, ba, count(1, 20)...)
		say(t, ab, "after")
		start := time.Now()
		ba.Read(make([]byte, 9))
		if took := time.Since(start); !about(took, 10*ms) {
			t.Errorf("after the heal a message takes %v", took)
		}
		if n := statsOf(t, s, "a", "b").Held; n.Packets != 0 {
			t.Errorf("%+v are still held", n)
		}
	})
}

func TestHeldDialsAndStreamsGoOnAfterTheHeal(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		client, server := openStream(t, s, "a", "b", ":80")
		l, err := s.Host("b").Listen("tcp", ":81")
		noError(t, err)
		heal := divide(t, s, gosimnet.HoldPackets)
		start := time.Now()
		time.AfterFunc(300*ms, heal)
		go func() {
			client.Write([]byte("hello"))
			client.Close()
		}()
		go s.Host("a").Dial("tcp", "b:81")
		if _, err := l.Accept(); err != nil || !about(time.Since(start), 330*ms) {
			t.Errorf("Accept after %v: %v", time.Since(start), err)
		}
		got, err := io.ReadAll(server)
		if string(got) != "hello" || err != nil {
			t.Errorf("ReadAll: %q, %v", got, err)
		}
	})
}

func TestRejectedPacketsAreAnswered(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		client, server := openStream(t, s, "a", "b", ":80")
		ab, _ := openCircuit(t, s, "a", "b")
		u, err := s.Host("a").Dial("udp", "b:53")
		noError(t, err)
		_, err = s.Host("b").ListenPacket("udp", ":53")
		noError(t, err)
		_, err = s.Host("b").Listen("tcp", ":81")
		noError(t, err)
		divide(t, s, gosimnet.RejectPackets)
		start := time.Now()
		if _, err := s.Host("a").Dial("tcp", "b:81"); !errors.Is(err, syscall.ECONNREFUSED) || time.Since(start) > 20*ms {
			t.Errorf("Dial took %v: %v", time.Since(start), err)
		}
		for what, c := range map[string]net.Conn{"stream": client, "circuit": ab} {
			say(t, c, "x")
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("Read from a %s that is rejected: %v", what, err)
			}
		}
		u.Write([]byte("x"))
		if _, err := u.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("Read from a socket that is rejected: %v", err)
		}
		say(t, server, "x")
		if _, err := server.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("Read at the other end: %v", err)
		}
		if st := statsOf(t, s, "a", "b"); st.Rejected.Packets != 4 || st.LostTo[gosimnet.CauseRejected].Packets != 4 {
			t.Errorf("rejected: %+v", st)
		}
	})
}

func TestCutLinkIsOneWay(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		ab, ba := openCircuit(t, s, "a", "b")
		heal := cutOneWay(t, s, gosimnet.DropPackets)
		say(t, ab, "there")
		say(t, ba, "back")
		wantHeard(t, ba)
		wantHeard(t, ab, "back")
		heal()
		say(t, ab, "healed")
		wantHeard(t, ba, "healed")

		cutAll, err := s.CutLink(gosimnet.DropPackets, "", "b")
		noError(t, err)
		ac, ca := openCircuit(t, s, "a", "c")
		say(t, ab, "to b")
		say(t, ac, "to c")
		say(t, ba, "from b")
		wantHeard(t, ba)
		wantHeard(t, ca, "to c")
		wantHeard(t, ab, "from b")
		cutAll()
	})
}

func TestOneWayCutOfAStream(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		client, server := openStream(t, s, "a", "b", ":80")
		heal, err := s.CutLink(gosimnet.DropPackets, "b", "a")
		noError(t, err)
		start := time.Now()
		say(t, client, "arrives")
		wantHeard(t, server, "arrives")
		say(t, server, "answer")
		wantHeard(t, client)
		heal()
		if _, err := client.Read(make([]byte, 9)); err != nil || time.Since(start) > 10*time.Second {
			t.Errorf("the answer took %v: %v", time.Since(start), err)
		}

		client, _ = openStream(t, s, "a", "b", ":81")
		_, err = s.CutLink(gosimnet.DropPackets, "b", "a")
		noError(t, err)
		start = time.Now()
		say(t, client, "arrives, but who would know")
		if _, err := client.Read(make([]byte, 9)); !errors.Is(err, syscall.ETIMEDOUT) || time.Since(start).Round(time.Second) != 925*time.Second {
			t.Errorf("Read after %v: %v", time.Since(start), err)
		}
	})
}

// A packet crosses only if the link is up when it leaves and when it arrives.
func TestPacketsUnderWayObeyThePartition(t *testing.T) {
	for _, test := range []struct {
		name                string
		sent, cut, healed   time.Duration
		drop, hold, refused bool // arrives
	}{
		{"cut and healed while under way", 0, 2 * ms, 8 * ms, true, true, true},
		{"cut before it arrives", 0, 9 * ms, 30 * ms, false, true, false},
		{"cut at its arrival's instant", 0, 10 * ms, 30 * ms, false, true, false},
		{"cut after it has arrived", 0, 11 * ms, 30 * ms, true, true, true},
		{"sent at the instant of the cut", 5 * ms, 5 * ms, 6 * ms, false, true, false},
		{"sent during the cut", 5 * ms, 4 * ms, 6 * ms, false, true, false},
		{"sent at the instant of the heal", 6 * ms, 4 * ms, 6 * ms, true, true, true},
	} {
		for _, mode := range []gosimnet.PartitionMode{gosimnet.DropPackets, gosimnet.HoldPackets, gosimnet.RejectPackets} {
			t.Run(test.name+" "+mode.String(), func(t *testing.T) {
				bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
					client, _ := s.Host("a").ListenPacket("udp", ":53")
					server, _ := s.Host("b").ListenPacket("udp", ":53")
					go func() {
						time.Sleep(test.cut)
						heal := cutOneWay(t, s, mode)
						time.Sleep(test.healed - test.cut)
						heal()
					}()
					time.Sleep(test.sent)
					client.WriteTo([]byte("x"), udpAddr(s.Host("b").Addrs()[0].AsSlice(), 53))
					server.SetReadDeadline(time.Now().Add(time.Second))
					_, _, err := server.ReadFrom(make([]byte, 9))
					want := []bool{test.drop, test.hold, test.refused}[mode]
					if (err == nil) != want {
						t.Errorf("arrived: %v, want %v", err == nil, want)
					}
					time.Sleep(time.Second)
				})
			})
		}
	}
}

func TestPacketsMustPassEveryPartition(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		ab, ba := openCircuit(t, s, "a", "b")
		first, second := divide(t, s, gosimnet.HoldPackets), divide(t, s, gosimnet.HoldPackets)
		say(t, ab, "1")
		first()
		wantHeard(t, ba)
		say(t, ab, "2")
		wantHeard(t, ba)
		second()
		wantHeard(t, ba, "1", "2")

		held, dropped := divide(t, s, gosimnet.HoldPackets), divide(t, s, gosimnet.DropPackets)
		say(t, ab, "held first, then dropped")
		held()
		wantHeard(t, ba)
		dropped()
		wantHeard(t, ba)
		if st := statsOf(t, s, "a", "b"); st.Held.Packets != 0 || st.LostTo[gosimnet.CausePartition].Packets != 1 {
			t.Errorf("after all was healed: %+v", st)
		}
	})
}

func TestPartitionOfThreeGroups(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		s.Host("a2")
		s.Host("outside")
		heal, err := s.Partition(gosimnet.RejectPackets, []string{"a", "a2"}, []string{"b"}, []string{"c"})
		noError(t, err)
		reach := func(from, to string) bool {
			for _, h := range []string{from, to} {
				if l, err := s.Host(h).Listen("tcp", ":80"); err == nil {
					defer l.Close()
				}
			}
			_, err := s.Host(from).Dial("tcp", to+":80")
			return err == nil
		}
		for _, pair := range [][2]string{{"a", "b"}, {"b", "c"}, {"c", "a2"}} {
			if reach(pair[0], pair[1]) || reach(pair[1], pair[0]) {
				t.Errorf("%v reach each other through the partition", pair)
			}
		}
		for _, pair := range [][2]string{{"a", "a2"}, {"outside", "a"}, {"outside", "c"}, {"b", "outside"}} {
			if !reach(pair[0], pair[1]) {
				t.Errorf("%v do not reach each other", pair)
			}
		}
		heal()
		if !reach("a", "b") || !reach("b", "c") {
			t.Error("the partition goes on after it was healed")
		}
	})
}

func TestPartitionIsShownUntilItIsHealed(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		heal := divide(t, s, gosimnet.DropPackets)
		cutOneWay(t, s, gosimnet.HoldPackets)
		if z := s.GetSimnetSnapshot(); len(z.Cuts) != 2 || !strings.Contains(z.String(), z.Cuts[0]) || !strings.Contains(z.String(), "HoldPackets") {
			t.Errorf("cuts %q in\n%v", z.Cuts, z)
		}
		heal()
		if z := s.GetSimnetSnapshot(); len(z.Cuts) != 1 {
			t.Errorf("cuts %q after one was healed", z.Cuts)
		}
	})
}

func TestDialThroughAPartitionThatHeals(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		_, err := s.Host("b").Listen("tcp", ":80")
		noError(t, err)
		heal := divide(t, s, gosimnet.DropPackets)
		time.AfterFunc(2500*ms, heal)
		start := time.Now()
		_, err = s.Host("a").Dial("tcp", "b:80")
		if took := time.Since(start); err != nil || !about(took, 3020*ms) { // the second SYN is repeated 3 s after the first
			t.Errorf("Dial took %v: %v", took, err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 300*ms)
		defer cancel()
		divide(t, s, gosimnet.DropPackets)
		start = time.Now()
		if _, err := s.Host("a").DialContext(ctx, "tcp", "b:80"); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 300*ms {
			t.Errorf("Dial took %v: %v", time.Since(start), err)
		}
	})
}

func TestResetConns(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		c1, s1 := openStream(t, s, "a", "b", ":80")
		c2, s2 := openStream(t, s, "b", "a", ":80")
		c3, s3 := openStream(t, s, "a", "c", ":80")
		divide(t, s, gosimnet.DropPackets) // resets need no network
		if n, err := s.ResetConns("a", "b"); n != 2 || err != nil {
			t.Errorf("ResetConns: %d, %v, want 2", n, err)
		}
		for i, c := range []net.Conn{c1, s1, c2, s2} {
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("end %d: %v", i, err)
			}
			if _, err := c.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("end %d, second Read: %v", i, err)
			}
			if _, err := c.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
				t.Errorf("end %d, Write: %v", i, err)
			}
		}
		say(t, c3, "x")
		wantHeard(t, s3, "x")
		if n, err := s.ResetConns("a", "b"); n != 0 || err != nil {
			t.Errorf("ResetConns again: %d, %v", n, err)
		}
		if n, err := s.ResetConns("", ""); n != 1 || err != nil {
			t.Errorf("ResetConns of all: %d, %v", n, err)
		}
	})
}

func TestResetConnsWakesWhoIsBlocked(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		client, server := openStream(t, s, "a", "b", ":80")
		errs := make(chan error, 2)
		go func() { _, err := server.Read(make([]byte, 1)); errs <- err }()
		go func() { _, err := client.Write(make([]byte, 10<<20)); errs <- err }()
		time.Sleep(time.Second)
		server.(*gosimnet.Conn).SetReadBuffer(1)
		<-errs // the data
		if _, err := s.ResetConns("", "b"); err != nil {
			t.Fatal(err)
		}
		if err := <-errs; !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the blocked Write: %v", err)
		}
	})
}
