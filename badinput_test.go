package gosimnet_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

// world is one of everything that a network has.
type world struct {
	s               *gosimnet.Simnet
	a               *gosimnet.Host
	client          *gosimnet.Conn
	circuit         *gosimnet.Circuit
	listener        *gosimnet.Listener
	socket, dialled *gosimnet.PacketConn
	timer           *gosimnet.SimTimer
	batch           *gosimnet.SimnetBatch
	snapshotter     *gosimnet.SimnetSnapshotter
	cli             *gosimnet.SimClient
	srv             *gosimnet.SimServer
	undo            []func()
}

func newWorld(t *testing.T, s *gosimnet.Simnet) *world {
	w := &world{s: s, a: s.Host("a")}
	client, _ := openStream(t, s, "a", "b", ":80")
	circuit, _ := openCircuit(t, s, "a", "b")
	l, err := w.a.Listen("tcp", ":81")
	noError(t, err)
	socket, err := w.a.ListenPacket("udp", ":82")
	noError(t, err)
	dialled, err := w.a.Dial("udp", "b:82")
	noError(t, err)
	w.client, w.circuit, w.listener = client.(*gosimnet.Conn), circuit.(*gosimnet.Circuit), l.(*gosimnet.Listener)
	w.socket, w.dialled = socket.(*gosimnet.PacketConn), dialled.(*gosimnet.PacketConn)
	w.timer, w.batch, w.snapshotter = w.a.NewTimer(24*time.Hour), s.NewSimnetBatch(time.Time{}, true), s.Snapshotter()
	w.batch.AlterHost("c", gosimnet.ISOLATE)
	w.cli, err = s.NewSimClient("cli")
	noError(t, err)
	w.srv = s.NewSimServer("srv")
	_, err = w.srv.Listen("", "")
	noError(t, err)
	heal, err := s.Partition(gosimnet.DropPackets, []string{"a"}, []string{"c"})
	noError(t, err)
	unclog, err := s.Clog("a", "c", 0)
	noError(t, err)
	w.undo = []func(){heal, unclog, s.AddRule(func(*gosimnet.Packet) gosimnet.Verdict { return gosimnet.Pass() })}
	return w
}

// errNone stands for the error of a method that reports none.
var errNone = errors.New("no error is reported")

func none(any) error { return errNone }

func third[T, U any](_ T, _ U, err error) error { return err }

// calls are all exported methods that touch the network, by type and name.
func (w *world) calls() map[string]func() error {
	b, peer := make([]byte, 10), &net.UDPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 82}
	ctx := context.Background()
	group := &net.UDPAddr{IP: net.IPv4(224, 0, 1, 1), Port: 99}
	msg := func(_, _, _ int, _ any, err error) error { return err }
	return map[string]func() error{
		"Simnet.AddHost":   func() error { return second(w.s.AddHost("new")) },
		"Simnet.AddRecord": func() error { return w.s.AddRecord("name.test", "A 10.0.0.9") },
		"Simnet.AddRule": func() error {
			w.s.AddRule(func(*gosimnet.Packet) gosimnet.Verdict { return gosimnet.Drop() })()
			return errNone
		},
		"Simnet.AllHealthy":        func() error { return w.s.AllHealthy(true, true) },
		"Simnet.AllLinkStats":      func() error { return none(len(collect(w.s.AllLinkStats()))) },
		"Simnet.AlterCircuit":      func() error { return second(w.s.AlterCircuit("a", gosimnet.SHUTDOWN, true)) },
		"Simnet.AlterHost":         func() error { return second(w.s.AlterHost("a", gosimnet.SHUTDOWN)) },
		"Simnet.Classify":          func() error { w.s.Classify(nil); return errNone },
		"Simnet.Clog":              func() error { return second(w.s.Clog("a", "b", 0)) },
		"Simnet.Close":             func() error { w.s.Close(); return errNone },
		"Simnet.CutLink":           func() error { return second(w.s.CutLink(gosimnet.DropPackets, "a", "b")) },
		"Simnet.Delivered":         func() error { return none(w.s.Delivered()) },
		"Simnet.FaultCircuit":      func() error { return w.s.FaultCircuit("a", "b", drop(1), true) },
		"Simnet.FaultHost":         func() error { return w.s.FaultHost("a", drop(1), true) },
		"Simnet.GetSimnetSnapshot": func() error { return w.s.GetSimnetSnapshot().GetSimnetStatusErr },
		"Simnet.Heal":              func() error { w.s.Heal(); return errNone },
		"Simnet.Host":              func() error { return second(w.s.Host("a").Dial("tcp", "b:80")) },
		"Simnet.Hosts":             func() error { return none(w.s.Hosts()) },
		"Simnet.LinkStats":         func() error { return second(w.s.LinkStats("a", "b")) },
		"Simnet.NewSimClient":      func() error { return second(w.s.NewSimClient("cli2")) },
		"Simnet.NewSimServer":      func() error { return second(w.s.NewSimServer("srv2").Listen("", "")) },
		"Simnet.NewSimnetBatch": func() error {
			b := w.s.NewSimnetBatch(time.Time{}, true)
			b.AlterHost("a", gosimnet.ISOLATE)
			w.s.SubmitBatch(b)
			<-b.Done()
			return b.Err()
		},
		"Simnet.Partition": func() error {
			return second(w.s.Partition(gosimnet.DropPackets, []string{"a"}, []string{"b"}))
		},
		"Simnet.PartitionShaped": func() error {
			return second(w.s.PartitionShaped(gosimnet.DropPackets, 0, false))
		},
		"Simnet.RemoveRecords": func() error { return w.s.RemoveRecords("name.test") },
		"Simnet.RepairCircuit": func() error { return w.s.RepairCircuit("a", true, true, true) },
		"Simnet.RepairHost":    func() error { return w.s.RepairHost("a", true, true, false, true) },
		"Simnet.ResetConns":    func() error { return second(w.s.ResetConns("", "")) },
		"Simnet.Seed":          func() error { return none(w.s.Seed()) },
		"Simnet.SetDownlink":   func() error { return w.s.SetDownlink("a", gosimnet.LinkConfig{}) },
		"Simnet.SetLink":       func() error { return w.s.SetLink("a", "b", gosimnet.LinkConfig{Loss: 1}) },
		"Simnet.SetScenario":   func() error { return w.s.SetScenario(gosimnet.Scenario{}) },
		"Simnet.SetUplink":     func() error { return w.s.SetUplink("a", gosimnet.LinkConfig{}) },
		"Simnet.SetWeather":    func() error { return w.s.SetWeather(gosimnet.Weather{}) },
		"Simnet.Snapshotter":   func() error { return w.s.Snapshotter().GetSimnetSnapshot().GetSimnetStatusErr },
		"Simnet.SubmitBatch":   func() error { w.s.SubmitBatch(w.batch); return w.batch.Err() },
		"Simnet.SwizzleClog":   func() error { return w.s.SwizzleClog(time.Second) },
		"Simnet.Trace": func() error {
			for range w.s.Trace() {
			}
			return errNone
		},
		"Simnet.TraceHash": func() error { return none(w.s.TraceHash()) },

		"Host.Addrs":              func() error { return none(w.a.Addrs()) },
		"Host.Dial":               func() error { return second(w.a.Dial("tcp", "b:80")) },
		"Host.DialContext":        func() error { return second(w.a.DialContext(ctx, "udp", "b:80")) },
		"Host.DialTimeout":        func() error { return second(w.a.DialTimeout("simnet", "b", time.Second)) },
		"Host.Dialer":             func() error { return second(w.a.Dialer().Dial("tcp", "b:80")) },
		"Host.Listen":             func() error { return second(w.a.Listen("tcp", ":0")) },
		"Host.ListenMulticastUDP": func() error { return second(w.a.ListenMulticastUDP("udp", nil, group)) },
		"Host.ListenPacket":       func() error { return second(w.a.ListenPacket("udp", ":0")) },
		"Host.Name":               func() error { return none(w.a.Name()) },
		"Host.NewTimer":           func() error { return none(w.a.NewTimer(0)) },
		"Host.PoweredOff":         func() error { return none(w.a.PoweredOff()) },
		"Host.Resolver":           func() error { return second(w.a.Resolver().LookupHost(ctx, "b")) },
		"Host.Run": func() error {
			w.a.Run(func(context.Context) error { panic("software runs on a network that is out of reach") })
			return errNone
		},
		"Host.SetView": func() error { return w.a.SetView("b", gosimnet.NXDomain()) },
		"Host.State":   func() error { return none(w.a.State()) },

		"Simnet.Capture":     func() error { return none(w.s.Capture(nil)) },
		"Simnet.ClearLink":   func() error { return second(w.s.ClearLink("a", "b")) },
		"Simnet.RecordFates": func() error { return none(w.s.RecordFates()) },
		"Simnet.ReplayFates": func() error { w.s.ReplayFates(nil)(); return errNone },

		"Dialer.Dial":        func() error { return second(w.a.Dialer().Dial("tcp", "b:80")) },
		"Dialer.DialContext": func() error { return second(w.a.Dialer().DialContext(ctx, "simnet", "b")) },

		"Conn.Close":              func() error { return w.client.Close() },
		"Conn.CloseRead":          func() error { return w.client.CloseRead() },
		"Conn.CloseWrite":         func() error { return w.client.CloseWrite() },
		"Conn.LocalAddr":          func() error { return none(w.client.LocalAddr()) },
		"Conn.Read":               func() error { return second(w.client.Read(b)) },
		"Conn.ReadFrom":           func() error { return second(w.client.ReadFrom(strings.NewReader("x"))) },
		"Conn.RemoteAddr":         func() error { return none(w.client.RemoteAddr()) },
		"Conn.SetDeadline":        func() error { return w.client.SetDeadline(time.Now()) },
		"Conn.SetKeepAlive":       func() error { return w.client.SetKeepAlive(true) },
		"Conn.SetKeepAliveConfig": func() error { return w.client.SetKeepAliveConfig(net.KeepAliveConfig{}) },
		"Conn.SetKeepAlivePeriod": func() error { return w.client.SetKeepAlivePeriod(time.Second) },
		"Conn.SetLinger":          func() error { return w.client.SetLinger(1) },
		"Conn.MultipathTCP":       func() error { _, _ = w.client.MultipathTCP(); return errNone },
		"Conn.SetNoDelay":         func() error { return w.client.SetNoDelay(true) },
		"Conn.SetReadBuffer":      func() error { return w.client.SetReadBuffer(1) },
		"Conn.SetReadDeadline":    func() error { return w.client.SetReadDeadline(time.Now()) },
		"Conn.SetWriteBuffer":     func() error { return w.client.SetWriteBuffer(1) },
		"Conn.SetWriteDeadline":   func() error { return w.client.SetWriteDeadline(time.Now()) },
		"Conn.Write":              func() error { return second(w.client.Write(b)) },
		"Conn.WriteTo":            func() error { return second(w.client.WriteTo(io.Discard)) },

		"Circuit.Close":            func() error { return w.circuit.Close() },
		"Circuit.LocalAddr":        func() error { return none(w.circuit.LocalAddr()) },
		"Circuit.Read":             func() error { return second(w.circuit.Read(b)) },
		"Circuit.RemoteAddr":       func() error { return none(w.circuit.RemoteAddr()) },
		"Circuit.SetDeadline":      func() error { return w.circuit.SetDeadline(time.Now()) },
		"Circuit.SetReadDeadline":  func() error { return w.circuit.SetReadDeadline(time.Now()) },
		"Circuit.SetWriteDeadline": func() error { return w.circuit.SetWriteDeadline(time.Now()) },
		"Circuit.Write":            func() error { return second(w.circuit.Write(b)) },

		"Listener.Accept":      func() error { return second(w.listener.Accept()) },
		"Listener.Addr":        func() error { return none(w.listener.Addr()) },
		"Listener.Close":       func() error { return w.listener.Close() },
		"Listener.SetDeadline": func() error { return w.listener.SetDeadline(time.Now()) },

		"PacketConn.Close":       func() error { return w.socket.Close() },
		"PacketConn.JoinGroup":   func() error { return w.socket.JoinGroup(nil, group) },
		"PacketConn.LeaveGroup":  func() error { return w.socket.LeaveGroup(nil, group) },
		"PacketConn.LocalAddr":   func() error { return none(w.socket.LocalAddr()) },
		"PacketConn.RemoteAddr":  func() error { return none(w.socket.RemoteAddr()) },
		"PacketConn.Read":        func() error { return second(w.dialled.Read(b)) },
		"PacketConn.ReadFrom":    func() error { return third(w.socket.ReadFrom(b)) },
		"PacketConn.ReadFromUDP": func() error { return third(w.socket.ReadFromUDP(b)) },
		"PacketConn.ReadFromUDPAddrPort": func() error {
			return third(w.socket.ReadFromUDPAddrPort(b))
		},
		"PacketConn.ReadMsgUDP": func() error {
			n, oobn, flags, addr, err := w.socket.ReadMsgUDP(b, nil)
			return msg(n, oobn, flags, addr, err)
		},
		"PacketConn.ReadMsgUDPAddrPort": func() error {
			n, oobn, flags, addr, err := w.socket.ReadMsgUDPAddrPort(b, nil)
			return msg(n, oobn, flags, addr, err)
		},
		"PacketConn.MulticastLoopback":    func() error { return second(w.socket.MulticastLoopback()) },
		"PacketConn.SetDeadline":          func() error { return w.socket.SetDeadline(time.Now()) },
		"PacketConn.SetMulticastLoopback": func() error { return w.socket.SetMulticastLoopback(true) },
		"PacketConn.SetReadBuffer":        func() error { return w.socket.SetReadBuffer(1) },
		"PacketConn.SetReadDeadline":      func() error { return w.socket.SetReadDeadline(time.Now()) },
		"PacketConn.SetWriteBuffer":       func() error { return w.socket.SetWriteBuffer(1) },
		"PacketConn.SetWriteDeadline":     func() error { return w.socket.SetWriteDeadline(time.Now()) },
		"PacketConn.Write":                func() error { return second(w.dialled.Write(b)) },
		"PacketConn.WriteMsgUDP":          func() error { return third(w.socket.WriteMsgUDP(b, nil, peer)) },
		"PacketConn.WriteMsgUDPAddrPort": func() error {
			return third(w.socket.WriteMsgUDPAddrPort(b, nil, peer.AddrPort()))
		},
		"PacketConn.WriteTo":            func() error { return second(w.socket.WriteTo(b, peer)) },
		"PacketConn.WriteToUDP":         func() error { return second(w.socket.WriteToUDP(b, peer)) },
		"PacketConn.WriteToUDPAddrPort": func() error { return second(w.socket.WriteToUDPAddrPort(b, peer.AddrPort())) },

		"SimTimer.Discard": func() error { return none(w.timer.Discard()) },
		"SimTimer.Reset":   func() error { return none(w.timer.Reset(time.Second)) },
		"SimTimer.Stop":    func() error { return none(w.timer.Stop()) },

		"SimnetBatch.AllHealthy":        func() error { w.batch.AllHealthy(true, true); return errNone },
		"SimnetBatch.AlterCircuit":      func() error { w.batch.AlterCircuit("a", gosimnet.ISOLATE, true); return errNone },
		"SimnetBatch.AlterHost":         func() error { w.batch.AlterHost("a", gosimnet.ISOLATE); return errNone },
		"SimnetBatch.Done":              func() error { return none(w.batch.Done()) },
		"SimnetBatch.Err":               func() error { w.s.SubmitBatch(w.batch); return w.batch.Err() },
		"SimnetBatch.FaultCircuit":      func() error { w.batch.FaultCircuit("a", "b", drop(1), true); return errNone },
		"SimnetBatch.FaultHost":         func() error { w.batch.FaultHost("a", drop(1), true); return errNone },
		"SimnetBatch.GetSimnetSnapshot": func() error { w.batch.GetSimnetSnapshot(); return errNone },
		"SimnetBatch.RepairCircuit":     func() error { w.batch.RepairCircuit("a", true, true, true); return errNone },
		"SimnetBatch.RepairHost":        func() error { w.batch.RepairHost("a", true, true, false, true); return errNone },
		"SimnetBatch.Snapshot":          func() error { return none(w.batch.Snapshot()) },

		"SimnetSnapshotter.GetSimnetSnapshot": func() error { return w.snapshotter.GetSimnetSnapshot().GetSimnetStatusErr },

		"SimClient.Close":      func() error { w.cli.Close(); return errNone },
		"SimClient.Dial":       func() error { return second(w.cli.Dial("gosimnet", "srv")) },
		"SimClient.LocalAddr":  func() error { return none(w.cli.LocalAddr()) },
		"SimClient.NewTimer":   func() error { return none(w.cli.NewTimer(0)) },
		"SimClient.RemoteAddr": func() error { return none(w.cli.RemoteAddr()) },
		"SimServer.Close":      func() error { return w.srv.Close() },
		"SimServer.Listen":     func() error { return second(w.srv.Listen("", "")) },
		"SimServer.NewTimer":   func() error { return none(w.srv.NewTimer(0)) },
	}
}

// collect collects a sequence of pairs.
func collect[K comparable, V any](seq func(yield func(K, V) bool)) map[K]V {
	all := make(map[K]V)
	seq(func(k K, v V) bool { all[k] = v; return true })
	return all
}

// The table of calls must have every method of every type that belongs to a network.
func TestTableOfCallsIsComplete(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		calls := newWorld(t, s).calls()
		for _, x := range []any{
			(*gosimnet.Simnet)(nil), (*gosimnet.Host)(nil), (*gosimnet.Dialer)(nil), (*gosimnet.Conn)(nil), (*gosimnet.Circuit)(nil),
			(*gosimnet.Listener)(nil), (*gosimnet.PacketConn)(nil), (*gosimnet.SimTimer)(nil), (*gosimnet.SimnetBatch)(nil),
			(*gosimnet.SimnetSnapshotter)(nil), (*gosimnet.SimClient)(nil), (*gosimnet.SimServer)(nil),
		} {
			typ := reflect.TypeOf(x)
			for i := range typ.NumMethod() {
				if name := typ.Elem().Name() + "." + typ.Method(i).Name; calls[name] == nil {
					t.Errorf("no call of %s", name)
				}
			}
		}
	})
}

// byTheWrongClock makes every call; those that report errors must tell of the clock.
func (w *world) byTheWrongClock(t *testing.T) {
	for name, call := range w.calls() {
		if err := call(); err != errNone && (err == nil || !strings.Contains(err.Error(), "synctest bubble")) {
			t.Errorf("%s by the wrong clock: %v", name, err)
		}
	}
	for _, undo := range w.undo {
		undo()
	}
}

// unharmed checks that calls which failed changed nothing.
func (w *world) unharmed(t *testing.T, before string) {
	t.Helper()
	if after := w.s.GetSimnetSnapshot().LongString(); after != before {
		t.Errorf("the network was\n%s, and is\n%s", before, after)
	}
	if fired(w.timer) || !w.timer.Stop() || w.batch.Err() != nil || finished(w.batch) {
		t.Error("the timer or the batch was changed")
	}
	if _, err := w.client.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	w.s.SubmitBatch(w.batch)
}

func TestEveryCallFromOutsideTheBubble(t *testing.T) {
	use, used := make(chan func()), make(chan bool)
	go func() {
		for f := range use {
			f()
			used <- true
		}
	}()
	defer close(use)
	var left *world
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, threeHosts(t, nil))
		time.Sleep(time.Second)
		before := w.s.GetSimnetSnapshot().LongString()
		use <- func() { w.byTheWrongClock(t) }
		<-used
		w.unharmed(t, before)
		left = w
	})
	for name, call := range left.calls() { // it has been closed by now
		if err := call(); err != errNone && err == nil && !strings.HasSuffix(name, "Snapshot") && name != "Simnet.Snapshotter" {
			t.Errorf("%s after the bubble has ended: %v", name, err)
		}
	}
}

func TestEveryCallFromInsideABubble(t *testing.T) {
	s := threeHosts(t, &gosimnet.SimNetConfig{MinHop: time.Microsecond})
	w := newWorld(t, s)
	synctest.Test(t, func(t *testing.T) {
		w.byTheWrongClock(t)
		time.Sleep(50 * 365 * 24 * time.Hour)
		w.byTheWrongClock(t)
	})
	if fired(w.timer) || !w.timer.Stop() || w.batch.Err() != nil {
		t.Error("the timer or the batch was changed")
	}
	if _, err := w.client.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if !strings.Contains(w.s.GetSimnetSnapshot().LongString(), "a→c") {
		t.Error("a partition was healed by the wrong clock")
	}
}

// What is made by the wrong clock is of no use by the right one, and does no harm.
func TestThingsThatWereMadeByTheWrongClock(t *testing.T) {
	s := threeHosts(t, &gosimnet.SimNetConfig{MinHop: time.Microsecond})
	var batch *gosimnet.SimnetBatch
	var host *gosimnet.Host
	synctest.Test(t, func(t *testing.T) {
		batch, host = s.NewSimnetBatch(time.Time{}, true), s.Host("a")
		batch.AlterHost("a", gosimnet.ISOLATE)
	})
	s.SubmitBatch(batch)
	<-batch.Done()
	if err := batch.Err(); err == nil || !strings.Contains(err.Error(), "synctest bubble") {
		t.Errorf("the batch: %v", err)
	}
	if _, err := host.Dial("tcp", "b:80"); err == nil || !strings.Contains(err.Error(), "synctest bubble") {
		t.Errorf("Dial: %v", err)
	}
	wantState(t, s.Host("a"), gosimnet.HEALTHY)
}

func TestEveryCallAfterClose(t *testing.T) {
	inBubbleAndOutside(t, func(t *testing.T) {
		w := newWorld(t, threeHosts(t, &gosimnet.SimNetConfig{MinHop: time.Microsecond}))
		w.s.Close()
		for name, call := range w.calls() {
			err := call()
			switch {
			case err == errNone, strings.HasSuffix(name, "GetSimnetSnapshot"), name == "Simnet.Snapshotter": // which may look
			case name == "SimServer.Close" && err == nil: // ended already
			case !errors.Is(err, net.ErrClosed) && (name != "Host.Resolver" || err == nil):
				t.Errorf("%s after Close: %v", name, err)
			}
		}
		for _, undo := range w.undo {
			undo()
		}
		if hosts := w.s.Hosts(); len(hosts) != 0 {
			t.Errorf("%d hosts after Close", len(hosts))
		}
	})
}

func TestImpossibleConfigs(t *testing.T) {
	nan := math.NaN()
	for field, cfg := range map[string]gosimnet.SimNetConfig{
		"MinHop":          {MinHop: -1},
		"MaxHop":          {MaxHop: -1},
		"MaxHop is 1ns":   {MinHop: 2, MaxHop: 1},
		"MinHop is 25620": {MinHop: math.MaxInt64, MaxHop: math.MaxInt64},
		"MaxHop is 25620": {MaxHop: math.MaxInt64},
		"UserTimeout":     {UserTimeout: -1},
		"SendBuffer":      {SendBuffer: -1},
		"SendBuffer is":   {SendBuffer: math.MaxInt},
		"ReceiveBuffer":   {ReceiveBuffer: -1},
		"ReceiveBuffer i": {ReceiveBuffer: math.MaxInt},
		"Backlog":         {Backlog: -1},
		"Backlog is":      {Backlog: math.MaxInt},
		"Loss":            {Link: gosimnet.LinkConfig{Loss: -0.1}},
		"Loss is":         {Link: gosimnet.LinkConfig{Loss: nan}},
		"Duplicate":       {Link: gosimnet.LinkConfig{Duplicate: 2}},
		"Corrupt":         {Link: gosimnet.LinkConfig{Corrupt: math.Inf(1)}},
		"Reorder":         {Link: gosimnet.LinkConfig{Reorder: -1}},
		"BitsPerSecond":   {Link: gosimnet.LinkConfig{BitsPerSecond: -1}},
		"QueueBytes":      {Link: gosimnet.LinkConfig{QueueBytes: -1}},
		"MTU":             {Link: gosimnet.LinkConfig{MTU: 1}},
		"Ordering":        {Link: gosimnet.LinkConfig{Ordering: 7}},
		"Overflow":        {Link: gosimnet.LinkConfig{Overflow: -1}},
		"Latency":         {Link: gosimnet.LinkConfig{Latency: gosimnet.Constant(0)}},
		"Burst.LossBad":   {Link: gosimnet.LinkConfig{Burst: &gosimnet.GilbertElliott{LossBad: 3}}},
	} {
		s, err := gosimnet.New(&cfg)
		if s != nil || err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v, %v", field, s, err)
		}
		if broken := gosimnet.NewSimNet(&cfg); second(broken.AddHost("a")) == nil {
			t.Errorf("%s: the network lives", field)
		}
	}
	s, err := gosimnet.New(nil)
	noError(t, err)
	s.Close()
}

func TestImpossibleHosts(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		taken := s.Host("a").Addrs()
		for what, err := range map[string]error{
			"an empty name":          second(s.AddHost("")),
			"a name that is taken":   second(s.AddHost("a")),
			"a taken address":        second(s.AddHost("x", taken[0])),
			"a taken v6 address":     second(s.AddHost("x", taken[1])),
			"a mapped taken address": second(s.AddHost("x", netip.AddrFrom16(taken[0].As16()))),
			"one address twice":      second(s.AddHost("x", netip.MustParseAddr("10.1.1.1"), netip.MustParseAddr("10.1.1.1"))),
			"no address":             second(s.AddHost("x", netip.Addr{})),
			"an unspecified address": second(s.AddHost("x", netip.IPv4Unspecified())),
			"a loopback address":     second(s.AddHost("x", netip.MustParseAddr("127.0.0.2"))),
			"a multicast address":    second(s.AddHost("x", netip.MustParseAddr("224.0.0.1"))),
			"a v6 multicast address": second(s.AddHost("x", netip.MustParseAddr("ff02::1"))),
			"an address with a zone": second(s.AddHost("x", netip.MustParseAddr("fe80::1%eth0"))),
		} {
			if err == nil {
				t.Errorf("AddHost of %s succeeded", what)
			}
		}
		if hosts := s.Hosts(); len(hosts) != 3 {
			t.Errorf("%d hosts, want 3", len(hosts))
		}
		for _, name := range []string{""} {
			h := s.Host(name)
			if h == nil || second(h.Dial("tcp", "a:80")) == nil || second(h.Listen("tcp", ":80")) == nil || second(h.ListenPacket("udp", ":80")) == nil {
				t.Errorf("the host %q can be used", name)
			}
			if h.State() != gosimnet.HEALTHY || h.PoweredOff() || h.Name() != name || len(h.Addrs()) != 0 || fired(h.NewTimer(0)) {
				t.Errorf("the host %q is alive", name)
			}
			h.Run(func(context.Context) error { panic("runs") })
		}
	})
}

// badAddress is an attempt to use an address that must fail.
type badAddress struct {
	network, address string
	want             any // an error identity, or a pointer to an error type
}

func (b badAddress) check(t *testing.T, op string, err error) {
	t.Helper()
	var oe *net.OpError
	if !errors.As(err, &oe) || oe.Op != op || oe.Net != b.network {
		t.Errorf("%s(%q, %q): %#v, want an OpError", op, b.network, b.address, err)
		return
	}
	if errno, ok := b.want.(syscall.Errno); ok && !errors.Is(err, errno) {
		t.Errorf("%s(%q, %q): %v, want %v", op, b.network, b.address, err, errno)
	} else if !ok && !errors.As(err, b.want) {
		t.Errorf("%s(%q, %q): %v, want %T", op, b.network, b.address, err, b.want)
	}
	if strings.Contains(err.Error(), "%!") {
		t.Errorf("%s(%q, %q): %v", op, b.network, b.address, err)
	}
}

var (
	anAddrError *net.AddrError
	aDNSError   *net.DNSError
	anUnknown   net.UnknownNetworkError
)

func TestDialsThatCannotBe(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		start := time.Now()
		for _, bad := range []badAddress{
			{"tcp", "b", &anAddrError},
			{"tcp", "b:80:90", &anAddrError},
			{"tcp", "[b:80", &anAddrError},
			{"tcp", "fd00::1:80", &anAddrError},
			{"tcp", "b:-1", &anAddrError},
			{"tcp", "b:65536", &anAddrError},
			{"tcp", "b:99999999999999999999", &anAddrError},
			{"tcp", "b:nonsense", &aDNSError},
			{"tcp", "nobody:80", &aDNSError},
			{"udp", "nobody:80", &aDNSError},
			{"simnet", "nobody", &aDNSError},
			{"simnet", "", &aDNSError},
			{"tcp6", "10.0.0.2:80", &anAddrError},
			{"tcp4", "[fd00::2]:80", &anAddrError},
			{"udp4", "[fd00::2]:80", &anAddrError},
			{"tcp", "224.0.0.1:80", syscall.ENETUNREACH},
			{"tcp", "[ff02::1]:80", syscall.ENETUNREACH},
			{"tcp", "255.255.255.255:80", syscall.ENETUNREACH},
			{"", "b:80", &anUnknown},
			{"tcp5", "b:80", &anUnknown},
			{"unix", "/tmp/x", &anUnknown},
			{"ip", "b", &anUnknown},
		} {
			c, err := s.Host("a").Dial(bad.network, bad.address)
			if c != nil {
				t.Errorf("Dial(%q, %q) gave %v beside %v", bad.network, bad.address, c, err)
			}
			bad.check(t, "dial", err)
		}
		if took := time.Since(start); took > time.Microsecond {
			t.Errorf("the errors took %v", took)
		}
	})
}

func TestListensThatCannotBe(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		b := s.Host("b")
		_, err := b.Listen("tcp", ":80")
		noError(t, err)
		_, err = b.ListenPacket("udp", ":80")
		noError(t, err)
		both := []badAddress{
			{"", "nonsense", &anAddrError}, {"", ":nonsense", &aDNSError}, {"", ":-1", &anAddrError}, {"", ":65536", &anAddrError},
			{"", ":80", syscall.EADDRINUSE}, {"", "10.0.0.2:80", syscall.EADDRINUSE}, {"", "localhost:80", syscall.EADDRINUSE},
			{"", "10.0.0.1:81", syscall.EADDRNOTAVAIL}, {"", "a:81", syscall.EADDRNOTAVAIL}, {"", "192.0.2.1:81", syscall.EADDRNOTAVAIL},
			{"", "nobody:81", &aDNSError},
		}
		for _, bad := range both {
			bad.network = "tcp"
			bad.check(t, "listen", second(b.Listen(bad.network, bad.address)))
			bad.network = "udp"
			bad.check(t, "listen", second(b.ListenPacket(bad.network, bad.address)))
		}
		for _, bad := range []badAddress{
			{"udp", ":81", &anAddrError}, {"", ":81", &anUnknown}, {"tcp7", ":81", &anUnknown}, {"tcp", "224.0.0.1:81", syscall.EADDRNOTAVAIL},
		} {
			bad.check(t, "listen", second(b.Listen(bad.network, bad.address)))
		}
		for _, bad := range []badAddress{{"tcp", ":81", &anAddrError}, {"simnet", "x", &anAddrError}, {"", ":81", &anUnknown}} {
			bad.check(t, "listen", second(b.ListenPacket(bad.network, bad.address)))
		}
	})
}

func TestDialersThatCannotBe(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		_, err := s.Host("b").Listen("tcp", ":80")
		noError(t, err)
		a := s.Host("a")
		if _, err := new(gosimnet.Dialer).Dial("tcp", "b:80"); err == nil || !strings.Contains(err.Error(), "Host.Dialer") {
			t.Errorf("a Dialer of no host: %v", err)
		}
		if _, err := new(gosimnet.Host).Dial("tcp", "b:80"); err == nil || !strings.Contains(err.Error(), "host") {
			t.Errorf("a host of no network: %v", err)
		}
		for _, network := range []string{"tcp", "udp", "simnet"} {
			var none context.Context
			if _, err := a.DialContext(none, network, "b:80"); err == nil || !strings.Contains(err.Error(), "nil context") {
				t.Errorf("a nil context: %v", err)
			}
		}
		for name, local := range map[string]net.Addr{
			"another type":     &net.UDPAddr{Port: 1},
			"a circuit's":      &gosimnet.SimNetAddr{},
			"a foreign one":    &net.TCPAddr{IP: net.IPv4(10, 0, 0, 2)},
			"a port above all": &net.TCPAddr{Port: 65536 + 99},
			"a negative port":  &net.TCPAddr{Port: -1},
			"a short address":  &net.TCPAddr{IP: net.IP{1, 2}},
		} {
			d := a.Dialer()
			d.LocalAddr = local
			if c, err := d.Dial("tcp", "b:80"); err == nil {
				t.Errorf("LocalAddr %s: %v", name, c.LocalAddr())
			}
			if tcp, ok := local.(*net.TCPAddr); ok {
				d.LocalAddr = (*net.UDPAddr)(tcp)
				if c, err := d.Dial("udp", "b:80"); err == nil {
					t.Errorf("LocalAddr %s of a datagram socket: %v", name, c.LocalAddr())
				}
			}
		}
		for name, d := range map[string]*gosimnet.Dialer{
			"Timeout -1":        {Timeout: -1},
			"Timeout least":     {Timeout: math.MinInt64},
			"Deadline past":     {Deadline: time.Unix(0, 0)},
			"Deadline long ago": {Deadline: time.Time{}.Add(1)},
		} {
			own := a.Dialer()
			own.Timeout, own.Deadline = d.Timeout, d.Deadline
			for _, network := range []string{"tcp", "udp", "simnet"} {
				var ne net.Error
				if _, err := own.Dial(network, "b:80"); !errors.As(err, &ne) || !ne.Timeout() {
					t.Errorf("%s, %s: %v", name, network, err)
				}
			}
		}
		forever := a.Dialer()
		forever.Timeout, forever.KeepAlive = math.MaxInt64, math.MaxInt64
		forever.KeepAliveConfig = net.KeepAliveConfig{Enable: true, Idle: math.MaxInt64, Interval: math.MaxInt64, Count: math.MaxInt}
		c, err := forever.Dial("tcp", "b:80")
		noError(t, err)
		noError(t, s.FaultHost("a", drop(1), false))
		time.Sleep(time.Hour)
		noError(t, c.Close())
	})
}

func TestOdditiesOfStreams(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		c, server := openStream(t, s, "a", "b", ":80")
		client := c.(*gosimnet.Conn)
		for name, err := range map[string]error{
			"SetReadBuffer(0)":             client.SetReadBuffer(0),
			"SetReadBuffer(-1)":            client.SetReadBuffer(-1),
			"SetReadBuffer(MaxInt)":        client.SetReadBuffer(math.MaxInt),
			"SetWriteBuffer(0)":            client.SetWriteBuffer(0),
			"SetWriteBuffer(MinInt)":       client.SetWriteBuffer(math.MinInt),
			"SetKeepAlivePeriod(MaxInt64)": client.SetKeepAlivePeriod(math.MaxInt64),
			"SetKeepAliveConfig Idle":      client.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 32768 * time.Second}),
			"SetKeepAliveConfig Count":     client.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Count: 128}),
		} {
			if !errors.Is(err, syscall.EINVAL) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, err := range []error{
			client.SetLinger(math.MinInt), client.SetLinger(math.MaxInt), client.SetLinger(-1), client.SetKeepAlivePeriod(math.MinInt64), client.SetKeepAlivePeriod(32767 * time.Second),
			client.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: -5, Interval: -5, Count: -5}),
			client.SetDeadline(time.Unix(math.MaxInt64, 0)), client.SetDeadline(time.Unix(math.MinInt64, 0)), client.SetDeadline(time.Time{}),
		} {
			if err != nil {
				t.Error(err)
			}
		}
		if n, err := client.ReadFrom(strings.NewReader("hello")); n != 5 || err != nil {
			t.Errorf("ReadFrom: %d, %v", n, err)
		}
		noError(t, client.CloseWrite())
		var got bytes.Buffer
		if n, err := server.(*gosimnet.Conn).WriteTo(&got); n != 5 || err != nil || got.String() != "hello" {
			t.Errorf("WriteTo: %d, %v, %q", n, err, got.String())
		}
	})
}

func TestOdditiesOfDatagrams(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		p, err := s.Host("a").ListenPacket("udp", ":53")
		noError(t, err)
		c := p.(*gosimnet.PacketConn)
		for name, err := range map[string]error{
			"WriteTo(nil)":             second(c.WriteTo([]byte("x"), nil)),
			"WriteTo(nil *UDPAddr)":    second(c.WriteTo([]byte("x"), (*net.UDPAddr)(nil))),
			"WriteTo(*TCPAddr)":        second(c.WriteTo([]byte("x"), &net.TCPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 1})),
			"WriteToUDP(nil)":          second(c.WriteToUDP([]byte("x"), nil)),
			"WriteToUDPAddrPort(zero)": second(c.WriteToUDPAddrPort([]byte("x"), netip.AddrPort{})),
			"WriteMsgUDP(nil)":         third(c.WriteMsgUDP([]byte("x"), nil, nil)),
			"WriteMsgUDPAddrPort(0)":   third(c.WriteMsgUDPAddrPort([]byte("x"), nil, netip.AddrPort{})),
			"Write":                    second(c.Write([]byte("x"))),
			"port 0":                   second(c.WriteTo([]byte("x"), &net.UDPAddr{IP: net.IPv4(10, 0, 0, 2)})),
			"a short address":          second(c.WriteTo([]byte("x"), &net.UDPAddr{IP: net.IP{1, 2, 3}, Port: 1})),
			"too large":                second(c.WriteTo(make([]byte, 65508), &net.UDPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 1})),
			"SetReadBuffer(0)":         c.SetReadBuffer(0),
			"SetReadBuffer(MaxInt)":    c.SetReadBuffer(math.MaxInt),
			"JoinGroup(nil)":           c.JoinGroup(nil, nil),
			"LeaveGroup of none":       c.LeaveGroup(nil, &net.UDPAddr{IP: net.IPv4(224, 0, 1, 1)}),
		} {
			if err == nil {
				t.Errorf("%s succeeded", name)
			}
		}
		for _, to := range []string{"192.0.2.1", "10.0.0.2", "fd00::2", "0.0.0.0", "::"} { // nobody, nobody listening, and the host itself
			if _, err := c.WriteTo([]byte("x"), &net.UDPAddr{IP: net.ParseIP(to), Port: 9}); err != nil {
				t.Errorf("WriteTo %s: %v", to, err)
			}
		}
		noError(t, c.SetWriteBuffer(1))
		c.SetReadDeadline(time.Now().Add(time.Second))
		if n, from, err := c.ReadFrom(nil); n != 0 || from != nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("ReadFrom: %d, %v, %v", n, from, err)
		}
	})
}

func TestZeroValues(t *testing.T) {
	inBubbleAndOutside(t, func(t *testing.T) {
		for _, q := range []*gosimnet.MopQueue{nil, {}} {
			if q.Len() != 0 {
				t.Error("an empty queue has something")
			}
			for m := range q.All() {
				t.Errorf("an empty queue has %v", m)
			}
		}
		s := threeHosts(t, nil)
		s.SubmitBatch(nil)
		for _, unmade := range []*gosimnet.SimnetBatch{{}, new(gosimnet.Simnet).NewSimnetBatch(time.Time{}, true)} {
			unmade.AlterHost("a", gosimnet.ISOLATE)
			unmade.FaultCircuit("a", "b", drop(1), true)
			unmade.FaultHost("a", drop(1), true)
			unmade.RepairCircuit("a", true, true, true)
			unmade.RepairHost("a", true, true, true, true)
			unmade.AllHealthy(true, true)
			unmade.AlterCircuit("a", gosimnet.ISOLATE, true)
			unmade.GetSimnetSnapshot()
			if unmade.Err() != nil || unmade.Snapshot() != nil {
				t.Errorf("a batch that was not submitted: %v", unmade.Err())
			}
			s.SubmitBatch(unmade)
			<-unmade.Done()
			if unmade.Err() == nil {
				t.Error("a batch of no network was applied")
			}
		}
		var zero gosimnet.Simnet
		for name, err := range map[string]error{
			"AddHost": second(zero.AddHost("a")), "FaultHost": zero.FaultHost("a", drop(1), false), "Dial": second(zero.Host("a").Dial("tcp", "b:80")),
			"Snapshot": zero.GetSimnetSnapshot().GetSimnetStatusErr, "NewSimClient": second(zero.NewSimClient("a")),
		} {
			if err == nil {
				t.Errorf("%s of a network that New has not made succeeded", name)
			}
		}
		zero.Close()
		if zero.TraceHash() != "" || zero.Hosts() != nil {
			t.Error("a network that New has not made has a trace or hosts")
		}
		if new(gosimnet.SimTimer).Stop() || new(gosimnet.SimTimer).Reset(1) {
			t.Error("a timer that was not made is armed")
		}
		for _, text := range []string{
			(&gosimnet.SimnetSnapshot{}).String(), (&gosimnet.SimnetSnapshot{}).LongString(), (&gosimnet.SimnetPeerStatus{}).String(),
			(&gosimnet.SimnetConnSummary{}).String(), gosimnet.Event{}.String(), gosimnet.Mop{}.String(), gosimnet.LinkConfig{}.String(),
			gosimnet.LinkStats{}.String(), gosimnet.Weather{}.String(), gosimnet.View{}.String(),
			gosimnet.Faultstate(9).String(), gosimnet.Alteration(-3).String(), gosimnet.PartitionMode(7).String(),
		} {
			if text == "" || strings.Contains(text, "%!") {
				t.Errorf("a zero value says %q", text)
			}
		}
	})
}

func TestNilFunctions(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		s.AddRule(nil)()
		s.Classify(nil)
		s.Host("a").Run(nil)
		openStream(t, s, "a", "b", ":80")
	})
}

// The tests print nothing, so that what another process of them prints besides the verdict is the library's.
func TestNothingIsPrinted(t *testing.T) {
	if testing.CoverMode() != "" {
		t.Skip("coverage is printed")
	}
	if raced {
		t.Skip("the race detector makes these tests, which run once more, slow, and the library prints no less without it")
	}
	tests := []string{
		"TestChaosInABubble", "TestCallsOfOneInstantGiveOneRun", "TestEveryCall", "TestDialsThatCannotBe", "TestOddities", "TestZeroValues",
		"TestImpossible", "TestSnapshot", "TestBasics", "TestPower", "TestSoftware",
	}
	cmd := exec.Command(os.Args[0], "-test.run=^("+strings.Join(tests, "|")+")", "-test.v=false")
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SIMNET_") }), "SIMNET_TEST_SEEDS=2")
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "PASS\n" {
		t.Errorf("%v, and this was printed:\n%s", err, out)
	}
}
