package integration

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/tidwall/redcon"

	"github.com/glycerine/gosimnet"
)

// quiet is a logger for what is expected here.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// serveRedis keeps values for as long as the test runs.
func serveRedis(t *testing.T, l net.Listener) {
	t.Helper()
	values := map[string]string{}
	srv := redcon.NewServer("", func(c redcon.Conn, cmd redcon.Command) {
		switch string(cmd.Args[0]) {
		case "set", "SET":
			values[string(cmd.Args[1])] = string(cmd.Args[2])
			c.WriteString("OK")
		case "get", "GET":
			c.WriteBulkString(values[string(cmd.Args[1])])
		default:
			c.WriteError("ERR unknown command")
		}
	}, nil, nil)
	go srv.Serve(l)
	t.Cleanup(func() { srv.Close() })
}

// A command that times out costs its connection, and the next one a dial, which times out too, until the network is healed.
func TestRedisDialsAnewAfterAPartition(t *testing.T) {
	bubble(t, hop(latency), func(t *testing.T, s *gosimnet.Simnet) {
		serveRedis(t, listen(t, s.Host("server"), ":6379"))
		redis.SetLogger(quiet{})
		var dials atomic.Int32
		rdb := redis.NewClient(&redis.Options{
			Addr: "server:6379",
			Dialer: func(ctx context.Context, network, address string) (net.Conn, error) {
				dials.Add(1)
				return s.Host("client").Dialer().DialContext(ctx, network, address)
			},
			Protocol: 2, DisableIdentity: true, MaxRetries: -1, DialerRetries: 1,
			DialTimeout: time.Second, ReadTimeout: time.Second,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
		defer rdb.Close()
		ctx := t.Context()
		if err := rdb.Set(ctx, "key", "value", 0).Err(); err != nil {
			t.Fatal(err)
		}
		start := startClock()
		if got, err := rdb.Get(ctx, "key").Result(); got != "value" || err != nil {
			t.Errorf("GET: %q, %v", got, err)
		}
		start.at(t, "the value", roundTrip)

		heal := cutOff(t, s)
		for _, what := range []string{"the command", "the dial"} {
			start := startClock()
			var timeout net.Error
			if err := rdb.Get(ctx, "key").Err(); !errors.As(err, &timeout) || !timeout.Timeout() {
				t.Errorf("GET in the partition: %v, want a time-out of %s", err, what)
			}
			start.at(t, "the time-out of "+what, time.Second)
		}
		heal()
		if got, err := rdb.Get(ctx, "key").Result(); got != "value" || err != nil {
			t.Errorf("GET after the partition: %q, %v", got, err)
		}
		if dials.Load() != 3 {
			t.Errorf("%d dials, want 3", dials.Load())
		}
	})
}
