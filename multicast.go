package gosimnet

import (
	"net"
	"net/netip"
	"slices"
	"syscall"
)

// Addresses that mean several hosts. All hosts are members of the groups of all hosts, without asking.
var (
	limitedBroadcast  = netip.AddrFrom4([4]byte{255, 255, 255, 255}) // every host with an IPv4 address
	directedBroadcast = netip.AddrFrom4([4]byte{10, 255, 255, 255})  // every host of the subnet
	subnet            = netip.PrefixFrom(netip.AddrFrom4([4]byte{10}), 8)
	allHosts          = netip.AddrFrom4([4]byte{224, 0, 0, 1})
	allNodes          = netip.AddrFrom16([16]byte{0: 0xff, 1: 2, 15: 1})
)

// broadcast reports whether an address means every host of a subnet, and many whether it means several hosts.
func broadcast(a netip.Addr) bool { return a == limitedBroadcast || a == directedBroadcast }
func many(a netip.Addr) bool      { return a.IsMulticast() || broadcast(a) }

// ListenMulticastUDP opens a socket that has joined a group, as net.ListenMulticastUDP does on Linux: it is bound to all addresses of the host at the group's port, which it shares with other
// sockets that have been opened so, and what it sends to groups does not come back to its own host: see PacketConn.SetMulticastLoopback. A host has one
// network card, so ifi is ignored. Networks are "udp", "udp4" and "udp6"; port 0 is one that is free. A nil address, one that is no group's, and
// one that is not the host's, are errors.
func (h *Host) ListenMulticastUDP(network string, ifi *net.Interface, gaddr *net.UDPAddr) (*PacketConn, error) {
	fail := func(err error) (*PacketConn, error) {
		if gaddr == nil {
			return nil, opError("listen", network, nil, nil, err)
		}
		return nil, opError("listen", network, nil, gaddr, err)
	}
	if err := h.fault(); err != nil {
		return fail(err)
	}
	t, f, err := parseNetwork(network)
	if err != nil || t != transportUDP {
		return fail(net.UnknownNetworkError(network))
	}
	if gaddr == nil || gaddr.IP == nil {
		return fail(errMissingAddress)
	}
	if err := h.net.enter(); err != nil {
		return fail(err)
	}
	defer h.net.leave()
	group, _ := netip.AddrFromSlice(gaddr.IP)
	group = group.Unmap()
	c, err := h.openPacket(network, f, netip.AddrPortFrom(group, uint16(gaddr.Port)), netip.AddrPort{})
	if err != nil {
		return fail(err)
	}
	c.mute = true
	if err := c.join(group); err != nil {
		c.shut()
		return fail(err)
	}
	return c, nil
}

// JoinGroup joins a multicast group, given as a *net.UDPAddr or *net.IPAddr: what is sent to it from then on reaches this host. As on Linux, where IP_MULTICAST_ALL is set,
// membership is the host's: every socket of it that is bound to all addresses hears all groups that any of them has joined, at its port. All hosts are members of 224.0.0.1 and ff02::1 without joining.
// A host has one network card, so ifi is ignored. A group that the socket has joined already is EADDRINUSE, an address that is no
// group's is EINVAL. Closing the socket leaves its groups.
func (c *PacketConn) JoinGroup(ifi *net.Interface, group net.Addr) error {
	return c.setGroup(group, c.join)
}

// LeaveGroup leaves a group that JoinGroup or ListenMulticastUDP has joined; it is EADDRNOTAVAIL for any other.
func (c *PacketConn) LeaveGroup(ifi *net.Interface, group net.Addr) error {
	return c.setGroup(group, c.leave)
}

func (c *PacketConn) setGroup(group net.Addr, change func(netip.Addr) error) error {
	a, ok := groupAddr(group)
	if !ok {
		return opError("set", c.network, nil, c.LocalAddr(), errMissingAddress)
	}
	var failed error
	if err := c.set(func() { failed = change(a) }); err != nil {
		return err
	}
	if failed != nil {
		return opError("set", c.network, nil, c.LocalAddr(), failed)
	}
	return nil
}

// groupAddr is the IP address of what is given as a group.
func groupAddr(group net.Addr) (netip.Addr, bool) {
	var ip net.IP
	switch g := group.(type) {
	case *net.UDPAddr:
		if g != nil {
			ip = g.IP
		}
	case *net.IPAddr:
		if g != nil {
			ip = g.IP
		}
	}
	a, ok := netip.AddrFromSlice(ip)
	return a.Unmap(), ok
}

// SetMulticastLoopback says whether what this socket sends to groups also comes back to its own host, if that is a member: IP_MULTICAST_LOOP. It does, unless
// ListenMulticastUDP has opened the socket.
func (c *PacketConn) SetMulticastLoopback(on bool) error {
	return c.set(func() { c.mute = !on })
}

// MulticastLoopback tells what SetMulticastLoopback has set.
func (c *PacketConn) MulticastLoopback() (on bool, err error) {
	err = c.set(func() { on = !c.mute })
	return on, err
}

// join makes the socket a member of a group, and so its host.
func (c *PacketConn) join(group netip.Addr) error {
	switch {
	case !group.IsMulticast():
		return sysErr("setsockopt", syscall.EINVAL)
	case c.family == onlyV4 && group.Is6():
		return sysErr("setsockopt", syscall.ENOPROTOOPT)
	case slices.Contains(c.groups, group):
		return sysErr("setsockopt", syscall.EADDRINUSE)
	}
	c.groups = append(c.groups, group)
	h, s := c.host, c.net
	if h.joined == nil {
		h.joined = make(map[netip.Addr]int)
	}
	if h.joined[group]++; h.joined[group] == 1 {
		if s.members == nil {
			s.members = make(map[netip.Addr][]*Host)
		}
		all := s.members[group]
		i, _ := slices.BinarySearchFunc(all, h, (*Host).compare)
		s.members[group] = slices.Insert(all, i, h)
	}
	return nil
}

// leave ends that.
func (c *PacketConn) leave(group netip.Addr) error {
	i := slices.Index(c.groups, group)
	if i < 0 {
		return sysErr("setsockopt", syscall.EADDRNOTAVAIL)
	}
	c.groups = slices.Delete(c.groups, i, i+1)
	h, s := c.host, c.net
	if h.joined[group]--; h.joined[group] == 0 {
		delete(h.joined, group)
		s.members[group] = slices.DeleteFunc(s.members[group], func(o *Host) bool { return o == h })
		if len(s.members[group]) == 0 {
			delete(s.members, group)
		}
	}
	return nil
}

// leaveAll leaves all groups of the socket.
func (c *PacketConn) leaveAll() {
	for len(c.groups) > 0 {
		_ = c.leave(c.groups[0]) // it is a member
	}
}

// belongs reports whether what is sent to an address that means several hosts is for this one.
func (h *Host) belongs(a netip.Addr) bool {
	switch a {
	case limitedBroadcast, allHosts:
		return h.v4().IsValid()
	case directedBroadcast:
		return slices.ContainsFunc(h.addrs, subnet.Contains)
	case allNodes:
		return h.v6().IsValid()
	}
	return h.joined[a] > 0
}

// audience lists whom an address means that means several hosts, in canonical order.
func (s *Simnet) audience(a netip.Addr) []*Host {
	if a.IsMulticast() && a != allHosts && a != allNodes {
		return s.members[a]
	}
	if !slices.IsSortedFunc(s.inOrder, (*Host).compare) {
		slices.SortFunc(s.inOrder, (*Host).compare)
	}
	return s.inOrder
}

// cast is a datagram to several hosts. Who they are is found at its admission, when everything that happened at its instant is known: it
// becomes one packet for each, with a fate of its own.
type cast struct {
	socket  *PacketConn
	to      netip.AddrPort
	payload []byte
	whence  string
}

// castTo sends a datagram to an address that means several hosts.
func (c *PacketConn) castTo(b []byte, to netip.AddrPort) {
	op := &cast{socket: c, to: to, payload: slices.Clone(b)}
	if c.net.cfg.RecordCallers {
		op.whence = caller()
	}
	c.casts++
	c.net.issue(op, priority{host: c.host, key: hashString(c.id+uint64(to.Port()), to.Addr().String()), n: c.casts})
}

// needed does not depend on links: there may be many.
func (op *cast) needed(at int64) int64 { return op.socket.net.clear(at + minLatency + 1) }

// admit sends the packets.
func (op *cast) admit(at int64) {
	c, s := op.socket, op.socket.net
	to := op.to.Addr()
	if to == directedBroadcast && !c.host.belongs(to) {
		return // routers let no broadcast into a subnet: RFC 2644
	}
	for _, h := range s.audience(to) {
		if !h.belongs(to) || h == c.host && c.mute && to.IsMulticast() || h != c.host && c.at.Addr().IsLoopback() {
			continue
		}
		p := s.newPacket(c.castFlow(op.to, h), kindDatagram)
		p.socket, p.size, p.payload, p.whence = c, len(op.payload), op.payload, op.whence
		s.sendAt(p, at)
	}
}

// castKey is one of the flows that a datagram to several hosts takes.
type castKey struct {
	to   netip.AddrPort
	host *Host
}

func (c *PacketConn) castFlow(to netip.AddrPort, h *Host) *flow {
	k := castKey{to, h}
	f := c.castFlows[k]
	if f == nil {
		key := hashString(hashString(c.id+uint64(to.Port()), to.Addr().String()), h.name)
		f = &flow{net: c.net, from: c.host, to: h, src: c.source(to.Addr()), dst: to, network: "udp", key: key}
		if c.castFlows == nil {
			c.castFlows = make(map[castKey]*flow)
		}
		c.castFlows[k] = f
	}
	return f
}

// arriveCast is the arrival of a datagram to several hosts at one of them: every socket that hears it gets it.
func (h *Host) arriveCast(p *packet, now int64) {
	s := h.net
	if h.belongs(p.flow.dst.Addr()) {
		for _, c := range h.sockets[p.flow.dst.Port()] {
			if c.hears(p.flow.src, p.flow.dst) {
				q := s.newPacket(p.flow, p.kind)
				q.number, q.issued, q.socket = p.number, p.issued, p.socket
				q.carry(p.payload) // p's may be in its own room, which others will use
				c.enqueue(q, now)
			}
		}
	}
	s.release(p)
}
