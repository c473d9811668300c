package etcdraft

import (
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/referee"
)

const software = "go.etcd.io/raft/v3 v3.7.0"

// cluster is nodes n1 … n5.
type cluster struct {
	net     *gosimnet.Simnet
	nodes   []*node
	referee *referee.Referee
}

// newCluster starts five nodes one after the other, and waits until there is a leader, whom all know.
func newCluster(t *testing.T, s *gosimnet.Simnet, f features) (c *cluster, leader *node, elected time.Time) {
	t.Helper()
	c = &cluster{net: s, referee: referee.New()}
	peers, voters := map[uint64]net.Addr{}, []uint64{1, 2, 3, 4, 5}
	for _, id := range voters {
		name := fmt.Sprint("n", id)
		host := s.Host(name)
		peers[id] = &net.UDPAddr{IP: host.Addrs()[0].AsSlice(), Port: port}
		c.nodes = append(c.nodes, &node{
			name: name, id: id, host: host, disk: newDisk(t, voters), features: f, peers: peers, referee: c.referee,
		})
	}
	for _, n := range c.nodes {
		n.host.Run(n.run)
		time.Sleep(time.Millisecond) // so that they draw their random time-outs, and tick, one after the other
	}
	leader, e := c.elected(t)
	time.Sleep(tick)
	return c, leader, e.Time
}

// newDisk is a disk that knows the voters and nothing else.
func newDisk(t *testing.T, voters []uint64) *raft.MemoryStorage {
	t.Helper()
	one := uint64(1)
	disk := raft.NewMemoryStorage()
	do(t, disk.ApplySnapshot(&raftpb.Snapshot{
		Metadata: &raftpb.SnapshotMetadata{ConfState: &raftpb.ConfState{Voters: voters}, Index: &one, Term: &one},
	}))
	return disk
}

// elected waits for the next election.
func (c *cluster) elected(t *testing.T) (*node, referee.Election) {
	t.Helper()
	e, ok := c.referee.NextElection(time.Minute)
	if !ok {
		t.Fatal("nobody was elected within a minute")
	}
	return c.node(e.Node), e
}

// electedWithin waits for the next election, which must come within these bounds, counted from a time.
func (c *cluster) electedWithin(t *testing.T, since time.Time, least, most time.Duration) (*node, referee.Election) {
	t.Helper()
	n, e := c.elected(t)
	if d := e.Time.Sub(since); d < least || d > most {
		t.Errorf("%s was elected after %v, want after %v to %v", n.name, d, least, most)
	}
	return n, e
}

// elections counts those within the next d.
func (c *cluster) elections(d time.Duration) (n int) {
	for until := time.Now().Add(d); ; n++ {
		if _, ok := c.referee.NextElection(time.Until(until)); !ok {
			return n
		}
	}
}

func (c *cluster) node(name string) *node {
	return c.nodes[slices.IndexFunc(c.nodes, func(n *node) bool { return n.name == name })]
}

// follower is a node that is not the leader.
func (c *cluster) follower(leader *node) *node {
	return c.nodes[slices.IndexFunc(c.nodes, func(n *node) bool { return n != leader })]
}

func (c *cluster) names() (all []string) {
	for _, n := range c.nodes {
		all = append(all, n.name)
	}
	return all
}

// judge fails the test for each broken promise. All nodes must have had the time to catch up.
func (c *cluster) judge(t *testing.T) {
	t.Helper()
	for _, breach := range c.referee.Breaches(c.names()...) {
		t.Error(breach)
	}
}

// promised counts the promises that were made between two times.
func (c *cluster) promised(from, to time.Time) (count int) {
	for _, p := range c.referee.Promises() {
		if !p.Time.Before(from) && !p.Time.After(to) {
			count++
		}
	}
	return count
}

// do fails the test if a fault cannot be made.
func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// power turns the power of some nodes off or on, a millisecond apart.
func (c *cluster) power(t *testing.T, alteration gosimnet.Alteration, nodes ...*node) {
	t.Helper()
	for _, n := range nodes {
		_, err := c.net.AlterHost(n.name, alteration)
		do(t, err)
		time.Sleep(time.Millisecond)
	}
}
