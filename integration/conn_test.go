package integration

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/nettest"

	"github.com/glycerine/gosimnet"
)

// conditions are the networks that connections must behave the same on. At 1 µs the buffers are small: 256 KiB in each round
// trip would be a terabit a second, for as long as a test lets it flow.
var conditions = []struct {
	name string
	cfg  gosimnet.SimNetConfig
}{
	{"50ms", hop(50 * time.Millisecond)},
	{"1ms", hop(time.Millisecond)},
	{"1us", gosimnet.SimNetConfig{MinHop: time.Microsecond, SendBuffer: 4 << 10, ReceiveBuffer: 4 << 10}},
	{"4KiB", gosimnet.SimNetConfig{MinHop: time.Millisecond, SendBuffer: 4 << 10, ReceiveBuffer: 4 << 10}},
	{"loss", gosimnet.SimNetConfig{MinHop: time.Millisecond, Link: gosimnet.LinkConfig{Loss: 0.1}}},
	{"chopped", gosimnet.SimNetConfig{MinHop: time.Millisecond, ChopReads: true}},
	{"many at an instant", gosimnet.SimNetConfig{MinHop: time.Millisecond, BarrierOff: true}},
	{"everything", gosimnet.SimNetConfig{
		MinHop: time.Millisecond, MaxHop: 20 * time.Millisecond, SendBuffer: 16 << 10, ReceiveBuffer: 16 << 10,
		Link: gosimnet.LinkConfig{Loss: 0.1}, ChopReads: true,
	}},
}

// pipe makes connected pairs, each over a network of its own.
func pipe(network, address string, cfg gosimnet.SimNetConfig) nettest.MakePipe {
	return func() (c1, c2 net.Conn, stop func(), err error) {
		s, err := gosimnet.New(&cfg)
		if err != nil {
			return nil, nil, nil, err
		}
		l, err := s.Host("server").Listen(network, address)
		if err != nil {
			return nil, nil, nil, err
		}
		c1, c2, err = join(s.Host("client"), l)
		return c1, c2, s.Close, err
	}
}

func TestStreamsAreConns(t *testing.T) {
	t.Parallel()
	for _, c := range conditions {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(*testing.T) { nettest.TestConn(t, pipe("tcp", "server:80", c.cfg)) })
		})
	}
}

// On the wall clock the 500 round trips of one test take, at 50 ms, nearly the minute that TestConn allows, and everything together takes several.
func TestStreamsAreConnsOnTheWallClock(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute of real time, most of it asleep")
	}
	for _, c := range conditions {
		switch c.name {
		case "50ms":
			c.name, c.cfg.MinHop = "25ms", 25*time.Millisecond
		case "everything":
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			nettest.TestConn(t, pipe("tcp", "server:80", c.cfg))
		})
	}
}

// A circuit keeps the bounds of messages, which TestConn does not mind: it reads with buffers as large as its writes. It minds losses,
// which are final on a circuit; a circuit that loses nothing is a net.Conn in every respect that TestConn looks at.
func TestCircuitsThatLoseNothingAreConns(t *testing.T) {
	t.Parallel()
	for _, c := range conditions {
		if c.cfg.Link.Loss > 0 || c.cfg.MinHop < time.Millisecond { // a microsecond takes long, and shows nothing that a millisecond does not
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(*testing.T) { nettest.TestConn(t, pipe("simnet", "server", c.cfg)) })
		})
	}
}
