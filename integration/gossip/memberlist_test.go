package gossip

import (
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

const (
	software = "github.com/hashicorp/memberlist v0.7.0"
	size     = 50

	// random is why runs differ. That they seldom do is TestMain's doing, and that of config and newList.
	random = "the three goroutines that a node starts with draw from math/rand's global source at one instant, and two of its " +
		"goroutines may answer one packet at one instant; with GOMAXPROCS=1, starts apart from each other, and intervals " +
		"without a common multiple, few runs differ"
)

// events tells the census what a node of memberlist believes.
type events struct {
	census *census
	node   string
}

func (e events) NotifyJoin(n *memberlist.Node)  { e.census.believe(e.node, n.Name, true) }
func (e events) NotifyLeave(n *memberlist.Node) { e.census.believe(e.node, n.Name, false) }
func (e events) NotifyUpdate(n *memberlist.Node) {
	e.census.believe(e.node, n.Name+" "+string(n.Meta), true)
}

// label is what a node tells of itself.
type label struct{ text string }

func (l *label) NodeMeta(int) []byte           { return []byte(l.text) }
func (*label) NotifyMsg([]byte)                {}
func (*label) GetBroadcasts(int, int) [][]byte { return nil }
func (*label) LocalState(bool) []byte          { return nil }
func (*label) MergeRemoteState([]byte, bool)   {}

// list is nodes of memberlist, n1, n2 and so on.
type list struct {
	net    *gosimnet.Simnet
	census *census
	nodes  []*memberlist.Memberlist
	labels []*label
}

// newMember makes another node, that knows nobody.
func (l *list) newMember(t *testing.T) *memberlist.Memberlist {
	t.Helper()
	name := fmt.Sprint("n", len(l.nodes)+1)
	cfg := config(t, l.net.Host(name), l.census)
	label := &label{}
	cfg.Events, cfg.Delegate = events{l.census, name}, label
	m, err := memberlist.Create(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Shutdown() })
	l.nodes, l.labels = append(l.nodes, m), append(l.labels, label)
	return m
}

// config is that for a LAN, on a simulated host. Everything is exchanged more often, and the dead are sooner forgotten, which
// makes scenarios shorter; probes and gossip never fall on the same instant; and packets are not compressed, which would
// take most of the real time.
func config(t *testing.T, host *gosimnet.Host, c *census) *memberlist.Config {
	t.Helper()
	transport, err := newTransport(host)
	if err != nil {
		t.Fatal(err)
	}
	cfg := memberlist.DefaultLANConfig()
	cfg.GossipInterval += time.Microsecond
	cfg.PushPullInterval, cfg.GossipToTheDeadTime = pushPull/2, 10*time.Second
	cfg.Name, cfg.Transport, cfg.LogOutput, cfg.EnableCompression = host.Name(), transport, c, false
	return cfg
}

// address is where a node is to be joined.
func address(net *gosimnet.Simnet, name string) string {
	return fmt.Sprintf("%s/%v:%d", name, net.Host(name).Addrs()[0], port)
}

// pushPull is how often a node of fifty exchanges all it knows with another, and repairs what gossip has not reached:
// config's 10 s, doubled because there are more than 32 nodes.
const pushPull = 20 * time.Second

// newList starts nodes 3 ms apart, which all join the first, and waits until everybody believes everybody to be
// alive.
func newList(t *testing.T, net *gosimnet.Simnet) (l *list, took time.Duration) {
	t.Helper()
	l = &list{net: net, census: newCensus()}
	l.grow(t)
	return l, l.census.reaches(t, size*size, 3*pushPull)
}

// grow starts all nodes.
func (l *list) grow(t *testing.T) {
	t.Helper()
	for i := range size {
		m := l.newMember(t)
		time.Sleep(3 * time.Millisecond)
		if i > 0 {
			go join(t, m, address(l.net, "n1"))
		}
	}
}

// join has a node join another.
func join(t *testing.T, m *memberlist.Memberlist, address string) {
	t.Helper()
	if n, err := m.Join([]string{address}); n != 1 || err != nil {
		t.Errorf("%s joins %d nodes, %v, want 1", m.LocalNode().Name, n, err)
	}
}

// partition divides the hosts into two halves.
func partition(t *testing.T, net *gosimnet.Simnet) (heal func()) {
	t.Helper()
	var halves [2][]string
	for i := range size {
		halves[i%2] = append(halves[i%2], fmt.Sprint("n", i+1))
	}
	heal, err := net.Partition(gosimnet.DropPackets, halves[0], halves[1])
	if err != nil {
		t.Fatal(err)
	}
	return heal
}

// lose loses all packets of a network that a host sends or receives; "" is any host.
func lose(net *gosimnet.Simnet, network, host string) (mend func()) {
	return net.AddRule(func(p *gosimnet.Packet) gosimnet.Verdict {
		if p.Network == network && (host == "" || p.From == host || p.To == host) {
			return gosimnet.Drop()
		}
		return gosimnet.Pass()
	})
}

// Fifty nodes join the first, 3 ms apart. Three seconds after the first nearly all know all: gossip takes a
// logarithm of their number of rounds of 200 ms. What it misses, the next exchange of everything repairs:
// memberlist's documentation of GossipInterval and PushPullInterval.
func TestConvergence(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "50 nodes that join one know each other", Why: random,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		l := &list{net: net, census: newCensus()}
		early := l.census.after(3 * time.Second)
		l.grow(t)
		took := l.census.reaches(t, size*size, 3*pushPull)
		if views := early(); views < size*size*99/100 {
			t.Errorf("%d of %d views after 3 s, want 99 %% or more", views, size*size)
		}
		if n := l.census.lost(); n != 0 {
			t.Errorf("%d were believed dead", n)
		}
		t.Logf("all know all %v after the last start", took)
	})
}

// One datagram in twenty is lost, for half a minute. One ping in ten fails, but indirect pings and the ping over a
// stream, which TCP repairs, save everybody: nobody is believed dead. A node that is dead indeed is found out by
// all, after the suspicion time-out, 4·log10(50) probe intervals if others confirm it, six times as much if nobody
// does.
//
// That lossy networks killed the living in clusters of this size is hashicorp/consul#916; the ping over a stream
// came with hashicorp/memberlist#37.
func TestLossKillsNobody(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "50 nodes for 30 s at 5 % loss: no false death; a real one is found out",
		Why: random, Slow: true,
		Config: &gosimnet.SimNetConfig{Link: gosimnet.LinkConfig{Loss: 0.05}},
	}, func(t *testing.T, net *gosimnet.Simnet) {
		l, _ := newList(t, net)
		time.Sleep(30 * time.Second)
		if n := l.census.lost(); n != 0 {
			t.Errorf("%d were believed dead", n)
		}
		if n := l.census.logged("Failed UDP ping"); n < 50 {
			t.Errorf("%d of 1500 pings failed, want 50 or more", n)
		}

		dead := l.nodes[size-1]
		if _, err := net.AlterHost(dead.LocalNode().Name, gosimnet.SHUTDOWN); err != nil {
			t.Fatal(err)
		}
		dead.Shutdown()
		const least = 6796 * time.Millisecond // 4 s · log10(50)
		views, _ := l.census.count()
		if took := l.census.reaches(t, views-(size-1), 6*least+5*time.Second); took < least {
			t.Errorf("all found the dead out within %v, want %v or more", took, least)
		}
		if n := l.census.lost(); n != size-1 {
			t.Errorf("%d believed that somebody was dead, want the %d who are right", n, size-1)
		}
	})
}

// All streams are cut, and datagrams are not. Nobody is believed dead, as pings are datagrams, and news spread by
// gossip; but the exchange of everything fails, and nobody can join: exactly after the time-out of 10 s. When it
// is mended, that works. TCP alone broken is what half-open firewalls do: flo's w3champions/flo#92 is a report of
// "cases where UDP works but TCP does not".
func TestStreamsCutWhileDatagramsWork(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "50 nodes with TCP cut while UDP works",
		Why: random, Slow: true,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		l, _ := newList(t, net)
		mend := lose(net, "tcp", "")
		l.census.stays(t, 2*pushPull)
		if n := l.census.logged("Push/Pull with"); n < size/2 {
			t.Errorf("%d exchanges failed, want %d or more", n, size/2)
		}
		l.labels[0].text = "news"
		if err := l.nodes[0].UpdateNode(5 * time.Second); err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Second)
		if views, _ := l.census.count(); views < size*size+size*9/10 {
			t.Errorf("%d of %d nodes know the news after 5 s, want 9 in 10 or more", views-size*size, size)
		}

		late, start := l.newMember(t), time.Now()
		n, err := late.Join([]string{address(net, "n1")})
		if took := time.Since(start); n != 0 || err == nil || took != 10*time.Second {
			t.Errorf("it joined %d nodes, %v, after %v, want an error after 10 s", n, err, took)
		}
		if n := l.census.lost(); n != 0 {
			t.Errorf("%d were believed dead", n)
		}
		mend()
		join(t, late, address(net, "n1"))
		l.census.reaches(t, (size+1)*(size+1)+size, 3*pushPull)
	})
}

// One node's datagrams are all lost, and its streams are not. The ping over a stream saves it, and those who ping
// it write into their logs what is wrong: hashicorp/memberlist#37, #234 and hashicorp/consul#19965.
func TestDatagramsCutWhileStreamsWork(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "50 nodes, one of which has TCP only",
		Why: random, Slow: true,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		l, _ := newList(t, net)
		lose(net, "udp", "n50")
		l.census.stays(t, pushPull)
		if n := l.census.logged("Was able to connect to n50 over TCP but UDP probes failed"); n < 10 {
			t.Errorf("%d warnings, want 10 or more", n)
		}
	})
}

// A partition that is over before the suspicion time-out kills nobody: those who are suspected refute it.
func TestShortPartition(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "50 nodes, divided for 5 s: nobody is believed dead",
		Why: random, Slow: true,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		l, _ := newList(t, net)
		heal := partition(t, net)
		time.Sleep(5 * time.Second)
		heal()
		l.census.stays(t, 45*time.Second) // the longest suspicion time-out is 41 s
		if n := l.census.logged("has failed, no acks received"); n < 10 {
			t.Errorf("%d were suspected, want 10 or more", n)
		}
		if n := l.census.logged("Refuting a suspect message"); n < 10 {
			t.Errorf("%d suspicions were refuted, want 10 or more", n)
		}
	})
}

// A long partition makes two clusters, which stay apart when it is over: nobody pings the dead, and gossip to them
// ends after 30 s. It takes one node to join one of the other half, and they merge. That is
// hashicorp/memberlist#222 and metallb/metallb#589; the remedy is what MetalLB does.
func TestPartitionedHalvesMergeWhenOneJoins(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "two halves of 25 stay apart after a partition of 1 min, until one node joins",
		Why: random, Slow: true,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		l, _ := newList(t, net)
		heal := partition(t, net)
		start := time.Now()
		t.Logf("divided %v after the partition", l.census.reaches(t, size*size/2, time.Minute))
		time.Sleep(time.Minute - time.Since(start))
		heal()
		l.census.stays(t, pushPull)
		join(t, l.nodes[1], address(net, "n1"))
		took := l.census.reaches(t, size*size, 3*pushPull)
		t.Logf("merged %v after one had joined", took)
	})
}
