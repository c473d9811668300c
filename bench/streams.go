package bench

import (
	"context"
	"net"
	"sync"

	"google.golang.org/grpc/test/bufconn"

	"github.com/glycerine/gosimnet"
)

// dialer makes connections to a listener that it knows.
type dialer func() (net.Conn, error)

// streams is a peer that programs use in place of TCP.
type streams struct {
	name string
	// open calls use with a listener and what connects to it, in a bubble if that is where the peer lives, and closes
	// the listener afterwards.
	open func(use func(net.Listener, dialer))
}

// pair calls use with two ends of a connection, which it closes afterwards.
func (p streams) pair(use func(client, server net.Conn)) {
	p.open(func(l net.Listener, dial dialer) {
		client, server := connect(l, dial)
		use(client, server)
		client.Close()
		server.Close()
	})
}

// connect makes a connection.
func connect(l net.Listener, dial dialer) (client, server net.Conn) {
	var wg sync.WaitGroup
	wg.Go(func() { server = must(l.Accept()) })
	client = must(dial())
	wg.Wait()
	return client, server
}

// must is for what cannot fail unless a peer or a work is wrong: there is no figure to print then.
func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// quiet is a network without a trace, of constant latency, as others have it.
func quiet() gosimnet.SimNetConfig {
	return gosimnet.SimNetConfig{Link: gosimnet.LinkConfig{Latency: gosimnet.Constant(latency)}, TraceLimit: -1}
}

// simulate calls f in a bubble with a network of its own.
func simulate(cfg gosimnet.SimNetConfig, f func(s *gosimnet.Simnet)) {
	inBubble(func() {
		s := must(gosimnet.New(&cfg))
		f(s)
		s.Close()
	})
}

// simulated is this library, with two hosts, of which one listens.
func simulated(name string, cfg gosimnet.SimNetConfig) streams {
	return streams{name, func(use func(net.Listener, dialer)) {
		simulate(cfg, func(s *gosimnet.Simnet) {
			l := must(s.Host("server").Listen("tcp", ":80"))
			client := s.Host("client")
			use(l, func() (net.Conn, error) { return client.Dial("tcp", "server:80") })
			l.Close()
		})
	}}
}

// buffered is gRPC's connection for tests: a buffer in each direction, as large as this library's by default, no
// time, no faults.
func buffered() streams {
	return streams{"bufconn", func(use func(net.Listener, dialer)) {
		l := bufconn.Listen(256 << 10)
		use(l, l.Dial)
		l.Close()
	}}
}

// loopback is the kernel's TCP.
func loopback() streams {
	return streams{"loopback", func(use func(net.Listener, dialer)) {
		l := must(net.Listen("tcp", "127.0.0.1:0"))
		use(l, func() (net.Conn, error) {
			c, err := net.Dial("tcp", l.Addr().String())
			if err == nil {
				err = c.(*net.TCPConn).SetLinger(0) // else its ports run out when thousands are made
			}
			return c, err
		})
		l.Close()
	}}
}

// pipe is net.Pipe.
func pipe() streams {
	return streams{"net.Pipe", func(use func(net.Listener, dialer)) {
		l := newPipeListener()
		use(l, l.dial)
		l.Close()
	}}
}

// bubbled is a peer that is used in a bubble, though it does not need one.
func bubbled(p streams) streams {
	return streams{p.name + " in a bubble", func(use func(net.Listener, dialer)) {
		inBubble(func() { p.open(use) })
	}}
}

// pipeListener hands out pipes.
type pipeListener struct {
	conns  chan net.Conn
	ctx    context.Context
	cancel context.CancelFunc
}

func newPipeListener() *pipeListener {
	l := &pipeListener{conns: make(chan net.Conn)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

func (l *pipeListener) dial() (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Accept waits for the next pipe that is dialled.
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Close ends Accept and dials.
func (l *pipeListener) Close() error {
	l.cancel()
	return nil
}

// Addr is what pipes have as an address.
func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }
