package etcdraft

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/referee"
)

// The bounds within which things have to happen are made of these.
const (
	tick          = 100 * time.Millisecond // and a heartbeat with each
	electionTicks = 10
	timeout       = electionTicks * tick // without a heartbeat for once to twice as long a follower wants an election
	port          = 2380
)

// What a datagram is, by its first byte.
const (
	isMessage  = 'm' // of the protocol
	isProposal = 'p' // of a client: a value
	isPromise  = 'a' // to a client: the index of its value, a space, and the value
)

// features are what of the protocol is switched on.
type features struct{ checkQuorum, preVote bool }

// node is a member of a cluster. What is in it, except for the status, is what survives a power cut.
type node struct {
	name     string
	id       uint64
	host     *gosimnet.Host
	disk     *raft.MemoryStorage
	features features
	peers    map[uint64]net.Addr
	referee  *referee.Referee

	mu      sync.Mutex
	status  raft.BasicStatus
	started time.Time // when it last got power: it ticks at this time and whole ticks
	starts  int       // how often it has got power
	left    time.Time // when it last ceased to lead
}

func (n *node) leads() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.status.RaftState == raft.StateLeader
}

func (n *node) term() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.status.GetTerm()
}

func (n *node) leftOffice() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.left
}

// nextCheck is when the node, elected at a time, next checks whether it reaches a quorum: with every tenth tick
// from then.
func (n *node) nextCheck(elected time.Time) time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	check := n.started.Add(elected.Sub(n.started).Truncate(tick))
	for !check.After(time.Now()) {
		check = check.Add(timeout)
	}
	return check
}

// run is the node's software from power-on to power-off.
func (n *node) run(ctx context.Context) error {
	socket, err := n.host.ListenPacket("udp", fmt.Sprint(":", port))
	if err != nil {
		return err
	}
	defer socket.Close()
	rn, err := raft.NewRawNode(&raft.Config{
		ID: n.id, Storage: n.disk, ElectionTick: electionTicks, HeartbeatTick: 1, MaxSizePerMsg: 4 << 10, MaxInflightMsgs: 64,
		CheckQuorum: n.features.checkQuorum, PreVote: n.features.preVote,
		Logger: &raft.DefaultLogger{Logger: log.New(io.Discard, "", 0)},
	})
	if err != nil {
		return err
	}
	n.start()
	defer n.publish(raft.BasicStatus{})
	l := loop{node: n, rn: rn, socket: socket, clients: map[string]net.Addr{}}
	for next := time.Now().Add(tick); ctx.Err() == nil; {
		if next, err = l.turn(next); err != nil {
			return err
		}
	}
	return nil
}

// startCount is how often the node has got power.
func (n *node) startCount() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.starts
}

func (n *node) start() {
	n.referee.Started(n.name)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.started = time.Now()
	n.starts++
}

// publish makes the status known, and the changes of office in it.
func (n *node) publish(now raft.BasicStatus) {
	n.mu.Lock()
	defer n.mu.Unlock()
	did, does := n.status.RaftState == raft.StateLeader, now.RaftState == raft.StateLeader
	if does && !did {
		n.referee.Elected(n.name, now.GetTerm())
	}
	if did && !does {
		n.left = time.Now()
	}
	n.status = now
}

// loop is a node while it has power.
type loop struct {
	*node
	rn      *raft.RawNode
	socket  net.PacketConn
	clients map[string]net.Addr // by what they have proposed
	buf     [1 << 16]byte
}

// turn waits for a datagram or the next tick, and does what follows from it.
func (l *loop) turn(tickAt time.Time) (next time.Time, err error) {
	l.socket.SetReadDeadline(tickAt)
	n, from, err := l.socket.ReadFrom(l.buf[:])
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		l.rn.Tick()
		tickAt = tickAt.Add(tick)
	case err != nil:
		return tickAt, err
	default:
		l.receive(l.buf[:n], from)
	}
	for l.rn.HasReady() {
		ready := l.rn.Ready()
		if err := l.handle(ready); err != nil {
			return tickAt, err
		}
		l.rn.Advance(ready)
	}
	l.publish(l.rn.BasicStatus())
	return tickAt, nil
}

// receive passes a datagram on. The protocol does not mind what it refuses: that is as if it were lost.
func (l *loop) receive(b []byte, from net.Addr) {
	switch b[0] {
	case isProposal:
		value := string(b[1:])
		l.clients[value] = from
		_ = l.rn.Propose([]byte(value))
	case isMessage:
		var m raftpb.Message
		if proto.Unmarshal(b[1:], &m) == nil {
			_ = l.rn.Step(&m)
		}
	}
}

// handle does what the protocol wants done: write, then send, then apply.
func (l *loop) handle(ready raft.Ready) error {
	if !raft.IsEmptyHardState(ready.HardState) {
		if err := l.disk.SetHardState(ready.HardState); err != nil {
			return err
		}
	}
	if err := l.disk.Append(ready.Entries); err != nil {
		return err
	}
	for _, m := range ready.Messages {
		b, err := proto.Marshal(m)
		if err != nil {
			return err
		}
		if _, err := l.socket.WriteTo(append([]byte{isMessage}, b...), l.peers[m.GetTo()]); err != nil {
			return err
		}
	}
	for _, entry := range ready.CommittedEntries {
		if err := l.apply(entry.GetIndex(), string(entry.Data)); err != nil {
			return err
		}
	}
	return nil
}

// apply tells the referee of a committed entry, and the client whose it is. Those without a value are the
// protocol's own.
func (l *loop) apply(index uint64, value string) error {
	if value == "" {
		return nil
	}
	l.referee.Applied(l.name, index, value)
	client, waits := l.clients[value]
	if !waits {
		return nil
	}
	delete(l.clients, value)
	_, err := l.socket.WriteTo(fmt.Appendf(nil, "%c%d %s", isPromise, index, value), client)
	return err
}

// promise is what a node's promise to a client says; ok is false if it is about another value.
func promise(b []byte, value string) (index uint64, ok bool) {
	number, about, _ := strings.Cut(string(b[1:]), " ")
	if b[0] != isPromise || about != value {
		return 0, false
	}
	_, err := fmt.Sscan(number, &index)
	return index, err == nil
}
