package nats

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// messages is how many are published, one every 100 ms.
const messages = 40

// message is the n-th.
func message(n int) string { return fmt.Sprint("message ", n) }

// publish publishes a message until it is acknowledged, which may be after a reconnection, and returns the
// acknowledgement.
func (c *client) publish(t *testing.T, js jetstream.JetStream, what string, o ...jetstream.PublishOpt) *jetstream.PubAck {
	t.Helper()
	for {
		c.wait()
		future, err := js.PublishAsync("orders", []byte(what), o...)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		select {
		case ack := <-future.Ok():
			return ack
		case err := <-future.Err():
			if !errors.Is(err, nats.ErrDisconnected) {
				t.Fatalf("%s: %v", what, err)
			}
		}
	}
}

// outage is a power cut of the server while message 20 is under way. The power is back 7 s after message 0.
type outage struct {
	name      string
	cut       gosimnet.Alteration // of the server, at 2.005 s, when the message is under way
	ids       bool                // whether messages have identities
	duplicate bool                // whether the server knows message 20 when it comes again
	twice     bool                // whether it is stored twice
}

var outages = []outage{
	{name: "the message is lost", cut: gosimnet.SHUTDOWN, ids: true},
	{name: "the acknowledgement is lost", ids: true, duplicate: true},
	{name: "the acknowledgement is lost, and messages have no identity", twice: true},
}

// begin makes it happen. If the power does not go at once, the way back is cut first.
func (o outage) begin(t *testing.T, network *gosimnet.Simnet) {
	if o.cut != gosimnet.UNDEFINED {
		alter(t, network, 2005*time.Millisecond, o.cut)
	} else {
		time.AfterFunc(2005*time.Millisecond, func() {
			heal, err := network.CutLink(gosimnet.DropPackets, "nats", "client")
			if err != nil {
				t.Error(err)
				return
			}
			time.AfterFunc(time.Second, heal)
		})
		alter(t, network, 2500*time.Millisecond, gosimnet.SHUTDOWN)
	}
	alter(t, network, 7*time.Second, gosimnet.POWERON)
}

// The server acknowledges a message when it is in a file, so that none is lost that was acknowledged; whoever gets no
// acknowledgement publishes again. The server, started anew with what was on its disk at the power cut, knows by the
// message's identity whether it has it already, and says so. A message without identity is there twice. What its disk
// has is here what its operating system has: without SyncAlways a real power cut takes more,
// https://github.com/nats-io/nats-server/issues/7564.
func TestNoAcknowledgedMessageIsLostByAPowerCut(t *testing.T) {
	for _, o := range outages {
		t.Run(o.name, func(t *testing.T) {
			scenario.Run(t, scenario.Scenario{
				Software: software, Why: why,
				Shows: "a power cycle of a JetStream server, when " + o.name + ": no acknowledged message is lost",
			}, func(t *testing.T, network *gosimnet.Simnet) {
				forget()
				serve(t, network)
				time.Sleep(time.Millisecond) // until it listens
				c := connect(t, network, "client")
				js := c.stream(t, "orders")
				o.begin(t, network)
				start := time.Now()
				var want []string
				for n := range messages {
					want = append(want, message(n))
					var options []jetstream.PublishOpt
					if o.ids {
						options = append(options, jetstream.WithMsgID(message(n)))
					}
					ack := c.publish(t, js, message(n), options...)
					if n == 20 && o.twice {
						want = append(want, message(n))
					}
					if ack.Sequence != uint64(len(want)) || ack.Duplicate != (n == 20 && o.duplicate) {
						t.Errorf("%s was acknowledged as number %d, duplicate: %v", message(n), ack.Sequence, ack.Duplicate)
					}
					time.Sleep(time.Until(start.Add(time.Duration(n+1) * 100 * time.Millisecond)))
				}
				exactly(t, "the connection was lost", c.disconnected, 8*time.Second)
				exactly(t, "the connection was there again", c.reconnected, 8500*time.Millisecond+3*roundTrip)
				if got := stored(t, network, "orders"); !slices.Equal(got, want) {
					t.Errorf("stored are %q, want %q", got, want)
				}
			})
		})
	}
}
