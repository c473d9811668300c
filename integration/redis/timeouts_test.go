package redis

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// timedOut fails the test unless the error is a time-out.
func timedOut(t *testing.T, what string, err error) {
	t.Helper()
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("%s: %v, want a time-out", what, err)
	}
}

// In a partition a command costs ReadTimeout once, for its connection is dropped, and DialTimeout for each retry;
// after it the client dials once. The deadline of a context counts only with ContextTimeoutEnabled:
// https://github.com/redis/go-redis/issues/2215. A blocking command has its own time, and ten seconds more.
func TestTimeoutsInAPartition(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Repeats: true,
		Shows: "what a command in a partition costs: read, dial, context and blocking time-outs, exactly",
	}, func(t *testing.T, net *gosimnet.Simnet) {
		ctx := t.Context()
		serve(net)
		plain := connect(t, net, func(o *redis.Options) { o.MaxRetries, o.DialTimeout = 2, 2*time.Second })
		deaf := connect(t, net, nil)
		attentive := connect(t, net, func(o *redis.Options) { o.ContextTimeoutEnabled = true })
		blocking := connect(t, net, func(o *redis.Options) { o.MaxRetries = 3 })
		for _, c := range []*client{plain, deaf, attentive, blocking} {
			answered(t, c, "before the partition")
		}
		heal := cutOff(t, net)

		takes(t, "a read and two dials", time.Second+2*2*time.Second, func() {
			timedOut(t, "with retries", plain.Get(ctx, "key").Err())
		})
		plain.dialled(t, 3)

		hasty, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		takes(t, "a command that does not look at its context", time.Second, func() {
			err := deaf.Get(hasty, "key").Err()
			if !errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("without ContextTimeoutEnabled: %v", err)
			}
		})
		hasty, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		takes(t, "a command that looks at its context", 100*time.Millisecond, func() {
			timedOut(t, "with ContextTimeoutEnabled", attentive.Get(hasty, "key").Err())
		})
		takes(t, "a blocking command", 3*time.Second+10*time.Second, func() {
			timedOut(t, "BLPOP", blocking.BLPop(ctx, 3*time.Second, "list").Err())
		})
		blocking.dialled(t, 1) // what may have been done is not tried again

		heal()
		for _, c := range []*client{plain, deaf, attentive, blocking} {
			before := c.dials.Load()
			takes(t, "a new connection, and an answer", connecting+roundTrip, func() { answered(t, c, "after the partition") })
			c.dialled(t, before+1)
		}
	})
}

// A command that finds all connections in use waits for PoolTimeout, and then fails with an error that says nothing
// of the network, although that is to blame. See https://github.com/redis/go-redis/issues/3289.
func TestAPoolThatIsInUse(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Repeats: true,
		Shows: "a command waits for a connection of the pool as long as PoolTimeout",
	}, func(t *testing.T, net *gosimnet.Simnet) {
		ctx := t.Context()
		runtime.GC() // the pool's timers that an earlier bubble has left in a sync.Pool
		runtime.GC()
		serve(net)
		c := connect(t, net, func(o *redis.Options) {
			o.PoolSize, o.ReadTimeout, o.PoolTimeout = 1, 5*time.Second, 2*time.Second
		})
		answered(t, c, "before the partition")
		cutOff(t, net)
		first := make(chan error)
		go func() { first <- c.Get(ctx, "key").Err() }()
		time.Sleep(time.Second)
		takes(t, "waiting for the only connection", 2*time.Second, func() {
			if err := c.Get(ctx, "key").Err(); !errors.Is(err, redis.ErrPoolTimeout) {
				t.Errorf("the second command: %v, want a time-out of the pool", err)
			}
		})
		takes(t, "the rest of the first command", 2*time.Second, func() { timedOut(t, "the first command", <-first) })
	})
}

// As many failed dials as the pool has connections, and the client gives the last error to everybody, without a try,
// until a probe that it makes every second gets through: a server that is back is not used for up to a second. See
// https://github.com/redis/go-redis/issues/3062.
func TestFailedDialsStopTheClientUntilItsProbeSucceeds(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Repeats: true,
		Shows: "after PoolSize failed dials all commands fail at once, until the probe of each second succeeds",
	}, func(t *testing.T, net *gosimnet.Simnet) {
		ctx := t.Context()
		c := connect(t, net, func(o *redis.Options) { o.PoolSize = 2 })
		net.Host("server")
		refused := func(what string, after time.Duration) {
			t.Helper()
			takes(t, what, after, func() {
				if err := c.Ping(ctx).Err(); !errors.Is(err, syscall.ECONNREFUSED) {
					t.Errorf("%s: %v, want a refusal", what, err)
				}
			})
		}
		refused("the first command", roundTrip)
		refused("the second", roundTrip)
		refused("the third", 0)
		time.Sleep(roundTrip + time.Millisecond)
		c.dialled(t, 3) // the first probe was refused, too: the next one is in a second
		serve(net)
		time.Sleep(time.Second - 2*time.Millisecond)
		refused("a command while the server is well", 0)
		c.dialled(t, 3)
		time.Sleep(roundTrip + 2*time.Millisecond)
		takes(t, "a new connection, and an answer", connecting+roundTrip, func() { answered(t, c, "after the probe") })
		c.dialled(t, 5)
	})
}
