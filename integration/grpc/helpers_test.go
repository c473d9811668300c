package grpc

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// TestMain fails if anything is left running after all tests.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	software  = "google.golang.org/grpc v1.85.0"
	latency   = 10 * time.Millisecond // one way
	roundTrip = 2 * latency
)

// windowsRace is why runs of streams that are held back may differ in the sizes of what is written.
const windowsRace = "messages and updates of windows are handed to a transport's writer by several goroutines, as they happen " +
	"to be scheduled; with GOMAXPROCS=1, as here, nearly all runs are alike"

// roundRobinStarts is why runs with several backends differ.
const roundRobinStarts = "round_robin begins at a backend drawn from math/rand/v2, which has no seed: compare outcomes and times"

// backend is a server of the gRPC project's own test service, with health checking. Unary calls go to its handle
// function, or are answered at once; all answers name the host. Streams send back what they get, after its hear
// function has seen it, and tell its stream function of their end.
type backend struct {
	pb.UnimplementedTestServiceServer
	*grpc.Server
	host   string
	health *health.Server
	handle func(ctx context.Context, body string) error
	hear   func(body string)
	stream func(err error)
}

// serve starts a backend on port 80 of a host, for as long as the test runs.
func serve(t *testing.T, h *gosimnet.Host, options ...grpc.ServerOption) *backend {
	t.Helper()
	b := newBackend(h.Name(), options...)
	go b.Serve(scenario.Listen(t, h, ":80"))
	t.Cleanup(b.Stop)
	return b
}

func newBackend(host string, options ...grpc.ServerOption) *backend {
	b := &backend{host: host, Server: grpc.NewServer(options...), health: health.NewServer(),
		handle: func(context.Context, string) error { return nil }, hear: func(string) {}, stream: func(error) {}}
	pb.RegisterTestServiceServer(b.Server, b)
	healthpb.RegisterHealthServer(b.Server, b.health)
	return b
}

func (b *backend) UnaryCall(ctx context.Context, r *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	if err := b.handle(ctx, string(r.GetPayload().GetBody())); err != nil {
		return nil, err
	}
	return &pb.SimpleResponse{Hostname: b.host}, nil
}

func (b *backend) FullDuplexCall(s grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]) error {
	for {
		r, err := s.Recv()
		if err != nil {
			b.stream(err)
			return nil
		}
		b.hear(string(r.GetPayload().GetBody()))
		if err := s.Send(&pb.StreamingOutputCallResponse{Payload: r.GetPayload()}); err != nil {
			return err
		}
	}
}

// channel is a client's channel, and when it dialled whom.
type channel struct {
	*grpc.ClientConn
	pb.TestServiceClient
	start scenario.Clock

	mu    sync.Mutex
	dials []dial
}

type dial struct {
	at time.Duration
	to string
}

// connect makes a channel from host "client" to port 80 of host "server".
func connect(t *testing.T, s *gosimnet.Simnet, options ...grpc.DialOption) *channel {
	t.Helper()
	return open(t, s, "passthrough:///server:80", options...)
}

// balance makes a channel that shares its calls out over several hosts, in turn. The resolver can be told of others.
func balance(t *testing.T, s *gosimnet.Simnet, hosts []string, options ...grpc.DialOption) (*channel, *manual.Resolver) {
	t.Helper()
	r := manual.NewBuilderWithScheme("sim")
	r.InitialState(addresses(hosts...))
	return open(t, s, "sim:///", append([]grpc.DialOption{grpc.WithResolvers(r)}, options...)...), r
}

func addresses(hosts ...string) (state resolver.State) {
	for _, h := range hosts {
		state.Addresses = append(state.Addresses, resolver.Address{Addr: h + ":80"})
	}
	return state
}

// roundRobin is a service config with that policy, and with more of it.
func roundRobin(more string) grpc.DialOption {
	return grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]` + more + `}`)
}

func open(t *testing.T, s *gosimnet.Simnet, target string, options ...grpc.DialOption) *channel {
	t.Helper()
	ch := &channel{start: scenario.StartClock()}
	client := s.Host("client")
	cc, err := grpc.NewClient(target, append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			ch.mu.Lock()
			ch.dials = append(ch.dials, dial{ch.start.Elapsed(), address})
			ch.mu.Unlock()
			return client.DialContext(ctx, "tcp", address)
		}),
	}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	ch.ClientConn, ch.TestServiceClient = cc, pb.NewTestServiceClient(cc)
	return ch
}

// ready connects, and returns when the channel has been ready for a millisecond. A call that waits for the connection
// would race, at the instant of the server's settings, with their acknowledgement, and make it chance which leaves
// first.
func (ch *channel) ready(t *testing.T) {
	t.Helper()
	ch.Connect()
	for state := ch.GetState(); state != connectivity.Ready; state = ch.GetState() {
		if !ch.WaitForStateChange(t.Context(), state) {
			t.Fatal("the channel does not become ready")
		}
	}
	time.Sleep(time.Millisecond)
}

// call makes a unary call that may take so long, and returns the host that has answered.
func (ch *channel) call(timeout time.Duration, body string, options ...grpc.CallOption) (host string, st *status.Status) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	r, err := ch.UnaryCall(ctx, &pb.SimpleRequest{Payload: &pb.Payload{Body: []byte(body)}}, options...)
	return r.GetHostname(), status.Convert(err)
}

// calls makes n calls, one after the other, and returns how many each host has answered; failures count under their
// codes.
func (ch *channel) calls(n int) map[string]int {
	by := map[string]int{}
	for range n {
		host, st := ch.call(time.Second, "")
		if st.Code() != codes.OK {
			host = st.Code().String()
		}
		by[host]++
	}
	return by
}

// history is the channel's dials so far.
func (ch *channel) history() []dial {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return slices.Clone(ch.dials)
}

// dialled lists the channel's dials so far, to the millisecond.
func (ch *channel) dialled() (all []string) {
	for _, d := range ch.history() {
		all = append(all, fmt.Sprintf("%v %s", d.at.Truncate(time.Millisecond), strings.TrimSuffix(d.to, ":80")))
	}
	return all
}

// expect fails the test unless the status is of this code and contains this text.
func expect(t *testing.T, what string, st *status.Status, code codes.Code, text string) {
	t.Helper()
	if st.Code() != code || !strings.Contains(st.Message(), text) {
		t.Errorf("%s: %v %q, want %v %q", what, st.Code(), st.Message(), code, text)
	}
}

// same fails the test unless two things print alike.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// noJitter makes attempts to connect predictable.
func noJitter(base time.Duration, multiplier float64, most, minConnect time.Duration) grpc.DialOption {
	return grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: base, Multiplier: multiplier, MaxDelay: most},
		MinConnectTimeout: minConnect,
	})
}

// cutOff loses all packets between the client and another host.
func cutOff(t *testing.T, s *gosimnet.Simnet, host string) (heal func()) {
	t.Helper()
	heal, err := s.Partition(gosimnet.DropPackets, []string{"client"}, []string{host})
	if err != nil {
		t.Fatal(err)
	}
	return heal
}
