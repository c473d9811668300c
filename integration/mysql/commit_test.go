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

// pause is how long order waits after the last answer. Its acknowledgement arrives meanwhile.
const pause = time.Second

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
	time.Sleep(pause)
	d.wantOrders(t, "before COMMIT", nil...)
	d.forget()
	return tx
}

// resetAfter resets all connections between client and server, some time from now.
func resetAfter(n *gosimnet.Simnet, d time.Duration) {
	time.AfterFunc(d, func() { n.ResetConns("shop", "db") })
}

// A connection that is known to be broken when COMMIT is called carries nothing, and the driver says so by
// driver.ErrBadConn, which it keeps for what is safe to do again (its pull request 302, "stop repeated queries").
// Although it is safe, database/sql does not do it again: a transaction is bound to its connection.
func TestResetBeforeCommitRollsBack(t *testing.T) {
	scenario.Run(t, scenario.Scenario{Software: software, Repeats: true,
		Shows: "a reset before COMMIT: rolled back, and driver.ErrBadConn tells that nothing was sent",
	}, func(t *testing.T, n *gosimnet.Simnet) {
		d := newDatabase(t, n)
		db := client(t, n, "")
		tx := order(t, d, db)
		n.ResetConns("shop", "db")
		watch := scenario.StartClock()
		if err := tx.Commit(); !errors.Is(err, driver.ErrBadConn) {
			t.Errorf("COMMIT: %v, want %v", err, driver.ErrBadConn)
		}
		watch.At(t, "the error", 0)
		time.Sleep(time.Minute)
		d.wantHeard(t)
		d.wantSessions(t, 0)
		d.wantOrders(t, "after the reset", nil...)
	})
}

// "Commit() function can not distinguish whether the transaction has been sent": issue 1226 of go-sql-driver/mysql. A
// reset that overtakes COMMIT on its way, and one that overtakes its answer, give the same error,
// mysql.ErrInvalidConn. Only the server's table tells the two apart. Nothing is done again: the driver and
// database/sql cannot know either.
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
				watch := scenario.StartClock()
				if err := tx.Commit(); !errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, driver.ErrBadConn) {
					t.Errorf("COMMIT: %v, want %v", err, mysql.ErrInvalidConn)
				}
				watch.At(t, "the error", c.after)
				time.Sleep(time.Minute)
				d.wantHeard(t, c.heard...)
				d.wantSessions(t, 0)
				d.wantOrders(t, "after the reset", c.orders...)
			})
		})
	}
}

// What a program has written before it closes a connection, the kernel goes on sending. So a COMMIT that the driver
// has given up, after its readTimeout, is carried out when the network heals, while the program believes that it has
// failed. Retransmissions come 200, 400 and 800 ms, 1.6, 3.2 and 6.4 s after the first. That a time-out must not
// count as a rollback is why the driver does not return driver.ErrBadConn for it: its issue 582.
func TestCommitIntoAPartitionIsCarriedOutWhenItHeals(t *testing.T) {
	scenario.Run(t, scenario.Scenario{Software: software, Repeats: true,
		Shows: "COMMIT into a partition: an error after readTimeout, committed seconds later when it heals",
	}, func(t *testing.T, n *gosimnet.Simnet) {
		d := newDatabase(t, n)
		db := client(t, n, "?readTimeout=2s")
		tx := order(t, d, db)
		heal, err := n.Partition(gosimnet.DropPackets, []string{"shop"}, []string{"db"})
		if err != nil {
			t.Fatal(err)
		}
		watch := scenario.StartClock()
		if err := tx.Commit(); !errors.Is(err, mysql.ErrInvalidConn) {
			t.Errorf("COMMIT: %v, want %v", err, mysql.ErrInvalidConn)
		}
		watch.At(t, "the error", 2*time.Second)
		watch.Until(4 * time.Second)
		heal()
		watch.Until(6400 * time.Millisecond)
		d.wantOrders(t, "before the retransmission", nil...)
		watch.Until(6400*time.Millisecond + 2*latency)
		d.wantHeard(t, statement{"COMMIT", 6400*time.Millisecond + latency})
		d.wantOrders(t, "after the retransmission", 1)
		watch.Until(time.Minute)
		d.wantSessions(t, 0)
	})
}

// A client that loses its power takes its transaction with it, but the server learns of that only from keep-alive
// probes: after 15 s without a sign of life, nine of them, 15 s apart, as package net has set them by default since
// Go 1.23. So long the transaction, and with a real server its locks, stay. It is go-sql-driver/mysql's issue 257,
// seen from the server.
func TestPowerCutOfTheClientRollsBackWhenKeepAlivesGiveUp(t *testing.T) {
	scenario.Run(t, scenario.Scenario{Software: software, Repeats: true,
		Shows: "the client's power cut before COMMIT: the server keeps the transaction for 150 s",
	}, func(t *testing.T, n *gosimnet.Simnet) {
		d := newDatabase(t, n)
		tx := order(t, d, client(t, n, ""))
		watch := scenario.StartClock()
		if _, err := n.AlterHost("shop", gosimnet.SHUTDOWN); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); !errors.Is(err, driver.ErrBadConn) {
			t.Errorf("COMMIT without power: %v, want %v", err, driver.ErrBadConn)
		}
		end := 150*time.Second - (pause - latency) // the last sign of life was the acknowledgement
		watch.Until(end - time.Millisecond)
		d.wantSessions(t, 1)
		watch.Until(end + time.Millisecond)
		d.wantSessions(t, 0)
		d.wantHeard(t)
		d.wantOrders(t, "after the power cut", nil...)
	})
}

// The server has committed, its answer is lost, and then its power is. The client's kernel, which has seen no
// acknowledgement either, sends again 200, 400 and 800 ms, 1.6 and 3.2 s after the first time, and the restarted
// server resets a connection that it does not know. The client then does what issue 1226 of go-sql-driver/mysql comes
// down to: it looks, on a new connection, before it orders again.
func TestPowerCutOfTheServerAfterCommit(t *testing.T) {
	scenario.Run(t, scenario.Scenario{Software: software, Repeats: true,
		Shows: "the server's power cut after COMMIT: an error by the restarted server's reset, and the row is there",
	}, func(t *testing.T, n *gosimnet.Simnet) {
		d := newDatabase(t, n)
		db := client(t, n, "")
		tx := order(t, d, db)
		heal, err := n.CutLink(gosimnet.DropPackets, "db", "shop")
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, func() { n.AlterHost("db", gosimnet.SHUTDOWN) })
		time.AfterFunc(2*time.Second, func() {
			heal()
			n.AlterHost("db", gosimnet.POWERON)
		})
		watch := scenario.StartClock()
		if err := tx.Commit(); !errors.Is(err, mysql.ErrInvalidConn) {
			t.Errorf("COMMIT: %v, want %v", err, mysql.ErrInvalidConn)
		}
		watch.At(t, "the error", 3200*time.Millisecond+2*latency)
		var orders int
		if err := db.QueryRow("SELECT COUNT(*) FROM orders WHERE id = 1").Scan(&orders); err != nil || orders != 1 {
			t.Errorf("the client finds %d orders (%v), want its own", orders, err)
		}
		d.wantHeard(t, statement{"COMMIT", latency},
			statement{"SELECT COUNT(*) FROM orders WHERE id = 1", 3200*time.Millisecond + 9*latency})
		d.wantOrders(t, "after the power cut", 1)
	})
}
