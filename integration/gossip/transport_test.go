package gossip

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/glycerine/gosimnet"
)

const port = 7946

// transport is memberlist's way to the network: packets are datagrams, streams are streams, both of one host.
type transport struct {
	host     *gosimnet.Host
	socket   net.PacketConn
	listener net.Listener
	packets  chan *memberlist.Packet
	streams  chan net.Conn
	done     chan struct{}
	running  sync.WaitGroup
}

var _ memberlist.NodeAwareTransport = (*transport)(nil)

// newTransport listens on a host, for datagrams and for streams.
func newTransport(host *gosimnet.Host) (*transport, error) {
	address := fmt.Sprint(":", port)
	socket, err := host.ListenPacket("udp", address)
	if err != nil {
		return nil, err
	}
	listener, err := host.Listen("tcp", address)
	if err != nil {
		socket.Close()
		return nil, err
	}
	t := &transport{
		host: host, socket: socket, listener: listener,
		packets: make(chan *memberlist.Packet), streams: make(chan net.Conn), done: make(chan struct{}),
	}
	t.running.Go(t.receive)
	t.running.Go(t.accept)
	return t, nil
}

// receive passes datagrams on until the socket is closed.
func (t *transport) receive() {
	var buf [1 << 16]byte
	for {
		n, from, err := t.socket.ReadFrom(buf[:])
		if err != nil {
			return
		}
		packet := &memberlist.Packet{Buf: append([]byte(nil), buf[:n]...), From: from, Timestamp: time.Now()}
		select {
		case t.packets <- packet:
		case <-t.done:
			return
		}
	}
}

// accept passes streams on until the listener is closed.
func (t *transport) accept() {
	for {
		conn, err := t.listener.Accept()
		if err != nil {
			return
		}
		select {
		case t.streams <- conn:
		case <-t.done:
			conn.Close()
			return
		}
	}
}

// FinalAdvertiseAddr is the host's own address, whatever was configured.
func (t *transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return t.host.Addrs()[0].AsSlice(), port, nil
}

func (t *transport) WriteTo(b []byte, addr string) (time.Time, error) {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return time.Time{}, err
	}
	_, err = t.socket.WriteTo(b, net.UDPAddrFromAddrPort(to))
	return time.Now(), err
}

func (t *transport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	return t.WriteTo(b, a.Addr)
}

func (t *transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return t.host.DialTimeout("tcp", addr, timeout)
}

func (t *transport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	return t.DialTimeout(a.Addr, timeout)
}

func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packets }
func (t *transport) StreamCh() <-chan net.Conn           { return t.streams }

// Shutdown ends both goroutines, and waits for them.
func (t *transport) Shutdown() error {
	close(t.done)
	t.socket.Close()
	t.listener.Close()
	t.running.Wait()
	return nil
}
