package gosimnet_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

// packetRows are what every connection for datagrams does, whoever makes it: see testPacketConns.
func packetRows() []row {
	return []row{
		{id: "addresses", name: "both forms of an IPv4 address", run: bothForms},
		{id: "addresses", name: "a socket of all addresses", run: allAddresses},
		{id: "addresses", name: "the form in which IPv4 addresses are told", run: toldForm},
		{id: "addresses", name: "no IP address is the host itself", run: noAddress},
		{id: "addresses", name: "a socket's own address", run: ownAddress},
		{id: "addresses", name: "kinds and names", run: kindsAndNames},
		{id: "addresses", name: "free ports", run: freePorts},
		{id: "variants", name: "all ways to write", run: writeVariants},
		{id: "variants", name: "all ways to write to the peer", run: writeVariantsConnected},
		{id: "variants", name: "all ways to read", run: readVariants},
		{id: "variants", name: "a datagram that does not fit", run: cutVariants},
		{id: "variants", name: "an empty datagram", run: emptyVariants},
		{id: "errors", name: "bad addresses", run: badAddresses},
		{id: "errors", name: "addresses on a connected socket", run: addressesOnConnected},
		{id: "errors", name: "which error comes first", run: errorOrder},
		{id: "errors", name: "dials", run: datagramDials},
		{id: "connected", name: "another port of the peer's host", run: otherPort},
		{id: "deadlines", name: "expired", run: expiredVariants},
		{id: "deadlines", name: "to come", run: futureDeadline},
		{id: "deadlines", name: "moved while several read", run: movedDeadline},
		{id: "deadlines", name: "cleared while several read", run: clearedDeadline},
		{id: "deadlines", name: "data comes before", run: dataBeforeDeadline},
		{id: "readers", name: "one datagram each", run: manyReaders},
		{id: "close", name: "while several read", run: closeWhileReading},
		{id: "close", name: "by several", run: manyPacketCloses},
		{id: "sizes", name: "from none to the largest", run: allSizes},
		{id: "sizes", name: "too large", run: tooLarge},
		{id: "buffers", name: "one datagram always fits", run: oneFits},
		{id: "buffers", name: "a reader that is late delays nobody", run: lateReader},
		{id: "together", name: "many ask one", run: manyAsk},
		{id: "together", name: "everything at once", run: everythingAtOnce},
	}
}

// testPacketConns runs the table against connections of one maker.
func testPacketConns(t *testing.T, run func(t *testing.T, number int, f func(e *env))) {
	for i, r := range packetRows() {
		t.Run(r.id+" "+r.name, func(t *testing.T) { run(t, i, r.run) })
	}
}

func TestPacketConnSimulated(t *testing.T) {
	testPacketConns(t, func(t *testing.T, _ int, f func(e *env)) {
		synctest.Test(t, func(t *testing.T) { f(simulated(t, nil)) })
	})
}

func TestPacketConnSimulated6(t *testing.T) {
	testPacketConns(t, func(t *testing.T, _ int, f func(e *env)) {
		synctest.Test(t, func(t *testing.T) { f(simulated6(t)) })
	})
}

func TestPacketConnSimulatedOnTheWallClock(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes real time")
	}
	testPacketConns(t, func(t *testing.T, _ int, f func(e *env)) {
		t.Parallel()
		e := simulated(t, nil)
		e.sim = nil // times are not exact
		f(e)
	})
}

func TestPacketConnLoopback(t *testing.T) {
	if testing.Short() {
		t.Skip("real sockets take real time")
	}
	testPacketConns(t, func(t *testing.T, i int, f func(e *env)) {
		t.Parallel()
		f(loopback(t, 150+i))
	})
}

func TestPacketConnLoopback6(t *testing.T) {
	if testing.Short() {
		t.Skip("real sockets take real time")
	}
	c, err := net.ListenPacket("udp6", "[::1]:0")
	if err != nil {
		t.Skip("the machine has no IPv6")
	}
	c.Close()
	testPacketConns(t, func(t *testing.T, i int, f func(e *env)) {
		t.Parallel()
		e := loopback(t, 150+i)
		e.clientIP, e.serverIP, e.otherIP, e.foreignIP = "::1", "::1", "::1", "2001:db8::1"
		f(e)
	})
}

// simulated6 makes two hosts that have IPv6 alone.
func simulated6(t *testing.T) *env {
	e := simulated(t, nil)
	client, err := e.sim.AddHost("client6", netip.MustParseAddr("fd00::a"))
	e.must(err)
	server, err := e.sim.AddHost("server6", netip.MustParseAddr("fd00::b"), netip.MustParseAddr("fd00::c"))
	e.must(err)
	e.client, e.server = client, server
	e.clientIP, e.serverIP, e.otherIP, e.foreignIP = "fd00::a", "fd00::b", "fd00::c", "2001:db8::1"
	e.dialer = func(d net.Dialer) dialer { return simulatedDialer(client, d) }
	return e
}

// six reports whether the environment is one of IPv6.
func (e *env) six() bool { return strings.Contains(e.serverIP, ":") }

// sockets are one of the client and one of the server.
func (e *env) sockets() (c, s socket) {
	e.Helper()
	return e.socket(e.client, e.clientIP), e.socket(e.server, e.serverIP)
}

func udpOf(c net.PacketConn) *net.UDPAddr { return c.LocalAddr().(*net.UDPAddr) }

// gotten is a datagram that has been read.
type gotten struct {
	text string
	from net.Addr
}

// reader is one of the ways to read.
type reader struct {
	name string
	read func(c socket, b []byte) (n int, from net.Addr, err error)
}

func readers() []reader {
	return []reader{
		{"Read", func(c socket, b []byte) (int, net.Addr, error) {
			n, err := c.Read(b)
			return n, nil, err
		}},
		{"ReadFrom", func(c socket, b []byte) (int, net.Addr, error) { return c.ReadFrom(b) }},
		{"ReadFromUDP", func(c socket, b []byte) (int, net.Addr, error) {
			n, a, err := c.ReadFromUDP(b)
			if a == nil {
				return n, nil, err
			}
			return n, a, err
		}},
		{"ReadFromUDPAddrPort", func(c socket, b []byte) (int, net.Addr, error) {
			n, a, err := c.ReadFromUDPAddrPort(b)
			if !a.IsValid() {
				return n, nil, err
			}
			return n, net.UDPAddrFromAddrPort(netip.AddrPortFrom(a.Addr().Unmap(), a.Port())), err
		}},
		{"ReadMsgUDP", func(c socket, b []byte) (int, net.Addr, error) {
			n, _, _, a, err := c.ReadMsgUDP(b, nil)
			if err != nil {
				return max(0, n), nil, err // package net returns -1 after some errors
			}
			return n, a, err
		}},
	}
}

// writer is one of the ways to write to an address, and the system call that it is.
type writer struct {
	name, call string
	write      func(c socket, b []byte, to *net.UDPAddr) (int, error)
}

func writers() []writer {
	return []writer{
		{"WriteTo", "sendto", func(c socket, b []byte, to *net.UDPAddr) (int, error) { return c.WriteTo(b, to) }},
		{"WriteToUDP", "sendto", func(c socket, b []byte, to *net.UDPAddr) (int, error) { return c.WriteToUDP(b, to) }},
		{"WriteToUDPAddrPort", "sendto", func(c socket, b []byte, to *net.UDPAddr) (int, error) {
			return c.WriteToUDPAddrPort(b, to.AddrPort())
		}},
		{"WriteMsgUDP", "sendmsg", func(c socket, b []byte, to *net.UDPAddr) (int, error) {
			n, oobn, err := c.WriteMsgUDP(b, nil, to)
			if oobn != 0 {
				return n, fmt.Errorf("%d bytes of no out-of-band data, %w", oobn, err)
			}
			return n, err
		}},
	}
}

// reads1 reads one datagram in one of the ways.
func (e *env) reads1(r reader, c socket, size int) gotten {
	e.Helper()
	b := make([]byte, size)
	var from net.Addr
	n, err := e.wait(e.start(func() (n int, err error) { n, from, err = r.read(c, b); return }))
	if err != nil {
		e.Fatalf("%s: %v", r.name, err)
	}
	return gotten{string(b[:n]), from}
}

// fromThere checks who has sent a datagram, whatever the form of the address.
func (e *env) fromThere(what string, got, want net.Addr) {
	e.Helper()
	if got == nil || got.Network() != "udp" || got.String() != want.String() {
		e.Errorf("%s: from %v, want %v", what, got, want)
	}
}

// failsAs checks an error by its text, and by what it is.
func (e *env) failsAs(what string, n int, err error, text string, is error) {
	e.Helper()
	var op *net.OpError
	if n != 0 || !errors.As(err, &op) || err.Error() != text || is != nil && !errors.Is(err, is) {
		e.Errorf("%s: %d, %v, want %s", what, n, err, text)
	}
}

func bothForms(e *env) {
	if e.six() {
		e.Skip("IPv6 has one form")
	}
	c, s := e.sockets()
	port := udpOf(s).Port
	short, long := netip.MustParseAddr(e.serverIP), netip.MustParseAddr("::ffff:"+e.serverIP)
	for i, send := range []func(b []byte) (int, error){
		func(b []byte) (int, error) { return c.WriteTo(b, &net.UDPAddr{IP: short.AsSlice(), Port: port}) },
		func(b []byte) (int, error) { return c.WriteTo(b, &net.UDPAddr{IP: long.AsSlice(), Port: port}) },
		func(b []byte) (int, error) {
			return c.WriteToUDPAddrPort(b, netip.AddrPortFrom(short, uint16(port)))
		},
		func(b []byte) (int, error) {
			return c.WriteToUDPAddrPort(b, netip.AddrPortFrom(long, uint16(port)))
		},
	} {
		if n, err := send([]byte("x")); n != 1 || err != nil {
			e.Fatalf("form %d: %d, %v", i, n, err)
		}
		e.gets(s, "x", c.LocalAddr())
	}
	a := e.connected(&net.UDPAddr{IP: long.AsSlice(), Port: port})
	if got := a.RemoteAddr().String(); got != s.LocalAddr().String() {
		e.Errorf("the remote address is %s, want %v", got, s.LocalAddr())
	}
	e.sendsTo(s, []byte("answer"), a.LocalAddr())
	e.reads(a, "answer")
}

func allAddresses(e *env) {
	c := e.socket(e.client, e.clientIP)
	for _, network := range []string{"udp", "udp" + map[bool]string{false: "4", true: "6"}[e.six()]} {
		p, err := e.server.ListenPacket(network, ":0")
		e.must(err)
		defer p.Close()
		s := p.(socket)
		if ip := udpOf(s).IP; !ip.IsUnspecified() || (ip.To4() != nil) != (network == "udp4") {
			e.Errorf("%s: the local address is %v", network, s.LocalAddr())
		}
		for _, ip := range []string{e.serverIP, e.otherIP} {
			for _, r := range readers() {
				e.sendsTo(c, []byte(ip), e.udp(ip, udpOf(s).Port))
				got := e.reads1(r, s, 100)
				if got.text != ip {
					e.Errorf("%s: got %q, want %q", r.name, got.text, ip)
				}
				if r.name != "Read" {
					e.fromThere(r.name, got.from, c.LocalAddr())
				}
			}
		}
		e.sendsTo(s, []byte("answer"), c.LocalAddr())
		got := e.reads1(readers()[1], c, 100)
		if a := got.from.(*net.UDPAddr); got.text != "answer" || a.Port != udpOf(s).Port || a.IP.IsUnspecified() {
			e.Errorf("the answer is %q from %v", got.text, a)
		}
	}
}

// toldForm is about what is equal to a netip.AddrPort, and what only prints like it.
func toldForm(e *env) {
	if e.six() {
		e.Skip("IPv6 has one form")
	}
	c := e.socket(e.client, e.clientIP)
	for _, at := range []struct{ network, address, form string }{
		{"udp", ":0", "::ffff:" + e.clientIP}, {"udp", "0.0.0.0:0", "::ffff:" + e.clientIP}, {"udp4", ":0", e.clientIP}, {"udp", e.serverIP + ":0", e.clientIP},
	} {
		p, err := e.server.ListenPacket(at.network, at.address)
		e.must(err)
		defer p.Close()
		s := p.(socket)
		want := netip.AddrPortFrom(netip.MustParseAddr(at.form), uint16(udpOf(c).Port))
		e.sendsTo(c, []byte("x"), e.udp(e.serverIP, udpOf(s).Port))
		if _, from, err := s.ReadFromUDPAddrPort(make([]byte, 1)); from != want || err != nil {
			e.Errorf("%s %s: ReadFromUDPAddrPort is from %v, %v, want %v", at.network, at.address, from, err, want)
		}
		e.sendsTo(c, []byte("x"), e.udp(e.serverIP, udpOf(s).Port))
		m := p.(interface {
			ReadMsgUDPAddrPort(b, oob []byte) (n, oobn, flags int, addr netip.AddrPort, err error)
		})
		if _, _, _, from, err := m.ReadMsgUDPAddrPort(make([]byte, 1), nil); from != want || err != nil {
			e.Errorf("%s %s: ReadMsgUDPAddrPort is from %v, %v, want %v", at.network, at.address, from, err, want)
		}
		if n, err := s.WriteToUDPAddrPort([]byte("answer"), want); n != 6 || err != nil {
			e.Errorf("%s %s: the answer is %d, %v", at.network, at.address, n, err)
		}
		if got := e.reads1(readers()[1], c, 100); got.text != "answer" {
			e.Errorf("%s %s: the answer to %v is %q", at.network, at.address, want, got.text)
		}
	}
}

func noAddress(e *env) {
	c := e.socket(e.client, e.clientIP)
	p, err := e.client.ListenPacket("udp", ":0")
	e.must(err)
	defer p.Close()
	w := p.(socket)
	here := []net.IP{nil, net.IPv4zero, net.IPv4zero.To4()}
	if e.six() {
		here = append(here, net.IPv6unspecified)
	}
	for _, s := range []socket{c, w} {
		for _, ip := range here {
			to := &net.UDPAddr{IP: ip, Port: udpOf(w).Port}
			e.sendsTo(s, []byte("here"), to)
			got := e.reads1(readers()[1], w, 100)
			if a := got.from.(*net.UDPAddr); got.text != "here" || a.Port != udpOf(s).Port {
				e.Errorf("from %v to %v: got %q from %v", s.LocalAddr(), to, got.text, a)
			}
		}
	}
	d, err := e.client.Dial("udp", fmt.Sprintf(":%d", udpOf(w).Port))
	e.must(err)
	defer d.Close()
	if !d.RemoteAddr().(*net.UDPAddr).IP.IsLoopback() || !d.LocalAddr().(*net.UDPAddr).IP.IsLoopback() {
		e.Errorf("dialled from %v to %v, want loopback", d.LocalAddr(), d.RemoteAddr())
	}
	e.writes(d, "dialled")
	e.gets(w, "dialled", d.LocalAddr())
}

func ownAddress(e *env) {
	c := e.socket(e.client, e.clientIP)
	e.sendsTo(c, []byte("me"), c.LocalAddr())
	e.gets(c, "me", c.LocalAddr())
}

func kindsAndNames(e *env) {
	s := e.socket(e.server, e.serverIP)
	c := e.connected(s.LocalAddr())
	for _, a := range []net.Addr{c.LocalAddr(), c.RemoteAddr(), s.LocalAddr()} {
		if _, ok := a.(*net.UDPAddr); !ok || a.Network() != "udp" {
			e.Errorf("%v is a %T of the network %s", a, a, a.Network())
		}
	}
	if c.RemoteAddr().String() != s.LocalAddr().String() || s.RemoteAddr() != nil {
		e.Errorf("remote addresses %v and %v", c.RemoteAddr(), s.RemoteAddr())
	}
	here := c.LocalAddr().String()
	e.must(c.Close())
	if got := c.LocalAddr().String(); got != here {
		e.Errorf("the local address is %s after Close, and was %s", got, here)
	}
}

func freePorts(e *env) {
	taken := make(map[int]socket)
	for range 200 {
		c := e.socket(e.client, e.clientIP)
		if p := udpOf(c).Port; p == 0 || taken[p] != nil {
			e.Fatalf("the port of a new socket is %d", p)
		}
		taken[udpOf(c).Port] = c
	}
	for p, c := range taken {
		address := c.LocalAddr().String()
		if _, err := e.client.ListenPacket("udp", address); !errors.Is(err, syscall.EADDRINUSE) {
			e.Errorf("port %d, which is taken: %v", p, err)
		}
		e.must(c.Close())
		again, err := e.client.ListenPacket("udp", address)
		e.must(err)
		e.must(again.Close())
		break
	}
}

func writeVariants(e *env) {
	c, s := e.sockets()
	for _, w := range writers() {
		for _, text := range []string{w.name, "", "again"} {
			if n, err := w.write(c, []byte(text), udpOf(s)); n != len(text) || err != nil {
				e.Fatalf("%s: %d, %v", w.name, n, err)
			}
			e.gets(s, text, c.LocalAddr())
		}
	}
}

func writeVariantsConnected(e *env) {
	s := e.socket(e.server, e.serverIP)
	c := e.connected(s.LocalAddr())
	type addrPorts interface {
		WriteMsgUDPAddrPort(b, oob []byte, addr netip.AddrPort) (n, oobn int, err error)
	}
	writes := map[string]func(b []byte) (int, error){
		"Write": c.Write,
		"WriteMsgUDP": func(b []byte) (int, error) {
			n, _, err := c.WriteMsgUDP(b, nil, nil)
			return n, err
		},
		"WriteMsgUDPAddrPort": func(b []byte) (int, error) {
			n, _, err := c.(addrPorts).WriteMsgUDPAddrPort(b, nil, netip.AddrPort{})
			return n, err
		},
	}
	if e.sim == nil && strings.HasPrefix(runtime.Version(), "go1.25") { // its package net refuses the address that is none
		delete(writes, "WriteMsgUDPAddrPort")
	}
	for name, write := range writes {
		if n, err := write([]byte(name)); n != len(name) || err != nil {
			e.Fatalf("%s: %d, %v", name, n, err)
		}
		e.gets(s, name, c.LocalAddr())
	}
}

func readVariants(e *env) {
	s := e.socket(e.server, e.serverIP)
	for _, c := range []socket{e.socket(e.client, e.clientIP), e.connected(s.LocalAddr())} {
		for _, r := range readers() {
			for _, text := range []string{r.name, "and", "again"} {
				e.sendsTo(s, []byte(text), c.LocalAddr())
			}
			for _, text := range []string{r.name, "and", "again"} {
				got := e.reads1(r, c, 100)
				if got.text != text {
					e.Errorf("%s: %q, want %q", r.name, got.text, text)
				}
				if r.name != "Read" {
					e.fromThere(r.name, got.from, s.LocalAddr())
				}
			}
		}
	}
}

func cutVariants(e *env) {
	c, s := e.sockets()
	for _, r := range readers() {
		e.sendsTo(c, []byte("abcdef"), s.LocalAddr())
		e.sendsTo(c, []byte("next"), s.LocalAddr())
		if got := e.reads1(r, s, 3); got.text != "abc" {
			e.Errorf("%s: %q, want abc", r.name, got.text)
		}
		e.gets(s, "next", c.LocalAddr())
	}
	for _, size := range []int{0, 5, 6, 7} {
		e.sendsTo(c, []byte("abcdef"), s.LocalAddr())
		b := make([]byte, size)
		var flags int
		n, err := e.wait(e.start(func() (n int, err error) { n, _, flags, _, err = s.ReadMsgUDP(b, nil); return }))
		want := 0
		if size < 6 {
			want = syscall.MSG_TRUNC
		}
		if n != min(size, 6) || err != nil || flags != want {
			e.Errorf("ReadMsgUDP into %d B: %d, flags %#x, %v, want flags %#x", size, n, flags, err, want)
		}
	}
}

func emptyVariants(e *env) {
	c, s := e.sockets()
	for _, r := range readers() {
		e.sendsTo(c, nil, s.LocalAddr())
		e.sendsTo(c, []byte("next"), s.LocalAddr())
		got := e.reads1(r, s, 10)
		if got.text != "" {
			e.Errorf("%s: %q, want nothing", r.name, got.text)
		}
		if r.name != "Read" {
			e.fromThere(r.name, got.from, c.LocalAddr())
		}
		e.gets(s, "next", c.LocalAddr())
	}
}

func badAddresses(e *env) {
	c, s := e.sockets()
	here, port := "write udp "+c.LocalAddr().String(), udpOf(s).Port
	family, odd, oddText := "IPv4", "::1", "[::1]"
	if e.six() {
		family = "IPv6"
	}
	for _, w := range writers() {
		call := ": " + w.call + ": "
		to := func(ip net.IP, port int) (string, int, error) {
			a := &net.UDPAddr{IP: ip, Port: port}
			n, err := w.write(c, []byte("x"), a)
			return w.name + " to " + a.String(), n, err
		}
		what, n, err := to(udpOf(s).IP, 0)
		e.failsAs(what, n, err, here+"->"+e.udp(e.serverIP, 0).String()+call+"invalid argument", syscall.EINVAL)
		if e.six() {
			what, n, err = to(net.IPv4(127, 0, 0, 1).To4(), port)
			e.failsAs(what, n, err, fmt.Sprintf("%s->127.0.0.1:%d%snetwork is unreachable", here, port, call), syscall.ENETUNREACH)
		} else {
			what, n, err = to(net.ParseIP(odd), port)
			e.failsAs(what, n, err, fmt.Sprintf("%s->%s:%d: address %s: non-IPv4 address", here, oddText, port, odd), nil)
		}
		if w.name == "WriteToUDPAddrPort" {
			continue
		}
		what, n, err = to(net.IP{1, 2, 3}, port)
		e.failsAs(what, n, err, fmt.Sprintf("%s->?010203:%d: address ?010203: non-%s address", here, port, family), nil)
		for _, p := range []int{-1, 65536, 1 << 20} {
			what, n, err = to(udpOf(s).IP, p)
			e.failsAs(what, n, err, here+"->"+(&net.UDPAddr{IP: udpOf(s).IP, Port: p}).String()+call+"invalid argument", syscall.EINVAL)
		}
		n, err = w.write(c, []byte("x"), nil)
		e.failsAs(w.name+" to nil", n, err, here+": missing address", nil)
	}
	n, err := c.WriteTo([]byte("x"), nil)
	e.failsAs("WriteTo no address", n, err, here+": invalid argument", syscall.EINVAL)
	n, err = c.WriteTo([]byte("x"), &net.IPAddr{IP: udpOf(s).IP})
	e.failsAs("WriteTo an IP address", n, err, here+"->"+e.serverIP+": invalid argument", syscall.EINVAL)
	n, err = c.WriteToUDPAddrPort([]byte("x"), netip.AddrPort{})
	e.failsAs("WriteToUDPAddrPort nothing", n, err, here+"->invalid AddrPort: missing address", nil)
	e.sendsTo(c, []byte("good"), s.LocalAddr())
	e.gets(s, "good", c.LocalAddr())
}

func addressesOnConnected(e *env) {
	s := e.socket(e.server, e.serverIP)
	c := e.connected(s.LocalAddr())
	here, text := "write udp "+c.LocalAddr().String(), net.ErrWriteToConnected.Error()
	for _, w := range writers() {
		n, err := w.write(c, []byte("x"), e.udp(e.serverIP, 7))
		e.failsAs(w.name, n, err, here+"->"+e.udp(e.serverIP, 7).String()+": "+text, net.ErrWriteToConnected)
	}
	n, err := c.WriteTo([]byte("x"), (*net.UDPAddr)(nil))
	e.failsAs("WriteTo a nil *UDPAddr", n, err, here+": "+text, net.ErrWriteToConnected)
	n, err = c.WriteTo([]byte("x"), nil)
	e.failsAs("WriteTo nil", n, err, here+": invalid argument", syscall.EINVAL)
	e.writes(c, "good")
	e.gets(s, "good", c.LocalAddr())
}

func errorOrder(e *env) {
	c, s := e.sockets()
	d := e.connected(s.LocalAddr())
	huge := make([]byte, 66000)
	e.must(c.SetDeadline(past))
	_, err := c.WriteTo(huge, s.LocalAddr())
	e.same(err, &net.OpError{Op: "write", Net: "udp", Source: c.LocalAddr(), Addr: s.LocalAddr(), Err: os.ErrDeadlineExceeded})
	_, err = c.WriteTo(huge, (*net.UDPAddr)(nil))
	e.failsAs("a nil address past the deadline", 0, err, "write udp "+c.LocalAddr().String()+": missing address", nil)
	e.must(c.SetDeadline(time.Time{}))
	if !e.six() { // the kernel has another order there
		_, err = c.WriteTo(huge, e.udp(e.serverIP, 0))
		e.same(err, &net.OpError{Op: "write", Net: "udp", Source: c.LocalAddr(), Addr: e.udp(e.serverIP, 0), Err: sysError("sendto", syscall.EMSGSIZE)})
	}
	e.must(c.SetDeadline(past))
	e.must(c.Close())
	_, err = c.WriteTo(huge, s.LocalAddr())
	e.same(err, &net.OpError{Op: "write", Net: "udp", Source: c.LocalAddr(), Addr: s.LocalAddr(), Err: net.ErrClosed})
	_, err = c.WriteTo(huge, nil)
	e.same(err, &net.OpError{Op: "write", Net: "udp", Source: c.LocalAddr(), Err: syscall.EINVAL})
	_, err = c.Write(huge)
	e.same(err, &net.OpError{Op: "write", Net: "udp", Source: c.LocalAddr(), Err: net.ErrClosed})
	for _, r := range readers() {
		_, _, err := r.read(c, nil)
		e.same(err, connError(c, "read", net.ErrClosed))
	}
	for _, err := range []error{c.SetDeadline(past), c.SetReadDeadline(past), c.SetWriteDeadline(past), c.SetReadBuffer(0), c.SetWriteBuffer(4096)} {
		e.same(err, setError(c, net.ErrClosed))
	}
	e.must(d.Close())
	_, err = d.WriteTo(huge, s.LocalAddr())
	e.same(err, connError(d, "write", net.ErrWriteToConnected))
}

func datagramDials(e *env) {
	s := e.socket(e.server, e.serverIP)
	to := s.LocalAddr().String()
	from := e.socket(e.client, e.clientIP)
	_, err := e.dialer(net.Dialer{LocalAddr: from.LocalAddr()}).Dial("udp", to)
	e.same(err, dialError(from.LocalAddr(), s.LocalAddr(), sysError("bind", syscall.EADDRINUSE)))
	foreign := e.udp(e.foreignIP, 0)
	_, err = e.dialer(net.Dialer{LocalAddr: foreign}).Dial("udp", to)
	e.same(err, dialError(foreign, s.LocalAddr(), sysError("bind", syscall.EADDRNOTAVAIL)))
	e.must(from.Close())
	c, err := e.dialer(net.Dialer{LocalAddr: from.LocalAddr()}).Dial("udp", to)
	e.must(err)
	defer c.Close()
	if !sameAddr(c.LocalAddr(), from.LocalAddr()) {
		e.Errorf("dialled from %v, want %v", c.LocalAddr(), from.LocalAddr())
	}
	odd := e.udp("::1", 0)
	if e.six() {
		odd = e.udp("127.0.0.1", 0)
	}
	_, err = e.dialer(net.Dialer{LocalAddr: odd}).Dial("udp", to)
	e.failsAs("a local address of the other family", 0, err, "dial udp: address "+odd.String()+": no suitable address found", nil)
	_, err = e.server.ListenPacket("tcp", net.JoinHostPort(e.serverIP, "0"))
	e.failsAs("a socket of streams", 0, err, fmt.Sprintf("listen tcp %[1]s: address %[1]s: unexpected address type", net.JoinHostPort(e.serverIP, "0")), nil)
	_, err = e.server.ListenPacket("quic", net.JoinHostPort(e.serverIP, "0"))
	e.failsAs("a socket of nothing", 0, err, "listen quic: unknown network quic", net.UnknownNetworkError("quic"))
}

func otherPort(e *env) {
	s, stranger := e.socket(e.server, e.serverIP), e.socket(e.server, e.serverIP)
	c := e.connected(s.LocalAddr())
	e.sendsTo(stranger, []byte("stranger"), c.LocalAddr())
	e.settle()
	e.sendsTo(s, []byte("peer"), c.LocalAddr())
	for _, r := range readers()[1:2] {
		got := e.reads1(r, c, 100)
		if got.text != "peer" {
			e.Errorf("%s: %q, want what the peer has sent", r.name, got.text)
		}
		e.fromThere(r.name, got.from, s.LocalAddr())
	}
}

func expiredVariants(e *env) {
	c, s := e.sockets()
	e.sendsTo(c, []byte("kept"), s.LocalAddr())
	e.settle()
	for _, set := range []func(time.Time) error{s.SetReadDeadline, s.SetDeadline} {
		for _, at := range []time.Time{past, time.Now().Add(-time.Hour), time.Now().Add(e.pause / 2)} {
			e.must(set(at))
			e.settle()
			for range 2 {
				for _, r := range readers() {
					n, from, err := r.read(s, make([]byte, 10))
					if from != nil {
						e.Errorf("%s: from %v, want nil", r.name, from)
					}
					e.fails(n, err, connError(s, "read", os.ErrDeadlineExceeded))
				}
			}
			e.must(set(time.Time{}))
		}
	}
	e.gets(s, "kept", c.LocalAddr())
	for _, set := range []func(time.Time) error{c.SetWriteDeadline, c.SetDeadline} {
		e.must(set(past))
		for _, w := range writers() {
			n, err := w.write(c, []byte("x"), udpOf(s))
			e.failsAs(w.name, n, err, "write udp "+c.LocalAddr().String()+"->"+s.LocalAddr().String()+": i/o timeout", os.ErrDeadlineExceeded)
		}
		e.must(set(time.Time{}))
	}
	e.must(c.SetReadDeadline(past)) // it bounds no writes
	e.sendsTo(c, []byte("sent"), s.LocalAddr())
	e.gets(s, "sent", c.LocalAddr())
}

// readAll lets one goroutine read in each of the ways.
func (e *env) readAll(c socket) (calls []*call) {
	e.Helper()
	for _, r := range readers() {
		calls = append(calls, e.start(func() (n int, err error) { n, _, err = r.read(c, make([]byte, 100)); return }))
	}
	e.settle()
	for _, k := range calls {
		e.unfinished(k)
	}
	return calls
}

// timeOut checks that all calls have run out of time, so long after an instant.
func (e *env) timeOut(c socket, calls []*call, since time.Time, after time.Duration) {
	e.Helper()
	for _, k := range calls {
		n, err := e.wait(k)
		e.fails(n, err, connError(c, "read", os.ErrDeadlineExceeded))
		if got := k.ended.Sub(since); got < after || e.sim != nil && got != after {
			e.Errorf("ended after %v, want %v", got, after)
		}
	}
}

func futureDeadline(e *env) {
	c := e.socket(e.client, e.clientIP)
	start := time.Now()
	e.must(c.SetReadDeadline(start.Add(8 * e.pause)))
	e.timeOut(c, e.readAll(c), start, 8*e.pause)
}

func movedDeadline(e *env) {
	c := e.socket(e.client, e.clientIP)
	for _, to := range []time.Duration{16, 8, 0} { // later, earlier, and past
		start := time.Now()
		e.must(c.SetReadDeadline(start.Add(12 * e.pause)))
		calls := e.readAll(c)
		e.must(c.SetReadDeadline(start.Add(to * e.pause)))
		e.timeOut(c, calls, start, max(to, 1)*e.pause)
		e.must(c.SetReadDeadline(time.Time{}))
	}
}

func clearedDeadline(e *env) {
	c, s := e.sockets()
	e.must(c.SetReadDeadline(time.Now().Add(8 * e.pause)))
	calls := e.readAll(c)
	e.must(c.SetReadDeadline(time.Time{}))
	time.Sleep(9 * e.pause)
	for range calls {
		e.sendsTo(s, []byte("later"), c.LocalAddr())
	}
	for _, k := range calls {
		if n, err := e.wait(k); n != 5 || err != nil {
			e.Errorf("read %d, %v", n, err)
		}
	}
}

func dataBeforeDeadline(e *env) {
	c, s := e.sockets()
	e.must(c.SetReadDeadline(time.Now().Add(10 * e.pause)))
	for _, r := range readers() {
		e.sendsTo(s, []byte("early"), c.LocalAddr())
		if got := e.reads1(r, c, 10); got.text != "early" {
			e.Errorf("%s: %q", r.name, got.text)
		}
	}
}

func manyReaders(e *env) {
	c, s := e.sockets()
	const rounds = 4
	got := make(chan string)
	for _, r := range readers() {
		go func() {
			b := make([]byte, 100)
			for range rounds {
				n, _, err := r.read(s, b)
				if err != nil {
					got <- err.Error()
					return
				}
				got <- string(b[:n])
			}
		}()
	}
	e.settle()
	var want, all []string
	for i := range rounds * len(readers()) {
		want = append(want, fmt.Sprintf("datagram %02d", i))
		e.sendsTo(c, []byte(want[i]), s.LocalAddr())
		all = append(all, <-got)
	}
	if slices.Sort(all); !slices.Equal(all, want) {
		e.Errorf("the readers got %q, want each of %q once", all, want)
	}
}

func closeWhileReading(e *env) {
	c := e.socket(e.client, e.clientIP)
	calls := e.readAll(c)
	start := time.Now()
	e.must(c.Close())
	for _, k := range calls {
		n, err := e.wait(k)
		e.fails(n, err, connError(c, "read", net.ErrClosed))
		if e.sim != nil && k.ended != start {
			e.Errorf("ended %v after Close", k.ended.Sub(start))
		}
	}
}

func manyPacketCloses(e *env) {
	c := e.socket(e.client, e.clientIP)
	var closes []*call
	for range 20 {
		closes = append(closes, e.start(func() (int, error) { return 0, c.Close() }))
	}
	good := 0
	for _, k := range closes {
		if _, err := e.wait(k); err == nil {
			good++
		} else {
			e.same(err, connError(c, "close", net.ErrClosed))
		}
	}
	if good != 1 {
		e.Errorf("%d of 20 succeed, want 1", good)
	}
}

// largest is the size of the largest datagram.
func (e *env) largest() int {
	if e.six() {
		return 65527
	}
	return 65507
}

func allSizes(e *env) {
	c, s := e.sockets()
	buf := make([]byte, 70000)
	for _, size := range []int{0, 1, 2, 512, 1472, 1473, 8192, 9000, 40000, e.largest()} {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(i * 7 / 3)
		}
		e.sendsTo(c, b, s.LocalAddr())
		n, err := e.wait(e.start(func() (n int, err error) { n, _, err = s.ReadFrom(buf); return }))
		if err != nil || !bytes.Equal(buf[:n], b) {
			e.Errorf("of %d B came %d, %v", size, n, err)
		}
	}
}

func tooLarge(e *env) {
	c, s := e.sockets()
	b := make([]byte, e.largest()+1)
	for _, w := range writers() {
		n, err := w.write(c, b, udpOf(s))
		e.failsAs(w.name, n, err, "write udp "+c.LocalAddr().String()+"->"+s.LocalAddr().String()+": "+w.call+": message too long", syscall.EMSGSIZE)
	}
	d := e.connected(s.LocalAddr())
	n, err := d.Write(b)
	e.fails(n, err, connError(d, "write", sysError("write", syscall.EMSGSIZE)))
	n, _, err = d.WriteMsgUDP(b, nil, nil)
	e.fails(n, err, &net.OpError{Op: "write", Net: "udp", Source: d.LocalAddr(), Err: sysError("sendmsg", syscall.EMSGSIZE)})
	e.sendsTo(c, []byte("good"), s.LocalAddr())
	e.gets(s, "good", c.LocalAddr())
}

func oneFits(e *env) {
	c, s := e.sockets()
	e.must(s.SetReadBuffer(1))
	e.must(c.SetWriteBuffer(1))
	for _, size := range []int{1, 1000, 60000} {
		for range 5 {
			e.sendsTo(c, make([]byte, size), s.LocalAddr())
		}
		e.settle()
		kept := 0
		e.must(s.SetReadDeadline(time.Now().Add(e.pause)))
		for b := make([]byte, 65000); ; kept++ {
			n, err := s.Read(b)
			if err != nil {
				break
			}
			if n != size {
				e.Errorf("read %d B, want %d", n, size)
			}
		}
		e.must(s.SetReadDeadline(time.Time{}))
		if kept == 0 || size > 1000 && kept != 1 {
			e.Errorf("%d of 5 datagrams of %d B were kept", kept, size)
		}
	}
}

func lateReader(e *env) {
	c, late, good := e.socket(e.client, e.clientIP), e.socket(e.server, e.serverIP), e.socket(e.server, e.serverIP)
	start := time.Now()
	b := make([]byte, 1000)
	for i := range 3000 {
		e.sendsTo(c, b, late.LocalAddr())
		if i%100 == 0 {
			e.sendsTo(c, []byte("good"), good.LocalAddr())
		}
	}
	if e.sim != nil {
		e.exactly(start, 0)
	}
	for range 30 {
		e.gets(good, "good", c.LocalAddr())
	}
	if n, err := late.Read(b); n != 1000 || err != nil {
		e.Errorf("the first to the late reader: %d, %v", n, err)
	}
}

func manyAsk(e *env) {
	s := e.socket(e.server, e.serverIP)
	server := e.start(func() (int, error) {
		for b := make([]byte, 100); ; {
			n, from, err := s.ReadFrom(b)
			if err != nil {
				return 0, err
			}
			if _, err := s.WriteTo(bytes.ToUpper(b[:n]), from); err != nil {
				return 0, err
			}
		}
	})
	const clients, questions = 8, 25
	var asking []*call
	for i := range clients {
		c := e.connected(s.LocalAddr())
		if i%2 == 0 {
			c = e.socket(e.client, e.clientIP)
		}
		asking = append(asking, e.start(func() (int, error) { return e.ask(c, s.LocalAddr(), fmt.Sprint("client ", i), questions) }))
	}
	for i, k := range asking {
		if n, err := e.wait(k); n != questions || err != nil {
			e.Errorf("client %d has got %d answers: %v", i, n, err)
		}
	}
	e.must(s.Close())
	if _, err := e.wait(server); !errors.Is(err, net.ErrClosed) {
		e.Errorf("the server: %v", err)
	}
}

// ask asks a number of questions, one after the other, and counts the right answers.
func (e *env) ask(c socket, server net.Addr, who string, questions int) (answered int, err error) {
	b := make([]byte, 100)
	for i := range questions {
		q := []byte(fmt.Sprint(who, " question ", i))
		if c.RemoteAddr() != nil {
			_, err = c.Write(q)
		} else {
			_, err = c.WriteTo(q, server)
		}
		if err != nil {
			return i, err
		}
		n, from, err := c.ReadFrom(b)
		if err != nil {
			return i, err
		}
		if !bytes.Equal(b[:n], bytes.ToUpper(q)) || from.String() != server.String() {
			return i, fmt.Errorf("asked %q, got %q from %v", q, b[:n], from)
		}
	}
	return questions, nil
}

// everythingAtOnce finds races, with the detector, and calls that hang.
func everythingAtOnce(e *env) {
	c, s := e.sockets()
	d := e.connected(s.LocalAddr())
	end := time.Now().Add(2 * e.pause)
	var calls sync.WaitGroup
	loop := func(f func(i int)) {
		calls.Go(func() {
			for i := 0; time.Now().Before(end); i++ {
				f(i)
				time.Sleep(time.Millisecond)
			}
		})
	}
	for _, k := range []socket{c, s, d} {
		for _, r := range readers() {
			loop(func(int) { r.read(k, make([]byte, 10)) })
		}
		loop(func(i int) { k.SetDeadline(time.Now().Add(time.Duration(i%3-1) * time.Millisecond)) })
		loop(func(i int) { k.SetReadBuffer(1 + 1000*i) })
		loop(func(int) { k.Write([]byte("to the peer")) })
		loop(func(int) { k.LocalAddr(); k.RemoteAddr() })
		for _, w := range writers() {
			loop(func(int) { w.write(k, []byte("to the server"), udpOf(s)) })
		}
		calls.Go(func() {
			time.Sleep(e.pause)
			k.Close()
		})
	}
	done := make(chan struct{})
	go func() { calls.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		e.Fatal("some calls have not returned")
	}
}

var _ socket = (*gosimnet.PacketConn)(nil)
