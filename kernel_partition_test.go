package gosimnet_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/glycerine/gosimnet"
)

// The times that Linux gives up at.
const (
	synGiveUp       = 127 * time.Second
	dataGiveUp      = 924600 * time.Millisecond
	keepAliveGiveUp = 150 * time.Second
)

// hop is one way between the simulated hosts.
const hop = 10 * time.Millisecond

// silenceRows are about dials that nobody answers.
func silenceRows() []row {
	return []row{
		{id: "N1", name: "a dial of an isolated host", run: dialSilence("10.0.9.1", func(e *env) { e.alter("server", gosimnet.ISOLATE) })},
		{id: "N1", name: "a dial of a host without power", run: dialSilence("10.0.9.1", func(e *env) { e.alter("server", gosimnet.SHUTDOWN) })},
		{id: "N1", name: "a dial across a partition", run: dialSilence("10.0.9.1", func(e *env) { e.part() })},
		{id: "N1", name: "a dial whose answers are lost", run: dialSilence("10.0.9.1", func(e *env) { e.cut("server", "client") })},
		{id: "N1", name: "a dial of nobody's address", run: dialSilence("192.0.2.1", func(e *env) {})},
		{id: "N2", name: "a dial connects at the next SYN after the heal", run: dialHealed},
		{id: "N3", name: "a connection whose SYN/ACK is lost is never accepted", run: halfOpen},
		{id: "N", name: "a SYN/ACK that was lost is sent again", run: synAckAgain},
		{id: "N", name: "a dial of a full backlog connects at the next SYN after an Accept", run: backlogEmptied, cfg: &gosimnet.SimNetConfig{Backlog: 1}},
	}
}

// partitionRows are about connections across a partition.
func partitionRows() []row {
	once := &gosimnet.SimNetConfig{UserTimeout: 3 * time.Second}
	return []row{
		{id: "N4", name: "keep-alive finds out, 150 s after the last sign of life", run: keepAliveDefault},
		{id: "N4", name: "keep-alive counts from its last probe that was answered", run: keepAliveLate},
		{id: "N4", name: "keep-alive counts a probe that the cut meets", run: keepAliveUnderWay},
		{id: "N4", name: "keep-alive counts from the last data", run: keepAliveAfterData},
		{id: "N4", name: "keep-alive with times of its own", run: keepAliveConfigured},
		{id: "N4", name: "keep-alive with an interval longer than the idle time", run: keepAliveLongInterval},
		{id: "N4", name: "keep-alive that is answered now and then goes on", run: keepAliveLossy},
		{id: "N4", name: "setters of keep-alive", run: keepAliveSetters},
		{id: "N4", name: "no keep-alive", run: noKeepAlive},
		{id: "N4", name: "keep-alive's end resets a peer that still hears", run: keepAliveTellsPeer},
		{id: "N4", name: "the peer's probes are no sign of life", run: probesAreNoLife},
		{id: "N5", name: "unacknowledged data gives up after 924.6 s", run: dataGivesUp},
		{id: "N5", name: "unacknowledged data gives up, met by Write", run: dataGivesUpByWrite},
		{id: "N6", name: "a peer that never reads is alive", run: neverReads},
		{id: "N6", name: "a user time-out ends a connection to a peer that never reads", run: neverReadsTimeout, cfg: once},
		{id: "N5", name: "a user time-out ends unacknowledged data", run: userTimeout, cfg: once},
		{id: "N7", name: "after a heal data moves at the next retransmission", run: healedAt},
		{id: "N7", name: "deliverDroppedSends moves data at once", run: deliveredAtOnce},
		{id: "N7", name: "five Writes in a partition arrive once and in order", run: fiveWrites},
		{id: "N7", name: "a stream loses nothing to a cut", run: func(e *env) { e.transferAcrossCut(time.Second) }},
		{id: "N8", name: "with the way back cut the client gives up and the server is told nothing", run: oneWay},
		{id: "N9", name: "a close in a partition is known after the heal", run: closeInPartition},
		{id: "N10", name: "a lost reset is not sent again", run: lostReset},
		{id: "N10", name: "a keep-alive probe finds a lost reset", run: lostResetProbed},
		{id: "N12", name: "what was written before a Close in a partition arrives", run: queuedClose},
		{id: "N13", name: "SetLinger bounds a Close in a partition", run: lingerInPartition},
		{id: "N14", name: "a datagram into a hole", run: datagramIntoHole},
	}
}

// powerRows are about power cuts.
func powerRows() []row {
	return []row{
		{id: "N11", name: "a power cycle is met by Read after a Write", run: powerCycle},
		{id: "N11", name: "a power cycle is met by a second Write", run: powerCycleWrite},
		{id: "N11", name: "a power cycle is found by a keep-alive probe", run: powerCycleProbed},
		{id: "N11", name: "a power cut is silence", run: powerCut},
		{id: "N11", name: "a power cycle ends TIME_WAIT", run: powerCycleEndsTimeWait},
		{id: "N11", name: "calls at a host without power", run: callsWithoutPower},
	}
}

// timedOut checks the end of a connection that nothing was heard on.
func (e *env) timedOut(c net.Conn, r *call) {
	e.Helper()
	n, err := e.within(time.Hour, r)
	e.fails(n, err, connError(c, "read", sysError("read", syscall.ETIMEDOUT)))
	if !err.(net.Error).Timeout() || errors.Is(err, os.ErrDeadlineExceeded) {
		e.Errorf("%v: Timeout %v, os.ErrDeadlineExceeded %v, want true, false", err, err.(net.Error).Timeout(), errors.Is(err, os.ErrDeadlineExceeded))
	}
	e.writeFails(c, errPipe)
	e.ends(c)
}

// readByte is a Read under way.
func (e *env) readByte(c net.Conn) *call { return e.startRead(c, make([]byte, 1)) }

func dialSilence(ip string, silence func(e *env)) func(e *env) {
	return func(e *env) {
		to := e.tcp(ip, closedPort)
		silence(e)
		start := time.Now()
		_, err := e.client.Dial("tcp", to.String())
		e.took(start, synGiveUp)
		e.same(err, dialError(nil, to, sysError("connect", syscall.ETIMEDOUT)))
		if !err.(net.Error).Timeout() || errors.Is(err, os.ErrDeadlineExceeded) {
			e.Errorf("%v: Timeout %v, os.ErrDeadlineExceeded %v", err, err.(net.Error).Timeout(), errors.Is(err, os.ErrDeadlineExceeded))
		}
		if ip == e.serverIP {
			e.sentAt("client", "SYN", start, 0, 1*time.Second, 3*time.Second, 7*time.Second, 15*time.Second, 31*time.Second, 63*time.Second)
		}
	}
}

func dialHealed(e *env) {
	l := e.listen()
	heal := e.part()
	time.AfterFunc(2500*time.Millisecond, heal)
	start := time.Now()
	c := e.dial(l)
	e.took(start, 3*time.Second+2*hop)
	e.writes(c, "x")
	e.reads(e.accept(l), "x")
}

func halfOpen(e *env) {
	l := e.listen()
	a := e.startAccept(l)
	heal := e.cut("server", "client")
	start := time.Now()
	_, err := e.dialer(net.Dialer{Timeout: 5 * time.Second}).Dial("tcp", l.Addr().String())
	e.exactly(start, 5*time.Second)
	e.ranOut(err, nil, l.Addr())
	time.Sleep(time.Second)
	heal()
	time.Sleep(10 * time.Minute)
	e.unfinished(a)
	e.dial(l)
	if _, err := e.wait(a); err != nil {
		e.Errorf("Accept after the heal: %v", err)
	}
}

func synAckAgain(e *env) {
	l := e.listen()
	heal := e.cut("server", "client")
	time.AfterFunc(500*time.Millisecond, heal)
	start := time.Now()
	c := e.dial(l)
	e.took(start, time.Second+2*hop)
	e.writes(c, "x")
	e.reads(e.accept(l), "x")
}

func backlogEmptied(e *env) {
	l := e.listen()
	e.dial(l)
	e.dial(l)
	time.AfterFunc(5*time.Second, func() { e.accept(l) })
	start := time.Now()
	e.dial(l)
	e.took(start, 7*time.Second+2*hop)
}

// keepAliveDefault cuts right after the handshake, whose last packets are signs of life.
func keepAliveDefault(e *env) {
	start := time.Now()
	c, s := e.pair()
	time.Sleep(2 * hop)
	e.part()
	rc, rs := e.readByte(c), e.readByte(s)
	e.timedOut(c, rc)
	e.timedOut(s, rs)
	e.at(rc.ended.Sub(start), 2*hop+keepAliveGiveUp)
	e.at(rs.ended.Sub(start), 3*hop+keepAliveGiveUp)
}

// keepAliveLate cuts after probes that nobody has seen: each is answered a round trip after it is sent.
func keepAliveLate(e *env) {
	start := time.Now()
	c, s := e.pair()
	time.Sleep(100*time.Second - time.Since(start))
	e.part()
	rc, rs := e.readByte(c), e.readByte(s)
	e.timedOut(c, rc)
	e.timedOut(s, rs)
	const answered = 6 * (15*time.Second + 2*hop) // no more of them fit into 100 s
	e.at(rc.ended.Sub(start), 2*hop+answered+keepAliveGiveUp)
	e.at(rs.ended.Sub(start), 3*hop+answered+keepAliveGiveUp)
}

// keepAliveUnderWay cuts while the first probe is on its way.
func keepAliveUnderWay(e *env) {
	start := time.Now()
	c, _ := e.pair()
	time.Sleep(2*hop + 15*time.Second + hop/2 - time.Since(start))
	e.part()
	r := e.readByte(c)
	e.timedOut(c, r)
	e.at(r.ended.Sub(start), 2*hop+keepAliveGiveUp)
}

func keepAliveAfterData(e *env) {
	c, s := e.pair()
	time.Sleep(20 * time.Second)
	start := time.Now()
	e.writes(s, "x")
	e.reads(c, "x")
	time.Sleep(10 * time.Second)
	e.part()
	rc, rs := e.readByte(c), e.readByte(s)
	e.timedOut(c, rc)
	e.timedOut(s, rs)
	e.at(rc.ended.Sub(start), hop+keepAliveGiveUp)
	e.at(rs.ended.Sub(start), 2*hop+keepAliveGiveUp) // the acknowledgement
}

func keepAliveConfigured(e *env) {
	quick := net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 3}
	for _, make := range []func() stream{
		func() stream { c, _ := e.pairBy(net.Dialer{KeepAliveConfig: quick}); return c },
		func() stream { c, _ := e.pair(); e.must(c.SetKeepAliveConfig(quick)); return c },
	} {
		start := time.Now()
		c := make()
		time.Sleep(2 * hop)
		heal := e.part()
		r := e.readByte(c)
		e.timedOut(c, r)
		e.at(r.ended.Sub(start), 2*hop+4*time.Second)
		heal()
	}
	start := time.Now()
	c, _ := e.pairBy(net.Dialer{KeepAlive: time.Minute})
	time.Sleep(2 * hop)
	e.part()
	r := e.readByte(c)
	e.timedOut(c, r)
	e.at(r.ended.Sub(start), 2*hop+time.Minute+9*15*time.Second)
}

// keepAliveSetters has each of the calls leave alone what another has set.
func keepAliveSetters(e *env) {
	quick := net.KeepAliveConfig{Idle: time.Second, Interval: 2 * time.Second, Count: 3}
	for name, test := range map[string]struct {
		set    func(c stream)
		giveUp time.Duration
	}{
		"on again":           {func(c stream) { e.must(c.SetKeepAlive(true)) }, 7 * time.Second},
		"a period":           {func(c stream) { e.must(c.SetKeepAlivePeriod(5 * time.Second)); e.must(c.SetKeepAlive(true)) }, 11 * time.Second},
		"the default period": {func(c stream) { e.must(c.SetKeepAlivePeriod(0)); e.must(c.SetKeepAlive(true)) }, 21 * time.Second},
		"no period":          {func(c stream) { e.must(c.SetKeepAlivePeriod(-1)); e.must(c.SetKeepAlive(true)) }, 7 * time.Second},
		"part of it": {func(c stream) {
			e.must(c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: -1, Interval: time.Millisecond, Count: -1}))
		}, 4 * time.Second},
		"a period while they are off": {func(c stream) { e.must(c.SetKeepAlivePeriod(time.Second)) }, 0},
	} {
		c, s := e.pair()
		e.must(c.SetKeepAliveConfig(quick))
		e.must(s.SetKeepAlive(false))
		test.set(c)
		start := time.Now()
		heal := e.part()
		r := e.readByte(c)
		if test.giveUp == 0 {
			time.Sleep(time.Hour)
			e.unfinished(r)
		} else {
			e.timedOut(c, r)
			if d := r.ended.Sub(start); d > test.giveUp || d < test.giveUp-4*hop {
				e.Errorf("%s: gave up after %v, want %v", name, d, test.giveUp)
			}
		}
		heal()
		c.Close()
		s.Close()
	}
}

// keepAliveLongInterval has probes at 1, 4 and 7 s that are answered, and at 10 and 13 s that are not.
func keepAliveLongInterval(e *env) {
	start := time.Now()
	c, _ := e.pairBy(net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: 3 * time.Second, Count: 2}})
	time.Sleep(8 * time.Second)
	e.part()
	r := e.readByte(c)
	e.timedOut(c, r)
	e.at(r.ended.Sub(start), 2*hop+16*time.Second)
}

func keepAliveLossy(e *env) {
	e.must(e.sim.SetLink("", "", gosimnet.LinkConfig{Loss: 0.2}))
	c, s := e.pairBy(net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: 3 * time.Second, Count: 15}})
	e.must(s.SetKeepAlive(false))
	r := e.readByte(c)
	time.Sleep(time.Hour)
	e.unfinished(r)
	e.must(e.sim.SetLink("", "", gosimnet.LinkConfig{}))
	e.writes(s, "x")
	if _, err := e.wait(r); err != nil {
		e.Errorf("after an hour of losses: %v", err)
	}
}

func noKeepAlive(e *env) {
	c, s := e.pairBy(net.Dialer{KeepAlive: -1})
	e.must(s.SetKeepAlive(false))
	heal := e.part()
	rc, rs := e.readByte(c), e.readByte(s)
	time.Sleep(24 * time.Hour)
	e.unfinished(rc)
	e.unfinished(rs)
	heal()
	e.writes(s, "x")
	if _, err := e.wait(rc); err != nil {
		e.Errorf("after a day: %v", err)
	}
}

func keepAliveTellsPeer(e *env) {
	start := time.Now()
	c, s := e.pairBy(net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 3}})
	time.Sleep(2 * hop)
	e.cut("server", "client")
	rc, rs := e.readByte(c), e.readByte(s)
	e.timedOut(c, rc)
	e.at(rc.ended.Sub(start), 2*hop+4*time.Second)
	n, err := e.wait(rs)
	e.at(rs.ended.Sub(start), 3*hop+4*time.Second)
	e.fails(n, err, connError(s, "read", errReadReset))
}

func probesAreNoLife(e *env) {
	start := time.Now()
	c, s := e.pairBy(net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 3}})
	e.must(s.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 100}))
	time.Sleep(2 * hop)
	e.cut("client", "server")
	r := e.readByte(c)
	e.timedOut(c, r)
	e.at(r.ended.Sub(start), 2*hop+4*time.Second)
}

// retransmissions are when a byte that nobody acknowledges is sent.
func retransmissions() []time.Duration {
	times := []time.Duration{0}
	for at := 200 * time.Millisecond; at < dataGiveUp; at += min(at, 2*time.Minute) {
		times = append(times, at)
	}
	return times
}

func dataGivesUp(e *env) {
	c, _ := e.pairBy(net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 3}})
	time.Sleep(2 * hop)
	e.part()
	start := time.Now()
	e.writes(c, "x")
	r := e.readByte(c)
	e.timedOut(c, r)
	e.at(r.ended.Sub(start), dataGiveUp)
	e.sentAt("client", "data", start, retransmissions()...)
}

func dataGivesUpByWrite(e *env) {
	c, _ := e.pair()
	e.part()
	start := time.Now()
	w := e.startWrite(c, zeros[:])
	n, err := e.within(time.Hour, w)
	e.took(start, dataGiveUp)
	if n != 256<<10 {
		e.Errorf("Write took %d B, want the send buffer", n)
	}
	e.same(err, connError(c, "write", sysError("write", syscall.ETIMEDOUT)))
	e.writeFails(c, errPipe)
	e.ends(c)
}

func neverReads(e *env) {
	c, _ := e.pair()
	w := e.startWrite(c, zeros[:])
	r := e.readByte(c)
	time.Sleep(24 * time.Hour)
	e.unfinished(w)
	e.unfinished(r)
}

// neverReadsTimeout counts from the last acknowledgement that made room.
func neverReadsTimeout(e *env) {
	c, _ := e.pair()
	start := time.Now()
	w := e.startWrite(c, zeros[:])
	n, err := e.wait(w)
	e.took(start, 2*hop+3*time.Second)
	if n != 512<<10 {
		e.Errorf("Write took %d B, want both buffers", n)
	}
	e.same(err, connError(c, "write", sysError("write", syscall.ETIMEDOUT)))
	e.writeFails(c, errPipe)
	e.ends(c)
}

func userTimeout(e *env) {
	c, _ := e.pair()
	time.Sleep(2 * hop)
	e.part()
	start := time.Now()
	e.writes(c, "x")
	r := e.readByte(c)
	e.timedOut(c, r)
	e.at(r.ended.Sub(start), 3*time.Second)
}

func healedAt(e *env) {
	c, s := e.pair()
	e.must(s.SetKeepAlive(false))
	for _, cut := range []struct{ lasts, arrives time.Duration }{
		{100 * time.Millisecond, 200 * time.Millisecond},
		{500 * time.Millisecond, 800 * time.Millisecond},
		{time.Second, 1600 * time.Millisecond},
		{2500 * time.Millisecond, 3200 * time.Millisecond},
		{5 * time.Second, 6400 * time.Millisecond},
		{3 * time.Minute, 204800 * time.Millisecond},
		{5 * time.Minute, 324800 * time.Millisecond},
	} {
		heal := e.part()
		start := time.Now()
		e.writes(c, "x")
		e.exactly(start, 0)
		time.AfterFunc(cut.lasts, heal)
		r := e.readByte(s)
		if n, err := e.within(time.Hour, r); n != 1 || err != nil {
			e.Errorf("after a cut of %v: %d, %v", cut.lasts, n, err)
		}
		e.took(start, cut.arrives+hop)
		e.settle()
	}
}

func deliveredAtOnce(e *env) {
	c, s := e.pair()
	e.must(e.sim.FaultHost("client", gosimnet.DropDeafSpec{UpdateDropSends: true, DropSendsNewProb: 1}, false))
	e.writes(c, "x")
	r := e.readByte(s)
	time.Sleep(900 * time.Millisecond)
	e.unfinished(r)
	healed := time.Now()
	e.must(e.sim.RepairHost("client", false, false, false, true))
	if n, err := e.wait(r); n != 1 || err != nil {
		e.Errorf("after the repair: %d, %v", n, err)
	}
	e.took(healed, hop)
}

func fiveWrites(e *env) {
	c, s := e.pair()
	heal := e.part()
	start := time.Now()
	for _, digit := range strings.Split("01234", "") {
		e.writes(c, digit)
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(500 * time.Millisecond)
	heal()
	got := make([]byte, 5)
	_, err := e.wait(e.start(func() (int, error) { return io.ReadFull(s, got) }))
	e.took(start, 1600*time.Millisecond+hop)
	if string(got) != "01234" || err != nil {
		e.Errorf("arrived: %q, %v", got, err)
	}
	e.must(c.Close())
	e.ends(s)
}

// counter is a writer that counts bytes.
type counter struct{ n *atomic.Int64 }

func (c counter) Write(b []byte) (int, error) { c.n.Add(int64(len(b))); return len(b), nil }

// transferAcrossCut sends 16 MiB, and cuts in the middle of them.
func (e *env) transferAcrossCut(lasts time.Duration) {
	e.Helper()
	c, s := e.pair()
	sent := make([]byte, 16<<20)
	rand.Read(sent)
	w := e.start(func() (int, error) {
		n, err := c.Write(sent)
		return n, errors.Join(err, c.Close())
	})
	var arrived atomic.Int64
	sum := sha256.New()
	r := e.start(func() (int, error) {
		n, err := io.Copy(io.MultiWriter(sum, counter{&arrived}), s)
		return int(n), err
	})
	time.Sleep(105 * time.Millisecond)
	heal := e.part()
	before := arrived.Load()
	time.Sleep(lasts)
	e.unfinished(w)
	if now := arrived.Load(); before == 0 || now != before {
		e.Errorf("%d B had arrived when the cut came and %d when it ended", before, now)
	}
	heal()
	for _, end := range []*call{w, r} {
		if n, err := e.wait(end); n != len(sent) || err != nil {
			e.Errorf("%d B, %v, want all %d", n, err, len(sent))
		}
	}
	if want := sha256.Sum256(sent); !bytes.Equal(sum.Sum(nil), want[:]) {
		e.Error("what arrived is not what was sent")
	}
}

func oneWay(e *env) {
	c, s := e.pair()
	e.must(s.SetKeepAlive(false))
	heal := e.cut("server", "client")
	start := time.Now()
	e.writes(c, "x")
	r := e.readByte(c)
	e.reads(s, "x")
	e.took(start, hop)
	e.timedOut(c, r)
	e.at(r.ended.Sub(start), dataGiveUp)
	rs := e.readByte(s)
	time.Sleep(time.Hour)
	e.unfinished(rs)
	heal()
	time.Sleep(time.Hour)
	e.unfinished(rs)
	start = time.Now()
	e.writes(s, "y")
	n, err := e.wait(rs)
	e.took(start, 2*hop)
	e.fails(n, err, connError(s, "read", errReadReset))
}

func closeInPartition(e *env) {
	c, s := e.pair()
	r := e.readByte(c)
	heal := e.part()
	start := time.Now()
	e.must(s.Close())
	time.AfterFunc(2*time.Second, heal)
	if n, err := e.wait(r); n != 0 || err != io.EOF {
		e.Errorf("Read: %d, %v, want 0, EOF", n, err)
	}
	e.took(start, 3200*time.Millisecond+hop)
}

// resetLost is a connection whose server has sent an RST into a partition, and when that was.
func resetLost(e *env) (c stream, since time.Time) {
	since = time.Now()
	c, s := e.pair()
	time.Sleep(2 * hop)
	heal := e.part()
	e.must(s.SetLinger(0))
	e.must(s.Close())
	time.Sleep(time.Second)
	heal()
	return c, since
}

func lostReset(e *env) {
	c, _ := resetLost(e)
	r := e.readByte(c)
	time.Sleep(10 * time.Second)
	e.unfinished(r)
	start := time.Now()
	e.writes(c, "x")
	n, err := e.wait(r)
	e.took(start, 2*hop)
	e.fails(n, err, connError(c, "read", errReadReset))
	e.ends(c)
	e.writeFails(c, errPipe)
}

func lostResetProbed(e *env) {
	c, since := resetLost(e)
	r := e.readByte(c)
	n, err := e.wait(r)
	e.took(since, 2*hop+15*time.Second+2*hop)
	e.fails(n, err, connError(c, "read", errReadReset))
}

func queuedClose(e *env) {
	c, s := e.pair()
	heal := e.part()
	start := time.Now()
	sent := strings.Repeat("0123456789", 10000)
	e.writes(c, sent)
	e.must(c.Close())
	e.exactly(start, 0)
	time.AfterFunc(2*time.Second, heal)
	var got []byte
	_, err := e.wait(e.start(func() (_ int, err error) { got, err = io.ReadAll(s); return }))
	e.took(start, 3200*time.Millisecond+hop)
	if string(got) != sent || err != nil {
		e.Errorf("the peer got %d B, %v, want all %d and EOF", len(got), err, len(sent))
	}
}

func lingerInPartition(e *env) {
	c, s := e.pair()
	heal := e.part()
	e.writes(c, "x")
	e.must(c.SetLinger(1))
	start := time.Now()
	e.must(c.Close())
	e.exactly(start, time.Second)
	heal()
	e.reads(s, "x")
	e.ends(s)

	c, s = e.pair()
	e.writes(c, "x")
	e.must(c.SetLinger(1))
	start = time.Now()
	e.must(c.Close())
	e.took(start, 2*hop)
	e.reads(s, "x")
}

func datagramIntoHole(e *env) {
	s := e.socket(e.server, e.serverIP)
	c, d := e.connected(s.LocalAddr()), e.socket(e.client, e.clientIP)
	heal := e.part()
	for range 3 {
		e.writes(c, "lost")
		e.sendsTo(d, []byte("lost"), s.LocalAddr())
		e.silent(c)
		e.silent(d)
	}
	heal()
	e.silent(s)
	e.writes(c, "after")
	e.gets(s, "after", c.LocalAddr())
}

// cycle takes the server's power away, and gives it back.
func (e *env) cycle() {
	e.alter("server", gosimnet.SHUTDOWN)
	time.Sleep(time.Second)
	e.alter("server", gosimnet.POWERON)
}

func powerCycle(e *env) {
	c, _ := e.pair()
	r := e.readByte(c)
	e.cycle()
	time.Sleep(10 * time.Second)
	e.unfinished(r)
	start := time.Now()
	e.writes(c, "x")
	n, err := e.wait(r)
	e.took(start, 2*hop)
	e.fails(n, err, connError(c, "read", errReadReset))
	e.ends(c)
	e.writeFails(c, errPipe)
}

func powerCycleWrite(e *env) {
	c, _ := e.pair()
	e.cycle()
	e.writes(c, "x")
	e.settle()
	e.writeFails(c, errWriteReset)
	e.writeFails(c, errPipe)
	e.ends(c)
}

func powerCycleProbed(e *env) {
	start := time.Now()
	c, _ := e.pair()
	time.Sleep(2 * hop)
	e.cycle()
	n, err := e.wait(e.readByte(c))
	e.took(start, 2*hop+15*time.Second+2*hop)
	e.fails(n, err, connError(c, "read", errReadReset))
}

func powerCut(e *env) {
	start := time.Now()
	c, _ := e.pair()
	time.Sleep(2 * hop)
	e.alter("server", gosimnet.SHUTDOWN)
	r := e.readByte(c)
	e.timedOut(c, r)
	e.at(r.ended.Sub(start), 2*hop+keepAliveGiveUp)
}

func powerCycleEndsTimeWait(e *env) {
	l := e.listen()
	c := e.dial(l)
	e.must(c.Close())
	e.ends(e.accept(l))
	e.alter("client", gosimnet.SHUTDOWN)
	e.alter("client", gosimnet.POWERON)
	e.redials(l, c)
}

// callsWithoutPower checks that everything at a host ends with its power, and that a host that is on again begins anew.
func callsWithoutPower(e *env) {
	l := e.listen()
	c := e.dial(l)
	s := e.accept(l)
	p := e.socket(e.server, e.serverIP)
	calls := []*call{e.readByte(s), e.startWrite(s, zeros[:]), e.startAccept(l), e.readByte(p)}
	e.settle()
	e.alter("server", gosimnet.SHUTDOWN)
	for _, call := range calls {
		if _, err := e.wait(call); !errors.Is(err, net.ErrClosed) {
			e.Errorf("a call that the power cut ended: %v, want net.ErrClosed", err)
		}
	}
	e.alter("server", gosimnet.POWERON)
	e.settle()
	_, err := e.client.Dial("tcp", l.Addr().String())
	e.same(err, dialError(nil, l.Addr(), errRefused))
	e.dial(e.listenAt("tcp", l.Addr().String()))
	e.must(c.Close())
}
