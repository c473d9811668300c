package mysql

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	sqle "github.com/dolthub/go-mysql-server"
	"github.com/dolthub/go-mysql-server/memory"
	"github.com/dolthub/go-mysql-server/server"
	"github.com/dolthub/go-mysql-server/sql"
	vitess "github.com/dolthub/vitess/go/mysql"

	"github.com/glycerine/gosimnet"
)

// database is a MySQL server on the host "db". Its tables are kept by an engine that outlives power cuts, as a disk
// does; its sessions are over when their connections are.
type database struct {
	engine   *sqle.Engine
	provider *memory.DbProvider

	mu       sync.Mutex
	begin    time.Time
	heard    []statement
	sessions int // open
}

// statement is what a session was told, and when, since the last call of forget.
type statement struct {
	query string
	after time.Duration
}

// newDatabase starts a server with an empty table of orders. A power cut ends it, and the power starts it again.
func newDatabase(t *testing.T, net *gosimnet.Simnet) *database {
	t.Helper()
	provider := memory.NewDBProvider(memory.NewDatabase("shop"))
	d := &database{engine: sqle.NewDefault(provider), provider: provider}
	t.Cleanup(func() { d.engine.Close() })
	d.query(t, "CREATE TABLE orders (id INT PRIMARY KEY)")
	d.forget()
	host := net.Host("db")
	host.Run(func(ctx context.Context) error { return d.serve(ctx, host) })
	return d
}

// serve is the server's software, until ctx ends.
func (d *database) serve(ctx context.Context, host *gosimnet.Host) error {
	listener, err := host.Listen("tcp", ":3306")
	if err != nil {
		return err
	}
	hear := func(h vitess.Handler) (vitess.Handler, error) { return ear{h, d}, nil }
	srv, err := server.NewServerWithHandler(server.Config{Listener: listener}, d.engine, sql.NewContext,
		memory.NewSessionBuilder(d.provider), nil, hear)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	return srv.Start()
}

// ear passes everything on to the server's own handler, and notes what goes by.
type ear struct {
	vitess.Handler
	d *database
}

func (e ear) NewConnection(c *vitess.Conn) {
	e.Handler.NewConnection(c)
	e.d.count(+1)
}

func (e ear) ConnectionClosed(c *vitess.Conn) {
	e.d.count(-1)
	e.Handler.ConnectionClosed(c)
}

func (e ear) ComQuery(ctx context.Context, c *vitess.Conn, query string, callback vitess.ResultSpoolFn) error {
	e.d.note(query)
	return e.Handler.ComQuery(ctx, c, query, callback)
}

func (d *database) note(query string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.heard = append(d.heard, statement{query, time.Since(d.begin).Truncate(time.Microsecond)})
}

func (d *database) count(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sessions += n
}

// forget makes a fresh start with what has been heard.
func (d *database) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.begin, d.heard = time.Now(), nil
}

// wantHeard checks what the server was told since the last call of forget, word by word, and when.
func (d *database) wantHeard(t *testing.T, want ...statement) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.heard, want) {
		t.Errorf("the server heard %v, want %v", d.heard, want)
	}
}

// wantSessions checks how many sessions the server has open.
func (d *database) wantSessions(t *testing.T, want int) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sessions != want {
		t.Errorf("the server has %d sessions, want %d", d.sessions, want)
	}
}

// query asks the engine itself, in a session of its own and without any network.
func (d *database) query(t *testing.T, query string) []sql.Row {
	t.Helper()
	ctx := sql.NewContext(context.Background(), sql.WithSession(memory.NewSession(sql.NewBaseSession(), d.provider)))
	ctx.SetCurrentDatabase("shop")
	_, rows, _, err := d.engine.Query(ctx, query)
	if err != nil {
		t.Fatal(err)
	}
	all, err := sql.RowIterToRows(ctx, rows)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// wantOrders checks what the table holds.
func (d *database) wantOrders(t *testing.T, when string, want ...int32) {
	t.Helper()
	rows := d.query(t, "SELECT id FROM orders ORDER BY id")
	var expected []sql.Row
	for _, id := range want {
		expected = append(expected, sql.Row{id})
	}
	if fmt.Sprint(rows) != fmt.Sprint(expected) {
		t.Errorf("%s the table holds %v, want %v", when, rows, expected)
	}
}
