package hashiraft

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/referee"
)

// The bounds within which things have to happen are made of these. They are raft's defaults.
const (
	heartbeat = time.Second            // without a heartbeat for so long a follower wants an election
	election  = time.Second            // an election that nobody wins is repeated after once to twice as long
	lease     = 500 * time.Millisecond // a leader that reaches no majority for so long steps down
)

// layer is how a node uses its host.
type layer struct {
	net.Listener
	host *gosimnet.Host
}

func (l layer) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	return l.host.DialTimeout("tcp", string(address), timeout)
}

// machine is the replicated state machine: it tells the referee what is applied.
type machine struct {
	node    string
	referee *referee.Referee
}

func (m machine) Apply(entry *raft.Log) any {
	m.referee.Applied(m.node, entry.Index, string(entry.Data))
	return nil
}

func (m machine) Snapshot() (raft.FSMSnapshot, error) { return nil, errors.New("no snapshots here") }
func (m machine) Restore(io.ReadCloser) error         { return errors.New("no snapshots here") }

// node is a member of a cluster: a host, a disk, and a raft while there is power.
type node struct {
	name    string
	host    *gosimnet.Host
	disk    disk
	preVote bool
	peers   []raft.Server
	referee *referee.Referee

	mu     sync.Mutex
	raft   *raft.Raft
	starts int       // how often it has started
	left   time.Time // when it last ceased to lead
}

// running is the node's raft, or nil when it has no power.
func (n *node) running() *raft.Raft {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.raft
}

func (n *node) leads() bool {
	r := n.running()
	return r != nil && r.State() == raft.Leader
}

func (n *node) term() uint64 {
	if r := n.running(); r != nil {
		return r.CurrentTerm()
	}
	return 0
}

// leftOffice is when the node last ceased to lead.
func (n *node) leftOffice() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.left
}

// run is the node's software from power-on to power-off.
func (n *node) run(ctx context.Context) error {
	listener, err := n.host.Listen("tcp", n.name+":7000")
	if err != nil {
		return err
	}
	log := hclog.NewNullLogger()
	transport := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: layer{listener, n.host}, MaxPool: 3, Timeout: time.Second, Logger: log,
	})
	defer transport.Close()
	store, err := n.disk.open()
	if err != nil {
		return err
	}
	defer n.disk.close()
	r, err := n.start(store, transport, log)
	if err != nil {
		return err
	}
	r.RegisterObserver(raft.NewObserver(nil, false, n.observe))
	n.become(r)
	defer n.become(nil)
	<-ctx.Done()
	return r.Shutdown().Error()
}

// start makes a raft of what is on the disk, and of the peers when that is nothing.
func (n *node) start(store store, transport raft.Transport, log hclog.Logger) (*raft.Raft, error) {
	cfg := raft.DefaultConfig()
	cfg.LocalID, cfg.Logger, cfg.PreVoteDisabled = raft.ServerID(n.name), log, !n.preVote
	cfg.HeartbeatTimeout, cfg.ElectionTimeout, cfg.LeaderLeaseTimeout = heartbeat, election, lease
	snapshots := raft.NewInmemSnapshotStore()
	old, err := raft.HasExistingState(store, store, snapshots)
	if err != nil {
		return nil, err
	}
	if !old {
		err := raft.BootstrapCluster(cfg, store, store, snapshots, transport, raft.Configuration{Servers: n.peers})
		if err != nil {
			return nil, err
		}
	}
	n.referee.Started(n.name)
	return raft.NewRaft(cfg, machine{n.name, n.referee}, store, store, snapshots, transport)
}

// observe sees, from within raft, each change of its state when it happens.
func (n *node) observe(o *raft.Observation) bool {
	state, ok := o.Data.(raft.RaftState)
	switch {
	case ok && state == raft.Leader:
		n.referee.Elected(n.name, o.Raft.CurrentTerm())
	case ok && state == raft.Follower:
		n.mu.Lock()
		n.left = time.Now()
		n.mu.Unlock()
	}
	return false
}

func (n *node) become(r *raft.Raft) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.raft = r
	if r != nil {
		n.starts++
	}
}

// started is how often the node has started.
func (n *node) started() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.starts
}
