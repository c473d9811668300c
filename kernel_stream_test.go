package gosimnet_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing/iotest"
	"time"
)

// streamRows are about how streams end, and what errors say.
func streamRows() []row {
	return []row{
		{id: "T02", name: "a clean close is a bare EOF after the last byte", run: cleanClose},
		{id: "V13", name: "EOF comes after the data and not with it", run: dataThenEOF},
		{id: "T03", name: "the first write after the peer's close succeeds", run: writeAfterPeerClosed},
		{id: "T04", name: "a close with unread data resets, met by Read", run: resetMetByRead},
		{id: "T04", name: "a close with unread data resets, met by Write", run: resetMetByWrite},
		{id: "T05", name: "a response is readable before the reset", run: responseBeforeReset},
		{id: "T06", name: "linger 0 resets", run: lingerZero},
		{id: "T06", name: "a reset wakes a blocked Read", run: resetWakesRead},
		{id: "V01", name: "a reset ends a blocked Write", run: resetEndsWrite},
		{id: "V01", name: "CloseWrite ends a blocked Write", run: closeWriteEndsWrite},
		{id: "V01", name: "a deadline ends a blocked Write", run: deadlineEndsWrite},
		{id: "V02", name: "Close ends a blocked Write, and what it took arrives", run: closeEndsWrite},
		{id: "V03", name: "a close with unread data throws away what is queued", run: resetDropsQueue},
		{id: "T22", name: "what was written before Close arrives", run: closeDelivers},
		{id: "T07", name: "CloseWrite ends one direction", run: closeWrite},
		{id: "T07", name: "CloseWrite after both ends have closed", run: closeWriteNotConnected},
		{id: "T07b", name: "CloseRead wakes Read and tells the peer nothing", run: closeRead},
		{id: "T07b", name: "data resets a connection that is shut in both directions", run: bothShut},
		{id: "T07b", name: "CloseRead after CloseWrite with data unread", run: bothShutUnread},
		{id: "V14", name: "a peer that only closed its writing takes writes", run: writeToHalfClosed},
		{id: "T11", name: "Close ends a blocked Read", run: closeEndsRead},
		{id: "T11", name: "calls after Close", run: useAfterClose},
		{id: "V04", name: "one of many concurrent Closes succeeds", run: manyCloses},
		{id: "T19", name: "reads of nothing", run: readNothing},
		{id: "T19", name: "writes of nothing", run: writeNothing},
		{id: "V09", name: "ReadFull cut short", run: readFullCutShort},
		{id: "T20", name: "two Writes are one Read", run: noBoundaries},
		{id: "T18", name: "concurrent Writes do not interleave", run: writesDoNotInterleave},
		{id: "T24", name: "a stream's interfaces", run: streamInterfaces},
		{id: "T24", name: "what ends a copy to or from a stream is the error of a copy", run: copiesEnd},
		{id: "V06", name: "a dialled socket's interfaces", run: socketInterfaces},
	}
}

var (
	errReadReset  = sysError("read", syscall.ECONNRESET)
	errWriteReset = sysError("write", syscall.ECONNRESET)
	errPipe       = sysError("write", syscall.EPIPE)
)

func cleanClose(e *env) {
	c, s := e.pair()
	e.writes(s, "abc")
	e.must(s.Close())
	e.reads(c, "abc")
	for range 3 {
		e.ends(c)
	}
}

func dataThenEOF(e *env) {
	c, s := e.pair()
	e.writes(s, "abc")
	e.must(s.Close())
	e.settle()
	e.reads(c, "abc")
	e.ends(c)
}

func writeAfterPeerClosed(e *env) {
	c, s := e.pair()
	e.must(s.Close())
	e.ends(c)
	e.writes(c, "one")
	e.settle()
	e.ends(c)
	for range 3 {
		e.writeFails(c, errPipe)
		e.ends(c)
	}
}

// resetBy makes a connection that the server has reset: it closed with data that it had not read.
func resetBy(e *env) stream {
	c, s := e.pair()
	e.writes(c, "unread")
	e.settle()
	e.must(s.Close())
	e.settle()
	return c
}

func resetMetByRead(e *env) {
	c := resetBy(e)
	e.readFails(c, errReadReset)
	e.ends(c)
	e.writeFails(c, errPipe)
	e.ends(c)
}

func resetMetByWrite(e *env) {
	c := resetBy(e)
	e.writeFails(c, errWriteReset)
	e.ends(c)
	e.writeFails(c, errPipe)
}

func responseBeforeReset(e *env) {
	c, s := e.pair()
	e.writes(c, "request")
	e.settle()
	e.writes(s, "response")
	e.must(s.Close())
	e.settle()
	e.reads(c, "response")
	e.readFails(c, errReadReset)
	e.ends(c)
	e.writeFails(c, errPipe)
}

func lingerZero(e *env) {
	c, s := e.pair()
	e.writes(s, "response")
	e.settle()
	e.must(s.SetLinger(0))
	e.must(s.Close())
	e.settle()
	e.reads(c, "response")
	e.readFails(c, errReadReset)
	e.ends(c)
	e.writeFails(c, errPipe)
}

func resetWakesRead(e *env) {
	c, s := e.pair()
	r := e.startRead(c, make([]byte, 1))
	e.blocked(r)
	e.must(s.SetLinger(0))
	e.must(s.Close())
	n, err := e.wait(r)
	e.fails(n, err, connError(c, "read", errReadReset))
	e.ends(c)
	e.writeFails(c, errPipe)
}

// blockedWrite is a connection with a Write that waits for room, because nobody reads more than one byte of it.
func blockedWrite(e *env) (c, s stream, w *call) {
	c, s = e.pair()
	w = e.startWrite(c, zeros[:])
	_, err := e.wait(e.startRead(s, make([]byte, 1)))
	e.must(err)
	e.blocked(w)
	return c, s, w
}

// getsRest checks that the peer gets what a blocked Write took, and the end.
func (e *env) getsRest(s stream, took int) {
	e.Helper()
	if n, err := e.drains(s); 1+n != took || err != nil {
		e.Errorf("the peer got %d B, %v, want %d", 1+n, err, took)
	}
}

func resetEndsWrite(e *env) {
	c, s, w := blockedWrite(e)
	e.must(s.SetLinger(0))
	e.must(s.Close())
	e.cutShort(c, w, errWriteReset)
	e.writeFails(c, errPipe)
	e.ends(c)
}

func closeWriteEndsWrite(e *env) {
	c, s, w := blockedWrite(e)
	e.must(c.CloseWrite())
	took := e.cutShort(c, w, errPipe)
	e.getsRest(s, took)
}

func deadlineEndsWrite(e *env) {
	c, s, w := blockedWrite(e)
	e.must(c.SetWriteDeadline(past))
	took := e.cutShort(c, w, os.ErrDeadlineExceeded)
	e.must(c.Close())
	e.getsRest(s, took)
}

func closeEndsWrite(e *env) {
	c, s, w := blockedWrite(e)
	e.must(c.Close())
	took := e.cutShort(c, w, net.ErrClosed)
	e.getsRest(s, took)
}

func resetDropsQueue(e *env) {
	c, s, w := blockedWrite(e)
	e.must(c.SetWriteDeadline(past))
	took := e.cutShort(c, w, os.ErrDeadlineExceeded)
	e.writes(s, "unread")
	e.settle()
	e.must(c.Close())
	e.settle()
	n, err := e.drains(s)
	e.same(err, connError(s, "read", errReadReset))
	if n <= 0 || 1+n >= took {
		e.Errorf("the peer got %d B of %d, want what its buffer held", 1+n, took)
	}
	if e.sim != nil && 1+n != e.window {
		e.Errorf("the peer got %d B, want its receive buffer of %d", 1+n, e.window)
	}
}

func closeDelivers(e *env) {
	c, s := e.pair()
	sent := bytes.Repeat([]byte("0123456789"), 30000)
	w := e.startWrite(c, sent)
	if n, err := e.wait(w); n != len(sent) || err != nil {
		e.Fatalf("Write: %d, %v", n, err)
	}
	start := time.Now()
	e.must(c.Close())
	e.exactly(start, 0)
	var got []byte
	_, err := e.wait(e.start(func() (_ int, err error) { got, err = io.ReadAll(s); return }))
	if !bytes.Equal(got, sent) || err != nil {
		e.Errorf("the peer got %d B, %v, want all %d", len(got), err, len(sent))
	}
}

func closeWrite(e *env) {
	c, s := e.pair()
	e.writes(c, "question")
	e.must(c.CloseWrite())
	var got []byte
	_, err := e.wait(e.start(func() (_ int, err error) { got, err = io.ReadAll(s); return }))
	if string(got) != "question" || err != nil {
		e.Fatalf("ReadAll: %q, %v", got, err)
	}
	e.writes(s, "answer")
	e.reads(c, "answer")
	e.writeFails(c, errPipe)
	e.must(c.CloseWrite())
	e.must(s.Close())
	e.ends(c)
	e.must(c.Close())
	e.same(c.CloseWrite(), connError(c, "close", net.ErrClosed))
	e.same(c.CloseRead(), connError(c, "close", net.ErrClosed))
}

func closeWriteNotConnected(e *env) {
	c, s := e.pair()
	e.must(s.CloseWrite())
	e.ends(c)
	e.must(c.CloseWrite())
	e.ends(s)
	if e.exact { // the acknowledgement is not back
		e.must(c.CloseWrite())
	}
	e.settle()
	for _, end := range []stream{c, s} {
		e.same(end.CloseWrite(), connError(end, "close", sysError("shutdown", syscall.ENOTCONN)))
		e.same(end.CloseRead(), connError(end, "close", sysError("shutdown", syscall.ENOTCONN)))
		e.ends(end)
	}
}

func closeRead(e *env) {
	c, s := e.pair()
	r := e.startRead(c, make([]byte, 10))
	e.blocked(r)
	e.must(c.CloseRead())
	if n, err := e.wait(r); n != 0 || err != io.EOF {
		e.Fatalf("the blocked Read: %d, %v, want 0, EOF", n, err)
	}
	e.ends(c)
	for _, word := range []string{"one", "two"} {
		e.writes(s, word)
		e.settle()
		e.reads(c, word)
		e.ends(c)
	}
	e.writes(c, "three")
	e.reads(s, "three")
}

// bothShut shuts an end in both directions, in either order, and lets the peer write then.
func bothShut(e *env) {
	for _, shut := range []func(c stream) error{
		func(c stream) error { return errors.Join(c.CloseRead(), c.CloseWrite()) },
		func(c stream) error { return errors.Join(c.CloseWrite(), c.CloseRead()) },
	} {
		c, s := e.pair()
		e.must(shut(c))
		e.ends(c)
		e.ends(s)
		e.writes(s, "one")
		e.settle()
		e.readFails(c, errReadReset)
		e.ends(c)
		e.writeFails(c, errPipe)
		e.ends(s)
		e.writeFails(s, errPipe)
		e.same(s.CloseWrite(), connError(s, "close", sysError("shutdown", syscall.ENOTCONN)))
	}
}

// bothShutUnread has data unread before it is shut; the end of the stream, alone, does no harm.
func bothShutUnread(e *env) {
	c, s := e.pair()
	e.writes(s, "one")
	e.settle()
	e.must(errors.Join(c.CloseWrite(), c.CloseRead()))
	e.settle()
	e.writes(s, "two")
	e.settle()
	e.reads(c, "one")
	e.readFails(c, errReadReset)
	e.ends(c)

	c, s = e.pair()
	e.must(errors.Join(c.CloseWrite(), c.CloseRead()))
	e.settle()
	e.must(s.CloseWrite())
	e.settle()
	e.ends(c)
	e.ends(s)
	e.writeFails(c, errPipe)
}

func writeToHalfClosed(e *env) {
	c, s := e.pair()
	e.must(s.CloseWrite())
	e.ends(c)
	for _, word := range []string{"one", "two", "three"} {
		e.writes(c, word)
		e.settle()
		e.reads(s, word)
	}
}

func closeEndsRead(e *env) {
	c, _ := e.pair()
	r := e.startRead(c, make([]byte, 1))
	e.blocked(r)
	e.must(c.Close())
	n, err := e.wait(r)
	e.fails(n, err, connError(c, "read", net.ErrClosed))
}

func useAfterClose(e *env) {
	c, s := e.pair()
	local, remote := c.LocalAddr().String(), c.RemoteAddr().String()
	e.writes(s, "data")
	e.settle()
	e.must(c.Close())
	e.readFails(c, net.ErrClosed)
	e.writeFails(c, net.ErrClosed)
	n, err := c.Read(nil)
	e.fails(n, err, connError(c, "read", net.ErrClosed))
	n, err = c.Write(nil)
	e.fails(n, err, connError(c, "write", net.ErrClosed))
	e.same(c.Close(), connError(c, "close", net.ErrClosed))
	for _, err := range []error{
		c.SetDeadline(past), c.SetReadDeadline(past), c.SetWriteDeadline(past), c.SetDeadline(time.Time{}), c.SetReadBuffer(4096), c.SetWriteBuffer(4096),
		c.SetReadBuffer(-1), c.SetWriteBuffer(0),
	} {
		e.same(err, setError(c, net.ErrClosed))
	}
	for _, err := range []error{
		c.SetLinger(0), c.SetNoDelay(true), c.SetKeepAlive(true), c.SetKeepAlivePeriod(time.Second), c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true}),
		c.SetKeepAlivePeriod(40000 * time.Second),
	} {
		e.same(err, connError(c, "set", net.ErrClosed))
	}
	if c.LocalAddr().String() != local || c.RemoteAddr().String() != remote {
		e.Errorf("addresses after Close: %v, %v, want %v, %v", c.LocalAddr(), c.RemoteAddr(), local, remote)
	}
}

func manyCloses(e *env) {
	c, _ := e.pair()
	var closers sync.WaitGroup
	var succeeded, failed atomic.Int32
	for range 20 {
		closers.Go(func() {
			switch err := c.Close(); {
			case err == nil:
				succeeded.Add(1)
			case errors.Is(err, net.ErrClosed):
				failed.Add(1)
			}
		})
	}
	closers.Wait()
	if succeeded.Load() != 1 || failed.Load() != 19 {
		e.Errorf("%d Closes succeeded and %d were net.ErrClosed, want 1 and 19", succeeded.Load(), failed.Load())
	}
}

// nothing checks a Read or Write of no bytes that has nothing to say.
func (e *env) nothing(what string, f func([]byte) (int, error)) {
	e.Helper()
	if n, err := f(nil); n != 0 || err != nil {
		e.Errorf("%s: %d, %v, want 0, nil", what, n, err)
	}
}

func readNothing(e *env) {
	c, s := e.pair()
	e.nothing("Read with nothing there", c.Read)
	e.must(c.SetReadDeadline(past))
	e.nothing("Read past the deadline", c.Read)
	e.must(c.SetReadDeadline(time.Time{}))
	e.must(s.Close())
	e.ends(c)
	e.nothing("Read at EOF", c.Read)
	e.nothing("Read after a reset", resetBy(e).Read)
}

func writeNothing(e *env) {
	c, s := e.pair()
	e.nothing("Write", c.Write)
	e.must(c.SetWriteDeadline(past))
	n, err := c.Write(nil)
	e.fails(n, err, connError(c, "write", os.ErrDeadlineExceeded))
	e.must(c.SetWriteDeadline(time.Time{}))
	e.nothing("Write after the deadline was cleared", c.Write)
	e.must(s.SetLinger(0))
	e.must(s.Close())
	e.settle()
	e.readFails(c, errReadReset)
	n, err = c.Write(nil)
	e.fails(n, err, connError(c, "write", errPipe))
	c = resetBy(e)
	n, err = c.Write(nil)
	e.fails(n, err, connError(c, "write", errWriteReset))
}

func readFullCutShort(e *env) {
	c, s := e.pair()
	e.writes(s, "abc")
	e.must(s.Close())
	n, err := e.wait(e.start(func() (int, error) { return io.ReadFull(c, make([]byte, 10)) }))
	if n != 3 || err != io.ErrUnexpectedEOF {
		e.Errorf("ReadFull, cut short by a clean close: %d, %v", n, err)
	}
	c, s = e.pair()
	e.writes(s, "abc")
	e.settle()
	e.must(s.SetLinger(0))
	e.must(s.Close())
	n, err = e.wait(e.start(func() (int, error) { return io.ReadFull(c, make([]byte, 10)) }))
	if n != 3 {
		e.Errorf("ReadFull, cut short by a reset: %d B, want 3", n)
	}
	e.same(err, connError(c, "read", errReadReset))
}

func noBoundaries(e *env) {
	c, s := e.pair()
	e.writes(s, "abc")
	e.writes(s, "def")
	e.settle()
	e.reads(c, "abcdef")
}

func writesDoNotInterleave(e *env) {
	const size = 8 << 20
	c, s := e.pair()
	for _, letter := range []string{"a", "b"} {
		go c.Write([]byte(strings.Repeat(letter, size)))
	}
	got := make([]byte, 2*size)
	if _, err := e.wait(e.start(func() (int, error) { return io.ReadFull(s, got) })); err != nil {
		e.Fatal(err)
	}
	if first := bytes.Count(got[:size], got[:1]); first != size {
		e.Errorf("%d B of the first %d are of the first Write", first, size)
	}
	if second := bytes.Count(got[size:], got[2*size-1:]); second != size || got[0] == got[size] {
		e.Errorf("%d B of the last %d are of the second Write", second, size)
	}
}

func streamInterfaces(e *env) {
	c, s := e.pair()
	for _, end := range []net.Conn{c, s} {
		if _, is := end.(net.PacketConn); is {
			e.Errorf("a %T is a net.PacketConn", end)
		}
		// The simulator has no file descriptors, and offers none.
		if _, is := end.(syscall.Conn); is != (e.sim == nil) {
			e.Errorf("a %T is a syscall.Conn: %v", end, is)
		}
	}
	if is, err := c.MultipathTCP(); is || err != nil {
		e.Errorf("MultipathTCP: %v, %v", is, err)
	}
	e.must(c.SetNoDelay(false))
	e.must(c.SetKeepAlive(false))
	e.must(c.SetKeepAlivePeriod(time.Minute))
	e.must(c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: time.Second, Count: 3}))
	for _, err := range []error{
		c.SetKeepAlivePeriod(32768 * time.Second), c.SetKeepAliveConfig(net.KeepAliveConfig{Interval: 32768 * time.Second}), c.SetKeepAliveConfig(net.KeepAliveConfig{Count: 128}),
	} {
		e.same(err, connError(c, "set", os.NewSyscallError("setsockopt", syscall.EINVAL)))
	}
	n, err := c.ReadFrom(strings.NewReader("by ReadFrom"))
	if n != 11 || err != nil {
		e.Fatalf("ReadFrom: %d, %v", n, err)
	}
	e.must(c.CloseWrite())
	var got bytes.Buffer
	n, err = s.WriteTo(&got)
	if n != 11 || err != nil || got.String() != "by ReadFrom" {
		e.Errorf("WriteTo: %d, %v, %q", n, err, got.String())
	}
}

func copiesEnd(e *env) {
	spent := errors.New("the other end of the copy has failed")
	c, s := e.pair()
	n, err := c.ReadFrom(io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(spent)))
	e.copyFails(n, err, 3, connError(c, "readfrom", spent))
	n, err = s.WriteTo(failing{spent})
	e.copyFails(n, err, 0, connError(s, "writeto", spent))
	e.writes(c, "def")
	n, err = s.WriteTo(failing{io.EOF})
	e.copyFails(n, err, 0, io.EOF)
	e.must(s.SetReadDeadline(past))
	n, err = s.WriteTo(io.Discard)
	e.copyFails(n, err, 0, connError(s, "writeto", connError(s, "read", os.ErrDeadlineExceeded)))
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		e.Errorf("%v is no time-out", err)
	}

	c = resetBy(e)
	n, err = c.WriteTo(io.Discard)
	e.copyFails(n, err, 0, connError(c, "writeto", connError(c, "read", errReadReset)))
	n, err = c.ReadFrom(strings.NewReader("abc"))
	e.copyFails(n, err, 0, connError(c, "readfrom", connError(c, "write", errPipe)))
	e.must(c.Close())
	n, err = c.ReadFrom(strings.NewReader("abc"))
	e.copyFails(n, err, 0, connError(c, "readfrom", connError(c, "write", net.ErrClosed)))
}

// copyFails checks how much a copy has copied, and why it ended.
func (e *env) copyFails(n int64, err error, much int64, want error) {
	e.Helper()
	if n != much || err == nil || err.Error() != want.Error() {
		e.Errorf("a copy has copied %d: %v, want %d: %v", n, err, much, want)
	}
}

// failing takes nothing.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func socketInterfaces(e *env) {
	server := e.socket(e.server, e.serverIP)
	c, err := e.client.Dial("udp", server.LocalAddr().String())
	e.must(err)
	defer c.Close()
	if _, is := c.(net.PacketConn); !is {
		e.Errorf("a dialled %T is not a net.PacketConn", c)
	}
	if _, is := c.(socket); !is {
		e.Errorf("a dialled %T lacks methods of *net.UDPConn", c)
	}
}
