package grpc

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// A channel is ready after two round trips: for TCP, and for the server's settings
// (doc/connectivity-semantics-and-api.md: "when the client has received a SETTINGS frame"). Each call costs one more.
func TestCallsCostRoundTrips(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "round trips of calls", Repeats: true,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		serve(t, net.Host("server"))
		ch := connect(t, net)
		ch.ready(t)
		ch.start.At(t, "the channel was ready", 2*roundTrip+time.Millisecond)
		for range 3 {
			start := scenario.StartClock()
			_, st := ch.call(time.Minute, "")
			expect(t, "a call", st, codes.OK, "")
			start.At(t, "its answer", roundTrip)
		}
	})
}

// Without keepalive a channel says that it is ready while every call runs out of time, for as long as TCP sends again
// what is not acknowledged: grpc/grpc-go#3206 ("for about 15 minutes") and #7542 ("requests go through after about
// 1000s"). Here the packets of the channel's connection are lost, and of no other, so that a new one would work at
// once; it is made after 924.6 s, when Linux's 15 retransmissions are over.
func TestDeadConnectionIsKeptForAQuarterOfAnHour(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "without keepalive a dead connection is kept until TCP gives up", Repeats: true,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		serve(t, net.Host("server"))
		ch := connect(t, net)
		ch.ready(t)
		_, st := ch.call(time.Second, "")
		expect(t, "a call before", st, codes.OK, "")
		lost := gosimnet.DropDeafSpec{UpdateDropSends: true, DropSendsNewProb: 1}
		if err := net.FaultCircuit("client:49152", "", lost, false); err != nil {
			t.Fatal(err)
		}
		start := scenario.StartClock()
		failed := 0
		for ; ; failed++ {
			_, st := ch.call(10*time.Second, "")
			if st.Code() == codes.OK {
				break
			}
			if start.Elapsed() < 924*time.Second {
				expect(t, "a call over the dead connection", st, codes.DeadlineExceeded, "")
				if got := ch.GetState(); got != connectivity.Ready {
					t.Fatalf("the channel is %v, want READY", got)
				}
			} else {
				expect(t, "the call that TCP gives up", st, codes.Unavailable, "connection timed out")
				start.Within(t, "the end of the connection", 924600*time.Millisecond, time.Millisecond)
			}
		}
		same(t, "calls that failed", failed, 93)
		start.Within(t, "the first answer", 924600*time.Millisecond+3*roundTrip, time.Millisecond)
	})
}

// A partition that heals before TCP gives up costs time, not the connection: the same one serves the call that began
// in it, when the lost request is sent again.
func TestConnectionOutlivesAPartition(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "a call through a partition that heals, on the same connection", Repeats: true,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		serve(t, net.Host("server"))
		ch := connect(t, net)
		ch.ready(t)
		_, st := ch.call(time.Second, "")
		expect(t, "a call before", st, codes.OK, "")
		heal := cutOff(t, net, "server")
		time.AfterFunc(2*time.Second, heal)
		start := scenario.StartClock()
		_, st = ch.call(10*time.Second, "")
		expect(t, "a call in the partition", st, codes.OK, "")
		start.At(t, "its answer", 3200*time.Millisecond+roundTrip) // it is sent again after 0.2, 0.4, 0.8, 1.6 and 3.2 s
		same(t, "dials", ch.dialled(), []string{"0s server"})
	})
}

// A peer that does not read keeps the channel's writer busy, and Close waits five seconds for it. Between 1.64 and 1.66
// it waited for TCP to give up: "Closing connection takes up to 15 minutes", grpc/grpc-go#7314.
func TestCloseWithABlockedWriter(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "Close against a peer that does not read", Repeats: true,
		Config: &gosimnet.SimNetConfig{SendBuffer: 4 << 10, ReceiveBuffer: 4 << 10},
	}, func(t *testing.T, net *gosimnet.Simnet) {
		l := scenario.Listen(t, net.Host("server"), ":80")
		go func() {
			c, err := l.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			io.ReadFull(c, make([]byte, len(http2.ClientPreface)))
			http2.NewFramer(c, c).WriteSettings()
		}()
		ch := connect(t, net)
		ended := make(chan *status.Status)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			_, err := ch.UnaryCall(ctx, &pb.SimpleRequest{Payload: &pb.Payload{Body: []byte(strings.Repeat("x", 60<<10))}})
			ended <- status.Convert(err)
		}()
		time.Sleep(time.Second)
		start := scenario.StartClock()
		ch.Close()
		start.At(t, "Close returned", 5*time.Second)
		if st := <-ended; st.Code() != codes.Canceled && st.Code() != codes.Unavailable {
			t.Errorf("the call under way: %v", st)
		}
	})
}
