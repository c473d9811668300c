package mysql

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// setup is how long a new connection takes: the dial, the server's greeting, which is the answer to the end of the
// handshake, and the answer to the client's name.
const setup = 6 * latency

// idle makes a pool with two idle connections.
func idle(t *testing.T, d *database, db *sql.DB) {
	t.Helper()
	for range 2 {
		c, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	d.wantSessions(t, 2)
	d.forget()
}

// Connections that wait in the pool know nothing of the server's restart. The first statement on each is sent, and
// lost, and the driver must not repeat it, because it cannot know that: issue 983 of go-sql-driver/mysql, and 726,
// where its maintainers recommend SetConnMaxLifetime. So the program sees as many errors as there were idle
// connections, and each statement happens once or not at all.
func TestStaleConnectionsCostAnErrorEach(t *testing.T) {
	scenario.Run(t, scenario.Scenario{Software: software, Repeats: true,
		Shows: "pooled connections after the server's power cycle: ErrInvalidConn once each, no statement twice",
	}, func(t *testing.T, n *gosimnet.Simnet) {
		d := newDatabase(t, n)
		db := client(t, n, "")
		idle(t, d, db)
		for _, power := range []gosimnet.Alteration{gosimnet.SHUTDOWN, gosimnet.POWERON} {
			time.Sleep(time.Second)
			if _, err := n.AlterHost("db", power); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			watch := scenario.StartClock()
			if _, err := db.Exec("INSERT INTO orders VALUES (1)"); !errors.Is(err, mysql.ErrInvalidConn) {
				t.Errorf("INSERT on a stale connection: %v, want %v", err, mysql.ErrInvalidConn)
			}
			watch.At(t, "the reset", 2*latency)
		}
		d.wantHeard(t)
		d.forget()
		watch := scenario.StartClock()
		if _, err := db.Exec("INSERT INTO orders VALUES (1)"); err != nil {
			t.Errorf("INSERT on a new connection: %v", err)
		}
		watch.At(t, "the answer", setup+2*latency)
		d.wantHeard(t, statement{"INSERT INTO orders VALUES (1)", setup + latency})
		d.wantOrders(t, "after three attempts", 1)
	})
}

// A connection whose reset has arrived while it was idle takes nothing, so that the driver can return
// driver.ErrBadConn, which is for what is safe to do again, and database/sql takes the next connection, and in the
// end a new one, without a word to the program.
func TestConnectionsResetWhileIdleCostNothing(t *testing.T) {
	scenario.Run(t, scenario.Scenario{Software: software, Repeats: true,
		Shows: "pooled connections that were reset: the statement is carried out once, on a new connection, without an error",
	}, func(t *testing.T, n *gosimnet.Simnet) {
		d := newDatabase(t, n)
		db := client(t, n, "")
		idle(t, d, db)
		if resets, err := n.ResetConns("shop", "db"); resets != 2 || err != nil {
			t.Errorf("%d connections reset (%v), want 2", resets, err)
		}
		watch := scenario.StartClock()
		if _, err := db.Exec("INSERT INTO orders VALUES (1)"); err != nil {
			t.Errorf("INSERT: %v", err)
		}
		watch.At(t, "the answer", setup+2*latency)
		d.wantHeard(t, statement{"INSERT INTO orders VALUES (1)", setup + latency})
		d.wantSessions(t, 1)
		d.wantOrders(t, "after the resets", 1)
	})
}

// A connection that breaks after a statement was sent must not make anybody send it again: "database/sql: retry logic
// is unsafe" is issue 11978 of golang/go, whose example is an UPDATE that happens more than once, and pull request
// 302 of the driver ended it here. The program is told of an error although the statement has been carried out.
func TestStatementWhoseAnswerIsLostIsNotRepeated(t *testing.T) {
	scenario.Run(t, scenario.Scenario{Software: software, Repeats: true,
		Shows: "a reset on the way back of an INSERT's answer: ErrInvalidConn, carried out once",
	}, func(t *testing.T, n *gosimnet.Simnet) {
		d := newDatabase(t, n)
		db := client(t, n, "")
		idle(t, d, db)
		resetAfter(n, latency*3/2)
		const insert = "INSERT INTO orders SELECT COUNT(*) + 1 FROM orders" // twice would be two rows
		watch := scenario.StartClock()
		if _, err := db.Exec(insert); !errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, driver.ErrBadConn) {
			t.Errorf("INSERT: %v, want %v", err, mysql.ErrInvalidConn)
		}
		watch.At(t, "the error", latency*3/2)
		time.Sleep(time.Minute)
		d.wantHeard(t, statement{insert, latency})
		d.wantOrders(t, "after the reset", 1)
	})
}
