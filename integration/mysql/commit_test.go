package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

const software = "go-sql-driver/mysql v1.10.1 with dolthub/go-mysql-server v0.20.0"

// client opens a pool on the host "shop", by the driver's hook for networks of one's own.
func client(t *testing.T, n *gosimnet.Simnet, options string) *sql.DB {
	t.Helper()
	mysql.RegisterDialContext("simnet", func(ctx context.Context, address string) (net.Conn, error) {
		return n.Host("shop").DialContext(ctx, "tcp", address)
	})
	t.Cleanup(func() { mysql.DeregisterDialContext("simnet") })
	db, err := sql.Open("mysql", "root@simnet(db:3306)/shop"+options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// order begins a transaction and puts an order into it. Nobody else sees it yet.
func order(t *testing.T, d *database, db *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("INSERT INTO orders VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	d.wantOrders(t, "before COMMIT", nil...)
	d.forget()
	return tx
}

// resetAfter resets all connections between client and server, some time from now.
func resetAfter(n *gosimnet.Simnet, d time.Duration) {
	time.AfterFunc(d, func() { n.ResetConns("shop", "db") })
}

// A connection that is known to be broken when COMMIT is called carries nothing, and the driver says so by
// driver.ErrBadConn, which it keeps for what is safe to do again (its pull request 302, "stop repeated queries"). Although it is
// safe, database/sql does not do it again: a transaction is bound to its connection.
func TestResetBeforeCommitRollsBack(t *testing.T) {
	scenario.Run(t, scenario.Scenario{Software: software, Repeats: true,
		Shows: "a reset before COMMIT: rolled back, and driver.ErrBadConn tells that nothing was sent",
	}, func(t *testing.T, n *gosimnet.Simnet) {
		d := newDatabase(t, n)
		db := client(t, n, "")
		tx := order(t, d, db)
		n.ResetConns("shop", "db")
		watch := start()
		if err := tx.Commit(); !errors.Is(err, driver.ErrBadConn) {
			t.Errorf("COMMIT: %v, want %v", err, driver.ErrBadConn)
		}
		watch.at(t, "the error", 0)
		time.Sleep(time.Minute)
		d.wantHeard(t)
		d.wantSessions(t, 0)
		d.wantOrders(t, "after the reset", nil...)
	})
}

// "Commit() function can not distinguish whether the transaction has been sent": issue 1226 of go-sql-driver/mysql. A reset that
// overtakes COMMIT on its way, and one that overtakes its answer, give the same error, mysql.ErrInvalidConn. Only the server's
// table tells the two apart. Nothing is done again: the driver and database/sql cannot know either.
func TestResetDuringCommitLeavesTheClientInDoubt(t *testing.T) {
	for _, c := range []struct {
		where  string
		after  time.Duration
		heard  []statement
		orders []int32
	}{
		{where: "on its way", after: latency / 2},
		{where: "answered", after: latency * 3 / 2, heard: []statement{{"COMMIT", latency}}, orders: []int32{1}},
	} {
		t.Run(c.where, func(t *testing.T) {
			scenario.Run(t, scenario.Scenario{Software: software, Repeats: true,
				Shows: "a reset with COMMIT " + c.where + ": the same error, whether rolled back or committed",
			}, func(t *testing.T, n *gosimnet.Simnet) {
				d := newDatabase(t, n)
				db := client(t, n, "")
				tx := order(t, d, db)
				resetAfter(n, c.after)
				watch := start()
				if err := tx.Commit(); !errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, driver.ErrBadConn) {
					t.Errorf("COMMIT: %v, want %v", err, mysql.ErrInvalidConn)
				}
				watch.at(t, "the error", c.after)
				time.Sleep(time.Minute)
				d.wantHeard(t, c.heard...)
				d.wantSessions(t, 0)
				d.wantOrders(t, "after the reset", c.orders...)
			})
		})
	}
}
