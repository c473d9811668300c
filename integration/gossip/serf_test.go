package gossip

import (
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/serf/serf"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

const serfSoftware = "github.com/hashicorp/serf v0.11.0"

// agents is nodes of serf, n1, n2 and so on.
type agents struct {
	net    *gosimnet.Simnet
	census *census
	nodes  []*serf.Serf
}

// newAgent makes another node, that knows nobody.
func (a *agents) newAgent(t *testing.T) *serf.Serf {
	t.Helper()
	name := fmt.Sprint("n", len(a.nodes)+1)
	events := make(chan serf.Event, 1024)
	cfg := serf.DefaultConfig()
	cfg.Init()
	cfg.NodeName, cfg.EventCh, cfg.LogOutput = name, events, a.census
	cfg.MemberlistConfig = config(t, a.net.Host(name), a.census)
	s, err := serf.Create(cfg)
	if err != nil {
		t.Fatal(err)
	}
	go a.watch(name, events, s.ShutdownCh())
	t.Cleanup(func() { s.Shutdown() })
	a.nodes = append(a.nodes, s)
	return s
}

// watch tells the census what happens to a node.
func (a *agents) watch(node string, events <-chan serf.Event, done <-chan struct{}) {
	for {
		select {
		case e := <-events:
			switch e := e.(type) {
			case serf.MemberEvent:
				for _, m := range e.Members {
					a.census.believe(node, m.Name, e.Type == serf.EventMemberJoin || e.Type == serf.EventMemberUpdate)
				}
			case serf.UserEvent:
				a.census.believe(node, e.Name+" "+string(e.Payload), true)
				a.census.Write([]byte(node + " got " + e.Name))
			}
		case <-done:
			return
		}
	}
}

// newAgents starts nodes 3 ms apart, which all join the first, and waits until everybody believes everybody to be
// alive.
func newAgents(t *testing.T, net *gosimnet.Simnet) (a *agents, took time.Duration) {
	t.Helper()
	a = &agents{net: net, census: newCensus()}
	for i := range size {
		s := a.newAgent(t)
		time.Sleep(3 * time.Millisecond)
		if i > 0 {
			go func() {
				if n, err := s.Join([]string{address(net, "n1")}, true); n != 1 || err != nil {
					t.Errorf("%s joins %d nodes, %v, want 1", s.LocalMember().Name, n, err)
				}
			}()
		}
	}
	return a, a.census.reaches(t, size*size, 3*pushPull)
}

// alive counts the members that a node holds to be alive.
func alive(s *serf.Serf) (n int) {
	for _, m := range s.Members() {
		if m.Status == serf.StatusAlive {
			n++
		}
	}
	return n
}

// One datagram in twenty is lost, for half a minute. No member fails, and a user event reaches all fifty, each once,
// although it is sent many times: serf's documentation of user events.
func TestSerfUserEventUnderLoss(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: serfSoftware, Shows: "50 nodes for 30 s at 5 % loss: no false failure; an event reaches all, once",
		Why: random, Slow: true,
		Config: &gosimnet.SimNetConfig{Link: gosimnet.LinkConfig{Loss: 0.05}},
	}, func(t *testing.T, net *gosimnet.Simnet) {
		a, took := newAgents(t, net)
		t.Logf("all know all %v after the last start", took)
		if err := a.nodes[0].UserEvent("deploy", []byte("v2"), false); err != nil {
			t.Fatal(err)
		}
		a.census.reaches(t, size*size+size, 3*pushPull)
		time.Sleep(30 * time.Second)
		if n := a.census.logged("got deploy"); n != size {
			t.Errorf("the event came %d times, want once to each of %d nodes", n, size)
		}
		if n := a.census.lost(); n != 0 {
			t.Errorf("%d members failed", n)
		}
	})
}

// Serf tries to reconnect to members that have failed, every 30 s. So two halves, which a partition of three
// minutes has divided, merge within that time and a few rounds of gossip when it is over, without anybody's doing;
// memberlist's do not. That they can is the question of hashicorp/serf#605.
func TestSerfHalvesMergeByThemselves(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: serfSoftware, Shows: "two halves of 25 merge by themselves after a partition of 1 min",
		Why: random, Slow: true,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		a, _ := newAgents(t, net)
		heal := partition(t, net)
		start := time.Now()
		a.census.reaches(t, size*size/2, time.Minute)
		time.Sleep(time.Minute - time.Since(start))
		for _, s := range a.nodes {
			if n := alive(s); n != size/2 {
				t.Errorf("%s has %d members alive, want %d", s.LocalMember().Name, n, size/2)
			}
		}
		heal()
		interval := serf.DefaultConfig().ReconnectInterval
		early := a.census.after(interval + 5*time.Second)
		took := a.census.reaches(t, size*size, interval+3*pushPull)
		if views := early(); views < size*size*99/100 {
			t.Errorf("%d of %d views 5 s after the reconnect interval, want 99 %% or more", views, size*size)
		}
		t.Logf("merged %v after the partition", took)
		for _, s := range a.nodes {
			if n := alive(s); n != size {
				t.Errorf("%s has %d members alive, want %d", s.LocalMember().Name, n, size)
			}
		}
	})
}
