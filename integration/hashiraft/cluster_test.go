package hashiraft

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/referee"
)

const (
	software = "github.com/hashicorp/raft v1.8.0"

	// random is why runs differ.
	random = "a write wakes the leader's goroutines for the followers in the order of a map, and they draw their intervals from " +
		"math/rand's global source at one instant; with GOMAXPROCS=1 and without writes nearly all runs are alike; " +
		"with writes assert bounds, and what must never happen"
)

// cluster is nodes n1, n2 and so on.
type cluster struct {
	net     *gosimnet.Simnet
	nodes   []*node
	referee *referee.Referee
}

// newCluster starts nodes, and waits until there is a leader, whom all know.
func newCluster(t *testing.T, net *gosimnet.Simnet, size int, preVote bool, where disks) (c *cluster, leader *node) {
	t.Helper()
	c = &cluster{net: net, referee: referee.New()}
	var peers []raft.Server
	for i := range size {
		name := fmt.Sprintf("n%d", i+1)
		peers = append(peers, raft.Server{ID: raft.ServerID(name), Address: raft.ServerAddress(name + ":7000")})
		c.nodes = append(c.nodes, &node{
			name: name, host: net.Host(name), disk: where(t, name), preVote: preVote, referee: c.referee,
		})
	}
	for _, n := range c.nodes {
		n.peers = peers
		n.host.Run(n.run)
		time.Sleep(time.Millisecond) // so that they draw their random time-outs one after the other
	}
	leader, _ = c.elected(t)
	time.Sleep(time.Second)
	return c, leader
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

// electedWithin waits for the next election, which must come within these bounds, counted from now.
func (c *cluster) electedWithin(t *testing.T, least, most time.Duration) (leader *node, term uint64) {
	t.Helper()
	start := time.Now()
	n, e := c.elected(t)
	if d := e.Time.Sub(start); d < least || d > most {
		t.Errorf("%s was elected after %v, want after %v to %v", n.name, d, least, most)
	}
	return n, e.Term
}

// nobodyElected fails the test if there is another election within d.
func (c *cluster) nobodyElected(t *testing.T, d time.Duration) {
	t.Helper()
	if e, ok := c.referee.NextElection(d); ok {
		t.Errorf("%s was elected in term %d, want nobody to be", e.Node, e.Term)
	}
}

func (c *cluster) node(name string) *node {
	return c.nodes[slices.IndexFunc(c.nodes, func(n *node) bool { return n.name == name })]
}

// others are the nodes but one.
func (c *cluster) others(but *node) []*node {
	return slices.DeleteFunc(slices.Clone(c.nodes), func(n *node) bool { return n == but })
}

func names(nodes []*node) (all []string) {
	for _, n := range nodes {
		all = append(all, n.name)
	}
	return all
}

// judge fails the test for each broken promise. All nodes must have had the time to catch up.
func (c *cluster) judge(t *testing.T) {
	t.Helper()
	for _, breach := range c.referee.Breaches(names(c.nodes)...) {
		t.Error(breach)
	}
}

// apply has a node replicate a value, and says what the node says about that. A promise goes to the referee.
func (c *cluster) apply(n *node, value string) error {
	r := n.running()
	if r == nil {
		return raft.ErrRaftShutdown
	}
	future := r.Apply([]byte(value), time.Second)
	err := future.Error()
	if err == nil {
		c.referee.Promised(n.name, future.Index(), value)
	}
	return err
}

// mustApply has a leader replicate a value.
func (c *cluster) mustApply(t *testing.T, n *node, value string) {
	t.Helper()
	if err := c.apply(n, value); err != nil {
		t.Errorf("%s applies %q: %v", n.name, value, err)
	}
}

// writers has each node that believes that it leads replicate value after value, 50 ms apart, until stop is called,
// which waits for the last of them.
func (c *cluster) writers(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{}, len(c.nodes))
	for _, n := range c.nodes {
		go func() {
			defer func() { ended <- struct{}{} }()
			for i := 0; ctx.Err() == nil; i++ {
				if n.leads() {
					c.apply(n, fmt.Sprint(n.name, " writes ", i))
				}
				time.Sleep(50 * time.Millisecond)
			}
		}()
	}
	return func() {
		cancel()
		for range c.nodes {
			<-ended
		}
	}
}

// promised counts the promises that a node gave from one time to another.
func (c *cluster) promised(n *node, from, to time.Time) (count int) {
	for _, p := range c.referee.Promises() {
		if p.Leader == n.name && !p.Time.Before(from) && !p.Time.After(to) {
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

func (c *cluster) powerOff(t *testing.T, n *node) {
	t.Helper()
	_, err := c.net.AlterHost(n.name, gosimnet.SHUTDOWN)
	do(t, err)
}

func (c *cluster) powerOn(t *testing.T, n *node) {
	t.Helper()
	_, err := c.net.AlterHost(n.name, gosimnet.POWERON)
	do(t, err)
}

// powerAll cuts the power of all nodes, or gives it back, at one instant.
func (c *cluster) powerAll(t *testing.T, alteration gosimnet.Alteration) {
	t.Helper()
	batch := c.net.NewSimnetBatch(time.Time{}, true)
	for _, n := range c.nodes {
		batch.AlterHost(n.name, alteration)
	}
	c.net.SubmitBatch(batch)
	<-batch.Done()
	do(t, batch.Err())
}
