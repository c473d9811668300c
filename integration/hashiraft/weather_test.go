package hashiraft

import (
	"testing"
	"time"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// For half a minute the network is bad: partitions in one direction, power cuts, and one packet in a hundred lost.
// Nodes that believe that they lead go on writing. When it is over, there is one leader within the time-outs'
// bounds, and all promises have been kept. Raft's safety "must not depend on timing": sections 5.4 and 5.6 of its
// paper.
func TestPromisesAreKeptInBadWeather(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "five nodes in one-way partitions, power cuts and loss", Why: random,
		Config: &gosimnet.SimNetConfig{Link: gosimnet.LinkConfig{Loss: 0.01}},
	}, func(t *testing.T, net *gosimnet.Simnet) {
		c, _ := newCluster(t, net, 5, true, inMemory)
		stop := c.writers(t)
		weather := gosimnet.Weather{Hosts: names(c.nodes)}
		weather.Partitions.Every, weather.Partitions.Last = 3*time.Second, 5*time.Second
		weather.Partitions.OneWay = true
		weather.PowerCuts.Every, weather.PowerCuts.Last = 4*time.Second, 3*time.Second
		do(t, net.SetWeather(weather))
		time.Sleep(30 * time.Second)
		net.Heal()
		time.Sleep(3*heartbeat + 2*election)
		before := len(c.referee.Promises())
		time.Sleep(5 * time.Second)
		stop()
		time.Sleep(5 * time.Second)

		if n := len(c.referee.Promises()) - before; n < 30 {
			t.Errorf("%d promises in 5 s of good weather, want 30 or more", n)
		}
		for _, cause := range []string{gosimnet.CausePartition, gosimnet.CauseLoss} {
			if n := lostTo(net, cause); n == 0 {
				t.Errorf("no packet was lost to %s: the weather was too good", cause)
			}
		}
		starts := 0
		for _, n := range c.nodes {
			starts += n.started()
		}
		if starts <= len(c.nodes) {
			t.Errorf("the %d nodes started %d times: the weather was too good", len(c.nodes), starts)
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
