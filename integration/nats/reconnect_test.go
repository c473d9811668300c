package nats

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// A client learns by its pings that the server has lost its power: it sends them after two and four seconds, and
// after six the server owes it two answers. Until then it publishes into the void, without an error; what it
// publishes from then on it keeps, and delivers after it has reconnected: publishing without acknowledgements is at
// most once. See https://github.com/nats-io/nats.go/issues/86.
func TestReconnectAfterAPowerCycle(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Why: why,
		Shows: "after a power cycle a client reconnects; what it published before it knew is lost, what it kept is not",
	}, func(t *testing.T, network *gosimnet.Simnet) {
		forget()
		serve(t, network)
		time.Sleep(time.Millisecond) // until it listens
		c := connect(t, network, "client")
		c.stream(t, "news")
		publish := func(what string) {
			t.Helper()
			if err := c.Publish("news", []byte(what)); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		c.down = func() { publish("while it knows") }
		alter(t, network, time.Second-time.Since(c.start), gosimnet.SHUTDOWN)
		alter(t, network, 9*time.Second-time.Since(c.start), gosimnet.POWERON)

		publish("before the power cut")
		time.Sleep(3*time.Second - time.Since(c.start))
		publish("before it knows")
		time.Sleep(6*time.Second - time.Since(c.start) + time.Millisecond)
		c.wait()
		publish("after all")
		if err := c.Flush(); err != nil {
			t.Error(err)
		}
		if !errors.Is(c.why, nats.ErrStaleConnection) {
			t.Errorf("the connection was lost for %v", c.why)
		}
		exactly(t, "the connection was lost", c.disconnected, 6*time.Second)
		// Half a second later it dials, for a second, half a second later again, in vain by a hair's breadth; half a
		// second later the server is there, and answers after a round trip for the dial, one for its greeting, and
		// one for a ping.
		exactly(t, "the connection was there again", c.reconnected, 9500*time.Millisecond+3*roundTrip)
		want := []string{"before the power cut", "while it knows", "after all"}
		if got := stored(t, network, "news"); !slices.Equal(got, want) {
			t.Errorf("stored are %q, want %q", got, want)
		}
	})
}
