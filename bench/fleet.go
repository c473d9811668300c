package bench

import (
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/glycerine/gosimnet"
)

// spread is a network with a server and so many other hosts, each able to dial it, as fleets and connections by the
// thousand need it.
type spread struct {
	*gosimnet.Simnet
	listener net.Listener
	hosts    []*gosimnet.Host
}

func newSpread(s *gosimnet.Simnet, hosts int) *spread {
	sp := &spread{Simnet: s, listener: must(s.Host("server").Listen("tcp", ":80"))}
	for i := range hosts {
		sp.hosts = append(sp.hosts, s.Host(hostName(i)))
	}
	return sp
}

// connect makes the i-th connection.
func (sp *spread) connect(i int) (client, server net.Conn) {
	client = must(sp.hosts[i%len(sp.hosts)].Dial("tcp", "server:80"))
	return client, must(sp.listener.Accept())
}

// simulatedFleet is this library with so many hosts that have a stream each to one server: what a port sends, it
// receives there.
func simulatedFleet(name string, cfg gosimnet.SimNetConfig) datagrams {
	return datagrams{name, func(n int, use func(ports []port)) {
		simulate(cfg, func(s *gosimnet.Simnet) {
			sp := newSpread(s, n)
			ports := make([]port, n)
			for i := range ports {
				ports[i] = oneWay(sp.connect(i))
			}
			closing(ports, use)
		})
	}}
}

// oneWay is a port that receives at one end of a connection what it sends at the other one.
func oneWay(client, server net.Conn) port {
	return port{
		func(b []byte) error { _, err := client.Write(b); return err },
		func(b []byte) (int, error) { return io.ReadFull(server, b) },
		func() { client.Close(); server.Close() },
	}
}

// sleepers is no network at all: nothing is sent and nothing arrives.
func sleepers() datagrams {
	return datagrams{"sleepers alone", func(n int, use func(ports []port)) {
		inBubble(func() {
			ports := make([]port, n)
			for i := range ports {
				ports[i] = port{
					func([]byte) error { return nil },
					func([]byte) (int, error) { return 0, io.EOF },
					func() {},
				}
			}
			use(ports)
		})
	}}
}

// timers is the least that a network with latency can do for datagrams: to send sets the timer that the receiver
// waits for, each a nanosecond after that of the port before, so that one goroutine is woken at an instant.
func timers() datagrams {
	return datagrams{"timers alone", func(n int, use func(ports []port)) {
		inBubble(func() {
			all := make([]*time.Timer, n)
			for i := range all {
				all[i] = time.NewTimer(time.Hour)
				all[i].Stop()
			}
			ports := make([]port, n)
			for i := range ports {
				ports[i] = timerPort(all[i], all[(i+1)%n], latency+time.Duration(i))
			}
			use(ports)
		})
	}}
}

// timerPort receives when a timer fires, and sends by setting another one.
func timerPort(own, next *time.Timer, latency time.Duration) port {
	var closed atomic.Bool
	return port{
		func([]byte) error {
			next.Reset(latency)
			return nil
		},
		func(b []byte) (int, error) {
			if <-own.C; closed.Load() {
				return 0, io.EOF
			}
			return len(b), nil
		},
		func() {
			closed.Store(true)
			own.Reset(time.Nanosecond)
		},
	}
}

// numbered is a contender's name with how many there are of what counts.
func numbered(name string, n int, of string) string { return fmt.Sprintf("%s, %d %s", name, n, of) }
