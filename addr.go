package gosimnet

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// SimNetAddr is the address of one end of a message circuit: an opaque name.
type SimNetAddr struct {
	network, addr string
}

// Network is "simnet" or "gosimnet".
func (a *SimNetAddr) Network() string { return a.network }

// String is the name of the endpoint.
func (a *SimNetAddr) String() string { return a.addr }

// transport says which of the simulated transports a network's name means.
type transport uint8

const (
	transportNone transport = iota
	transportTCP
	transportUDP
	transportCircuit
)

// family restricts the addresses that a network's name allows.
type family uint8

const (
	anyFamily family = iota
	onlyV4
	onlyV6
)

// parseNetwork understands package net's names, and those of message circuits.
func parseNetwork(network string) (transport, family, error) {
	switch network {
	case "tcp":
		return transportTCP, anyFamily, nil
	case "tcp4":
		return transportTCP, onlyV4, nil
	case "tcp6":
		return transportTCP, onlyV6, nil
	case "udp":
		return transportUDP, anyFamily, nil
	case "udp4":
		return transportUDP, onlyV4, nil
	case "udp6":
		return transportUDP, onlyV6, nil
	case "simnet", "gosimnet":
		return transportCircuit, anyFamily, nil
	}
	return transportNone, anyFamily, net.UnknownNetworkError(network)
}

// allows reports whether an address belongs to the family.
func (f family) allows(a netip.Addr) bool {
	return f == anyFamily || (f == onlyV4) == a.Is4()
}

// services are the port names that addresses may use. Package net's table may be read by a goroutine outside of
// the bubble, so it is not asked.
func servicePort(name string) (uint16, bool) {
	switch strings.ToLower(name) {
	case "ftp":
		return 21, true
	case "ssh":
		return 22, true
	case "telnet":
		return 23, true
	case "smtp":
		return 25, true
	case "domain":
		return 53, true
	case "http":
		return 80, true
	case "pop3":
		return 110, true
	case "ntp":
		return 123, true
	case "imap2", "imap":
		return 143, true
	case "snmp":
		return 161, true
	case "ldap":
		return 389, true
	case "https":
		return 443, true
	case "submission":
		return 587, true
	case "ldaps":
		return 636, true
	case "domain-s":
		return 853, true
	case "imaps":
		return 993, true
	case "pop3s":
		return 995, true
	case "mysql":
		return 3306, true
	case "postgresql":
		return 5432, true
	case "xmpp-client":
		return 5222, true
	}
	return 0, false
}

// parsePort understands a number or a service's name; an empty port is 0.
func parsePort(network, port string) (uint16, error) {
	if port == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(port)
	switch {
	case errors.Is(err, strconv.ErrRange) || err == nil && (n < 0 || n > 65535):
		return 0, &net.AddrError{Err: "invalid port", Addr: port}
	case err == nil:
		return uint16(n), nil
	}
	if p, ok := servicePort(port); ok {
		return p, nil
	}
	return 0, &net.DNSError{Err: "unknown port", Name: network + "/" + port, IsNotFound: true}
}

// target is what an address means to a host: candidates in order of preference.
type target struct {
	addrs []netip.Addr
	port  uint16
	any   bool // no host was given: the host itself, or, to a listener, all its addresses
}

// asked is the address as errors name it: as it was given, without one if there was none.
func (t *target) asked() netip.AddrPort {
	if t.any {
		return netip.AddrPortFrom(netip.Addr{}, t.port)
	}
	return netip.AddrPortFrom(t.addrs[0], t.port)
}

// toListen leaves the address that is listened on: as in package net, the first one of IPv4, if there is one.
func (t *target) toListen() {
	if i := slices.IndexFunc(t.addrs, netip.Addr.Is4); i > 0 {
		t.addrs = t.addrs[i:]
	}
}

// resolve finds the addresses of a "host:port" as h sees it. Errors are those that package net has. A name that the name server does
// not answer for takes as long as a resolver would wait, until an instant at most.
func (h *Host) resolve(ctx context.Context, until int64, network, address string, f family) (_ target, err error) {
	var t target
	var name, port string
	if address != "" { // to package net the same as ":0"
		if name, port, err = net.SplitHostPort(address); err != nil {
			return target{}, err
		}
	}
	if t.port, err = parsePort(network, port); err != nil {
		return target{}, err
	}
	if name == "" {
		t.any = true
		return t, nil
	}
	all, err := h.lookup(name)
	if err == errSilent {
		err = h.unanswered(ctx, until, name)
	}
	if err != nil {
		return target{}, err
	}
	if len(all) == 1 && all[0] == netip.IPv6Unspecified() {
		all = append(all, netip.IPv4Unspecified()) // as package net does: what a listener on all addresses prints can be dialled by IPv4, too
	}
	for _, a := range all {
		if f.allows(a) {
			t.addrs = append(t.addrs, a)
		}
	}
	if len(t.addrs) == 0 {
		return target{}, &net.AddrError{Err: "no suitable address found", Addr: name}
	}
	return t, nil
}

// lookup finds the addresses of a name or address, as the name server would tell them this host. The error is errSilent if it would not answer.
func (h *Host) lookup(name string) ([]netip.Addr, error) {
	o := h.net.hosts[name]
	if o != nil && len(h.views) == 0 && len(h.net.zone) == 0 {
		return o.addrs, nil
	}
	if o != nil {
		return h.addresses(name)
	}
	if a, err := netip.ParseAddr(name); err == nil {
		return []netip.Addr{a.Unmap().WithZone("")}, nil
	}
	if strings.EqualFold(strings.TrimSuffix(name, "."), "localhost") {
		return []netip.Addr{v4Loopback, netip.IPv6Loopback()}, nil
	}
	return h.addresses(name)
}

var v4Loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// loopbackOf is the loopback address of another's family.
func loopbackOf(a netip.Addr) netip.Addr {
	if a.Is4() {
		return v4Loopback
	}
	return netip.IPv6Loopback()
}

// owner is the host that an address belongs to as h sees it: itself for loopback and unspecified
// ones, nil for an address that nobody has.
func (h *Host) owner(a netip.Addr) *Host {
	if a.IsLoopback() || a.IsUnspecified() {
		return h
	}
	return h.net.byAddr[a]
}

// reach is the host that gets what h sends from a local address to another one, or nil. From 127.0.0.0/8 Linux lets nothing out of the host, which is
// an error; what comes from ::1 all other hosts throw away.
func (h *Host) reach(from, to netip.Addr) (*Host, error) {
	o := h.owner(to)
	switch {
	case o == h || !from.IsLoopback():
		return o, nil
	case from.Is4():
		return nil, syscall.EINVAL
	}
	return nil, nil
}

// sourceFor is the address that h sends from to a destination. To its own it is the same, but for the loopback network,
// all of which is reached from 127.0.0.1.
func (h *Host) sourceFor(dst netip.Addr) netip.Addr {
	if dst.Is4() && dst.IsLoopback() {
		return v4Loopback
	}
	if h.owner(dst) == h {
		return dst
	}
	if dst.Is4() {
		return h.v4()
	}
	return h.v6()
}

// mapped is an address as sockets of IPv6 have it: an IPv4 address is mapped.
func mapped(a netip.AddrPort) netip.AddrPort {
	if !a.Addr().Is4() {
		return a
	}
	return netip.AddrPortFrom(netip.AddrFrom16(a.Addr().As16()), a.Port())
}

// tcpAddr makes a *net.TCPAddr with the short form of IPv4 addresses, if they are not mapped.
func tcpAddr(a netip.AddrPort) *net.TCPAddr {
	return &net.TCPAddr{IP: a.Addr().AsSlice(), Port: int(a.Port())}
}

const (
	firstEphemeral = 49152 // RFC 6335, section 6
	ephemeralPorts = 65536 - firstEphemeral
	timeWait       = 60e9 // nanoseconds: Linux's TCP_TIMEWAIT_LEN
)

// ports is a host's use of local ports by streams and circuits.
type ports struct {
	cursor  uint16
	inUse   map[uint16]int // connections by local port, those of listeners excluded
	waiting map[uint16]timeWaiting
}

// timeWaiting is the last closed connection of a local port, while it is in TIME_WAIT.
type timeWaiting struct {
	at    netip.Addr
	until int64
}

// ephemeral takes the next port that no connection has and nobody listens on; 0 if all are in use. Going round, it comes last to
// those that were in use last, so that TIME_WAIT need not be asked.
func (h *Host) ephemeral() uint16 {
	for range ephemeralPorts {
		p := firstEphemeral + h.ports.cursor%ephemeralPorts
		h.ports.cursor++
		if h.ports.inUse[p] == 0 && !h.listensOn(p) {
			return p
		}
	}
	return 0
}

// take counts one more connection on a local port.
func (h *Host) take(port uint16) {
	if h.ports.inUse == nil {
		h.ports.inUse = make(map[uint16]int)
	}
	h.ports.inUse[port]++
}

// giveBack counts one less; the port then waits, if the connection ended in TIME_WAIT.
func (h *Host) giveBack(local netip.AddrPort, wait bool) {
	port := local.Port()
	if h.ports.inUse[port]--; h.ports.inUse[port] <= 0 {
		delete(h.ports.inUse, port)
	}
	if wait {
		if h.ports.waiting == nil {
			h.ports.waiting = make(map[uint16]timeWaiting)
		}
		h.ports.waiting[port] = timeWaiting{local.Addr(), h.net.t + timeWait}
	}
}

// bindable reports whether a dial may bind its explicit local port: nobody else may have it, not even a connection that was accepted there. Who
// names no address binds all, as far as others are concerned.
func (op *dial) bindable() bool {
	h, local, port := op.host, op.local.Addr(), op.local.Port()
	clashes := func(a netip.Addr) bool {
		return a == local || !op.bound && (a.Is4() == local.Is4() || local.Is6() && op.network == "tcp")
	}
	return h.listenerOn(op.local) == nil && !h.timeWait(port, clashes) &&
		!slices.ContainsFunc(h.listeners, func(l *Listener) bool { return l.at.Port() == port && clashes(l.at.Addr()) }) &&
		!slices.ContainsFunc(h.conns, func(c *Conn) bool { return c.port == port && clashes(c.out.src.Addr()) })
}

// dialledFrom reports whether dials have a local port at an address that clashes, live or in TIME_WAIT.
func (h *Host) dialledFrom(port uint16, clashes func(netip.Addr) bool) bool {
	return h.timeWait(port, clashes) || h.ports.inUse[port] > 0 && slices.ContainsFunc(h.conns, func(c *Conn) bool {
		return c.ownPort && c.port == port && clashes(c.out.src.Addr())
	})
}

// timeWait reports whether a dial's local port is in TIME_WAIT at an address that clashes.
func (h *Host) timeWait(port uint16, clashes func(netip.Addr) bool) bool {
	w, ok := h.ports.waiting[port]
	return ok && w.until > h.net.t && clashes(w.at)
}

func (h *Host) listensOn(port uint16) bool {
	return slices.ContainsFunc(h.listeners, func(l *Listener) bool { return l.at.Port() == port })
}

// listenerOn is the listener that has an address, streams' or circuits', or nil.
func (h *Host) listenerOn(at netip.AddrPort) *Listener {
	for _, l := range h.listeners {
		if l.at.Port() == at.Port() && (l.name != "" || l.hears(at.Addr())) {
			return l
		}
	}
	return nil
}

// endpoint is a named end of message circuits, and what a fault call may name.
type endpoint struct {
	host     *Host
	port     uint16 // 0: the host as a whole
	listener *Listener
}

// place finds what a fault call names: a host, a named endpoint, or "host:port".
func (s *Simnet) place(name string) (endpoint, error) {
	if name == "" {
		return endpoint{}, errEmptyName
	}
	if h := s.hosts[name]; h != nil {
		return endpoint{host: h}, nil
	}
	if e := s.endpoints[name]; e != nil {
		return *e, nil
	}
	if host, port, err := net.SplitHostPort(name); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		h := s.hosts[host]
		if a, bad := netip.ParseAddr(host); bad == nil {
			h = s.byAddr[a.Unmap()]
		}
		if err == nil && n > 0 && h != nil {
			return endpoint{host: h, port: uint16(n)}, nil
		}
	}
	_, err := s.mustHost(name)
	return endpoint{}, err
}
