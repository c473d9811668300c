package gosimnet_test

import (
	"errors"
	"net"
	"os"
	"strings"
	"time"

	"github.com/glycerine/gosimnet"
)

// deadlineRows are about deadlines of streams, and room to write.
func deadlineRows() []row {
	return []row{
		{id: "T08", name: "an expired deadline comes before data", run: deadlineBeforeData},
		{id: "T08", name: "an expired deadline comes before EOF", run: deadlineBeforeEOF},
		{id: "T08", name: "an expired deadline comes before a reset", run: deadlineBeforeReset},
		{id: "T08", name: "Close comes before an expired deadline", run: closeBeforeDeadline},
		{id: "T08c", name: "an expired deadline of an idle Write", run: writePastDeadline},
		{id: "T09", name: "a past deadline wakes a Read, and stays", run: pastWakesRead},
		{id: "T09", name: "a deadline moved out extends the Read under way", run: deadlineMovedOut},
		{id: "T09", name: "a deadline moved in shortens the Read under way", run: deadlineMovedIn},
		{id: "T09", name: "a deadline cleared leaves the Read under way alone", run: deadlineCleared},
		{id: "T09", name: "SetDeadline sets both", run: bothDeadlines},
		{id: "V08", name: "a deadline expires with nobody reading", run: expiresUnread},
		{id: "T10", name: "Write with no reader runs out of time", run: writeWithoutReader},
		{id: "T10b", name: "small buffers take little", run: smallBuffers},
	}
}

// limitRows are what the simulator says of its own sizes.
func limitRows() []row {
	small := &gosimnet.SimNetConfig{SendBuffer: 4096, ReceiveBuffer: 4096}
	return []row{
		{id: "T10", name: "default buffers hold 256 KiB each", run: func(e *env) { e.holds(512 << 10) }},
		{id: "T10b", name: "buffers of 4 KiB hold 4 KiB each", run: func(e *env) { e.holds(8 << 10) }, cfg: small},
		{id: "R", name: "a link's rate is shared by its flows", run: sharedLink},
		{id: "R", name: "an uplink's rate is shared by all that the host sends", run: sharedUplink},
	}
}

// holds checks how much Write takes when nobody reads.
func (e *env) holds(want int) {
	c, _ := e.pair()
	e.must(c.SetWriteDeadline(time.Now().Add(time.Second)))
	if n := e.cutShort(c, e.startWrite(c, zeros[:]), os.ErrDeadlineExceeded); n != want {
		e.Errorf("Write took %d B, want %d", n, want)
	}
}

// megabyte is a rate at which 1000 B take a millisecond.
var megabyte = gosimnet.LinkConfig{BitsPerSecond: 8e6}

// sharedLink has a stream and a socket, of which the socket sends first.
func sharedLink(e *env) {
	e.must(e.sim.SetLink("client", "server", megabyte))
	c, s := e.pair()
	p := e.socket(e.server, e.serverIP)
	q := e.connected(p.LocalAddr())
	start := time.Now()
	e.writes(q, strings.Repeat("x", 1000))
	time.Sleep(time.Millisecond / 2)
	e.writes(c, strings.Repeat("y", 1000))
	time.Sleep(time.Millisecond / 4)
	e.writes(q, strings.Repeat("z", 1000))
	for _, arrival := range []struct {
		read func()
		at   time.Duration
	}{
		{func() { e.gets(p, strings.Repeat("x", 1000), q.LocalAddr()) }, 1 * time.Millisecond},
		{func() { e.reads(s, strings.Repeat("y", 1000)) }, 2 * time.Millisecond},
		{func() { e.gets(p, strings.Repeat("z", 1000), q.LocalAddr()) }, 3 * time.Millisecond},
	} {
		arrival.read()
		e.took(start, arrival.at+hop)
	}
}

// sharedUplink has one wire for what goes to two hosts, each of which has a link of its own.
func sharedUplink(e *env) {
	e.must(e.sim.SetUplink("client", megabyte))
	third := e.socket(e.sim.Host("third"), e.sim.Host("third").Addrs()[0].String())
	p := e.socket(e.server, e.serverIP)
	c := e.socket(e.client, e.clientIP)
	start := time.Now()
	for range 10 {
		e.sendsTo(c, make([]byte, 1000), p.LocalAddr())
		e.sendsTo(c, make([]byte, 1000), third.LocalAddr())
		time.Sleep(time.Nanosecond)
	}
	for i := range 10 {
		e.gets(p, string(make([]byte, 1000)), c.LocalAddr())
		e.gets(third, string(make([]byte, 1000)), c.LocalAddr())
		if i == 9 {
			e.at(time.Since(start), 20*time.Millisecond+hop)
		}
	}
}

func (e *env) readTimesOut(c net.Conn) {
	e.Helper()
	e.readFails(c, os.ErrDeadlineExceeded)
}

func deadlineBeforeData(e *env) {
	c, s := e.pair()
	e.writes(s, "kept")
	e.settle()
	e.must(c.SetReadDeadline(past))
	e.readTimesOut(c)
	e.readTimesOut(c)
	e.must(c.SetReadDeadline(time.Time{}))
	e.reads(c, "kept")
}

func deadlineBeforeEOF(e *env) {
	c, s := e.pair()
	e.must(s.Close())
	e.settle()
	e.must(c.SetReadDeadline(past))
	e.readTimesOut(c)
	e.must(c.SetReadDeadline(time.Time{}))
	e.ends(c)
}

func deadlineBeforeReset(e *env) {
	c := resetBy(e)
	e.must(c.SetDeadline(past))
	e.readTimesOut(c)
	e.writeFails(c, os.ErrDeadlineExceeded)
	e.must(c.SetDeadline(time.Time{}))
	e.readFails(c, errReadReset)
	e.ends(c)
}

func closeBeforeDeadline(e *env) {
	c, _ := e.pair()
	e.must(c.SetDeadline(past))
	e.must(c.Close())
	e.readFails(c, net.ErrClosed)
	e.writeFails(c, net.ErrClosed)
}

func writePastDeadline(e *env) {
	c, s := e.pair()
	e.must(c.SetWriteDeadline(past))
	e.writeFails(c, os.ErrDeadlineExceeded)
	e.must(c.SetWriteDeadline(time.Time{}))
	e.writes(c, "after")
	e.reads(s, "after")
}

func pastWakesRead(e *env) {
	c, s := e.pair()
	for _, t := range []time.Time{past, time.Now().Add(-time.Second)} {
		r := e.startRead(c, make([]byte, 1))
		e.blocked(r)
		e.must(c.SetReadDeadline(t))
		n, err := e.wait(r)
		e.fails(n, err, connError(c, "read", os.ErrDeadlineExceeded))
		e.readTimesOut(c)
		e.settle()
		e.readTimesOut(c)
		e.must(c.SetReadDeadline(time.Time{}))
	}
	e.writes(s, "later")
	e.reads(c, "later")
}

// readWithin starts a Read that has so long.
func (e *env) readWithin(c net.Conn, d time.Duration) (*call, time.Time) {
	e.Helper()
	start := time.Now()
	e.must(c.SetReadDeadline(start.Add(d)))
	r := e.startRead(c, make([]byte, 100))
	e.blocked(r)
	return r, start
}

func deadlineMovedOut(e *env) {
	c, _ := e.pair()
	r, start := e.readWithin(c, 500*time.Millisecond)
	e.must(c.SetReadDeadline(start.Add(800 * time.Millisecond)))
	n, err := e.wait(r)
	e.exactly(start, 800*time.Millisecond)
	e.fails(n, err, connError(c, "read", os.ErrDeadlineExceeded))
}

func deadlineMovedIn(e *env) {
	c, _ := e.pair()
	r, start := e.readWithin(c, time.Hour)
	e.must(c.SetReadDeadline(start.Add(300 * time.Millisecond)))
	n, err := e.wait(r)
	e.exactly(start, 300*time.Millisecond)
	e.fails(n, err, connError(c, "read", os.ErrDeadlineExceeded))
}

func deadlineCleared(e *env) {
	c, s := e.pair()
	r, start := e.readWithin(c, 500*time.Millisecond)
	e.must(c.SetReadDeadline(time.Time{}))
	time.Sleep(time.Until(start.Add(600 * time.Millisecond)))
	e.unfinished(r)
	e.writes(s, "late")
	if n, err := e.wait(r); n != 4 || err != nil {
		e.Errorf("Read: %d, %v, want 4, nil", n, err)
	}
}

func bothDeadlines(e *env) {
	c, _ := e.pair()
	e.must(c.SetDeadline(past))
	e.readTimesOut(c)
	e.writeFails(c, os.ErrDeadlineExceeded)
	e.must(c.SetReadDeadline(time.Time{}))
	e.writeFails(c, os.ErrDeadlineExceeded)
	e.must(c.SetDeadline(time.Time{}))
	e.writes(c, "cleared")
	start := time.Now()
	e.must(c.SetDeadline(start.Add(200 * time.Millisecond)))
	e.readTimesOut(c)
	e.exactly(start, 200*time.Millisecond)
	e.writeFails(c, os.ErrDeadlineExceeded)
}

func expiresUnread(e *env) {
	c, s := e.pair()
	e.must(c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)))
	e.writes(s, "kept")
	time.Sleep(100 * time.Millisecond)
	e.readTimesOut(c)
	e.must(c.SetReadDeadline(time.Now().Add(time.Minute)))
	e.reads(c, "kept")
}

func writeWithoutReader(e *env) {
	c, s := e.pair()
	start := time.Now()
	e.must(c.SetWriteDeadline(start.Add(500 * time.Millisecond)))
	w := e.startWrite(c, zeros[:])
	took := e.cutShort(c, w, os.ErrDeadlineExceeded)
	e.exactly(start, 500*time.Millisecond)
	e.must(c.SetWriteDeadline(time.Time{}))
	got := 0
	buf := make([]byte, 1<<20)
	for got < took {
		n, err := e.wait(e.startRead(s, buf))
		e.must(err)
		got += n
	}
	e.must(s.SetReadDeadline(time.Now().Add(e.pause)))
	if n, err := s.Read(buf); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		e.Errorf("the peer got %d B more than the %d that Write took: %v", n, took, err)
	}
	e.must(s.SetReadDeadline(time.Time{}))
	e.writes(c, "usable")
	e.reads(s, "usable")
}

// smallBuffers sets sizes on a connection that is made: what the receiver has advertised before it does not take back.
func smallBuffers(e *env) {
	c, s := e.pair()
	e.must(c.SetWriteBuffer(4096))
	e.must(s.SetReadBuffer(4096))
	e.must(c.SetWriteDeadline(time.Now().Add(10 * e.pause)))
	n := e.cutShort(c, e.startWrite(c, zeros[:]), os.ErrDeadlineExceeded)
	if n < 4096 || n > e.window+16<<10 {
		e.Errorf("Write took %d B, want no more than the first window of %d and a little", n, e.window)
	}
	if e.exact && n != e.window+4096 {
		e.Errorf("Write took %d B, want the first window and the send buffer, %d", n, e.window+4096)
	}
	e.must(c.SetWriteDeadline(time.Time{}))
	e.must(c.Close())
	if got, err := e.drains(s); got != n || err != nil {
		e.Errorf("the peer got %d B, %v, want %d", got, err, n)
	}
}
