package gosimnet

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"
)

var (
	errNilContext = errors.New("gosimnet: nil context")
	errNoHost     = errors.New("gosimnet: this Dialer is of no host; make one with Host.Dialer")
)

// Dialer dials from a host; its fields are net.Dialer's, with its meaning. Make one with Host.Dialer. It may be
// used by several goroutines at once, unless its fields are being changed.
type Dialer struct {
	// Timeout bounds the whole dial; 0 is none. With none, and no deadline, the kernel gives up after 127 s.
	Timeout time.Duration
	// Deadline is the instant after which a dial fails; the zero time is none.
	Deadline time.Time
	// LocalAddr is where to dial from, a *net.TCPAddr for streams; nil is chosen. Its port may be 0.
	LocalAddr net.Addr
	// KeepAlive is the time without a sign of life until the first keep-alive probe; 0 is 15 s, negative none. The others come 15 s apart,
	// as package net's do. It is ignored if KeepAliveConfig.Enable is set.
	KeepAlive time.Duration
	// KeepAliveConfig sets the probes in detail.
	KeepAliveConfig net.KeepAliveConfig

	host *Host
}

// Dialer returns a dialer of this host, without limits.
func (h *Host) Dialer() *Dialer { return &Dialer{host: h} }

// Dial connects to an address, as net.Dial does: see DialContext.
func (h *Host) Dial(network, address string) (net.Conn, error) {
	return h.Dialer().Dial(network, address)
}

// DialTimeout is Dial that takes so long at most; a timeout of 0 is none.
func (h *Host) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	return (&Dialer{Timeout: timeout, host: h}).Dial(network, address)
}

// DialContext connects to an address. Networks are "tcp", "tcp4", "tcp6", for a *Conn, and "simnet" and "gosimnet", for a *Circuit. An
// address is "host:port": a host's name, an IP address, "localhost" or "" for the host itself, and a number or a well-known service's name; for message circuits it is
// the name of an endpoint. A name that stands for several addresses of a host is dialled at the first one, unless only another has a listener; if it stands
// for several hosts, they are tried one after the other, each for its share of the time that is left. See Simnet.AddRecord and SetView for what names stand for.
//
// A connection takes a round trip. Nobody listening is ECONNREFUSED after that. A peer that does not answer, because it is off, cut off, or
// its backlog is full, is asked again after 1, 3, 7, 15, 31 and 63 s, and after 127 s it is ETIMEDOUT. The context bounds the dial only: once it is made, the connection lives on.
// A cancelled dial leaves nothing behind.
func (h *Host) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return h.Dialer().DialContext(ctx, network, address)
}

// Dial is DialContext with the background context.
func (d *Dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialContext connects to an address: see Host.DialContext.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	fail := func(err error) (net.Conn, error) { return nil, opError("dial", network, nil, nil, err) }
	switch {
	case d.host == nil:
		return fail(errNoHost)
	case d.host.fault() != nil:
		return fail(d.host.fault())
	case ctx == nil:
		return fail(errNilContext)
	}
	t, f, err := parseNetwork(network)
	if err != nil {
		return fail(err)
	}
	h, s := d.host, d.host.net
	if err := s.enter(); err != nil {
		return fail(err)
	}
	defer s.leave()
	if t == transportCircuit {
		return h.dialCircuit(ctx, d, network, address)
	}
	if t == transportUDP {
		return h.dialPacket(ctx, d, network, address, f)
	}
	until := d.until(ctx, s)
	to, err := h.destinations(ctx, until, network, address, f)
	if err != nil {
		return fail(err)
	}
	from, err := localAddr[*net.TCPAddr](d)
	if err == nil && from != nil {
		err = to.restrict(from.IP, from)
	}
	if err != nil {
		return fail(err)
	}
	var first error
	for {
		same, rest, hosts := h.sameHost(to.addrs[0], to.addrs[1:])
		op := &dial{net: s, host: h, network: network}
		err = op.bind(f, from, to.asked(), same)
		if err == nil {
			err = op.run(ctx, d, share(s.t, until, hosts))
		}
		if err == nil {
			return op.conn, nil
		}
		if first == nil {
			first = opError("dial", network, d.LocalAddr, tcpAddr(op.asked), err)
		}
		if len(rest) == 0 || s.closed || ctx.Err() != nil || until <= s.t {
			return nil, first
		}
		to.addrs = rest
	}
}

// sameHost divides the other addresses of a name into those of the host that has one address, and the rest, and counts the hosts.
func (h *Host) sameHost(a netip.Addr, others []netip.Addr) (same, rest []netip.Addr, hosts int) {
	first := h.owner(a)
	if first != nil && !slices.ContainsFunc(others, func(b netip.Addr) bool { return h.owner(b) != first }) {
		return others, nil, 1
	}
	owners := []*Host{first}
	for _, b := range others {
		o := h.owner(b)
		if o == first && o != nil {
			same = append(same, b)
			continue
		}
		rest = append(rest, b)
		if o == nil || !slices.Contains(owners, o) {
			owners = append(owners, o)
		}
	}
	return same, rest, len(owners)
}

// share is when the attempt to reach one of several hosts ends: each gets its part of the time that is left, and two seconds, if
// there are so many, as in package net.
func share(now, until int64, hosts int) int64 {
	const least = 2e9
	if until == never || until <= now {
		return until
	}
	return min(until, now+max((until-now)/int64(hosts), least))
}

// localAddr is the dialer's local address, nil if it has none or a nil one. It must be of the network's kind.
func localAddr[A *net.TCPAddr | *net.UDPAddr](d *Dialer) (A, error) {
	if d.LocalAddr == nil {
		return nil, nil
	}
	a, ok := d.LocalAddr.(A)
	if !ok {
		return nil, &net.AddrError{Err: "mismatched local address type", Addr: d.LocalAddr.String()}
	}
	return a, nil
}

// destinations are the addresses that a dial may go to.
func (h *Host) destinations(ctx context.Context, until int64, network, address string, f family) (target, error) {
	if address == "" {
		return target{}, errMissingAddress
	}
	t, err := h.resolve(ctx, until, network, address, f)
	if t.any {
		t.addrs = []netip.Addr{{}}
	}
	return t, err
}

// restrict leaves of a target the addresses that can be reached from a local one: those of its family, and unspecified ones.
func (t *target) restrict(from net.IP, local net.Addr) error {
	if t.any || len(from) == 0 || from.IsUnspecified() {
		return nil
	}
	four, six := from.To4() != nil, from.To4() == nil && len(from) == net.IPv6len
	t.addrs = slices.DeleteFunc(t.addrs, func(a netip.Addr) bool {
		return !a.IsUnspecified() && !(a.Is4() && four || a.Is6() && six)
	})
	if len(t.addrs) == 0 {
		return &net.AddrError{Err: "no suitable address found", Addr: local.String()}
	}
	return nil
}

// ends are the addresses that package net and the kernel make of the two that a dial names: the one that is bound, which is invalid if
// the host chooses it, and the destination, for which no address and an unspecified one are the host itself. Which family the socket is of
// decides what either of them means.
func ends(f family, from net.IP, to netip.Addr) (local, dst netip.Addr, err error) {
	four := from.To4()
	six := f == onlyV6 || f == anyFamily && (to.Is6() || len(from) > net.IPv4len && four == nil)
	switch {
	case len(from) == 0 || four != nil && four.IsUnspecified() || six && from.IsUnspecified():
	case six && len(from) != net.IPv6len && four == nil:
		return local, to, &net.AddrError{Err: "non-IPv6 address", Addr: from.String()}
	case !six && four == nil:
		return local, to, &net.AddrError{Err: "non-IPv4 address", Addr: from.String()}
	case f == onlyV6 && four != nil:
		return local, to, sysErr("bind", syscall.EINVAL)
	case four != nil:
		local = netip.AddrFrom4([4]byte(four))
	default:
		local = netip.AddrFrom16([16]byte(from))
	}
	switch {
	case to.IsValid() && !to.IsUnspecified():
		return local, to, nil
	case six && !local.Is4():
		return local, netip.IPv6Loopback(), nil
	case !six && local.IsValid():
		return local, local, nil
	}
	return local, v4Loopback, nil
}

// bindingTo finds both addresses of a dial from a place that the dialer names, whose port may be 0.
func (h *Host) bindingTo(f family, from net.IP, port int, to netip.AddrPort) (local, dst netip.AddrPort, bound bool, err error) {
	l, d, err := ends(f, from, to.Addr())
	dst = netip.AddrPortFrom(d, to.Port())
	switch {
	case err != nil:
		return local, dst, false, err
	case port < 0 || port > 65535:
		return local, dst, false, sysErr("bind", syscall.EINVAL)
	}
	if bound = l.IsValid(); !bound {
		l = h.sourceFor(d)
	}
	return netip.AddrPortFrom(l, uint16(port)), dst, bound, nil
}

// choose finds, at the admission of a dial, which of the addresses of a name has a listener by then.
func (op *dial) choose() {
	for _, a := range op.others {
		port := op.dst.Port()
		if o := op.host.owner(a); o == op.to && o != nil && o.listenerAt(op.dst.Addr(), port) == nil && o.listenerAt(a, port) != nil {
			op.dst = netip.AddrPortFrom(a, port)
			if !op.bound {
				op.local = netip.AddrPortFrom(op.host.sourceFor(a), op.local.Port())
			}
			if !op.asked.Addr().IsUnspecified() {
				op.asked = op.dst
			}
		}
	}
}

// bind finds the addresses of a dial. What the dialer names must be the host's own, and free.
func (op *dial) bind(f family, from *net.TCPAddr, to netip.AddrPort, others []netip.Addr) (err error) {
	h := op.host
	if from == nil {
		from = &net.TCPAddr{}
	}
	op.asked, op.others = to, others
	op.local, op.dst, op.bound, err = h.bindingTo(f, from.IP, from.Port, to)
	if to.Addr().IsUnspecified() {
		op.others = nil
		for _, a := range others {
			if _, b, wrong := ends(f, from.IP, a); wrong == nil {
				op.others = append(op.others, b)
			}
		}
	}
	switch {
	case err != nil:
		return err
	case op.bound && h.owner(op.local.Addr()) != h:
		return sysErr("bind", syscall.EADDRNOTAVAIL)
	case op.local.Port() == 0:
		return nil
	}
	op.net.admitBefore(op.net.t) // dials that have the port already
	if !op.bindable() {
		return sysErr("bind", syscall.EADDRINUSE)
	}
	return nil
}

// keepAlive is what connections of this dialer do.
func (d *Dialer) keepAlive() net.KeepAliveConfig {
	switch {
	case d.KeepAliveConfig.Enable:
		return d.KeepAliveConfig
	case d.KeepAlive < 0:
		return net.KeepAliveConfig{}
	}
	return net.KeepAliveConfig{Enable: true, Idle: d.KeepAlive}
}

// until is the instant at which a dial runs out of time.
func (d *Dialer) until(ctx context.Context, s *Simnet) int64 {
	at := int64(never)
	earlier := func(t time.Time) { at = min(at, int64(t.Sub(s.start))) }
	if d.Timeout != 0 && int64(d.Timeout) < never-s.t {
		at = s.t + int64(d.Timeout)
	}
	if !d.Deadline.IsZero() {
		earlier(d.Deadline)
	}
	if t, ok := ctx.Deadline(); ok {
		earlier(t)
	}
	return at
}

// tooLate is the error of a dial that has no time left before it begins.
func (d *Dialer) tooLate(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return contextError(err, false)
	}
	if s := d.host.net; d.until(ctx, s) <= s.t {
		return expiredError{}
	}
	return nil
}

// dial is a dial under way, and the client's part of a handshake.
type dial struct {
	net     *Simnet
	host    *Host
	network string
	asked   netip.AddrPort // what was asked for, which errors name
	dst     netip.AddrPort
	others  []netip.Addr // of the same name
	local   netip.AddrPort
	bound   bool  // the dialer names the local address
	to      *Host // nil: nobody has the address
	conn    *Conn // the client's end
	circuit bool
	here    *SimNetAddr // of a message circuit
	there   *SimNetAddr
	end     *endpoint // the name here, while it is in use

	whence  string // the caller's file and line, if that is recorded
	waiting waitlist
	limit   deadline
	retry   event
	first   int64 // when the first SYN was sent
	last    int64 // and the last
	done    bool
	err     error
}

// run makes the connection, until an instant at most.
func (op *dial) run(ctx context.Context, d *Dialer, until int64) error {
	s, h := op.net, op.host
	if err := ctx.Err(); err != nil {
		return contextError(err, false)
	}
	op.limit.init(s, h, &op.waiting, 0, 4)
	op.limit.at = until
	if op.limit.expired() {
		return expiredError{}
	}
	if h.powerOff && !h.vanishing.scheduled() || op.local.Port() != 0 && h.off(op.local.Port()) {
		return sysErr("connect", syscall.ENETDOWN)
	}
	if many(op.dst.Addr()) || !op.local.Addr().IsValid() {
		return sysErr("connect", syscall.ENETUNREACH)
	}
	to, err := h.reach(op.local.Addr(), op.dst.Addr())
	if err != nil {
		return os.NewSyscallError("connect", err)
	}
	op.to = to
	op.conn = &s.newStream().client
	op.conn.keepAlive.configure(d.keepAlive())
	if op.circuit {
		newCircuits(op.conn)
	}
	op.start()
	op.await(ctx)
	if op.done {
		return op.err
	}
	op.abandon()
	if s.closed {
		return net.ErrClosed
	}
	if err := ctx.Err(); err != nil && !op.limit.expired() {
		return contextError(err, true)
	}
	return timeoutError{}
}

// start issues the dial. Its port and its place among other dials are decided at admission.
func (op *dial) start() {
	s, h := op.net, op.host
	op.first = s.t
	op.retry = event{host: h, act: op}
	if s.cfg.RecordCallers {
		op.whence = caller()
	}
	h.dials = append(h.dials, op)
	s.issue(op, priority{host: h, key: op.order()})
}

func (op *dial) needed(at int64) int64 {
	s, to := op.net, op.to
	if op.there != nil {
		if e, err := s.circuitEndpoint(op.there.addr); err == nil {
			to = e.host
		}
	}
	if to == nil || len(s.rules) > 0 {
		return s.clear(at + 1)
	}
	return s.clear(at + s.linkBetween(op.host, to).least() + 1)
}

// order is the key of the dial among others of one host and instant.
func (op *dial) order() uint64 {
	return hashString(uint64(op.dst.Port())<<16|uint64(op.local.Port()), op.whom())
}

// await waits until the dial is over, out of time, or cancelled.
func (op *dial) await(ctx context.Context) {
	s := op.net
	for !op.done && !op.limit.expired() && ctx.Err() == nil && !s.closed {
		op.limit.arm()
		s.awaitOr(ctx.Done(), &op.waiting, priority{host: op.host, key: op.order()}, callDial)
	}
	s.agenda.remove(&op.limit.event)
	if i := slices.Index(op.host.dials, op); i >= 0 {
		op.host.dials = slices.Delete(op.host.dials, i, i+1)
	}
}

// finish ends the dial and wakes the dialler.
func (op *dial) finish(err error) {
	if op.done {
		return
	}
	op.done, op.err = true, err
	op.net.agenda.remove(&op.retry)
	if err != nil {
		op.conn.reset = true
		op.conn.settled()
	}
	op.net.wakeAll(&op.waiting, false)
}

// abandon gives the dial up. A late answer will be met by an RST.
func (op *dial) abandon() {
	s := op.net
	op.done, op.err = true, net.ErrClosed
	s.agenda.remove(&op.retry)
	op.conn.reset = true
	op.conn.settled()
	if server := op.conn.peer; server.listener != nil && !server.up {
		server.unconfirmed(s.t)
	}
}

// admit gives the dial its port and its flows, and sends the SYN.
func (op *dial) admit(at int64) {
	if op.done {
		return
	}
	h, c := op.host, op.conn
	if err := op.place(); err != nil {
		op.finish(err)
		return
	}
	c.ownPort = true
	op.name()
	c.bind(h, op.network, op)
	c.enlist()
	if op.to == nil {
		op.unanswered("", at)
		return
	}
	op.syn(at)
}

// whom is the name of the host that is dialled, or of the endpoint, or the address that nobody has.
func (op *dial) whom() string {
	switch {
	case op.circuit:
		return op.there.addr
	case op.to != nil:
		return op.to.name
	}
	return op.dst.Addr().String()
}

// place finds both ends of the dial.
func (op *dial) place() error {
	if op.circuit {
		if err := op.locate(); err != nil {
			return err
		}
	} else {
		op.choose()
	}
	port := op.local.Port()
	switch {
	case port == 0:
		if port = op.host.ephemeral(); port == 0 {
			return sysErr("connect", syscall.EADDRNOTAVAIL)
		}
	case !op.bindable(): // by a dial of the same instant
		return sysErr("bind", syscall.EADDRINUSE)
	}
	op.local = netip.AddrPortFrom(op.local.Addr(), port)
	return nil
}

// name makes the flows' identities: the hosts' names, the port, and the number of the dial between them. The ports of circuits depend on
// who listened first, so that the endpoint's name takes their place.
func (op *dial) name() {
	h, n := op.host, uint64(0)
	k := conversation{transportTCP, op.dst.Port()}
	if op.circuit {
		k = conversation{transport: transportCircuit}
	}
	if op.to != nil {
		n = op.net.linkBetween(h, op.to).countDial(k)
	}
	key := k.key(h.name, n, op.whom())
	op.retry.key = key
	c := op.conn
	network := op.protocol()
	c.out.flow = flow{net: op.net, from: h, to: op.to, src: op.local, dst: op.dst, network: network, key: key}
	c.in.flow = flow{net: op.net, from: op.to, to: h, src: op.dst, dst: op.local, network: network, key: mix(key)}
}

// protocol is what packets are known by: a stream's do not tell whether "tcp4" or "tcp6" was asked for, and rules for "tcp" are meant for all.
func (op *dial) protocol() string {
	if op.circuit {
		return op.network
	}
	return "tcp"
}

// syn sends a SYN that was issued at an instant.
func (op *dial) syn(at int64) {
	op.last = at
	p := op.net.newPacket(&op.conn.out.flow, kindSYN)
	p.dial, p.whence = op, op.whence
	op.net.sendAt(p, at)
}

// fire repeats the SYN, or gives up.
func (op *dial) fire(now int64) {
	if now >= op.first+127*synWait {
		op.net.trace.add(op.net, record{at: now, kind: EventTimeout, flow: &op.conn.out.flow})
		op.finish(sysErr("connect", syscall.ETIMEDOUT))
		return
	}
	if op.to == nil {
		op.unanswered("", now)
		return
	}
	op.syn(now)
}

// unanswered waits for the time to repeat the SYN: 1, 3, 7, 15, 31 and 63 s after the first.
func (op *dial) unanswered(cause string, now int64) {
	if op.done || op.retry.scheduled() {
		return
	}
	at := op.first + synWait
	for i := int64(2); at <= now; i *= 2 {
		at += i * synWait
	}
	op.net.after(&op.retry, min(at, op.first+127*synWait))
}

// arrive is the arrival of a SYN at the server.
func (op *dial) arrive(now int64) {
	server := op.conn.peer
	if server.listener != nil {
		over := server.reset || server.forgotten
		switch {
		case server.up || over && op.done:
			return
		case !over:
			server.answer(now)
			return
		}
		server.renew()
	}
	l := op.to.listenerAt(op.dst.Addr(), op.dst.Port())
	if op.circuit {
		l = op.to.circuitListener(op.dst.Port())
	}
	if l == nil && !op.circuit && op.to.servesNames(op.dst.Port()) {
		l = op.to.openNames()
	}
	switch {
	case l == nil:
		op.net.trace.add(op.net, record{at: now, kind: EventRefuse, flow: &op.conn.out.flow})
		p := op.net.newPacket(&op.conn.in.flow, kindRST)
		p.dial = op
		op.net.send(p)
	case l.full():
		op.net.trace.add(op.net, record{at: now, kind: EventLost, flow: &op.conn.out.flow, cause: CauseBacklog})
		op.conn.out.way().stats.Overflowed.Packets++
		op.unanswered(CauseBacklog, now)
	default:
		server.bind(op.to, l.network, op)
		server.listener = l
		server.enlist()
		l.opening = append(l.opening, server)
		server.answer(now)
	}
}

// answered is the arrival of a SYN/ACK at the client.
func (op *dial) answered(now int64) {
	c := op.conn
	if c.reset || c.forgotten {
		op.net.sendReset(&c.out.flow, c.peer)
		return
	}
	if !op.done {
		c.up, c.heard = true, now
		c.out.rtt = now - op.last
		op.net.trace.add(op.net, record{at: now, kind: EventOpen, flow: &c.out.flow})
		op.finish(nil)
		c.dialling = nil
		c.pathChanged(now)
	}
	p := op.net.newPacket(&c.out.flow, kindACK)
	p.conn = c.peer
	op.net.send(p)
}

// refused is the arrival of an RST at the client.
func (op *dial) refused(int64) { op.finish(sysErr("connect", syscall.ECONNREFUSED)) }

// answer sends the SYN/ACK of a half-open connection.
func (c *Conn) answer(now int64) {
	c.answered = now
	p := c.net.newPacket(&c.out.flow, kindSYNACK)
	p.dial = c.dialling
	c.net.send(p)
}

// unconfirmed waits for the time to repeat the SYN/ACK: 1, 3, 7, 15 and 31 s after the first.
func (c *Conn) unconfirmed(int64) {
	if c.up || c.reset || c.forgotten || c.synAnswer.scheduled() {
		return
	}
	c.synAnswer = event{host: c.host, key: c.out.key, n: afterPackets + 3, act: (*answerEvent)(c)}
	c.net.after(&c.synAnswer, c.answered+synWait<<c.answers)
}

type answerEvent Conn

// fire repeats the SYN/ACK, five times: Linux's tcp_synack_retries.
func (e *answerEvent) fire(now int64) {
	c := (*Conn)(e)
	if c.answers++; c.answers > 5 {
		c.reset = true
		c.listener.drop(c)
		c.settled()
		return
	}
	c.answer(now)
}

// renew makes the server's end anew, for a SYN that is repeated after that end has given up, or its listener or its host's power has gone: as
// a first SYN, it gets an answer in any case.
func (c *Conn) renew() {
	c.out.dead, c.in.discarded = false, false
	*c = Conn{net: c.net, peer: c.peer, out: c.out, in: c.in, circuit: c.circuit}
	c.init()
}

// confirm is the arrival of the handshake's last packet, or of data, at the server.
func (c *Conn) confirm(now int64) {
	switch {
	case c.reset || c.forgotten:
		c.net.sendReset(&c.out.flow, c.peer)
		return
	case c.up:
		return
	}
	c.up, c.heard, c.dialling = true, now, nil
	c.out.rtt = now - c.answered
	c.net.agenda.remove(&c.synAnswer)
	c.listener.enqueue(c)
	c.out.transmit()
	c.pathChanged(now)
}

// bind gives the end its host and addresses.
func (c *Conn) bind(h *Host, network string, op *dial) {
	c.host, c.network, c.port, c.dialling = h, network, c.out.src.Port(), op
	c.readBy.host, c.writeBy.host = h, h
	c.readBy.key, c.writeBy.key = c.in.key, c.out.key
	c.readBy.flow, c.writeBy.flow = &c.in.flow, &c.out.flow
	c.keepAlive.conn = c
	c.keepAlive.event = event{host: h, key: c.out.key, n: afterPackets + 4, act: &c.keepAlive}
	c.out.open(c, c.peer)
	if c.circuit != nil {
		c.circuit.named(op)
	}
}
