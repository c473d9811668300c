package gosimnet_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

func TestSnapshotOfAHealthyNetworkIsOneLine(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		client, _ := openStream(t, s, "a", "b", ":80")
		say(t, client, "under way")
		z := s.GetSimnetSnapshot()
		for name, text := range map[string]string{"String": z.String(), "ShortString": z.ShortString()} {
			if strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, "\n") || !strings.Contains(text, "3 hosts") || !strings.Contains(text, "healthy") {
				t.Errorf("%s is\n%s", name, text)
			}
		}
		if text := z.LongString(); strings.Count(text, "\n") < 5 || !strings.Contains(text, "b:80") {
			t.Errorf("LongString is\n%s", text)
		}
	})
}

func TestSnapshotTellsWhatIsWrong(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		client, server := openStream(t, s, "a", "b", ":80")
		ab, ba := openCircuit(t, s, "a", "b")
		u, err := s.Host("b").ListenPacket("udp", ":53")
		noError(t, err)
		l, err := s.Host("c").Listen("tcp", ":443")
		noError(t, err)
		noError(t, s.FaultHost("a", gosimnet.DropDeafSpec{UpdateDropSends: true, DropSendsNewProb: 1, UpdateDeafReads: true, DeafReadsNewProb: 0.25}, false))
		alter(t, s, "c", gosimnet.ISOLATE, gosimnet.UNISOLATE)
		time.Sleep(time.Second)
		go server.Read(make([]byte, 1))
		go u.ReadFrom(make([]byte, 1))
		go l.Accept()
		go s.Host("b").Dial("tcp", "c:443")
		server.SetReadDeadline(time.Now().Add(time.Hour))
		say(t, client, "lost")
		say(t, ab, "lost", "too")
		say(t, ba, "x")
		time.Sleep(200 * ms)
		noError(t, client.Close())
		time.Sleep(100 * ms)
		text := s.GetSimnetSnapshot().String()
		for what, want := range map[string][]string{
			"the state of a":               {"a (", "FAULTY"},
			"the state of c":               {"c (", "ISOLATED"},
			"the probabilities":            {"drops 1", "deaf 0.25"},
			"who reads from a stream":      {"read b:80", "since 1.0"},
			"who reads from a socket":      {"udp", "read waits since 1.0"},
			"who accepts":                  {":443", "accept waits since 1.0"},
			"who dials":                    {"dial b to c:443 since 1.0", "b:49153 → c:443: HEALTHY, opening\n"},
			"the lost messages":            {"dropped:", "message #2 of 4 B", "message #3 of 3 B"},
			"the lost segment":             {"data #0 of 4 B a:49152→b:80, sent at 1.0", "FIN #1 of 0 B a:49152→b:80, sent at 1.2"},
			"the retransmission":           {"retransmission"},
			"the deadline":                 {"read deadline"},
			"the link that lost packets":   {"a→b"},
			"the bytes that are under way": {"in flight 4 B"},
		} {
			for _, w := range want {
				if !strings.Contains(text, w) {
					t.Errorf("%s: no %q in\n%s", what, w, text)
				}
			}
		}
	})
}

func TestFieldsOfASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := threeHosts(t, &gosimnet.SimNetConfig{Seed: 5, SendBuffer: 20, ReceiveBuffer: 10, RecordCallers: true})
		client, server := openStream(t, s, "a", "b", ":80")
		ab, ba := openCircuit(t, s, "b", "c")
		noError(t, s.FaultCircuit("a", "b", drop(0.5), false))
		noError(t, s.FaultCircuit("a", "", deaf(0.25), false))
		noError(t, s.FaultCircuit("a", "b", drop(0), false))
		go func() {
			client.Write(make([]byte, 100)) // 20 are in the buffer, of which 10 get through
		}()
		time.Sleep(time.Second)
		go server.(*gosimnet.Conn).SetReadDeadline(start.Add(time.Hour))
		ba.Close()
		z := s.GetSimnetSnapshot()

		if !z.Asof.Equal(time.Now()) || z.NetClosed || z.GetSimnetStatusErr != nil || z.Loopi <= 0 || z.Xcountsn <= 0 || z.Xhash != s.TraceHash() {
			t.Errorf("Asof %v, NetClosed %v, GetSimnetStatusErr %v, Loopi %d, Xcountsn %d, Xhash %s", z.Asof, z.NetClosed, z.GetSimnetStatusErr, z.Loopi, z.Xcountsn, z.Xhash)
		}
		if z.Cfg.Seed != 5 || z.Cfg.SendBuffer != 20 || z.Cfg.MinHop != 10*ms || z.Cfg.Backlog != 128 {
			t.Errorf("Cfg is %+v", z.Cfg)
		}
		if z.ScenarioMinHop != 10*ms || z.ScenarioMaxHop != 10*ms || z.ScenarioSeed[0] != 5 {
			t.Errorf("the scenario is %v to %v, %v", z.ScenarioMinHop, z.ScenarioMaxHop, z.ScenarioSeed)
		}
		var names []string
		for _, p := range z.Peer {
			names = append(names, p.Name)
			if z.Peermap[p.Name] != p || p.ServerBaseID != p.Name || len(p.Addrs) != 2 || p.Up != time.Since(start) {
				t.Errorf("%s: %+v", p.Name, p)
			}
		}
		if !slices.Equal(names, []string{"a", "b", "c"}) {
			t.Errorf("the hosts are %q", names)
		}
		if len(z.LoneCli) != 1 || z.LoneCli["a"] != z.Peermap["a"] || !z.Peermap["a"].IsLoneCli || z.Peermap["b"].IsLoneCli {
			t.Errorf("the hosts that only dial are %v", z.LoneCli)
		}
		if z.LoneCliConnCount != 1 || z.PeerConnCount != 3 {
			t.Errorf("%d and %d ends of connections", z.LoneCliConnCount, z.PeerConnCount)
		}

		a := z.Peermap["a"]
		if a.ServerState != gosimnet.FAULTY || a.Poweroff || a.LC <= 0 || len(a.Conn) != 1 {
			t.Fatalf("a is %+v", a)
		}
		c := a.Conn[0]
		if a.Connmap["b:80"] != c || !c.OriginIsCli || c.Origin != "a:49152" || c.Target != "b:80" || c.Network != "tcp" {
			t.Errorf("the client's end is %+v", c)
		}
		if c.OriginState != gosimnet.FAULTY || c.TargetState != gosimnet.HEALTHY || c.DropSendProb != 0 || c.DeafReadProb != 0.25 {
			t.Errorf("states %v and %v, drops %v, deaf %v", c.OriginState, c.TargetState, c.DropSendProb, c.DeafReadProb)
		}
		if c.OriginConnClosed || c.TargetConnClosed || c.OriginPoweroff || c.TargetPoweroff {
			t.Errorf("closed or off: %+v", c)
		}
		if c.SendBuffer != 20 || c.InFlight != 0 || c.ReadQ.Len() != 1 {
			t.Errorf("%d B not sent, %d in flight, %d calls wait", c.SendBuffer, c.InFlight, c.ReadQ.Len())
		}
		for m := range c.ReadQ.All() {
			if m.Kind != gosimnet.MopRead || m.What != "write" || m.Origin != "a:49152" || !about(m.Issued, 80*ms) {
				t.Errorf("the call that waits is %v", m)
			}
		}
		peer := z.Peermap["b"].Connmap["a:49152"]
		if peer.OriginIsCli || peer.Unread != 10 || peer.OriginState != gosimnet.HEALTHY || peer.TargetState != gosimnet.FAULTY {
			t.Errorf("the server's end is %+v", peer)
		}
		for _, circuit := range z.Peermap["b"].Conn {
			if circuit.Network == "simnet" && (circuit.OriginConnClosed || !circuit.TargetConnClosed || circuit.Origin != ab.LocalAddr().String() || circuit.Target != "c for b") {
				t.Errorf("the circuit is %+v", circuit)
			}
		}

		if n := len(z.Xkind); n == 0 || len(z.Xfinorder) != n || len(z.Xwhence) != n || len(z.Xissuetm) != n || len(z.Xfintm) != n || len(z.Xwho) != n {
			t.Errorf("%d, %d, %d, %d, %d, %d operations", n, len(z.Xfinorder), len(z.Xwhence), len(z.Xissuetm), len(z.Xfintm), len(z.Xwho))
		}
		if !slices.IsSorted(z.Xfinorder) || !slices.IsSortedFunc(z.Xfintm, time.Time.Compare) {
			t.Error("the operations are not in the order in which they ended")
		}
		written := false
		for i := range z.Xkind {
			if z.Xissuetm[i].After(z.Xfintm[i]) || z.Xwho[i] < -1 || z.Xwho[i] > 2 {
				t.Errorf("operation %d by %d, issued at %v, ended at %v", i, z.Xwho[i], z.Xissuetm[i], z.Xfintm[i])
			}
			written = written || z.Xkind[i] == gosimnet.EventDeliver && z.Xwho[i] == 0 && strings.Contains(z.Xwhence[i], "snapshot_test.go:")
		}
		if !written {
			t.Errorf("no operation tells that it was issued here: %q", z.Xwhence)
		}
	})
}

func TestQueuesOfASnapshot(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		ab, ba := openCircuit(t, s, "a", "b")
		noError(t, s.FaultHost("a", drop(1), false))
		say(t, ab, "dropped")
		time.Sleep(ms)
		noError(t, s.FaultHost("a", drop(0), false))
		noError(t, s.FaultHost("b", deaf(1), false))
		say(t, ab, "unheard")
		time.Sleep(20 * ms)
		noError(t, s.FaultHost("b", deaf(0), false))
		say(t, ab, "under way")
		go ba.Read(make([]byte, 1))
		time.Sleep(ms)
		ba.SetReadDeadline(time.Now().Add(time.Hour))
		z := s.GetSimnetSnapshot()
		from, to := z.Peermap["a"].Conn[0], z.Peermap["b"].Conn[0]
		for _, test := range []struct {
			name string
			q    *gosimnet.MopQueue
			want string
		}{
			{"DroppedSendQ", from.DroppedSendQ, "SEND message 2 7 B"},
			{"DeafReadQ", to.DeafReadQ, "SEND message 3 7 B"},
			{"PreArrQ", to.PreArrQ, "SEND message 4 9 B"},
			{"ReadQ", to.ReadQ, "READ read 0 0 B"},
			{"TimerQ", to.TimerQ, "TIMER keep-alive 0 0 B, TIMER read deadline 0 0 B"},
			{"the sender's DeafReadQ", from.DeafReadQ, ""},
			{"the receiver's DroppedSendQ", to.DroppedSendQ, ""},
		} {
			var got []string
			for m := range test.q.All() {
				got = append(got, fmt.Sprintf("%s %s %d %d B", m.Kind, m.What, m.N, m.Size))
			}
			if strings.Join(got, ", ") != test.want || test.q.Len() != len(got) {
				t.Errorf("%s holds %q, want %q", test.name, got, test.want)
			}
		}
		if !strings.Contains(to.Qs, "waiting") || !strings.Contains(to.Qs, "arriving") {
			t.Errorf("the queues in words: %s", to.Qs)
		}
		for m := range to.PreArrQ.All() {
			if m.Due-m.Issued < 10*ms || m.Due-m.Issued > 10*ms+time.Microsecond || m.Origin == "" || m.Target == "" {
				t.Errorf("the packet that is under way: %v", m)
			}
			break
		}
	})
}

// scribble overwrites all that can be reached from a value, but for what is behind an interface: errors and distributions are values.
func scribble(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			scribble(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			scribble(v.Index(i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			scribble(v.MapIndex(k))
			v.SetMapIndex(k, reflect.Value{})
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				scribble(v.Field(i))
			}
		}
	}
	if v.CanSet() {
		v.SetZero()
	}
}

func TestNothingInASnapshotIsTheNetworks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		burst := &gosimnet.GilbertElliott{GoodToBad: 0.1, BadToGood: 0.5, LossBad: 1}
		cfg := &gosimnet.SimNetConfig{Link: gosimnet.LinkConfig{Burst: burst}}
		s := threeHosts(t, cfg)
		*burst, *cfg = gosimnet.GilbertElliott{}, gosimnet.SimNetConfig{}
		noError(t, s.SetLink("b", "c", gosimnet.LinkConfig{Burst: burst}))
		burst.LossBad = 1
		client, server := openStream(t, s, "a", "b", ":80")
		ab, _ := openCircuit(t, s, "a", "b")
		noError(t, s.FaultHost("a", drop(0.5), false))
		say(t, client, strings.Repeat("0123456789", 1000))
		say(t, ab, count(1, 20)...)
		_, err := s.Host("c").Listen("tcp", ":1")
		noError(t, err)
		_, err = s.CutLink(gosimnet.HoldPackets, "a", "c")
		noError(t, err)
		s.Host("c").Run(func(context.Context) error { return errors.New("broken") })
		s.Host("a").NewTimer(time.Hour)
		time.Sleep(ms)
		if b := s.GetSimnetSnapshot().Cfg.Link.Burst; b == nil || b.LossBad != 1 || b.GoodToBad != 0.1 {
			t.Errorf("the caller's change of what it gave New is seen: %+v", b)
		}
		before := s.GetSimnetSnapshot()
		text, hash := before.LongString(), s.TraceHash()
		spoilt := s.GetSimnetSnapshot()
		scribble(reflect.ValueOf(spoilt).Elem())
		if got := s.GetSimnetSnapshot().LongString(); got != text || s.TraceHash() != hash {
			t.Errorf("after a snapshot was overwritten the network is\n%s, not\n%s", got, text)
		}
		if before.LongString() != text {
			t.Error("a snapshot is changed by what happens to another")
		}
		if got := strings.Join(heard(t, server, time.Minute), ""); got != strings.Repeat("0123456789", 1000) {
			t.Errorf("%d bytes came", len(got))
		}
		if before.LongString() != text {
			t.Error("a snapshot is changed by what happens afterwards")
		}
	})
}

func TestSnapshotToFile(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		z := s.GetSimnetSnapshot()
		name := filepath.Join(t.TempDir(), "snapshot")
		z.ToFile(name)
		if text, err := os.ReadFile(name); err != nil || string(text) != z.LongString() {
			t.Errorf("%v, %q", err, text)
		}
		z.ToFile(filepath.Join(name, "is no directory"))
		if z.GetSimnetStatusErr == nil {
			t.Error("that the file could not be written is not told")
		}
	})
}

func TestSnapshotter(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		looker := s.Snapshotter()
		if a, b := looker.GetSimnetSnapshot(), s.GetSimnetSnapshot(); a.LongString() != b.LongString() || a.Xhash != b.Xhash {
			t.Errorf("the snapshotter sees\n%v, not\n%v", a, b)
		}
		for _, nobody := range []*gosimnet.SimnetSnapshotter{nil, {}} {
			if z := nobody.GetSimnetSnapshot(); z == nil || z.GetSimnetStatusErr == nil || !strings.Contains(z.String(), "no network") {
				t.Errorf("a snapshotter of no network sees %v", z)
			}
		}
	})
}

func TestSnapshotAfterClose(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		openStream(t, s, "a", "b", ":80")
		time.Sleep(time.Second)
		before := s.TraceHash()
		s.Close()
		z := s.GetSimnetSnapshot()
		if !z.NetClosed || z.GetSimnetStatusErr != nil || len(z.Peer) != 3 || len(z.Events) == 0 || !strings.Contains(z.String(), "closed") {
			t.Errorf("after Close: %v", z)
		}
		if z.Xhash != before || s.TraceHash() != before {
			t.Errorf("the hash was %s, and is %s after Close", before, z.Xhash)
		}
	})
}

func TestSnapshotCountsAreConsistentAtEveryInstant(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		client, server := openStream(t, s, "a", "b", ":80")
		noError(t, s.SetLink("a", "b", gosimnet.LinkConfig{Loss: 0.2}))
		const all = 200_000
		go func() {
			client.Write(make([]byte, all))
			client.Close()
		}()
		var arrived atomic.Int64
		go func() {
			b := make([]byte, 7000)
			for {
				n, err := server.Read(b)
				arrived.Add(int64(n))
				if err != nil {
					return
				}
				time.Sleep(ms)
			}
		}()
		for range 2000 {
			time.Sleep(3 * ms)
			synctest.Wait()
			z, read := s.GetSimnetSnapshot(), int(arrived.Load())
			statsOf(t, s, "a", "b")
			if c := z.Peermap["a"].Connmap["b:80"]; c != nil {
				o := z.Peermap["b"].Connmap[c.Origin]
				if o == nil || c.SendBuffer < 0 || c.InFlight < 0 || o.Unread < 0 || c.SendBuffer+c.InFlight+o.Unread+read < 0 {
					t.Fatalf("at %v: %+v", z.Asof, c)
				}
				if sum := c.SendBuffer + c.InFlight + o.Unread + read; sum < all && sum != 0 && c.InFlight+c.SendBuffer < all-read-o.Unread {
					t.Fatalf("at %v %d B are read, %d unread, %d in flight, %d unsent, of %d", z.Asof, read, o.Unread, c.InFlight, c.SendBuffer, all)
				}
			}
		}
		if read := arrived.Load(); read != all {
			t.Errorf("%d of %d bytes were read", read, all)
		}
	})
}

func TestFaultsOutliveOtherEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := threeHosts(t, &gosimnet.SimNetConfig{TraceLimit: 4})
		alter(t, s, "c", gosimnet.SHUTDOWN, gosimnet.POWERON)
		_, err := s.Host("b").ListenPacket("udp", ":9")
		noError(t, err)
		u, err := s.Host("a").Dial("udp", "b:9")
		noError(t, err)
		for range 10 {
			say(t, u, "x")
			time.Sleep(time.Second)
		}
		noError(t, s.FaultHost("a", drop(0.5), false))
		var kinds []string
		for _, e := range s.GetSimnetSnapshot().Faults {
			kinds = append(kinds, e.Kind+" "+e.From+" "+e.Cause)
		}
		if want := []string{"power c SHUTDOWN", "fault a drop 0.5 deaf 0"}; !slices.Equal(kinds, want) {
			t.Errorf("the faults are %q, want %q", kinds, want)
		}
		for i := range 100 {
			noError(t, s.FaultHost("a", drop(float64(i)/100), false))
			time.Sleep(time.Second)
		}
		if all := s.GetSimnetSnapshot().Faults; len(all) != 64 || all[63].Cause != "drop 0.99 deaf 0" {
			t.Errorf("%d faults are kept, the last %v", len(all), all[len(all)-1])
		}
	})
}
