package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	wire "github.com/jeroenrinzema/psql-wire"
	"github.com/jeroenrinzema/psql-wire/codes"
	psqlerr "github.com/jeroenrinzema/psql-wire/errors"

	"github.com/glycerine/gosimnet"
)

// database is a server on a host of its own, which answers the few queries of these tests and keeps a diary.
type database struct {
	mu       sync.Mutex
	sessions map[string]*session // by the client's address, with the port
	begin    time.Time
	diary    []entry
}

// session is a connection that has been let in.
type session struct {
	pid, secret int32
	cancel      context.CancelFunc // of the query that runs
}

// entry is something that happened in the server, and how long after the last call of forget.
type entry struct {
	after time.Duration
	what  string
}

// newDatabase starts a server on a host. A power cut ends it, and the power starts it again.
func newDatabase(n *gosimnet.Simnet, name string) *database {
	d := &database{begin: time.Now()}
	host := n.Host(name)
	host.Run(func(ctx context.Context) error { return d.serve(ctx, host) })
	return d
}

// serve is the server's software, until ctx ends.
func (d *database) serve(ctx context.Context, host *gosimnet.Host) error {
	d.boot()
	listener, err := host.Listen("tcp", ":5432")
	if err != nil {
		return err
	}
	server, err := wire.NewServer(d.parse(ctx), wire.BackendKeyData(d.letIn), wire.CancelRequest(d.cancel),
		wire.TerminateConn(d.terminated), wire.CloseConn(d.closed), wire.Logger(slog.New(slog.DiscardHandler)),
		wire.GlobalParameters(wire.Parameters{"standard_conforming_strings": "on"}))
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	return server.Serve(batching{listener})
}

// boot forgets what a power cut makes a server forget.
func (d *database) boot() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sessions = map[string]*session{}
}

// letIn gives a session its process number and the secret that a cancel request must show. The number is that of the
// client's connection, the first that the client has made being 1, because it is chance which of two that come at one
// instant is seen first here.
func (d *database) letIn(ctx context.Context) (pid, secret int32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	client := wire.RemoteAddress(ctx)
	pid = int32(client.(*net.TCPAddr).Port) - 49151
	s := &session{pid: pid, secret: 1000 * pid}
	d.sessions[client.String()] = s
	d.note("session %d", s.pid)
	return s.pid, s.secret
}

// cancel is the arrival of a cancel request, over a connection of its own.
func (d *database) cancel(_ context.Context, pid, secret int32) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.sessions {
		if s.pid == pid && s.secret == secret {
			d.note("cancel %d", pid)
			if s.cancel != nil {
				s.cancel()
			}
			return nil
		}
	}
	d.note("cancel of an unknown session")
	return nil
}

// terminated is the arrival of a client's farewell.
func (d *database) terminated(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.note("farewell of %d", d.session(ctx).pid)
	return nil
}

// closed is the end of a session.
func (d *database) closed(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.session(ctx); s != nil {
		d.note("end of %d", s.pid)
		delete(d.sessions, wire.RemoteAddress(ctx).String())
	}
	return nil
}

// session is the one that ctx belongs to, or nil if the server has been started since. d.mu is held.
func (d *database) session(ctx context.Context) *session {
	return d.sessions[wire.RemoteAddress(ctx).String()]
}

// parse understands the queries of these tests, until the server's power ends.
func (d *database) parse(power context.Context) wire.ParseFn {
	return func(_ context.Context, query wire.Query) (wire.PreparedStatements, error) {
		var run func(ctx context.Context, s *session, out wire.DataWriter) error
		switch query.Query {
		case "-- ping":
			run = func(_ context.Context, _ *session, out wire.DataWriter) error { return out.Empty() }
		case "select pg_backend_pid()":
			run = func(_ context.Context, s *session, out wire.DataWriter) error {
				return one(out, strconv.Itoa(int(s.pid)))
			}
		case "select pg_is_in_recovery()":
			run = func(_ context.Context, _ *session, out wire.DataWriter) error { return one(out, "f") }
		case "select pg_sleep(60)":
			run = d.sleep
		default:
			return nil, fmt.Errorf("unknown query %q", query.Query)
		}
		handle := func(ctx context.Context, out wire.DataWriter, _ []wire.Parameter) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(power, cancel)()
			return run(ctx, d.begun(ctx, query.Query, cancel), out)
		}
		columns := wire.Columns{{Name: "answer", Oid: pgtype.TextOID, Width: -1}}
		return wire.Prepared(wire.NewStatement(handle, wire.WithColumns(columns))), nil
	}
}

// begun notes a query that begins, and how to cancel it.
func (d *database) begun(ctx context.Context, query string, cancel context.CancelFunc) *session {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.session(ctx)
	s.cancel = cancel
	d.note("%d: %s", s.pid, query)
	return s
}

// one answers with a single row.
func one(out wire.DataWriter, answer string) error {
	if err := out.Row([]any{answer}); err != nil {
		return err
	}
	return out.Complete("SELECT 1")
}

// sleep takes a minute, or until it is cancelled.
func (d *database) sleep(ctx context.Context, s *session, out wire.DataWriter) error {
	select {
	case <-time.After(time.Minute):
		d.noteNow("%d: slept", s.pid)
		return one(out, "")
	case <-ctx.Done():
		d.noteNow("%d: cancelled", s.pid)
		return psqlerr.WithCode(errors.New("canceling statement due to user request"), codes.QueryCanceled)
	}
}

// note writes into the diary. d.mu is held.
func (d *database) note(format string, args ...any) {
	d.diary = append(d.diary, entry{time.Since(d.begin).Truncate(time.Microsecond), fmt.Sprintf(format, args...)})
}

func (d *database) noteNow(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.note(format, args...)
}

// forget begins a new diary.
func (d *database) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.begin, d.diary = time.Now(), nil
}

// want checks everything that has happened since the last call of forget. The order of what happened at one instant
// is that of words.
func (d *database) want(t *testing.T, want ...entry) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	got := slices.SortedFunc(slices.Values(d.diary), func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.after, b.after), cmp.Compare(a.what, b.what))
	})
	if !slices.Equal(got, want) {
		t.Errorf("the server's diary:\n  %v\nwant:\n  %v", got, want)
	}
}
