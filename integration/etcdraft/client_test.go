package etcdraft

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"
)

// client proposes value after value, until it is promised, to one node after the other.
type client struct {
	cluster *cluster
	socket  net.PacketConn
	turn    int // whose it is to be asked
	ended   chan struct{}
	cancel  context.CancelFunc
}

// newClient starts a client on a host of its own.
func (c *cluster) newClient(t *testing.T) *client {
	t.Helper()
	socket, err := c.net.Host("client").ListenPacket("udp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	k := &client{cluster: c, socket: socket, ended: make(chan struct{}), cancel: cancel}
	go k.run(ctx)
	return k
}

func (k *client) run(ctx context.Context) {
	defer close(k.ended)
	defer k.socket.Close()
	for i := 1; ctx.Err() == nil; i++ {
		for value := fmt.Sprint("value ", i); ctx.Err() == nil && !k.propose(value); {
			k.turn++
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// propose asks a node to replicate a value, and waits for its promise for a while.
func (k *client) propose(value string) (promised bool) {
	n := k.cluster.nodes[k.turn%len(k.cluster.nodes)]
	k.socket.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	if _, err := k.socket.WriteTo(append([]byte{isProposal}, value...), n.peers[n.id]); err != nil {
		return false
	}
	var buf [256]byte
	for {
		m, _, err := k.socket.ReadFrom(buf[:])
		if err != nil {
			return false
		}
		if index, ok := promise(buf[:m], value); ok {
			k.cluster.referee.Promised(n.name, index, value)
			return true
		}
	}
}

// stop ends the client, and waits for it.
func (k *client) stop() {
	k.cancel()
	<-k.ended
}
