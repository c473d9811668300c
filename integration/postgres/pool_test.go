package postgres

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// open makes a pool on the host "shop".
func open(t *testing.T, n *gosimnet.Simnet, options string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig("postgres://user@db/shop?sslmode=disable&" + options)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.DialFunc, config.ConnConfig.LookupFunc = dialer(n), literally
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// fill makes so many idle connections, one after the other.
func fill(t *testing.T, pool *pgxpool.Pool, connections int) {
	t.Helper()
	for range connections {
		c, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Release()
	}
}

// ask asks the pool for the number of a session.
func ask(ctx context.Context, pool *pgxpool.Pool) (pid string, err error) {
	err = pool.QueryRow(ctx, "select pg_backend_pid()", pgx.QueryExecModeSimpleProtocol).Scan(&pid)
	return pid, err
}

// The health check looks at ages, at every pool_health_check_period from when the pool's first connections are there.
// Of connections that are too old it closes as many as pool_min_conns leaves and one more, waits half a second, makes
// what is missing, and begins again, so that two that are equally old go one after the other, as pgxpool's source has
// it.
func TestHealthCheckReplacesOldConnectionsOneByOne(t *testing.T) {
	scenario.Run(t, scenario.Scenario{Software: software, Repeats: true,
		Shows: "the pool's health check replaces two old connections, one by one, half a second apart",
	}, func(t *testing.T, n *gosimnet.Simnet) {
		d := newDatabase(n, "db")
		pool := open(t, n, "pool_min_conns=2&pool_max_conn_lifetime=25s&pool_health_check_period=10s")
		time.Sleep(time.Minute)
		check := setup + 30*time.Second // the third, and the first that finds them older than 25 s
		d.want(t,
			entry{setup - latency, "session 1"},
			entry{setup - latency, "session 2"},
			entry{check + latency, "end of 1"},
			entry{check + latency, "farewell of 1"},
			entry{check + 500*time.Millisecond + setup - latency, "session 3"},
			entry{check + 500*time.Millisecond + setup + latency, "end of 2"},
			entry{check + 500*time.Millisecond + setup + latency, "farewell of 2"},
			entry{check + time.Second + 2*setup - latency, "session 4"},
		)
		if stat := pool.Stat(); stat.TotalConns() != 2 || stat.MaxLifetimeDestroyCount() != 2 || stat.NewConnsCount() != 4 {
			t.Errorf("%d connections, %d closed for their age, %d made; want 2, 2, 4",
				stat.TotalConns(), stat.MaxLifetimeDestroyCount(), stat.NewConnsCount())
		}
	})
}

// After a burst, the health check closes what has been idle for pool_max_conn_idle_time, but for pool_min_conns of
// them: pull request 670 of jackc/pgx.
func TestHealthCheckClosesIdleConnections(t *testing.T) {
	scenario.Run(t, scenario.Scenario{Software: software, Repeats: true,
		Shows: "the pool's health check closes idle connections at its second look, and keeps pool_min_conns",
	}, func(t *testing.T, n *gosimnet.Simnet) {
		d := newDatabase(n, "db")
		pool := open(t, n, "pool_min_conns=1&pool_max_conn_idle_time=15s&pool_health_check_period=10s")
		watch := scenario.StartClock()
		watch.Until(time.Second)
		fill(t, pool, 3)
		watch.At(t, "the third connection", time.Second+2*setup)
		watch.Until(15 * time.Second)
		if total := pool.Stat().TotalConns(); total != 3 {
			t.Errorf("%d connections after the first look, want 3", total)
		}
		d.forget()
		watch.Until(25 * time.Second)
		if total := pool.Stat().TotalConns(); total != 1 {
			t.Errorf("%d connections after the second look, want 1", total)
		}
		closed := setup + 20*time.Second + latency - 15*time.Second
		d.want(t,
			entry{closed, "end of 2"},
			entry{closed, "end of 3"},
			entry{closed, "farewell of 2"},
			entry{closed, "farewell of 3"},
		)
	})
}

// The health check does not look at the network: connections that died with the server's power stay in the pool. It
// is the ping before a connection is lent that finds them out, a round trip each, and the program sees no error. pgx
// closes each with a request to cancel, of which the restarted server knows nothing.
func TestStaleConnectionsCostAPingEach(t *testing.T) {
	scenario.Run(t, scenario.Scenario{Software: software, Repeats: true,
		Shows: "pooled connections after the server's power cycle: a ping each, then a new one, and no error",
	}, func(t *testing.T, n *gosimnet.Simnet) {
		d := newDatabase(n, "db")
		pool := open(t, n, "pool_health_check_period=1s")
		fill(t, pool, 2)
		for _, power := range []gosimnet.Alteration{gosimnet.SHUTDOWN, gosimnet.POWERON} {
			time.Sleep(time.Second)
			if _, err := n.AlterHost("db", power); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(3 * time.Second)
		if total := pool.Stat().TotalConns(); total != 2 {
			t.Errorf("the health check has left %d connections, want 2", total)
		}
		d.forget()
		watch := scenario.StartClock()
		if pid, err := ask(t.Context(), pool); pid != "4" || err != nil {
			t.Errorf("the query: %q, %v; want the answer of session 4", pid, err)
		}
		const ping = 2 * latency
		watch.At(t, "the answer", 2*ping+setup+2*latency)
		d.want(t,
			entry{ping + 3*latency, "cancel of an unknown session"},
			entry{2*ping + 3*latency, "cancel of an unknown session"},
			entry{2*ping + setup - latency, "session 4"},
			entry{2*ping + setup + latency, "4: select pg_backend_pid()"},
		)
	})
}

// forgetful is a firewall that has forgotten a connection: its packets disappear, those of others pass.
func forgetful(n *gosimnet.Simnet, local net.Addr) {
	port := local.(*net.TCPAddr).Port
	n.AddRule(func(p *gosimnet.Packet) gosimnet.Verdict {
		if int(p.Src.Port()) == port || int(p.Dst.Port()) == port {
			return gosimnet.Drop()
		}
		return gosimnet.Pass()
	})
}

// "pgxpool Acquire can hang on unresponsive connections during health check ping": issue 2394 of jackc/pgx. A
// firewall has forgotten one of two idle connections, that which the pool lends first. Without pool_ping_timeout the
// ping takes all the time that the caller has, and the healthy connection is never tried. v5.7.1 knows no such
// setting.
func TestPingTimeoutLeavesTimeForAHealthyConnection(t *testing.T) {
	for _, c := range []struct {
		name, options string
		err           error
		after         time.Duration
	}{
		{"without", "", context.DeadlineExceeded, 5 * time.Second},
		{"with", "pool_ping_timeout=200ms", nil, 200*time.Millisecond + 2*latency + 2*latency},
	} {
		t.Run(c.name, func(t *testing.T) {
			scenario.Run(t, scenario.Scenario{Software: software, Repeats: true,
				Shows: "one of two pooled connections is dead, " + c.name + " pool_ping_timeout",
			}, func(t *testing.T, n *gosimnet.Simnet) {
				newDatabase(n, "db")
				pool := open(t, n, c.options)
				fill(t, pool, 2)
				first, err := pool.Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				forgetful(n, first.Conn().PgConn().Conn().LocalAddr())
				first.Release()
				time.Sleep(10 * time.Second)
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				watch := scenario.StartClock()
				if _, err := ask(ctx, pool); !errors.Is(err, c.err) {
					t.Errorf("the query: %v, want %v", err, c.err)
				}
				watch.At(t, "the end of it", c.after)
			})
		})
	}
}
