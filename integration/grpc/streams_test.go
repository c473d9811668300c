package grpc

import (
	"io"
	"runtime"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

type duplex = grpc.BidiStreamingClient[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]

func message(body string) *pb.StreamingOutputCallRequest {
	return &pb.StreamingOutputCallRequest{Payload: &pb.Payload{Body: []byte(body)}}
}

// echo sends a message and gets it back.
func echo(t *testing.T, stream duplex, body string) {
	t.Helper()
	if err := stream.Send(message(body)); err != nil {
		t.Fatal(err)
	}
	r, err := stream.Recv()
	if err != nil || string(r.GetPayload().GetBody()) != body {
		t.Fatalf("the echo of %q is %q, %v", body, r.GetPayload().GetBody(), err)
	}
}

// A stream is cut in three ways. What had arrived was received; then Recv says UNAVAILABLE, when the client learns of
// it: a reset one way later at most, power that went and came back when the client next sends and is answered by a
// reset. Send says io.EOF then, as its documentation has it ("on error, SendMsg aborts the stream … io.EOF is returned
// and the status can be discovered using RecvMsg").
func TestCutStreams(t *testing.T) {
	for _, test := range []struct {
		name string
		cut  func(t *testing.T, net *gosimnet.Simnet, stream duplex) (least time.Duration)
	}{
		{"reset", func(t *testing.T, net *gosimnet.Simnet, _ duplex) time.Duration {
			if _, err := net.ResetConns("client", "server"); err != nil {
				t.Fatal(err)
			}
			return 0
		}},
		{"server stopped", func(t *testing.T, net *gosimnet.Simnet, stream duplex) time.Duration {
			if err := stream.Send(message("stop")); err != nil {
				t.Fatal(err)
			}
			return roundTrip + time.Millisecond
		}},
		{"power cycle", func(t *testing.T, net *gosimnet.Simnet, stream duplex) time.Duration {
			scenario.PowerCycle(t, net, "server", time.Second)
			if err := stream.Send(message("anybody there?")); err != nil {
				t.Fatal(err)
			}
			return time.Second + roundTrip
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			scenario.Run(t, scenario.Scenario{
				Software: software, Shows: "a stream that is cut: " + test.name, Repeats: true,
			}, func(t *testing.T, net *gosimnet.Simnet) {
				b := serve(t, net.Host("server"))
				b.hear = func(body string) {
					if body == "stop" {
						time.AfterFunc(time.Millisecond, b.Stop)
					}
				}
				ch := connect(t, net)
				ch.ready(t)
				stream, err := ch.FullDuplexCall(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for range 3 {
					echo(t, stream, "hello")
				}
				time.Sleep(time.Millisecond) // after what the echo makes the channel say
				start := scenario.StartClock()
				least := test.cut(t, net, stream)
				for err == nil {
					_, err = stream.Recv()
				}
				expect(t, "Recv", status.Convert(err), codes.Unavailable, "")
				start.Within(t, "the end", least, time.Microsecond)
				if err := stream.Send(message("hello")); err != io.EOF {
					t.Errorf("Send: %v, want io.EOF", err)
				}
			})
		})
	}
}

// A client that sends faster than its server reads is held back by HTTP/2's windows: Send waits, and the network holds
// no more than windows and buffers allow. When the server reads on, all arrives, in order.
func TestStreamIsHeldBack(t *testing.T) {
	before := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(before)
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "flow control holds a sender back", Why: windowsRace,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		const size, count = 16 << 10, 100
		b := serve(t, net.Host("server"))
		received := 0
		b.hear = func(body string) {
			if received == 0 {
				time.Sleep(10 * time.Second)
			}
			if received++; len(body) != size {
				t.Errorf("message %d has %d bytes", received, len(body))
			}
		}
		ch := connect(t, net, grpc.WithStaticStreamWindowSize(64<<10))
		ch.ready(t)
		stream, err := ch.FullDuplexCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			err := error(nil)
			for err == nil {
				_, err = stream.Recv()
			}
			ended <- err
		}()
		body := string(make([]byte, size))
		start := scenario.StartClock()
		var at5s int
		for n := range count {
			if err := stream.Send(message(body)); err != nil {
				t.Fatal(err)
			}
			if start.Elapsed() < 5*time.Second {
				at5s = n + 1
			}
		}
		stream.CloseSend()
		if at5s < 4 || at5s > 16 {
			t.Errorf("%d messages were sent while the server did not read", at5s)
		}
		start.Within(t, "the last Send", 10*time.Second, 2*time.Second)
		if err := <-ended; err != io.EOF {
			t.Errorf("the stream ended with %v, want io.EOF", err)
		}
		same(t, "messages received", received, count)
	})
}
