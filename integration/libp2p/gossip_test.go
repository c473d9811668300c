package libp2p

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

const peers = 20

// steps are how far away in a circle the peers are that a peer connects to, so that each has eight.
var steps = []int{1, 2, 5, 9}

// all, and the halves of a partition.
var (
	all   = numbers(0, peers)
	left  = numbers(0, peers/2)
	right = numbers(peers/2, peers)
)

func numbers(from, to int) (list []int) {
	for i := from; i < to; i++ {
		list = append(list, i)
	}
	return list
}

// gossip is a number of peers that gossip about one topic.
type gossip struct {
	names  []string
	hosts  []host.Host
	topics []*pubsub.Topic

	mu  sync.Mutex
	got map[string]receipt // by message
}

// receipt is who has got a message, each as often as it has, and when the last one has.
type receipt struct {
	by   []int
	last time.Time
}

func newGossip(t *testing.T, net *gosimnet.Simnet) *gossip {
	t.Helper()
	g := &gossip{got: make(map[string]receipt)}
	ctx, cancel := context.WithCancel(t.Context())
	for i := range peers {
		g.names = append(g.names, fmt.Sprintf("peer%02d", i))
		g.hosts = append(g.hosts, newPeer(t, net, g.names[i]))
		ps := must(pubsub.NewGossipSub(ctx, g.hosts[i]))(t)
		g.topics = append(g.topics, must(ps.Join("news"))(t))
		go g.listen(ctx, i, must(g.topics[i].Subscribe())(t))
	}
	for i := range peers {
		go g.stayConnected(ctx, i)
	}
	t.Cleanup(cancel)
	return g
}

func (g *gossip) listen(ctx context.Context, i int, sub *pubsub.Subscription) {
	for {
		m, err := sub.Next(ctx)
		if err != nil {
			return
		}
		g.mu.Lock()
		r := g.got[string(m.Data)]
		g.got[string(m.Data)] = receipt{append(r.by, i), time.Now()}
		g.mu.Unlock()
	}
}

// stayConnected looks every five seconds whether a peer is connected to those that it should be, as services that
// have peers of their own do; libp2p itself connects to nobody.
func (g *gossip) stayConnected(ctx context.Context, i int) {
	time.Sleep(time.Duration(i) * 7 * time.Millisecond)
	for ctx.Err() == nil {
		for _, step := range steps {
			if to := g.hosts[(i+step)%peers]; g.hosts[i].Network().Connectedness(to.ID()) != network.Connected {
				go connect(ctx, g.hosts[i], to)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Second):
		}
	}
}

// tell publishes a message.
func (g *gossip) tell(t *testing.T, from int, message string) {
	t.Helper()
	if err := g.topics[from].Publish(t.Context(), []byte(message)); err != nil {
		t.Error(err)
	}
}

// heard fails the test unless these and nobody else have got a message, once each. It tells when the last one has.
func (g *gossip) heard(t *testing.T, message string, want []int) time.Time {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.got[message]
	if got := slices.Sorted(slices.Values(r.by)); !slices.Equal(got, want) {
		t.Errorf("%q has come to %v, want %v", message, got, want)
	}
	return r.last
}

// spreads publishes a message, which these and nobody else must get before long.
func (g *gossip) spreads(t *testing.T, from int, message string, to []int) {
	t.Helper()
	start := time.Now()
	g.tell(t, from, message)
	time.Sleep(time.Second)
	if took := g.heard(t, message, to).Sub(start); took > 100*time.Millisecond {
		t.Errorf("%q has taken %v", message, took)
	}
}

// connected counts the connections to other peers, of all peers.
func (g *gossip) connected() (n int) {
	for _, h := range g.hosts {
		n += len(h.Network().Peers())
	}
	return n
}

// crossing is how many of the circle's connections are between the halves.
func crossing() (n int) {
	for i := range peers {
		for _, step := range steps {
			if slices.Contains(left, i) != slices.Contains(left, (i+step)%peers) {
				n++
			}
		}
	}
	return n
}

// links are the connections of all peers, counted at both ends.
const links = 2 * 4 * peers

const why = "peers are chosen in the order of maps, and by the global math/rand in many goroutines, in gossipsub and the " +
	"swarm: assert who gets what, and bounds of time"

// A partition of two seconds is bridged by QUIC: connections live on, and what was said meanwhile arrives everywhere.
func TestGossipThroughAShortPartition(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software,
		Shows:    "20 peers: what is said during a partition of 2 s arrives everywhere after it", Slow: true,
		Why:    why,
		Config: &gosimnet.SimNetConfig{MinHop: latency},
	}, func(t *testing.T, net *gosimnet.Simnet) {
		g := newGossip(t, net)
		time.Sleep(10 * time.Second)
		g.spreads(t, 0, "before", all)
		heal := must(net.Partition(gosimnet.DropPackets, g.names[:peers/2], g.names[peers/2:]))(t)
		g.spreads(t, 0, "left", left)
		g.spreads(t, 15, "right", right)
		heal()
		time.Sleep(3 * time.Second)
		g.heard(t, "left", all)
		g.heard(t, "right", all)
		if n := g.connected(); n != links {
			t.Errorf("%d ends of connections, want %d", n, links)
		}
		g.spreads(t, 5, "after", all)
	})
}

// A long partition ends the connections between the halves, after QUIC's idle time-out, 30 s, which the last
// keep-alive may put off by 15 s. Each half goes on by itself. After it the halves connect again as soon as the
// swarm's back-off lets them, https://github.com/libp2p/go-libp2p/issues/1554, and what was said in the last three
// seconds is passed on; what was said before is not, for gossipsub remembers five heartbeats of a second, and offers
// three.
func TestGossipThroughALongPartition(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software,
		Shows:    "20 peers: the halves of a partition of 65 s go on, and are one swarm again 20 s after it", Slow: true,
		Why:    why,
		Config: &gosimnet.SimNetConfig{MinHop: latency},
	}, func(t *testing.T, net *gosimnet.Simnet) {
		g := newGossip(t, net)
		time.Sleep(10 * time.Second)
		g.spreads(t, 0, "before", all)
		heal := must(net.Partition(gosimnet.DropPackets, g.names[:peers/2], g.names[peers/2:]))(t)
		time.Sleep(14 * time.Second)
		if n := g.connected(); n != links {
			t.Errorf("%d ends of connections after 14 s, want %d", n, links)
		}
		time.Sleep(46 * time.Second)
		if n, want := g.connected(), links-2*crossing(); n != want {
			t.Errorf("%d ends of connections after a minute, want the %d within the halves", n, want)
		}
		g.spreads(t, 0, "left", left)
		g.spreads(t, 15, "right", right)
		time.Sleep(3 * time.Second)
		heal()
		time.Sleep(20 * time.Second)
		if n := g.connected(); n != links {
			t.Errorf("%d ends of connections 20 s later, want %d", n, links)
		}
		g.heard(t, "left", left)
		g.heard(t, "right", right)
		for i := 1; i < peers; i += 6 {
			g.spreads(t, i, fmt.Sprint("after ", i), all)
		}
	})
}
