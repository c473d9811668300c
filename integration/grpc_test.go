package integration

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// serveGRPC runs a gRPC server, with the health service alone, for as long as the test runs.
func serveGRPC(t *testing.T, l net.Listener) {
	t.Helper()
	srv := grpc.NewServer()
	healthpb.RegisterHealthServer(srv, health.NewServer())
	go srv.Serve(l)
	t.Cleanup(srv.Stop)
}

// channel is a gRPC client's, and when it dialled.
type channel struct {
	*grpc.ClientConn
	healthpb.HealthClient
	start scenario.Clock
	dials chan time.Duration
}

// dialGRPC makes a channel from host "client" to server:80.
func dialGRPC(t *testing.T, s *gosimnet.Simnet, options ...grpc.DialOption) *channel {
	t.Helper()
	ch := &channel{start: scenario.StartClock(), dials: make(chan time.Duration, 100)}
	cc, err := grpc.NewClient("passthrough:///server:80", append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			ch.dials <- time.Since(ch.start.Start)
			return s.Host("client").DialContext(ctx, "tcp", address)
		}),
	}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	ch.ClientConn, ch.HealthClient = cc, healthpb.NewHealthClient(cc)
	return ch
}

// call makes one call that may take so long, and returns its status.
func (ch *channel) call(timeout time.Duration, options ...grpc.CallOption) *status.Status {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_, err := ch.Check(ctx, &healthpb.HealthCheckRequest{}, options...)
	return status.Convert(err)
}

// expect fails the test unless the status is of this code and contains this text.
func expect(t *testing.T, what string, st *status.Status, code codes.Code, text string) {
	t.Helper()
	if st.Code() != code || !strings.Contains(st.Message(), text) {
		t.Errorf("%s: %v %q, want %v %q", what, st.Code(), st.Message(), code, text)
	}
}

func TestGRPCOnTheWallClock(t *testing.T) {
	t.Parallel()
	s := newNet(t, hop(time.Millisecond))
	serveGRPC(t, listen(t, s.Host("server"), ":80"))
	expect(t, "a call", dialGRPC(t, s).call(time.Minute), codes.OK, "")
}
