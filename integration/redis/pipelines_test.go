package redis

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// commands is how many a pipeline has, and chunk what each carries, one way or the other.
const (
	commands = 100
	chunk    = 10_000
)

// narrow makes a link of a megabyte a second, which a pipeline of large values fills for a second.
func narrow(t *testing.T, net *gosimnet.Simnet, from, to string) {
	t.Helper()
	if err := net.SetLink(from, to, gosimnet.LinkConfig{
		Latency: gosimnet.Constant(roundTrip / 2), BitsPerSecond: 8_000_000, QueueBytes: 4 << 20,
	}); err != nil {
		t.Fatal(err)
	}
}

// key is the name of the n-th value.
func key(n int) string { return fmt.Sprintf("key%03d", n) }

// keys are those of a whole pipeline.
func keys(n int) (all []string) {
	for i := range n {
		all = append(all, key(i))
	}
	return all
}

// value is a value that tells which one it is.
func value(n int) string { return strings.Repeat(key(n), chunk)[:chunk] }

// failed fails the test unless all commands have failed with this error.
func failed(t *testing.T, all []redis.Cmder, want error) {
	t.Helper()
	for i, c := range all {
		if !errors.Is(c.Err(), want) {
			t.Errorf("command %d: %v, want %v", i, c.Err(), want)
		}
	}
}

// filled is how many of the commands hold a value of their own, in spite of their errors. They must be the first
// ones.
func filled(t *testing.T, all []redis.Cmder, empty func(n int, c redis.Cmder) bool) int {
	t.Helper()
	n := 0
	for n < len(all) && !empty(n, all[n]) {
		n++
	}
	for i, c := range all[n:] {
		if !empty(n+i, c) {
			t.Errorf("command %d has a reply, and command %d has none", n+i, n)
		}
	}
	return n
}

// A pipeline whose replies stop in the middle ends ReadTimeout after it was sent, for it has one deadline. The error
// is that of all its commands, those with replies included, but these hold their values. The connection is not used
// again, on which the rest may still come: in https://github.com/redis/go-redis/issues/629 it was, and commands got
// the replies of others.
func TestRepliesOfAPipelineCutInTheMiddle(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Repeats: true,
		Shows: "a pipeline whose replies are cut keeps the whole ones, and its connection is not used again",
	}, func(t *testing.T, net *gosimnet.Simnet) {
		ctx := t.Context()
		store := serve(net)
		for n := range commands {
			store.values[key(n)] = value(n)
		}
		narrow(t, net, "server", "client")
		c := connect(t, net, func(o *redis.Options) { o.ReadTimeout = 2 * time.Second })
		answered(t, c, "before the pipeline")

		healing := make(chan func(), 1)
		time.AfterFunc(500*time.Millisecond, func() { healing <- cutOff(t, net) })
		pipe := c.Pipeline()
		for n := range commands {
			pipe.Get(ctx, key(n))
		}
		var all []redis.Cmder
		takes(t, "the pipeline", 2*time.Second, func() { all, _ = pipe.Exec(ctx) })
		failed(t, all, os.ErrDeadlineExceeded)
		empty := func(n int, c redis.Cmder) bool { return c.(*redis.StringCmd).Val() != value(n) }
		if got := filled(t, all, empty); got != 47 {
			t.Errorf("%d commands have values, want 47: what a megabyte a second carries in 480 ms", got)
		}

		(<-healing)()
		if got := c.Get(ctx, key(99)).Val(); got != value(99) {
			t.Errorf("after the pipeline the value of %s is %.9q…", key(99), got)
		}
		c.dialled(t, 2)
	})
}

// A pipeline whose commands stop in the middle has been carried out in part, and the client cannot know what part:
// fewer replies have come than commands were carried out. A client that retries sends all of it again, so that the
// first part is done twice: retries and commands that must not be done twice do not go together, which
// https://github.com/redis/go-redis/issues/930 discusses.
func TestCommandsOfAPipelineCutInTheMiddle(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Repeats: true,
		Shows: "a pipeline that is reset is carried out in part, and by a client that retries, in part twice",
	}, func(t *testing.T, net *gosimnet.Simnet) {
		store := serve(net)
		narrow(t, net, "client", "server")
		once := connect(t, net, nil)
		again := connect(t, net, func(o *redis.Options) { o.MaxRetries = 1 })

		all, err := appendUntilReset(t, net, once)
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the pipeline that is not retried: %v, want a reset", err)
		}
		failed(t, all, syscall.ECONNRESET)
		done := store.journal()
		acknowledged := filled(t, all, func(n int, c redis.Cmder) bool { return c.(*redis.IntCmd).Val() != chunk })
		// A command takes 10.04 ms of the link. It had 890 ms to arrive, or 880 ms to arrive and be answered.
		if acknowledged != 87 || !slices.Equal(done, keys(88)) {
			t.Errorf("%d commands acknowledged, want 87; %d done, want 88: %q", acknowledged, len(done), done)
		}

		all, err = appendUntilReset(t, net, again)
		failed(t, all, nil)
		if err != nil {
			t.Errorf("the pipeline that is retried: %v", err)
		}
		twice := slices.Concat(keys(len(done)), keys(commands))
		if got := store.journal(); !slices.Equal(got, twice) {
			t.Errorf("retried, %d commands were done, want the first %d twice and the others once: %q", len(got), len(done), got)
		}
	})
}

// appendUntilReset sends a pipeline of appends, whose connection is reset when all has been written, and not all has
// arrived.
func appendUntilReset(t *testing.T, net *gosimnet.Simnet, c *client) ([]redis.Cmder, error) {
	t.Helper()
	answered(t, c, "before the pipeline")
	time.AfterFunc(900*time.Millisecond, func() { net.ResetConns("client", "server") })
	return appendAll(t, c.Pipeline(), chunk)
}

// appendAll appends so many bytes to each key by one pipeline.
func appendAll(t *testing.T, pipe redis.Pipeliner, size int) ([]redis.Cmder, error) {
	for n := range commands {
		pipe.Append(t.Context(), key(n), value(n)[:size])
	}
	return pipe.Exec(t.Context())
}

// A transaction that is cut before EXEC has not happened, and one whose answer is lost has happened, all of it; the
// error tells only whoever knows that the first is one of writing. Other than a plain pipeline, a transaction that
// has been written is not sent again, whatever MaxRetries says. See
// https://redis.io/docs/latest/develop/using-commands/transactions/.
func TestTransactionCutBeforeAndAfterExec(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Repeats: true,
		Shows: "a transaction cut before EXEC is not carried out, one whose answer is lost is, once",
	}, func(t *testing.T, net *gosimnet.Simnet) {
		store := serve(net)
		narrow(t, net, "client", "server")
		c := connect(t, net, nil)
		again := connect(t, net, func(o *redis.Options) { o.ReadTimeout, o.MaxRetries = 2*time.Second, 3 })

		answered(t, c, "before the transaction")
		time.AfterFunc(500*time.Millisecond, func() { net.ResetConns("client", "server") })
		if _, err := appendAll(t, c.TxPipeline(), chunk); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a transaction cut before EXEC: %v, want a reset", err)
		}
		if done := store.journal(); len(done) != 0 {
			t.Errorf("a transaction cut before EXEC has done %q", done)
		}

		answered(t, again, "before the transaction")
		heal, err := net.CutLink(gosimnet.DropPackets, "server", "client")
		if err != nil {
			t.Fatal(err)
		}
		takes(t, "the transaction whose answer is lost", 2*time.Second, func() {
			_, err = appendAll(t, again.TxPipeline(), 10)
		})
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a transaction whose answer is lost: %v, want a time-out", err)
		}
		if done := store.journal(); !slices.Equal(done, keys(commands)) {
			t.Errorf("a transaction whose answer is lost has done %q", done)
		}
		heal()
	})
}
