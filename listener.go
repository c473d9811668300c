package gosimnet

import (
	"context"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"
)

// Listener accepts streams or message circuits: a net.Listener that behaves as *net.TCPListener does on Linux. All methods
// may be called by several goroutines at once.
type Listener struct {
	net       *Simnet
	host      *Host
	network   string
	at        netip.AddrPort
	family    family // of a listener on all addresses
	addr      net.Addr
	name      string // of a message circuit's endpoint
	backlog   int
	queue     []*Conn // to be accepted
	opening   []*Conn // in the middle of their handshake
	acceptors waitlist
	by        deadline
	closed    bool
	forgotten bool
	builtin   bool // the name server's own
}

// Listen announces a local address, as net.Listen does. Networks are "tcp", "tcp4", "tcp6", "simnet" and "gosimnet". No address, no host, and an unspecified
// one, are all addresses of the host, of both families for "tcp"; port 0 is one that is free. For message circuits the address is the endpoint's name, any string that is not in use in the
// network; "" is the host's name. A port that somebody listens on already is EADDRINUSE, an address that is not the
// host's is EADDRNOTAVAIL, a host without power is ENETDOWN.
func (h *Host) Listen(network, address string) (net.Listener, error) {
	l, err := h.listen(network, address)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (h *Host) listen(network, address string) (*Listener, error) {
	fail := func(addr net.Addr, err error) (*Listener, error) {
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
	s.admitBefore(s.t) // earlier dials take their ports first
	l := &Listener{net: s, host: h, network: network, backlog: s.cfg.Backlog}
	l.by.init(s, h, &l.acceptors, 0, 5)
	if t == transportCircuit {
		err = l.bindName(address)
	} else {
		err = l.bindPort(address, t, f)
	}
	if err != nil {
		return fail(l.addr, err)
	}
	l.by.key = hashString(uint64(l.at.Port()), l.name)
	h.listeners = append(h.listeners, l)
	h.served = true
	return l, nil
}

// bindPort gives the listener its address.
func (l *Listener) bindPort(address string, kind transport, f family) error {
	h := l.host
	t, err := h.resolve(context.Background(), never, l.network, address, f)
	if err != nil {
		return err
	}
	t.toListen()
	if kind == transportUDP {
		l.addr = udpAddr(t.asked())
		return &net.AddrError{Err: "unexpected address type", Addr: address}
	}
	l.family = f
	ip := wildcard(f)
	if !t.any && !t.addrs[0].IsUnspecified() {
		ip = t.addrs[0]
	}
	l.at = netip.AddrPortFrom(ip, t.port)
	l.addr = tcpAddr(t.asked())
	if h.owner(ip) != h || ip.IsMulticast() {
		return sysErr("bind", syscall.EADDRNOTAVAIL)
	}
	if t.port == 0 {
		l.at = netip.AddrPortFrom(ip, h.ephemeral())
	}
	h.giveWay(l)
	if l.at.Port() == 0 || slices.ContainsFunc(h.listeners, l.conflicts) || h.dialledFrom(l.at.Port(), l.hears) {
		return sysErr("bind", syscall.EADDRINUSE)
	}
	if h.off(l.at.Port()) {
		return sysErr("bind", syscall.ENETDOWN)
	}
	l.addr = tcpAddr(l.at)
	return nil
}

// giveWay ends what the host does by itself where software of its own listens.
func (h *Host) giveWay(l *Listener) {
	for _, o := range slices.Clone(h.listeners) {
		if o.builtin && o.conflicts(l) {
			o.shut()
		}
	}
}

// conflicts reports whether two listeners would get the same connections.
func (l *Listener) conflicts(o *Listener) bool {
	if l.at.Port() != o.at.Port() {
		return false
	}
	return l.at.Addr() == o.at.Addr() && (l.family == o.family || !l.at.Addr().IsUnspecified()) ||
		l.at.Addr().IsUnspecified() && l.covers(o) || o.at.Addr().IsUnspecified() && o.covers(l)
}

// covers reports whether a listener on all addresses shares some with another one.
func (l *Listener) covers(o *Listener) bool {
	if o.at.Addr().IsUnspecified() {
		return l.family == anyFamily || o.family == anyFamily || l.family == o.family
	}
	return l.family.allows(o.at.Addr())
}

// hears reports whether the listener accepts connections to an address.
func (l *Listener) hears(a netip.Addr) bool {
	if l.at.Addr().IsUnspecified() {
		return l.family.allows(a)
	}
	return l.at.Addr() == a
}

// listenerAt finds who listens on an address.
func (h *Host) listenerAt(a netip.Addr, port uint16) *Listener {
	for _, l := range h.listeners {
		if l.at.Port() == port && l.name == "" && l.hears(a) {
			return l
		}
	}
	return nil
}

// full reports whether another SYN is dropped: Linux keeps one more than the backlog. While somebody waits in Accept nothing
// is full, however many SYNs arrive at one instant: they would be accepted one by one.
func (l *Listener) full() bool {
	return l.acceptors.empty() && len(l.queue)+len(l.opening) > l.backlog
}

// enqueue makes a connection ready to be accepted.
func (l *Listener) enqueue(c *Conn) {
	l.forgetOpening(c)
	l.queue = append(l.queue, c)
	l.net.wakeFirst(&l.acceptors)
}

// drop forgets a half-open connection.
func (l *Listener) drop(c *Conn) {
	l.forgetOpening(c)
	l.net.agenda.remove(&c.synAnswer)
}

func (l *Listener) forgetOpening(c *Conn) {
	if i := slices.Index(l.opening, c); i >= 0 {
		l.opening = slices.Delete(l.opening, i, i+1)
	}
}

// Accept waits for the next connection, until the deadline. Connections come in the order in which their handshakes ended, also those whose
// clients have left meanwhile. After Close it is net.ErrClosed.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.accept()
	if err != nil {
		return nil, opError("accept", l.network, nil, l.addr, err)
	}
	if c.circuit != nil {
		return c.circuit, nil
	}
	return c, nil
}

func (l *Listener) accept() (*Conn, error) {
	s := l.net
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	for {
		switch {
		case l.closed || l.forgotten || s.closed:
			return nil, net.ErrClosed
		case l.by.expired():
			return nil, os.ErrDeadlineExceeded
		case len(l.queue) > 0:
			c := l.queue[0]
			l.queue = slices.Delete(l.queue, 0, 1)
			s.note(&c.in.flow, EventAccept, "")
			if len(l.queue) > 0 {
				s.wakeFirst(&l.acceptors)
			}
			_, err := l.host.net.outcome(l.host, 0, nil)
			return c, err
		}
		l.by.await(callAccept)
	}
}

// SetDeadline bounds the waiting of Accept, also of calls under way; the zero time is no deadline. After Close it is
// net.ErrClosed, which is bare, as package net's is.
func (l *Listener) SetDeadline(t time.Time) error {
	if err := l.net.enter(); err != nil {
		return err
	}
	defer l.net.leave()
	if l.closed {
		return net.ErrClosed
	}
	l.by.set(t)
	return nil
}

// Addr is the address that is listened on; it stays valid after Close.
func (l *Listener) Addr() net.Addr { return l.addr }

// Close stops listening: dials are refused, connections that nobody accepted are reset, those that were accepted live on, and
// blocked Accepts return net.ErrClosed, as does a second Close.
func (l *Listener) Close() error {
	s := l.net
	if err := s.enter(); err != nil {
		return opError("close", l.network, nil, l.addr, err)
	}
	defer s.leave()
	if l.closed {
		return opError("close", l.network, nil, l.addr, net.ErrClosed)
	}
	l.shut()
	return nil
}

// shut closes the listener.
func (l *Listener) shut() {
	s := l.net
	l.closed = true
	if l.forgotten {
		return
	}
	l.unbind()
	for _, c := range slices.Concat(l.queue, l.opening) {
		c.closed = true
		if c.reset || c.forgotten {
			continue
		}
		s.agenda.remove(&c.synAnswer)
		c.abort()
	}
	l.queue, l.opening = nil, nil
	s.wakeAll(&l.acceptors, true)
}

// unbind takes the listener off its host's books.
func (l *Listener) unbind() {
	if i := slices.Index(l.host.listeners, l); i >= 0 {
		l.host.listeners = slices.Delete(l.host.listeners, i, i+1)
	}
	if l.name != "" {
		delete(l.net.endpoints, l.name)
	}
}

// forget is the end of the listener because its host loses power.
func (l *Listener) forget(closing bool) {
	l.forgotten = true
	l.unbind()
	l.net.wakeAll(&l.acceptors, closing)
}
