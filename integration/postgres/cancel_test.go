package postgres

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

const software = "jackc/pgx v5.13.0 with jeroenrinzema/psql-wire v0.20.0"

// literally looks a name up by leaving it to the dialer.
func literally(_ context.Context, host string) ([]string, error) { return []string{host}, nil }

// dialer dials from the host "shop". Requests to cancel, for which pgx dials the address of a connection that it has,
// and not the name of a host, go 100 ns later: pgx makes them in goroutines of their own, and if one of these dialled
// at the same instant as the pool does, it would be chance which of the two got which port.
func dialer(n *gosimnet.Simnet) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if _, err := netip.ParseAddrPort(address); err == nil {
			time.Sleep(100 * time.Nanosecond)
		}
		return n.Host("shop").DialContext(ctx, network, address)
	}
}

// onCancel makes what acts for a connection when a context ends. Nil is pgx's default.
type onCancel func(*pgconn.PgConn) ctxwatch.Handler

// connect connects the host "shop" to the database.
func connect(t *testing.T, n *gosimnet.Simnet, url string, onCancel onCancel) (*pgx.Conn, error) {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.DialFunc, config.LookupFunc = dialer(n), literally
	if onCancel != nil {
		config.BuildContextWatcherHandler = onCancel
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err == nil {
		t.Cleanup(func() { conn.Close(context.Background()) })
	}
	return conn, err
}

// connected is connect where nothing goes wrong, and what the server noted meanwhile is forgotten.
func connected(t *testing.T, n *gosimnet.Simnet, d *database, onCancel onCancel) *pgx.Conn {
	t.Helper()
	conn, err := connect(t, n, "postgres://user@db/shop?sslmode=disable", onCancel)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	d.forget()
	return conn
}

// sleepASecond makes a query that takes a minute, with a context that ends after a second.
func sleepASecond(t *testing.T, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := conn.Exec(ctx, "select pg_sleep(60)")
	return err
}

// withCancelRequest is the handler that asks the server to end the query, and waits three seconds for the answer.
func withCancelRequest(conn *pgconn.PgConn) ctxwatch.Handler {
	return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: 3 * time.Second}
}

// Pull request 1894 of jackc/pgx: a context that ends does not cost the connection. The request to cancel goes over a
// second connection, and the answer, the server's own error, comes over the first. Then pgx waits another 100 ms,
// lest the request meet the next query: issue 2478.
func TestCancelRequestEndsTheQueryAndKeepsTheConnection(t *testing.T) {
	scenario.Run(t, scenario.Scenario{Software: software, Repeats: true,
		Shows: "a query cancelled over a second connection: the server's own error, and the connection is kept",
	}, func(t *testing.T, n *gosimnet.Simnet) {
		d := newDatabase(n, "db")
		conn := connected(t, n, d, withCancelRequest)
		watch := scenario.StartClock()
		err := sleepASecond(t, conn)
		var said *pgconn.PgError
		if !errors.As(err, &said) || said.Code != "57014" {
			t.Errorf("the query ends with %v, want the server's error 57014, query_canceled", err)
		}
		watch.At(t, "the error", time.Second+4*latency+100*time.Millisecond)
		var pid string
		err = conn.QueryRow(t.Context(), "select pg_backend_pid()", pgx.QueryExecModeSimpleProtocol).Scan(&pid)
		if pid != "1" || err != nil {
			t.Errorf("the next query: %q, %v; want the answer of session 1", pid, err)
		}
		d.want(t,
			entry{latency, "1: select pg_sleep(60)"},
			entry{time.Second + 3*latency, "1: cancelled"},
			entry{time.Second + 3*latency, "cancel 1"},
			entry{time.Second + 5*latency + 100*time.Millisecond, "1: select pg_backend_pid()"},
		)
	})
}

// By default the end of a context costs the connection: the caller gets its error at once, and pgx sends a request to
// cancel, so that the query does not live on as a zombie (issue 659 of jackc/pgx), says farewell, and waits for the
// server's end of the connection, so that the server sees no reset (issue 2584, which v5.7.1 has).
func TestEndOfContextClosesTheConnection(t *testing.T) {
	scenario.Run(t, scenario.Scenario{Software: software, Repeats: true,
		Shows: "a context's end: the error at that instant; the query cancelled and the connection closed in the background",
	}, func(t *testing.T, n *gosimnet.Simnet) {
		d := newDatabase(n, "db")
		conn := connected(t, n, d, nil)
		watch := scenario.StartClock()
		if err := sleepASecond(t, conn); !errors.Is(err, context.DeadlineExceeded) || !pgconn.Timeout(err) {
			t.Errorf("the query ends with %v, want %v", err, context.DeadlineExceeded)
		}
		watch.At(t, "the error", time.Second)
		if !conn.IsClosed() {
			t.Error("the connection is open")
		}
		<-conn.PgConn().CleanupDone()
		watch.At(t, "the end in the background", time.Second+6*latency)
		d.want(t,
			entry{latency, "1: select pg_sleep(60)"},
			entry{time.Second + 3*latency, "1: cancelled"},
			entry{time.Second + 3*latency, "cancel 1"},
			entry{time.Second + 5*latency, "end of 1"},
			entry{time.Second + 5*latency, "farewell of 1"},
		)
		resets := 0
		for e := range n.Trace() {
			if e.Kind == gosimnet.EventReset {
				resets++
			}
		}
		if resets != 0 {
			t.Errorf("%d connections were reset", resets)
		}
	})
}

// A request to cancel that cannot reach the server must not keep the caller, as it does with lib/pq (its issue 620).
// pgx gives up at the end of the context, or with CancelRequestContextWatcherHandler at the end of its DeadlineDelay,
// plus the 100 ms of issue 2478. The server knows nothing of it and works to the end: "the frontend has no direct way
// to tell whether a cancel request has succeeded", says PostgreSQL's documentation.
func TestCancelIntoAPartition(t *testing.T) {
	for _, c := range []struct {
		name     string
		onCancel onCancel
		err      time.Duration
	}{
		{"closing", nil, time.Second},
		{"asking", withCancelRequest, time.Second + 3*time.Second + 100*time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			scenario.Run(t, scenario.Scenario{Software: software, Repeats: true,
				Shows: "a cancel request into a partition (" + c.name + "): the caller goes on, and so does the query",
			}, func(t *testing.T, n *gosimnet.Simnet) {
				d := newDatabase(n, "db")
				conn := connected(t, n, d, c.onCancel)
				time.AfterFunc(500*time.Millisecond, func() {
					heal, err := n.Partition(gosimnet.DropPackets, []string{"shop"}, []string{"db"})
					if err != nil {
						t.Error(err)
						return
					}
					time.AfterFunc(30*time.Second, heal)
				})
				watch := scenario.StartClock()
				if err := sleepASecond(t, conn); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("the query ends with %v, want %v", err, context.DeadlineExceeded)
				}
				watch.At(t, "the error", c.err)
				<-conn.PgConn().CleanupDone()
				watch.At(t, "the end in the background", c.err+15*time.Second)
				watch.Until(2 * time.Minute)
				d.want(t,
					entry{latency, "1: select pg_sleep(60)"},
					entry{time.Minute + latency, "1: slept"},
					entry{time.Minute + latency, "end of 1"},
				)
			})
		})
	}
}
