package gosimnet_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/glycerine/gosimnet"
)

// dialRows are about dials and their contexts.
func dialRows() []row {
	return []row{
		{id: "T01", name: "a closed port refuses", run: closedPortRefuses},
		{id: "T14", name: "a context cancelled before", run: cancelledBefore},
		{id: "T14", name: "a context that ran out before", run: ranOutBefore},
		{id: "N", name: "a dial that runs out of time", run: ranOutMeanwhile},
		{id: "N", name: "a context cancelled meanwhile", run: cancelledMeanwhile},
		{id: "T14b", name: "a context cancelled after", run: cancelledAfter},
		{id: "T17", name: "a local port that is in use", run: localPortInUse},
		{id: "T17", name: "a local port in TIME_WAIT", run: localPortInTimeWait},
		{id: "T17", name: "a local port is free after the peer closed first", run: localPortAfterPeerClosed},
		{id: "T17", name: "a local port is free after a reset", run: localPortAfterReset},
		{id: "T17", name: "a local port that somebody listens on", run: localPortListened},
		{id: "T17", name: "a local port without an address is free only if it is at all addresses", run: localPortElsewhere},
		{id: "T17", name: "a local port that accepted connections have", run: localPortAccepted},
		{id: "T17", name: "a local address of nobody's", run: foreignLocalAddress},
		{id: "T17", name: "a local address of another kind", run: mismatchedLocalAddress},
		{id: "T17", name: "a local address decides about the family", run: localFamily},
		{id: "T17", name: "a local address of the other family", run: wrongLocalFamily},
		{id: "T15", name: "an unspecified address is the host in both families", run: dialUnspecified},
	}
}

// listenRows are about listeners and addresses.
func listenRows() []row {
	return []row{
		{id: "T12", name: "a listener's deadline", run: listenerDeadline},
		{id: "T12", name: "Close ends a blocked Accept", run: closeEndsAccept},
		{id: "T13", name: "dials and writes need nobody in Accept", run: nobodyAccepts},
		{id: "V11", name: "connections are accepted in order", run: acceptedInOrder},
		{id: "T13", name: "a listener's Close resets what was not accepted", run: closeListener},
		{id: "T13", name: "Accept returns a connection that its client has closed", run: acceptClosed},
		{id: "T13", name: "Accept returns a connection that its client has reset", run: acceptReset},
		{id: "N", name: "a full backlog does not answer", run: fullBacklog, cfg: &gosimnet.SimNetConfig{Backlog: 1}},
		{id: "T15", name: "types and names of addresses", run: addresses},
		{id: "T15", name: "IPv6", run: addressesOfIPv6},
		{id: "T15", name: "an address of the other family", run: wrongFamily},
		{id: "T15", name: "sockets of both families map IPv4 addresses into IPv6", run: mappedAddresses},
		{id: "V05", name: "a connection has the concrete address that was dialled", run: concreteAddress},
		{id: "T16", name: "an address in use", run: addressInUse},
		{id: "T16", name: "a port that a dial has", run: listenOnDialled},
		{id: "T16", name: "a port is free again at once", run: listenAgain},
		{id: "T16", name: "ports of streams and of datagrams are apart", run: portSpaces},
		{id: "T16", name: "an address of nobody's", run: foreignAddress},
	}
}

var (
	errRefused   = sysError("connect", syscall.ECONNREFUSED)
	errInUse     = sysError("bind", syscall.EADDRINUSE)
	errForeign   = sysError("bind", syscall.EADDRNOTAVAIL)
	errCancelled = worded{context.Canceled, "operation was canceled", false}
	errRanOut    = worded{context.DeadlineExceeded, "i/o timeout", true}
)

func closedPortRefuses(e *env) {
	to := e.tcp(e.serverIP, closedPort)
	start := time.Now()
	_, err := e.client.Dial("tcp", to.String())
	e.took(start, e.rtt)
	e.same(err, dialError(nil, to, errRefused))
	from := e.tcp(e.clientIP, 0)
	_, err = e.dialer(net.Dialer{LocalAddr: from}).Dial("tcp", to.String())
	e.same(err, dialError(from, to, errRefused))
	_, err = e.client.Dial("tcp4", to.String())
	e.same(err, &net.OpError{Op: "dial", Net: "tcp4", Addr: to, Err: errRefused})
	for _, itself := range []*net.TCPAddr{{Port: closedPort}, e.tcp("0.0.0.0", closedPort), e.tcp("127.0.0.1", closedPort)} {
		_, err = e.client.Dial("tcp", itself.String())
		e.same(err, dialError(nil, itself, errRefused))
	}
}

func cancelledBefore(e *env) {
	l := e.listen()
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("the cause"))
	start := time.Now()
	_, err := e.client.DialContext(ctx, "tcp", l.Addr().String())
	e.exactly(start, 0)
	e.same(err, dialError(nil, l.Addr(), errCancelled))
}

func ranOutBefore(e *env) {
	l := e.listen()
	ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	_, err := e.client.DialContext(ctx, "tcp", l.Addr().String())
	e.same(err, dialError(nil, l.Addr(), errRanOut))
	_, late := e.dialer(net.Dialer{Deadline: time.Now().Add(-time.Second)}).Dial("tcp", l.Addr().String())
	e.same(late, dialError(nil, l.Addr(), errRanOut))
	for _, err := range []error{err, late} {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			e.Errorf("%v is os.ErrDeadlineExceeded, want context.DeadlineExceeded alone", err)
		}
	}
}

// ranOut checks the error of a dial that ran out of time meanwhile: what package net says it is to errors.Is is
// chance, and the simulator says both.
func (e *env) ranOut(err error, from, to net.Addr) {
	e.Helper()
	deadline, ctx := errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded)
	identity := context.DeadlineExceeded
	if deadline {
		identity = os.ErrDeadlineExceeded
	}
	e.same(err, dialError(from, to, worded{identity, "i/o timeout", true}))
	if e.sim != nil && !(deadline && ctx) {
		e.Errorf("%v is os.ErrDeadlineExceeded: %v, context.DeadlineExceeded: %v, want both", err, deadline, ctx)
	}
}

func ranOutMeanwhile(e *env) {
	to := e.silence(e)
	const d = 200 * time.Millisecond
	start := time.Now()
	_, err := e.dialer(net.Dialer{Timeout: d}).Dial("tcp", to.String())
	e.exactly(start, d)
	e.ranOut(err, nil, to)

	start = time.Now()
	_, err = e.dialer(net.Dialer{Deadline: start.Add(d)}).Dial("tcp", to.String())
	e.exactly(start, d)
	e.ranOut(err, nil, to)

	start = time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	_, err = e.client.DialContext(ctx, "tcp", to.String())
	e.exactly(start, d)
	e.ranOut(err, nil, to)
}

func cancelledMeanwhile(e *env) {
	to := e.silence(e)
	ctx, cancel := context.WithCancel(context.Background())
	start := time.Now()
	time.AfterFunc(300*time.Millisecond, cancel)
	_, err := e.client.DialContext(ctx, "tcp", to.String())
	e.exactly(start, 300*time.Millisecond)
	e.same(err, dialError(nil, to, errCancelled))
}

func cancelledAfter(e *env) {
	l := e.listen()
	ctx, cancel := context.WithCancel(context.Background())
	c, err := e.client.DialContext(ctx, "tcp", l.Addr().String())
	e.must(err)
	defer c.Close()
	s := e.accept(l)
	cancel()
	e.settle()
	e.writes(c, "ping")
	e.reads(s, "ping")
	e.writes(s, "pong")
	e.reads(c, "pong")
}

func localPortInUse(e *env) {
	c, _ := e.pair()
	l := e.listen()
	_, err := e.dialer(net.Dialer{LocalAddr: c.LocalAddr()}).Dial("tcp", l.Addr().String())
	e.same(err, dialError(c.LocalAddr(), l.Addr(), errInUse))
}

func localPortInTimeWait(e *env) {
	l := e.listen()
	c := e.dial(l)
	s := e.accept(l)
	e.must(c.Close())
	e.ends(s)
	e.must(s.Close())
	e.settle()
	_, err := e.dialer(net.Dialer{LocalAddr: c.LocalAddr()}).Dial("tcp", l.Addr().String())
	e.same(err, dialError(c.LocalAddr(), l.Addr(), errInUse))
	if !e.exact {
		return
	}
	time.Sleep(time.Minute)
	e.redials(l, c)
}

// redials checks that a dial from a connection's local port succeeds.
func (e *env) redials(l net.Listener, c net.Conn) {
	e.Helper()
	again := e.dialAddr(e.dialer(net.Dialer{LocalAddr: c.LocalAddr()}), l.Addr())
	if !sameAddr(again.LocalAddr(), c.LocalAddr()) {
		e.Errorf("the dial is from %v, want %v", again.LocalAddr(), c.LocalAddr())
	}
	s := e.accept(l)
	e.writes(again, "again")
	e.reads(s, "again")
}

func localPortAfterPeerClosed(e *env) {
	l := e.listen()
	c := e.dial(l)
	e.must(e.accept(l).Close())
	e.ends(c)
	e.must(c.Close())
	e.settle()
	e.redials(l, c)
}

func localPortAfterReset(e *env) {
	l := e.listen()
	c := e.dial(l)
	s := e.accept(l)
	e.must(c.SetLinger(0))
	e.must(c.Close())
	e.settle()
	e.redials(l, c)
	e.readFails(s, errReadReset)
}

func localPortListened(e *env) {
	l := e.listen()
	own, err := e.client.Listen("tcp", e.clientIP+":0")
	e.must(err)
	defer own.Close()
	_, err = e.dialer(net.Dialer{LocalAddr: own.Addr()}).Dial("tcp", l.Addr().String())
	e.same(err, dialError(own.Addr(), l.Addr(), errInUse))
}

// elsewhere is an address of the client's own that it does not send from.
const elsewhere = "127.0.0.9:0"

func localPortElsewhere(e *env) {
	l, s := e.listen(), e.socket(e.server, e.serverIP)
	own, err := e.client.Listen("tcp", elsewhere)
	e.must(err)
	defer own.Close()
	port := own.Addr().(*net.TCPAddr).Port
	_, err = e.dialer(net.Dialer{LocalAddr: &net.TCPAddr{Port: port}}).Dial("tcp", l.Addr().String())
	e.same(err, dialError(&net.TCPAddr{Port: port}, l.Addr(), errInUse))
	e.must(e.dialAddr(e.dialer(net.Dialer{LocalAddr: e.tcp(e.clientIP, port)}), l.Addr()).Close())

	at := e.socket(e.client, "127.0.0.9").LocalAddr().(*net.UDPAddr)
	_, err = e.dialer(net.Dialer{LocalAddr: &net.UDPAddr{Port: at.Port}}).Dial("udp", s.LocalAddr().String())
	e.same(err, &net.OpError{Op: "dial", Net: "udp", Source: &net.UDPAddr{Port: at.Port}, Addr: s.LocalAddr(), Err: errInUse})
	c, err := e.dialer(net.Dialer{LocalAddr: e.udp(e.clientIP, at.Port)}).Dial("udp", s.LocalAddr().String())
	e.must(err)
	e.must(c.Close())
}

func localPortAccepted(e *env) {
	l := e.listen()
	own, err := e.client.Listen("tcp", e.clientIP+":0")
	e.must(err)
	c := e.dialAddr(e.server.(dialer), own.Addr())
	s := e.accept(own)
	e.must(own.Close())
	_, err = e.dialer(net.Dialer{LocalAddr: own.Addr()}).Dial("tcp", l.Addr().String())
	e.same(err, dialError(own.Addr(), l.Addr(), errInUse))
	e.writes(c, "x")
	e.reads(s, "x")
}

func foreignLocalAddress(e *env) {
	l := e.listen()
	from := e.tcp(e.foreignIP, 0)
	_, err := e.dialer(net.Dialer{LocalAddr: from}).Dial("tcp", l.Addr().String())
	e.same(err, dialError(from, l.Addr(), errForeign))
}

func mismatchedLocalAddress(e *env) {
	l, s := e.listen(), e.socket(e.server, e.serverIP)
	for _, d := range []struct {
		network  string
		from, to net.Addr
	}{{"tcp", e.udp(e.clientIP, 0), l.Addr()}, {"udp", e.tcp(e.clientIP, 0), s.LocalAddr()}} {
		_, err := e.dialer(net.Dialer{LocalAddr: d.from}).Dial(d.network, d.to.String())
		mismatch := worded{&net.AddrError{}, "address " + d.from.String() + ": mismatched local address type", false}
		e.same(err, &net.OpError{Op: "dial", Net: d.network, Err: mismatch})
	}
}

// skipWithoutIPv6 ends a row on a kernel that has IPv4 alone.
func (e *env) skipWithoutIPv6() {
	l, err := e.client.Listen("tcp", "[::1]:0")
	if err != nil && e.sim == nil {
		e.Skip("no IPv6 here")
	}
	e.must(err)
	e.must(l.Close())
}

// localFamily dials the client's own host, whose name is left out or unspecified, from addresses of both families.
func localFamily(e *env) {
	e.skipWithoutIPv6()
	l, err := e.client.Listen("tcp", ":0")
	e.must(err)
	defer l.Close()
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	for _, d := range []struct{ network, to, from, local, remote string }{
		{"", "127.0.0.1", "::", "127.0.0.1", "127.0.0.1"},
		{"", "0.0.0.0", "::", "::1", "::1"},
		{"", "0.0.0.0", "::1", "::1", "::1"},
		{"", "0.0.0.0", "127.0.0.9", "127.0.0.9", "127.0.0.9"},
		{"", "", "::", "::1", "::1"},
		{"", "", "::1", "::1", "::1"},
		{"", "", "127.0.0.9", "127.0.0.9", "127.0.0.9"},
		{"", "[::]", "127.0.0.9", "127.0.0.9", "127.0.0.1"},
		{"", "[::]", "0.0.0.0", "::1", "::1"},
		{"4", "[::]", "127.0.0.9", "127.0.0.9", "127.0.0.9"},
		{"6", "[::1]", "0.0.0.0", "::1", "::1"},
	} {
		ip := net.ParseIP(d.from)
		for network, from := range map[string]net.Addr{"tcp": &net.TCPAddr{IP: ip}, "udp": &net.UDPAddr{IP: ip}} {
			c, err := e.dialer(net.Dialer{LocalAddr: from}).Dial(network+d.network, d.to+":"+port)
			e.must(err)
			local, _, _ := net.SplitHostPort(c.LocalAddr().String())
			remote := c.RemoteAddr().String()
			if local != d.local || remote != net.JoinHostPort(d.remote, port) {
				e.Errorf("%s%s to %q from %s is %s to %s, want %s to %s", network, d.network, d.to, d.from, local, remote, d.local, d.remote)
			}
			c.Close()
		}
	}
}

// wrongLocalFamily dials from addresses that have nothing to do with where to.
func wrongLocalFamily(e *env) {
	e.skipWithoutIPv6()
	none := func(ip string) error {
		return worded{&net.AddrError{}, "address " + net.JoinHostPort(ip, "0") + ": no suitable address found", false}
	}
	not := func(ip, family string) error {
		return worded{&net.AddrError{}, "address " + ip + ": non-" + family + " address", false}
	}
	short := net.IP{1, 2, 3}
	for _, d := range []struct {
		network, to string
		from        net.IP
		named       bool // the error names both addresses
		want        error
	}{
		{"", "127.0.0.1", net.IPv6loopback, false, none("::1")},
		{"", "127.0.0.1", short, false, none(short.String())},
		{"", "::1", net.IPv4(127, 0, 0, 1), false, none("127.0.0.1")},
		{"4", "127.0.0.1", net.IPv6loopback, false, none("::1")},
		{"4", "127.0.0.1", net.IPv6unspecified, true, not("::", "IPv4")},
		{"4", "0.0.0.0", net.IPv6loopback, true, not("::1", "IPv4")},
		{"", "::", short, true, not(short.String(), "IPv6")},
		{"6", "::", net.IPv4(127, 0, 0, 1), true, sysError("bind", syscall.EINVAL)},
	} {
		for _, a := range []struct {
			network  string
			from, to net.Addr
		}{
			{"tcp", &net.TCPAddr{IP: d.from}, e.tcp(d.to, closedPort)}, {"udp", &net.UDPAddr{IP: d.from}, e.udp(d.to, closedPort)},
		} {
			_, err := e.dialer(net.Dialer{LocalAddr: a.from}).Dial(a.network+d.network, a.to.String())
			want := &net.OpError{Op: "dial", Net: a.network + d.network, Err: d.want}
			if d.named {
				want.Source, want.Addr = a.from, a.to
			}
			e.same(err, want)
		}
	}
}

// dialUnspecified reaches a listener that is on an IPv4 address alone.
func dialUnspecified(e *env) {
	l, err := e.client.Listen("tcp4", "127.0.0.1:0")
	e.must(err)
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	for _, d := range []struct{ network, to string }{{"tcp", "[::]"}, {"tcp4", "[::]"}, {"tcp", "0.0.0.0"}, {"tcp", ""}} {
		c, err := e.client.Dial(d.network, d.to+":"+strconv.Itoa(port))
		e.must(err)
		if !sameAddr(c.RemoteAddr(), l.Addr()) {
			e.Errorf("%s to %q is to %v, want %v", d.network, d.to, c.RemoteAddr(), l.Addr())
		}
		c.Close()
	}
	_, err = e.client.Dial("tcp", "[::]:"+strconv.Itoa(closedPort))
	e.same(err, dialError(nil, e.tcp("::", closedPort), errRefused))
	for _, network := range []string{"tcp", "udp"} {
		_, err = e.client.Dial(network, "")
		if err == nil || err.Error() != "dial "+network+": missing address" {
			e.Errorf("a dial to nothing: %v", err)
		}
	}
	c, err := e.dialer(net.Dialer{LocalAddr: (*net.TCPAddr)(nil)}).Dial("tcp", l.Addr().String())
	e.must(err)
	c.Close()
}

// startAccept is an Accept under way that succeeds with a connection nobody looks at.
func (e *env) startAccept(l net.Listener) *call {
	return e.start(func() (int, error) {
		c, err := l.Accept()
		if err == nil {
			c.Close()
		}
		return 0, err
	})
}

type deadliner interface{ SetDeadline(time.Time) error }

func listenerDeadline(e *env) {
	l := e.listen()
	by := l.(deadliner)
	start := time.Now()
	e.must(by.SetDeadline(start.Add(100 * time.Millisecond)))
	_, err := e.wait(e.startAccept(l))
	e.exactly(start, 100*time.Millisecond)
	e.same(err, listenError("accept", l.Addr(), os.ErrDeadlineExceeded))
	e.must(by.SetDeadline(time.Time{}))
	a := e.startAccept(l)
	e.blocked(a)
	e.must(by.SetDeadline(past))
	_, err = e.wait(a)
	e.same(err, listenError("accept", l.Addr(), os.ErrDeadlineExceeded))
	e.dial(l)
	e.settle()
	_, err = e.wait(e.startAccept(l))
	e.same(err, listenError("accept", l.Addr(), os.ErrDeadlineExceeded))
	e.must(by.SetDeadline(time.Time{}))
	e.accept(l)
}

func closeEndsAccept(e *env) {
	l := e.listen()
	at := l.Addr().String()
	a := e.startAccept(l)
	e.blocked(a)
	e.must(l.Close())
	_, err := e.wait(a)
	e.same(err, listenError("accept", l.Addr(), net.ErrClosed))
	_, err = e.wait(e.startAccept(l))
	e.same(err, listenError("accept", l.Addr(), net.ErrClosed))
	e.same(l.Close(), listenError("close", l.Addr(), net.ErrClosed))
	if err := l.(deadliner).SetDeadline(past); !errors.Is(err, net.ErrClosed) || err.Error() != net.ErrClosed.Error() {
		e.Errorf("SetDeadline after Close: %v, want %v, bare", err, net.ErrClosed)
	}
	if l.Addr().String() != at {
		e.Errorf("Addr after Close is %v, want %v", l.Addr(), at)
	}
}

func nobodyAccepts(e *env) {
	l := e.listen()
	c := e.dial(l)
	e.writes(c, "early")
	e.settle()
	s := e.accept(l)
	e.reads(s, "early")
	e.writes(s, "answer")
	e.reads(c, "answer")
}

func acceptedInOrder(e *env) {
	l := e.listen()
	var clients []stream
	for range 5 {
		clients = append(clients, e.dial(l))
	}
	e.settle()
	for i, c := range clients {
		if s := e.accept(l); s.RemoteAddr().String() != c.LocalAddr().String() {
			e.Errorf("accepted %v as number %d, want %v", s.RemoteAddr(), i, c.LocalAddr())
		}
	}
}

func closeListener(e *env) {
	l := e.listen()
	c := e.dial(l)
	s := e.accept(l)
	waiting, queued := e.dial(l), e.dial(l)
	r := e.startRead(waiting, make([]byte, 1))
	e.blocked(r)
	e.must(l.Close())
	n, err := e.wait(r)
	e.fails(n, err, connError(waiting, "read", errReadReset))
	e.settle()
	e.writeFails(queued, errWriteReset)
	_, err = e.client.Dial("tcp", l.Addr().String())
	e.same(err, dialError(nil, l.Addr(), errRefused))
	e.writes(c, "accepted")
	e.reads(s, "accepted")
}

func acceptClosed(e *env) {
	l := e.listen()
	c := e.dial(l)
	e.writes(c, "last words")
	e.must(c.Close())
	e.settle()
	s := e.accept(l)
	e.reads(s, "last words")
	e.ends(s)
}

func acceptReset(e *env) {
	l := e.listen()
	c, silent := e.dial(l), e.dial(l)
	e.writes(c, "last words")
	e.settle()
	for _, c := range []stream{c, silent} {
		e.must(c.SetLinger(0))
		e.must(c.Close())
	}
	e.settle()
	s := e.accept(l)
	e.reads(s, "last words")
	e.readFails(s, errReadReset)
	e.ends(s)
	s = e.accept(l)
	if s.RemoteAddr().String() != silent.LocalAddr().String() {
		e.Errorf("accepted %v, want %v", s.RemoteAddr(), silent.LocalAddr())
	}
	e.writeFails(s, errWriteReset)
}

func fullBacklog(e *env) {
	l := e.listenShort(e)
	e.dial(l)
	e.dial(l)
	start := time.Now()
	_, err := e.dialer(net.Dialer{Timeout: 300 * time.Millisecond}).Dial("tcp", l.Addr().String())
	e.exactly(start, 300*time.Millisecond)
	e.ranOut(err, nil, l.Addr())
	e.accept(l)
	e.accept(l)
	e.settle()
	e.dial(l)
	e.accept(l)
}

func addresses(e *env) {
	for _, l := range []struct{ network, address, prints string }{
		{"tcp", ":0", "[::]:"},
		{"tcp", "0.0.0.0:0", "[::]:"},
		{"tcp", "[::]:0", "[::]:"},
		{"tcp", "", "[::]:"},
		{"tcp4", "", "0.0.0.0:"},
		{"tcp4", "[::]:0", "0.0.0.0:"},
		{"tcp4", ":0", "0.0.0.0:"},
		{"tcp6", ":0", "[::]:"},
		{"tcp", e.serverIP + ":0", e.serverIP + ":"},
		{"tcp4", e.serverIP + ":0", e.serverIP + ":"},
	} {
		at := e.listenAt(l.network, l.address).Addr().(*net.TCPAddr)
		if at.Port == 0 || at.String() != l.prints+strconv.Itoa(at.Port) || at.Network() != "tcp" {
			e.Errorf("Listen(%q, %q) is at %v of %q, want %sport of tcp", l.network, l.address, at, at.Network(), l.prints)
		}
	}
	for _, l := range []struct{ network, address, prints string }{
		{"udp", ":0", "[::]:"},
		{"udp", "0.0.0.0:0", "[::]:"},
		{"udp", "", "[::]:"},
		{"udp4", "[::]:0", "0.0.0.0:"},
		{"udp4", ":0", "0.0.0.0:"},
		{"udp", e.serverIP + ":0", e.serverIP + ":"},
	} {
		c, err := e.server.ListenPacket(l.network, l.address)
		e.must(err)
		at := c.LocalAddr().(*net.UDPAddr)
		if at.Port == 0 || at.String() != l.prints+strconv.Itoa(at.Port) || at.Network() != "udp" {
			e.Errorf("ListenPacket(%q, %q) is at %v of %q, want %sport of udp", l.network, l.address, at, at.Network(), l.prints)
		}
		e.must(c.Close())
	}
	e.addressesOfConns()
}

// addressesOfConns checks the addresses of both ends of a stream, which a tcp4 dial calls tcp too.
func (e *env) addressesOfConns() {
	l := e.listen()
	c, err := e.client.Dial("tcp4", l.Addr().String())
	e.must(err)
	defer c.Close()
	s := e.accept(l)
	local := c.LocalAddr().(*net.TCPAddr)
	if local.Port == 0 || local.IP.String() != e.clientIP {
		e.Errorf("the client is at %v, want a port of %s", local, e.clientIP)
	}
	for _, a := range []struct{ got, want net.Addr }{
		{c.RemoteAddr(), l.Addr()}, {s.LocalAddr(), l.Addr()}, {s.RemoteAddr(), local},
	} {
		if !sameAddr(a.got, a.want) || a.got.Network() != "tcp" {
			e.Errorf("an end's address is %v of %q, want %v of tcp", a.got, a.got.Network(), a.want)
		}
	}
	for _, end := range []net.Conn{c, s} {
		e.must(end.Close())
		want := connError(end, "close", net.ErrClosed)
		want.Net = map[net.Conn]string{c: "tcp4", s: "tcp"}[end]
		e.same(end.Close(), want)
	}
}

// addressesOfIPv6 is about the server alone, and its own loopback address.
func addressesOfIPv6(e *env) {
	e.skipWithoutIPv6()
	l := e.listenAt("tcp", "[::1]:0")
	c := e.dialAddr(e.server.(dialer), l.Addr())
	s := e.accept(l)
	e.writes(c, "x")
	e.reads(s, "x")
	local := e.tcp("::1", c.LocalAddr().(*net.TCPAddr).Port)
	for _, a := range []struct{ got, want net.Addr }{
		{l.Addr(), e.tcp("::1", l.Addr().(*net.TCPAddr).Port)}, {c.RemoteAddr(), l.Addr()}, {s.LocalAddr(), l.Addr()}, {c.LocalAddr(), local}, {s.RemoteAddr(), local},
	} {
		if !sameAddr(a.got, a.want) {
			e.Errorf("an address is %v, want %v", a.got, a.want)
		}
	}
	_, err := e.server.Dial("tcp", e.tcp("::1", closedPort).String())
	e.same(err, dialError(nil, e.tcp("::1", closedPort), errRefused))
	p := e.socket(e.server, "::1")
	q, err := e.server.Dial("udp", p.LocalAddr().String())
	e.must(err)
	defer q.Close()
	e.writes(q, "y")
	e.gets(p, "y", q.LocalAddr())
}

// mappedAddresses looks at the forms of addresses that print the same.
func mappedAddresses(e *env) {
	e.skipWithoutIPv6()
	for _, at := range []struct {
		network, ip string
		mapped      bool
	}{{"", "", true}, {"", "0.0.0.0", true}, {"4", "", false}, {"", e.serverIP, false}} {
		l := e.listenAt("tcp"+at.network, at.ip+":0")
		c := e.dialAddr(e.client.(dialer), e.tcp(e.serverIP, l.Addr().(*net.TCPAddr).Port))
		s := e.accept(l)
		e.isMapped(s.LocalAddr(), s.LocalAddr().(*net.TCPAddr).AddrPort(), at.mapped)
		e.isMapped(s.RemoteAddr(), s.RemoteAddr().(*net.TCPAddr).AddrPort(), at.mapped)
		e.isMapped(c.LocalAddr(), c.LocalAddr().(*net.TCPAddr).AddrPort(), false)

		p, err := e.server.ListenPacket("udp"+at.network, at.ip+":0")
		e.must(err)
		defer p.Close()
		q := e.connected(e.udp(e.serverIP, p.LocalAddr().(*net.UDPAddr).Port))
		for range 3 {
			e.writes(q, "x")
		}
		e.settle()
		b := make([]byte, 9)
		_, short, err := p.(socket).ReadFromUDPAddrPort(b)
		e.must(err)
		e.isMapped(q.LocalAddr(), short, at.mapped)
		_, from, err := p.(socket).ReadFromUDP(b)
		e.must(err)
		e.isMapped(q.LocalAddr(), from.AddrPort(), at.mapped)
		_, _, _, from, err = p.(socket).ReadMsgUDP(b, nil)
		e.must(err)
		e.isMapped(q.LocalAddr(), from.AddrPort(), at.mapped)
	}
}

// isMapped checks that an address prints as another does, and has a form.
func (e *env) isMapped(a net.Addr, got netip.AddrPort, mapped bool) {
	e.Helper()
	short := netip.AddrPortFrom(got.Addr().Unmap(), got.Port())
	if got.Addr().Is4In6() != mapped || short.String() != a.String() {
		e.Errorf("%v is %v, want it mapped: %v", a, got, mapped)
	}
}

func wrongFamily(e *env) {
	none := worded{&net.AddrError{}, "address " + e.serverIP + ": no suitable address found", false}
	at := e.tcp(e.serverIP, closedPort).String()
	_, err := e.client.Dial("tcp6", at)
	e.same(err, &net.OpError{Op: "dial", Net: "tcp6", Err: none})
	_, err = e.client.Dial("udp6", at)
	e.same(err, &net.OpError{Op: "dial", Net: "udp6", Err: none})
	_, err = e.server.Listen("tcp6", at)
	e.same(err, &net.OpError{Op: "listen", Net: "tcp6", Err: none})
	_, err = e.server.ListenPacket("udp6", at)
	e.same(err, &net.OpError{Op: "listen", Net: "udp6", Err: none})
	other := worded{&net.AddrError{}, "address " + at + ": unexpected address type", false}
	_, err = e.server.Listen("udp", at)
	e.same(err, listenError("listen", e.udp(e.serverIP, closedPort), other))
	_, err = e.server.ListenPacket("tcp", at)
	e.same(err, listenError("listen", e.tcp(e.serverIP, closedPort), other))
}

func concreteAddress(e *env) {
	l := e.listenAt("tcp", ":0")
	port := l.Addr().(*net.TCPAddr).Port
	for _, ip := range []string{e.serverIP, e.otherIP} {
		to := e.tcp(ip, port)
		c := e.dialAddr(e.client.(dialer), to)
		s := e.accept(l)
		if !sameAddr(s.LocalAddr(), to) || !sameAddr(c.RemoteAddr(), to) {
			e.Errorf("dialled %v, accepted at %v, which the client knows as %v", to, s.LocalAddr(), c.RemoteAddr())
		}
	}
	at := e.listen().Addr().(*net.TCPAddr)
	other := e.tcp(e.otherIP, at.Port)
	_, err := e.client.Dial("tcp", other.String())
	e.same(err, dialError(nil, other, errRefused))
}

func addressInUse(e *env) {
	l := e.listen()
	_, err := e.server.Listen("tcp", l.Addr().String())
	e.same(err, listenError("listen", l.Addr(), errInUse))
	everywhere := e.tcp("::", l.Addr().(*net.TCPAddr).Port)
	_, err = e.server.Listen("tcp", ":"+strconv.Itoa(everywhere.Port))
	e.same(err, listenError("listen", &net.TCPAddr{Port: everywhere.Port}, errInUse))
	e.listenAt("tcp", net.JoinHostPort(e.otherIP, strconv.Itoa(everywhere.Port)))

	wild := e.listenAt("tcp", ":0").Addr().(*net.TCPAddr)
	specific := e.tcp(e.serverIP, wild.Port)
	_, err = e.server.Listen("tcp", specific.String())
	e.same(err, listenError("listen", specific, errInUse))

	c := e.socket(e.client, e.clientIP)
	_, err = e.client.ListenPacket("udp", c.LocalAddr().String())
	e.same(err, listenError("listen", c.LocalAddr(), errInUse))
	_, err = e.dialer(net.Dialer{LocalAddr: c.LocalAddr()}).Dial("udp", e.closedSocket().String())
	e.same(err, dialError(c.LocalAddr(), e.closedSocket(), errInUse))
}

// listenOnDialled has ports of dials, live and in TIME_WAIT, which nobody may listen on.
func listenOnDialled(e *env) {
	c, s := e.pair()
	_, err := e.client.Listen("tcp", c.LocalAddr().String())
	e.same(err, listenError("listen", c.LocalAddr(), errInUse))
	e.must(c.Close())
	e.ends(s)
	e.must(s.Close())
	e.settle()
	_, err = e.client.Listen("tcp", c.LocalAddr().String())
	e.same(err, listenError("listen", c.LocalAddr(), errInUse))
}

func listenAgain(e *env) {
	l := e.listen()
	c := e.dial(l)
	s := e.accept(l)
	e.must(l.Close())
	l = e.listenAt("tcp", l.Addr().String())
	e.writes(c, "old")
	e.reads(s, "old")
	e.writes(e.dial(l), "new")
	e.reads(e.accept(l), "new")

	e.must(s.Close()) // first, so that TIME_WAIT is at the listener's port
	e.ends(c)
	e.must(c.Close())
	e.settle()
	e.must(l.Close())
	l = e.listenAt("tcp", l.Addr().String())
	e.writes(e.dial(l), "newer")
	e.reads(e.accept(l), "newer")
}

func portSpaces(e *env) {
	l := e.listen()
	c, err := e.server.ListenPacket("udp", l.Addr().String())
	e.must(err)
	e.must(c.Close())
}

func foreignAddress(e *env) {
	_, err := e.server.Listen("tcp", e.foreignIP+":0")
	e.same(err, listenError("listen", e.tcp(e.foreignIP, 0), errForeign))
	_, err = e.server.ListenPacket("udp", e.foreignIP+":0")
	e.same(err, listenError("listen", e.udp(e.foreignIP, 0), errForeign))
}
