package gosimnet

import (
	"encoding/binary"
	"io"
	"net/netip"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	plainAnswer = 512 // bytes of the largest answer over UDP to who promises no more: RFC 1035, section 4.2.1
	nameIdle    = 10 * time.Second
)

// servesNames reports whether the host answers at a port by itself, where no software does.
func (h *Host) servesNames(port uint16) bool { return port == domainPort && h.name == nameServer }

// answerQuery answers a datagram to the name server.
func (h *Host) answerQuery(p *packet) {
	b := p.flow.from.answerTo(p.payload, true)
	if b == nil {
		return
	}
	// The answer's identity is made of the query's, so that no other asker can change its fate.
	f := &flow{net: h.net, from: h, to: p.flow.from, src: p.flow.dst, dst: p.flow.src, network: "udp", key: mix(p.flow.key + domainPort), n: 2 * p.number}
	if p.copied {
		f.n++
	}
	a := h.net.newPacket(f, kindDatagram)
	a.size, a.payload = len(b), b
	h.net.send(a)
}

// answerTo is the answer to a query of this host, cut to what a datagram may hold, or nil if there is none.
func (h *Host) answerTo(query []byte, datagram bool) []byte {
	var m dnsmessage.Message
	if m.Unpack(query) != nil || m.Response {
		return nil
	}
	limit, extended := plainAnswer, false
	for _, r := range m.Additionals {
		if _, ok := r.Body.(*dnsmessage.OPTResource); ok {
			limit, extended = max(limit, int(r.Header.Class)), true
		}
	}
	a := h.answerMessage(&m)
	if a == nil {
		return nil
	}
	if extended {
		opt := dnsmessage.Resource{Body: &dnsmessage.OPTResource{}}
		_ = opt.Header.SetEDNS0(maxDatagram, dnsmessage.RCodeSuccess, false) // it fails for flags that are not set here
		a.Additionals = append(a.Additionals, opt)
	}
	b, err := a.Pack()
	if err == nil && len(b) > limit && datagram || len(b) > maxStreamAnswer {
		a.Truncated, a.Answers = true, nil
		b, err = a.Pack()
	}
	if err != nil {
		return nil
	}
	return b
}

const maxStreamAnswer = 65535 // the length of an answer over a stream is two bytes

// answerMessage is the answer to a query, or nil for silence.
func (h *Host) answerMessage(m *dnsmessage.Message) *dnsmessage.Message {
	a := &dnsmessage.Message{Questions: m.Questions}
	a.ID, a.OpCode, a.RecursionDesired = m.ID, m.OpCode, m.RecursionDesired
	a.Response, a.Authoritative, a.RecursionAvailable = true, true, true
	switch {
	case m.OpCode != 0:
		a.RCode = dnsmessage.RCodeNotImplemented
		return a
	case len(m.Questions) != 1:
		a.RCode = dnsmessage.RCodeFormatError
		return a
	case m.Questions[0].Class != dnsmessage.ClassINET:
		a.RCode = dnsmessage.RCodeRefused
		return a
	}
	r := h.ask(m.Questions[0].Name.String(), m.Questions[0].Type)
	if r.silent {
		return nil
	}
	a.RCode = r.rcode
	for i, res := range r.answer {
		owner := m.Questions[0].Name
		if i > 0 {
			owner, _ = domainName(r.owners[i])
		}
		a.Answers = append(a.Answers, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: owner, Class: dnsmessage.ClassINET},
			Body:   res.body,
		})
	}
	return a
}

// openNames makes the listener for queries over streams, when the first is dialled.
func (h *Host) openNames() *Listener {
	l := &Listener{net: h.net, host: h, network: "tcp", at: netip.AddrPortFrom(netip.IPv6Unspecified(), domainPort), backlog: h.net.cfg.Backlog, builtin: true}
	l.addr = tcpAddr(l.at)
	l.by.init(h.net, h, &l.acceptors, hashString(domainPort, ""), 5)
	h.listeners = append(h.listeners, l)
	h.served = true
	go l.answerStreams()
	return l
}

// answerStreams answers queries until the listener is no more.
func (l *Listener) answerStreams() {
	for {
		c, err := l.accept()
		if err != nil {
			return
		}
		go c.answerQueries()
	}
}

// answerQueries answers what comes over a stream, each message with its length before it, until it ends or nothing comes for a while.
func (c *Conn) answerQueries() {
	defer c.Close()
	for {
		var size [2]byte
		_ = c.SetReadDeadline(time.Now().Add(nameIdle))
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, query); err != nil {
			return
		}
		b, err := c.answerQuery(query)
		if err != nil {
			return
		}
		if _, err := c.Write(b); err != nil {
			return
		}
	}
}

// answerQuery is the answer to a query, ready to be sent; nothing for silence.
func (c *Conn) answerQuery(query []byte) ([]byte, error) {
	if err := c.net.enter(); err != nil {
		return nil, err
	}
	defer c.net.leave()
	b := c.peer.host.answerTo(query, false)
	if b == nil {
		return nil, nil
	}
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...), nil
}
