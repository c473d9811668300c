package bench

import (
	"net"
	"net/netip"
	"time"

	"github.com/marcopolo/simnet"
	"github.com/pion/logging"
	"github.com/pion/transport/v4/vnet"

	"github.com/glycerine/gosimnet"
)

// port sends to another one, and receives from it.
type port struct {
	send    func(b []byte) error
	receive func(b []byte) (int, error)
	close   func()
}

// datagrams is a peer that programs use in place of UDP.
type datagrams struct {
	name string
	// open calls use with so many ports, each of which sends to the next one, and the last to the first, and closes
	// them afterwards.
	open func(n int, use func(ports []port))
}

// connected is a port over a connection.
func connected(c net.Conn) port {
	return port{
		func(b []byte) error { _, err := c.Write(b); return err },
		c.Read,
		func() { c.Close() },
	}
}

// closing calls use, and closes the ports.
func closing(ports []port, use func(ports []port)) {
	use(ports)
	for _, p := range ports {
		p.close()
	}
}

// simulatedDatagrams is this library, with a host for each port.
func simulatedDatagrams(name string, cfg gosimnet.SimNetConfig) datagrams {
	return datagrams{name, func(n int, use func(ports []port)) {
		simulate(cfg, func(s *gosimnet.Simnet) { closing(ring(simulatedSockets(s, n)), use) })
	}}
}

// simulatedSockets makes so many hosts with a socket each.
func simulatedSockets(s *gosimnet.Simnet, n int) []addressed {
	sockets := make([]addressed, n)
	for i := range sockets {
		h := s.Host(hostName(i))
		c := must(h.ListenPacket("udp4", ":7")).(*gosimnet.PacketConn)
		sockets[i] = addressed{c, netip.AddrPortFrom(h.Addrs()[0], 7)}
	}
	return sockets
}

// addrPortConn is what the kernel's sockets and this library's have in common: it makes no garbage.
type addrPortConn interface {
	ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error)
	WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error)
	Close() error
}

// addressed is a socket with the address by which others reach it.
type addressed struct {
	addrPortConn
	at netip.AddrPort
}

// ring makes each socket send to the next one.
func ring(sockets []addressed) []port {
	ports := make([]port, len(sockets))
	for i, s := range sockets {
		to := sockets[(i+1)%len(sockets)].at
		ports[i] = port{
			func(b []byte) error { _, err := s.WriteToUDPAddrPort(b, to); return err },
			func(b []byte) (int, error) { n, _, err := s.ReadFromUDPAddrPort(b); return n, err },
			func() { s.Close() },
		}
	}
	return ports
}

// loopbackDatagrams is the kernel's UDP.
func loopbackDatagrams() datagrams {
	return datagrams{"loopback", func(n int, use func(ports []port)) {
		sockets := make([]addressed, n)
		for i := range sockets {
			c := must(net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))
			sockets[i] = addressed{c, c.LocalAddr().(*net.UDPAddr).AddrPort()}
		}
		closing(ring(sockets), use)
	}}
}

// pipedDatagrams is net.Pipe between two, or between each of many and an end of its own.
func pipedDatagrams() datagrams {
	return datagrams{"net.Pipe", func(n int, use func(ports []port)) {
		if n != 2 {
			panic("a pipe has two ends")
		}
		a, b := net.Pipe()
		closing([]port{connected(a), connected(b)}, use)
	}}
}

// packetRing makes each socket of the kind that others offer send to the next one.
func packetRing(sockets []net.PacketConn, at []*net.UDPAddr) []port {
	ports := make([]port, len(sockets))
	for i, s := range sockets {
		var to net.Addr = at[(i+1)%len(at)]
		ports[i] = port{
			func(b []byte) error { _, err := s.WriteTo(b, to); return err },
			func(b []byte) (int, error) { n, _, err := s.ReadFrom(b); return n, err },
			func() { s.Close() },
		}
	}
	return ports
}

// pion is pion's vnet: one router, its delay the latency.
func pion(name string, delay time.Duration) datagrams {
	return datagrams{name, func(n int, use func(ports []port)) {
		inBubble(func() {
			router := pionRouter(delay)
			sockets, at := make([]net.PacketConn, n), make([]*net.UDPAddr, n)
			for i := range sockets {
				at[i] = address(i)
				nic := must(vnet.NewNet(&vnet.NetConfig{StaticIPs: []string{at[i].IP.String()}}))
				check(router.AddNet(nic))
				sockets[i] = must(nic.ListenUDP("udp4", at[i]))
			}
			check(router.Start())
			closing(packetRing(sockets, at), use)
			check(router.Stop())
		})
	}}
}

func pionRouter(delay time.Duration) *vnet.Router {
	loggers := logging.NewDefaultLoggerFactory()
	return must(vnet.NewRouter(&vnet.RouterConfig{CIDR: "10.0.0.0/8", MinDelay: delay, LoggerFactory: loggers}))
}

// marcoPolo is simnet by Marco Munizaga: two links of a rate and a queue at each host, here so fast that they do
// not count.
func marcoPolo(name string) datagrams {
	return datagrams{name, func(n int, use func(ports []port)) {
		inBubble(func() {
			s := &simnet.Simnet{LatencyFunc: simnet.StaticLatency(latency)}
			link := simnet.LinkSettings{BitsPerSecond: 100_000 * simnet.Mibps}
			sockets, at := make([]net.PacketConn, n), make([]*net.UDPAddr, n)
			for i := range sockets {
				at[i] = address(i)
				sockets[i] = s.NewEndpoint(at[i], simnet.NodeBiDiLinkSettings{Downlink: link, Uplink: link})
			}
			s.Start()
			closing(packetRing(sockets, at), use)
			s.Close()
		})
	}}
}

// address is that of a host by number.
func address(i int) *net.UDPAddr {
	i++
	return &net.UDPAddr{IP: net.IPv4(10, byte(i>>16), byte(i>>8), byte(i)), Port: 7}
}
