package quic

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// whole is a socket whose datagrams are never sent in fragments. quic-go asks a socket for its descriptor, to set the
// Don't Fragment bit.
type whole struct{ net.PacketConn }

func (whole) SyscallConn() (syscall.RawConn, error) { return descriptor{}, nil }

// descriptor is a file descriptor on which everything succeeds.
type descriptor struct{}

func (descriptor) Control(func(fd uintptr)) error    { return nil }
func (descriptor) Read(func(fd uintptr) bool) error  { return nil }
func (descriptor) Write(func(fd uintptr) bool) error { return nil }

// portion is what an upload sends. It is less than eight datagrams: with eight, quic-go's queue for the socket is
// full, and when it gets empty between two looks, the sender stops until the next acknowledgement, or does not, by
// chance (sendPacketsWithoutGSO and the end of run, in connection.go).
const portion = 8 << 10

// headers are those of IPv4 and UDP, which count for the MTU.
const headers = 28

// path is what a client's datagrams meet that have the Don't Fragment bit.
type path struct {
	mu sync.Mutex
	traffic
}

// traffic is what a path has seen.
type traffic struct {
	src   netip.AddrPort // where the last datagram came from
	large []int          // the sizes from there above quic-go's first, each once, in the order sent
	last  int            // the size of the last full datagram that passed
	lost  int
	heard time.Time // when the last datagram to the client left
}

// lay makes the path, and the function that changes its MTU.
func lay(net *gosimnet.Simnet, mtu int) (p *path, set func(mtu int)) {
	p = new(path)
	remove := func() {}
	set = func(mtu int) {
		remove()
		remove = net.AddRule(func(packet *gosimnet.Packet) gosimnet.Verdict { return p.meet(packet, mtu) })
	}
	set(mtu)
	return p, set
}

// soFar is a copy.
func (p *path) soFar() traffic {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.traffic
}

// meet is the rule that makes an MTU.
func (p *path) meet(packet *gosimnet.Packet, mtu int) gosimnet.Verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	if packet.From != "client" {
		p.heard = packet.Time
		return gosimnet.Pass()
	}
	if packet.Src != p.src {
		p.src, p.large = packet.Src, nil
	}
	if packet.Size > 1280 && !slices.Contains(p.large, packet.Size) {
		p.large = append(p.large, packet.Size)
	}
	if packet.Size+headers > mtu {
		p.lost++
		return gosimnet.Drop()
	}
	if packet.Size >= 1200 {
		p.last = packet.Size
	}
	return gosimnet.Pass()
}

// uploads are what a client sends on one stream, of which the server says how much has arrived.
type uploads struct {
	conn    *quic.Conn
	s       *quic.SendStream
	arrived chan int
}

// upload connects with a socket.
func upload(t *testing.T, network *gosimnet.Simnet, c credentials, packets net.PacketConn) *uploads {
	t.Helper()
	u := &uploads{arrived: make(chan int, 100)}
	go each(listen(t, network, c, wide), u.receive)
	u.conn = dial(t, network, transport(t, packets), c, nil)
	u.s = scenario.Must(u.conn.OpenUniStream())(t)
	return u
}

func (u *uploads) receive(conn *quic.Conn) {
	s, err := conn.AcceptUniStream(context.Background())
	for err == nil {
		var n int
		if n, err = s.Read(make([]byte, portion)); n > 0 {
			u.arrived <- n
		}
	}
}

// send does not wait for what it sends to arrive.
func (u *uploads) send(t *testing.T, bytes int) {
	t.Helper()
	scenario.Must(u.s.Write(make([]byte, bytes)))(t)
}

// wait waits for so many bytes.
func (u *uploads) wait(bytes int) {
	for bytes > 0 {
		bytes -= <-u.arrived
	}
}

// look sends 20 portions, each of which is an occasion for a probe.
func (u *uploads) look(t *testing.T) {
	t.Helper()
	for range 20 {
		u.send(t, portion)
		u.wait(portion)
		time.Sleep(time.Second)
	}
}

// Larger and larger datagrams are tried; a size is too large when three of that or less have not arrived: RFC 8899,
// and https://github.com/quic-go/quic-go/pull/4545. Nothing but probes is lost on the way.
func TestPathMTUIsFound(t *testing.T) {
	t.Setenv("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true")
	c := newCredentials(t)
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "discovery finds a path MTU of 1400 bytes", Repeats: true, Config: wire(),
	}, func(t *testing.T, net *gosimnet.Simnet) {
		path, _ := lay(net, 1400)
		u := upload(t, net, c, whole{socket(t, net.Host("client"), ":0")})
		u.look(t)
		seen := path.soFar()
		if want := []int{1366, 1409, 1387, 1376, 1371, 1390}; !slices.Equal(seen.large, want) {
			t.Errorf("datagrams of %d bytes left, want %d", seen.large, want)
		}
		if seen.last != 1371 {
			t.Errorf("the last full datagrams have %d bytes, want 1371, a byte less than fits", seen.last)
		}
		if seen.lost != 4 {
			t.Errorf("%d datagrams were lost, want the 4 probes that do not fit", seen.lost)
		}
	})
}

// Without the Don't Fragment bit a probe that has arrived would prove nothing, so there is none:
// https://github.com/quic-go/quic-go/pull/3879. It is so with every socket that is not package net's.
func TestNoDiscoveryWithoutTheBit(t *testing.T) {
	c := newCredentials(t)
	scenario.Run(t, scenario.Scenario{
		Software: software,
		Shows:    "no datagram is above 1280 bytes without the Don't Fragment bit", Repeats: true,
		Config: wire(),
	}, func(t *testing.T, net *gosimnet.Simnet) {
		path, _ := lay(net, 1500)
		u := upload(t, net, c, socket(t, net.Host("client"), ":0"))
		u.look(t)
		if seen := path.soFar(); len(seen.large) > 0 || seen.last != 1280 {
			t.Errorf("datagrams of %d bytes left, the last of %d; want none above 1280", seen.large, seen.last)
		}
	})
}

// When a path's MTU shrinks, quic-go does not find out: all large datagrams are lost, small ones arrive, and an
// upload waits until the idle time-out. RFC 8899, section 4.3, calls this a black hole, and leaves it to the sender
// to notice; https://github.com/quic-go/quic-go/issues/5768 is about a path that is nearly one.
func TestPathMTUShrinks(t *testing.T) {
	t.Setenv("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true")
	c := newCredentials(t)
	scenario.Run(t, scenario.Scenario{
		Software: software,
		Shows:    "a path that shrinks to 1300 bytes is a black hole until the idle time-out", Repeats: true,
		Config: wire(),
	}, func(t *testing.T, net *gosimnet.Simnet) {
		path, set := lay(net, 1400)
		u := upload(t, net, c, whole{socket(t, net.Host("client"), ":0")})
		u.look(t)
		set(1300)
		u.send(t, 10)
		u.wait(10)
		time.Sleep(time.Second)
		u.send(t, portion)
		<-u.conn.Context().Done()
		idleAfter(t, "client", u.conn, scenario.Clock{Start: path.soFar().heard}, latency+30*time.Second)
		if len(u.arrived) > 0 {
			t.Errorf("%d bytes went through the black hole", <-u.arrived)
		}
	})
}

// A new path begins with 1200 bytes, and looks for its MTU anew: RFC 9000, section 14.3. The same network with
// another port will do. It must come before the lost datagrams fill the congestion window: a challenge is not sent
// before there is room in it.
func TestNewPathHasItsOwnMTU(t *testing.T) {
	t.Setenv("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true")
	c := newCredentials(t)
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "migration out of a black hole of 1300 bytes", Repeats: true, Config: wire(),
	}, func(t *testing.T, net *gosimnet.Simnet) {
		path, set := lay(net, 1400)
		u := upload(t, net, c, whole{socket(t, net.Host("client"), ":0")})
		u.look(t)
		set(1300)
		before := path.soFar().lost
		u.send(t, portion)
		time.Sleep(time.Second)
		if lost := path.soFar().lost - before; lost == 0 || len(u.arrived) > 0 {
			t.Errorf("%d datagrams were lost, %d pieces have arrived; want some, and none", lost, len(u.arrived))
		}
		other := scenario.Must(u.conn.AddPath(transport(t, whole{socket(t, net.Host("client"), ":0")})))(t)
		if err := other.Probe(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(thinking)
		if err := other.Switch(); err != nil {
			t.Error(err)
		}
		u.wait(portion)
		u.look(t)
		seen := path.soFar()
		if want := []int{1326, 1357, 1294, 1298, 1283}; !slices.Equal(seen.large, want) {
			t.Errorf("datagrams of %d bytes left, want %d", seen.large, want)
		}
		if seen.last != 1272 {
			t.Errorf("the last full datagrams have %d bytes, want 1272, which is 1300 with headers", seen.last)
		}
	})
}
