package gosimnet_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

// row is one behaviour of the kernel's network. Its id groups rows about one thing: T, V and U are streams, dials and
// datagrams, N are partitions and power.
type row struct {
	id, name string
	run      func(e *env)
	cfg      *gosimnet.SimNetConfig // of the simulated network; nil: the defaults
}

// sharedRows are the behaviours that loopback can show: the kernel and the simulator must agree on every one.
func sharedRows() []row {
	return slices.Concat(streamRows(), deadlineRows(), dialRows(), listenRows(), datagramRows())
}

// simulatedRows are those that take a network which breaks, or time that is exact.
func simulatedRows() []row {
	return slices.Concat(limitRows(), silenceRows(), partitionRows(), powerRows())
}

// TestKernelSimulated runs all behaviours against the simulator, between two hosts 10 ms apart.
func TestKernelSimulated(t *testing.T) {
	for _, r := range slices.Concat(sharedRows(), simulatedRows()) {
		t.Run(r.id+" "+r.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { r.run(simulated(t, r.cfg)) })
		})
	}
}

// TestKernelSimulatedLoopback runs them within one simulated host.
func TestKernelSimulatedLoopback(t *testing.T) {
	for _, r := range sharedRows() {
		t.Run(r.id+" "+r.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { r.run(simulatedLoopback(t, r.cfg)) })
		})
	}
}

// TestKernelSimulatedOutside runs them outside of a bubble, where the simulator lives by the wall's clock.
func TestKernelSimulatedOutside(t *testing.T) {
	if testing.Short() {
		t.Skip("the wall's clock takes its time")
	}
	inRealTime(t, func(t *testing.T, _ int, r row) { r.run(simulatedOutside(t, r.cfg)) })
}

// TestKernelLoopback runs the behaviours that loopback can show against the kernel itself.
func TestKernelLoopback(t *testing.T) {
	if testing.Short() {
		t.Skip("real sockets take real time")
	}
	inRealTime(t, func(t *testing.T, i int, r row) { r.run(loopback(t, i)) })
}

// inRealTime runs the shared rows, eight at a time, because they sleep more than they work.
func inRealTime(t *testing.T, run func(t *testing.T, i int, r row)) {
	rows := sharedRows()
	next := make(chan int)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for i := range next {
				t.Run(rows[i].id+" "+rows[i].name, func(t *testing.T) { run(t, i, rows[i]) })
			}
		})
	}
	for i := range rows {
		next <- i
	}
	close(next)
	workers.Wait()
}

// env is where a row runs: the hosts of a client and of a server, simulated or real.
type env struct {
	*testing.T
	sim                         *gosimnet.Simnet // nil on the kernel's loopback
	exact                       bool             // time is virtual
	client, server              gosimnet.Network
	clientIP, serverIP, otherIP string // the server has two
	foreignIP                   string // nobody's
	rtt                         time.Duration
	pause                       time.Duration // in which all that is under way arrives
	window                      int           // that a receiver advertises at first
	dialer                      func(net.Dialer) dialer
	silence                     func(e *env) net.Addr     // an address that never answers
	listenShort                 func(e *env) net.Listener // with a backlog of 1, which a simulated network's config has to say
}

// dialer is what net.Dialer and gosimnet.Dialer share.
type dialer interface {
	Dial(network, address string) (net.Conn, error)
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// stream is what *net.TCPConn and *gosimnet.Conn share.
type stream interface {
	net.Conn
	io.ReaderFrom
	io.WriterTo
	CloseRead() error
	CloseWrite() error
	SetLinger(sec int) error
	SetNoDelay(bool) error
	SetKeepAlive(bool) error
	SetKeepAlivePeriod(time.Duration) error
	SetKeepAliveConfig(net.KeepAliveConfig) error
	SetReadBuffer(bytes int) error
	SetWriteBuffer(bytes int) error
	MultipathTCP() (bool, error)
}

// socket is what *net.UDPConn and *gosimnet.PacketConn share.
type socket interface {
	net.Conn
	net.PacketConn
	ReadFromUDP([]byte) (int, *net.UDPAddr, error)
	WriteToUDP([]byte, *net.UDPAddr) (int, error)
	ReadFromUDPAddrPort([]byte) (int, netip.AddrPort, error)
	WriteToUDPAddrPort([]byte, netip.AddrPort) (int, error)
	ReadMsgUDP(b, oob []byte) (n, oobn, flags int, addr *net.UDPAddr, err error)
	WriteMsgUDP(b, oob []byte, addr *net.UDPAddr) (n, oobn int, err error)
	SetReadBuffer(bytes int) error
	SetWriteBuffer(bytes int) error
}

const (
	closedPort = 9        // where nobody listens
	flood      = 64 << 20 // bytes that no pair of buffers holds
)

var past = time.Unix(0, 0)

// zeros are there to be written by all rows, and changed by none.
var zeros [flood]byte

// simulated makes two hosts. The server has two addresses.
func simulated(t *testing.T, cfg *gosimnet.SimNetConfig) *env {
	e := &env{
		T: t, sim: newNet(t, cfg), exact: true, serverIP: "10.0.9.1", otherIP: "10.0.9.5", foreignIP: "192.0.2.1",
		rtt: 20 * time.Millisecond, pause: 200 * time.Millisecond, window: 256 << 10,
		silence: isolatedHost, listenShort: (*env).listen,
	}
	client := e.sim.Host("client")
	server, err := e.sim.AddHost("server", netip.MustParseAddr(e.serverIP), netip.MustParseAddr(e.otherIP))
	e.must(err)
	e.client, e.server, e.clientIP = client, server, client.Addrs()[0].String()
	e.dialer = func(d net.Dialer) dialer { return simulatedDialer(client, d) }
	return e
}

// simulatedLoopback has the client and the server on one host, at the addresses that it alone knows.
func simulatedLoopback(t *testing.T, cfg *gosimnet.SimNetConfig) *env {
	e := simulated(t, cfg)
	server := e.sim.Host("server")
	e.client, e.rtt = server, 20*time.Microsecond
	e.clientIP, e.serverIP, e.otherIP = "127.0.0.1", "127.9.0.1", "127.9.0.5"
	e.dialer = func(d net.Dialer) dialer { return simulatedDialer(server, d) }
	return e
}

// simulatedOutside has no time to lose: its hosts are 1 ms apart.
func simulatedOutside(t *testing.T, cfg *gosimnet.SimNetConfig) *env {
	fast := gosimnet.SimNetConfig{}
	if cfg != nil {
		fast = *cfg
	}
	fast.MinHop = time.Millisecond
	e := simulated(t, &fast)
	e.exact, e.rtt, e.pause = false, 2*time.Millisecond, 250*time.Millisecond
	return e
}

// isolatedHost is an address that the client can send to, and nobody answers.
func isolatedHost(e *env) net.Addr {
	silent := e.sim.Host("silent")
	e.alter("silent", gosimnet.ISOLATE)
	return e.tcp(silent.Addrs()[0].String(), closedPort)
}

// simulatedDialer is a host's dialer with the fields of package net's.
func simulatedDialer(h *gosimnet.Host, d net.Dialer) dialer {
	sd := h.Dialer()
	sd.Timeout, sd.Deadline, sd.LocalAddr = d.Timeout, d.Deadline, d.LocalAddr
	sd.KeepAlive, sd.KeepAliveConfig = d.KeepAlive, d.KeepAliveConfig
	return sd
}

// must ends the row at an error.
func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// settle lets everything arrive that is under way.
func (e *env) settle() { time.Sleep(e.pause) }

// tcp and udp make addresses as the kernel does.
func (e *env) tcp(ip string, port int) *net.TCPAddr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(ip), uint16(port)))
}

func (e *env) udp(ip string, port int) *net.UDPAddr {
	return net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(ip), uint16(port)))
}

// listen announces a free port of the server.
func (e *env) listen() net.Listener {
	e.Helper()
	return e.listenAt("tcp", net.JoinHostPort(e.serverIP, "0"))
}

func (e *env) listenAt(network, address string) net.Listener {
	e.Helper()
	l, err := e.server.Listen(network, address)
	e.must(err)
	e.Cleanup(func() { l.Close() })
	return l
}

// dial connects the client to a listener.
func (e *env) dial(l net.Listener) stream {
	e.Helper()
	return e.dialAddr(e.dialer(net.Dialer{}), l.Addr())
}

func (e *env) dialAddr(d dialer, to net.Addr) stream {
	e.Helper()
	c, err := d.Dial("tcp", to.String())
	e.must(err)
	e.Cleanup(func() { c.Close() })
	return c.(stream)
}

// accept takes the listener's next connection.
func (e *env) accept(l net.Listener) stream {
	e.Helper()
	var c net.Conn
	_, err := e.wait(e.start(func() (_ int, err error) { c, err = l.Accept(); return 0, err }))
	e.must(err)
	e.Cleanup(func() { c.Close() })
	return c.(stream)
}

// pair is a connection: the client's end and the server's.
func (e *env) pair() (c, s stream) {
	e.Helper()
	return e.pairBy(net.Dialer{})
}

func (e *env) pairBy(d net.Dialer) (c, s stream) {
	e.Helper()
	l := e.listen()
	c = e.dialAddr(e.dialer(d), l.Addr())
	return c, e.accept(l)
}

// sockets of the client and the server.
func (e *env) socket(n gosimnet.Network, ip string) socket {
	e.Helper()
	c, err := n.ListenPacket("udp", net.JoinHostPort(ip, "0"))
	e.must(err)
	e.Cleanup(func() { c.Close() })
	return c.(socket)
}

// connected is a socket of the client that has dialled an address.
func (e *env) connected(to net.Addr) socket {
	e.Helper()
	c, err := e.client.Dial("udp", to.String())
	e.must(err)
	e.Cleanup(func() { c.Close() })
	return c.(socket)
}

// call is a call under way.
type call struct {
	done  chan struct{}
	n     int
	err   error
	ended time.Time
}

// start makes a call in a goroutine of its own.
func (e *env) start(f func() (int, error)) *call {
	c := &call{done: make(chan struct{})}
	go func() {
		c.n, c.err = f()
		c.ended = time.Now()
		close(c.done)
	}()
	return c
}

func (e *env) startRead(c io.Reader, b []byte) *call {
	return e.start(func() (int, error) { return c.Read(b) })
}

func (e *env) startWrite(c io.Writer, b []byte) *call {
	return e.start(func() (int, error) { return c.Write(b) })
}

// wait is the outcome of a call, which must not take a minute.
func (e *env) wait(c *call) (int, error) {
	e.Helper()
	return e.within(time.Minute, c)
}

func (e *env) within(limit time.Duration, c *call) (int, error) {
	e.Helper()
	select {
	case <-c.done:
	case <-time.After(limit):
		e.Fatalf("still blocked after %v", limit)
	}
	return c.n, c.err
}

// blocked checks that a call is still under way when everything else has settled.
func (e *env) blocked(c *call) {
	e.Helper()
	e.settle()
	e.unfinished(c)
}

func (e *env) unfinished(c *call) {
	e.Helper()
	select {
	case <-c.done:
		e.Fatalf("returned %d, %v, want it to block", c.n, c.err)
	default:
	}
}

// reads checks that one Read returns all of this, without an error.
func (e *env) reads(c io.Reader, want string) {
	e.Helper()
	buf := make([]byte, len(want)+100)
	n, err := e.wait(e.startRead(c, buf))
	if string(buf[:n]) != want || err != nil {
		e.Fatalf("Read: %.60q, %v, want %.60q", buf[:n], err, want)
	}
}

// ends checks that Read is at the end of the stream: a bare io.EOF.
func (e *env) ends(c io.Reader) {
	e.Helper()
	n, err := e.wait(e.startRead(c, make([]byte, 100)))
	if n != 0 || err != io.EOF {
		e.Fatalf("Read: %d, %v, want 0, EOF", n, err)
	}
}

// drains reads to the end, bytes and their error.
func (e *env) drains(c io.Reader) (n int, err error) {
	e.Helper()
	return e.wait(e.start(func() (int, error) {
		n, err := io.Copy(io.Discard, struct{ io.Reader }{c})
		return int(n), err
	}))
}

// writes checks that Write takes all of this.
func (e *env) writes(c io.Writer, s string) {
	e.Helper()
	n, err := e.wait(e.startWrite(c, []byte(s)))
	if n != len(s) || err != nil {
		e.Fatalf("Write(%.60q): %d, %v", s, n, err)
	}
}

// readFails and writeFails check that a call returns nothing but an error.
func (e *env) readFails(c net.Conn, want error) {
	e.Helper()
	n, err := e.wait(e.startRead(c, make([]byte, 100)))
	e.fails(n, err, connError(c, "read", want))
}

func (e *env) writeFails(c net.Conn, want error) {
	e.Helper()
	n, err := e.wait(e.startWrite(c, []byte("w")))
	e.fails(n, err, connError(c, "write", want))
}

func (e *env) fails(n int, err error, want *net.OpError) {
	e.Helper()
	if n != 0 {
		e.Errorf("n is %d, want 0", n)
	}
	e.same(err, want)
}

// cutShort checks the outcome of a call that had begun to write: some bytes, not all, and the error.
func (e *env) cutShort(c net.Conn, w *call, want error) int {
	e.Helper()
	n, err := e.wait(w)
	if n <= 0 || n >= flood {
		e.Errorf("Write took %d B, want some and not all", n)
	}
	e.same(err, connError(c, "write", want))
	return n
}

func sysError(call string, errno syscall.Errno) error { return os.NewSyscallError(call, errno) }

// connError is the error of a call on a connection, with both its addresses.
func connError(c net.Conn, op string, err error) *net.OpError {
	return &net.OpError{Op: op, Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}

// setError is the error of a call that changes a deadline or a buffer, which names the local address alone.
func setError(c net.Conn, err error) *net.OpError {
	return &net.OpError{Op: "set", Net: c.LocalAddr().Network(), Addr: c.LocalAddr(), Err: err}
}

func dialError(from, to net.Addr, err error) *net.OpError {
	return &net.OpError{Op: "dial", Net: to.Network(), Source: from, Addr: to, Err: err}
}

func listenError(op string, at net.Addr, err error) *net.OpError {
	return &net.OpError{Op: op, Net: at.Network(), Addr: at, Err: err}
}

// worded is an error of package net that has words of its own for another error, and nothing else to know it by.
type worded struct {
	error
	text    string
	timeout bool
}

func (w worded) Error() string   { return w.text }
func (w worded) Timeout() bool   { return w.timeout }
func (w worded) Temporary() bool { return w.timeout }
func (w worded) Unwrap() error   { return w.error }

// same checks every field of an error, its text, and what it is to errors.Is.
func (e *env) same(err error, want *net.OpError) {
	e.Helper()
	got, ok := err.(*net.OpError)
	if !ok {
		e.Fatalf("got %v, a %T, want %v", err, err, want)
	}
	for _, bad := range []struct {
		differs   bool
		what      string
		got, want any
	}{
		{got.Op != want.Op, "Op", got.Op, want.Op},
		{got.Net != want.Net, "Net", got.Net, want.Net},
		{!sameAddr(got.Source, want.Source), "Source", got.Source, want.Source},
		{!sameAddr(got.Addr, want.Addr), "Addr", got.Addr, want.Addr},
		{got.Error() != want.Error(), "text", got, want},
		{got.Timeout() != want.Timeout(), "Timeout", got.Timeout(), want.Timeout()},
		{got.Temporary() != want.Temporary(), "Temporary", got.Temporary(), want.Temporary()},
		{!sameInner(got.Err, want.Err), "Err", fmt.Sprintf("%#v", got.Err), fmt.Sprintf("%#v", want.Err)},
	} {
		if bad.differs {
			e.Errorf("%v: its %s is %v, want %v", err, bad.what, bad.got, bad.want)
		}
	}
}

// sameAddr compares kinds and text; a nil address is the same as nil alone, and not as a nil pointer in an interface.
func sameAddr(a, b net.Addr) bool {
	if a == nil || b == nil {
		return a == b
	}
	return reflect.TypeOf(a) == reflect.TypeOf(b) && a.String() == b.String()
}

// sameInner compares what a *net.OpError wraps: a system call and its errno, or an identity.
func sameInner(got, want error) bool {
	switch want := want.(type) {
	case *os.SyscallError:
		got, ok := got.(*os.SyscallError)
		return ok && got.Syscall == want.Syscall && got.Err == want.Err
	case worded:
		if _, is := want.error.(*net.AddrError); is {
			return reflect.TypeOf(got) == reflect.TypeOf(want.error)
		}
		return errors.Is(got, want.error)
	}
	return errors.Is(got, want)
}

// took checks that something took a time, to the microsecond in a bubble, where each arrival
// comes a nanosecond or two later. Elsewhere it is only not to take less.
func (e *env) took(since time.Time, want time.Duration) {
	e.Helper()
	e.at(time.Since(since), want)
}

func (e *env) at(got, want time.Duration) {
	e.Helper()
	if got < want || e.exact && got >= want+time.Microsecond {
		e.Errorf("took %v, want %v", got, want)
	}
}

// exactly is took for what happens at the very instant, such as the end of a deadline.
func (e *env) exactly(since time.Time, want time.Duration) {
	e.Helper()
	if got := time.Since(since); got < want || e.exact && got != want {
		e.Errorf("took %v, want %v", got, want)
	}
}

// alter and cut do to the simulated network what loopback cannot.
func (e *env) alter(host string, a gosimnet.Alteration) {
	e.Helper()
	_, err := e.sim.AlterHost(host, a)
	e.must(err)
}

// part stops everything between the two hosts.
func (e *env) part() (heal func()) {
	e.Helper()
	heal, err := e.sim.Partition(gosimnet.DropPackets, []string{"client"}, []string{"server"})
	e.must(err)
	return heal
}

// cut stops one direction.
func (e *env) cut(from, to string) (heal func()) {
	e.Helper()
	heal, err := e.sim.CutLink(gosimnet.DropPackets, from, to)
	e.must(err)
	return heal
}

// sent lists when a host has sent packets of a kind, counted from an instant.
func (e *env) sent(host, what string, since time.Time) (times []time.Duration) {
	for ev := range e.sim.Trace() {
		if ev.Kind == gosimnet.EventSend && ev.From == host && ev.What == what && !ev.Time.Before(since) {
			times = append(times, ev.Time.Sub(since))
		}
	}
	return times
}

// sentAt checks when a host has sent packets of a kind.
func (e *env) sentAt(host, what string, since time.Time, want ...time.Duration) {
	e.Helper()
	got := e.sent(host, what, since)
	if len(got) != len(want) {
		e.Errorf("%s sent %d %s packets at %v, want %v", host, len(got), what, got, want)
		return
	}
	for i := range got {
		e.at(got[i], want[i])
	}
}
