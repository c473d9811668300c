package webservice

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// hits is a handler that counts. It answers /wait after a second.
type hits struct{ n atomic.Int32 }

func (h *hits) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/wait" {
		time.Sleep(time.Second)
	}
	fmt.Fprintf(w, "%d", h.n.Add(1))
}

// fill makes three requests at (almost) once, so that the Transport pools three connections.
func fill(t *testing.T, c *http.Client) {
	var wg sync.WaitGroup
	for n := range 3 {
		wg.Go(func() {
			time.Sleep(time.Duration(n) * time.Millisecond)
			request(c, "GET", "http://server/wait")
		})
	}
	wg.Wait()
}

// A client with a pool of kept-alive connections does not notice that the server's host was without power for a while,
// shorter than TCP's keep-alive takes to ask: each dead connection costs it one round trip, until the pool is empty;
// then it dials. That is so for requests that may be repeated. A POST gets the reset that the connection got, unless it
// has an Idempotency-Key: golang/go#22158 and #19943.
func TestKeepAliveClientSurvivesAPowerCycle(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software("net/http, HTTP/1.1"), Shows: "pooled connections that died with the server's power are replaced", Repeats: true,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		handler := &hits{}
		power(t, net.Host("server"), nil, handler)
		c, tr := newClient(t, net.Host("client"), nil)
		tr.MaxIdleConnsPerHost = 3

		fill(t, c)
		scenario.PowerCycle(t, net, "server", 10*time.Second)
		start := scenario.StartClock()
		expect(t, c, "GET", "http://server/", "200 OK: 4")
		start.At(t, "a GET over three dead connections", 3*2*latency+4*latency)

		fill(t, c)
		scenario.PowerCycle(t, net, "server", 10*time.Second)
		start = scenario.StartClock()
		_, err := request(c, "POST", "http://server/")
		start.At(t, "a POST over a dead connection", 2*latency)
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("POST: %v, want %v", err, syscall.ECONNRESET)
		}
		start = scenario.StartClock()
		got, err := request(c, "POST", "http://server/", "Idempotency-Key", "1")
		start.At(t, "a POST that may be repeated, over two dead connections", 2*2*latency+4*latency)
		if got != "200 OK: 8" || err != nil {
			t.Errorf("POST: %q, %v; want it to be served once, after 7 others", got, err)
		}
	})
}

// While the server has no power, requests on a pooled connection hang until a time-out ends them, even for GETs:
// nothing says that the connection is dead. The request that timed out takes the connection with it, so that the next
// dials.
func TestKeepAliveClientDuringAPowerCut(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software("net/http, HTTP/1.1"), Shows: "a request into a power cut times out, and the next ones go on", Repeats: true,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		power(t, net.Host("server"), nil, &hits{})
		c, tr := newClient(t, net.Host("client"), nil)
		tr.ResponseHeaderTimeout = time.Second
		expect(t, c, "GET", "http://server/", "200 OK: 1")
		if _, err := net.AlterHost("server", gosimnet.SHUTDOWN); err != nil {
			t.Fatal(err)
		}
		start := scenario.StartClock()
		if _, err := request(c, "GET", "http://server/"); err == nil || !strings.Contains(err.Error(), "timeout awaiting response headers") {
			t.Errorf("GET: %v", err)
		}
		start.At(t, "a GET over the pooled connection", time.Second)
		time.AfterFunc(2*time.Second, func() { net.AlterHost("server", gosimnet.POWERON) })
		start = scenario.StartClock()
		expect(t, c, "GET", "http://server/", "200 OK: 2")
		start.At(t, "a GET whose third SYN arrives", 3*time.Second+4*latency)
	})
}

// Over HTTP/2 a power cycle is noticed by the same reset, but the Transport repeats nothing on its own: its documentation
// promises retries after GOAWAY and REFUSED_STREAM alone. All requests that share the connection fail with it, and the
// next one dials. With SendPingTimeout and PingTimeout the client notices by itself, also while the power is off: before
// these there was nothing but TCP's quarter of an hour (kubernetes/kubernetes#87615, golang/go#39750).
func TestHTTP2ClientSurvivesAPowerCycle(t *testing.T) {
	for _, test := range []struct {
		name, url, why string
		dial           time.Duration // without the request
	}{
		{"TLS", "https://server/", http2Flushes, 4 * latency},
		{"without TLS", "http://server/", "", 2 * latency},
	} {
		t.Run(test.name, func(t *testing.T) {
			oneByOne(t)
			scenario.Run(t, scenario.Scenario{
				Software: software("net/http, HTTP/2, " + test.name), Shows: "a reset after a power cycle, pings into a power cut",
				Repeats: test.why == "", Why: test.why,
			}, func(t *testing.T, net *gosimnet.Simnet) {
				var cert *tls.Certificate
				var roots *x509.CertPool
				if test.name == "TLS" {
					c, pool := scenario.Certificate(t, "server")
					cert, roots = &c, pool
				}
				power(t, net.Host("server"), cert, &hits{})
				c, tr := newClient(t, net.Host("client"), roots)
				tr.Protocols = http2Only()
				tr.HTTP2 = &http.HTTP2Config{SendPingTimeout: 20 * time.Second, PingTimeout: 5 * time.Second}
				start := scenario.StartClock()
				expect(t, c, "GET", test.url, "200 OK: 1")
				start.At(t, "the first answer", test.dial+2*latency)

				time.Sleep(time.Second) // after what the answer makes the client say
				scenario.PowerCycle(t, net, "server", time.Second)
				start = scenario.StartClock()
				if _, err := request(c, "GET", test.url); !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("GET: %v, want %v", err, syscall.ECONNRESET)
				}
				start.At(t, "a GET over a dead connection", 2*latency)
				expect(t, c, "GET", test.url, "200 OK: 2")

				time.Sleep(time.Second)
				if _, err := net.AlterHost("server", gosimnet.SHUTDOWN); err != nil {
					t.Fatal(err)
				}
				start = scenario.StartClock()
				if _, err := request(c, "GET", test.url); err == nil || !strings.Contains(err.Error(), "http2: client connection lost") {
					t.Errorf("GET: %v", err)
				}
				start.At(t, "a GET without an answer", 24*time.Second) // 25 s after the last frame
				if _, err := net.AlterHost("server", gosimnet.POWERON); err != nil {
					t.Fatal(err)
				}
				start = scenario.StartClock()
				expect(t, c, "GET", test.url, "200 OK: 3")
				start.At(t, "a GET over a new connection", test.dial+2*latency)
			})
		})
	}
}
