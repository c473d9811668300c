package connect

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// TestMain fails if anything is left running after all tests.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	software  = "connectrpc.com/connect v1.21.1"
	latency   = 10 * time.Millisecond // one way
	roundTrip = 2 * latency

	count = "/shop.v1.Shop/Count" // a procedure that sends a stream
	chat  = "/shop.v1.Shop/Chat"  // and one with streams both ways
	buy   = "/shop.v1.Shop/Buy"   // and one without
)

// text is the message, both ways.
type text = wrapperspb.StringValue

// protocol is one of the ways in which connect speaks.
type protocol struct {
	name    string
	http2   bool
	options []connect.ClientOption
}

var protocols = []protocol{
	{"connect", false, nil},
	{"connect over HTTP/2", true, nil},
	{"grpc", true, []connect.ClientOption{connect.WithGRPC()}},
	{"grpc-web", false, []connect.ClientOption{connect.WithGRPCWeb()}},
}

func (p protocol) versions() *http.Protocols {
	var v http.Protocols
	v.SetHTTP1(!p.http2)
	v.SetUnencryptedHTTP2(p.http2)
	return &v
}

// shop is the service, as the software of a host that may lose its power.
type shop struct {
	count func(ctx context.Context, s *connect.ServerStream[text]) error
	buy   func(ctx context.Context) error
	srv   *http.Server // while there is power
}

// open makes the shop the software of host "server".
func (s *shop) open(t *testing.T, net *gosimnet.Simnet) {
	mux := http.NewServeMux()
	mux.Handle(count, connect.NewServerStreamHandler(count,
		func(ctx context.Context, _ *connect.Request[text], stream *connect.ServerStream[text]) error {
			return s.count(ctx, stream)
		}))
	mux.Handle(chat, connect.NewBidiStreamHandler(chat, func(ctx context.Context, stream *connect.BidiStream[text, text]) error {
		for {
			m, err := stream.Receive()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := stream.Send(m); err != nil {
				return err
			}
		}
	}))
	mux.Handle(buy, connect.NewUnaryHandler(buy, func(ctx context.Context, r *connect.Request[text]) (*connect.Response[text], error) {
		return connect.NewResponse(wrapperspb.String("done")), s.buy(ctx)
	}, connect.WithIdempotency(connect.IdempotencyNoSideEffects)))
	h := net.Host("server")
	h.Run(func(ctx context.Context) error {
		l, err := h.Listen("tcp", ":80")
		if err != nil {
			t.Error(err)
			return err
		}
		var both http.Protocols
		both.SetHTTP1(true)
		both.SetUnencryptedHTTP2(true)
		s.srv = &http.Server{Handler: mux, Protocols: &both, ErrorLog: log.New(io.Discard, "", 0)}
		go s.srv.Serve(l)
		<-ctx.Done()
		return s.srv.Close()
	})
	t.Cleanup(func() { time.Sleep(time.Minute) }) // let handlers end
}

// visit makes a client of one procedure, on host "client".
func visit(t *testing.T, net *gosimnet.Simnet, p protocol, procedure string, options ...connect.ClientOption) *connect.Client[text, text] {
	tr := &http.Transport{DialContext: net.Host("client").DialContext, Protocols: p.versions()}
	t.Cleanup(tr.CloseIdleConnections)
	return connect.NewClient[text, text](&http.Client{Transport: tr}, "http://server"+procedure, append(options, p.options...)...)
}

// numbers sends a message a second.
func numbers(ctx context.Context, s *connect.ServerStream[text]) error {
	for ctx.Err() == nil {
		if err := s.Send(wrapperspb.String("tick")); err != nil {
			return err
		}
		time.Sleep(time.Second)
	}
	return ctx.Err()
}

// A stream of messages is cut between two of them, by a server that closes its connections, and by a reset. No protocol
// takes that for the end of the stream: Receive says false, and Err an error, which carries what the connection said.
// Before 1.9 the error was nil (connectrpc/connect-go#397, "distinguish between 'the server ended the stream' and 'the
// connection dropped unexpectedly'"). An end of the connection is a protocol error, internal; a reset is canceled, to
// clients too, although it is meant for handlers whose client has gone (#645). Who repeats what is unavailable should
// look for ECONNRESET as well.
func TestCutServerStream(t *testing.T) {
	for _, p := range protocols {
		for _, test := range []struct {
			name string
			cut  func(net *gosimnet.Simnet, s *shop)
			code connect.Code
			is   error
			took time.Duration
		}{
			{"closed", func(_ *gosimnet.Simnet, s *shop) { s.srv.Close() }, connect.CodeInternal, io.ErrUnexpectedEOF, latency},
			{"reset", func(net *gosimnet.Simnet, _ *shop) { net.ResetConns("client", "server") }, connect.CodeCanceled, syscall.ECONNRESET, 0},
		} {
			t.Run(p.name+", "+test.name, func(t *testing.T) {
				scenario.Run(t, scenario.Scenario{
					Software: software, Shows: "a stream that is cut between messages: " + p.name + ", " + test.name, Repeats: true,
				}, func(t *testing.T, net *gosimnet.Simnet) {
					s := &shop{count: numbers}
					s.open(t, net)
					stream, err := visit(t, net, p, count).CallServerStream(t.Context(), connect.NewRequest(wrapperspb.String("")))
					if err != nil {
						t.Fatal(err)
					}
					defer stream.Close()
					start := scenario.StartClock()
					time.AfterFunc(3500*time.Millisecond, func() {
						start = scenario.StartClock()
						test.cut(net, s)
					})
					got := 0
					for stream.Receive() {
						got++
					}
					start.At(t, "the end", test.took)
					if err := stream.Err(); got != 4 || connect.CodeOf(err) != test.code || !errors.Is(err, test.is) {
						t.Errorf("%d messages, then %v; want 4, %v: %v", got, err, test.code, test.is)
					}
				})
			})
		}
	}
}

// A message of a megabyte is cut after some of it. The half is not delivered.
func TestCutMessage(t *testing.T) {
	for _, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			scenario.Run(t, scenario.Scenario{
				Software: software, Shows: "a message that is cut after half of it: " + p.name, Repeats: true,
				Config: &gosimnet.SimNetConfig{SendBuffer: 4 << 20, ReceiveBuffer: 4 << 20},
			}, func(t *testing.T, net *gosimnet.Simnet) {
				s := &shop{count: func(ctx context.Context, s *connect.ServerStream[text]) error {
					if err := s.Send(wrapperspb.String("first")); err != nil {
						return err
					}
					time.Sleep(time.Second)
					return s.Send(wrapperspb.String(strings.Repeat("x", 1<<20)))
				}}
				s.open(t, net)
				client := visit(t, net, p, count, connect.WithAcceptCompression("gzip", nil, nil)) // or a megabyte is nothing
				if err := net.SetLink("server", "client", gosimnet.LinkConfig{BitsPerSecond: 8 << 20, QueueBytes: 4 << 20}); err != nil {
					t.Fatal(err)
				}
				stream, err := client.CallServerStream(t.Context(), connect.NewRequest(wrapperspb.String("")))
				if err != nil {
					t.Fatal(err)
				}
				defer stream.Close()
				if !stream.Receive() || stream.Msg().Value != "first" {
					t.Fatal(stream.Err())
				}
				start := scenario.StartClock()
				time.AfterFunc(1500*time.Millisecond, func() { net.ResetConns("client", "server") })
				if stream.Receive() {
					t.Errorf("a message of %d bytes", len(stream.Msg().Value))
				}
				start.At(t, "the end", 1500*time.Millisecond)
				if err := stream.Err(); connect.CodeOf(err) != connect.CodeCanceled || !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("%v, want %v: %v", err, connect.CodeCanceled, syscall.ECONNRESET)
				}
			})
		})
	}
}

// A conversation of streams both ways is cut by a power cycle. The client learns of it when it sends: that Send
// succeeds, as TCP's do, and a round trip later Receive has the reset. From then on Send is io.EOF, as its
// documentation has it ("if the server returns an error, Send returns an error that wraps io.EOF").
func TestCutConversation(t *testing.T) {
	for _, p := range protocols {
		if !p.http2 {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			scenario.Run(t, scenario.Scenario{
				Software: software, Shows: "a conversation that a power cycle cuts: " + p.name, Repeats: true,
			}, func(t *testing.T, net *gosimnet.Simnet) {
				(&shop{}).open(t, net)
				stream := visit(t, net, p, chat).CallBidiStream(t.Context())
				defer stream.CloseResponse()
				defer stream.CloseRequest()
				for range 3 {
					if err := stream.Send(wrapperspb.String("hello")); err != nil {
						t.Fatal(err)
					}
					if m, err := stream.Receive(); err != nil || m.Value != "hello" {
						t.Fatal(m, err)
					}
				}
				scenario.PowerCycle(t, net, "server", time.Second)
				start := scenario.StartClock()
				if err := stream.Send(wrapperspb.String("anybody there?")); err != nil {
					t.Errorf("Send: %v", err)
				}
				_, err := stream.Receive()
				start.At(t, "the end", roundTrip)
				if connect.CodeOf(err) != connect.CodeCanceled || !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("Receive: %v, want %v: %v", err, connect.CodeCanceled, syscall.ECONNRESET)
				}
				if err := stream.Send(wrapperspb.String("hello")); !errors.Is(err, io.EOF) {
					t.Errorf("Send afterwards: %v, want io.EOF", err)
				}
			})
		})
	}
}

// A deadline travels with the call, as a time-out in its headers: the client gives up at its time, and the server one
// way later by its own clock, although nothing tells it that the client has: the way there is cut as soon as the
// request has passed. Without the header it would go on (the Connect protocol's Connect-Timeout-Ms, gRPC's
// grpc-timeout).
func TestDeadlineReachesTheServer(t *testing.T) {
	for _, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			scenario.Run(t, scenario.Scenario{
				Software: software, Shows: "a deadline ends client and server, although they are cut off: " + p.name, Repeats: true,
			}, func(t *testing.T, net *gosimnet.Simnet) {
				var start scenario.Clock
				ended := make(chan time.Duration, 1)
				s := &shop{buy: func(ctx context.Context) error {
					if _, err := net.CutLink(gosimnet.DropPackets, "client", "server"); err != nil {
						t.Error(err)
					}
					<-ctx.Done()
					ended <- start.Elapsed()
					return ctx.Err()
				}}
				s.open(t, net)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				start = scenario.StartClock()
				_, err := visit(t, net, p, buy).CallUnary(ctx, connect.NewRequest(wrapperspb.String("")))
				start.At(t, "the client's end", 2*time.Second)
				if connect.CodeOf(err) != connect.CodeDeadlineExceeded || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v %v", connect.CodeOf(err), err)
				}
				// The header is written before the connection is dialled, which takes a round trip.
				if at := <-ended; at < 2*time.Second+roundTrip+latency-time.Millisecond || at > 2*time.Second+roundTrip+latency+time.Microsecond {
					t.Errorf("the handler ended after %v", at)
				}
				net.Heal()
			})
		})
	}
}

// A call over a kept-alive connection whose server's host was without power fails with the reset, a round trip later:
// it is a POST, which net/http does not repeat. While there is no listener it is unavailable (it was once
// unimplemented: connectrpc/connect-go#776). A procedure without side effects can be called by GET, which net/http
// repeats, and nobody notices.
func TestCallOverADeadConnection(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "unary calls after a power cycle: by POST reset, by GET repeated", Repeats: true,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		var bought atomic.Int32
		(&shop{buy: func(context.Context) error { bought.Add(1); return nil }}).open(t, net)
		for _, test := range []struct {
			options []connect.ClientOption
			code    connect.Code
			took    time.Duration
		}{
			{nil, connect.CodeCanceled, roundTrip},
			{[]connect.ClientOption{connect.WithHTTPGet(), connect.WithIdempotency(connect.IdempotencyNoSideEffects)}, 0, 3 * roundTrip},
		} {
			client := visit(t, net, protocols[0], buy, test.options...)
			call := func() (time.Duration, error) {
				start := scenario.StartClock()
				_, err := client.CallUnary(t.Context(), connect.NewRequest(wrapperspb.String("")))
				return start.Elapsed().Truncate(time.Microsecond), err
			}
			if took, err := call(); took != 2*roundTrip || err != nil {
				t.Errorf("a call: %v after %v", err, took)
			}
			scenario.PowerCycle(t, net, "server", time.Second)
			took, err := call()
			if took != test.took {
				t.Errorf("a call over a dead connection took %v, want %v", took, test.took)
			}
			if test.code == 0 && err != nil || test.code != 0 && (connect.CodeOf(err) != test.code || !errors.Is(err, syscall.ECONNRESET)) {
				t.Errorf("a call over a dead connection: %v", err)
			}
			if _, err := call(); err != nil {
				t.Errorf("a call after it: %v", err)
			}
		}
		if n := bought.Load(); n != 5 {
			t.Errorf("%d calls were handled, want 5", n)
		}
		if _, err := net.AddHost("empty"); err != nil {
			t.Fatal(err)
		}
		tr := &http.Transport{DialContext: net.Host("client").DialContext}
		nobody := connect.NewClient[text, text](&http.Client{Transport: tr}, "http://empty"+buy)
		_, err := nobody.CallUnary(t.Context(), connect.NewRequest(wrapperspb.String("")))
		if connect.CodeOf(err) != connect.CodeUnavailable || !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a call to a host without a listener: %v", err)
		}
	})
}
