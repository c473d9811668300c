package grpc

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// Refused connections are tried again as doc/connection-backoff.md of the grpc repository says, with its parameters:
// after 1 s, then 1.6 times as long each time, at most 120 s. The jitter of a fifth is turned off. After a connection
// has worked, it begins anew at once (grpc/grpc-go#2669).
func TestConnectingBacksOffAsDocumented(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "the documented back-off between attempts to connect, for ten minutes", Repeats: true,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		server := net.Host("server")
		ch := connect(t, net, noJitter(time.Second, 1.6, 120*time.Second, 20*time.Second))
		_, st := ch.call(time.Minute, "")
		expect(t, "the first call", st, codes.Unavailable, "connection refused")
		time.AfterFunc(10*time.Minute, func() { serve(t, server) })
		_, st = ch.call(time.Hour, "", grpc.WaitForReady(true))
		expect(t, "a call that waits", st, codes.OK, "")
		var want []string
		at, pause := time.Duration(0), time.Second
		for at < 10*time.Minute {
			want = append(want, fmt.Sprintf("%v server", at.Truncate(time.Millisecond)))
			at += pause + roundTrip // which the refusal takes
			pause = min(time.Duration(float64(pause)*1.6), 120*time.Second)
		}
		want = append(want, fmt.Sprintf("%v server", at.Truncate(time.Millisecond)))
		same(t, "dials", ch.dialled(), want)
		ch.start.Within(t, "the answer", at+3*roundTrip, 10*time.Microsecond)

		time.Sleep(time.Millisecond) // after what the answer makes the channel say
		if _, err := net.ResetConns("client", "server"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond) // let the channel notice
		start := scenario.StartClock()
		_, st = ch.call(time.Minute, "", grpc.WaitForReady(true))
		expect(t, "a call after a reset", st, codes.OK, "")
		start.Within(t, "its answer", 3*roundTrip, 10*time.Microsecond)
	})
}

// With the jitter that is the default, each pause is at most a fifth shorter or longer than documented, and they are
// not all alike.
func TestConnectingBacksOffWithJitter(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "jitter of at most a fifth between attempts to connect",
		Why: "the jitter is drawn from math/rand/v2, which has no seed: set backoff.Config's Jitter to 0",
	}, func(t *testing.T, net *gosimnet.Simnet) {
		net.Host("server")
		ch := connect(t, net, grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: 20 * time.Second}))
		ch.Connect()
		time.Sleep(10 * time.Minute)
		dials := ch.history()
		want, odd := time.Second, 0
		for i, d := range dials[1:] {
			pause := d.at - dials[i].at - roundTrip
			if pause < want*8/10 || pause > want*12/10+time.Microsecond {
				t.Errorf("pause %d is %v, want %v, a fifth more or less", i, pause, want)
			}
			if pause != want {
				odd++
			}
			want = min(time.Duration(float64(want)*1.6), 120*time.Second)
		}
		if len(dials) < 10 || odd == 0 {
			t.Errorf("%d dials, %d pauses with jitter", len(dials), odd)
		}
	})
}

// An attempt that meets silence is given up after MinConnectTimeout, and back-off begins then: here after four seconds
// without a word of HTTP/2.
func TestConnectingBacksOffFromSilence(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "attempts to connect to a silent server", Repeats: true,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		scenario.Listen(t, net.Host("server"), ":80") // connections wait for an Accept that never comes
		ch := connect(t, net, noJitter(time.Second, 1.6, time.Minute, 4*time.Second))
		ch.Connect()
		time.Sleep(15 * time.Second)
		same(t, "dials", ch.dialled(), []string{"0s server", "5s server", "10.6s server"})
	})
}

// retrying is a method config with a retry policy: five attempts, half a second to two seconds apart.
const retrying = `"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 5, "initialBackoff": "0.5s", "maxBackoff": "2s",
	"backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]`

// attempts makes one call to a server that fails the first ones with this, and returns the pauses between a failure's
// arrival and the next attempt's start, and the call's outcome.
func attempts(
	t *testing.T, net *gosimnet.Simnet, failures int, fail func(ctx context.Context) error,
) (pauses []time.Duration, st *status.Status) {
	var times []time.Time
	serve(t, net.Host("server")).handle = func(ctx context.Context, body string) error {
		times = append(times, time.Now())
		if body == "warm" || len(times) > failures+1 {
			return nil
		}
		return fail(ctx)
	}
	ch := connect(t, net, grpc.WithDefaultServiceConfig("{"+retrying+"}"))
	ch.ready(t)
	ch.call(time.Minute, "warm")
	_, st = ch.call(time.Minute, "")
	for i := range times[2:] {
		pauses = append(pauses, times[i+2].Sub(times[i+1])-roundTrip)
	}
	return pauses, st
}

// The pauses of a retry policy are those of gRFC A6: 0.5, 1, 2 and 2 s, each times 0.8 to 1.2, so that five attempts
// take between 4.4 and 6.6 s. Before 1.70 they were between nothing and that: grpc/grpc-go#7514.
func TestRetryPolicyBacksOffAsDocumented(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "four retries of a call, with the pauses of gRFC A6",
		Why: "the jitter of retries is drawn from math/rand/v2, which has no seed: assert its bounds, or let the server push back",
	}, func(t *testing.T, net *gosimnet.Simnet) {
		pauses, st := attempts(t, net, 10, func(context.Context) error { return status.Error(codes.Unavailable, "busy") })
		expect(t, "the call", st, codes.Unavailable, "max retries exhausted: failed after 5 attempts")
		want := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 2 * time.Second}
		if len(pauses) != len(want) {
			t.Fatalf("pauses %v, want %d", pauses, len(want))
		}
		for i, w := range want {
			if pauses[i] < w*8/10 || pauses[i] > w*12/10+time.Microsecond {
				t.Errorf("pause %d is %v, want %v, a fifth more or less", i, pauses[i], w)
			}
		}
	})
}

// A server that knows better says how long to wait, in the trailer grpc-retry-pushback-ms of gRFC A6, and that is exact.
func TestRetryPolicyObeysPushback(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "two retries after just as long as the server says", Repeats: true,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		pauses, st := attempts(t, net, 2, func(ctx context.Context) error {
			grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", "3210"))
			return status.Error(codes.Unavailable, "busy")
		})
		expect(t, "the call", st, codes.OK, "")
		for i, p := range pauses {
			pauses[i] = p.Truncate(time.Microsecond)
		}
		same(t, "pauses", pauses, []time.Duration{3210 * time.Millisecond, 3210 * time.Millisecond})
	})
}
