package gosimnet_test

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/glycerine/gosimnet"
)

// What is bound to 127.0.0.1 reaches its own host alone. Linux says so by EINVAL, and not at once that the peer is silent.
func TestNothingLeavesTheHostFrom127(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		a, peer := s.Host("a"), s.Host("b").Addrs()[0]
		_, err := s.Host("b").Listen("tcp", ":80")
		noError(t, err)
		own, err := a.Listen("tcp", ":80")
		noError(t, err)
		refused := func(op, call string, err error) {
			t.Helper()
			var oe *net.OpError
			if !errors.As(err, &oe) || oe.Op != op || oe.Err.Error() != os.NewSyscallError(call, syscall.EINVAL).Error() {
				t.Errorf("%s: %v, want %s: EINVAL", op, err, call)
			}
		}
		start := time.Now()
		d := a.Dialer()
		for _, ip := range []net.IP{{127, 0, 0, 1}, {127, 1, 2, 3}} {
			d.LocalAddr = &net.TCPAddr{IP: ip}
			refused("dial", "connect", second(d.Dial("tcp", "b:80")))
			refused("dial", "connect", second(d.Dial("tcp", "10.99.0.1:80"))) // nobody's
			d.LocalAddr = &net.UDPAddr{IP: ip}
			refused("dial", "connect", second(d.Dial("udp", "b:80")))
		}
		c, err := a.ListenPacket("udp", "127.0.0.1:7000")
		noError(t, err)
		for _, ip := range []net.IP{peer.AsSlice(), {10, 99, 0, 1}, {10, 255, 255, 255}} {
			refused("write", "sendto", second(c.WriteTo([]byte("x"), &net.UDPAddr{IP: ip, Port: 80})))
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("the errors took %v", took)
		}
		d.LocalAddr = &net.TCPAddr{IP: net.IP{127, 0, 0, 1}} // its own address is the host, too
		toOwn, err := d.Dial("tcp", netip.AddrPortFrom(a.Addrs()[0], 80).String())
		noError(t, err)
		noError(t, toOwn.Close())
		noError(t, own.Close())
	})
}

// What comes from ::1 over a link is thrown away where it arrives: nobody tells the sender.
func TestNobodyHearsWhatComesFromLoopbackOfIPv6(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		a, b := s.Host("a"), s.Host("b")
		six := b.Addrs()[1]
		_, err := b.Listen("tcp", ":80")
		noError(t, err)
		server, err := b.ListenPacket("udp", ":80")
		noError(t, err)
		client, err := a.ListenPacket("udp", "[::1]:7000")
		noError(t, err)
		_, err = client.WriteTo([]byte("x"), net.UDPAddrFromAddrPort(netip.AddrPortFrom(six, 80)))
		noError(t, err)
		hearsNothing(t, server)
		d := a.Dialer()
		d.LocalAddr = &net.TCPAddr{IP: net.IPv6loopback}
		start := time.Now()
		_, err = d.Dial("tcp", netip.AddrPortFrom(six, 80).String())
		if took := time.Since(start); !errors.Is(err, syscall.ETIMEDOUT) || took.Truncate(time.Microsecond) != 127*time.Second {
			t.Errorf("a dial from ::1: %v after %v", err, took)
		}
	})
}

// A group and the limited broadcast can be sent to from 127.0.0.1, but only the host itself hears of it.
func TestGroupsAndBroadcastsFromLoopbackStayInTheHost(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		group := &net.UDPAddr{IP: net.IP{224, 0, 0, 9}, Port: 80}
		others, err := s.Host("b").ListenMulticastUDP("udp4", nil, group)
		noError(t, err)
		c, err := s.Host("a").ListenPacket("udp4", "127.0.0.1:7000")
		noError(t, err)
		for _, to := range []*net.UDPAddr{group, {IP: net.IPv4bcast, Port: 80}} {
			noError(t, second(c.WriteTo([]byte("x"), to)))
		}
		hearsNothing(t, others)
	})
}

// hearsNothing checks that nothing reaches a socket within a second.
func hearsNothing(t *testing.T, c net.PacketConn) {
	t.Helper()
	noError(t, c.SetReadDeadline(time.Now().Add(time.Second)))
	if n, from, err := c.ReadFrom(make([]byte, 9)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes from %v, %v", n, from, err)
	}
}
