package gosimnet

import (
	"context"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// UserMaxPayload is the largest message of a message circuit, in bytes.
const UserMaxPayload = 1_200_000

// Circuit is one end of a message circuit ("simnet", "gosimnet"): a net.Conn over which one Write is one message, and one Read returns one
// message, or as much of it as fits, and the rest of it next. A message may be lost, and leaves a hole then: nothing is sent again, unless a
// repair asks for it with deliverDroppedSends. Opening and closing are those of a stream: see Conn. All
// methods may be called by several goroutines at once.
type Circuit struct {
	conn          *Conn
	local, remote *SimNetAddr
	end           *endpoint // the local name of the end that dialled, while it is in use
	inbox         []*packet
	taken         int // bytes of the first message that have been read
	held          int // bytes in the inbox and under way to it

	freed   int // bytes that were read at the instant freedAt
	freedAt int64
	wanted  int // bytes that a blocked writer wants to send
	owed    []credit
	vacancy event // it is to see that there is room
}

// credit is room that will be there again.
type credit struct {
	at    int64
	bytes int
}

// dialCircuit dials a named endpoint.
func (h *Host) dialCircuit(ctx context.Context, d *Dialer, network, address string) (net.Conn, error) {
	s := h.net
	there := &SimNetAddr{network, address}
	fail := func(err error) (net.Conn, error) { return nil, opError("dial", network, nil, there, err) }
	op := &dial{net: s, host: h, network: network, circuit: true, there: there}
	op.local = netip.AddrPortFrom(h.anyAddr(), 0)
	if a, ok := d.LocalAddr.(*SimNetAddr); ok && a != nil {
		if s.taken(h, a.addr) {
			return fail(sysErr("bind", syscall.EADDRINUSE))
		}
		op.claim(&SimNetAddr{network, a.addr})
	}
	if err := op.run(ctx, d, d.until(ctx, s)); err != nil {
		s.disown(op.here, op.end)
		return fail(err)
	}
	return op.conn.circuit, nil
}

// taken reports whether a host may not use a name for an endpoint: somebody does, or it is another host's.
func (s *Simnet) taken(h *Host, name string) bool {
	o := s.hosts[name]
	return s.endpoints[name] != nil || o != nil && o != h
}

// locate finds, at the admission of a dial of a circuit, who has the endpoint's name by then, and names the client's.
func (op *dial) locate() error {
	e, err := op.net.circuitEndpoint(op.there.addr)
	if err != nil {
		return err
	}
	op.to = e.host
	op.dst = netip.AddrPortFrom(e.host.anyAddr(), e.port)
	if op.here == nil {
		op.claim(&SimNetAddr{op.network, op.host.freeName()})
	}
	return nil
}

// claim gives the client's end its name.
func (op *dial) claim(here *SimNetAddr) {
	op.here, op.end = here, &endpoint{host: op.host}
	op.net.claim(here.addr, op.end)
}

// disown gives the name of a client's end back.
func (s *Simnet) disown(name *SimNetAddr, end *endpoint) {
	if end != nil && s.endpoints[name.addr] == end {
		delete(s.endpoints, name.addr)
	}
}

// circuitEndpoint finds the endpoint that a dial goes to. A host on which nobody listens by its name refuses, as a closed port does.
func (s *Simnet) circuitEndpoint(name string) (endpoint, error) {
	if e := s.endpoints[name]; e != nil && e.listener != nil {
		return *e, nil
	}
	if h := s.hosts[name]; h != nil {
		return endpoint{host: h, port: 1}, nil
	}
	return endpoint{}, &net.DNSError{Err: errNoAddress.Error(), Name: name, IsNotFound: true}
}

// anyAddr is an address of the host, for the records.
func (h *Host) anyAddr() netip.Addr {
	return h.addrs[0]
}

// freeName is the host's name, or, while that is in use, one made of it and a number.
func (h *Host) freeName() string {
	name := h.name
	for n := 2; h.net.endpoints[name] != nil; n++ {
		name = h.name + "/" + strconv.Itoa(n)
	}
	return name
}

// claim takes an endpoint's name.
func (s *Simnet) claim(name string, e *endpoint) {
	if s.endpoints == nil {
		s.endpoints = make(map[string]*endpoint)
	}
	s.endpoints[name] = e
}

// bindName gives a listener its endpoint.
func (l *Listener) bindName(address string) error {
	if address == "" {
		address = l.host.name
	}
	l.name, l.addr = address, &SimNetAddr{l.network, address}
	s := l.net
	if s.taken(l.host, address) && !s.lent(l.host, address) {
		l.name = ""
		return sysErr("bind", syscall.EADDRINUSE)
	}
	port := l.host.ephemeral()
	if port == 0 {
		return sysErr("bind", syscall.EADDRINUSE)
	}
	if l.host.off(port) {
		return sysErr("bind", syscall.ENETDOWN)
	}
	l.at = netip.AddrPortFrom(l.host.anyAddr(), port)
	s.claim(address, &endpoint{host: l.host, port: port, listener: l})
	return nil
}

// lent reports whether a host's own name is in use by a client of it alone, which must not keep the host from listening by it.
func (s *Simnet) lent(h *Host, name string) bool {
	e := s.endpoints[name]
	return name == h.name && e != nil && e.host == h && e.listener == nil
}

// circuitListener finds who listens at an endpoint.
func (h *Host) circuitListener(port uint16) *Listener {
	for _, l := range h.listeners {
		if l.name != "" && l.at.Port() == port {
			return l
		}
	}
	return nil
}

// newCircuits makes both ends of a stream ends of a circuit.
func newCircuits(client *Conn) {
	for _, c := range []*Conn{client, client.peer} {
		c.circuit = &Circuit{conn: c}
	}
}

// named gives an end of the circuit its addresses, and the client's name its port.
func (c *Circuit) named(op *dial) {
	k := c.conn
	if !k.dialed {
		c.local, c.remote = &SimNetAddr{k.network, op.there.addr}, &SimNetAddr{k.network, op.here.addr}
		return
	}
	c.local, c.remote = op.here, op.there
	c.end, op.end.port = op.end, k.port
}

// release gives the client's name back.
func (c *Circuit) release() {
	if c.conn.dialed {
		c.conn.net.disown(c.local, c.end)
	}
}

// LocalAddr is a *SimNetAddr.
func (c *Circuit) LocalAddr() net.Addr { return c.local }

// RemoteAddr is a *SimNetAddr.
func (c *Circuit) RemoteAddr() net.Addr { return c.remote }

// Read waits for the next message and copies as much of it as fits into b; what does not fit is left for the next Read. After the peer has closed
// and its messages are read it is io.EOF. Deadlines and errors are those of Conn.Read. An empty b returns 0 at once.
func (c *Circuit) Read(b []byte) (int, error) {
	if err := c.conn.enter(); err != nil {
		return 0, c.conn.opErr("read", err)
	}
	n, err := c.conn.outcome(c.read(b))
	c.conn.net.leave()
	if err != nil && err != io.EOF {
		err = c.conn.opErr("read", err)
	}
	return n, err
}

func (c *Circuit) read(b []byte) (int, error) {
	k := c.conn
	for {
		switch {
		case k.gone() != nil:
			return 0, k.gone()
		case len(b) == 0:
			return 0, nil
		case k.readBy.expired():
			return 0, os.ErrDeadlineExceeded
		case len(c.inbox) > 0:
			return c.take(b), nil
		case k.failure != nil:
			return 0, k.report("read")
		case k.in.finArrived || k.reset:
			k.net.wakeFirst(&k.in.readers)
			return 0, io.EOF
		}
		k.readBy.await(callRead)
	}
}

// take copies from the first message.
func (c *Circuit) take(b []byte) int {
	s := c.conn.net
	p := c.inbox[0]
	n := copy(b, p.payload[c.taken:])
	c.taken += n
	if c.taken == len(p.payload) {
		c.inbox = slices.Delete(c.inbox, 0, 1)
		c.taken = 0
		c.consumed(p)
		s.release(p)
	}
	if len(c.inbox) > 0 || c.conn.in.finArrived {
		s.wakeFirst(&c.conn.in.readers)
	}
	return n
}

// unload makes room for as much as p took.
func (c *Circuit) unload(p *packet) {
	c.held -= len(p.payload)
	if c.conn.in.blocked && !c.full(c.wanted, 0) {
		c.callWriter(c.conn.net.t)
	}
}

// owe makes room for as much as a lost message took, at the time at which it would have arrived.
func (c *Circuit) owe(p *packet, now int64) {
	at := max(now, p.issued+p.lat)
	c.owed = append(c.owed, credit{at, len(p.payload)})
	if c.conn.in.blocked {
		c.callWriter(at)
	}
}

// settle brings what the writer knows of the room up to an instant.
func (c *Circuit) settle(now int64) {
	c.owed = slices.DeleteFunc(c.owed, func(o credit) bool {
		if o.at > now {
			return false
		}
		c.held -= o.bytes
		return true
	})
}

// callWriter lets a blocked writer look for room once an instant is over.
func (c *Circuit) callWriter(at int64) {
	k := c.conn
	if c.vacancy.scheduled() && c.vacancy.at <= at+1 {
		return
	}
	c.vacancy.host, c.vacancy.key, c.vacancy.n, c.vacancy.act = k.peer.host, k.in.key, afterPackets+6, (*vacancyEvent)(c)
	k.net.after(&c.vacancy, at)
}

type vacancyEvent Circuit

// fire is the instant at which a blocked writer looks for room.
func (e *vacancyEvent) fire(now int64) {
	c := (*Circuit)(e)
	c.settle(now)
	switch {
	case !c.conn.in.blocked:
	case !c.full(c.wanted, 0):
		c.conn.net.wakeFirst(&c.conn.in.room)
	default:
		c.awaitCredit()
	}
}

// awaitCredit looks again when the next lost message is over.
func (c *Circuit) awaitCredit() {
	for _, o := range c.owed {
		c.callWriter(o.at)
	}
}

// consumed makes room for as much as p took, which the writer sees from the next instant on: who comes first
// at an instant, the writer or the reader, must make no difference.
func (c *Circuit) consumed(p *packet) {
	if c.freedAt != c.conn.net.t {
		c.freed, c.freedAt = 0, c.conn.net.t
	}
	c.freed += len(p.payload)
	c.unload(p)
}

// full reports whether there is no room for a message of n bytes, with what has been freed at this instant or without.
func (c *Circuit) full(n, freed int) bool {
	used := c.held + freed
	return used > 0 && used+n > c.conn.peer.sendBuffer()+c.conn.peer.receiveBuffer()
}

// Write sends b as one message, of at most UserMaxPayload bytes (EMSGSIZE); it waits while the circuit holds as much as both buffers of a stream. An empty message
// is not sent. Deadlines and errors are those of Conn.Write.
func (c *Circuit) Write(b []byte) (int, error) {
	if err := c.conn.enter(); err != nil {
		return 0, c.conn.opErr("write", err)
	}
	n, err := c.conn.outcome(len(b), c.write(b))
	c.conn.net.leave()
	if err != nil {
		return 0, c.conn.opErr("write", err)
	}
	return n, nil
}

func (c *Circuit) write(b []byte) error {
	k := c.conn
	if len(b) > UserMaxPayload {
		return sysErr("write", syscall.EMSGSIZE)
	}
	if err := k.out.takeTurn(); err != nil {
		return err
	}
	defer k.out.passTurn()
	there := k.peer.circuit
	for {
		if err := k.writable(); err != nil {
			return err
		}
		there.settle(k.net.t)
		freed := 0
		if there.freedAt == k.net.t {
			freed = there.freed
		}
		if !there.full(len(b), freed) {
			break
		}
		there.wanted = len(b)
		if !there.full(len(b), 0) {
			there.callWriter(k.net.t)
		}
		there.awaitCredit()
		k.out.blocked = true
		k.writeBy.await(callWrite)
		k.out.blocked = false
	}
	if len(b) == 0 {
		return nil
	}
	p := k.net.newPacket(&k.out.flow, kindMessage)
	p.circuit = there
	p.carry(b)
	there.held += len(b)
	k.net.send(p)
	return nil
}

// arrive is the arrival of a message.
func (c *Circuit) arrive(p *packet, now int64) {
	k := c.conn
	switch {
	case k.forgotten || k.reset || k.closed:
		k.net.sendReset(&k.out.flow, k.peer)
		c.unload(p)
		k.net.release(p)
		return
	case !k.up:
		k.confirm(now)
	}
	k.heard = now
	c.inbox = append(c.inbox, p)
	k.net.wakeFirst(&k.in.readers)
}

// lost keeps a message that the network cards or isolation swallowed, so that a repair can deliver it, and forgets any other.
func (c *Circuit) lost(p *packet, cause string, now int64) {
	s := c.conn.net
	p.cause = cause
	switch cause {
	case CauseDropSend, CauseIsolated:
		p.flow.from.retain(&p.flow.from.withheld, p, now)
	case CauseDeafRead:
		p.flow.to.retain(&p.flow.to.deafened, p, now)
	default:
		c.owe(p, now)
		s.release(p)
		return
	}
}

// retain keeps a lost message in a queue of the host, and forgets the oldest of too many.
func (h *Host) retain(q **MopQueue, p *packet, now int64) {
	s := h.net
	if *q == nil {
		*q = newMopQueue()
	}
	p.circuit.owe(p, now)
	if s.cfg.Retention < 0 {
		h.forgotten++
		s.release(p)
		return
	}
	m := mopOf(p, now)
	m.Due = m.Issued
	(*q).add(&m)
	if (*q).Len() > s.cfg.Retention {
		s.release((*q).popFirst().packet)
		h.forgotten++
	}
}

// deliverLate delivers what faults within a scope have withheld and would let through now, in the order sent, one message
// an instant.
func (s *Simnet) deliverLate(z scope) {
	var all []*Mop
	for _, h := range s.sortedHosts() {
		for _, q := range []*MopQueue{h.withheld, h.deafened} {
			all = append(all, q.take(func(p *packet) bool { return s.passes(p, z) })...)
		}
	}
	slices.SortFunc(all, (*Mop).compare)
	at := s.t
	for _, m := range all {
		at = s.clear(at + 1)
		m.packet.late = true
		s.agenda.add(&m.packet.event, at)
	}
}

// arriveLate is the arrival of a message that was withheld.
func (p *packet) arriveLate(now int64) {
	s := p.flow.net
	s.tracePacket(EventDeliver, p, now, CauseLate)
	p.receipt()
	p.circuit.held += len(p.payload)
	p.circuit.arrive(p, now)
}

// Close ends the circuit, after the messages that were written: see Conn.Close.
func (c *Circuit) Close() error {
	k := c.conn
	if err := k.enter(); err != nil {
		return k.opErr("close", err)
	}
	defer k.net.leave() // not before it is closed: what would arrive meanwhile is never read
	for _, p := range c.inbox {
		c.consumed(p)
	}
	c.inbox = nil
	c.release()
	k.close()
	return nil
}

// SetDeadline sets both deadlines, as Conn's does.
func (c *Circuit) SetDeadline(t time.Time) error { return c.conn.SetDeadline(t) }

// SetReadDeadline bounds the waiting of Reads.
func (c *Circuit) SetReadDeadline(t time.Time) error { return c.conn.SetReadDeadline(t) }

// SetWriteDeadline bounds the waiting of Writes.
func (c *Circuit) SetWriteDeadline(t time.Time) error { return c.conn.SetWriteDeadline(t) }
