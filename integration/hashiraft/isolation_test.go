package hashiraft

import (
	"testing"
	"time"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// isolations are the ways in which a host can be cut off.
var isolations = []struct {
	name string
	cut  func(net *gosimnet.Simnet, host string) (heal func(), err error)
}{
	{"hears nothing", func(net *gosimnet.Simnet, host string) (func(), error) {
		return net.CutLink(gosimnet.DropPackets, "", host)
	}},
	{"is not heard", func(net *gosimnet.Simnet, host string) (func(), error) {
		return net.CutLink(gosimnet.DropPackets, host, "")
	}},
	{"both", func(net *gosimnet.Simnet, host string) (func(), error) {
		_, err := net.AlterHost(host, gosimnet.ISOLATE)
		return func() { net.AlterHost(host, gosimnet.UNISOLATE) }, err
	}},
}

// A leader that is cut off, in one direction or both, promises nothing any more and steps down when its lease is
// over. The others elect another within the time-outs they are configured with. When it is heard again nobody is
// elected: it follows, and has everything that was promised meanwhile.
//
// A server that is heard and hears nothing disrupted a cluster in Hoverbear/old-raft-rs#27; that the return of such a server
// deposes the leader is what hashicorp/raft#474, the pre-vote, is about.
func TestIsolatedLeaderIsReplaced(t *testing.T) {
	for _, isolation := range isolations {
		t.Run(isolation.name, func(t *testing.T) {
			scenario.Run(t, scenario.Scenario{
				Software: software, Shows: "five nodes, the leader cut off: " + isolation.name, Why: random,
			}, func(t *testing.T, net *gosimnet.Simnet) {
				c, old := newCluster(t, net, 5, true, inMemory)
				stop := c.writers(t)
				time.Sleep(time.Second)

				heal, err := isolation.cut(net, old.name)
				do(t, err)
				cut := time.Now()
				next, term := c.electedWithin(t, heartbeat-2*heartbeat/10, 3*heartbeat+2*election)
				if left := old.leftOffice().Sub(cut); left < lease-2*heartbeat/10 || left > 2*lease {
					t.Errorf("%s stepped down after %v, want from %v to %v", old.name, left, lease-2*heartbeat/10, 2*lease)
				}
				time.Sleep(10 * time.Second)
				heal()
				c.nobodyElected(t, 10*time.Second)
				stop()
				time.Sleep(time.Second)

				if n := c.promised(old, cut.Add(10*time.Millisecond), time.Now()); n != 0 {
					t.Errorf("%s made %d promises after it was cut off", old.name, n)
				}
				if n := c.promised(next, cut, time.Now()); n < 200 {
					t.Errorf("%s made %d promises in 20 s, want 200 or more", next.name, n)
				}
				if !next.leads() || old.leads() || old.term() != term || next.term() != term {
					t.Errorf("%s is in term %d, %s in term %d, want the latter to lead both in term %d",
						old.name, old.term(), next.name, next.term(), term)
				}
				c.judge(t)
			})
		})
	}
}

// A follower that is cut off asks for votes again and again. With the pre-vote it disturbs nobody when it is heard
// again; without, its term has risen, and deposes the leader: hashicorp/raft#474.
func TestReturningFollower(t *testing.T) {
	for name, preVote := range map[string]bool{"with pre-vote": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			scenario.Run(t, scenario.Scenario{
				Software: software, Shows: "a follower returns from isolation, " + name, Why: random,
			}, func(t *testing.T, net *gosimnet.Simnet) {
				c, leader := newCluster(t, net, 5, preVote, inMemory)
				term, follower := leader.term(), c.others(leader)[0]
				heal, err := isolations[2].cut(net, follower.name)
				do(t, err)
				c.nobodyElected(t, 20*time.Second)
				climbed := follower.term() - term
				heal()
				if preVote {
					c.nobodyElected(t, 10*time.Second)
				} else {
					leader, _ = c.elected(t)
					time.Sleep(10 * time.Second)
				}
				switch rose := leader.term() - term; {
				case preVote && (climbed != 0 || rose != 0):
					t.Errorf("the term rose by %d at the follower, and by %d in the cluster, want not at all", climbed, rose)
				case !preVote && (climbed < 8 || rose <= climbed):
					t.Errorf("the term rose by %d at the follower, and by %d in the cluster, want by 8 and by more", climbed, rose)
				}
				c.judge(t)
			})
		})
	}
}
