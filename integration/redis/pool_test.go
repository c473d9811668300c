package redis

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// fill leaves so many idle connections in the client's pool.
func (c *client) fill(t *testing.T, ctx context.Context, n int) {
	t.Helper()
	var held []*redis.Conn
	for range n {
		conn := c.Conn()
		if err := conn.Ping(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		held = append(held, conn)
	}
	for _, conn := range held {
		conn.Close()
	}
	c.idle(t, uint32(n))
}

// idle fails the test unless the pool has so many idle connections.
func (c *client) idle(t *testing.T, want uint32) {
	t.Helper()
	if got := c.PoolStats().IdleConns; got != want {
		t.Errorf("%d idle connections, want %d", got, want)
	}
}

// A server that loses its power does not say goodbye, so that the pool's connections look alive until something is
// written to them, and the reset comes back a round trip later. A command is tried four times by default, each time
// on the next connection of the pool: with five stale ones it fails while the server is well and nobody has dialled.
// This is https://github.com/redis/go-redis/issues/1737. A limit for idle connections, or as many retries as
// connections, helps.
func TestStaleConnectionsAfterAPowerCycle(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Repeats: true,
		Shows: "after a power cycle all retries may meet stale connections of the pool",
	}, func(t *testing.T, net *gosimnet.Simnet) {
		ctx := t.Context()
		serve(net)
		defaults := connect(t, net, func(o *redis.Options) { o.MaxRetries = 3 })
		eager := connect(t, net, func(o *redis.Options) { o.MaxRetries = 5 })
		careful := connect(t, net, func(o *redis.Options) { o.ConnMaxIdleTime = 30 * time.Second })
		for _, c := range []*client{defaults, eager, careful} {
			c.fill(t, ctx, 5)
		}
		cycle(t, net, time.Minute)

		defaults.idle(t, 5)
		takes(t, "four stale connections", 4*roundTrip, func() {
			if err := defaults.Ping(ctx).Err(); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the first command: %v, want a reset", err)
			}
		})
		defaults.dialled(t, 5)
		defaults.idle(t, 1)
		takes(t, "the last stale connection, a new one, and an answer", roundTrip+connecting+roundTrip, func() {
			answered(t, defaults, "the second command")
		})
		defaults.dialled(t, 6)

		takes(t, "five stale connections, a new one, and an answer", 5*roundTrip+connecting+roundTrip, func() {
			answered(t, eager, "with more retries")
		})
		eager.dialled(t, 6)

		takes(t, "a new connection, and an answer", connecting+roundTrip, func() { answered(t, careful, "with a limit to idleness") })
		careful.dialled(t, 6)
	})
}

// answered fails the test unless the server answers a ping.
func answered(t *testing.T, c *client, what string) {
	t.Helper()
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}
