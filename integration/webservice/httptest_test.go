package webservice

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// newTestServer starts an httptest.Server on host "server", and gives its client to host "client". An HTTP/2 server has
// TLS.
func newTestServer(t *testing.T, net *gosimnet.Simnet, secure bool, handler http.HandlerFunc) (*httptest.Server, *http.Client) {
	ts := &httptest.Server{
		Listener:    scenario.Listen(t, net.Host("server"), "server:0"),
		Config:      &http.Server{Handler: handler},
		EnableHTTP2: secure,
	}
	if secure {
		ts.StartTLS()
	} else {
		ts.Start()
	}
	c := ts.Client()
	tr := c.Transport.(*http.Transport)
	tr.DialContext = net.Host("client").DialContext
	if secure {
		tr.TLSClientConfig.ServerName = "example.com" // the certificate is for this name
	}
	return ts, c
}

// Close "blocks until all outstanding requests on this server have completed", and the client has the whole response.
// The client's idle connection is closed then: the next request is refused. Over HTTP/2 Close waits for the handler,
// too, and then closes the connection over the response's head, so that the client has io.ErrUnexpectedEOF (or, by
// chance, the response): golang/go#38370 says that these two race.
func TestHTTPTestServerCloseWaits(t *testing.T) {
	for _, secure := range []bool{false, true} {
		name, why := "HTTP1", ""
		if secure {
			name, why = "HTTP2", http2Flushes
		}
		t.Run(name, func(t *testing.T) {
			oneByOne(t)
			scenario.Run(t, scenario.Scenario{
				Software: software("net/http/httptest, " + name), Shows: "Close waits for the response under way", Repeats: !secure, Why: why,
			}, func(t *testing.T, net *gosimnet.Simnet) {
				var handled atomic.Bool
				ts, c := newTestServer(t, net, secure, func(w http.ResponseWriter, r *http.Request) {
					time.Sleep(3 * time.Second)
					io.WriteString(w, r.Proto)
					handled.Store(true)
				})
				answer := make(chan string, 1)
				go func() {
					got, err := request(c, "GET", ts.URL)
					if err != nil && !(secure && errors.Is(err, io.ErrUnexpectedEOF)) {
						t.Error(err)
					}
					answer <- got
				}()
				time.Sleep(time.Second)
				start := scenario.StartClock()
				ts.Close()
				arrival := 3 * latency // SYN, SYN/ACK, request
				if secure {
					arrival += 2 * latency
				}
				start.At(t, "Close returned", 2*time.Second+arrival)
				if !handled.Load() {
					t.Error("Close returned before the handler")
				}
				if got := <-answer; !secure && got != "200 OK: HTTP/1.1" {
					t.Errorf("the answer is %q", got)
				}
				start.Within(t, "the answer", 2*time.Second+arrival+latency, 2*latency+time.Microsecond)
				if _, err := request(c, "GET", ts.URL); err == nil {
					t.Error("a closed server has answered")
				}
			})
		})
	}
}

// CloseClientConnections in the middle of a response is what tests of clients want to see: io.ErrUnexpectedEOF, one way
// later.
func TestHTTPTestServerCutsItsClients(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software("net/http/httptest"), Shows: "CloseClientConnections cuts a response", Repeats: true,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		ts, c := newTestServer(t, net, false, kilobytes)
		t.Cleanup(ts.Close)
		resp, err := c.Get(ts.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		start := scenario.StartClock()
		time.AfterFunc(1500*time.Millisecond, ts.CloseClientConnections)
		body, err := io.ReadAll(resp.Body)
		if len(body) != 1024 || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes, %v; want 1024 bytes, %v", len(body), err, io.ErrUnexpectedEOF)
		}
		start.At(t, "the cut", 1500*time.Millisecond+latency)
	})
}
