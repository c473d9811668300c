package gosimnet_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

// datagramRows are about sockets for datagrams.
func datagramRows() []row {
	return []row{
		{id: "U01", name: "a closed port is nothing to an unconnected socket", run: unconnectedToClosed},
		{id: "U02", name: "a closed port is told once, to a Read", run: refusalToRead},
		{id: "U02", name: "a closed port is told once, to a Write", run: refusalToWrite},
		{id: "U02", name: "a refusal wakes a blocked Read", run: refusalWakesRead},
		{id: "U02", name: "what comes before a refusal, and after", run: refusalOrder},
		{id: "U03", name: "the largest datagram", run: largestDatagram},
		{id: "U03", name: "a short buffer cuts a datagram", run: shortBuffer},
		{id: "U04", name: "an empty datagram", run: emptyDatagram},
		{id: "U04", name: "reads of nothing", run: readNoDatagram},
		{id: "U05", name: "a connected socket hears its peer alone", run: connectedHearsPeer},
		{id: "U05", name: "writes of the wrong kind", run: wrongWrites},
		{id: "U05", name: "a deadline comes before having nobody to write to", run: lateUnconnectedWrite},
		{id: "U05", name: "an unspecified address is the one that is bound", run: writeToUnspecified},
		{id: "U06", name: "a full queue drops the newest", run: fullQueue},
		{id: "U07", name: "a port's new owner", run: newOwner},
		{id: "V07", name: "two readers get whole datagrams", run: twoReaders},
		{id: "T08", name: "deadlines of a socket", run: socketDeadlines},
		{id: "T11", name: "a socket after Close", run: closedSocket},
	}
}

func lateUnconnectedWrite(e *env) {
	c := e.socket(e.client, e.clientIP)
	e.must(c.SetWriteDeadline(past))
	n, err := c.Write([]byte("x"))
	e.fails(n, err, &net.OpError{Op: "write", Net: "udp", Source: c.LocalAddr(), Err: os.ErrDeadlineExceeded})
}

func writeToUnspecified(e *env) {
	c := e.socket(e.server, e.otherIP)
	port := c.LocalAddr().(*net.UDPAddr).Port
	for _, to := range []net.Addr{&net.UDPAddr{IP: net.IPv4zero, Port: port}, &net.UDPAddr{Port: port}} {
		e.sendsTo(c, []byte("x"), to)
		e.gets(c, "x", c.LocalAddr())
	}
}

func (e *env) closedSocket() *net.UDPAddr { return e.udp(e.serverIP, closedPort) }

// sendsTo checks that WriteTo takes a datagram.
func (e *env) sendsTo(c net.PacketConn, b []byte, to net.Addr) {
	e.Helper()
	if n, err := c.WriteTo(b, to); n != len(b) || err != nil {
		e.Fatalf("WriteTo(%d B): %d, %v", len(b), n, err)
	}
}

// gets checks that ReadFrom returns this datagram from there.
func (e *env) gets(c net.PacketConn, want string, from net.Addr) {
	e.Helper()
	buf := make([]byte, len(want)+100)
	var a net.Addr
	n, err := e.wait(e.start(func() (n int, err error) { n, a, err = c.ReadFrom(buf); return }))
	if err != nil || string(buf[:n]) != want || !sameAddr(a, from) {
		e.Fatalf("ReadFrom: %.60q from %v, %v, want %.60q from %v", buf[:n], a, err, want, from)
	}
}

// silent checks that nothing is there to be read.
func (e *env) silent(c net.Conn) {
	e.Helper()
	e.must(c.SetReadDeadline(time.Now().Add(e.pause)))
	e.readTimesOut(c)
	e.must(c.SetReadDeadline(time.Time{}))
}

func unconnectedToClosed(e *env) {
	c := e.socket(e.client, e.clientIP)
	for range 3 {
		e.sendsTo(c, []byte("x"), e.closedSocket())
		e.settle()
	}
	e.must(c.SetReadDeadline(time.Now().Add(e.pause)))
	n, from, err := c.ReadFrom(make([]byte, 10))
	if from != nil {
		e.Errorf("ReadFrom is from %v, want nil", from)
	}
	e.fails(n, err, connError(c, "read", os.ErrDeadlineExceeded))
}

// refused is a connected socket that has met a closed port.
func (e *env) refused() socket {
	e.Helper()
	c := e.connected(e.closedSocket())
	e.writes(c, "x")
	e.settle()
	return c
}

func refusalToRead(e *env) {
	c := e.refused()
	e.readFails(c, sysError("read", syscall.ECONNREFUSED))
	e.silent(c)
	e.writes(c, "x")
	e.settle()
	n, from, err := c.ReadFrom(make([]byte, 10))
	if from != nil {
		e.Errorf("ReadFrom is from %v, want nil", from)
	}
	e.fails(n, err, connError(c, "read", sysError("recvfrom", syscall.ECONNREFUSED)))
	e.silent(c)
}

func refusalToWrite(e *env) {
	c := e.refused()
	for range 3 {
		e.writeFails(c, sysError("write", syscall.ECONNREFUSED))
		e.settle()
		e.writes(c, "x")
		e.settle()
	}
}

func refusalWakesRead(e *env) {
	c := e.connected(e.closedSocket())
	r := e.startRead(c, make([]byte, 10))
	e.blocked(r)
	start := time.Now()
	e.writes(c, "x")
	n, err := e.wait(r)
	e.took(start, e.rtt)
	e.fails(n, err, connError(c, "read", sysError("read", syscall.ECONNREFUSED)))
	e.silent(c)
}

func refusalOrder(e *env) {
	c := e.refused()
	e.nothing("Read", c.Read)
	e.must(c.SetDeadline(past))
	e.readTimesOut(c)
	e.writeFails(c, os.ErrDeadlineExceeded)
	e.must(c.SetDeadline(time.Time{}))
	n, err := c.Write(make([]byte, 65508))
	e.fails(n, err, connError(c, "write", sysError("write", syscall.EMSGSIZE)))
	e.readFails(c, sysError("read", syscall.ECONNREFUSED))

	peer := e.socket(e.server, e.serverIP)
	c = e.connected(peer.LocalAddr())
	e.writes(c, "question")
	e.gets(peer, "question", c.LocalAddr())
	e.sendsTo(peer, []byte("answer"), c.LocalAddr())
	e.must(peer.Close())
	e.writes(c, "too late")
	e.settle()
	e.readFails(c, sysError("read", syscall.ECONNREFUSED))
	e.reads(c, "answer")
}

func largestDatagram(e *env) {
	c, s := e.socket(e.client, e.clientIP), e.socket(e.server, e.serverIP)
	big := bytes.Repeat([]byte("0123456789"), 6551)[:65507]
	e.sendsTo(c, big, s.LocalAddr())
	e.gets(s, string(big), c.LocalAddr())
	n, err := c.WriteTo(append(big, '7'), s.LocalAddr())
	e.fails(n, err, &net.OpError{Op: "write", Net: "udp", Source: c.LocalAddr(), Addr: s.LocalAddr(), Err: sysError("sendto", syscall.EMSGSIZE)})
	d := e.connected(s.LocalAddr())
	n, err = d.Write(append(big, '7'))
	e.fails(n, err, connError(d, "write", sysError("write", syscall.EMSGSIZE)))
}

func shortBuffer(e *env) {
	c, s := e.socket(e.client, e.clientIP), e.socket(e.server, e.serverIP)
	for _, word := range []string{"abcdef", "ghijkl", "mnopqr"} {
		e.sendsTo(c, []byte(word), s.LocalAddr())
	}
	e.settle()
	buf := make([]byte, 3)
	if n, _, err := s.ReadFrom(buf); n != 3 || err != nil || string(buf) != "abc" {
		e.Errorf("ReadFrom: %d, %v, %q", n, err, buf)
	}
	n, oobn, flags, from, err := s.ReadMsgUDP(buf, nil)
	if n != 3 || oobn != 0 || flags&syscall.MSG_TRUNC == 0 || err != nil || string(buf) != "ghi" || !sameAddr(from, c.LocalAddr()) {
		e.Errorf("ReadMsgUDP: %d, %d, %#x, %v, %v, %q, want it cut", n, oobn, flags, from, err, buf)
	}
	e.gets(s, "mnopqr", c.LocalAddr())
}

func emptyDatagram(e *env) {
	s := e.socket(e.server, e.serverIP)
	c := e.connected(s.LocalAddr())
	e.writes(c, "")
	e.gets(s, "", c.LocalAddr())
	e.sendsTo(s, nil, c.LocalAddr())
	e.reads(c, "")
	e.writes(c, "next")
	e.gets(s, "next", c.LocalAddr())
}

func readNoDatagram(e *env) {
	s := e.socket(e.server, e.serverIP)
	c := e.connected(s.LocalAddr())
	e.nothing("Read with nothing there", c.Read)
	e.sendsTo(s, []byte("kept"), c.LocalAddr())
	e.settle()
	e.nothing("Read with a datagram there", c.Read)
	e.reads(c, "kept")
	e.writes(c, "eaten")
	e.writes(c, "next")
	e.settle()
	if n, from, err := s.ReadFrom(nil); n != 0 || err != nil || !sameAddr(from, c.LocalAddr()) {
		e.Errorf("ReadFrom: %d, %v, %v", n, from, err)
	}
	e.gets(s, "next", c.LocalAddr())
}

func connectedHearsPeer(e *env) {
	s, stranger := e.socket(e.server, e.serverIP), e.socket(e.server, e.otherIP)
	c := e.connected(s.LocalAddr())
	if !sameAddr(c.RemoteAddr(), s.LocalAddr()) {
		e.Errorf("RemoteAddr is %v, want %v", c.RemoteAddr(), s.LocalAddr())
	}
	e.sendsTo(stranger, []byte("stranger"), c.LocalAddr())
	e.settle()
	e.sendsTo(s, []byte("peer"), c.LocalAddr())
	e.gets(c, "peer", s.LocalAddr())
	e.silent(c)
}

func wrongWrites(e *env) {
	c, s := e.socket(e.client, e.clientIP), e.socket(e.server, e.serverIP)
	d := e.connected(s.LocalAddr())
	n, err := d.WriteTo([]byte("x"), s.LocalAddr())
	e.fails(n, err, connError(d, "write", net.ErrWriteToConnected))
	n, err = d.WriteToUDP([]byte("x"), nil)
	e.fails(n, err, &net.OpError{Op: "write", Net: "udp", Source: d.LocalAddr(), Err: net.ErrWriteToConnected})
	if a := c.RemoteAddr(); a != nil {
		e.Errorf("RemoteAddr of an unconnected socket is %v, want nil", a)
	}
	n, err = c.Write([]byte("x"))
	e.fails(n, err, connError(c, "write", sysError("write", syscall.EDESTADDRREQ)))
	n, err = c.WriteTo([]byte("x"), e.tcp(e.serverIP, closedPort))
	e.fails(n, err, &net.OpError{Op: "write", Net: "udp", Source: c.LocalAddr(), Addr: e.tcp(e.serverIP, closedPort), Err: syscall.EINVAL})
	n, err = c.WriteTo([]byte("x"), e.udp(e.serverIP, 0))
	e.fails(n, err, &net.OpError{Op: "write", Net: "udp", Source: c.LocalAddr(), Addr: e.udp(e.serverIP, 0), Err: sysError("sendto", syscall.EINVAL)})
}

func fullQueue(e *env) {
	c, s := e.socket(e.client, e.clientIP), e.socket(e.server, e.serverIP)
	if e.sim == nil {
		e.must(s.SetReadBuffer(106496)) // Linux's default, whatever this machine's is
	}
	b := make([]byte, 1000)
	for i := range 2000 {
		binary.BigEndian.PutUint32(b, uint32(i))
		e.sendsTo(c, b, s.LocalAddr())
	}
	e.settle()
	e.must(s.SetReadDeadline(time.Now().Add(e.pause)))
	kept := 0
	for ; ; kept++ {
		n, _, err := s.ReadFrom(b)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		e.must(err)
		if got := binary.BigEndian.Uint32(b); n != 1000 || got != uint32(kept) {
			e.Fatalf("number %d arrived as number %d, want the first ones in order", got, kept)
		}
	}
	if kept == 0 || kept > 1000 || e.sim != nil && kept != 92 {
		e.Errorf("%d of 2000 datagrams were kept, want 92", kept)
	}
}

func newOwner(e *env) {
	c, old := e.socket(e.client, e.clientIP), e.socket(e.server, e.serverIP)
	e.sendsTo(c, []byte("to the old"), old.LocalAddr())
	e.settle()
	e.must(old.Close())
	e.sendsTo(c, []byte("to nobody"), old.LocalAddr())
	e.settle()
	p, err := e.server.ListenPacket("udp", old.LocalAddr().String())
	e.must(err)
	defer p.Close()
	e.sendsTo(c, []byte("to the new"), old.LocalAddr())
	e.gets(p, "to the new", c.LocalAddr())
}

func twoReaders(e *env) {
	c, s := e.socket(e.client, e.clientIP), e.socket(e.server, e.serverIP)
	words := []string{"first", "second datagram"}
	var readers []*call
	bufs := make([][]byte, 2)
	for i := range bufs {
		bufs[i] = make([]byte, 100)
		readers = append(readers, e.start(func() (n int, err error) { n, _, err = s.ReadFrom(bufs[i]); return }))
	}
	e.settle()
	for _, w := range words {
		e.sendsTo(c, []byte(w), s.LocalAddr())
	}
	var got []string
	for i, r := range readers {
		n, err := e.wait(r)
		e.must(err)
		got = append(got, string(bufs[i][:n]))
	}
	if !(got[0] == words[0] && got[1] == words[1] || got[0] == words[1] && got[1] == words[0]) {
		e.Errorf("the readers got %q, want one each of %q", got, words)
	}
}

func socketDeadlines(e *env) {
	s := e.socket(e.server, e.serverIP)
	c := e.connected(s.LocalAddr())
	e.sendsTo(s, []byte("kept"), c.LocalAddr())
	e.settle()
	e.must(c.SetDeadline(past))
	e.readTimesOut(c)
	e.writeFails(c, os.ErrDeadlineExceeded)
	e.must(c.SetDeadline(time.Time{}))
	e.reads(c, "kept")
	r := e.startRead(c, make([]byte, 1))
	e.blocked(r)
	start := time.Now()
	e.must(c.SetReadDeadline(start.Add(100 * time.Millisecond)))
	n, err := e.wait(r)
	e.exactly(start, 100*time.Millisecond)
	e.fails(n, err, connError(c, "read", os.ErrDeadlineExceeded))
}

func closedSocket(e *env) {
	s := e.socket(e.server, e.serverIP)
	c := e.connected(s.LocalAddr())
	r := e.startRead(c, make([]byte, 1))
	e.blocked(r)
	e.must(c.Close())
	n, err := e.wait(r)
	e.fails(n, err, connError(c, "read", net.ErrClosed))
	e.readFails(c, net.ErrClosed)
	e.writeFails(c, net.ErrClosed)
	n, err = c.Read(nil)
	e.fails(n, err, connError(c, "read", net.ErrClosed))
	e.same(c.SetDeadline(past), setError(c, net.ErrClosed))
	e.same(c.SetReadBuffer(4096), setError(c, net.ErrClosed))
	e.same(c.Close(), connError(c, "close", net.ErrClosed))

	e.must(s.Close())
	_, _, err = s.ReadFrom(make([]byte, 1))
	e.same(err, connError(s, "read", net.ErrClosed))
	_, err = s.WriteTo([]byte("x"), c.LocalAddr())
	e.same(err, &net.OpError{Op: "write", Net: "udp", Source: s.LocalAddr(), Addr: c.LocalAddr(), Err: net.ErrClosed})
}
