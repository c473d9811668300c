package webservice

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// proxied makes host "proxy" a reverse proxy for http://backend, that waits a second for headers and tells time-outs
// from other failures. It flushes a millisecond after it has got something: a flush at once, by a goroutine of its own,
// would race with the body, and make it chance whether head and body leave together.
func proxied(t *testing.T, net *gosimnet.Simnet) {
	c, tr := newClient(t, net.Host("proxy"), nil)
	tr.ResponseHeaderTimeout = time.Second
	backend := &url.URL{Scheme: "http", Host: "backend"}
	power(t, net.Host("proxy"), nil, &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(backend) },
		Transport:     c.Transport,
		FlushInterval: time.Millisecond,
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			w.WriteHeader(http.StatusBadGateway)
			if os.IsTimeout(err) {
				fmt.Fprint(w, "late")
			}
		},
	})
}

// kilobytes answers at once, and sends a kilobyte a second, ten of them, chunked or with their length, as the path says.
func kilobytes(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/length" {
		w.Header().Set("Content-Length", "10240")
	}
	w.(http.Flusher).Flush()
	for range 10 {
		time.Sleep(time.Second)
		if _, err := w.Write(make([]byte, 1024)); err != nil {
			return
		}
		w.(http.Flusher).Flush()
	}
}

// A backend that dies in the middle of a response must not look like one that has said all: the proxy has sent its
// headers, and can only break off. The client has what came before, then io.ErrUnexpectedEOF, whether the response was
// chunked or had a length. Before Go 1.11 a chunked one ended as if it were complete: golang/go#23643;
// traefik/traefik#13568 is the same error of another proxy.
func TestProxyPassesOnACutResponse(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software("httputil.ReverseProxy"), Shows: "a backend's cut response is cut for the client, too", Repeats: true,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		power(t, net.Host("backend"), nil, http.HandlerFunc(kilobytes))
		proxied(t, net)
		c, _ := newClient(t, net.Host("client"), nil)
		for _, test := range []struct {
			path  string
			flush time.Duration // chunked responses are flushed at once
		}{{"/chunked", 0}, {"/length", time.Millisecond}} {
			start := scenario.StartClock()
			resp, err := c.Get("http://proxy" + test.path)
			if err != nil {
				t.Fatal(err)
			}
			start.At(t, "the headers", 8*latency+test.flush)
			cut := time.AfterFunc(2500*time.Millisecond, func() { net.ResetConns("proxy", "backend") })
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			cut.Stop()
			if len(body) != 2*1024 || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s: %d bytes, %v; want 2048 bytes, %v", test.path, len(body), err, io.ErrUnexpectedEOF)
			}
			start.At(t, "the end of "+test.path, 2500*time.Millisecond+9*latency+test.flush)
		}
	})
}

// The proxy answers for a backend that does not: 502 as soon as the backend's host refuses the connection, or, if the
// backend is cut off, when the proxy's time-out for headers is over. The client has its answer both times, over the
// connection that it keeps.
func TestProxyAnswersForItsBackend(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software("httputil.ReverseProxy"), Shows: "502 for a backend that refuses or is cut off, at exact times", Repeats: true,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		net.Host("backend")
		proxied(t, net)
		c, _ := newClient(t, net.Host("client"), nil)

		start := scenario.StartClock()
		expect(t, c, "GET", "http://proxy/", "502 Bad Gateway: ")
		start.At(t, "no backend", 6*latency)

		power(t, net.Host("backend"), nil, &hits{})
		start = scenario.StartClock()
		expect(t, c, "GET", "http://proxy/", "200 OK: 1")
		start.At(t, "a backend", 6*latency)

		heal, err := net.Partition(gosimnet.DropPackets, []string{"proxy"}, []string{"backend"})
		if err != nil {
			t.Fatal(err)
		}
		start = scenario.StartClock()
		expect(t, c, "GET", "http://proxy/", "502 Bad Gateway: late")
		start.At(t, "a backend that is cut off", time.Second+2*latency)
		heal()
		start = scenario.StartClock()
		expect(t, c, "GET", "http://proxy/", "200 OK: 2")
		start.At(t, "the backend again", 6*latency)
	})
}
