package quic

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"go.uber.org/goleak"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

const (
	software  = "github.com/quic-go/quic-go v0.65.0"
	latency   = 10 * time.Millisecond
	roundTrip = 2 * latency
	port      = 443

	// thinking is a pause before a program uses a connection on which quic-go itself may act at this instant: if both
	// did, it would be chance what shares a datagram. It is no whole millisecond, by which quic-go paces what it
	// sends.
	thinking = 1300 * time.Microsecond
)

// TestMain lets one goroutine run at a time. A program's goroutine and quic-go's two for a connection, which pack and
// send, act at one instant, and what they make of it, on several processors, is chance: how many writes share a
// datagram, and whether the queue between the two is seen full (see portion).
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	goleak.VerifyTestMain(m)
}

// hop is a network whose links all take so long, one way.
func hop(d time.Duration) *gosimnet.SimNetConfig { return &gosimnet.SimNetConfig{MinHop: d} }

// wire is a network whose links have a rate as well, so that the datagrams of a burst arrive one by one. Those that
// arrive at one instant are acknowledged one by one or together, by chance.
func wire() *gosimnet.SimNetConfig {
	return &gosimnet.SimNetConfig{MinHop: latency, Link: gosimnet.LinkConfig{BitsPerSecond: 1e9}}
}

// almost is a latency that varies by less than what Clock.At minds. Without that, what one end sends when its
// acknowledgement is due, 25 ms after a packet, arrives at the very nanosecond at which the acknowledgement of the
// other end is due, and it is chance which of the two that end does first.
func almost(d time.Duration) gosimnet.Latency { return gosimnet.Uniform(d, d+200*time.Nanosecond) }

// credentials are what both ends need for TLS.
type credentials struct {
	cert  tls.Certificate
	roots *x509.CertPool
}

func newCredentials(t *testing.T) credentials {
	t.Helper()
	cert, roots := scenario.Certificate(t, "server")
	return credentials{cert, roots}
}

func (c credentials) server() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{c.cert}, NextProtos: []string{"test"}}
}

// client has keys for the exchange that fit one datagram. Those that crypto/tls prefers, X25519MLKEM768, take two,
// which arrive at one instant: it is chance whether the server answers the first before it looks at the second.
func (c credentials) client() *tls.Config {
	return &tls.Config{
		RootCAs: c.roots, ServerName: "server", NextProtos: []string{"test"}, CurvePreferences: []tls.CurveID{tls.X25519},
	}
}

// socket opens a socket for datagrams, for as long as the test runs.
func socket(t *testing.T, h *gosimnet.Host, address string) net.PacketConn {
	t.Helper()
	packets := scenario.Must(h.ListenPacket("udp", address))(t)
	t.Cleanup(func() { packets.Close() })
	return packets
}

// transport is QUIC over a socket, for as long as the test runs.
func transport(t *testing.T, packets net.PacketConn) *quic.Transport {
	t.Helper()
	tr := &quic.Transport{Conn: packets}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// listen listens for connections on the host "server".
func listen(t *testing.T, net *gosimnet.Simnet, c credentials, cfg *quic.Config) *quic.Listener {
	t.Helper()
	return scenario.Must(transport(t, socket(t, net.Host("server"), ":443")).Listen(c.server(), cfg))(t)
}

// dial connects from a transport to the host "server", and lets the handshake come to its end: it is chance whether
// what is written at the instant at which Dial returns shares a datagram with the handshake's last words.
func dial(t *testing.T, net *gosimnet.Simnet, tr *quic.Transport, c credentials, cfg *quic.Config) *quic.Conn {
	t.Helper()
	conn := scenario.Must(tr.Dial(t.Context(), serverAddr(net), c.client(), cfg))(t)
	t.Cleanup(func() { conn.CloseWithError(0, "") })
	time.Sleep(time.Second)
	return conn
}

func serverAddr(s *gosimnet.Simnet) *net.UDPAddr {
	return &net.UDPAddr{IP: s.Host("server").Addrs()[0].AsSlice(), Port: port}
}

// echo sends back what comes on a connection's streams, until it ends.
func echo(conn *quic.Conn) {
	for {
		s, err := conn.AcceptStream(context.Background())
		if err != nil {
			return
		}
		go func() {
			defer s.Close()
			b := make([]byte, 1<<10)
			for {
				n, err := s.Read(b)
				if err != nil {
					return
				}
				time.Sleep(thinking)
				s.Write(b[:n])
			}
		}()
	}
}

// each calls f with every connection, until the listener is closed.
func each(l *quic.Listener, f func(*quic.Conn)) {
	for {
		conn, err := l.Accept(context.Background())
		if err != nil {
			return
		}
		go f(conn)
	}
}

// say writes a word to an echo, and reads it.
func say(s *quic.Stream, word string) error {
	if _, err := s.Write([]byte(word)); err != nil {
		return err
	}
	return hear(s, word)
}

// hear reads a word.
func hear(s *quic.Stream, word string) error {
	b := make([]byte, len(word))
	for n := 0; n < len(b); {
		more, err := s.Read(b[n:])
		if n += more; err != nil {
			return err
		}
	}
	if string(b) != word {
		return errors.New("read " + string(b) + ", not " + word)
	}
	return nil
}

// host is the name of the host with an address.
func host(s *gosimnet.Simnet, addr net.Addr) string {
	for _, h := range s.Hosts() {
		for _, a := range h.Addrs() {
			if a == addr.(*net.UDPAddr).AddrPort().Addr().Unmap() {
				return h.Name()
			}
		}
	}
	return addr.String()
}
