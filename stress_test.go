package gosimnet_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"runtime"
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

// watchdog ends the process with the stacks of all goroutines if the test takes too long by the wall's clock. It must be called outside of a bubble.
func watchdog(t *testing.T, limit time.Duration) {
	bark := time.AfterFunc(limit, func() {
		stacks := make([]byte, 64<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		panic(fmt.Sprintf("%s hangs\n%s", t.Name(), stacks))
	})
	t.Cleanup(func() { bark.Stop() })
}

// pattern fills b with what belongs at an offset of a stream, so that a byte that is lost, doubled or moved is found out.
func pattern(b []byte, id uint64, offset int64) {
	for i := range b {
		at := uint64(offset) + uint64(i)
		word := (id+at/8+1)*0x9e3779b97f4a7c15 ^ id
		b[i] = byte((word ^ word>>29) >> (8 * (at % 8)))
	}
}

// try is a lock that nobody waits for.
type try chan struct{}

func (l try) lock() bool {
	select {
	case l <- struct{}{}:
		return true
	default:
		return false
	}
}

func (l try) unlock() { <-l }

// direction is one direction of a stream, as its users see it.
type direction struct {
	id       uint64
	accepted int64 // by Write
	received int64 // by Read
	ended    bool  // the reader has seen io.EOF
}

// end is one end of a stream.
type end struct {
	conn          *gosimnet.Conn
	out, in       *direction
	writes, reads try
	failed        atomic.Bool // an error other than a deadline's has been reported here
	shut          atomic.Bool // Close or CloseRead was called here
}

func newEnd(c net.Conn, out, in *direction) *end {
	return &end{conn: c.(*gosimnet.Conn), out: out, in: in, writes: make(try, 1), reads: make(try, 1)}
}

// bothWays is both directions of a stream.
type bothWays struct{ up, down *direction }

// chaos is many goroutines doing random things to one network.
type chaos struct {
	t     *testing.T
	net   *gosimnet.Simnet
	names []string
	addrs []netip.Addr
	pace  time.Duration // how long they rest at most

	mortal bool // the network will be closed in the middle

	mu       sync.Mutex // for memory moves
	pairs    map[uint64]bothWays
	ends     []*end
	circuits []net.Conn
	sockets  map[string]net.PacketConn
	undo     []func()
	timers   []*gosimnet.SimTimer
	lastID   uint64
}

// actor is one of the goroutines.
type actor struct {
	*chaos
	*rand.Rand
}

// expected are the ends that a call may come to.
var expected = []error{
	io.EOF, net.ErrClosed, os.ErrDeadlineExceeded, context.DeadlineExceeded, context.Canceled,
	syscall.ECONNRESET, syscall.EPIPE, syscall.ETIMEDOUT, syscall.ECONNREFUSED, syscall.EADDRINUSE, syscall.ENETDOWN, syscall.ENOTCONN,
	syscall.EADDRNOTAVAIL,
}

// check reports an error that no call may come to.
func (a *chaos) check(call string, err error) {
	if err != nil && !slices.ContainsFunc(expected, func(e error) bool { return errors.Is(err, e) }) {
		a.t.Errorf("%s: unexpected %T: %v", call, err, err)
	}
}

// note notes an error at an end of a stream.
func (e *end) note(err error) {
	own := errors.Is(err, net.ErrClosed) && e.shut.Load()
	if err != nil && err != io.EOF && !own && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, syscall.EPIPE) {
		e.failed.Store(true)
	}
}

// oneOf picks one of what the goroutines share, or the zero value.
func oneOf[T any](a actor, all *[]T) (x T) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(*all) > 0 {
		x = (*all)[a.IntN(len(*all))]
	}
	return x
}

// share lets all use something. The oldest of many is forgotten.
func share[T any](a *chaos, all *[]T, x T) {
	a.mu.Lock()
	defer a.mu.Unlock()
	*all = append(*all, x)
}

// add lets all use an end of a stream. They are in the order of the streams, since several may be accepted at one instant.
func (a *chaos) add(e *end) {
	i, _ := slices.BinarySearchFunc(a.ends, e, func(x, y *end) int { return cmp.Compare(x.out.id, y.out.id) })
	a.ends = slices.Insert(a.ends, i, e)
}

// take takes all of what is shared.
func (a *chaos) take(all *[]func()) []func() {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := *all
	*all = nil
	return taken
}

func (a actor) host() *gosimnet.Host { return a.net.Host(a.name()) }

func (a actor) name() string { return a.names[a.IntN(len(a.names))] }

// maybe is a name, or "" for any.
func (a actor) maybe() string {
	if a.IntN(4) == 0 {
		return ""
	}
	return a.name()
}

func (a actor) upTo(d time.Duration) time.Duration { return time.Duration(a.Int64N(int64(d))) }

func (a actor) coin() bool { return a.IntN(2) == 0 }

func (a actor) soon() time.Time { return time.Now().Add(a.upTo(4 * a.pace)) }

// software is what a host runs: it accepts streams, circuits and datagrams until its power goes.
func (a *chaos) software(ctx context.Context, h *gosimnet.Host) error {
	streams, err := h.Listen("tcp", ":80")
	if err != nil {
		return err
	}
	circuits, err := h.Listen("simnet", "")
	if err != nil {
		return err
	}
	socket, err := h.ListenPacket("udp", ":53")
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.sockets[h.Name()] = socket
	a.mu.Unlock()
	var all sync.WaitGroup
	all.Go(func() {
		for c, err := streams.Accept(); err == nil; c, err = streams.Accept() {
			all.Go(func() { a.greeted(c) })
		}
	})
	all.Go(func() {
		for c, err := circuits.Accept(); err == nil; c, err = circuits.Accept() {
			share(a, &a.circuits, c)
		}
	})
	<-ctx.Done()
	all.Wait()
	return nil
}

// greeted finds out which stream it is that was accepted.
func (a *chaos) greeted(c net.Conn) {
	var id [8]byte
	c.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := io.ReadFull(c, id[:]); err != nil {
		c.Close()
		return
	}
	c.SetReadDeadline(time.Time{})
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.pairs[binary.BigEndian.Uint64(id[:])]
	a.add(newEnd(c, p.down, p.up))
}

func (a actor) dial() {
	ctx, cancel := context.WithTimeout(context.Background(), a.upTo(10*a.pace))
	defer cancel()
	c, err := a.host().DialContext(ctx, "tcp", a.name()+":80")
	if err != nil {
		a.check("dial", err)
		return
	}
	a.mu.Lock()
	a.lastID += 2
	p := bothWays{&direction{id: a.lastID}, &direction{id: a.lastID + 1}}
	a.pairs[a.lastID] = p
	a.mu.Unlock()
	if _, err := c.Write(binary.BigEndian.AppendUint64(nil, p.up.id)); err != nil {
		c.Close()
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.add(newEnd(c, p.up, p.down))
}

func (a actor) dialCircuit() {
	ctx, cancel := context.WithTimeout(context.Background(), a.upTo(10*a.pace))
	defer cancel()
	c, err := a.host().DialContext(ctx, "simnet", a.name())
	if err != nil {
		a.check("dial", err)
		return
	}
	share(a.chaos, &a.circuits, c)
}

func (a actor) write() {
	e := oneOf(a, &a.ends)
	if e == nil || !e.writes.lock() {
		return
	}
	defer e.writes.unlock()
	if !a.mortal || a.IntN(10) > 0 { // nobody may read; Close ends it
		e.conn.SetWriteDeadline(a.soon())
	}
	b := make([]byte, a.IntN(1<<(4+a.IntN(13))))
	pattern(b, e.out.id, e.out.accepted)
	n, err := e.conn.Write(b)
	if n < len(b) && err == nil || n < 0 || n > len(b) {
		a.t.Errorf("Write of %d bytes: %d, %v", len(b), n, err)
	}
	e.out.accepted += int64(n)
	e.note(err)
	a.check("write", err)
}

func (a actor) read() {
	if e := oneOf(a, &a.ends); e != nil && e.reads.lock() {
		defer e.reads.unlock()
		e.conn.SetReadDeadline(a.soon())
		a.readFrom(e, make([]byte, 1+a.IntN(1<<(8+a.IntN(10)))))
	}
}

// readFrom reads once, and compares what it reads with what was written.
func (a *chaos) readFrom(e *end, b []byte) error {
	n, err := e.conn.Read(b)
	want := make([]byte, n)
	pattern(want, e.in.id, e.in.received)
	if string(b[:n]) != string(want) {
		a.t.Errorf("stream %d: the %d bytes from offset %d are not those that were written", e.in.id, n, e.in.received)
	}
	e.in.received += int64(n)
	e.in.ended = e.in.ended || err == io.EOF
	if n > 0 && err != nil || n == 0 && err == nil {
		a.t.Errorf("Read: %d, %v", n, err)
	}
	e.note(err)
	a.check("read", err)
	return err
}

func (a actor) closeStream() {
	e := oneOf(a, &a.ends)
	if e == nil {
		return
	}
	switch a.IntN(4) {
	case 0:
		a.check("CloseWrite", e.conn.CloseWrite())
	case 1:
		e.shut.Store(true)
		a.check("CloseRead", e.conn.CloseRead())
	case 2:
		e.shut.Store(true)
		e.conn.SetLinger(a.IntN(4) - 1)
		fallthrough
	default:
		e.shut.Store(true)
		a.check("Close", e.conn.Close())
	}
}

func (a actor) adjust() {
	e := oneOf(a, &a.ends)
	if e == nil {
		return
	}
	switch a.IntN(6) {
	case 0:
		a.check("set", e.conn.SetDeadline(a.soon()))
	case 1:
		a.check("set", e.conn.SetReadDeadline(time.Time{}))
		a.check("set", e.conn.SetReadDeadline(a.soon()))
	case 2:
		a.check("set", e.conn.SetWriteDeadline(time.Now().Add(-1)))
	case 3:
		a.check("set", e.conn.SetReadBuffer(1+a.IntN(100_000)))
	case 4:
		a.check("set", e.conn.SetWriteBuffer(1+a.IntN(100_000)))
	case 5:
		a.check("set", e.conn.SetKeepAlivePeriod(1+a.upTo(20*a.pace)))
	}
}

func (a actor) message() {
	c := oneOf(a, &a.circuits)
	if c == nil {
		return
	}
	c.SetDeadline(a.soon())
	b := make([]byte, 8+a.IntN(3000))
	binary.BigEndian.PutUint64(b, a.Uint64())
	pattern(b[8:], binary.BigEndian.Uint64(b), 0)
	_, err := c.Write(b)
	a.check("write", err)
	if err == nil && a.coin() {
		b = b[:cap(b)]
		b = append(b, make([]byte, 4096)...)
		n, err := c.Read(b)
		a.check("read", err)
		a.whole("message", b[:n])
	}
	if a.IntN(20) == 0 {
		a.check("close", c.Close())
	}
}

// whole compares a message or datagram with what was sent.
func (a actor) whole(what string, b []byte) {
	if len(b) == 0 {
		return
	}
	want := make([]byte, len(b)-8)
	pattern(want, binary.BigEndian.Uint64(b), 0)
	if string(want) != string(b[8:]) {
		a.t.Errorf("a %s of %d bytes is not what was sent", what, len(b))
	}
}

func (a actor) datagram() {
	name := a.name()
	a.mu.Lock()
	c := a.sockets[name]
	a.mu.Unlock()
	if c == nil {
		return
	}
	c.SetDeadline(a.soon())
	if a.coin() {
		b := make([]byte, 4096)
		n, _, err := c.ReadFrom(b)
		a.check("read", err)
		a.whole("datagram", b[:n])
		return
	}
	b := make([]byte, 8+a.IntN(3000))
	binary.BigEndian.PutUint64(b, a.Uint64())
	pattern(b[8:], binary.BigEndian.Uint64(b), 0)
	_, err := c.WriteTo(b, &net.UDPAddr{IP: a.addrs[a.IntN(len(a.addrs))].AsSlice(), Port: 53 + a.IntN(2)})
	a.check("write", err)
}

// spec is a change of probabilities.
func (a actor) spec() gosimnet.DropDeafSpec {
	some := []float64{0, 0, 0.1, 0.5, 1}
	return gosimnet.DropDeafSpec{
		UpdateDeafReads: a.coin(), DeafReadsNewProb: some[a.IntN(len(some))],
		UpdateDropSends: a.coin(), DropSendsNewProb: some[a.IntN(len(some))],
	}
}

func (a actor) fault() {
	switch a.IntN(8) {
	case 0:
		a.check("FaultHost", a.net.FaultHost(a.name(), a.spec(), a.coin()))
	case 1:
		a.check("FaultCircuit", a.net.FaultCircuit(a.name()+":80", a.maybe(), a.spec(), a.coin()))
	case 2:
		_, err := a.net.AlterHost(a.name(), gosimnet.Alteration(1+a.IntN(4)))
		a.check("AlterHost", err)
	case 3:
		_, err := a.net.AlterCircuit(a.name()+":80", gosimnet.Alteration(1+a.IntN(4)), a.coin())
		a.check("AlterCircuit", err)
	case 4:
		k := 1 + a.IntN(len(a.names)-1)
		heal, err := a.net.Partition(gosimnet.PartitionMode(a.IntN(3)), a.names[:k], a.names[k:])
		a.keep(heal, err)
	case 5:
		heal, err := a.net.CutLink(gosimnet.PartitionMode(a.IntN(3)), a.maybe(), a.name())
		a.keep(heal, err)
	case 6:
		unclog, err := a.net.Clog(a.maybe(), a.name(), a.upTo(10*a.pace))
		a.keep(unclog, err)
	case 7:
		_, err := a.net.ResetConns(a.name(), a.maybe())
		a.check("ResetConns", err)
	}
}

// keep keeps a function that ends a fault.
func (a actor) keep(heal func(), err error) {
	a.check("partition", err)
	if err == nil {
		share(a.chaos, &a.undo, heal)
	}
}

func (a actor) repair() {
	switch a.IntN(5) {
	case 0:
		a.check("RepairHost", a.net.RepairHost(a.name(), a.coin(), a.coin(), a.IntN(5) == 0, a.coin()))
	case 1:
		a.check("RepairCircuit", a.net.RepairCircuit(a.name()+":80", a.coin(), a.coin(), a.coin()))
	case 2:
		a.check("AllHealthy", a.net.AllHealthy(a.coin(), a.coin()))
	default:
		for _, f := range a.take(&a.undo) {
			f()
		}
	}
}

func (a actor) reshape() {
	cfg := gosimnet.LinkConfig{
		Loss: a.Float64() * a.Float64() / 3, Duplicate: a.Float64() / 10, Reorder: a.Float64() / 10,
		Latency: gosimnet.Uniform(1, 1+a.upTo(a.pace)), MTU: 500 + a.IntN(9000), Ordering: gosimnet.Ordering(a.IntN(2)),
		BitsPerSecond: int64(a.IntN(2)) * (100_000 + a.Int64N(100_000_000)), QueueBytes: 3000 + a.IntN(100_000), Overflow: gosimnet.Overflow(a.IntN(3)),
	}
	switch a.IntN(6) {
	case 0, 1:
		a.check("SetLink", a.net.SetLink(a.maybe(), a.maybe(), cfg))
	case 2:
		a.check("SetUplink", a.net.SetUplink(a.name(), cfg))
	case 3:
		a.check("SetDownlink", a.net.SetDownlink(a.name(), cfg))
	case 4:
		a.check("SetScenario", a.net.SetScenario(gosimnet.Scenario{Seed: [32]byte{byte(a.Int())}, Tick: a.upTo(a.pace / 10), MinHop: a.upTo(a.pace), MaxHop: a.pace}))
	case 5:
		verdicts := []gosimnet.Verdict{gosimnet.Drop(), gosimnet.Hold(), gosimnet.Delay(a.pace / 3), gosimnet.Duplicate(), gosimnet.Reject()}
		v, every := verdicts[a.IntN(len(verdicts))], uint64(5+a.IntN(50))
		share(a.chaos, &a.undo, a.net.AddRule(func(p *gosimnet.Packet) gosimnet.Verdict {
			if p.N%every == 0 {
				return v
			}
			return gosimnet.Pass()
		}))
	}
}

func (a actor) batch() {
	b := a.net.NewSimnetBatch(a.soon(), a.coin())
	b.FaultHost(a.name(), a.spec(), a.coin())
	b.AlterHost(a.name(), gosimnet.Alteration(1+a.IntN(4)))
	b.GetSimnetSnapshot()
	b.RepairHost(a.name(), true, true, false, true)
	a.net.SubmitBatch(b)
	if a.coin() {
		<-b.Done()
		a.check("batch", b.Err())
	}
}

func (a actor) time() {
	t := oneOf(a, &a.timers)
	if t == nil || a.coin() {
		share(a.chaos, &a.timers, a.host().NewTimer(a.upTo(a.pace)))
		return
	}
	if a.coin() {
		t.Reset(a.upTo(a.pace))
	} else {
		t.Discard()
	}
}

func (a actor) look() {
	switch a.IntN(4) {
	case 0:
		a.net.TraceHash()
	case 1:
		for e := range a.net.Trace() {
			_ = e.String()
		}
	default:
		a.addsUp(a.net.GetSimnetSnapshot())
	}
}

// addsUp compares the counters of a network.
func (a *chaos) addsUp(z *gosimnet.SimnetSnapshot) {
	_ = z.LongString()
	conns := 0
	for _, p := range z.Peer {
		conns += len(p.Conn)
	}
	if conns != z.PeerConnCount+z.LoneCliConnCount {
		a.t.Errorf("%d ends of connections, but %d and %d are counted", conns, z.PeerConnCount, z.LoneCliConnCount)
	}
	for _, from := range a.names {
		for _, to := range a.names {
			st, err := a.net.LinkStats(from, to)
			a.check("LinkStats", err)
			came := gosimnet.LinkCount{Packets: st.Sent.Packets + st.Duplicated.Packets, Bytes: st.Sent.Bytes + st.Duplicated.Bytes}
			var went gosimnet.LinkCount
			for _, c := range []gosimnet.LinkCount{st.Delivered, st.Lost, st.Held, st.InFlight} {
				went.Packets += c.Packets
				went.Bytes += c.Bytes
			}
			var lost gosimnet.LinkCount
			for _, c := range st.LostTo {
				lost.Packets += c.Packets
				lost.Bytes += c.Bytes
			}
			if came != went || lost != st.Lost {
				a.t.Errorf("%s→%s does not add up: %+v", from, to, st)
			}
		}
	}
}

// live does so many random things.
func (a actor) live(ops int) {
	for range ops {
		time.Sleep(a.upTo(a.pace))
		switch n := a.IntN(1000); {
		case n < 50:
			a.dial()
		case n < 70:
			a.dialCircuit()
		case n < 340:
			a.write()
		case n < 680:
			a.read()
		case n < 700:
			a.closeStream()
		case n < 750:
			a.adjust()
		case n < 830:
			a.message()
		case n < 880:
			a.datagram()
		case n < 900:
			a.fault()
		case n < 940:
			a.repair()
		case n < 950:
			a.reshape()
		case n < 954:
			a.batch()
		case n < 980:
			a.time()
		default:
			a.look()
		}
	}
}

// startChaos makes a network with its hosts, which retains so many events.
func startChaos(t *testing.T, seed uint64, pace time.Duration, limit int) *chaos {
	r := rand.New(rand.NewPCG(seed, 0))
	cfg := &gosimnet.SimNetConfig{
		Seed: seed, MinHop: max(1, pace/100), MaxHop: pace / 2, BarrierOff: seed%5 == 4, ChopReads: seed%3 == 1, TracePayload: seed%4 == 1,
		SendBuffer: 1 + r.IntN(1<<(4+r.IntN(16))), ReceiveBuffer: 1 + r.IntN(1<<(4+r.IntN(16))), Backlog: 1 + r.IntN(100),
		Link: gosimnet.LinkConfig{Loss: float64(r.IntN(3)) / 20}, TraceLimit: limit,
		Retention: r.IntN(100), RecordCallers: seed%10 == 2, UserTimeout: time.Duration(r.IntN(2)) * 30 * time.Second,
	}
	s, err := gosimnet.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	a := &chaos{t: t, net: s, names: hostNames("h", 6), pace: pace, mortal: seed%2 == 1, pairs: make(map[uint64]bothWays), sockets: make(map[string]net.PacketConn), lastID: seed << 32}
	for _, name := range a.names {
		h := s.Host(name)
		a.addrs = append(a.addrs, h.Addrs()...)
		h.Run(func(ctx context.Context) error { return a.software(ctx, h) })
		time.Sleep(time.Nanosecond) // they share
	}
	return a
}

// rage lets so many actors do so many things each.
func (a *chaos) rage(seed uint64, actors, ops int) *sync.WaitGroup {
	var all sync.WaitGroup
	for i := range actors {
		all.Go(func() { actor{a, rand.New(rand.NewPCG(seed, uint64(i+1)))}.live(ops) })
	}
	return &all
}

// settle heals the network and reads every stream to its end, which must come.
func (a *chaos) settle() {
	for _, f := range a.take(&a.undo) {
		f()
	}
	a.net.Heal()
	a.check("AllHealthy", a.net.AllHealthy(true, true))
	a.check("SetLink", a.net.SetLink("", "", gosimnet.LinkConfig{}))
	time.Sleep(2 * time.Minute)
	var all sync.WaitGroup
	a.mu.Lock()
	ends := slices.Clone(a.ends)
	a.mu.Unlock()
	for _, e := range ends {
		all.Go(func() {
			e.conn.SetDeadline(time.Now().Add(time.Hour))
			e.conn.CloseWrite()
			b := make([]byte, 100_000)
			var err error
			for err == nil {
				err = a.readFrom(e, b)
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				a.t.Errorf("stream %d neither goes on nor ends: %v, accepted %d received %d", e.in.id, a.ofStream(e), e.in.accepted, e.in.received)
			}
		})
	}
	all.Wait()
}

// ofStream tells about a stream.
func (a *chaos) ofStream(e *end) (all string) {
	for _, p := range a.net.GetSimnetSnapshot().Peer {
		for _, c := range p.Conn {
			port := fmt.Sprint(":", e.conn.LocalAddr().(*net.TCPAddr).Port)
			if port == ":80" {
				port = fmt.Sprint(":", e.conn.RemoteAddr().(*net.TCPAddr).Port)
			}
			if strings.HasSuffix(c.Origin, port) || strings.HasSuffix(c.Target, port) {
				all += "\n" + c.String()
			}
		}
	}
	return fmt.Sprint(e.conn.LocalAddr(), " → ", e.conn.RemoteAddr(), all)
}

// verdict counts the streams' directions that ended well, all of whose bytes must have come through.
func (a *chaos) verdict() (well int) {
	for _, e := range a.ends {
		if e.in.ended && !e.failed.Load() && !e.shut.Load() {
			if e.in.received != e.in.accepted {
				a.t.Errorf("stream %d: %d bytes were accepted, %d came, and then the end, without an error", e.in.id, e.in.accepted, e.in.received)
			}
			well++
		}
	}
	return well
}

func TestChaosInABubble(t *testing.T) {
	watchdog(t, time.Duration(fromEnv("SIMNET_TEST_LIMIT", 600))*time.Second)
	well, ran := 0, 0
	for seed := range uint64(fromEnv("SIMNET_TEST_SEEDS", 3)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := startChaos(t, seed, 40*time.Millisecond, 100)
				all := a.rage(seed, 50, 200)
				if a.mortal {
					time.Sleep(time.Duration(seed%7+1) * time.Second)
				} else {
					all.Wait()
					a.settle()
					a.addsUp(a.net.GetSimnetSnapshot())
					well += a.verdict()
					ran++
				}
				a.net.Close()
				a.addsUp(a.net.GetSimnetSnapshot())
				all.Wait()
				time.Sleep(time.Minute)
			})
		})
	}
	if well < 10*ran {
		t.Errorf("only %d directions of streams came to a good end in %d runs", well, ran)
	}
	t.Logf("%d directions of streams came to a good end in %d runs", well, ran)
}

func TestChaosOnTheWallClock(t *testing.T) {
	watchdog(t, time.Duration(fromEnv("SIMNET_TEST_LIMIT", 300))*time.Second)
	for seed := range uint64(fromEnv("SIMNET_TEST_WALL_SEEDS", 2)) {
		before := runtime.NumGoroutine()
		a := startChaos(t, seed, 2*time.Millisecond, 100)
		all := a.rage(seed, 50, 100)
		if a.mortal {
			time.Sleep(50 * time.Millisecond)
		} else {
			all.Wait()
		}
		a.net.Close()
		all.Wait()
		a.verdict()
		for limit := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
			if time.Now().After(limit) {
				stacks := make([]byte, 1<<20)
				t.Fatalf("goroutines are left:\n%s", stacks[:runtime.Stack(stacks, true)])
			}
		}
	}
}

func TestWindowUpdateLostWhileIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newNet(t, &gosimnet.SimNetConfig{ReceiveBuffer: 1000})
		client, server := pair(s, "tcp", ":80")
		if _, err := client.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		heal, err := s.CutLink(gosimnet.DropPackets, "b", "")
		noError(t, err)
		io.ReadFull(server, make([]byte, 1000))
		time.Sleep(time.Second)
		heal()
		start := time.Now()
		if _, err := client.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		server.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := server.Read(make([]byte, 1)); err != nil || time.Since(start) > time.Second {
			t.Errorf("Read after %v: %v", time.Since(start), err)
		}
	})
}
