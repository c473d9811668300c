package etcdraft

import (
	"fmt"
	"testing"
	"time"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// latency is one way, the default.
const latency = 10 * time.Millisecond

// isolation is a way in which a host can be cut off.
type isolation struct {
	name string
	cut  func(net *gosimnet.Simnet, host string) (heal func(), err error)
}

func hearsNothing(net *gosimnet.Simnet, host string) (heal func(), err error) {
	return net.CutLink(gosimnet.DropPackets, "", host)
}

func isNotHeard(net *gosimnet.Simnet, host string) (heal func(), err error) {
	return net.CutLink(gosimnet.DropPackets, host, "")
}

func both(net *gosimnet.Simnet, host string) (heal func(), err error) {
	_, err = net.AlterHost(host, gosimnet.ISOLATE)
	return func() { net.AlterHost(host, gosimnet.UNISOLATE) }, err
}

var isolations = []isolation{{"hears nothing", hearsNothing}, {"is not heard", isNotHeard}, {"both", both}}

// Once in an election time-out, CheckQuorum asks whether a quorum has been heard since it last asked. A leader
// that is cut off just after that, before the answers to its heartbeats have come, steps down at the next check,
// one that is cut off after them at the second, unless it hears before that there is another. The others elect
// another between one and two time-outs after they last heard of it. When it is heard again, nobody is elected,
// because of PreVote.
//
// The rules are those of raft.Config.CheckQuorum and PreVote; that the return deposes the leader without them is
// etcd-io/etcd#8499 and #14893.
func TestIsolatedLeaderStepsDownOnTime(t *testing.T) {
	for _, i := range isolations {
		for late, checks := range map[time.Duration]time.Duration{5 * time.Millisecond: 1, 50 * time.Millisecond: 2} {
			t.Run(fmt.Sprint(i.name, " ", late, " after a check"), func(t *testing.T) {
				scenario.Run(t, scenario.Scenario{
					Software: software, Repeats: true,
					Shows: fmt.Sprintf("five nodes, the leader cut off %v after a check: %s", late, i.name),
				}, func(t *testing.T, net *gosimnet.Simnet) { stepDown(t, net, i, late, checks) })
			})
		}
	}
}

// stepDown cuts a leader off, late after a check of its quorum, and expects it to step down so many checks later.
func stepDown(t *testing.T, net *gosimnet.Simnet, how isolation, late, checks time.Duration) {
	c, old, elected := newCluster(t, net, features{checkQuorum: true, preVote: true})
	check := old.nextCheck(elected)
	time.Sleep(time.Until(check) + late)
	heal, err := how.cut(net, old.name)
	do(t, err)

	silent := check
	if how.name == "hears nothing" {
		silent = check.Add(checks*timeout - tick) // until then it sends heartbeats
	}
	next, e := c.electedWithin(t, silent, timeout, 2*timeout+tick+4*latency)
	term, want := e.Term, checks*timeout
	if how.name == "is not heard" { // but hears that there is another
		want = min(want, e.Time.Add(latency).Sub(check).Truncate(time.Microsecond))
	}
	time.Sleep(time.Until(check.Add(3 * timeout)))
	if left := old.leftOffice().Sub(check).Truncate(time.Microsecond); left != want {
		t.Errorf("%s stepped down %v after the check, want %v", old.name, left, want)
	}
	client, start := c.newClient(t), time.Now()
	time.Sleep(5 * time.Second)
	heal()
	if n := c.elections(5 * time.Second); n != 0 {
		t.Errorf("%d elections after the isolation, want none", n)
	}
	client.stop()
	time.Sleep(time.Second)

	if n := c.promised(start, time.Now()); n < 70 {
		t.Errorf("%d promises in 10 s, want 70 or more", n)
	}
	if !next.leads() || old.leads() || old.term() != term || next.term() != term {
		t.Errorf("%s is in term %d, %s in term %d, want the latter to lead both in term %d",
			old.name, old.term(), next.name, next.term(), term)
	}
	c.judge(t)
}

// A leader that hears nothing, but is heard, keeps all others from an election by its heartbeats, and commits nothing.
// Without CheckQuorum that goes on for ever; with it, it is over after four time-outs: raft.Config.CheckQuorum, and the
// discussion of stale leaders in etcd-io/etcd#8334.
func TestDeafLeader(t *testing.T) {
	for name, checkQuorum := range map[string]bool{"with CheckQuorum": true, "without CheckQuorum": false} {
		t.Run(name, func(t *testing.T) {
			scenario.Run(t, scenario.Scenario{
				Software: software, Shows: "a leader that hears nothing for 20 s, " + name, Repeats: true,
			}, func(t *testing.T, net *gosimnet.Simnet) {
				c, leader, _ := newCluster(t, net, features{checkQuorum: checkQuorum, preVote: true})
				client := c.newClient(t)
				time.Sleep(time.Second)
				heal, err := hearsNothing(net, leader.name)
				do(t, err)
				cut := time.Now()
				elections := c.elections(20 * time.Second)
				promises := c.promised(cut.Add(2*latency), time.Now())
				stays := leader.leads()
				heal()
				time.Sleep(time.Second)
				client.stop()
				time.Sleep(time.Second)
				if checkQuorum && (elections != 1 || promises < 100 || stays) {
					t.Errorf("%d elections and %d promises, want 1 and 100 or more; it still leads: %v", elections, promises, stays)
				}
				if !checkQuorum && (elections != 0 || promises != 0 || !stays) {
					t.Errorf("%d elections and %d promises, want none; it still leads: %v", elections, promises, stays)
				}
				c.judge(t)
			})
		})
	}
}

// A follower does not hear the leader, but everybody else, and is heard by all. With neither CheckQuorum nor
// PreVote it deposes the leader. With CheckQuorum alone the others, who hear the leader, ignore it, but its term
// climbs, once in one to two time-outs, and deposes the leader when the leader is heard again. With PreVote it
// disturbs nobody: etcd-io/etcd#8499, and the discussion of the four combinations in etcd-io/etcd#8498.
func TestFollowerThatDoesNotHearTheLeader(t *testing.T) {
	for _, c := range []struct {
		name                  string
		features              features
		deposes, climbs, late bool // the leader meanwhile; its term; the leader when it is over
	}{
		{"neither CheckQuorum nor PreVote", features{}, true, true, false},
		{"CheckQuorum", features{checkQuorum: true}, false, true, true},
		{"PreVote", features{preVote: true}, false, false, false},
		{"CheckQuorum and PreVote", features{checkQuorum: true, preVote: true}, false, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			scenario.Run(t, scenario.Scenario{
				Software: software, Shows: "a follower that does not hear the leader; " + c.name, Repeats: true,
			}, func(t *testing.T, net *gosimnet.Simnet) {
				during, climbed, after := deafFollower(t, net, c.features)
				if (during > 0) != c.deposes || (after > 0) != c.late {
					t.Errorf("%d elections meanwhile and %d afterwards, want some: %v and %v", during, after, c.deposes, c.late)
				}
				if least := uint64(20 * time.Second / (2 * timeout)); c.features.checkQuorum && c.climbs && climbed < least {
					t.Errorf("the follower's term climbed by %d, want %d or more", climbed, least)
				}
				if (climbed > 0) != c.climbs {
					t.Errorf("the follower's term climbed by %d, want it to: %v", climbed, c.climbs)
				}
			})
		})
	}
}

// deafFollower cuts the link from the leader to a follower, in this direction, for 20 s. It counts the elections
// meanwhile and in the 10 s afterwards, and says by how much the follower's term rose.
func deafFollower(t *testing.T, net *gosimnet.Simnet, f features) (during int, climbed uint64, after int) {
	c, leader, _ := newCluster(t, net, f)
	client := c.newClient(t)
	follower, term := c.follower(leader), leader.term()
	heal, err := net.CutLink(gosimnet.DropPackets, leader.name, follower.name)
	do(t, err)
	cut := time.Now()
	during = c.elections(20 * time.Second)
	climbed = follower.term() - term
	if n := c.promised(cut, time.Now()); n < 100 {
		t.Errorf("%d promises in 20 s, want 100 or more", n)
	}
	heal()
	after = c.elections(10 * time.Second)
	client.stop()
	time.Sleep(time.Second)
	c.judge(t)
	return during, climbed, after
}
