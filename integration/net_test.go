package integration

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/glycerine/gosimnet"
)

// newNet makes a network that is closed when the test is over.
func newNet(t *testing.T, cfg gosimnet.SimNetConfig) *gosimnet.Simnet {
	t.Helper()
	s, err := gosimnet.New(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// hop is a network whose links all take so long, one way.
func hop(d time.Duration) gosimnet.SimNetConfig { return gosimnet.SimNetConfig{MinHop: d} }

// bubble runs a test in a bubble, over a network whose links take hop. After the network is closed it lets
// virtual time pass, for goroutines that end with a delay.
func bubble(t *testing.T, cfg gosimnet.SimNetConfig, f func(t *testing.T, s *gosimnet.Simnet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Minute) })
		f(t, newNet(t, cfg))
	})
}

// TestMain fails if anything is left running after all tests. In bubbles synctest sees to it after each.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listen listens on a stream address, for as long as the test runs.
func listen(t *testing.T, h *gosimnet.Host, address string) net.Listener {
	t.Helper()
	l, err := h.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// join dials from one host to a listener on another, and accepts.
func join(from *gosimnet.Host, l net.Listener) (client, server net.Conn, err error) {
	type accepted struct {
		c   net.Conn
		err error
	}
	done := make(chan accepted, 1)
	go func() {
		c, err := l.Accept()
		done <- accepted{c, err}
	}()
	if client, err = from.Dial(l.Addr().Network(), target(l)); err != nil {
		l.Close()
		<-done
		return nil, nil, err
	}
	a := <-done
	return client, a.c, a.err
}

// target is the address that others dial to reach the listener on host "server".
func target(l net.Listener) string {
	a, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return l.Addr().String()
	}
	return (&net.TCPAddr{IP: a.IP, Port: a.Port}).String()
}

// readAll reads until the end, which must come without an error.
func readAll(t *testing.T, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}
