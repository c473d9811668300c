package gosimnet

import (
	"cmp"
	"context"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"
)

const (
	maxDatagram  = 65507 // RFC 768 in RFC 791: 65535 less both headers
	maxDatagram6 = 65527 // RFC 768 in RFC 8200: 65535 less one header

	// What a receive queue holds, Linux's rmem_default, and what the kernel counts for a datagram besides its bytes.
	datagramQueue    = 212992
	datagramOverhead = 1304
	leastQueue       = 2304 // SOCK_MIN_RCVBUF
)

// mostBytes is the size of the largest datagram to an address.
func mostBytes(to netip.Addr) int {
	if to.Is4() {
		return maxDatagram
	}
	return maxDatagram6
}

// PacketConn is a socket for datagrams ("udp", "udp4", "udp6"): a net.PacketConn, and, if it was dialled, a net.Conn, that behaves as *net.UDPConn does on
// Linux. Sending never waits. What arrives while the receive queue is full is lost. All methods may be called by several
// goroutines at once; each datagram goes to one reader.
type PacketConn struct {
	net     *Simnet
	host    *Host
	network string
	family  family
	at      netip.AddrPort // local; unspecified: all addresses
	remote  netip.AddrPort // of a connected socket
	icmp    *flow          // of ICMP messages to it
	id      uint64         // what its flows' keys are made of
	asks    bool           // it is bound by its first datagram, a query
	flows   map[netip.AddrPort]*flow
	lastTo  netip.AddrPort // where the last datagram went
	last    *flow          // and by which flow, unless that may be another one by now
	casts   uint64         // datagrams to several hosts so far
	groups  []netip.Addr
	shared  bool // it shares its port with others that do
	mute    bool // what it sends to groups does not come back to its host

	castFlows map[castKey]*flow
	heard     map[netip.AddrPort]correspondent // who sent from there last
	lastHeard *flow                            // the last of their flows

	queue     []*packet
	queued    int // what the queue counts
	limit     int // of it
	readers   waitlist
	readBy    deadline
	writeBy   deadline
	closed    bool
	forgotten bool
	failure   error // an ICMP error, to be reported once
}

// ListenPacket opens a socket for datagrams, as net.ListenPacket does. Networks are "udp", "udp4" and "udp6"; addresses and errors are those of Listen, in
// a port space of their own.
func (h *Host) ListenPacket(network, address string) (net.PacketConn, error) {
	c, err := h.listenPacket(network, address)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (h *Host) listenPacket(network, address string) (*PacketConn, error) {
	fail := func(addr net.Addr, err error) (*PacketConn, error) {
		return nil, opError("listen", network, nil, addr, err)
	}
	if err := h.fault(); err != nil {
		return fail(nil, err)
	}
	t, f, err := parseNetwork(network)
	if err != nil {
		return fail(nil, err)
	}
	s := h.net
	if err := s.enter(); err != nil {
		return fail(nil, err)
	}
	defer s.leave()
	if t == transportCircuit {
		return fail(nil, &net.AddrError{Err: "unexpected address type", Addr: address})
	}
	dst, err := h.resolve(context.Background(), never, network, address, f)
	if err != nil {
		return fail(nil, err)
	}
	dst.toListen()
	if t != transportUDP {
		return fail(tcpAddr(dst.asked()), &net.AddrError{Err: "unexpected address type", Addr: address})
	}
	ip := wildcard(f)
	if !dst.any && !dst.addrs[0].IsUnspecified() {
		ip = dst.addrs[0]
	}
	c, err := h.openPacket(network, f, netip.AddrPortFrom(ip, dst.port), netip.AddrPort{})
	if err != nil {
		return fail(udpAddr(dst.asked()), err)
	}
	return c, nil
}

// dialPacket opens a connected socket. Nothing is sent.
func (h *Host) dialPacket(ctx context.Context, d *Dialer, network, address string, f family) (net.Conn, error) {
	to, err := h.destinations(ctx, d.until(ctx, h.net), network, address, f)
	if err != nil {
		return nil, opError("dial", network, nil, nil, err)
	}
	from, err := localAddr[*net.UDPAddr](d)
	if err == nil && from != nil {
		err = to.restrict(from.IP, from)
	}
	if err != nil {
		return nil, opError("dial", network, nil, nil, err)
	}
	c, err := h.connectPacket(ctx, d, network, f, from, to.asked())
	if err != nil {
		return nil, opError("dial", network, d.LocalAddr, udpAddr(to.asked()), err)
	}
	return c, nil
}

// connectPacket opens a socket that talks to one address alone.
func (h *Host) connectPacket(ctx context.Context, d *Dialer, network string, f family, from *net.UDPAddr, to netip.AddrPort) (*PacketConn, error) {
	if err := d.tooLate(ctx); err != nil {
		return nil, err
	}
	if from == nil {
		from = &net.UDPAddr{}
	}
	local, dst, bound, err := h.bindingTo(f, from.IP, from.Port, to)
	if err != nil {
		return nil, err
	}
	if !bound && h.taken(f, local) {
		return nil, sysErr("bind", syscall.EADDRINUSE)
	}
	if err := h.routed(local.Addr(), dst.Addr()); err != nil {
		return nil, os.NewSyscallError("connect", err)
	}
	c, err := h.openPacket(network, f, local, dst)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// taken reports whether a socket that names a port, and no address, would clash: it binds all addresses before it is connected.
func (h *Host) taken(f family, local netip.AddrPort) bool {
	if local.Addr().Is4() {
		f = onlyV4
	}
	all := &PacketConn{family: f, at: netip.AddrPortFrom(wildcard(f), local.Port())}
	return local.Port() != 0 && slices.ContainsFunc(h.sockets[local.Port()], all.conflicts)
}

// openPacket binds a socket, and connects it if it has a remote address. A group's address means, as to package net, all addresses, and a
// port that is shared.
func (h *Host) openPacket(network string, f family, at, remote netip.AddrPort) (*PacketConn, error) {
	shared := at.Addr().IsMulticast()
	if shared {
		if f == anyFamily && at.Addr().Is4() {
			f = onlyV4
		}
		at = netip.AddrPortFrom(wildcard(f), at.Port())
	}
	c := h.newSocket(network, f, at, remote)
	c.shared = shared
	start := uint16(0)
	if at.Port() == 0 {
		start = c.name()
	}
	if err := c.bind(start); err != nil {
		return nil, err
	}
	return c, nil
}

func (h *Host) newSocket(network string, f family, at, remote netip.AddrPort) *PacketConn {
	c := &PacketConn{net: h.net, host: h, network: network, family: f, at: at, remote: remote, limit: datagramQueue}
	c.readBy.init(h.net, h, &c.readers, 0, 6)
	c.writeBy.init(h.net, h, new(waitlist), 0, 7)
	return c
}

// bind gives the socket its address. A free port is looked for from a place on.
func (c *PacketConn) bind(start uint16) error {
	h := c.host
	if h.owner(c.at.Addr()) != h && !broadcast(c.at.Addr()) {
		return sysErr("bind", syscall.EADDRNOTAVAIL)
	}
	if h.off(c.at.Port()) {
		return sysErr("bind", syscall.ENETDOWN)
	}
	if c.at.Port() == 0 {
		c.at = netip.AddrPortFrom(c.at.Addr(), h.freeSocket(start))
	}
	port := c.at.Port()
	if port == 0 || slices.ContainsFunc(h.sockets[port], c.conflicts) {
		return sysErr("bind", syscall.EADDRINUSE)
	}
	if h.sockets == nil {
		h.sockets, h.bound = make(map[uint16][]*PacketConn), make(map[uint16]uint64)
	}
	if c.id == 0 {
		c.id = hashString(h.bound[port]<<16|uint64(port), h.name)
		h.bound[port]++
	}
	h.sockets[port] = append(h.sockets[port], c)
	h.bindings++
	c.readBy.key, c.writeBy.key = c.id, c.id
	return nil
}

// name gives a socket that was dialled an identity made of where to, since its port may depend on who dialled first at
// this instant, and returns where to look for a port (RFC 6056, algorithm 3). Others take the next.
func (c *PacketConn) name() uint16 {
	h := c.host
	if !c.remote.IsValid() {
		h.socketCursor++
		return h.socketCursor - 1
	}
	whom, n, k := c.remote.Addr().String(), uint64(0), conversation{transportUDP, c.remote.Port()}
	if o := h.owner(c.remote.Addr()); o != nil {
		whom, n = o.name, c.net.linkBetween(h, o).countDial(k)
	} else if many(c.remote.Addr()) {
		n = h.countAbout(k.key(h.name, 0, whom))
	}
	c.id = k.key(h.name, n, whom)
	return uint16(c.id % ephemeralPorts)
}

// freeSocket is the first port from a place on that no socket has; 0 if there is none.
func (h *Host) freeSocket(start uint16) uint16 {
	for i := range uint16(ephemeralPorts) {
		p := firstEphemeral + (start+i)%ephemeralPorts
		if len(h.sockets[p]) == 0 {
			return p
		}
	}
	return 0
}

// conflicts reports whether two sockets would get the same datagrams, and one of them will not share.
func (c *PacketConn) conflicts(o *PacketConn) bool {
	if c.shared && o.shared {
		return false
	}
	if c.at.Addr() == o.at.Addr() {
		return c.family == o.family || !c.at.Addr().IsUnspecified() || c.family == anyFamily || o.family == anyFamily
	}
	return c.at.Addr().IsUnspecified() && c.family.allows(o.at.Addr()) || o.at.Addr().IsUnspecified() && o.family.allows(c.at.Addr())
}

// hears reports whether the socket gets what is sent from src to dst.
func (c *PacketConn) hears(src, dst netip.AddrPort) bool {
	here := c.at.Addr() == dst.Addr() || c.at.Addr().IsUnspecified() && c.family.allows(dst.Addr())
	return here && (!c.remote.IsValid() || c.remote == src)
}

// wildcard is the address of a socket that is bound to all addresses of a family.
func wildcard(f family) netip.Addr {
	if f == onlyV4 {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// socketFor finds who gets what is sent from src to dst: a connected socket before others, and of several that share a port the last.
func (h *Host) socketFor(src, dst netip.AddrPort) *PacketConn {
	var found *PacketConn
	for _, c := range h.sockets[dst.Port()] {
		if c.hears(src, dst) && (found == nil || c.remote.IsValid() || !found.remote.IsValid()) {
			found = c
		}
	}
	return found
}

func udpAddr(a netip.AddrPort) *net.UDPAddr {
	return &net.UDPAddr{IP: a.Addr().AsSlice(), Port: int(a.Port())}
}

// LocalAddr is a *net.UDPAddr; it stays valid after Close.
func (c *PacketConn) LocalAddr() net.Addr { return udpAddr(c.at) }

// RemoteAddr is the *net.UDPAddr that was dialled, or nil.
func (c *PacketConn) RemoteAddr() net.Addr {
	if !c.remote.IsValid() {
		return nil
	}
	return udpAddr(c.remote)
}

func (c *PacketConn) opErr(op string, err error) error {
	return opError(op, c.network, c.LocalAddr(), c.RemoteAddr(), err)
}

// enter locks the network for a call on an open socket.
func (c *PacketConn) enter() error {
	if err := c.net.enter(); err != nil {
		return err
	}
	if c.closed || c.forgotten {
		c.net.leave()
		return net.ErrClosed
	}
	return nil
}

// receive waits for the next datagram.
func (c *PacketConn) receive(b []byte, call string) (n, full int, from netip.AddrPort, err error) {
	if err := c.enter(); err != nil {
		return 0, 0, from, err
	}
	defer c.net.leave()
	for {
		switch {
		case c.closed || c.forgotten || c.net.closed:
			return 0, 0, from, net.ErrClosed
		case call == "read" && len(b) == 0:
			return 0, 0, from, nil
		case c.readBy.expired():
			return 0, 0, from, os.ErrDeadlineExceeded
		case c.failure != nil:
			if len(c.queue) > 0 {
				c.net.wakeFirst(&c.readers)
			}
			return 0, 0, from, c.report(call)
		case len(c.queue) > 0:
			n, full, from = c.take(b)
			n, err = c.net.outcome(c.host, n, nil)
			return n, full, from, err
		}
		c.readBy.await(callRead)
	}
}

// take copies the first datagram, what fits of it, and forgets the rest.
func (c *PacketConn) take(b []byte) (n, full int, from netip.AddrPort) {
	p := c.queue[0]
	c.queue = slices.Delete(c.queue, 0, 1)
	c.queued -= p.size + datagramOverhead
	n, full, from = copy(b, p.payload), p.size, p.flow.src
	if p.flow != c.lastHeard && from.Port() >= firstEphemeral {
		c.hear(p)
	}
	c.net.release(p)
	if len(c.queue) > 0 {
		c.net.wakeFirst(&c.readers)
	}
	return n, full, from
}

// correspondent is a socket that a datagram came from.
type correspondent struct {
	id    uint64
	begun bool // this socket had sent there before
}

// hear notes who sent a datagram: see keyTo.
func (c *PacketConn) hear(p *packet) {
	from := p.flow.src
	c.lastHeard = p.flow
	last, known := c.heard[from]
	if known && last.id == p.socket.id {
		return
	}
	if c.heard == nil {
		c.heard = make(map[netip.AddrPort]correspondent)
	}
	c.heard[from] = correspondent{p.socket.id, !known && c.flows[from] != nil}
	c.last = nil
}

// report gives out an ICMP error, once.
func (c *PacketConn) report(call string) error {
	err := c.failure
	c.failure = nil
	return sysErr(call, err.(syscall.Errno))
}

// Read waits for the next datagram until the deadline and copies what fits of it; the rest is lost. On a connected socket, ECONNREFUSED says once
// that an earlier datagram met a closed port. An empty b returns 0 at once, and takes nothing.
func (c *PacketConn) Read(b []byte) (int, error) {
	n, _, _, err := c.receive(b, "read")
	if err != nil {
		err = c.opErr("read", err)
	}
	return n, err
}

// ReadFrom is Read that tells the sender, a *net.UDPAddr. An empty b takes a datagram, and loses it.
func (c *PacketConn) ReadFrom(b []byte) (int, net.Addr, error) {
	n, a, err := c.ReadFromUDP(b)
	if a == nil {
		return n, nil, err
	}
	return n, a, err
}

// ReadFromUDP is ReadFrom with another type.
func (c *PacketConn) ReadFromUDP(b []byte) (int, *net.UDPAddr, error) {
	n, from, err := c.ReadFromUDPAddrPort(b)
	if err != nil {
		return n, nil, err
	}
	return n, udpAddr(from), nil
}

// ReadFromUDPAddrPort is ReadFrom with another type. As in package net, IPv4 addresses have their short form on a socket that is bound to one, and
// on one of both families the form that is mapped into IPv6.
func (c *PacketConn) ReadFromUDPAddrPort(b []byte) (n int, addr netip.AddrPort, err error) {
	n, _, addr, err = c.receive(b, "recvfrom")
	if err != nil {
		err = c.opErr("read", err)
	}
	return n, c.sender(addr), err
}

// ReadMsgUDP is ReadFromUDP; there is never out-of-band data. The flag MSG_TRUNC says that a datagram did not fit.
func (c *PacketConn) ReadMsgUDP(b, oob []byte) (n, oobn, flags int, addr *net.UDPAddr, err error) {
	n, oobn, flags, from, err := c.ReadMsgUDPAddrPort(b, oob)
	if err == nil {
		addr = udpAddr(from)
	}
	return n, oobn, flags, addr, err
}

// ReadMsgUDPAddrPort is ReadMsgUDP with another type, that of ReadFromUDPAddrPort.
func (c *PacketConn) ReadMsgUDPAddrPort(b, oob []byte) (n, oobn, flags int, addr netip.AddrPort, err error) {
	n, full, addr, err := c.receive(b, "recvmsg")
	if err != nil {
		err = c.opErr("read", err)
	}
	if full > n {
		flags = syscall.MSG_TRUNC
	}
	return n, 0, flags, c.sender(addr), err
}

// sender is the address of a sender in the form that the socket's family has.
func (c *PacketConn) sender(a netip.AddrPort) netip.AddrPort {
	if c.inet4() {
		return a
	}
	return mapped(a)
}

// Write sends a datagram to the address that was dialled. It never waits, and success says nothing of arrival. More than
// 65507 bytes, or 65527 by IPv6, are EMSGSIZE. On a connected socket, ECONNREFUSED says once that an earlier datagram met a closed port.
func (c *PacketConn) Write(b []byte) (int, error) {
	if !c.remote.IsValid() {
		return 0, c.opErr("write", c.unaddressed())
	}
	n, err := c.transmit(b, c.remote, "write")
	if err != nil {
		err = c.opErr("write", err)
	}
	return n, err
}

// unaddressed is why Write fails on a socket that has no peer.
func (c *PacketConn) unaddressed() error {
	if err := c.enter(); err != nil {
		return err
	}
	defer c.net.leave()
	if c.writeBy.expired() {
		return os.ErrDeadlineExceeded
	}
	return sysErr("write", syscall.EDESTADDRREQ)
}

// WriteTo sends a datagram to an address, a *net.UDPAddr; the short and the long form of an IPv4 address are the same. On a connected socket it is net.ErrWriteToConnected. No IP address, and an
// unspecified one, are the host itself. See Write, and ListenMulticastUDP for addresses that mean several hosts.
func (c *PacketConn) WriteTo(b []byte, addr net.Addr) (int, error) {
	a, ok := addr.(*net.UDPAddr)
	if !ok {
		return 0, opError("write", c.network, c.LocalAddr(), addr, syscall.EINVAL)
	}
	return c.WriteToUDP(b, a)
}

// WriteToUDP is WriteTo with another type. A nil address is an error.
func (c *PacketConn) WriteToUDP(b []byte, addr *net.UDPAddr) (int, error) {
	n, err := c.writeTo(b, addr, "sendto")
	if err != nil {
		err = c.writeErr(addr, err)
	}
	return n, err
}

// WriteToUDPAddrPort is WriteTo with another type.
func (c *PacketConn) WriteToUDPAddrPort(b []byte, addr netip.AddrPort) (int, error) {
	n, err := c.writeToAddrPort(b, addr, "sendto")
	if err != nil {
		err = c.writeErr(addrPort{addr}, err)
	}
	return n, err
}

// WriteMsgUDP is WriteToUDP, or, with a nil address on a connected socket, Write. Out-of-band data is ignored.
func (c *PacketConn) WriteMsgUDP(b, oob []byte, addr *net.UDPAddr) (n, oobn int, err error) {
	if addr == nil && c.remote.IsValid() {
		n, err = c.transmit(b, c.remote, "sendmsg")
	} else {
		n, err = c.writeTo(b, addr, "sendmsg")
	}
	if err != nil {
		return 0, 0, c.writeErr(addr, err)
	}
	return n, len(oob), nil
}

// WriteMsgUDPAddrPort is WriteMsgUDP with another type.
func (c *PacketConn) WriteMsgUDPAddrPort(b, oob []byte, addr netip.AddrPort) (n, oobn int, err error) {
	if !addr.IsValid() && c.remote.IsValid() {
		n, err = c.transmit(b, c.remote, "sendmsg")
	} else {
		n, err = c.writeToAddrPort(b, addr, "sendmsg")
	}
	if err != nil {
		return 0, 0, c.writeErr(addrPort{addr}, err)
	}
	return n, len(oob), nil
}

// addrPort is an address in errors of the calls that take it so.
type addrPort struct{ netip.AddrPort }

func (addrPort) Network() string { return "udp" }

// writeErr is the error of a write to an address, which it names as it was given.
func (c *PacketConn) writeErr(addr net.Addr, err error) error {
	if a, ok := addr.(*net.UDPAddr); ok && a == nil {
		addr = nil
	}
	return opError("write", c.network, c.LocalAddr(), addr, err)
}

// inet4 reports whether the socket is one of IPv4, as all are that are bound to an IPv4 address.
func (c *PacketConn) inet4() bool { return c.at.Addr().Is4() }

func (c *PacketConn) writeTo(b []byte, addr *net.UDPAddr, call string) (int, error) {
	switch {
	case c.remote.IsValid():
		return 0, net.ErrWriteToConnected
	case addr == nil:
		return 0, errMissingAddress
	}
	ip, ok := netip.AddrFromSlice(addr.IP)
	switch ip = ip.Unmap(); {
	case len(addr.IP) == 0 || ip == netip.IPv4Unspecified():
		ip = wildcard(onlyV6)
		if c.inet4() {
			ip = wildcard(onlyV4)
		}
	case c.inet4() && !ip.Is4():
		return 0, &net.AddrError{Err: "non-IPv4 address", Addr: addr.IP.String()}
	case !ok:
		return 0, &net.AddrError{Err: "non-IPv6 address", Addr: addr.IP.String()}
	}
	port := uint16(addr.Port)
	if int(port) != addr.Port {
		port = 0 // no port either
	}
	return c.transmit(b, netip.AddrPortFrom(ip, port), call)
}

func (c *PacketConn) writeToAddrPort(b []byte, addr netip.AddrPort, call string) (int, error) {
	ip := addr.Addr().Unmap().WithZone("")
	switch {
	case c.remote.IsValid():
		return 0, net.ErrWriteToConnected
	case !addr.IsValid():
		return 0, errMissingAddress
	case c.inet4() && !ip.Is4():
		return 0, &net.AddrError{Err: "non-IPv4 address", Addr: addr.Addr().String()}
	}
	return c.transmit(b, netip.AddrPortFrom(ip, addr.Port()), call)
}

// transmit sends a datagram.
func (c *PacketConn) transmit(b []byte, to netip.AddrPort, call string) (int, error) {
	if err := c.enter(); err != nil {
		return 0, err
	}
	defer c.net.leave()
	n, err := c.emit(b, to, call)
	return c.net.outcome(c.host, n, err)
}

// emit sends a datagram, with the network locked.
func (c *PacketConn) emit(b []byte, to netip.AddrPort, call string) (int, error) {
	if to.Addr().IsUnspecified() {
		to = netip.AddrPortFrom(c.itself(to.Addr()), to.Port())
	}
	if err := c.sendable(b, to, call); err != nil {
		return 0, err
	}
	if c.asks {
		if err := c.bindQuery(b); err != nil {
			return 0, err
		}
	}
	if many(to.Addr()) {
		c.castTo(b, to)
		return len(b), nil
	}
	f := c.flowTo(to)
	if f == nil {
		return len(b), nil
	}
	p := c.net.newPacket(f, kindDatagram)
	p.socket = c
	p.carry(b)
	c.net.send(p)
	return len(b), nil
}

// itself is the address of the host that an unspecified one means: the one that the socket is bound to, if that is of IPv4, or loopback.
func (c *PacketConn) itself(unspecified netip.Addr) netip.Addr {
	if a := c.at.Addr(); a.Is4() && !a.IsUnspecified() && !broadcast(a) {
		return a
	}
	return loopbackOf(unspecified)
}

// sendable is why a datagram cannot be sent, or nil.
func (c *PacketConn) sendable(b []byte, to netip.AddrPort, call string) error {
	var unroutable error
	if !c.knows(to) {
		unroutable = c.host.routed(c.source(to.Addr()).Addr(), to.Addr())
	}
	switch {
	case c.writeBy.expired():
		return os.ErrDeadlineExceeded
	case len(b) > mostBytes(to.Addr()):
		return sysErr(call, syscall.EMSGSIZE)
	case to.Port() == 0 && !c.remote.IsValid():
		return sysErr(call, syscall.EINVAL)
	case unroutable != nil:
		return os.NewSyscallError(call, unroutable)
	case c.failure != nil:
		return c.report(call)
	}
	return nil
}

// routed is why the host cannot send datagrams from a local address to another one, or nil. What goes to several hosts from a loopback address
// stays in its own.
func (h *Host) routed(from, to netip.Addr) error {
	switch {
	case !from.IsValid():
		return syscall.ENETUNREACH
	case to.IsMulticast() || to == limitedBroadcast:
		return nil
	}
	_, err := h.reach(from, to)
	return err
}

// knows reports whether the last datagram went to an address, too.
func (c *PacketConn) knows(to netip.AddrPort) bool { return c.last != nil && c.lastTo == to }

// flowTo is the flow to an address, or nil if nobody has it.
func (c *PacketConn) flowTo(to netip.AddrPort) *flow {
	if !c.knows(to) {
		c.lastTo, c.last = to, c.findFlow(to)
	}
	return c.last
}

func (c *PacketConn) findFlow(to netip.AddrPort) *flow {
	owner, _ := c.host.reach(c.source(to.Addr()).Addr(), to.Addr())
	if owner == nil {
		return nil
	}
	key := c.keyTo(to, owner)
	f := c.flows[to]
	if f != nil && f.key == key {
		return f
	}
	f = &flow{net: c.net, from: c.host, to: owner, src: c.source(to.Addr()), dst: to, network: "udp", key: key}
	if c.flows == nil {
		c.flows = make(map[netip.AddrPort]*flow)
	}
	c.flows[to] = f
	return f
}

// source is where datagrams to an address come from; it is invalid if that is of a family which the socket or the host has no address of.
func (c *PacketConn) source(to netip.Addr) netip.AddrPort {
	a := c.at.Addr()
	switch {
	case c.family == onlyV6 && to.Is4():
		return netip.AddrPort{}
	case !a.IsUnspecified() && !broadcast(a):
		if a.Is4() != to.Is4() {
			return netip.AddrPort{}
		}
		return c.at
	}
	return netip.AddrPortFrom(c.host.sourceFor(to), c.at.Port())
}

// keyTo is the key of the flow to an address. An answer has one made of who is answered, because the other port may be one that depends on who asked for one
// first. It is not made of the flow that is answered: that may be an answer, too, and each would then have a key of its own.
func (c *PacketConn) keyTo(to netip.AddrPort, owner *Host) uint64 {
	if c.remote.IsValid() {
		return mix(c.id)
	}
	if o, ok := c.heard[to]; ok && !o.begun && to.Port() >= firstEphemeral {
		return mix(mix(o.id) + c.id)
	}
	return hashString(c.id+uint64(to.Port()), owner.name) + uint64(slices.Index(owner.addrs, to.Addr()))
}

// arriveDatagram is the arrival of a datagram at a host.
func (h *Host) arriveDatagram(p *packet, now int64) {
	s := h.net
	if many(p.flow.dst.Addr()) {
		h.arriveCast(p, now)
		return
	}
	f := p.flow
	if f.sunk != h.bindings {
		f.sink, f.sunk = h.socketFor(f.src, f.dst), h.bindings
	}
	c := f.sink
	if c == nil {
		if h.servesNames(p.flow.dst.Port()) {
			h.answerQuery(p)
		} else {
			p.socket.unreachable(p)
		}
		s.release(p)
		return
	}
	c.enqueue(p, now)
}

// enqueue lets a datagram wait to be read, or loses it.
func (c *PacketConn) enqueue(p *packet, now int64) {
	if c.queued > 0 && c.queued+p.size+datagramOverhead > c.limit {
		c.net.tracePacket(EventLost, p, now, CauseOverflow)
		p.flow.way().stats.Overflowed.add(p)
		c.net.release(p)
		return
	}
	c.queue = append(c.queue, p)
	c.queued += p.size + datagramOverhead
	c.net.wakeFirst(&c.readers)
}

// unreachable sends an ICMP message to a connected sender; others would not hear of it.
func (c *PacketConn) unreachable(p *packet) {
	if c == nil || !c.remote.IsValid() || c.closed || c.forgotten {
		return
	}
	icmp := c.net.newPacket(c.back(p.flow), kindICMP)
	icmp.socket = c
	c.net.send(icmp)
}

// back is the way of ICMP messages about a flow.
func (c *PacketConn) back(f *flow) *flow {
	if c.icmp == nil {
		c.icmp = &flow{net: f.net, from: f.to, to: f.from, src: f.dst, dst: f.src, network: "icmp", key: mix(f.key)}
	}
	return c.icmp
}

// refused is the arrival of an ICMP message.
func (c *PacketConn) refused() {
	if c.closed || c.forgotten {
		return
	}
	c.failure = syscall.ECONNREFUSED
	c.net.wakeFirst(&c.readers)
}

// Close closes the socket. What waits in it is lost; blocked calls return net.ErrClosed, and so does a second Close.
func (c *PacketConn) Close() error {
	if err := c.net.enter(); err != nil {
		return c.opErr("close", err)
	}
	defer c.net.leave()
	if c.closed {
		return c.opErr("close", net.ErrClosed)
	}
	c.shut()
	return nil
}

// shut closes the socket.
func (c *PacketConn) shut() {
	c.closed = true
	if !c.forgotten && !c.asks {
		c.unbind()
	}
	c.net.wakeAll(&c.readers, true)
}

// unbind takes the socket off its host's books.
func (c *PacketConn) unbind() {
	port := c.at.Port()
	c.host.sockets[port] = slices.DeleteFunc(c.host.sockets[port], func(o *PacketConn) bool { return o == c })
	c.host.bindings++
	if len(c.host.sockets[port]) == 0 {
		delete(c.host.sockets, port)
	}
	c.queue = nil
	c.leaveAll()
}

// forget is the end of the socket because its host loses power.
func (c *PacketConn) forget(closing bool) {
	c.forgotten = true
	c.unbind()
	c.net.wakeAll(&c.readers, closing)
}

// sortedSockets lists a host's sockets by port, in the order of binding.
func (h *Host) sortedSockets() (all []*PacketConn) {
	ports := make([]uint16, 0, len(h.sockets))
	for p := range h.sockets {
		ports = append(ports, p)
	}
	slices.Sort(ports)
	for _, p := range ports {
		all = append(all, h.sockets[p]...)
	}
	return all
}

func (c *PacketConn) set(f func()) error {
	if err := c.enter(); err != nil {
		return opError("set", c.network, nil, c.LocalAddr(), err)
	}
	defer c.net.leave()
	f()
	return nil
}

// SetDeadline sets both deadlines; the zero time is none.
func (c *PacketConn) SetDeadline(t time.Time) error {
	return c.set(func() { c.readBy.set(t); c.writeBy.set(t) })
}

// SetReadDeadline bounds the waiting of reads, those under way included.
func (c *PacketConn) SetReadDeadline(t time.Time) error { return c.set(func() { c.readBy.set(t) }) }

// SetWriteDeadline makes writes fail after an instant; they never wait.
func (c *PacketConn) SetWriteDeadline(t time.Time) error { return c.set(func() { c.writeBy.set(t) }) }

// SetReadBuffer sets how much the receive queue holds; as on Linux, twice as much is counted, but at least 2304 bytes, and each datagram counts 1304 bytes
// more than it carries. One datagram always finds room. It is an error unless bytes is from 1 to 1 GiB.
func (c *PacketConn) SetReadBuffer(bytes int) error {
	if bytes <= 0 || bytes > maxBuffer {
		return cmp.Or(c.set(func() {}), opError("set", c.network, nil, c.LocalAddr(), sysErr("setsockopt", syscall.EINVAL)))
	}
	return c.set(func() { c.limit = max(leastQueue, 2*bytes) })
}

// SetWriteBuffer does nothing: sending never waits.
func (c *PacketConn) SetWriteBuffer(bytes int) error { return c.set(func() {}) }

var (
	_ net.Conn       = (*PacketConn)(nil)
	_ net.PacketConn = (*PacketConn)(nil)
	_ net.Conn       = (*Conn)(nil)
	_ io.ReaderFrom  = (*Conn)(nil)
	_ io.WriterTo    = (*Conn)(nil)
	_ net.Conn       = (*Circuit)(nil)
	_ net.Listener   = (*Listener)(nil)
)
