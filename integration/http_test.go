package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

const latency = 10 * time.Millisecond

func hello(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "hello from %s", r.Host) }

// A new connection costs a round trip, and so does each request.
func TestHTTPReusesConnections(t *testing.T) {
	bubble(t, hop(latency), func(t *testing.T, s *gosimnet.Simnet) {
		serve(t, listen(t, s.Host("server"), ":80"), hello)
		c, _ := client(t, s.Host("client"))

		start := scenario.StartClock()
		if got := get(t, c, "http://server/"); got != "hello from server" {
			t.Errorf("GET: %q", got)
		}
		start.At(t, "the first answer", 4*latency)
		var reused bool
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { reused = i.Reused }})
		start = scenario.StartClock()
		resp, err := c.Do(scenario.Must(http.NewRequestWithContext(ctx, "GET", "http://server/", nil))(t))
		if err != nil {
			t.Fatal(err)
		}
		readAll(t, resp.Body)
		resp.Body.Close()
		start.At(t, "the second answer", 2*latency)
		if !reused {
			t.Error("the second request made a new connection")
		}
	})
}

// TLS 1.3 costs one round trip more. HTTP/2 has one connection for all requests.
func TestHTTP2SharesOneConnection(t *testing.T) {
	bubble(t, hop(latency), func(t *testing.T, s *gosimnet.Simnet) {
		cert, roots := scenario.Certificate(t, "server")
		var mu sync.Mutex
		conns := map[string]bool{}
		serveTLS(t, listen(t, s.Host("server"), ":443"), cert, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			conns[r.RemoteAddr] = true
			mu.Unlock()
			time.Sleep(time.Second)
			io.WriteString(w, r.Proto)
		})
		c, _ := clientTLS(t, s.Host("client"), roots)

		start := scenario.StartClock()
		if got := get(t, c, "https://server/"); got != "HTTP/2.0" {
			t.Errorf("the server saw protocol %q", got)
		}
		start.At(t, "the first answer", 6*latency+time.Second)

		start = scenario.StartClock()
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { get(t, c, "https://server/") })
		}
		wg.Wait()
		start.Within(t, "fifty answers at once", 2*latency+time.Second, 10*time.Microsecond)
		if len(conns) != 1 {
			t.Errorf("the server saw connections from %v, want one", conns)
		}
	})
}

func TestHTTPTestServerListensOnTheSimulatedNetwork(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("TLS=%v", secure), func(t *testing.T) {
			bubble(t, hop(latency), func(t *testing.T, s *gosimnet.Simnet) {
				ts := &httptest.Server{Listener: listen(t, s.Host("server"), "server:0"), Config: &http.Server{Handler: http.HandlerFunc(hello)}}
				if secure {
					ts.EnableHTTP2 = true
					ts.StartTLS()
				} else {
					ts.Start()
				}
				defer ts.Close()
				tr := ts.Client().Transport.(*http.Transport)
				tr.DialContext = s.Host("client").DialContext
				if secure {
					tr.TLSClientConfig.ServerName = "example.com"
				}
				want := "hello from " + strings.SplitAfter(ts.URL, "://")[1]
				if got := get(t, ts.Client(), ts.URL); got != want {
					t.Errorf("GET: %q, want %q", got, want)
				}
			})
		})
	}
}

func TestHTTPOnTheWallClock(t *testing.T) {
	t.Parallel()
	s := newNet(t, hop(time.Millisecond))
	serve(t, listen(t, s.Host("server"), ":80"), hello)
	c, _ := client(t, s.Host("client"))
	for range 10 {
		if got := get(t, c, "http://server/"); got != "hello from server" {
			t.Errorf("GET: %q", got)
		}
	}
}

// A handler that answers without reading keeps the body from being sent; one that takes its time gets it anyway after
// the client's ExpectContinueTimeout.
func TestHTTPExpectContinue(t *testing.T) {
	for _, test := range []struct {
		name    string
		handler http.HandlerFunc
		status  int
		sent    int64 // of the body
		took    time.Duration
	}{
		{"read at once", func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
		}, 200, 1 << 20, 6 * latency},
		{"answered unread", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
		}, 401, 0, 4 * latency},
		{"read late", func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(2 * time.Second)
			io.Copy(io.Discard, r.Body)
		}, 200, 1 << 20, 4*latency + 2*time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := hop(latency)
			cfg.SendBuffer, cfg.ReceiveBuffer = 2<<20, 2<<20
			bubble(t, cfg, func(t *testing.T, s *gosimnet.Simnet) {
				serve(t, listen(t, s.Host("server"), ":80"), test.handler)
				c, tr := client(t, s.Host("client"))
				tr.ExpectContinueTimeout = time.Second
				body := &counter{r: bytes.NewReader(make([]byte, 1<<20))}
				req := scenario.Must(http.NewRequest("PUT", "http://server/", body))(t)
				req.ContentLength = 1 << 20
				req.Header.Set("Expect", "100-continue")
				start := scenario.StartClock()
				resp, err := c.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				readAll(t, resp.Body)
				resp.Body.Close()
				start.Within(t, "the answer", test.took, 100*time.Microsecond)
				if sent := body.n.Load(); resp.StatusCode != test.status || sent != test.sent {
					t.Errorf("status %d after %d bytes of the body, want %d after %d", resp.StatusCode, sent, test.status, test.sent)
				}
			})
		})
	}
}

// counter counts what is read.
type counter struct {
	r io.Reader
	n atomic.Int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n.Add(int64(n))
	return n, err
}

// Shutdown waits for requests under way, closes idle connections at once, and connections that never made a request after five
// seconds. It looks every half a second at most, with jitter.
func TestHTTPShutdown(t *testing.T) {
	for _, test := range []struct {
		name  string
		prior func(t *testing.T, h *gosimnet.Host)
		least time.Duration
		most  time.Duration
	}{
		{"no connection", func(*testing.T, *gosimnet.Host) {}, 0, time.Millisecond},
		{"an idle connection", func(t *testing.T, h *gosimnet.Host) {
			c, _ := client(t, h)
			get(t, c, "http://server/")
		}, 0, 2 * time.Millisecond},
		{"a request of three seconds", func(t *testing.T, h *gosimnet.Host) {
			c, _ := client(t, h)
			go func() {
				if got := get(t, c, "http://server/slow"); got != "done" {
					t.Errorf("the request under way got %q", got)
				}
			}()
			time.Sleep(10 * latency)
		}, 2900 * time.Millisecond, 3600 * time.Millisecond},
		{"a connection without a request", func(t *testing.T, h *gosimnet.Host) {
			if _, err := h.Dial("tcp", "server:80"); err != nil {
				t.Error(err)
			}
			time.Sleep(2 * latency)
		}, 5 * time.Second, 6600 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, hop(latency), func(t *testing.T, s *gosimnet.Simnet) {
				srv := serve(t, listen(t, s.Host("server"), ":80"), func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/slow" {
						time.Sleep(3 * time.Second)
					}
					io.WriteString(w, "done")
				})
				test.prior(t, s.Host("client"))
				start := scenario.StartClock()
				if err := srv.Shutdown(context.Background()); err != nil {
					t.Error(err)
				}
				start.Within(t, "Shutdown returned", test.least, test.most-test.least)
				if _, err := s.Host("client").Dial("tcp", "server:80"); err == nil {
					t.Error("a dial after Shutdown succeeded")
				}
				time.Sleep(time.Second)
			})
		})
	}
}

// The client gives up at its time-out exactly, and the server's handler hears of it one way later.
func TestHTTPClientTimeout(t *testing.T) {
	bubble(t, hop(latency), func(t *testing.T, s *gosimnet.Simnet) {
		heard := make(chan time.Duration, 1)
		var start scenario.Clock
		serve(t, listen(t, s.Host("server"), ":80"), func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			heard <- time.Since(start.Start)
		})
		c, _ := client(t, s.Host("client"))
		c.Timeout = time.Second
		start = scenario.StartClock()
		_, err := c.Get("http://server/")
		start.At(t, "the error", time.Second)
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Get: %v, want a time-out", err)
		}
		if got, want := <-heard, time.Second+latency; got < want || got > want+time.Microsecond {
			t.Errorf("the handler's context ended after %v, want %v", got, want)
		}
	})
}
