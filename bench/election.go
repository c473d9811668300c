package bench

import (
	"errors"
	"io"
	"net"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/glycerine/gosimnet"
)

// members is the size of the cluster.
const members = 5

// ElectionStorm takes the leader of a raft cluster away again and again.
func ElectionStorm() Work {
	return Work{
		Name: "raft election storm", Per: "election", Times: 20, Shown: CPUTime,
		Contenders: []Contender{
			{"raft.InmemTransport", inMemoryElections},
			{sim, simulatedElections},
		},
	}
}

// cluster is raft over some transport.
type cluster struct {
	nodes   []*raft.Raft
	isolate func(node int) (heal func())
}

// simulatedElections holds elections over this library.
func simulatedElections(n int) (s Sample) {
	simulate(quiet(), func(network *gosimnet.Simnet) {
		transports := make([]raft.Transport, members)
		for i := range transports {
			host := network.Host(hostName(i))
			transports[i] = raft.NewNetworkTransport(layer{must(host.Listen("tcp", host.Name()+":7000")), host}, 3, time.Second, io.Discard)
		}
		c := newCluster(transports)
		c.isolate = func(node int) func() {
			name := hostName(node)
			out, in := must(network.CutLink(gosimnet.DropPackets, name, "")), must(network.CutLink(gosimnet.DropPackets, "", name))
			return func() { out(); in() }
		}
		s = c.storm(n)
		for _, t := range transports {
			check(t.(*raft.NetworkTransport).Close())
		}
	})
	return s
}

// layer is how raft uses a host.
type layer struct {
	net.Listener
	host *gosimnet.Host
}

// Dial connects to another node.
func (l layer) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	return l.host.DialTimeout("tcp", string(address), timeout)
}

// inMemoryElections holds elections over raft's own transport for tests: calls through channels, of no latency.
func inMemoryElections(n int) (s Sample) {
	inBubble(func() {
		transports := make([]raft.Transport, members)
		for i := range transports {
			_, transports[i] = raft.NewInmemTransportWithTimeout(raft.ServerAddress(hostName(i)), time.Second)
		}
		join := func(a, b int) { inMemory(transports, a).Connect(transports[b].LocalAddr(), transports[b]) }
		for a := range members {
			for b := range members {
				join(a, b)
			}
		}
		c := newCluster(transports)
		c.isolate = func(node int) func() {
			for other := range members {
				inMemory(transports, node).Disconnect(transports[other].LocalAddr())
				inMemory(transports, other).Disconnect(transports[node].LocalAddr())
			}
			return func() {
				for other := range members {
					join(node, other)
					join(other, node)
				}
			}
		}
		s = c.storm(n)
	})
	return s
}

func inMemory(all []raft.Transport, i int) *raft.InmemTransport { return all[i].(*raft.InmemTransport) }

// newCluster starts a node on each transport.
func newCluster(transports []raft.Transport) *cluster {
	var servers []raft.Server
	for _, t := range transports {
		servers = append(servers, raft.Server{ID: raft.ServerID(t.LocalAddr()), Address: t.LocalAddr()})
	}
	c := &cluster{}
	for i, t := range transports {
		cfg := raft.DefaultConfig()
		cfg.LocalID, cfg.Logger = servers[i].ID, hclog.NewNullLogger()
		cfg.HeartbeatTimeout, cfg.ElectionTimeout, cfg.LeaderLeaseTimeout = 500*time.Millisecond, 500*time.Millisecond, 250*time.Millisecond
		store, snapshots := raft.NewInmemStore(), raft.NewInmemSnapshotStore()
		check(raft.BootstrapCluster(cfg, store, store, snapshots, t, raft.Configuration{Servers: servers}))
		c.nodes = append(c.nodes, must(raft.NewRaft(cfg, stateless{}, store, store, snapshots, t)))
	}
	return c
}

// storm isolates the leader n times until there is another, and ends the cluster.
func (c *cluster) storm(n int) Sample {
	leader := c.elected(-1)
	time.Sleep(time.Second)
	s := measure(n, func() {
		for range n {
			heal := c.isolate(leader)
			next := c.elected(leader)
			heal()
			leader = next
			time.Sleep(time.Second)
		}
	})
	for _, node := range c.nodes {
		check(node.Shutdown().Error())
	}
	return s
}

// elected waits until some other node leads.
func (c *cluster) elected(but int) int {
	for range 60_000 {
		for i, node := range c.nodes {
			if i != but && node.State() == raft.Leader {
				return i
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	panic("nobody is elected")
}

// stateless is the replicated state of a cluster that only elects.
type stateless struct{}

// Apply has nothing to do.
func (stateless) Apply(*raft.Log) any { return nil }

// Snapshot fails: none is taken.
func (stateless) Snapshot() (raft.FSMSnapshot, error) { return nil, errors.ErrUnsupported }

// Restore fails: there is none.
func (stateless) Restore(io.ReadCloser) error { return errors.ErrUnsupported }
