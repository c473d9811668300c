package redis

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"go.uber.org/goleak"

	"github.com/glycerine/gosimnet"
)

// software is what the scenarios run.
const software = "github.com/redis/go-redis/v9 v9.23.0, github.com/tidwall/redcon v1.6.4"

// roundTrip is that of a network with the defaults.
const roundTrip = 20 * time.Millisecond

// connecting takes a round trip for the dial, and one for HELLO, which the server does not know.
const connecting = 2 * roundTrip

// TestMain fails if anything is left running after all tests.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quiet is a logger for what is expected here.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// client is a Redis client that counts its dials.
type client struct {
	*redis.Client
	dials atomic.Int32
}

// connect makes a client on host "client", of options that the test changes: no retries, one pool for everything, and
// a second for each step.
func connect(t *testing.T, net_ *gosimnet.Simnet, change func(o *redis.Options)) *client {
	t.Helper()
	redis.SetLogger(quiet{})
	c := new(client)
	o := &redis.Options{
		Addr: "server:6379",
		Dialer: func(ctx context.Context, network, address string) (net.Conn, error) {
			c.dials.Add(1)
			return net_.Host("client").DialContext(ctx, network, address)
		},
		Protocol: 2, DisableIdentity: true,
		MaxRetries: -1, MinRetryBackoff: -1, DialerRetries: 1,
		DialTimeout: time.Second, ReadTimeout: time.Second, PoolSize: 10, PipelinePoolSize: -1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if change != nil {
		change(o)
	}
	c.Client = redis.NewClient(o)
	t.Cleanup(func() { c.Close() })
	return c
}

// dialled fails the test unless the client has dialled so often.
func (c *client) dialled(t *testing.T, want int32) {
	t.Helper()
	if got := c.dials.Load(); got != want {
		t.Errorf("%d dials, want %d", got, want)
	}
}

// takes fails the test unless f takes exactly so long. Every packet arrives a few nanoseconds after its latency is
// over, so that as much as a microsecond more is right.
func takes(t *testing.T, what string, want time.Duration, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if got := time.Since(start); got < want || got >= want+time.Microsecond {
		t.Errorf("%s took %v, want %v", what, got, want)
	}
}

// cutOff separates client and server until heal is called.
func cutOff(t *testing.T, net *gosimnet.Simnet) (heal func()) {
	t.Helper()
	heal, err := net.Partition(gosimnet.DropPackets, []string{"client"}, []string{"server"})
	if err != nil {
		t.Fatal(err)
	}
	return heal
}

// cycle takes the server's power for so long.
func cycle(t *testing.T, net *gosimnet.Simnet, off time.Duration) {
	t.Helper()
	for _, what := range []gosimnet.Alteration{gosimnet.SHUTDOWN, gosimnet.POWERON} {
		if _, err := net.AlterHost("server", what); err != nil {
			t.Fatal(err)
		}
		if what == gosimnet.SHUTDOWN {
			time.Sleep(off)
		}
	}
}
