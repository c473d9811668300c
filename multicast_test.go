package gosimnet_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

const aWay = 10 * time.Millisecond // the default latency

// udpAt makes an address as package net does.
func udpAt(ip string, port int) *net.UDPAddr {
	return net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(ip), uint16(port)))
}

// bound opens a socket of a host.
func bound(t *testing.T, h *gosimnet.Host, network, address string) *gosimnet.PacketConn {
	t.Helper()
	c, err := h.ListenPacket(network, address)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c.(*gosimnet.PacketConn)
}

// member opens a socket of a host that has joined a group.
func member(t *testing.T, h *gosimnet.Host, network, group string, port int) *gosimnet.PacketConn {
	t.Helper()
	c, err := h.ListenMulticastUDP(network, nil, udpAt(group, port))
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func send(t *testing.T, c *gosimnet.PacketConn, text string, to *net.UDPAddr) {
	t.Helper()
	if n, err := c.WriteTo([]byte(text), to); n != len(text) || err != nil {
		t.Fatalf("WriteTo %v: %d, %v", to, n, err)
	}
}

// waiting reads all that has arrived.
func waiting(t *testing.T, c *gosimnet.PacketConn) (all []string) {
	t.Helper()
	must(t, c.SetReadDeadline(time.Now().Add(time.Nanosecond)))
	defer c.SetReadDeadline(time.Time{})
	for b := make([]byte, 100); ; {
		n, err := c.Read(b)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return all
		}
		must(t, err)
		all = append(all, string(b[:n]))
	}
}

// hears checks what has arrived at a socket.
func hasGot(t *testing.T, who string, c *gosimnet.PacketConn, want ...string) {
	t.Helper()
	if got := waiting(t, c); !slices.Equal(got, want) {
		t.Errorf("%s has got %q, want %q", who, got, want)
	}
}

func settle() { time.Sleep(time.Second) }

func TestBroadcastReachesEveryHost(t *testing.T) {
	for _, to := range []string{"255.255.255.255", "10.255.255.255"} {
		t.Run(to, func(t *testing.T) {
			onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
				a := s.Host("a")
				c := bound(t, a, "udp", ":7")
				var others []*gosimnet.PacketConn
				for _, network := range []string{"udp", "udp4"} {
					others = append(others, bound(t, s.Host("b"+network), network, ":7"))
				}
				deaf := map[string]*gosimnet.PacketConn{
					"a socket of IPv6 alone":        bound(t, s.Host("six"), "udp6", ":7"),
					"a socket bound to one address": bound(t, s.Host("one"), "udp", "one:7"),
					"a socket at another port":      bound(t, s.Host("port"), "udp", ":8"),
				}
				send(t, c, "hello", udpAt(to, 7))
				start := time.Now()
				b := make([]byte, 100)
				for i, o := range others {
					n, from, err := o.ReadFrom(b)
					must(t, err)
					if i == 0 {
						lasted(t, start, aWay)
					}
					if string(b[:n]) != "hello" || from.String() != a.Addrs()[0].String()+":7" {
						t.Errorf("got %q from %v", b[:n], from)
					}
				}
				settle()
				hasGot(t, "the sender", c, "hello")
				for _, o := range others {
					hasGot(t, "a receiver", o)
				}
				for who, o := range deaf {
					hasGot(t, who, o)
				}
			})
		})
	}
}

func TestSenderHearsItsBroadcastByLoopback(t *testing.T) {
	onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
		c := bound(t, s.Host("a"), "udp", ":7")
		start := time.Now()
		send(t, c, "self", udpAt("255.255.255.255", 7))
		_, err := c.Read(make([]byte, 10))
		must(t, err)
		lasted(t, start, 10*time.Microsecond)
	})
}

func TestBroadcastStaysInItsSubnet(t *testing.T) {
	onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
		far, err := s.AddHost("far", netip.MustParseAddr("192.168.0.1"))
		must(t, err)
		six, err := s.AddHost("six", netip.MustParseAddr("fd00::6"))
		must(t, err)
		near, outside := bound(t, s.Host("near"), "udp", ":7"), bound(t, far, "udp", ":7")
		without := bound(t, six, "udp", ":7")
		send(t, near, "subnet", udpAt("10.255.255.255", 7))
		settle()
		send(t, near, "all", udpAt("255.255.255.255", 7))
		send(t, outside, "stray", udpAt("10.255.255.255", 7))
		settle()
		hasGot(t, "the near host", near, "subnet", "all")
		hasGot(t, "the far host", outside, "all")
		hasGot(t, "the host without IPv4", without)
		_, err = without.WriteTo([]byte("x"), udpAt("255.255.255.255", 7))
		if !errors.Is(err, syscall.ENETUNREACH) {
			t.Errorf("broadcast by a host without IPv4: %v", err)
		}
		for _, a := range []string{"255.255.255.255", "10.255.255.255"} {
			if _, err := s.AddHost("x", netip.MustParseAddr(a)); err == nil {
				t.Errorf("a host has the address %s", a)
			}
			if _, err := near.WriteTo([]byte("x"), udpAt(a, 0)); !errors.Is(err, syscall.EINVAL) {
				t.Errorf("broadcast to port 0: %v", err)
			}
			if _, err := s.Host("near").Dial("tcp", a+":80"); !errors.Is(err, syscall.ENETUNREACH) {
				t.Errorf("stream to %s: %v", a, err)
			}
		}
	})
}

func TestSocketOfABroadcastAddress(t *testing.T) {
	onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
		a, b := s.Host("a"), s.Host("b")
		c, d := bound(t, a, "udp", "10.255.255.255:7"), bound(t, b, "udp", ":7")
		send(t, d, "subnet", udpAt("10.255.255.255", 7))
		send(t, d, "all", udpAt("255.255.255.255", 7))
		send(t, d, "one", udpAt(a.Addrs()[0].String(), 7))
		send(t, c, "answer", udpAt(b.Addrs()[0].String(), 7))
		b2 := make([]byte, 10)
		settle()
		hasGot(t, "the socket", c, "subnet")
		must(t, second(d.Read(b2)))
		must(t, second(d.Read(b2)))
		if n, from, err := d.ReadFrom(b2); string(b2[:n]) != "answer" || err != nil || from.String() != a.Addrs()[0].String()+":7" {
			t.Errorf("the answer is %q from %v, %v", b2[:n], from, err)
		}
	})
}

func TestConnectedBroadcaster(t *testing.T) {
	onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
		a, b := s.Host("a"), bound(t, s.Host("b"), "udp", ":7")
		c, err := a.Dial("udp", "255.255.255.255:7")
		must(t, err)
		must(t, second(c.Write([]byte("hello"))))
		settle()
		hasGot(t, "the receiver", b, "hello")
		send(t, b, "answer", c.LocalAddr().(*net.UDPAddr))
		settle()
		hasGot(t, "the sender, whose peer is the broadcast address", c.(*gosimnet.PacketConn))
		must(t, b.Close())
		must(t, second(c.Write([]byte("nobody listens"))))
		settle()
		if _, err := c.Write([]byte("no ICMP for that")); err != nil {
			t.Errorf("after a broadcast to closed ports: %v", err)
		}
		must(t, second(s.Partition(gosimnet.RejectPackets, []string{"a"}, []string{"b"})))
		must(t, second(c.Write([]byte("refused"))))
		settle()
		if _, err := c.Write([]byte("no ICMP for that")); err != nil {
			t.Errorf("after a broadcast into a firewall: %v", err)
		}
	})
}

func TestGroupReachesMembersAlone(t *testing.T) {
	for _, group := range []struct{ network, ip, other string }{
		{"udp", "239.1.2.3", "239.1.2.4"}, {"udp4", "239.1.2.3", "239.1.2.4"}, {"udp", "ff15::7", "ff15::8"}, {"udp6", "ff15::7", "ff15::8"},
	} {
		t.Run(group.network+" "+group.ip, func(t *testing.T) {
			onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
				to := udpAt(group.ip, 7)
				sender := bound(t, s.Host("sender"), group.network, ":0")
				one, two := member(t, s.Host("one"), group.network, group.ip, 7), member(t, s.Host("two"), group.network, group.ip, 7)
				other, port := member(t, s.Host("other"), group.network, group.other, 7), member(t, s.Host("port"), group.network, group.ip, 8)
				outside := bound(t, s.Host("outside"), group.network, ":7")
				send(t, sender, "first", to)
				start := time.Now()
				b := make([]byte, 10)
				n, from, err := one.ReadFrom(b)
				must(t, err)
				lasted(t, start, aWay)
				if string(b[:n]) != "first" || from.(*net.UDPAddr).Port != sender.LocalAddr().(*net.UDPAddr).Port || from.(*net.UDPAddr).IP.IsUnspecified() {
					t.Errorf("got %q from %v", b[:n], from)
				}
				must(t, two.LeaveGroup(nil, to))
				must(t, other.JoinGroup(nil, &net.IPAddr{IP: to.IP}))
				settle()
				hasGot(t, "a member that has left since", two, "first")
				send(t, sender, "second", to)
				must(t, outside.SetMulticastLoopback(true))
				settle()
				hasGot(t, "the member", one, "second")
				hasGot(t, "a host that has left", two)
				hasGot(t, "a host that has joined", other, "second")
				hasGot(t, "a member at another port", port)
				hasGot(t, "a host that never joined", outside)
			})
		})
	}
}

func TestSocketsShareTheirGroupsPort(t *testing.T) {
	onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
		a, sender := s.Host("a"), bound(t, s.Host("b"), "udp", ":0")
		one, two := member(t, a, "udp", "239.0.0.1", 7), member(t, a, "udp", "239.0.0.2", 7)
		bare := bound(t, a, "udp4", "224.0.0.250:7") // package net binds this as it does members
		if got := one.LocalAddr().String(); got != "0.0.0.0:7" {
			t.Errorf("the local address is %s", got)
		}
		for _, network := range []string{"udp", "udp4"} {
			if _, err := a.ListenPacket(network, ":7"); !errors.Is(err, syscall.EADDRINUSE) {
				t.Errorf("a socket that does not share: %v", err)
			}
		}
		for _, to := range []string{"239.0.0.1", "239.0.0.2", "224.0.0.1", "239.0.0.3", "255.255.255.255", a.Addrs()[0].String()} {
			send(t, sender, to, udpAt(to, 7))
			settle()
		}
		// As on Linux, membership is the host's; a datagram to the host itself is for the last that came.
		heard := []string{"239.0.0.1", "239.0.0.2", "224.0.0.1", "255.255.255.255"}
		hasGot(t, "the first", one, heard...)
		hasGot(t, "the second", two, heard...)
		hasGot(t, "the last", bare, append(heard, a.Addrs()[0].String())...)
		must(t, one.Close())
		send(t, sender, "left", udpAt("239.0.0.1", 7))
		send(t, sender, "stays", udpAt("239.0.0.2", 7))
		settle()
		hasGot(t, "the second", two, "stays")
		must(t, bare.Close())
		must(t, two.Close())
		bound(t, a, "udp", ":7")
	})
}

func TestGroupsComeBackToTheSender(t *testing.T) {
	onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
		a, group := s.Host("a"), udpAt("239.0.0.1", 7)
		m, plain := member(t, a, "udp", "239.0.0.1", 7), bound(t, a, "udp", ":0")
		far := member(t, s.Host("b"), "udp", "239.0.0.1", 7)
		for _, test := range []struct {
			c    *gosimnet.PacketConn
			loop bool
		}{{plain, true}, {m, false}} {
			for range 2 {
				if on, err := test.c.MulticastLoopback(); on != test.loop || err != nil {
					t.Errorf("MulticastLoopback: %v, %v, want %v", on, err, test.loop)
				}
				send(t, test.c, "x", group)
				settle()
				hasGot(t, "another host", far, "x")
				if test.loop {
					hasGot(t, "the own host", m, "x")
				} else {
					hasGot(t, "the own host", m)
				}
				test.loop = !test.loop
				must(t, test.c.SetMulticastLoopback(test.loop))
			}
		}
	})
}

func TestMembershipErrors(t *testing.T) {
	onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
		a := s.Host("a")
		c, four := member(t, a, "udp", "239.0.0.1", 7), bound(t, a, "udp4", ":0")
		own := a.Addrs()[0].String()
		for _, test := range []struct {
			call string
			err  error
			want error
		}{
			{"join twice", c.JoinGroup(nil, udpAt("239.0.0.1", 0)), syscall.EADDRINUSE},
			{"join no group", c.JoinGroup(nil, udpAt(own, 0)), syscall.EINVAL},
			{"leave what was not joined", c.LeaveGroup(nil, udpAt("239.0.0.2", 0)), syscall.EADDRNOTAVAIL},
			{"join a group of the other family", four.JoinGroup(nil, udpAt("ff15::1", 0)), syscall.ENOPROTOOPT},
			{"listen at an own address", second(a.ListenMulticastUDP("udp", nil, udpAt(own, 9))), syscall.EINVAL},
			{"listen at another's address", second(a.ListenMulticastUDP("udp", nil, udpAt("10.9.9.9", 9))), syscall.EADDRNOTAVAIL},
			{"listen at a group of the other family", second(a.ListenMulticastUDP("udp4", nil, udpAt("ff15::1", 9))), syscall.ENOPROTOOPT},
			{"listen at streams' network", second(a.ListenMulticastUDP("tcp", nil, udpAt("239.0.0.1", 9))), net.UnknownNetworkError("tcp")},
		} {
			if !errors.Is(test.err, test.want) {
				t.Errorf("%s: %v, want %v", test.call, test.err, test.want)
			}
		}
		for call, err := range map[string]error{
			"join nothing": c.JoinGroup(nil, nil), "join no address": c.JoinGroup(nil, (*net.UDPAddr)(nil)), "join a stream's": c.JoinGroup(nil, &net.TCPAddr{IP: net.IPv4(239, 0, 0, 1)}),
			"listen nowhere": second(a.ListenMulticastUDP("udp", nil, nil)), "listen at no address": second(a.ListenMulticastUDP("udp", nil, &net.UDPAddr{Port: 9})),
		} {
			if err == nil || !strings.HasSuffix(err.Error(), ": missing address") {
				t.Errorf("%s: %v, want that the address is missing", call, err)
			}
		}
		if c, err := a.ListenMulticastUDP("udp", nil, udpAt("10.9.9.9", 9)); c != nil || err.Error() != "listen udp 10.9.9.9:9: bind: cannot assign requested address" {
			t.Errorf("%v, %v", c, err)
		}
		bound(t, a, "udp", ":9") // nothing is left of those that failed
		must(t, c.Close())
		for call, err := range map[string]error{
			"join": c.JoinGroup(nil, udpAt("239.0.0.2", 0)), "leave": c.LeaveGroup(nil, udpAt("239.0.0.1", 0)),
			"set": c.SetMulticastLoopback(true), "get": second(c.MulticastLoopback()),
		} {
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("%s after Close: %v", call, err)
			}
		}
		s.Close()
		if _, err := a.ListenMulticastUDP("udp", nil, udpAt("239.0.0.1", 9)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("listen in a closed network: %v", err)
		}
	})
}

func TestEveryCopyHasAFateOfItsOwn(t *testing.T) {
	onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
		c := bound(t, s.Host("a"), "udp", ":7")
		members := make(map[string]*gosimnet.PacketConn)
		for _, name := range []string{"cut", "off", "isolated", "slow", "held", "well"} {
			members[name] = bound(t, s.Host(name), "udp", ":7")
		}
		must(t, second(s.CutLink(gosimnet.DropPackets, "a", "cut")))
		must(t, second(s.AlterHost("isolated", gosimnet.ISOLATE)))
		must(t, s.SetLink("a", "slow", gosimnet.LinkConfig{Latency: gosimnet.Constant(3 * time.Second)}))
		heal, err := s.CutLink(gosimnet.HoldPackets, "a", "held")
		must(t, err)
		s.AddRule(func(p *gosimnet.Packet) gosimnet.Verdict {
			if p.To == "well" && p.Dst == netip.MustParseAddrPort("255.255.255.255:7") {
				return gosimnet.Corrupt()
			}
			return gosimnet.Pass()
		})
		start := time.Now()
		send(t, c, "\x00\x00", udpAt("255.255.255.255", 7))
		must(t, second(s.AlterHost("off", gosimnet.SHUTDOWN)))
		settle()
		hasGot(t, "the sender", c, "\x00\x00")
		for _, name := range []string{"cut", "isolated", "slow", "held"} {
			hasGot(t, name, members[name])
		}
		if got := waiting(t, members["well"]); len(got) != 1 || got[0] == "\x00\x00" {
			t.Errorf("the corrupted copy is %q", got)
		}
		heal()
		time.Sleep(2 * aWay)
		hasGot(t, "held", members["held"], "\x00\x00")
		if _, err := members["slow"].Read(make([]byte, 2)); err != nil {
			t.Error(err)
		}
		lasted(t, start, 3*time.Second)
		for name, want := range map[string]gosimnet.LinkCount{"cut": {}, "off": {}, "isolated": {}, "slow": {Packets: 1, Bytes: 2}, "held": {Packets: 1, Bytes: 2}, "well": {Packets: 1, Bytes: 2}} {
			stats, err := s.LinkStats("a", name)
			must(t, err)
			if sent := (gosimnet.LinkCount{Packets: 1, Bytes: 2}); stats.Sent != sent || stats.Delivered != want {
				t.Errorf("to %s: sent %v, delivered %v, want %v", name, stats.Sent, stats.Delivered, want)
			}
		}
	})
}

func TestPowerCutEndsMembership(t *testing.T) {
	onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
		c, group := bound(t, s.Host("a"), "udp", ":0"), udpAt("239.0.0.1", 7)
		member(t, s.Host("b"), "udp", "239.0.0.1", 7)
		must(t, second(s.AlterHost("b", gosimnet.SHUTDOWN)))
		must(t, second(s.AlterHost("b", gosimnet.POWERON)))
		again := bound(t, s.Host("b"), "udp", ":7")
		send(t, c, "lost", group)
		settle()
		hasGot(t, "a socket made after the power cut", again)
		must(t, again.JoinGroup(nil, group))
		send(t, c, "found", group)
		settle()
		hasGot(t, "a socket that has joined", again, "found")
	})
}

func TestOneHostThatDoesNotReadDelaysNobody(t *testing.T) {
	onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
		c := bound(t, s.Host("a"), "udp", ":0")
		full, reader := member(t, s.Host("full"), "udp", "239.0.0.1", 7), member(t, s.Host("reader"), "udp", "239.0.0.1", 7)
		must(t, full.SetReadBuffer(2304)) // room for two of these
		start := time.Now()
		for range 100 {
			send(t, c, strings.Repeat("x", 1000), udpAt("239.0.0.1", 7))
		}
		lasted(t, start, 0)
		b := make([]byte, 1000)
		for range 92 { // what the default queue holds of them
			must(t, second(reader.Read(b)))
		}
		lasted(t, start, aWay)
		if got := len(waiting(t, full)); got != 2 {
			t.Errorf("%d datagrams are in the full queue, want 2", got)
		}
	})
}

// casting runs hosts that all broadcast, join, leave and send to groups at the same instants, over links that lose packets.
func casting(t *testing.T, seed uint64, bystander bool) (hash string, heard map[string]int) {
	heard = make(map[string]int)
	synctest.Test(t, func(t *testing.T) {
		s := newNet(t, &gosimnet.SimNetConfig{Seed: seed, MinHop: time.Millisecond, MaxHop: 9 * time.Millisecond,
			Link: gosimnet.LinkConfig{Loss: 0.3, Duplicate: 0.2, Ordering: gosimnet.Unordered}})
		if bystander {
			s.Host("bystander")
		}
		group := udpAt("239.0.0.1", 7)
		done := make(chan bool)
		var conns []*gosimnet.PacketConn
		for i := range 6 {
			name := fmt.Sprint("h", i)
			h := s.Host(name)
			must(t, s.SetUplink(name, gosimnet.LinkConfig{BitsPerSecond: 1e6}))
			m := member(t, h, "udp", "239.0.0.1", 7)
			conns = append(conns, m)
			go func() {
				for n := range 20 {
					m.WriteTo([]byte(name), group)
					m.WriteTo([]byte(name), udpAt("255.255.255.255", 7))
					if c, err := h.Dial("udp", "239.0.0.1:7"); err == nil {
						c.Write([]byte(name))
						c.Close()
					}
					if (n+i)%5 == 0 {
						m.LeaveGroup(nil, group)
					} else if (n+i)%5 == 1 {
						m.JoinGroup(nil, group)
					}
					time.Sleep(10 * time.Millisecond)
				}
				done <- true
			}()
		}
		for range conns {
			<-done
		}
		settle()
		for i, c := range conns {
			heard[fmt.Sprint("h", i)] = len(waiting(t, c))
		}
		hash = s.TraceHash()
	})
	return hash, heard
}

func TestCastsRepeat(t *testing.T) {
	want, heard := casting(t, 1, false)
	for range 20 {
		if got, _ := casting(t, 1, false); got != want {
			t.Fatal("the same seed gave another run")
		}
	}
	if got, _ := casting(t, 2, false); got == want {
		t.Error("another seed gave the same run")
	}
	if _, got := casting(t, 1, true); !slices.EqualFunc(sortedCounts(heard), sortedCounts(got), func(a, b string) bool { return a == b }) {
		t.Errorf("with one more host the others have got %v, without %v", got, heard)
	}
}

func sortedCounts(m map[string]int) (all []string) {
	for k, n := range m {
		all = append(all, fmt.Sprint(k, " ", n))
	}
	slices.Sort(all)
	return all
}

// What waits in a socket stays as it was sent, whatever the network carries meanwhile, also if it is the second of two.
func TestADuplicatedDatagramToAGroupKeepsItsBytes(t *testing.T) {
	onNetwork(t, func(t *testing.T, s *gosimnet.Simnet) {
		must(t, s.SetLink("", "", gosimnet.LinkConfig{Duplicate: 1}))
		a := bound(t, s.Host("a"), "udp4", ":5")
		b := member(t, s.Host("b"), "udp4", "239.1.1.1", 7)
		send(t, a, "to the group", udpAt("239.1.1.1", 7))
		settle()
		for range 3 {
			send(t, a, "to  somebody", udpAt("10.0.0.2", 9))
		}
		settle()
		hasGot(t, "b", b, "to the group", "to the group")
	})
}
