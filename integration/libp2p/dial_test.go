package libp2p

import (
	"errors"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// A dial to an address of a local network, as 10.0.0.0/8 is, takes five seconds at most, and the address is not
// dialled again for five more, be the network healed or not: https://github.com/libp2p/go-libp2p/issues/879, "Libp2p
// does not recover due to dial backoff". After a second failure it is six.
func TestDialBackoffOutlivesThePartition(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software,
		Shows:    "a dial into a partition, and the back-off after its end",
		Config:   &gosimnet.SimNetConfig{MinHop: latency},
		Why: "several goroutines of libp2p write their first words on a new connection at one instant: assert what they " +
			"say, not in how many datagrams; with GOMAXPROCS=1 nearly all runs are alike",
	}, func(t *testing.T, net *gosimnet.Simnet) {
		a, b := newPeer(t, net, "a"), newPeer(t, net, "b")
		time.Sleep(time.Second)
		heal := must(net.Partition(gosimnet.DropPackets, []string{"a"}, []string{"b"}))(t)
		for failures, wait := range []time.Duration{5 * time.Second, 6 * time.Second} {
			start := startClock()
			if err := connect(t.Context(), a, b); !errors.Is(err, swarm.ErrAllDialsFailed) {
				t.Errorf("dial %d into the partition: %v", failures, err)
			}
			start.at(t, "the failure", 5*time.Second)
			if failures == 1 {
				heal()
			}
			start = startClock()
			time.Sleep(wait - time.Millisecond)
			if err := connect(t.Context(), a, b); !errors.Is(err, swarm.ErrDialBackoff) {
				t.Errorf("a dial %v after failure %d: %v, want ErrDialBackoff", wait-time.Millisecond, failures+1, err)
			}
			start.at(t, "ErrDialBackoff", wait-time.Millisecond)
			time.Sleep(2 * time.Millisecond)
		}
		start := startClock()
		if err := connect(t.Context(), a, b); err != nil {
			t.Error(err)
		}
		start.at(t, "the connection", 2*roundTrip) // a handshake, and the exchange of identities
		if a.Network().Connectedness(b.ID()) != network.Connected || b.Network().Connectedness(a.ID()) != network.Connected {
			t.Error("not connected")
		}
	})
}
