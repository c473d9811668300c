package hashiraft

import (
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
)

// store is what raft keeps its log, its term and its vote in.
type store interface {
	raft.LogStore
	raft.StableStore
}

// disk is where a node keeps what survives a power cut. It is opened at every start, and closed at every end.
type disk interface {
	open() (store, error)
	close() error
}

// disks makes a node's disk.
type disks func(t *testing.T, node string) disk

// memory is a disk in memory: raft's own store for tests, which the test holds while the node has no power.
type memory struct{ store *raft.InmemStore }

func inMemory(*testing.T, string) disk { return memory{raft.NewInmemStore()} }

func (m memory) open() (store, error) { return m.store, nil }
func (m memory) close() error         { return nil }

// forgetful is a disk that keeps nothing: an installation that was lost, or a file system in memory.
type forgetful struct{}

func (forgetful) open() (store, error) { return raft.NewInmemStore(), nil }
func (forgetful) close() error         { return nil }

// bolt is a database in a file. It need not sync: the power that is cut is not the machine's.
type bolt struct {
	path string
	db   *raftboltdb.BoltStore
}

func inBolt(t *testing.T, node string) disk {
	return &bolt{path: filepath.Join(t.TempDir(), node+".db")}
}

func (b *bolt) open() (_ store, err error) {
	b.db, err = raftboltdb.New(raftboltdb.Options{Path: b.path, NoSync: true})
	return b.db, err
}

func (b *bolt) close() error { return b.db.Close() }
