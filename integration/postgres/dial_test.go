package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// blackhole is a host that answers nobody.
func blackhole(t *testing.T, n *gosimnet.Simnet, name string) {
	t.Helper()
	n.Host(name)
	if _, err := n.AlterHost(name, gosimnet.ISOLATE); err != nil {
		t.Fatal(err)
	}
}

// connect_timeout is each host's, as with libpq: pull request 125 of jackc/pgconn, before which a first host that did
// not answer left no time for the others. PostgreSQL's documentation says: "This timeout applies separately to each
// host name or IP address."
func TestConnectTimeoutIsForEachHost(t *testing.T) {
	scenario.Run(t, scenario.Scenario{Software: software, Repeats: true,
		Shows: "a dial into one blackhole and into two: connect_timeout counts for each host",
	}, func(t *testing.T, n *gosimnet.Simnet) {
		blackhole(t, n, "hole")
		blackhole(t, n, "pit")
		d := newDatabase(n, "db")
		watch := scenario.StartClock()
		conn, err := connect(t, n, "postgres://user@hole,db/shop?sslmode=disable&connect_timeout=5", nil)
		if err != nil {
			t.Fatal(err)
		}
		watch.At(t, "the connection", 5*time.Second+setup)
		d.want(t, entry{5*time.Second + setup - latency, "session 2"})
		conn.Close(t.Context())

		watch = scenario.StartClock()
		_, err = connect(t, n, "postgres://user@hole,pit/shop?sslmode=disable&connect_timeout=5", nil)
		var failed *pgconn.ConnectError
		if !errors.As(err, &failed) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("two blackholes: %v, want a ConnectError around %v", err, context.DeadlineExceeded)
		}
		watch.At(t, "the error", 10*time.Second)
	})
}

// A primary is not preferred, the standby that would be does not answer, and the primary, which is reached again
// after that, has a connect_timeout of its own: issue 2172 of jackc/pgx, "Connection timeout wrongly applied to
// non-preferred hosts". v5.7.1 has it, and returns a time-out here.
func TestBlackholedStandbyFallsBackToThePrimary(t *testing.T) {
	scenario.Run(t, scenario.Scenario{Software: software, Repeats: true,
		Shows: "target_session_attrs=prefer-standby, the standby a blackhole: the primary after one connect_timeout",
	}, func(t *testing.T, n *gosimnet.Simnet) {
		blackhole(t, n, "standby")
		d := newDatabase(n, "primary")
		const look = 2 * latency
		watch := scenario.StartClock()
		if _, err := connect(t, n, "postgres://user@primary,standby/shop?sslmode=disable&connect_timeout=1"+
			"&target_session_attrs=prefer-standby", nil); err != nil {
			t.Error(err)
		}
		again := setup + look + time.Second
		watch.At(t, "the connection", again+setup+look)
		d.want(t,
			entry{setup - latency, "session 1"},
			entry{setup + latency, "1: select pg_is_in_recovery()"},
			entry{setup + look + latency, "end of 1"},
			entry{again + setup - latency, "session 3"},
			entry{again + setup + latency, "3: select pg_is_in_recovery()"},
		)
	})
}

// A server that hangs still has a kernel, which accepts connections for it. connect_timeout counts until the session
// is ready, not until the dial has succeeded. PostgreSQL's documentation calls it the "maximum time to wait while
// connecting".
func TestConnectTimeoutCoversTheServersAnswer(t *testing.T) {
	scenario.Run(t, scenario.Scenario{Software: software, Repeats: true,
		Shows: "a server that accepts and says nothing: a time-out after connect_timeout all the same",
	}, func(t *testing.T, n *gosimnet.Simnet) {
		listener, err := n.Host("db").Listen("tcp", ":5432")
		if err != nil {
			t.Fatal(err)
		}
		watch := scenario.StartClock()
		_, err = connect(t, n, "postgres://user@db/shop?sslmode=disable&connect_timeout=2", nil)
		if !errors.Is(err, context.DeadlineExceeded) || !pgconn.Timeout(err) {
			t.Errorf("a silent server: %v, want a time-out", err)
		}
		watch.At(t, "the error", 2*time.Second)
		if c, err := listener.Accept(); err != nil || c.Close() != nil {
			t.Errorf("the dial had not succeeded: %v", err)
		}
	})
}
