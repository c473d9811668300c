package grpc

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// keepAlive makes a client ask for a sign of life 10 s after the last one, and wait 2 s for it.
var keepAlive = grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 2 * time.Second})

// One of three backends of round_robin is cut off. Calls go on, one each 50 ms. A third of them goes to it and hangs,
// until 12 s after the last thing that was read from it the keepalive time-out is over, to the millisecond: then all of
// these fail with UNAVAILABLE, at that one instant, and not one call goes there any more, although all could dial it.
// That is the remedy that grpc/grpc-go#3206 recommends; without keepalive they go there for a quarter of an hour. When
// the partition heals, the backend is used again as soon as the channel's next attempt to connect arrives.
func TestBlackholedBackendIsLeftAfterTheKeepaliveTimeout(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "a blackholed backend of round_robin is left after keepalive's time-out", Why: roundRobinStarts,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		hosts := []string{"b1", "b2", "b3"}
		for _, h := range hosts {
			serve(t, net.Host(h))
		}
		ch, _ := balance(t, net, hosts, roundRobin(""), keepAlive, noJitter(time.Second, 1.6, time.Minute, 5*time.Second))
		ch.ready(t)
		same(t, "calls before", ch.calls(60), map[string]int{"b1": 20, "b2": 20, "b3": 20})
		heard := hear(net, "b2")
		heal := cutOff(t, net, "b2")

		type outcome struct {
			began, ended time.Time
			host         string
			st           *status.Status
		}
		var mu sync.Mutex
		var all []outcome
		var calls sync.WaitGroup
		for range 20 * 20 { // 20 s
			began := time.Now()
			calls.Go(func() {
				host, st := ch.call(time.Minute, "")
				mu.Lock()
				defer mu.Unlock()
				all = append(all, outcome{began, time.Now(), host, st})
			})
			time.Sleep(50 * time.Millisecond)
		}
		calls.Wait()
		left := heard.Add(12 * time.Second)
		lost := 0
		for _, o := range all {
			switch {
			case o.st.Code() == codes.OK && o.host != "b2" && o.ended.Sub(o.began).Truncate(time.Microsecond) == roundTrip:
			case o.st.Code() == codes.Unavailable && strings.Contains(o.st.Message(), "keepalive ping failed to receive ACK within timeout") &&
				o.began.Before(left) && o.ended.Sub(left).Abs() < time.Millisecond:
				lost++
			default:
				t.Errorf("a call at %v, which ended %v after the time-out: %v by %q", o.began, o.ended.Sub(left), o.st, o.host)
			}
		}
		if lost < 78 || lost > 82 { // a third of twelve seconds' calls
			t.Errorf("%d calls went to the backend that is cut off, want 80", lost)
		}
		heal()
		time.Sleep(time.Minute)
		same(t, "calls after", ch.calls(60), map[string]int{"b1": 20, "b2": 20, "b3": 20})
	})
}

// With a retry policy nobody notices but by the time that it takes: the calls that hang are tried again, half a second
// after the keepalive time-out, more or less a fifth, and others serve them. A call to which no response has come may be
// repeated, says gRFC A6 ("not committed"). None of the calls reached its handler twice, as the backend never got it.
func TestRetryPolicyServesTheCallsOfABlackholedBackend(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "calls to a blackholed backend are retried elsewhere after keepalive's time-out", Why: roundRobinStarts,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		hosts := []string{"b1", "b2", "b3"}
		for _, h := range hosts {
			serve(t, net.Host(h))
		}
		ch, _ := balance(t, net, hosts, roundRobin(", "+retrying), keepAlive)
		ch.ready(t)
		ch.calls(3)
		left := hear(net, "b2").Add(12 * time.Second)
		cutOff(t, net, "b2")
		var late atomic.Int32
		var calls sync.WaitGroup
		for range 60 {
			calls.Go(func() {
				host, st := ch.call(time.Minute, "")
				if st.Code() != codes.OK || host == "b2" {
					t.Errorf("a call: %v by %q", st, host)
				}
				switch at := time.Since(left) - roundTrip; {
				case at >= 400*time.Millisecond && at <= 600*time.Millisecond+time.Microsecond:
					late.Add(1)
				case at > -8*time.Second:
					t.Errorf("a call ended %v after the time-out", at)
				}
			})
			time.Sleep(50 * time.Millisecond)
		}
		calls.Wait()
		same(t, "calls that were retried", late.Load(), 20)
	})
}

// hear tells when the client last got data from a host.
func hear(net *gosimnet.Simnet, host string) (last time.Time) {
	for e := range net.Trace() {
		if e.Kind == gosimnet.EventDeliver && e.From == host && e.What == "data" {
			last = e.Time
		}
	}
	return last
}

// A stream on which nothing is said ends 12 s after the last word, when the peer is cut off; without keepalive it would
// never end. The channel is not ready then.
func TestKeepaliveEndsAStream(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "keepalive ends an idle stream to a peer that is cut off", Repeats: true,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		serve(t, net.Host("server"))
		ch := connect(t, net, keepAlive)
		ch.ready(t)
		stream, err := ch.FullDuplexCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		echo(t, stream, "hello")
		start := scenario.StartClock()
		cutOff(t, net, "server")
		_, err = stream.Recv()
		expect(t, "the stream's end", status.Convert(err), codes.Unavailable, "keepalive ping failed to receive ACK within timeout")
		start.At(t, "the stream's end", 12*time.Second)
		time.Sleep(time.Millisecond)
		if got := ch.GetState(); got == connectivity.Ready {
			t.Errorf("the channel is %v", got)
		}
	})
}

// A server that was told nothing else allows a ping in five minutes. The third too many, half a minute after the last
// word of the server, it answers with GOAWAY, ENHANCE_YOUR_CALM, "too_many_pings", and a second later it closes the
// connection, streams and all: gRFC A8, and one of the most frequent surprises of those who set keepalive
// (grpc/grpc-go#5161). The client doubles its time, and dials again; the next connection lasts a minute.
func TestTooManyPings(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "a server closes the connection of a client that pings too often, which doubles its time", Repeats: true,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		serve(t, net.Host("server"))
		ch := connect(t, net, keepAlive)
		ch.ready(t)
		for _, interval := range []time.Duration{10 * time.Second, 20 * time.Second} {
			stream, err := ch.FullDuplexCall(t.Context(), grpc.WaitForReady(true))
			if err != nil {
				t.Fatal(err)
			}
			echo(t, stream, "hello")
			start := scenario.StartClock()
			_, err = stream.Recv()
			expect(t, "the stream's end", status.Convert(err), codes.Unavailable, "too_many_pings")
			// Data makes the estimator of flow control send a ping, too; each acknowledgement is a sign of life.
			start.At(t, "the stream's end", 3*(roundTrip+interval)+time.Second+roundTrip)
		}
	})
}

// A server's keepalive finds the clients that have gone without a word, and ends their handlers: their context is
// cancelled. Nothing else would, as they wait for a message that does not come.
func TestServerKeepaliveEndsHandlers(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "a server's keepalive ends the handlers of a client without power", Repeats: true,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		ended := make(chan time.Time, 1)
		params := grpc.KeepaliveParams(keepalive.ServerParameters{Time: 20 * time.Second, Timeout: 3 * time.Second})
		b := newBackend("server", params)
		b.stream = func(err error) { ended <- time.Now() }
		go b.Serve(scenario.Listen(t, net.Host("server"), ":80"))
		t.Cleanup(b.Stop)
		ch := connect(t, net)
		ch.ready(t)
		stream, err := ch.FullDuplexCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		echo(t, stream, "hello")
		time.Sleep(time.Millisecond) // after what the echo makes the channel say
		if _, err := net.AlterHost("client", gosimnet.SHUTDOWN); err != nil {
			t.Fatal(err)
		}
		start := scenario.StartClock()
		<-ended
		start.Within(t, "the handler's end", 23*time.Second+latency-time.Millisecond-time.Microsecond, 2*time.Microsecond)
	})
}
