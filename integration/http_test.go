package integration

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/glycerine/gosimnet"
)

const latency = 10 * time.Millisecond

func hello(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "hello from %s", r.Host) }

// A new connection costs a round trip, and so does each request.
func TestHTTPReusesConnections(t *testing.T) {
	bubble(t, hop(latency), func(t *testing.T, s *gosimnet.Simnet) {
		serve(t, listen(t, s.Host("server"), ":80"), hello)
		c, _ := client(t, s.Host("client"))

		start := startClock()
		if got := get(t, c, "http://server/"); got != "hello from server" {
			t.Errorf("GET: %q", got)
		}
		start.at(t, "the first answer", 4*latency)
		var reused bool
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { reused = i.Reused }})
		start = startClock()
		resp, err := c.Do(must(http.NewRequestWithContext(ctx, "GET", "http://server/", nil))(t))
		if err != nil {
			t.Fatal(err)
		}
		readAll(t, resp.Body)
		resp.Body.Close()
		start.at(t, "the second answer", 2*latency)
		if !reused {
			t.Error("the second request made a new connection")
		}
	})
}

// TLS 1.3 costs one round trip more. HTTP/2 has one connection for all requests.
func TestHTTP2SharesOneConnection(t *testing.T) {
	bubble(t, hop(latency), func(t *testing.T, s *gosimnet.Simnet) {
		cert, roots := certificate(t, "server")
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

		start := startClock()
		if got := get(t, c, "https://server/"); got != "HTTP/2.0" {
			t.Errorf("the server saw protocol %q", got)
		}
		start.at(t, "the first answer", 6*latency+time.Second)

		start = startClock()
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { get(t, c, "https://server/") })
		}
		wg.Wait()
		start.within(t, "fifty answers at once", 2*latency+time.Second, 10*time.Microsecond)
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
				req := must(http.NewRequest("PUT", "http://server/", body))(t)
				req.ContentLength = 1 << 20
				req.Header.Set("Expect", "100-continue")
				start := startClock()
				resp, err := c.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				readAll(t, resp.Body)
				resp.Body.Close()
				start.within(t, "the answer", test.took, 100*time.Microsecond)
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

func TestHTTPUpgradeHijacksTheConnection(t *testing.T) {
	bubble(t, hop(latency), func(t *testing.T, s *gosimnet.Simnet) {
		serve(t, listen(t, s.Host("server"), ":80"), shout)
		c, _ := client(t, s.Host("client"))
		start := startClock()
		stream := upgrade(t, c, "http://server/")
		start.at(t, "the upgrade", 4*latency)
		converse(t, stream, 2*latency)
	})
}

// shout takes the connection over, and answers each line in capitals.
func shout(w http.ResponseWriter, r *http.Request) {
	conn, rw, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: shout\r\nConnection: Upgrade\r\n\r\n")
	lines := bufio.NewScanner(rw)
	for lines.Scan() {
		fmt.Fprintln(conn, strings.ToUpper(lines.Text()))
	}
}

// upgrade asks for the shouting.
func upgrade(t *testing.T, c *http.Client, url string) io.ReadWriteCloser {
	t.Helper()
	req := must(http.NewRequest("GET", url, nil))(t)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "shout")
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(resp.Status)
	}
	return resp.Body.(io.ReadWriteCloser)
}

// converse exchanges a few lines, each of which takes a round trip.
func converse(t *testing.T, stream io.ReadWriteCloser, roundTrip time.Duration) {
	t.Helper()
	lines := bufio.NewReader(stream)
	for _, word := range []string{"one", "two", "three"} {
		start := startClock()
		fmt.Fprintln(stream, word)
		got, err := lines.ReadString('\n')
		if want := strings.ToUpper(word) + "\n"; got != want || err != nil {
			t.Errorf("read %q, %v; want %q", got, err, want)
		}
		start.at(t, "the answer", roundTrip)
	}
	stream.Close()
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
				start := startClock()
				if err := srv.Shutdown(context.Background()); err != nil {
					t.Error(err)
				}
				start.within(t, "Shutdown returned", test.least, test.most-test.least)
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
		var start clock
		serve(t, listen(t, s.Host("server"), ":80"), func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			heard <- time.Since(start.start)
		})
		c, _ := client(t, s.Host("client"))
		c.Timeout = time.Second
		start = startClock()
		_, err := c.Get("http://server/")
		start.at(t, "the error", time.Second)
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Get: %v, want a time-out", err)
		}
		if got, want := <-heard, time.Second+latency; got < want || got > want+time.Microsecond {
			t.Errorf("the handler's context ended after %v, want %v", got, want)
		}
	})
}

// The transport keeps a dial that nobody waits for any more, in case another request can use it, until it is told not to.
func TestHTTPClientGivesUpOnADeadHost(t *testing.T) {
	bubble(t, hop(latency), func(t *testing.T, s *gosimnet.Simnet) {
		s.Host("server")
		if _, err := s.AlterHost("server", gosimnet.ISOLATE); err != nil {
			t.Fatal(err)
		}
		dialled := make(chan error, 1)
		c, tr := client(t, s.Host("client"))
		tr.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := s.Host("client").DialContext(ctx, network, address)
			dialled <- err
			return conn, err
		}
		start := startClock()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(300*time.Millisecond, cancel)
		_, err := c.Do(must(http.NewRequestWithContext(ctx, "GET", "http://server/", nil))(t))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Do: %v, want context.Canceled", err)
		}
		start.at(t, "the error", 300*time.Millisecond)
		tr.CloseIdleConnections()
		if err := <-dialled; !errors.Is(err, context.Canceled) {
			t.Errorf("the transport's dial: %v, want context.Canceled", err)
		}
		start.at(t, "the end of the dial", 300*time.Millisecond)
	})
}

// Losses cost time, and no bytes.
func TestHTTPUploadArrivesIntact(t *testing.T) {
	cfg := hop(latency)
	cfg.Link.Loss = 0.2
	bubble(t, cfg, func(t *testing.T, s *gosimnet.Simnet) {
		const size = 64 << 20
		serve(t, listen(t, s.Host("server"), ":80"), func(w http.ResponseWriter, r *http.Request) {
			sum := sha256.New()
			n, err := io.Copy(sum, r.Body)
			fmt.Fprintf(w, "%d %x %v", n, sum.Sum(nil), err)
		})
		c, _ := client(t, s.Host("client"))
		sum := sha256.New()
		body := io.TeeReader(io.LimitReader(rand.NewChaCha8([32]byte{}), size), sum)
		start := startClock()
		resp, err := c.Post("http://server/", "application/octet-stream", body)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		want := fmt.Sprintf("%d %x <nil>", size, sum.Sum(nil))
		if got := readAll(t, resp.Body); got != want {
			t.Errorf("the server got %s, want %s", got, want)
		}
		stats, err := s.LinkStats("client", "server")
		if err != nil {
			t.Fatal(err)
		}
		if share := float64(stats.Lost.Packets) / float64(stats.Sent.Packets); share < 0.19 || share > 0.21 {
			t.Errorf("%d of %d packets were lost, want a fifth", stats.Lost.Packets, stats.Sent.Packets)
		}
		t.Logf("64 MiB took %v", time.Since(start.start))
	})
}

// A proxy between client and server adds its connection to the server once, and a round trip for each request.
func TestHTTPReverseProxy(t *testing.T) {
	bubble(t, hop(latency), func(t *testing.T, s *gosimnet.Simnet) {
		serve(t, listen(t, s.Host("server"), ":80"), func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Upgrade") != "" {
				shout(w, r)
				return
			}
			hello(w, r)
		})
		_, tr := client(t, s.Host("proxy"))
		proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "server"})
		proxy.Transport = tr
		serve(t, listen(t, s.Host("proxy"), ":80"), proxy.ServeHTTP)
		c, _ := client(t, s.Host("client"))

		for _, roundTrips := range []time.Duration{4, 2} {
			start := startClock()
			if got := get(t, c, "http://proxy/"); got != "hello from proxy" {
				t.Errorf("GET: %q", got)
			}
			start.at(t, "the answer", roundTrips*2*latency)
		}
		stream := upgrade(t, c, "http://proxy/")
		converse(t, stream, 4*latency)
	})
}

// Events come when they are sent, one way later, as long as the client listens; then the handler hears of it.
func TestHTTPServerSentEvents(t *testing.T) {
	bubble(t, hop(latency), func(t *testing.T, s *gosimnet.Simnet) {
		left := make(chan struct{})
		serve(t, listen(t, s.Host("server"), ":80"), func(w http.ResponseWriter, r *http.Request) {
			defer close(left)
			w.Header().Set("Content-Type", "text/event-stream")
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			for n := 1; ; n++ {
				select {
				case <-tick.C:
					fmt.Fprintf(w, "data: %d\n\n", n)
					w.(http.Flusher).Flush()
				case <-r.Context().Done():
					return
				}
			}
		})
		c, _ := client(t, s.Host("client"))
		start := startClock()
		resp, err := c.Get("http://server/")
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(resp.Body)
		for n := 1; n <= 5; n++ {
			lines.Scan()
			if want := fmt.Sprintf("data: %d", n); lines.Text() != want {
				t.Errorf("event %q, want %q", lines.Text(), want)
			}
			start.at(t, lines.Text(), time.Duration(n)*time.Second+4*latency)
			lines.Scan()
		}
		start = startClock()
		resp.Body.Close()
		<-left
		start.at(t, "the handler's end", latency)
	})
}

// A server that answers an upload early and closes is heard, although it has not read the upload.
func TestHTTPEarlyAnswerToAnUpload(t *testing.T) {
	bubble(t, hop(latency), func(t *testing.T, s *gosimnet.Simnet) {
		serve(t, listen(t, s.Host("server"), ":80"), func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "too much", http.StatusRequestEntityTooLarge)
		})
		c, _ := client(t, s.Host("client"))
		start := startClock()
		resp, err := c.Post("http://server/", "application/octet-stream", io.LimitReader(rand.NewChaCha8([32]byte{}), 32<<20))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if got := readAll(t, resp.Body); resp.StatusCode != http.StatusRequestEntityTooLarge || got != "too much\n" {
			t.Errorf("status %d, %q; want 413, too much", resp.StatusCode, got)
		}
		start.within(t, "the answer", 4*latency, time.Second)
	})
}

// A request on a pooled connection that turns out dead is made again if nothing can have come of it.
func TestHTTPRetriesIdempotentRequestsOnStaleConnections(t *testing.T) {
	for _, test := range []struct {
		method, key string
		dials       int
		fails       bool
	}{
		{"GET", "", 2, false},
		{"POST", "", 1, true},
		{"POST", "once", 2, false},
	} {
		t.Run(test.method+test.key, func(t *testing.T) {
			bubble(t, hop(latency), func(t *testing.T, s *gosimnet.Simnet) {
				var requests atomic.Int32
				serve(t, listen(t, s.Host("server"), ":80"), func(w http.ResponseWriter, r *http.Request) {
					if requests.Add(1) == 2 {
						panic(http.ErrAbortHandler)
					}
				})
				c, tr := client(t, s.Host("client"))
				dials := 0
				tr.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
					dials++
					return s.Host("client").DialContext(ctx, network, address)
				}
				get(t, c, "http://server/")
				req := must(http.NewRequest(test.method, "http://server/", strings.NewReader("body")))(t)
				if test.method == "GET" {
					req.Body, req.ContentLength = nil, 0
				}
				if test.key != "" {
					req.Header.Set("Idempotency-Key", test.key)
				}
				resp, err := c.Do(req)
				if err == nil {
					resp.Body.Close()
				}
				if (err != nil) != test.fails || dials != test.dials {
					t.Errorf("error %v after %d dials, want failure %v after %d", err, dials, test.fails, test.dials)
				}
			})
		})
	}
}

// A reset and a close of the client's end cancel a request's context; silence does not.
func TestHTTPRequestContext(t *testing.T) {
	for _, test := range []struct {
		name      string
		leave     func(s *gosimnet.Simnet, c net.Conn) error
		cancelled bool
	}{
		{"close", func(_ *gosimnet.Simnet, c net.Conn) error { return c.Close() }, true},
		{"reset", func(_ *gosimnet.Simnet, c net.Conn) error {
			c.(*gosimnet.Conn).SetLinger(0)
			return c.Close()
		}, true},
		{"half-close", func(_ *gosimnet.Simnet, c net.Conn) error { return c.(*gosimnet.Conn).CloseWrite() }, true},
		{"partition", func(s *gosimnet.Simnet, c net.Conn) error {
			_, err := s.Partition(gosimnet.DropPackets, []string{"client"}, []string{"server"})
			return err
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, hop(latency), func(t *testing.T, s *gosimnet.Simnet) {
				started, ended := make(chan bool), make(chan bool)
				serve(t, listen(t, s.Host("server"), ":80"), func(w http.ResponseWriter, r *http.Request) {
					close(started)
					select {
					case <-r.Context().Done():
						ended <- true
					case <-time.After(time.Minute):
						ended <- false
					}
				})
				c, err := s.Host("client").Dial("tcp", "server:80")
				if err != nil {
					t.Fatal(err)
				}
				io.WriteString(c, "GET / HTTP/1.1\r\nHost: server\r\n\r\n")
				<-started
				start := startClock()
				if err := test.leave(s, c); err != nil {
					t.Error(err)
				}
				if cancelled := <-ended; cancelled != test.cancelled {
					t.Errorf("the request's context was cancelled: %v, want %v", cancelled, test.cancelled)
				}
				if test.cancelled {
					start.at(t, "the cancellation", latency)
				}
			})
		})
	}
}

func TestHTTPPipelining(t *testing.T) {
	bubble(t, hop(latency), func(t *testing.T, s *gosimnet.Simnet) {
		serve(t, listen(t, s.Host("server"), ":80"), func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.Path) })
		c, err := s.Host("client").Dial("tcp", "server:80")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for _, path := range []string{"/1", "/2", "/3"} {
			fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: server\r\n\r\n", path)
		}
		answers := bufio.NewReader(c)
		for _, path := range []string{"/1", "/2", "/3"} {
			resp, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := readAll(t, resp.Body); got != path {
				t.Errorf("answer %q, want %q", got, path)
			}
		}
	})
}

// HTTP/2's own pings find out about a partition, and the next request dials anew.
func TestHTTP2PingsFindAPartition(t *testing.T) {
	bubble(t, hop(latency), func(t *testing.T, s *gosimnet.Simnet) {
		cert, roots := certificate(t, "server")
		serveTLS(t, listen(t, s.Host("server"), ":443"), cert, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/wait" {
				<-r.Context().Done()
			}
		})
		c, tr := clientTLS(t, s.Host("client"), roots)
		tr.HTTP2 = &http.HTTP2Config{SendPingTimeout: 2 * time.Second, PingTimeout: time.Second}
		dials := 0
		tr.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			dials++
			return s.Host("client").DialContext(ctx, network, address)
		}
		get(t, c, "https://server/")
		heal, err := s.Partition(gosimnet.DropPackets, []string{"client"}, []string{"server"})
		if err != nil {
			t.Fatal(err)
		}
		start := startClock()
		_, err = c.Get("https://server/wait")
		if err == nil || !strings.Contains(err.Error(), "client connection lost") {
			t.Errorf("Get: %v, want that the connection is lost", err)
		}
		start.within(t, "the error", 3*time.Second-2*latency, 4*latency)
		heal()
		get(t, c, "https://server/")
		if dials != 2 {
			t.Errorf("%d dials, want 2", dials)
		}
	})
}

func TestHTTPResponseHeaderTimeout(t *testing.T) {
	bubble(t, hop(latency), func(t *testing.T, s *gosimnet.Simnet) {
		serve(t, listen(t, s.Host("server"), ":80"), hello)
		c, tr := client(t, s.Host("client"))
		tr.ResponseHeaderTimeout = time.Second
		get(t, c, "http://server/")
		heal, err := s.Partition(gosimnet.DropPackets, []string{"client"}, []string{"server"})
		if err != nil {
			t.Fatal(err)
		}
		start := startClock()
		if _, err = c.Get("http://server/"); !os.IsTimeout(err) {
			t.Errorf("Get: %v, want a time-out", err)
		}
		start.at(t, "the error", time.Second)
		heal()
		start = startClock()
		get(t, c, "http://server/")
		start.at(t, "the answer on a new connection", 4*latency)
	})
}
