package integration

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/glycerine/gosimnet"
)

// layer is how a raft node uses its host.
type layer struct {
	net.Listener
	host *gosimnet.Host
}

func (l layer) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	return l.host.DialTimeout("tcp", string(address), timeout)
}

// register is the replicated state machine: the values that were applied.
type register struct {
	mu     sync.Mutex
	values []string
}

func (r *register) Apply(entry *raft.Log) any {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.values = append(r.values, string(entry.Data))
	return nil
}

// applied is what the machine has seen.
func (r *register) applied() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.values)
}

func (r *register) Snapshot() (raft.FSMSnapshot, error) { return nil, errors.New("no snapshots here") }
func (r *register) Restore(io.ReadCloser) error         { return errors.New("no snapshots here") }

// member is one node of a cluster.
type member struct {
	*raft.Raft
	name  string
	state *register
}

// holds fails the test unless these values were applied, in this order.
func (m *member) holds(t *testing.T, want ...string) {
	t.Helper()
	if got := m.state.applied(); !slices.Equal(got, want) {
		t.Errorf("%s has %q, want %q", m.name, got, want)
	}
}

// cluster starts nodes on hosts n1, n2 and so on, with time-outs of 500 ms and a lease of 250 ms, and waits until there is a leader.
func cluster(t *testing.T, s *gosimnet.Simnet, size int, preVote bool) []*member {
	t.Helper()
	var servers []raft.Server
	for n := range size {
		name := fmt.Sprintf("n%d", n+1)
		servers = append(servers, raft.Server{ID: raft.ServerID(name), Address: raft.ServerAddress(name + ":7000")})
	}
	var members []*member
	for _, server := range servers {
		members = append(members, startMember(t, s, server, servers, preVote))
	}
	leader(t, members...)
	time.Sleep(time.Second) // until all know the leader
	return members
}

func startMember(t *testing.T, s *gosimnet.Simnet, self raft.Server, servers []raft.Server, preVote bool) *member {
	t.Helper()
	host := s.Host(string(self.ID))
	log := hclog.NewNullLogger()
	transport := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: layer{listen(t, host, host.Name()+":7000"), host}, MaxPool: 3, Timeout: time.Second, Logger: log,
	})
	cfg := raft.DefaultConfig()
	cfg.LocalID, cfg.Logger, cfg.PreVoteDisabled = self.ID, log, !preVote
	cfg.HeartbeatTimeout, cfg.ElectionTimeout, cfg.LeaderLeaseTimeout = 500*time.Millisecond, 500*time.Millisecond, 250*time.Millisecond
	store := raft.NewInmemStore()
	m := &member{name: host.Name(), state: &register{}}
	if err := raft.BootstrapCluster(cfg, store, store, raft.NewInmemSnapshotStore(), transport, raft.Configuration{Servers: servers}); err != nil {
		t.Fatal(err)
	}
	m.Raft = must(raft.NewRaft(cfg, m.state, store, store, raft.NewInmemSnapshotStore(), transport))(t)
	t.Cleanup(func() {
		m.Shutdown().Error()
		transport.Close()
	})
	return m
}

// leader waits for one of the members to lead.
func leader(t *testing.T, members ...*member) *member {
	t.Helper()
	for range 10_000 {
		for _, m := range members {
			if m.State() == raft.Leader {
				return m
			}
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("no leader within ten seconds")
	return nil
}

// others are the members but one.
func others(members []*member, but *member) []*member {
	return slices.DeleteFunc(slices.Clone(members), func(m *member) bool { return m == but })
}

func apply(t *testing.T, m *member, value string) {
	t.Helper()
	if err := m.Apply([]byte(value), 5*time.Second).Error(); err != nil {
		t.Errorf("%s applies %q: %v", m.name, value, err)
	}
}

// deafen cuts what others send to a host.
func deafen(t *testing.T, s *gosimnet.Simnet, host string) (heal func()) {
	t.Helper()
	heal, err := s.CutLink(gosimnet.DropPackets, "", host)
	if err != nil {
		t.Fatal(err)
	}
	return heal
}

// A leader that hears nothing steps down when its lease is over, the others elect another, and what was applied
// meanwhile reaches the old one after the network is healed.
func TestRaftDeafLeaderIsReplaced(t *testing.T) {
	bubble(t, hop(latency), func(t *testing.T, s *gosimnet.Simnet) {
		members := cluster(t, s, 3, true)
		old := leader(t, members...)
		apply(t, old, "before")
		heal := deafen(t, s, old.name)
		start := startClock()
		for old.State() == raft.Leader && time.Since(start.start) < time.Minute {
			time.Sleep(time.Millisecond)
		}
		start.within(t, "the leader stepped down", 100*time.Millisecond, 300*time.Millisecond)
		if err := old.Apply([]byte("lost"), time.Second).Error(); !errors.Is(err, raft.ErrNotLeader) {
			t.Errorf("the old leader applies: %v, want ErrNotLeader", err)
		}
		next := leader(t, others(members, old)...)
		start.within(t, "a new leader", 500*time.Millisecond, 3*time.Second)
		apply(t, next, "after")
		heal()
		time.Sleep(10 * time.Second)
		for _, m := range members {
			m.holds(t, "before", "after")
		}
	})
}

// A follower that hears nothing asks for votes again and again. With the pre-vote it disturbs nobody; without, its terms
// depose the leader when it is heard again.
func TestRaftDeafFollower(t *testing.T) {
	for _, preVote := range []bool{true, false} {
		t.Run(fmt.Sprintf("prevote=%v", preVote), func(t *testing.T) {
			bubble(t, hop(latency), func(t *testing.T, s *gosimnet.Simnet) {
				members := cluster(t, s, 3, preVote)
				first := leader(t, members...)
				deaf := others(members, first)[0]
				term := first.CurrentTerm()
				heal, err := s.Partition(gosimnet.DropPackets, []string{deaf.name}, []string{first.name, others(members, first)[1].name})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(6 * time.Second)
				climbed := deaf.CurrentTerm() - term
				heal()
				time.Sleep(10 * time.Second)
				rose := leader(t, members...).CurrentTerm() - term
				if preVote && (climbed != 0 || rose != 0) {
					t.Errorf("the term rose by %d at the follower, and by %d in the cluster, want not at all", climbed, rose)
				}
				if !preVote && (climbed < 4 || rose < climbed) {
					t.Errorf("the term rose by %d at the follower, and by %d in the cluster, want by 4 and by more", climbed, rose)
				}
			})
		})
	}
}

// Power cuts take the leaders one after the other; a majority of five goes on.
func TestRaftSurvivesPowerCuts(t *testing.T) {
	bubble(t, hop(latency), func(t *testing.T, s *gosimnet.Simnet) {
		alive := cluster(t, s, 5, true)
		for range 2 {
			now := leader(t, alive...)
			apply(t, now, now.name)
			time.Sleep(time.Second)
			if _, err := s.AlterHost(now.name, gosimnet.SHUTDOWN); err != nil {
				t.Fatal(err)
			}
			alive = others(alive, now)
		}
		last := leader(t, alive...)
		apply(t, last, last.name)
		time.Sleep(time.Second)
		want := last.state.applied()
		if len(want) != 3 || want[2] != last.name {
			t.Errorf("the last leader, %s, has %q, want the names of three leaders, its own the last", last.name, want)
		}
		for _, m := range alive {
			m.holds(t, want...)
		}
	})
}
