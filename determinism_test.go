package gosimnet_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

// fromEnv is a number from the environment, to make a test longer than it is by default.
func fromEnv(name string, def int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return def
}

// software is what every host of a workload runs: it talks to all its peers until its context ends.
type software func(ctx context.Context, h *gosimnet.Host, peers []string) error

// traffic is a workload: software for every host of a group, in which all talk to all.
type traffic struct {
	seed    uint64
	soft    software
	groups  [][]string // hosts of different groups never meet
	last    time.Duration
	nemesis []func(s *gosimnet.Simnet, hosts []string)
	config  func(cfg *gosimnet.SimNetConfig)
	beside  func(s *gosimnet.Simnet, stop <-chan struct{}) // runs beside it
}

// outcome is what a run looked like.
type outcome struct {
	hash   string
	events []gosimnet.Event
}

// look takes the hash and the events of a network.
func (o *outcome) look(s *gosimnet.Simnet) {
	o.hash = s.TraceHash()
	for e := range s.Trace() {
		o.events = append(o.events, e)
	}
}

func hostNames(prefix string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%s%02d", prefix, i))
	}
	return all
}

// run plays a workload in a bubble. With events it retains every event.
func (w traffic) run(t *testing.T, events bool) (out outcome) {
	t.Helper()
	cfg := &gosimnet.SimNetConfig{
		Seed: w.seed, MinHop: time.Millisecond, MaxHop: 20 * time.Millisecond,
		Link: gosimnet.LinkConfig{Loss: 0.05}, TraceLimit: -1,
	}
	if events {
		cfg.TraceLimit = 10_000_000
	}
	if w.config != nil {
		w.config(cfg)
	}
	synctest.Test(t, func(t *testing.T) {
		s := newNet(t, cfg)
		for _, group := range w.groups {
			for _, name := range group {
				s.Host(name)
			}
		}
		for _, group := range w.groups {
			for _, name := range group {
				h := s.Host(name)
				peers := slices.DeleteFunc(slices.Clone(group), func(p string) bool { return p == name })
				h.Run(func(ctx context.Context) error { return w.soft(ctx, h, peers) })
			}
		}
		stop := make(chan struct{})
		for _, n := range w.nemesis {
			go n(s, w.groups[0])
		}
		if w.beside != nil {
			go w.beside(s, stop)
		}
		time.Sleep(w.last)
		out.look(s)
		close(stop)
		s.Close()
		time.Sleep(time.Second) // for the sleepers among the software
	})
	return out
}

// pause waits for d, or for the end of the context.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// echoStreams serves echo, and talks to every peer over a stream, which it dials again whenever it breaks.
func echoStreams(network, address string) software {
	return func(ctx context.Context, h *gosimnet.Host, peers []string) error {
		where := ":7000"
		if address == "" {
			where = ""
		}
		l, err := h.Listen(network, where)
		if err != nil {
			return err
		}
		var all sync.WaitGroup
		all.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				all.Go(func() {
					defer c.Close()
					io.Copy(c, c)
				})
			}
		})
		for i, peer := range peers {
			all.Go(func() {
				for ctx.Err() == nil {
					talk(ctx, h, network, peer+address, i)
					pause(ctx, 30*time.Millisecond)
				}
			})
		}
		<-ctx.Done()
		all.Wait()
		return nil
	}
}

// talk has a conversation over one connection until it fails.
func talk(ctx context.Context, h *gosimnet.Host, network, address string, i int) {
	d := h.Dialer()
	d.Timeout = 700 * time.Millisecond
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return
	}
	defer c.Close()
	b := make([]byte, 2000)
	for n := 0; ; n++ {
		b := b[:1+(i*331+n*577)%len(b)]
		c.SetDeadline(time.Now().Add(500 * time.Millisecond))
		if _, err := c.Write(b); err != nil {
			return
		}
		if _, err := io.ReadFull(c, b); err != nil {
			return
		}
		if pause(ctx, 50*time.Millisecond) != nil {
			return
		}
	}
}

// echoToAll answers datagrams, and sends them to every peer.
func echoToAll(ctx context.Context, h *gosimnet.Host, peers []string) error {
	c, err := h.ListenPacket("udp", ":7000")
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	all.Go(func() {
		b := make([]byte, 2000)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			if ttl := binary.BigEndian.Uint16(b); ttl > 0 {
				binary.BigEndian.PutUint16(b, ttl-1)
				c.WriteTo(b[:n], from)
			}
		}
	})
	for i, peer := range peers {
		all.Go(func() {
			d, err := h.Dial("udp", peer+":7000") // a socket of its own, beside the one that listens
			if err != nil {
				return
			}
			defer d.Close()
			b := make([]byte, 2000)
			for n := 0; ctx.Err() == nil; n++ {
				b := b[:2+(i*331+n*577)%(len(b)-2)]
				binary.BigEndian.PutUint16(b, 1)
				d.SetDeadline(time.Now().Add(80 * time.Millisecond))
				d.Write(b)
				d.Read(b)
				pause(ctx, 40*time.Millisecond)
			}
		})
	}
	<-ctx.Done()
	all.Wait()
	return nil
}

// powerCuts switches hosts off and on again.
func powerCuts(s *gosimnet.Simnet, hosts []string) {
	for i := 0; ; i++ {
		time.Sleep(150*time.Millisecond + 137)
		victim := hosts[i*7%len(hosts)]
		if _, err := s.AlterHost(victim, gosimnet.SHUTDOWN); err != nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
		if _, err := s.AlterHost(victim, gosimnet.POWERON); err != nil {
			return
		}
	}
}

// workloads are the all-to-all workloads of 20 hosts.
func workloads(seed uint64) map[string]traffic {
	base := traffic{seed: seed, groups: [][]string{hostNames("h", 20)}, last: time.Second, nemesis: []func(*gosimnet.Simnet, []string){powerCuts}}
	all := make(map[string]traffic)
	for name, soft := range map[string]software{
		"streams":   echoStreams("tcp", ":7000"),
		"circuits":  echoStreams("simnet", ""),
		"datagrams": echoToAll,
	} {
		w := base
		w.soft = soft
		all[name] = w
	}
	return all
}

// difference says where two runs part.
func difference(a, b []gosimnet.Event) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			context := ""
			for j := max(0, i-5); j < i; j++ {
				context += fmt.Sprintf("  both  %v\n", a[j])
			}
			for j := i; j < min(i+5, len(a), len(b)); j++ {
				context += fmt.Sprintf("  one   %v\n  other %v\n", a[j], b[j])
			}
			return fmt.Sprintf("the runs part at event %d of %d and %d:\n%s", i, len(a), len(b), context)
		}
	}
	return fmt.Sprintf("one run has %d events, the other %d", len(a), len(b))
}

// repeats compares several runs of a workload at each number of processors.
func (w traffic) repeats(t *testing.T, least int) {
	t.Helper()
	runs := fromEnv("SIMNET_TEST_RUNS", 1)
	first := w.run(t, true)
	if len(first.events) < least {
		t.Fatalf("only %d events happened", len(first.events))
	}
	for _, procs := range []int{1, 2, 4, 8} {
		for range runs {
			if again := w.runAt(t, procs); again.hash != first.hash {
				t.Fatalf("at GOMAXPROCS %d: %s", procs, difference(first.events, again.events))
			}
		}
	}
}

// runAt plays a workload on so many processors.
func (w traffic) runAt(t *testing.T, procs int) outcome {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	return w.run(t, true)
}

func TestSameSeedSameRun(t *testing.T) {
	for name, w := range workloads(1) {
		t.Run(name, func(t *testing.T) { w.repeats(t, 10_000) })
	}
}

// onTheTick is software all of whose calls are made at round instants, where the nemeses act, too.
func onTheTick(network, address string) software {
	return func(ctx context.Context, h *gosimnet.Host, peers []string) error {
		l, err := h.Listen(network, address)
		if err != nil {
			return err
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go everyTick(ctx, func() error {
					b := make([]byte, 2000)
					c.SetReadDeadline(time.Now().Add(time.Millisecond))
					_, err := c.Read(b)
					return err
				})
			}
		}()
		for i, peer := range peers {
			to := peer + address
			go func() {
				c, err := h.Dial(network, to)
				if err != nil {
					return
				}
				b := make([]byte, 900+i)
				everyTick(ctx, func() error {
					_, err := c.Write(b)
					return err
				})
			}()
		}
		<-ctx.Done()
		return nil
	}
}

// everyTick calls f at every round millisecond, until it fails with something other than a deadline.
func everyTick(ctx context.Context, f func() error) {
	for ctx.Err() == nil {
		time.Sleep(time.Until(time.Now().Truncate(time.Millisecond).Add(time.Millisecond)))
		if err := f(); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
	}
}

func cardFaults(s *gosimnet.Simnet, hosts []string) {
	for i := 0; ; i++ {
		dd := gosimnet.DropDeafSpec{UpdateDropSends: true, DropSendsNewProb: float64(i%3) / 2, UpdateDeafReads: true, DeafReadsNewProb: float64(i%2) / 3}
		if s.FaultHost(hosts[0], dd, i%2 == 0) != nil {
			return
		}
		time.Sleep(7 * time.Millisecond)
	}
}

func partitions(s *gosimnet.Simnet, hosts []string) {
	for i := 0; ; i++ {
		heal, err := s.Partition(gosimnet.PartitionMode(i%2), hosts[1:3], hosts[3:5])
		if err != nil {
			return
		}
		time.Sleep(11 * time.Millisecond)
		heal()
		time.Sleep(2 * time.Millisecond)
	}
}

func links(s *gosimnet.Simnet, hosts []string) {
	for i := 0; ; i++ {
		cfg := gosimnet.LinkConfig{Loss: float64(i%4) / 10, Latency: gosimnet.Constant(time.Duration(1+i%5) * time.Millisecond)}
		if s.SetLink(hosts[5], "", cfg) != nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func isolation(s *gosimnet.Simnet, hosts []string) {
	for i := 0; ; i++ {
		alter := gosimnet.ISOLATE
		if i%2 == 1 {
			alter = gosimnet.UNISOLATE
		}
		if _, err := s.AlterHost(hosts[6], alter); err != nil {
			return
		}
		time.Sleep(9 * time.Millisecond)
	}
}

func TestCallsOfOneInstantGiveOneRun(t *testing.T) {
	for _, network := range []string{"tcp", "simnet"} {
		t.Run(network, func(t *testing.T) {
			address := ":7000"
			if network == "simnet" {
				address = ""
			}
			w := traffic{
				seed: 1, soft: onTheTick(network, address), groups: [][]string{hostNames("h", 8)}, last: 300 * time.Millisecond,
				nemesis: []func(*gosimnet.Simnet, []string){cardFaults, partitions, links, isolation},
				config: func(cfg *gosimnet.SimNetConfig) {
					cfg.Link.Loss, cfg.MinHop, cfg.MaxHop = 0, 3*time.Millisecond, 3*time.Millisecond
					cfg.SendBuffer, cfg.ReceiveBuffer = 4096, 4096
				},
			}
			w.repeats(t, 5000)
		})
	}
}

// What a host's software does at the very instant of a power cut comes to the same, whoever is first; but calls that come after it fail.
func TestAPowerCutAndCallsOfItsInstantGiveOneRun(t *testing.T) {
	run := func(cut func(s *gosimnet.Simnet, calls func(want error))) (hash string) {
		bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
			a := s.Host("a")
			stream, _ := openStream(t, s, "a", "b", ":80")
			circuit, _ := openCircuit(t, s, "a", "b")
			socket, err := a.Dial("udp", "b:53")
			noError(t, err)
			dialed := make(chan error, 1)
			cut(s, func(want error) {
				for _, c := range []net.Conn{stream, circuit, socket} {
					if _, err := c.Write([]byte("x")); !errors.Is(err, want) {
						t.Errorf("at the instant Write returned %v, want %v", err, want)
					}
				}
				go func() {
					_, err := a.Dial("tcp", "b:80")
					dialed <- err
				}()
				synctest.Wait()
			})
			if err := <-dialed; !errors.Is(err, syscall.ENETDOWN) {
				t.Errorf("the dial returned %v, want ENETDOWN", err)
			}
			for _, c := range []net.Conn{stream, circuit, socket} {
				if _, err := c.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
					t.Errorf("after the instant Write returned %v, want net.ErrClosed", err)
				}
			}
			time.Sleep(time.Second)
			hash = s.TraceHash()
		})
		return hash
	}
	one := run(func(s *gosimnet.Simnet, calls func(error)) {
		calls(nil)
		alter(t, s, "a", gosimnet.SHUTDOWN, gosimnet.POWERON)
	})
	other := run(func(s *gosimnet.Simnet, calls func(error)) {
		alter(t, s, "a", gosimnet.SHUTDOWN, gosimnet.POWERON)
		calls(net.ErrClosed)
	})
	if one != other {
		t.Error("the order of calls at one instant makes a difference")
	}
}

// Faults of different things at one instant come to the same, whoever is first.
func TestFaultsOfOneInstantGiveOneRun(t *testing.T) {
	faults := []func(s *gosimnet.Simnet) error{
		func(s *gosimnet.Simnet) error { return second(s.CutLink(gosimnet.DropPackets, "a", "b")) },
		func(s *gosimnet.Simnet) error { return second(s.CutLink(gosimnet.HoldPackets, "a", "")) },
		func(s *gosimnet.Simnet) error {
			return second(s.Partition(gosimnet.HoldPackets, []string{"a"}, []string{"c"}))
		},
		func(s *gosimnet.Simnet) error { return second(s.Clog("b", "", time.Second)) },
		func(s *gosimnet.Simnet) error { return second(s.Clog("", "a", time.Second)) },
		func(s *gosimnet.Simnet) error { return second(s.AlterHost("b", gosimnet.ISOLATE)) },
		func(s *gosimnet.Simnet) error { return second(s.AlterHost("b", gosimnet.SHUTDOWN)) },
		func(s *gosimnet.Simnet) error { return s.FaultHost("b", drop(0.5), false) },
		func(s *gosimnet.Simnet) error { return s.SetLink("b", "c", gosimnet.LinkConfig{Loss: 0.1}) },
		func(s *gosimnet.Simnet) error { return second(s.ClearLink("b", "c")) },
		func(s *gosimnet.Simnet) error { return s.Host("b").SetView("c", gosimnet.NXDomain()) },
	}
	run := func(order []func(s *gosimnet.Simnet) error) (hash string) {
		bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
			for _, pair := range []string{"ab", "ac", "ba", "bc", "ca", "cb"} {
				c, _ := openStream(t, s, pair[:1], pair[1:], ":80")
				say(t, c, "x")
			}
			for _, f := range order {
				noError(t, f(s))
			}
			time.Sleep(10 * time.Second)
			hash = s.TraceHash()
		})
		return hash
	}
	one := run(faults)
	slices.Reverse(faults)
	if one != run(faults) {
		t.Error("the order of faults at one instant makes a difference")
	}
}

func TestAnotherSeedAnotherRun(t *testing.T) {
	for name, one := range workloads(1) {
		other := workloads(2)[name]
		one.last, other.last = 200*time.Millisecond, 200*time.Millisecond
		if one.run(t, false).hash == other.run(t, false).hash {
			t.Errorf("%s: two seeds gave the same run", name)
		}
	}
}

// waitEverywhere calls synctest.Wait at every millisecond and at nanoseconds around it, where the network works, too, and looks at it.
func waitEverywhere(t *testing.T) func(s *gosimnet.Simnet, stop <-chan struct{}) {
	return func(s *gosimnet.Simnet, stop <-chan struct{}) {
		var last *gosimnet.SimnetSnapshot
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			for range 5 {
				time.Sleep(time.Nanosecond)
				synctest.Wait()
			}
			snap := s.GetSimnetSnapshot()
			synctest.Wait()
			if again := s.GetSimnetSnapshot(); n%50 == 0 && again.LongString() != snap.LongString() {
				t.Errorf("something went on after everybody had come to rest:\n%v\n%v", snap.LongString(), again.LongString())
			}
			if last != nil && (snap.Loopi < last.Loopi || snap.Xcountsn < last.Xcountsn || !snap.Asof.After(last.Asof)) {
				t.Errorf("time ran backwards between %v and %v", last.Asof, snap.Asof)
			}
			last = snap
			time.Sleep(time.Until(time.Now().Truncate(time.Millisecond).Add(time.Millisecond - 3)))
		}
	}
}

func TestWaitingAndLookingChangesNothing(t *testing.T) {
	for name, w := range workloads(4) {
		t.Run(name, func(t *testing.T) {
			w.groups, w.last = [][]string{hostNames("h", 8)}, 300*time.Millisecond
			undisturbed := w.run(t, true)
			w.beside = waitEverywhere(t)
			if watched := w.run(t, true); watched.hash != undisturbed.hash {
				t.Errorf("watching changed the run: %s", difference(undisturbed.events, watched.events))
			}
		})
	}
}

func TestRandomOperationsRepeat(t *testing.T) {
	for seed := range uint64(fromEnv("SIMNET_TEST_SEEDS", 2)) {
		if seed%5 == 4 { // with BarrierOff
			continue
		}
		first := lifeOf(t, seed)
		for range fromEnv("SIMNET_TEST_RUNS", 1) {
			if again := lifeOf(t, seed); again.hash != first.hash {
				t.Fatalf("seed %d: %s", seed, difference(first.events, again.events))
			}
		}
	}
}

// lifeOf lets many goroutines do random things to a network, and closes it in the middle.
func lifeOf(t *testing.T, seed uint64) (out outcome) {
	synctest.Test(t, func(t *testing.T) {
		a := startChaos(t, seed, 40*time.Millisecond, 1_000_000)
		all := a.rage(seed, 50, 100)
		time.Sleep(2 * time.Second)
		out.look(a.net)
		a.net.Close()
		all.Wait()
		time.Sleep(time.Minute)
	})
	return out
}

// fate is what became of one packet or connection.
type fate struct {
	kind  string
	n     uint64
	size  int
	cause string
}

type flowName struct {
	from, to, network string
	src, dst          uint16
}

// fates lists what happened to each flow between hosts of a group. Which of two sockets that are opened at one instant gets which free
// port is not fixed, so that flows are told apart by the ports that were asked for.
func (o outcome) fates(group []string) map[flowName][]string {
	each := make(map[flowName][]fate)
	for _, e := range o.events {
		if slices.Contains(group, e.From) && slices.Contains(group, e.To) {
			f := flowName{e.From, e.To, e.Network, e.Src.Port(), e.Dst.Port()}
			each[f] = append(each[f], fate{e.Kind, e.N, e.Size, e.Cause})
		}
	}
	all := make(map[flowName][]string)
	for f, fates := range each {
		if f.src >= 49152 {
			f.src = 0
		}
		if f.dst >= 49152 {
			f.dst = 0
		}
		all[f] = append(all[f], fmt.Sprint(fates))
	}
	for _, flows := range all {
		slices.Sort(flows)
	}
	return all
}

func TestUnrelatedHostsChangeNoFate(t *testing.T) {
	for name, w := range workloads(3) {
		t.Run(name, func(t *testing.T) {
			alone := w.run(t, true).fates(w.groups[0])
			w.groups = append(slices.Clone(w.groups), []string{"a stranger", "z stranger"})
			beside := w.run(t, true).fates(w.groups[0])
			if len(alone) < 20*19 || len(alone) != len(beside) {
				t.Fatalf("%d pairs of ends alone, %d beside strangers", len(alone), len(beside))
			}
			for f, a := range alone {
				if b := beside[f]; !slices.Equal(a, b) {
					t.Fatalf("%v:\nalone          %v\nwith strangers %v", f, a, b)
				}
			}
		})
	}
}

// Segments are cut for the link as it is at the end of the instant, whoever is first, the writer or whoever changes the link.
func TestAWriteAndANewLinkOfOneInstantGiveOneRun(t *testing.T) {
	changes := map[string]func(s *gosimnet.Simnet) error{
		"a rate":        func(s *gosimnet.Simnet) error { return s.SetLink("a", "b", megabyte) },
		"an uplink":     func(s *gosimnet.Simnet) error { return s.SetUplink("a", megabyte) },
		"a smaller MTU": func(s *gosimnet.Simnet) error { return s.SetLink("", "", gosimnet.LinkConfig{Loss: 0.1, MTU: 500}) },
		"a rule": func(s *gosimnet.Simnet) error {
			s.AddRule(func(*gosimnet.Packet) gosimnet.Verdict { return gosimnet.Pass() })
			return nil
		},
		"a lost packet": func(s *gosimnet.Simnet) error { return second(s.ClearLink("a", "c")) },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			run := func(writeFirst bool) (hash string) {
				bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
					var all []net.Conn
					for i, host := range []string{"b", "c", "b", "c"} {
						c, _ := openStream(t, s, "a", host, fmt.Sprint(":", 80+i))
						say(t, c, "x")
						all = append(all, c)
					}
					time.Sleep(time.Millisecond)
					if !writeFirst {
						noError(t, change(s))
					}
					for _, c := range all {
						say(t, c, string(make([]byte, 5000)))
						noError(t, c.(*gosimnet.Conn).CloseWrite())
					}
					if writeFirst {
						noError(t, change(s))
					}
					time.Sleep(10 * time.Second)
					hash = s.TraceHash()
				})
				return hash
			}
			if run(true) != run(false) {
				t.Error("the order of calls at one instant makes a difference")
			}
		})
	}
}

// What the receiver has told before its end still comes back to the sender, unless the way back is cut, and whatever else happens.
func TestAnswersUnderWayDoNotDependOnWhoIsFirst(t *testing.T) {
	abort := func(s *gosimnet.Simnet, server *gosimnet.Conn) error {
		return errors.Join(server.SetLinger(0), server.Close())
	}
	unplug := func(s *gosimnet.Simnet, _ *gosimnet.Conn) error {
		return second(s.AlterHost("b", gosimnet.SHUTDOWN))
	}
	isolate := func(s *gosimnet.Simnet, _ *gosimnet.Conn) error {
		return second(s.AlterHost("b", gosimnet.ISOLATE))
	}
	other := func(s *gosimnet.Simnet, _ *gosimnet.Conn) error {
		return s.SetLink("a", "c", gosimnet.LinkConfig{Loss: 0.1})
	}
	cut := func(s *gosimnet.Simnet, _ *gosimnet.Conn) error {
		return second(s.CutLink(gosimnet.DropPackets, "c", "b"))
	}
	type call = func(s *gosimnet.Simnet, server *gosimnet.Conn) error
	for name, c := range map[string]struct{ before, one, other call }{
		"a reset":                       {other, abort, other},
		"a power cut, and then a fault": {unplug, isolate, cut},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(calls ...call) (hash string) {
				synctest.Test(t, func(t *testing.T) {
					s := threeHosts(t, &gosimnet.SimNetConfig{ReceiveBuffer: 1000})
					client, accepted := openStream(t, s, "a", "b", ":80")
					server := accepted.(*gosimnet.Conn)
					say(t, client, string(make([]byte, 3000)))
					time.Sleep(time.Second)
					_, err := io.ReadFull(server, make([]byte, 1000))
					noError(t, err)
					for _, f := range calls {
						noError(t, f(s, server))
					}
					time.Sleep(10 * time.Second)
					hash = s.TraceHash()
				})
				return hash
			}
			later := func(s *gosimnet.Simnet, server *gosimnet.Conn) error {
				time.Sleep(time.Millisecond)
				return c.before(s, server)
			}
			rest := func(s *gosimnet.Simnet, _ *gosimnet.Conn) error {
				time.Sleep(time.Millisecond)
				return nil
			}
			if run(later, rest, c.one, c.other) != run(later, rest, c.other, c.one) {
				t.Error("the order of calls at one instant makes a difference")
			}
		})
	}
}
