package grpc

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	_ "google.golang.org/grpc/health" // client-side health checking
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// round_robin shares calls out evenly over what the resolver names, follows it when it names others, leaves out a
// backend that refuses, and takes it back when the documented back-off lets it try again: it reconnects by itself,
// which it once did not in C (grpc/grpc#11578).
func TestRoundRobinFollowsTheResolver(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "round_robin over a resolver's changing backends", Why: roundRobinStarts,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		backends := map[string]*backend{}
		for _, h := range []string{"b1", "b2", "b3", "b4"} {
			backends[h] = serve(t, net.Host(h))
		}
		ch, r := balance(t, net, []string{"b1", "b2", "b3"}, roundRobin(""), noJitter(time.Second, 1.6, time.Minute, 20*time.Second))
		ch.ready(t)
		same(t, "calls", ch.calls(30), map[string]int{"b1": 10, "b2": 10, "b3": 10})

		r.UpdateState(addresses("b2", "b3", "b4"))
		time.Sleep(3 * roundTrip)
		same(t, "calls after an update", ch.calls(30), map[string]int{"b2": 10, "b3": 10, "b4": 10})

		backends["b3"].Stop()
		stopped := ch.start.Elapsed()
		time.Sleep(latency + roundTrip + time.Millisecond) // one way for the news, a round trip for the refusal
		same(t, "calls after a stop", ch.calls(30), map[string]int{"b2": 15, "b4": 15})
		serve(t, net.Host("b3"))
		time.Sleep(10 * time.Second)
		same(t, "calls after a restart", ch.calls(30), map[string]int{"b2": 10, "b3": 10, "b4": 10})
		redials := 0
		for _, d := range ch.history() {
			if d.at > stopped && d.to == "b3:80" {
				redials++
			}
		}
		same(t, "dials to the backend after it was stopped: one refused, one a second later", redials, 2)
	})
}

// A backend that says of itself NOT_SERVING is connected, and gets no calls from one way later on; when all say so,
// calls fail; when it serves again, it gets calls one way later: gRFC A17. The service config must ask for it, the
// policy must be round_robin (grpc/grpc-go#5224), and the program must import package health, as the blank import above
// does, or nothing happens (#8590 tells of hours lost).
func TestHealthCheckingLeavesBackendsOut(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "client-side health checking leaves a backend out one way after it says so", Why: roundRobinStarts,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		backends := map[string]*backend{}
		for _, h := range []string{"b1", "b2"} {
			backends[h] = serve(t, net.Host(h))
			backends[h].health.SetServingStatus("shop", healthpb.HealthCheckResponse_SERVING)
		}
		ch, _ := balance(t, net, []string{"b1", "b2"}, roundRobin(`, "healthCheckConfig": {"serviceName": "shop"}`))
		ch.ready(t)
		ch.start.At(t, "ready", 3*roundTrip+time.Millisecond) // one more, for the first answer of Watch
		same(t, "calls", ch.calls(20), map[string]int{"b1": 10, "b2": 10})

		say := func(host string, status healthpb.HealthCheckResponse_ServingStatus) {
			backends[host].health.SetServingStatus("shop", status)
			time.Sleep(latency + time.Millisecond)
		}
		say("b1", healthpb.HealthCheckResponse_NOT_SERVING)
		same(t, "calls while b1 does not serve", ch.calls(20), map[string]int{"b2": 20})
		say("b2", healthpb.HealthCheckResponse_NOT_SERVING)
		_, st := ch.call(time.Second, "")
		expect(t, "a call while nobody serves", st, codes.Unavailable, "NOT_SERVING")
		if got := ch.GetState(); got != connectivity.TransientFailure {
			t.Errorf("the channel is %v, want TRANSIENT_FAILURE", got)
		}
		say("b1", healthpb.HealthCheckResponse_SERVING)
		same(t, "calls while b2 does not serve", ch.calls(20), map[string]int{"b1": 20})
		same(t, "dials", len(ch.history()), 2)
	})
}
