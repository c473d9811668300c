package hashiraft

import (
	"testing"
	"time"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// kinds are the disks that keep what is written.
var kinds = []struct {
	name string
	kind disks
}{{"in-memory store", inMemory}, {"bolt store", inBolt}}

// The leader's power is cut while it replicates. A majority of the others elects another, and goes on. Back again,
// it starts from its disk, follows, and gets what it has missed: hashicorp/raft's documentation of StableStore, "a
// durable store".
func TestPowerCutOfTheLeader(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			scenario.Run(t, scenario.Scenario{
				Software: software, Shows: "the leader loses power twice, and restarts from its " + k.name, Why: random,
			}, func(t *testing.T, net *gosimnet.Simnet) {
				c, leader := newCluster(t, net, 5, true, k.kind)
				stop := c.writers(t)
				for range 2 {
					time.Sleep(time.Second)
					old := leader
					c.powerOff(t, old)
					cut := time.Now()
					leader, _ = c.electedWithin(t, heartbeat-2*heartbeat/10, 3*heartbeat+2*election)
					time.Sleep(5 * time.Second)
					c.powerOn(t, old)
					c.nobodyElected(t, 5*time.Second)
					if n := c.promised(leader, cut, time.Now()); n < 100 {
						t.Errorf("%s made %d promises in 10 s, want 100 or more", leader.name, n)
					}
				}
				stop()
				time.Sleep(time.Second)
				c.judge(t)
			})
		})
	}
}

// All nodes lose their power at one instant while they replicate, for a minute. When it is back they elect a
// leader in a higher term, and all have what was promised before.
func TestPowerCutOfAll(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			scenario.Run(t, scenario.Scenario{
				Software: software, Shows: "all five nodes lose power at once, and restart from their " + k.name, Why: random,
			}, func(t *testing.T, net *gosimnet.Simnet) {
				c, leader := newCluster(t, net, 5, true, k.kind)
				term := leader.term()
				stop := c.writers(t)
				time.Sleep(time.Second)
				c.powerAll(t, gosimnet.SHUTDOWN)
				before := len(c.referee.Promises())
				c.nobodyElected(t, time.Minute)
				c.powerAll(t, gosimnet.POWERON)
				next, higher := c.electedWithin(t, heartbeat, 2*heartbeat+2*election)
				time.Sleep(time.Second)
				stop()
				time.Sleep(time.Second)

				if higher <= term {
					t.Errorf("%s was elected in term %d, want one above %d", next.name, higher, term)
				}
				if all := len(c.referee.Promises()); before < 10 || all-before < 10 {
					t.Errorf("%d promises before the power cut, and %d after it, want 10 and 10 or more", before, all-before)
				}
				c.judge(t)
			})
		})
	}
}

// One node is off, a second has what was promised, and loses its power, too. The first and the second come back.
// If the second's disk has kept what was written, only it can be elected, and nothing is lost; if not, the first
// is, as nobody knows better, and the promise is broken. A log on a disk that forgets is a common mistake:
// hashicorp/raft-boltdb's NoSync is "unsafe", and Raft's proof of safety rests on stable storage.
func TestAForgetfulDiskBreaksPromises(t *testing.T) {
	for name, keeps := range map[string]bool{"a disk that keeps": true, "a disk that forgets": false} {
		t.Run(name, func(t *testing.T) {
			scenario.Run(t, scenario.Scenario{
				Software: software, Shows: "a committed entry and " + name, Why: random,
			}, func(t *testing.T, net *gosimnet.Simnet) { amnesia(t, net, keeps) })
		})
	}
}

// amnesia cuts the power of three nodes so that one disk decides whether a promise is kept.
func amnesia(t *testing.T, net *gosimnet.Simnet, keeps bool) {
	c, leader := newCluster(t, net, 3, true, inMemory)
	absent, witness := c.others(leader)[0], c.others(leader)[1]
	c.powerOff(t, absent)
	c.mustApply(t, leader, "a promise")
	c.powerOff(t, leader)
	c.powerOff(t, witness)
	if !keeps {
		witness.disk = forgetful{}
	}
	time.Sleep(time.Minute)
	c.powerOn(t, absent)
	c.powerOn(t, witness)
	next, _ := c.elected(t)
	c.mustApply(t, next, "another")
	c.powerOn(t, leader)
	time.Sleep(10 * time.Second)

	if want := map[bool]*node{true: witness, false: absent}[keeps]; next != want {
		t.Errorf("%s was elected, want %s", next.name, want.name)
	}
	if breaches := c.referee.Breaches(names(c.nodes)...); (len(breaches) == 0) != keeps {
		t.Errorf("broken promises: %q, want some: %v", breaches, !keeps)
	}
}
