package etcdraft

import (
	"testing"
	"time"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// The leader's power is cut while a client writes, twice. The others elect another between one and two time-outs
// after its last heartbeat. Back again, it starts from its disk, follows, and gets what it has missed: raft.Ready
// says that HardState and Entries are to be saved "BEFORE Messages are sent".
func TestPowerCutOfTheLeader(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "the leader loses power twice, and restarts from its MemoryStorage", Repeats: true,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		c, leader, _ := newCluster(t, net, features{checkQuorum: true, preVote: true})
		client := c.newClient(t)
		for range 2 {
			time.Sleep(time.Second)
			old, cut := leader, time.Now()
			c.power(t, gosimnet.SHUTDOWN, old)
			leader, _ = c.electedWithin(t, cut, timeout-tick, 2*timeout+4*latency)
			time.Sleep(5 * time.Second)
			c.power(t, gosimnet.POWERON, old)
			if n := c.elections(5 * time.Second); n != 0 {
				t.Errorf("%d elections when %s was back, want none", n, old.name)
			}
			if n := c.promised(cut, time.Now()); n < 60 {
				t.Errorf("%d promises in about 11 s, want 60 or more", n)
			}
		}
		client.stop()
		time.Sleep(time.Second)
		c.judge(t)
	})
}

// All nodes lose their power while a client writes, for a minute. When it is back they elect a leader in a higher
// term, between one and two time-outs later, and all have what was promised before.
func TestPowerCutOfAll(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "all five nodes lose power, and restart from their MemoryStorage", Repeats: true,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		c, leader, _ := newCluster(t, net, features{checkQuorum: true, preVote: true})
		term, start, client := leader.term(), time.Now(), c.newClient(t)
		time.Sleep(time.Second)
		c.power(t, gosimnet.SHUTDOWN, c.nodes...)
		before := c.promised(start, time.Now())
		if n := c.elections(time.Minute); n != 0 {
			t.Errorf("%d elections without power", n)
		}
		c.power(t, gosimnet.POWERON, c.nodes...)
		back := time.Now()
		_, e := c.electedWithin(t, back, timeout-tick, 2*timeout+4*latency)
		time.Sleep(2 * time.Second)
		client.stop()
		time.Sleep(time.Second)

		if e.Term <= term {
			t.Errorf("the leader was elected in term %d, want one above %d", e.Term, term)
		}
		if after := c.promised(back, time.Now()); before < 5 || after < 5 {
			t.Errorf("%d promises before the power cut, and %d after it, want 5 and 5 or more", before, after)
		}
		c.judge(t)
	})
}

// For a minute the network is bad: partitions in one direction, power cuts, and datagrams that are lost, doubled
// and reordered. When it is over, there is one leader, and all promises have been kept.
func TestPromisesAreKeptInBadWeather(t *testing.T) {
	bad := gosimnet.LinkConfig{Loss: 0.05, Duplicate: 0.05, Reorder: 0.1}
	scenario.Run(t, scenario.Scenario{
		Software: software, Repeats: true, Config: &gosimnet.SimNetConfig{Link: bad},
		Shows: "five nodes in one-way partitions, power cuts, loss, doubles and reordering",
	}, func(t *testing.T, net *gosimnet.Simnet) {
		c, _, _ := newCluster(t, net, features{checkQuorum: true, preVote: true})
		client := c.newClient(t)
		weather := gosimnet.Weather{Hosts: c.names()}
		weather.Partitions.Every, weather.Partitions.Last = 3*time.Second, 5*time.Second
		weather.Partitions.OneWay = true
		weather.PowerCuts.Every, weather.PowerCuts.Last = 4*time.Second, 3*time.Second
		do(t, net.SetWeather(weather))
		time.Sleep(time.Minute)
		net.Heal()
		time.Sleep(4 * timeout)
		healed := time.Now()
		time.Sleep(5 * time.Second)
		client.stop()
		time.Sleep(5 * time.Second)

		if n := c.promised(healed, time.Now()); n < 20 {
			t.Errorf("%d promises in 5 s of good weather, want 20 or more", n)
		}
		starts := 0
		for _, n := range c.nodes {
			starts += n.startCount()
		}
		if partitioned := lostTo(net, gosimnet.CausePartition); starts <= len(c.nodes) || partitioned == 0 {
			t.Errorf("%d starts of %d nodes, %d packets lost to partitions: the weather was too good",
				starts, len(c.nodes), partitioned)
		}
		c.judge(t)
	})
}

// lostTo counts the packets of all links that were lost to a cause.
func lostTo(net *gosimnet.Simnet, cause string) (packets uint64) {
	for _, stats := range net.AllLinkStats() {
		packets += stats.LostTo[cause].Packets
	}
	return packets
}
