package nats

import (
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/glycerine/gosimnet"
)

// software is what the scenarios run.
const software = "github.com/nats-io/nats.go v1.55.0, github.com/nats-io/nats-server/v2 v2.15.3"

// why the scenarios do not always repeat.
const why = "nats.go's flusher and the server's write loop: what is written at one instant is one segment, or several; " +
	"with GOMAXPROCS=1 most runs are alike"

// TestMain has goroutines run one after the other, so that those that one instant sets going do so in one order in
// nearly all runs. It fails if anything is left running after all tests.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	goleak.VerifyTestMain(m)
}

// dialer dials from a host, and gives up after a second.
type dialer struct{ host *gosimnet.Host }

func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d.host.DialTimeout(network, address, time.Second)
}

// client is a connection that tells whether it is up. While it is not, nobody may call its methods: see the package's
// documentation.
type client struct {
	*nats.Conn
	start time.Time

	mu           sync.Mutex
	up           chan struct{} // closed while the connection is
	disconnected time.Duration // since start
	reconnected  time.Duration
	why          error
	down         func() // called when the connection is lost, half a second before the first try to connect again
}

// connect makes a client on a host: it pings every two seconds, takes a server for dead that owes it two answers, and
// tries to connect again half a second after each failure.
func connect(t *testing.T, network *gosimnet.Simnet, host string) *client {
	t.Helper()
	c := &client{up: make(chan struct{})}
	conn, err := nats.Connect("nats://nats:4222",
		nats.SetCustomDialer(dialer{network.Host(host)}), nats.SkipHostLookup(),
		nats.PingInterval(2*time.Second), nats.MaxPingsOutstanding(2),
		nats.MaxReconnects(-1), nats.ReconnectWait(500*time.Millisecond), nats.ReconnectJitter(0, 0),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil { // not by Close
				c.lost(err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { c.found() }),
	)
	if err != nil {
		t.Fatal(err)
	}
	close(c.up)
	c.Conn, c.start = conn, time.Now()
	t.Cleanup(c.Close)
	return c
}

// lost and found are what the connection calls.
func (c *client) lost(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.up, c.why, c.disconnected = make(chan struct{}), err, time.Since(c.start)
	if c.down != nil {
		c.down()
	}
}

func (c *client) found() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reconnected = time.Since(c.start)
	time.AfterFunc(time.Millisecond, func() { close(c.up) }) // after the ping with which reconnecting ends
}

// wait waits until the connection is up.
func (c *client) wait() {
	c.mu.Lock()
	up := c.up
	c.mu.Unlock()
	<-up
}

// stream makes a stream in a file that keeps what is published for one subject.
func (c *client) stream(t *testing.T, name string) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(c.Conn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{name}}); err != nil {
		t.Fatal(err)
	}
	return js
}

// stored is what a stream has, as a client on another host sees it that asks for one message after the other.
func stored(t *testing.T, network *gosimnet.Simnet, name string) (values []string) {
	t.Helper()
	js, err := jetstream.New(connect(t, network, "consumer").Conn)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	for n := range stream.CachedInfo().State.LastSeq {
		m, err := stream.GetMsg(t.Context(), n+1)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, string(m.Data))
	}
	return values
}

// forget makes the process forget the timers that nats.go keeps in a sync.Pool, which are of the bubble that went
// before.
func forget() {
	runtime.GC()
	runtime.GC()
}

// alter changes the server's power after a time.
func alter(t *testing.T, network *gosimnet.Simnet, after time.Duration, how gosimnet.Alteration) {
	time.AfterFunc(after, func() {
		if _, err := network.AlterHost("nats", how); err != nil {
			t.Error(err)
		}
	})
}

// roundTrip is that of a network with the defaults.
const roundTrip = 20 * time.Millisecond

// exactly fails the test if something did not happen when it should have. Every packet arrives a few nanoseconds
// after its latency is over, so that less than a microsecond is no difference.
func exactly(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	if (got - want).Abs() >= time.Microsecond {
		t.Errorf("%s after %v, want %v", what, got, want)
	}
}
