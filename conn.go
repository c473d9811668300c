package gosimnet

import (
	"cmp"
	"io"
	"math"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

// Conn is one end of a stream ("tcp", "tcp4", "tcp6"): a net.Conn that behaves as *net.TCPConn does on Linux, see the package documentation.
// All methods may be called by several goroutines at once; concurrent Writes do not interleave. Errors are *net.OpError,
// but for io.EOF, with the identities that package net has.
//
// It has no SyscallConn: there is no file descriptor, and code that finds the method expects one.
type Conn struct {
	// What every call needs comes first, so that it takes few cache lines.
	net       *Simnet
	out, in   *half
	host      *Host
	peer      *Conn
	failure   error // to be reported once
	up        bool  // the handshake is over at this end
	closed    bool  // by Close
	forgotten bool  // its host lost power: nobody knows of this connection
	reset     bool  // by an RST, a time-out, or Close with RST
	readShut  bool
	lingering bool  // Close waits for the last acknowledgement
	heard     int64 // when the last sign of life of the peer came

	sendSize, receiveSize int // buffers, 0: the network's

	readBy, writeBy deadline

	network   string
	port      uint16 // local
	dialed    bool   // this end dialled
	ownPort   bool   // the port is to be given back
	place     int32  // in the host's list, or -1
	linger    int32  // seconds; -1: not set
	named     atomic.Pointer[names]
	circuit   *Circuit
	listener  *Listener
	dialling  *dial // that makes it, until the handshake is over
	synAnswer event // the SYN/ACK is to be repeated
	answered  int64 // when it was sent last
	answers   int   // how often it was repeated
	closers   waitlist
	keepAlive keepAlive
}

// stream is both ends of a connection and its two directions, allocated together.
type stream struct {
	client, server Conn
	up, down       half
}

// newStream makes the client's end and both directions; the server's end comes to life when the SYN arrives.
func (s *Simnet) newStream() *stream {
	st := &stream{}
	st.client = Conn{net: s, peer: &st.server, out: &st.up, in: &st.down, dialed: true}
	st.server = Conn{net: s, peer: &st.client, out: &st.down, in: &st.up}
	st.client.init()
	st.server.init()
	return st
}

// init readies an end that knows its peer and its directions.
func (c *Conn) init() {
	c.linger, c.place = -1, -1
	c.readBy.init(c.net, nil, &c.in.readers, 0, 1)
	c.writeBy.init(c.net, nil, &c.out.room, 0, 2)
	c.keepAlive.configure(net.KeepAliveConfig{Enable: true})
}

func (c *Conn) sendBuffer() int    { return orDefault(c.sendSize, c.net.cfg.SendBuffer) }
func (c *Conn) receiveBuffer() int { return orDefault(c.receiveSize, c.net.cfg.ReceiveBuffer) }

func orDefault(v, def int) int {
	if v == 0 {
		return def
	}
	return v
}

// opErr makes the error of a call.
func (c *Conn) opErr(op string, err error) error {
	return opError(op, c.network, c.LocalAddr(), c.RemoteAddr(), err)
}

// setErr is the error of a call that changes a deadline or a buffer: package net names only the local address there.
func (c *Conn) setErr(err error) error { return opError("set", c.network, nil, c.LocalAddr(), err) }

// enter locks the network for a call on an open connection.
func (c *Conn) enter() error {
	if err := c.net.enter(); err != nil {
		return err
	}
	if c.closed {
		c.net.leave()
		return net.ErrClosed
	}
	return nil
}

// gone is why the connection is of no use to this end any more.
func (c *Conn) gone() error {
	if c.closed || c.net.closed || c.forgotten {
		return net.ErrClosed
	}
	return nil
}

// names is an end's addresses, made when somebody asks for them.
type names struct{ local, remote *net.TCPAddr }

func (c *Conn) names() *names {
	if n := c.named.Load(); n != nil {
		return n
	}
	local, remote := c.out.src, c.out.dst
	if c.listener != nil && c.listener.at.Addr().Is6() {
		local, remote = mapped(local), mapped(remote)
	}
	c.named.CompareAndSwap(nil, &names{tcpAddr(local), tcpAddr(remote)})
	return c.named.Load()
}

// LocalAddr is a *net.TCPAddr, the same each time; it stays valid after Close. As in package net, IPv4 addresses of a connection that was accepted
// by a listener of both families have the form that is mapped into IPv6, which prints the same.
func (c *Conn) LocalAddr() net.Addr {
	if c.circuit != nil {
		return c.circuit.local
	}
	return c.names().local
}

// RemoteAddr is a *net.TCPAddr, the same each time; it stays valid after Close.
func (c *Conn) RemoteAddr() net.Addr {
	if c.circuit != nil {
		return c.circuit.remote
	}
	return c.names().remote
}

// Read takes what has arrived, at least one byte, waiting for it until the deadline. It returns io.EOF, bare, after the peer's last byte, and
// ECONNRESET or ETIMEDOUT once if the connection ended otherwise. Data that has arrived comes first, an expired
// deadline before everything but Close. An empty b returns 0 at once.
func (c *Conn) Read(b []byte) (int, error) {
	if err := c.enter(); err != nil {
		return 0, c.opErr("read", err)
	}
	n, err := c.outcome(c.read(b))
	c.net.leave()
	if err != nil && err != io.EOF {
		err = c.opErr("read", err)
	}
	return n, err
}

func (c *Conn) read(b []byte) (int, error) {
	for {
		switch {
		case c.gone() != nil:
			return 0, c.gone()
		case len(b) == 0:
			return 0, nil
		case c.readBy.expired():
			return 0, os.ErrDeadlineExceeded
		case c.in.unread() > 0 && !c.in.reading:
			return c.in.read(b), nil
		case c.in.unread() > 0:
			c.net.yield()
			continue
		case c.failure != nil:
			return 0, c.report("read")
		case c.in.finArrived || c.readShut || c.reset:
			c.net.wakeFirst(&c.in.readers)
			return 0, io.EOF
		}
		c.readBy.await(callRead)
	}
}

// outcome is what a call comes to that has done its work, or has failed.
func (c *Conn) outcome(n int, err error) (int, error) { return c.net.outcome(c.host, n, err) }

// report gives out the failure, once.
func (c *Conn) report(call string) error {
	err := c.failure
	c.failure = nil
	return sysErr(call, err.(syscall.Errno))
}

// read copies what has arrived into b. A large copy is made outside the lock, by one reader at a time.
func (h *half) read(b []byte) int {
	s := h.net
	n := min(len(b), h.unread())
	if s.cfg.ChopReads && n > 1 {
		n = 1 + int(draw(s.seed, h.key, drawChop, h.taken)%uint64(n))
	}
	if n <= inlineBytes {
		h.data.peek(b[:n])
	} else {
		h.readOutside(b[:n])
	}
	h.taken += uint64(n)
	h.data.skip(&s.buffers, n)
	if h.discarded {
		h.data.clear(&s.buffers)
	}
	if !h.readers.empty() && (h.unread() > 0 || h.finArrived || h.reader.reset || h.reader.readShut) {
		s.wakeFirst(&h.readers)
	}
	h.opened()
	return n
}

// readOutside copies into b without the lock.
func (h *half) readOutside(b []byte) {
	h.reading = true
	var room [16][]byte // the writer may append to the queue meanwhile
	parts := h.data.window(room[:0], 0, len(b))
	h.net.leave()
	for ; len(parts) > 0; parts = parts[1:] {
		b = b[copy(b, parts[0]):]
	}
	h.net.mu.Lock()
	h.reading = false
}

// Write puts b into the send buffer and returns when all of it is there; it waits for room until the deadline, and reports how much went in. What was
// accepted is delivered unless the connection ends with an error. The first Write after the peer has closed succeeds; when its answer, an RST,
// has come back, Writes return EPIPE. After CloseWrite they do so too. An empty b sends nothing, but returns the errors that other calls would.
func (c *Conn) Write(b []byte) (int, error) {
	if err := c.enter(); err != nil {
		return 0, c.opErr("write", err)
	}
	n, err := c.outcome(c.write(b))
	c.net.leave()
	if err != nil {
		err = c.opErr("write", err)
	}
	return n, err
}

func (c *Conn) write(b []byte) (n int, err error) {
	h := c.out
	if err := h.takeTurn(); err != nil {
		return 0, err
	}
	defer h.passTurn()
	for {
		if err := c.writable(); err != nil {
			return n, err
		}
		if n == len(b) {
			return n, nil
		}
		h.settle(c.net.t)
		if room := h.free(); room > 0 {
			n += h.accept(b[n:min(len(b), n+room)])
			continue
		}
		c.waitForRoom()
	}
}

// takeTurn waits until the writers that came before are done.
func (h *half) takeTurn() error {
	c, turn := h.writer, h.writers
	for h.writers++; h.writes != turn; {
		switch {
		case c.gone() != nil:
			return c.gone()
		case !h.stalled():
			c.net.yield()
			continue
		}
		c.net.await(&h.turns, priority{host: c.host, line: h.line, key: h.key, n: afterCalls + turn}, callWrite)
	}
	return nil
}

// stalled reports whether the Write whose turn it is waits.
func (h *half) stalled() bool {
	if h.blocked {
		return true
	}
	for w := range h.turns.all() {
		if w.by.n == afterCalls+h.writes {
			return true
		}
	}
	return false
}

// passTurn lets the next writer write. It need not be the first that waits: others may have been woken for another reason, and wait anew.
func (h *half) passTurn() {
	if h.writes++; h.writes == h.writers {
		return
	}
	for w := range h.turns.all() {
		if w.by.n == afterCalls+h.writes {
			h.net.wakeNext(w)
		}
	}
}

// writable is why nothing more can be written, or nil.
func (c *Conn) writable() error {
	switch {
	case c.gone() != nil:
		return c.gone()
	case c.writeBy.expired():
		return os.ErrDeadlineExceeded
	case c.failure != nil:
		return c.report("write")
	case c.reset || c.out.finQueued:
		return sysErr("write", syscall.EPIPE)
	}
	return nil
}

// waitForRoom waits for an acknowledgement, the deadline or the end.
func (c *Conn) waitForRoom() {
	h := c.out
	h.blocked = true
	h.attend()
	c.writeBy.await(callWrite)
	h.blocked = false
}

// accept puts b, for which there is room, into the send buffer. A large copy is made outside the lock.
func (h *half) accept(b []byte) int {
	switch {
	case h.discarded:
	case len(b) <= inlineBytes:
		h.data.write(&h.net.buffers, b)
	case !h.acceptOutside(b):
		return 0
	}
	h.written += uint64(len(b))
	h.transmit()
	return len(b)
}

// acceptOutside copies b without the lock, and reports whether it may still be sent.
func (h *half) acceptOutside(b []byte) bool {
	s := h.net
	q := byteQueue{head: s.buffers.chain(len(b))}
	s.leave()
	q.head.fill(b)
	s.mu.Lock()
	over := h.writer.closed || s.closed || h.dead || h.finQueued
	if over || h.discarded {
		q.clear(&s.buffers)
	} else {
		h.data.link(q.head)
	}
	return !over
}

// ReadFrom implements io.ReaderFrom: it writes what it reads from r until r ends, and returns how much that was. As with package net, an error of either
// side comes in one more *net.OpError.
func (c *Conn) ReadFrom(r io.Reader) (int64, error) {
	n, err := io.CopyBuffer(struct{ io.Writer }{c}, r, make([]byte, bulkChunk))
	return n, c.copyErr("readfrom", err)
}

// WriteTo implements io.WriterTo: it reads until the end of the stream and writes to w. Errors are as of ReadFrom.
func (c *Conn) WriteTo(w io.Writer) (int64, error) {
	n, err := io.CopyBuffer(w, struct{ io.Reader }{c}, make([]byte, bulkChunk))
	return n, c.copyErr("writeto", err)
}

// copyErr is the error of a copy: package net wraps all but io.EOF.
func (c *Conn) copyErr(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return c.opErr(op, err)
}

// Close ends the connection and returns at once, unless SetLinger made it wait. What was written is still delivered,
// and then the end of the stream; but if data has arrived that was not read, or after SetLinger(0), the peer gets an RST, and what it has not received is lost.
// Blocked calls return net.ErrClosed, and so does a second Close.
func (c *Conn) Close() error {
	if err := c.enter(); err != nil {
		return c.opErr("close", err)
	}
	defer c.net.leave()
	c.close()
	return nil
}

// close ends this end, which has not been closed.
func (c *Conn) close() {
	c.closed = true
	c.net.note(&c.out.flow, EventClose, "")
	c.wakeAll(true)
	unread := c.in.unread() > 0
	c.in.discard()
	c.keepAlive.stop()
	switch {
	case c.reset || c.forgotten:
		c.settled()
	case unread || c.linger == 0:
		c.abort()
	default:
		c.out.finQueued = true
		c.out.transmit()
		c.waitLinger()
		c.settled()
	}
}

// wakeAll wakes everybody who waits at this end.
func (c *Conn) wakeAll(now bool) {
	c.net.wakeAll(&c.in.readers, now)
	c.net.wakeAll(&c.out.room, now)
	c.net.wakeAll(&c.out.turns, now)
	c.net.wakeAll(&c.closers, now)
}

// waitLinger waits, after SetLinger of some seconds, until everything has been acknowledged or they are over.
func (c *Conn) waitLinger() {
	if c.linger <= 0 {
		return
	}
	until := deadline{at: c.net.t + int64(c.linger)*int64(time.Second)}
	until.init(c.net, c.host, &c.closers, c.out.key, 3)
	c.lingering = true
	c.out.settle(c.net.t)
	for !c.out.finAcked && !c.out.dead && !c.net.closed && !until.expired() {
		c.out.attend()
		until.await(callClose)
		c.out.settle(c.net.t)
	}
	c.lingering = false
}

// abort ends the connection with an RST to the peer.
func (c *Conn) abort() {
	c.net.sendReset(&c.out.flow, c.peer)
	c.reset = true
	c.out.kill()
	c.settled()
}

// sendReset sends an RST along a flow to a connection's end.
func (s *Simnet) sendReset(f *flow, to *Conn) {
	p := s.newPacket(f, kindRST)
	p.conn = to
	s.send(p)
}

// gotReset is the arrival of an RST. After the peer's clean close it is EPIPE to writers and nothing to readers. A dial whose
// SYN/ACK was lost is refused by it.
func (c *Conn) gotReset(now int64) {
	switch {
	case c.reset || c.forgotten:
		return
	case c.dialed && !c.up:
		c.dialling.refused(now)
		return
	}
	c.net.log(record{at: now, kind: EventReset, flow: &c.in.flow})
	if c.in.finArrived {
		c.end(nil)
		return
	}
	c.end(syscall.ECONNRESET)
}

// fail ends the connection at this end, because nothing was heard of the peer.
func (c *Conn) fail(errno syscall.Errno, now int64) {
	c.net.trace.add(c.net, record{at: now, kind: EventTimeout, flow: &c.out.flow})
	c.end(errno)
}

// end is the end of a connection by an RST or a time-out.
func (c *Conn) end(failure error) {
	c.reset = true
	if !c.closed {
		c.failure = failure
	}
	if !c.up {
		c.listener.drop(c)
	}
	c.out.kill()
	c.keepAlive.stop()
	c.wakeAll(false)
	c.settled()
	c.peer.pathChanged(c.net.t)
}

// settled takes the connection off its host's books when nothing more can come of it there, and nobody waits.
func (c *Conn) settled() {
	if c.place < 0 || c.lingering || !(c.reset || c.forgotten || c.closed && c.out.finArrived) {
		return
	}
	h := c.host
	last := h.conns[len(h.conns)-1]
	h.conns[c.place], last.place = last, c.place
	h.conns[len(h.conns)-1] = nil
	h.conns = h.conns[:len(h.conns)-1]
	c.place = -1
	if c.ownPort {
		h.giveBack(c.out.src, c.closed && !c.reset && !c.in.finArrived)
	}
}

// enlist puts the connection on its host's books.
func (c *Conn) enlist() {
	c.place = int32(len(c.host.conns))
	c.host.conns = append(c.host.conns, c)
	if c.ownPort {
		c.host.take(c.port)
	}
}

// deaf reports whether what arrives is answered with RST.
func (c *Conn) deaf() bool { return c.forgotten || c.reset }

// probed is the arrival of a keep-alive or window probe. As on Linux, which drops it as a duplicate, it is
// no sign of life.
func (c *Conn) probed(p *packet, now int64) {
	if c.deaf() {
		c.net.sendReset(&c.out.flow, c.peer)
		return
	}
	c.in.acknowledge(p.number, p.issued, now)
}

// pathChanged looks at the connection after a fault on its way, or after its peer's end, unless nothing can come of it any more.
func (c *Conn) pathChanged(now int64) {
	if c.reset || c.forgotten || !c.up || c.place < 0 {
		return
	}
	c.out.pathChanged(now)
	if !c.closed {
		c.keepAlive.watch(now)
	}
}

// forget is the end of the connection because its host loses power: without a word to the peer.
func (c *Conn) forget(closing bool) {
	if c.forgotten {
		return
	}
	c.forgotten = true
	c.out.kill()
	c.keepAlive.stop()
	c.net.agenda.remove(&c.synAnswer)
	c.in.discard()
	if c.circuit != nil {
		c.circuit.release()
	}
	c.wakeAll(closing)
	c.settled()
	if !closing {
		c.peer.pathChanged(c.net.t)
	}
}

// CloseWrite sends the end of the stream after what was written; Read goes on. A second call does nothing. After both
// directions have ended it is ENOTCONN.
func (c *Conn) CloseWrite() error {
	if err := c.enter(); err != nil {
		return c.opErr("close", err)
	}
	defer c.net.leave()
	switch {
	case c.gone() != nil:
		return c.opErr("close", c.gone())
	case c.over():
		return c.opErr("close", sysErr("shutdown", syscall.ENOTCONN))
	case c.out.finQueued:
		return nil
	}
	c.net.note(&c.out.flow, EventClose, "write")
	c.out.finQueued = true
	c.out.transmit()
	c.net.wakeAll(&c.out.room, true)
	return nil
}

// over reports whether both directions have ended, as this end knows, or the connection has been reset.
func (c *Conn) over() bool {
	c.out.settle(c.net.t)
	return c.reset || c.out.finAcked && c.in.finArrived
}

// CloseRead makes Read return io.EOF when there is nothing to read. As on Linux it tells the peer nothing,
// and what arrives later can still be read; but after CloseWrite, too, it resets the connection at both ends.
func (c *Conn) CloseRead() error {
	if err := c.enter(); err != nil {
		return c.opErr("close", err)
	}
	defer c.net.leave()
	if c.over() {
		return c.opErr("close", sysErr("shutdown", syscall.ENOTCONN))
	}
	c.readShut = true
	c.net.wakeAll(&c.in.readers, true)
	return nil
}

// apply runs a call that changes a setting.
func (c *Conn) apply(f func()) error {
	if err := c.enter(); err != nil {
		return err
	}
	defer c.net.leave()
	if c.gone() != nil {
		return c.gone()
	}
	f()
	return nil
}

// impossible is why a setting that no socket can have is refused: first that there is no socket any more.
func (c *Conn) impossible() error {
	return cmp.Or(c.apply(func() {}), sysErr("setsockopt", syscall.EINVAL))
}

// set runs a call that changes a deadline or a buffer.
func (c *Conn) set(f func()) error {
	if err := c.apply(f); err != nil {
		return c.setErr(err)
	}
	return nil
}

// setOption runs a call that changes an option of TCP, in whose errors package net names both addresses.
func (c *Conn) setOption(f func()) error {
	if err := c.apply(f); err != nil {
		return c.opErr("set", err)
	}
	return nil
}

// SetDeadline sets both deadlines; the zero time is none, one in the past expires at once.
func (c *Conn) SetDeadline(t time.Time) error {
	return c.set(func() { c.readBy.set(t); c.writeBy.set(t) })
}

// SetReadDeadline bounds the waiting of Reads, those under way included. It stays expired until it is set anew.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.set(func() { c.readBy.set(t) }) }

// SetWriteDeadline bounds the waiting of Writes, those under way included. It stays expired until it is set anew.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.set(func() { c.writeBy.set(t) }) }

// SetLinger says what Close does with data that is not acknowledged: sec < 0, the default, delivers it in the background, 0 throws it away
// and resets, sec > 0 waits for so many seconds at most.
func (c *Conn) SetLinger(sec int) error {
	return c.setOption(func() { c.linger = int32(min(max(-1, sec), math.MaxInt32)) })
}

// MultipathTCP reports false: there is none, as with package net when the peer does not speak it.
func (c *Conn) MultipathTCP() (bool, error) { return false, nil }

// SetNoDelay does nothing: a segment leaves as soon as it is written, and there is no Nagle's algorithm.
func (c *Conn) SetNoDelay(bool) error { return c.setOption(func() {}) }

// SetReadBuffer sets how much of the peer's data this end holds unread. What is under way is not refused.
// It is an error unless bytes is from 1 to 1 GiB.
func (c *Conn) SetReadBuffer(bytes int) error {
	return c.setBuffer(bytes, func() { c.receiveSize = bytes; c.in.opened() })
}

// SetWriteBuffer sets how much written data this end holds unacknowledged. It is an error unless bytes is from 1 to 1 GiB.
func (c *Conn) SetWriteBuffer(bytes int) error {
	return c.setBuffer(bytes, func() { c.sendSize = bytes; c.out.tellWriter() })
}

func (c *Conn) setBuffer(bytes int, set func()) error {
	if bytes <= 0 || bytes > maxBuffer {
		return c.setErr(c.impossible())
	}
	return c.set(set)
}

// sortedConns lists a host's connections in canonical order.
func (h *Host) sortedConns() []*Conn {
	conns := slices.Clone(h.conns)
	slices.SortFunc(conns, func(a, b *Conn) int {
		x, y := a.out.place(a.out.to, 0, 0), b.out.place(b.out.to, 0, 0)
		return x.compare(&y)
	})
	return conns
}
