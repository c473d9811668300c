package libp2p

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/config"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	basichost "github.com/libp2p/go-libp2p/p2p/host/basic"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/host/peerstore/pstoremem"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	libp2pquic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"
	"github.com/multiformats/go-multiaddr"
	"go.uber.org/goleak"

	"github.com/glycerine/gosimnet"
)

const (
	software  = "github.com/libp2p/go-libp2p v0.52.0, go-libp2p-pubsub v0.18.0"
	latency   = 10 * time.Millisecond
	roundTrip = 2 * latency
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// route is what a peer sends from.
type route struct{ ip net.IP }

func (r route) PreferredSourceIPForDestination(*net.UDPAddr) (net.IP, error) { return r.ip, nil }

// sockets are QUIC's connections over a host's sockets.
func sockets(t *testing.T, h *gosimnet.Host, key crypto.PrivKey) *quicreuse.ConnManager {
	t.Helper()
	addr := h.Addrs()[0]
	reset, token := must(config.PrivKeyToStatelessResetKey(key))(t), must(config.PrivKeyToTokenGeneratorKey(key))(t)
	cm := must(quicreuse.NewConnManager(reset, token,
		quicreuse.OverrideListenUDP(func(proto string, laddr *net.UDPAddr) (net.PacketConn, error) {
			return h.ListenPacket(proto, laddr.String())
		}),
		quicreuse.OverrideSourceIPSelector(func() (quicreuse.SourceIPSelector, error) {
			return route{addr.AsSlice()}, nil
		})))(t)
	t.Cleanup(func() { cm.Close() })
	return cm
}

// newPeer runs on the host of a name, for as long as the test runs.
func newPeer(t *testing.T, s *gosimnet.Simnet, name string) host.Host {
	t.Helper()
	h := s.Host(name)
	key, _ := must2(crypto.GenerateEd25519Key(rand.NewChaCha8(sha256.Sum256([]byte(name)))))(t)
	id := must(peer.IDFromPrivateKey(key))(t)
	store := must(pstoremem.NewPeerstore())(t)
	t.Cleanup(func() { store.Close() })
	store.AddPrivKey(id, key)
	store.AddPubKey(id, key.GetPublic())
	bus := eventbus.NewBus()
	sw := must(swarm.NewSwarm(id, store, bus))(t)
	tr := must(libp2pquic.NewTransport(key, sockets(t, h, key), nil, nil, &network.NullResourceManager{}))(t)
	if err := sw.AddTransport(tr); err != nil {
		t.Fatal(err)
	}
	if err := sw.Listen(address(h.Addrs()[0])); err != nil {
		t.Fatal(err)
	}
	p := must(basichost.NewHost(sw, &basichost.HostOpts{EventBus: bus}))(t)
	p.Start()
	t.Cleanup(func() { p.Close() })
	return p
}

func address(ip netip.Addr) multiaddr.Multiaddr {
	return multiaddr.StringCast(fmt.Sprintf("/ip4/%s/udp/4001/quic-v1", ip))
}

// connect connects one peer to another.
func connect(ctx context.Context, from, to host.Host) error {
	return from.Connect(ctx, peer.AddrInfo{ID: to.ID(), Addrs: to.Addrs()})
}

// must fails the test if there is an error.
func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// must2 is must for two values.
func must2[T, U any](v T, w U, err error) func(t *testing.T) (T, U) {
	return func(t *testing.T) (T, U) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v, w
	}
}

// clock measures virtual time.
type clock struct{ start time.Time }

func startClock() clock { return clock{time.Now()} }

// at fails the test unless so much time has passed, to the microsecond: every packet takes a few nanoseconds more
// than its latency.
func (c clock) at(t *testing.T, what string, want time.Duration) {
	t.Helper()
	if got := time.Since(c.start); got < want || got >= want+time.Microsecond {
		t.Errorf("%s after %v, want %v", what, got, want)
	}
}
