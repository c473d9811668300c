package integration

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/glycerine/gosimnet"
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
	start clock
	dials chan time.Duration
}

// dialGRPC makes a channel from host "client" to server:80.
func dialGRPC(t *testing.T, s *gosimnet.Simnet, options ...grpc.DialOption) *channel {
	t.Helper()
	ch := &channel{start: startClock(), dials: make(chan time.Duration, 100)}
	cc, err := grpc.NewClient("passthrough:///server:80", append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			ch.dials <- time.Since(ch.start.start)
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

// noJitter makes attempts to connect predictable.
func noJitter(base time.Duration, multiplier float64, minConnect time.Duration) grpc.DialOption {
	return grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: base, Multiplier: multiplier, MaxDelay: time.Minute},
		MinConnectTimeout: minConnect,
	})
}

func cutOff(t *testing.T, s *gosimnet.Simnet) (heal func()) {
	t.Helper()
	heal, err := s.Partition(gosimnet.DropPackets, []string{"client"}, []string{"server"})
	if err != nil {
		t.Fatal(err)
	}
	return heal
}

// The first call costs three round trips: for TCP, for the server's settings, and its own.
func TestGRPC(t *testing.T) {
	bubble(t, hop(latency), func(t *testing.T, s *gosimnet.Simnet) {
		serveGRPC(t, listen(t, s.Host("server"), ":80"))
		ch := dialGRPC(t, s)
		for _, want := range []time.Duration{3 * roundTrip, roundTrip, roundTrip} {
			start := startClock()
			expect(t, "a call", ch.call(time.Minute), codes.OK, "")
			start.at(t, "its answer", want)
		}
	})
}

func TestGRPCOnTheWallClock(t *testing.T) {
	t.Parallel()
	s := newNet(t, hop(time.Millisecond))
	serveGRPC(t, listen(t, s.Host("server"), ":80"))
	expect(t, "a call", dialGRPC(t, s).call(time.Minute), codes.OK, "")
}

// Without keep-alives a channel says that it is ready while every call times out, and works again when the network does.
func TestGRPCSticksToItsConnection(t *testing.T) {
	bubble(t, hop(latency), func(t *testing.T, s *gosimnet.Simnet) {
		serveGRPC(t, listen(t, s.Host("server"), ":80"))
		ch := dialGRPC(t, s)
		expect(t, "a call before", ch.call(time.Second), codes.OK, "")
		heal := cutOff(t, s)
		for range 3 {
			start := startClock()
			expect(t, "a call in the partition", ch.call(time.Second), codes.DeadlineExceeded, "")
			start.at(t, "its end", time.Second)
			if got := ch.GetState(); got != connectivity.Ready {
				t.Errorf("the channel is %v, want READY", got)
			}
		}
		heal()
		expect(t, "a call after", ch.call(10*time.Second), codes.OK, "")
		if len(ch.dials) != 1 {
			t.Errorf("%d dials, want 1", len(ch.dials))
		}
	})
}

// Refusals come at once, so that the channel's back-off alone says when it connects: after 1 s, and after 2 s more.
func TestGRPCBacksOffFromRefusals(t *testing.T) {
	bubble(t, hop(time.Millisecond), func(t *testing.T, s *gosimnet.Simnet) {
		s.Host("server")
		time.AfterFunc(1500*time.Millisecond, func() { serveGRPC(t, listen(t, s.Host("server"), ":80")) })
		ch := dialGRPC(t, s, noJitter(time.Second, 2, 20*time.Second))
		expect(t, "the first call", ch.call(time.Minute), codes.Unavailable, "connection refused")
		expect(t, "a call that waits", ch.call(time.Minute, grpc.WaitForReady(true)), codes.OK, "")
		ch.start.within(t, "its answer", 3*time.Second, 20*time.Millisecond)
		if len(ch.dials) != 3 {
			t.Errorf("%d dials, want 3", len(ch.dials))
		}
	})
}

// Back-off begins when an attempt has failed: here after four seconds without a word of HTTP/2.
func TestGRPCBacksOffFromSilence(t *testing.T) {
	bubble(t, hop(time.Millisecond), func(t *testing.T, s *gosimnet.Simnet) {
		l := listen(t, s.Host("server"), ":80")
		go func() {
			for {
				if _, err := l.Accept(); err != nil {
					return
				}
			}
		}()
		ch := dialGRPC(t, s, noJitter(time.Second, 1.6, 4*time.Second))
		ch.Connect()
		for _, want := range []time.Duration{0, 5 * time.Second, 10600 * time.Millisecond} {
			if got := <-ch.dials; got < want || got > want+20*time.Millisecond {
				t.Errorf("a dial at %v, want at %v", got, want)
			}
		}
	})
}

func TestGRPCKeepAliveFindsAPartition(t *testing.T) {
	bubble(t, hop(latency), func(t *testing.T, s *gosimnet.Simnet) {
		serveGRPC(t, listen(t, s.Host("server"), ":80"))
		ch := dialGRPC(t, s, grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 2 * time.Second}))
		stream, err := ch.Watch(t.Context(), &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		start := startClock()
		cutOff(t, s)
		_, err = stream.Recv()
		expect(t, "the stream's end", status.Convert(err), codes.Unavailable, "keepalive ping failed to receive ACK within timeout")
		start.within(t, "the stream's end", 12*time.Second-roundTrip, 2*roundTrip)
	})
}

// A peer that does not read keeps the channel's writer busy, and Close waits five seconds for it.
func TestGRPCCloseWithABlockedWriter(t *testing.T) {
	cfg := hop(time.Millisecond)
	cfg.SendBuffer, cfg.ReceiveBuffer = 4<<10, 4<<10
	bubble(t, cfg, func(t *testing.T, s *gosimnet.Simnet) {
		l := listen(t, s.Host("server"), ":80")
		go func() {
			c, err := l.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			io.ReadFull(c, make([]byte, len(http2.ClientPreface)))
			http2.NewFramer(c, c).WriteSettings()
		}()
		ch := dialGRPC(t, s)
		ended := make(chan *status.Status)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			_, err := ch.Check(ctx, &healthpb.HealthCheckRequest{Service: strings.Repeat("x", 60<<10)})
			ended <- status.Convert(err)
		}()
		time.Sleep(time.Second)
		start := startClock()
		ch.Close()
		start.within(t, "Close returned", 5*time.Second, 20*time.Millisecond)
		if st := <-ended; st.Code() != codes.Canceled && st.Code() != codes.Unavailable {
			t.Errorf("the call under way: %v", st)
		}
	})
}
