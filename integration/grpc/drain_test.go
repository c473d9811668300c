package grpc

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// ledger is what became of all calls, by their names.
type ledger struct {
	mu      sync.Mutex
	handled map[string]int
	failed  map[string]string
	answers map[string]int // by host
}

func newLedger() *ledger {
	return &ledger{handled: map[string]int{}, failed: map[string]string{}, answers: map[string]int{}}
}

// handle takes its time, and enters what has been done to the end.
func (l *ledger) handle(ctx context.Context, body string) error {
	time.Sleep(30 * time.Millisecond)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.handled[body]++
	return nil
}

// callers make calls from sixteen goroutines for so long, and return how many.
func (l *ledger) callers(ch *channel, d time.Duration) (n int) {
	var callers sync.WaitGroup
	until := time.Now().Add(d)
	for c := range 16 {
		callers.Go(func() {
			time.Sleep(time.Duration(c) * 1900 * time.Microsecond)
			for i := 0; time.Now().Before(until); i++ {
				key := fmt.Sprintf("%d-%d", c, i)
				host, st := ch.call(10*time.Second, key)
				l.mu.Lock()
				n++
				l.answers[host]++
				if st.Code() != codes.OK {
					l.failed[key] = st.String()
				}
				l.mu.Unlock()
				time.Sleep(3 * time.Millisecond)
			}
		})
	}
	callers.Wait()
	return n
}

// check fails the test unless so many calls have succeeded, and each was handled once.
func (l *ledger) check(t *testing.T, calls int) {
	t.Helper()
	for key, why := range l.failed {
		t.Errorf("call %s was lost: %s", key, why)
	}
	if len(l.handled) != calls {
		t.Errorf("%d calls of %d were handled", len(l.handled), calls)
	}
	for key, n := range l.handled {
		if n != 1 {
			t.Errorf("call %s was handled %d times", key, n)
		}
	}
}

// One of two backends is stopped gracefully while sixteen callers keep both busy, and another comes instead of it.
// GOAWAY tells the client which calls will be handled; those that it had begun too late are tried again elsewhere,
// without a retry policy ("transparent retry", gRFC A6). No call is lost and none is handled twice. GracefulStop
// returns when the last handler has: grpc/grpc-go#2849 recommends it for restarts, and before it was right clients saw
// "the connection is draining" (#2767).
func TestGracefulStopLosesNoCall(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "GracefulStop of one of two backends under load loses no call", Why: roundRobinStarts,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		books := newLedger()
		backends := map[string]*backend{}
		for _, h := range []string{"b1", "b2", "b3"} {
			backends[h] = serve(t, net.Host(h))
			backends[h].handle = books.handle
		}
		ch, r := balance(t, net, []string{"b1", "b2"}, roundRobin(""))
		ch.ready(t)
		stopped := make(chan time.Duration, 1)
		time.AfterFunc(time.Second, func() {
			start := scenario.StartClock()
			backends["b1"].GracefulStop()
			stopped <- start.Elapsed()
		})
		time.AfterFunc(1500*time.Millisecond, func() { r.UpdateState(addresses("b2", "b3")) })
		n := books.callers(ch, 3*time.Second)
		books.check(t, n)
		// The last call leaves just before the GOAWAY arrives, and takes 30 ms; its answer, and the end of the
		// connection, take a round trip.
		if took := <-stopped; took < 30*time.Millisecond || took > roundTrip+30*time.Millisecond+roundTrip {
			t.Errorf("GracefulStop took %v", took)
		}
		if books.answers["b1"] < n/8 || books.answers["b2"] < n/4 || books.answers["b3"] < n/8 {
			t.Errorf("calls by backend: %v", books.answers)
		}
	})
}

// A server ends each connection when it is half a second old, more or less a tenth, to make clients spread anew:
// MaxConnectionAge of gRFC A9. The client dials again each time, and no call of the callers is lost; with
// MaxConnectionAgeGrace shorter than a call some would be (grpc/grpc-go#2767).
func TestMaxConnectionAgeLosesNoCall(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "connections that end of age under load lose no call",
		Why: "the jitter of MaxConnectionAge is drawn from math/rand/v2, which has no seed",
	}, func(t *testing.T, net *gosimnet.Simnet) {
		books := newLedger()
		serve(t, net.Host("server"), grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge: 500 * time.Millisecond, MaxConnectionAgeGrace: time.Second})).handle = books.handle
		ch := connect(t, net)
		n := books.callers(ch, 5*time.Second)
		books.check(t, n)
		dials := ch.history()
		if len(dials) < 9 || len(dials) > 12 {
			t.Errorf("%d dials, want one each half a second, more or less a tenth", len(dials))
		}
		for i, d := range dials[1:] {
			// Handshake and GOAWAY take four ways, and then it is some caller's next call that dials.
			if age := d.at - dials[i].at; age < 450*time.Millisecond || age > 550*time.Millisecond+4*latency+33*time.Millisecond+roundTrip {
				t.Errorf("connection %d was replaced after %v", i, age)
			}
		}
	})
}
