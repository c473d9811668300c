package webservice

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// ledger is what became of all requests, by their names.
type ledger struct {
	mu                          sync.Mutex
	begun, ended, answered, err map[string]string // the generation that did it; the error
	active                      int               // requests that are being handled
}

func newLedger() *ledger {
	return &ledger{begun: map[string]string{}, ended: map[string]string{}, answered: map[string]string{}, err: map[string]string{}}
}

func (l *ledger) enter(m map[string]string, key, value string, active int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m[key] += value
	l.active += active
}

// handled is how many requests are being handled.
func (l *ledger) handled() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.active
}

// generation is the handler of one generation of a server. It takes its time.
func (l *ledger) generation(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		key := r.URL.RawQuery
		l.enter(l.begun, key, name, 1)
		time.Sleep(35 * time.Millisecond)
		fmt.Fprint(w, name)
		l.enter(l.ended, key, name, -1)
	}
}

// customer makes requests, one after the other, until the time is over, and enters what it got.
func (l *ledger) customer(c *http.Client, method, url, who string, until time.Time) {
	for n := 0; time.Now().Before(until); n++ {
		key := fmt.Sprintf("%s-%d", who, n)
		got, err := request(c, method, url+"?"+key)
		if err != nil {
			l.enter(l.err, key, err.Error(), 0)
			continue
		}
		l.enter(l.answered, key, got[len("200 OK: "):], 0)
		time.Sleep(7 * time.Millisecond)
	}
}

// check fails the test unless every request that a server has begun was answered, once, by that server, and all GETs
// were. A POST may have failed if no server has begun it; check returns how many did.
func (l *ledger) check(t *testing.T) (failed int) {
	for key, by := range l.begun {
		if len(by) != 1 || l.ended[key] != by || l.answered[key] != by {
			t.Errorf("request %s was begun by %q, done by %q and answered by %q (%s)", key, by, l.ended[key], l.answered[key], l.err[key])
		}
	}
	for key, err := range l.err {
		if !strings.Contains(err, "Post ") {
			t.Errorf("request %s: %s", key, err)
		}
	}
	return len(l.err)
}

// Two dozen customers on as many hosts keep a server busy when it is told to shut down; a successor listens from the
// same instant on. No request that the server has begun loses its response: Shutdown returns when the last has been
// written. What arrives on a kept-alive connection that the server has just closed is told from what was handled: GETs
// are repeated by the Transport, on a connection to the successor, and POSTs fail, and were handled by nobody
// (golang/go#23829: "client errors on server graceful shutdown"). Over HTTP/2 a GOAWAY says which requests will be
// handled, and even POSTs go on elsewhere; there Shutdown used to close connections in use (golang/go#29764, #39776).
// Shutdown looks after 1, 2, 4 … 64 … 500 ms, each up to a tenth longer, whether all connections have ended; those of
// HTTP/2 stay for a second after their last response.
func TestShutdownUnderLoadLosesNoResponse(t *testing.T) {
	for _, test := range []struct {
		name   string
		secure bool
		why    string
		polled time.Duration // when Shutdown looks for the first time after the last connection has ended
		fails  func(n int) bool
	}{
		{"HTTP1", false, "", 63 * time.Millisecond, func(n int) bool { return n > 0 && n < 12 }},
		{"HTTP2", true, http2Flushes, 1011 * time.Millisecond, func(n int) bool { return n == 0 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			oneByOne(t)
			scenario.Run(t, scenario.Scenario{
				Software: software("net/http, " + test.name), Shows: "graceful shutdown under load loses no response",
				Repeats: !test.secure, Why: test.why,
			}, func(t *testing.T, net *gosimnet.Simnet) {
				var cert *tls.Certificate
				var roots *x509.CertPool
				url, port := "http://server/", ":80"
				if test.secure {
					c, pool := scenario.Certificate(t, "server")
					cert, roots, url, port = &c, pool, "https://server/", ":443"
				}
				books := newLedger()
				first := serve(scenario.Listen(t, net.Host("server"), port), cert, books.generation("1"))
				first.RegisterOnShutdown(func() { // the port is free
					second := serve(scenario.Listen(t, net.Host("server"), port), cert, books.generation("2"))
					t.Cleanup(func() { second.Close() })
				})
				var customers sync.WaitGroup
				for n := range 24 {
					who := fmt.Sprintf("c%02d", n)
					method := []string{"GET", "POST"}[n%2]
					c, _ := newClient(t, net.Host(who), roots)
					time.Sleep(1900 * time.Microsecond)
					customers.Go(func() { books.customer(c, method, url, who, time.Now().Add(1500*time.Millisecond)) })
				}
				time.Sleep(time.Second)
				busy := books.handled()
				start := scenario.StartClock()
				if err := first.Shutdown(context.Background()); err != nil {
					t.Error(err)
				}
				start.Within(t, "Shutdown returned", test.polled, test.polled/10+time.Millisecond)
				customers.Wait()
				if failed := books.check(t); busy == 0 || !test.fails(failed) {
					t.Errorf("%d requests were being handled at the shutdown, and %d failed", busy, failed)
				}
			})
		})
	}
}
