package gosimnet

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// init lets package net set up what its resolver shares in the whole process: the machine's configuration of names, each guarded by a channel. A channel
// that is made inside a synctest bubble kills the process when it is used outside of that bubble, so the first lookup of
// a process must not be one in a bubble. This lookup sends nothing: it is told at once that there is no name server.
func init() {
	r := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errNoServer }}
	_, _ = r.LookupHost(context.Background(), "nobody.invalid.") // RFC 6761, section 6.4: nobody has this name
}

var errNoServer = errors.New("gosimnet: no name server")

// Resolver returns a resolver that asks the simulation's name server, a host called "dns", over the simulated network, so that lookups take round trips, and
// suffer from the faults of their links: a query that is lost is repeated after the resolver's time-out, usually 5 s, and an answer
// that is too long for a datagram is fetched once more over a stream.
//
// The host "dns" is made on first use, by this or by Simnet.Host; a network that never resolves a name has none. It answers by itself at port 53,
// without software and so without a goroutine, but for one for each stream that somebody dials. Software of one's own that listens there
// takes its place. It answers as the asking host sees names: see Simnet.AddRecord and SetView.
//
// The resolver is package net's own, PreferGo, and keeps that package's habits. It reads the machine's configuration: names in the machine's hosts file are
// resolved by that, and the search list, the number of name servers, the time-out and the attempts of its resolv.conf count,
// though all queries go to the simulated server; a name with a dot at the end escapes the search list. Errors name the server that the machine is
// configured for. Addresses of different families come in the order that the machine's routes suggest. Transaction numbers are random, so
// that a TraceHash which covers payloads differs from run to run.
//
// Dial needs no resolver: it resolves names at once, by the same records and views.
func (h *Host) Resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: h.dialNameServer}
}

// nameServer is the name of the host that resolves names, and domainPort where it does.
const (
	nameServer = "dns"
	domainPort = 53
)

// Its addresses, unless it is made with others: out of the way of those that are given out in turn.
var (
	nameServerV4 = netip.AddrFrom4([4]byte{10, 53, 53, 53})
	nameServerV6 = netip.AddrFrom16([16]byte{0: 0xfd, 9: 0x53, 11: 0x53, 13: 0x53, 15: 0x53})
)

// dialNameServer is what a resolver dials with; it has the machine's configuration in mind, and the address is none of ours.
func (h *Host) dialNameServer(ctx context.Context, network, _ string) (net.Conn, error) {
	if err := h.fault(); err != nil {
		return nil, opError("dial", network, nil, nil, err)
	}
	server, err := h.net.host(nameServer)
	if err != nil {
		return nil, opError("dial", network, nil, nil, err)
	}
	at := netip.AddrPortFrom(server.addrs[0], domainPort)
	if strings.HasPrefix(network, "udp") {
		return h.openQuery(ctx, network, at)
	}
	return h.DialContext(ctx, network, at.String())
}

// openQuery makes the socket of a query.
func (h *Host) openQuery(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error) {
	if err := h.net.enter(); err != nil {
		return nil, opError("dial", network, nil, udpAddr(to), err)
	}
	defer h.net.leave()
	if err := h.Dialer().tooLate(ctx); err != nil {
		return nil, opError("dial", network, nil, udpAddr(to), err)
	}
	from := h.sourceFor(to.Addr())
	if !from.IsValid() {
		return nil, opError("dial", network, nil, udpAddr(to), sysErr("connect", syscall.ENETUNREACH))
	}
	c := h.newSocket(network, anyFamily, netip.AddrPortFrom(from, 0), to)
	c.asks = true
	return c, nil
}

// bindQuery binds the socket of a query when that is sent: a resolver asks for several types at one instant, and if the socket's identity were made when it is
// dialled, chance would say which question has which fate. So it is made of the question.
func (c *PacketConn) bindQuery(query []byte) error {
	h := c.host
	question := query[min(len(query), 2):] // after the transaction's number, which is random
	c.id = hashString(hashString(domainPort, h.name), string(question))
	c.id = mix(c.id + h.countAbout(c.id))
	if err := c.bind(uint16(c.id % ephemeralPorts)); err != nil {
		return err
	}
	c.asks = false
	return nil
}

// countAbout counts one more conversation about something, and tells how many there were before.
func (h *Host) countAbout(what uint64) uint64 {
	if h.about == nil {
		h.about = make(map[uint64]uint64)
	}
	h.about[what]++
	return h.about[what] - 1
}

// patience is how long package net's resolver waits for an answer: 5 s, twice.
const patience = 10 * time.Second

// unanswered waits as long as a resolver would for an answer that does not come, and reports why it ends.
func (h *Host) unanswered(ctx context.Context, until int64, name string) error {
	s := h.net
	if h.powerOff {
		return sysErr("connect", syscall.ENETDOWN)
	}
	limit := deadline{at: min(until, s.t+int64(patience))}
	limit.init(s, h, &h.lookups, hashString(0, name), 8)
	for !limit.expired() && ctx.Err() == nil && !s.closed && !h.powerOff {
		limit.arm()
		s.awaitOr(ctx.Done(), &h.lookups, priority{host: h, key: limit.key, n: limit.n}, callLookup)
	}
	s.agenda.remove(&limit.event)
	timeout := &net.DNSError{Err: expiredError{}.Error(), Name: name, IsTimeout: true, IsTemporary: true}
	switch err := ctx.Err(); {
	case s.closed || h.powerOff:
		return net.ErrClosed
	case errors.Is(err, context.Canceled):
		return &net.DNSError{UnwrapErr: canceledError{}, Err: canceledError{}.Error(), Name: name}
	case err != nil || until <= s.t:
		timeout.UnwrapErr = expiredError{}
	}
	return timeout
}
