package gosimnet_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// libraryRows are what the standard library does over the kernel's sockets, and does over the simulator's.
func libraryRows() []row {
	return []row{
		{id: "L1", name: "a pooled connection that the server closes without a reply", run: reusedConnCloses},
		{id: "L2", name: "Shutdown with a new connection", run: shutdownNewConn},
		{id: "L2", name: "Shutdown with an idle connection", run: shutdownIdleConn},
		{id: "L3", name: "an upload refused early", run: uploadRefused},
		{id: "L21", name: "what cancels a request's context", run: requestContext},
		{id: "L21", name: "a partition does not cancel a request's context", run: requestContextInPartition},
		{id: "L22", name: "pipelined requests", run: pipelined},
		{id: "L23", name: "HTTP/2 pings find a partition", run: http2Ping},
		{id: "L24", name: "ResponseHeaderTimeout on a dead pooled connection", run: responseHeaderTimeout},
		{id: "L25", name: "Expect-continue, refused", run: expectRefused},
		{id: "L25", name: "Expect-continue, slow", run: expectSlow},
		{id: "L4", name: "a resolver whose first datagram is lost", run: resolverRetries},
		{id: "L4", name: "a resolver whose answer is cut short", run: resolverTruncated},
		{id: "L4", name: "a resolver that hears nothing", run: resolverTimesOut},
	}
}

func TestKernelLibraries(t *testing.T) {
	primeResolver(t)
	for _, r := range libraryRows() {
		t.Run(r.id+" "+r.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { r.run(simulated(t, nil)) })
		})
	}
}

// web is an http.Client of the simulated client, and how often it dialled.
type web struct {
	*env
	http.Client
	transport *http.Transport
	dials     atomic.Int32
}

func (e *env) web() *web {
	w := &web{env: e}
	w.transport = &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		w.dials.Add(1)
		return e.client.DialContext(ctx, network, address)
	}}
	w.Transport = w.transport
	e.Cleanup(w.CloseIdleConnections)
	return w
}

// ask makes a request and reads all of the answer.
func (w *web) ask(method, url, body string, header ...string) (status int, answer string, err error) {
	w.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	w.must(err)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := w.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

// gets checks a GET.
func (w *web) gets(url, want string) {
	w.Helper()
	if status, got, err := w.ask("GET", url, ""); status != 200 || got != want || err != nil {
		w.Fatalf("GET: %d, %q, %v, want 200 %q", status, got, err, want)
	}
}

func (w *web) dialled(want int32) {
	w.Helper()
	if got := w.dials.Load(); got != want {
		w.Errorf("%d dials, want %d", got, want)
	}
}

// serve runs a server on the server's port 80. Virtual time runs after its end, because net/http lets connections linger.
func (e *env) serve(srv *http.Server) (url string) {
	e.Helper()
	l := e.listenAt("tcp", ":80")
	go srv.Serve(l)
	e.Cleanup(func() { srv.Close(); time.Sleep(time.Second) })
	return "http://server/"
}

func hello(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }

// reusedConnCloses has a server that ends its first connection at the second request there.
func reusedConnCloses(e *env) {
	l := e.listenAt("tcp", ":80")
	var linger atomic.Int32
	go func() {
		for first := true; ; {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go answerTwice(c.(stream), first, &linger)
			first = !first
		}
	}()
	for _, end := range []struct {
		linger int32
		is     error
	}{{-1, io.EOF}, {0, syscall.ECONNRESET}} {
		for _, ask := range []struct {
			method  string
			header  []string
			retried bool
		}{{"GET", nil, true}, {"POST", nil, false}, {"POST", []string{"Idempotency-Key", "1"}, true}} {
			linger.Store(end.linger)
			w := e.web()
			w.gets("http://server/", "ok")
			status, _, err := w.ask(ask.method, "http://server/", "", ask.header...)
			if ask.retried {
				w.dialled(2)
				if status != 200 || err != nil {
					e.Errorf("%s %v: %d, %v, want it retried", ask.method, ask.header, status, err)
				}
			} else {
				w.dialled(1)
				if !errors.Is(err, end.is) {
					e.Errorf("%s %v: %d, %v, want %v", ask.method, ask.header, status, err, end.is)
				}
				w.ask("GET", "http://server/", "") // takes the turn of the connection that was not dialled
			}
			w.CloseIdleConnections()
			e.settle()
		}
	}
}

// answerTwice answers requests; a first connection gets one answer and then ends.
func answerTwice(c stream, first bool, linger *atomic.Int32) {
	defer c.Close()
	r := bufio.NewReader(c)
	for n := 0; ; n++ {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		io.Copy(io.Discard, req.Body)
		if first && n == 1 {
			c.SetLinger(int(linger.Load()))
			return
		}
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	}
}

// shutdownNewConn has a connection without a request, which Shutdown spares until it is older than five whole seconds. Its polls
// are half a second apart.
func shutdownNewConn(e *env) {
	start := time.Now()
	srv := &http.Server{Handler: http.HandlerFunc(hello)}
	e.serve(srv)
	c, err := e.client.Dial("tcp", "server:80")
	e.must(err)
	defer c.Close()
	e.settle()
	e.must(srv.Shutdown(context.Background()))
	if took := time.Since(start); took < 6*time.Second || took > 6600*time.Millisecond {
		e.Errorf("Shutdown ended at %v, want 6.0 s to 6.6 s", took)
	}
}

func shutdownIdleConn(e *env) {
	srv := &http.Server{Handler: http.HandlerFunc(hello)}
	url := e.serve(srv)
	e.web().gets(url, "hello")
	start := time.Now()
	e.must(srv.Shutdown(context.Background()))
	if took := time.Since(start); took > time.Millisecond {
		e.Errorf("Shutdown took %v, want no more than 1 ms", took)
	}
}

// uploadRefused must see the answer although most of the body is still to be sent: the server
// closes its writing first, and the rest half a second later.
func uploadRefused(e *env) {
	refused, closed := make(chan time.Time, 1), make(chan time.Time, 1)
	srv := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			refused <- time.Now()
			http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		}),
		ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateClosed {
				closed <- time.Now()
			}
		},
	}
	url := e.serve(srv)
	w := e.web()
	start := time.Now()
	status, answer, err := w.ask("PUT", url, strings.Repeat("x", 32<<20))
	e.took(start, 4*hop)
	if status != http.StatusRequestEntityTooLarge || answer != "too large\n" || err != nil {
		e.Errorf("PUT: %d, %q, %v, want 413", status, answer, err)
	}
	e.at((<-closed).Sub(<-refused), 500*time.Millisecond)
}

// request sends a request over a connection of its own, to a handler that waits for the end of its context.
func (e *env) request() (c stream, cancelled <-chan time.Time) {
	e.Helper()
	began, ended := make(chan bool, 1), make(chan time.Time, 1)
	srv := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		began <- true
		<-r.Context().Done()
		ended <- time.Now()
	})}
	e.serve(srv)
	conn, err := e.client.Dial("tcp", "server:80")
	e.must(err)
	e.Cleanup(func() { conn.Close() })
	e.writes(conn, "GET / HTTP/1.1\r\nHost: server\r\n\r\n")
	<-began
	return conn.(stream), ended
}

func requestContext(e *env) {
	for name, end := range map[string]func(stream) error{
		"FIN":        stream.Close,
		"CloseWrite": stream.CloseWrite,
		"RST":        func(c stream) error { c.SetLinger(0); return c.Close() },
	} {
		one := simulated(e.T, nil)
		c, cancelled := one.request()
		start := time.Now()
		e.must(end(c))
		select {
		case at := <-cancelled:
			e.at(at.Sub(start), hop)
		case <-time.After(time.Minute):
			e.Errorf("%s does not cancel the request's context", name)
		}
	}
}

func requestContextInPartition(e *env) {
	_, cancelled := e.request()
	sent := time.Now() // its last sign of life arrives now
	e.part()
	e.at((<-cancelled).Sub(sent), keepAliveGiveUp)
}

// pipelined requests are read by the server's background read in part, while the handler runs.
func pipelined(e *env) {
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(50 * time.Millisecond)
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s", r.URL.Path, body)
	})}
	e.serve(srv)
	c, err := e.client.Dial("tcp", "server:80")
	e.must(err)
	defer c.Close()
	e.writes(c, "GET /one HTTP/1.1\r\nHost: s\r\n\r\n"+
		"POST /two HTTP/1.1\r\nHost: s\r\nContent-Length: 4\r\n\r\nbody"+
		"GET /three HTTP/1.1\r\nHost: s\r\n\r\n")
	answers := bufio.NewReader(c)
	for _, want := range []string{"/one ", "/two body", "/three "} {
		res, err := http.ReadResponse(answers, nil)
		e.must(err)
		if got, err := io.ReadAll(res.Body); string(got) != want || err != nil {
			e.Errorf("answer %q, %v, want %q", got, err, want)
		}
	}
}

func http2Ping(e *env) {
	var h2 http.Protocols
	h2.SetUnencryptedHTTP2(true)
	url := e.serve(&http.Server{Handler: http.HandlerFunc(hello), Protocols: &h2})
	w := e.web()
	w.transport.Protocols = &h2
	w.transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: 2 * time.Second, PingTimeout: time.Second}
	w.gets(url, "hello")
	heal := e.part()
	start := time.Now()
	_, _, err := w.ask("GET", url, "")
	e.took(start, 3*time.Second)
	if err == nil || !strings.Contains(err.Error(), "http2: client connection lost") {
		e.Errorf("in the partition: %v, want the connection lost", err)
	}
	w.dialled(1)
	heal()
	w.gets(url, "hello")
	w.dialled(2)
}

func responseHeaderTimeout(e *env) {
	url := e.serve(&http.Server{Handler: http.HandlerFunc(hello)})
	w := e.web()
	w.transport.ResponseHeaderTimeout = time.Second
	w.gets(url, "hello")
	w.gets(url, "hello")
	w.dialled(1)
	heal := e.part()
	start := time.Now()
	_, _, err := w.ask("GET", url, "")
	e.exactly(start, time.Second)
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		e.Errorf("in the partition: %v, want a time-out", err)
	}
	heal()
	w.gets(url, "hello")
	w.dialled(2)
}

// counted counts the bytes that are read of a request's body.
type counted struct {
	io.Reader
	n atomic.Int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n.Add(int64(n))
	return n, err
}

// expect makes a request that waits a second for leave to send its body.
func (w *web) expect(url string, body *counted, size int64) (status int, err error) {
	w.Helper()
	w.transport.ExpectContinueTimeout = time.Second
	req, err := http.NewRequest("POST", url, body)
	w.must(err)
	req.ContentLength = size
	req.Header.Set("Expect", "100-continue")
	res, err := w.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}

func expectRefused(e *env) {
	url := e.serve(&http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		hello(w, r)
	})})
	w := e.web()
	body := &counted{Reader: strings.NewReader(strings.Repeat("x", 1<<20))}
	start := time.Now()
	status, err := w.expect(url, body, 1<<20)
	e.took(start, 4*hop)
	if status != http.StatusUnauthorized || err != nil || body.n.Load() != 0 {
		e.Errorf("POST: %d, %v, %d B of the body sent, want 401 and none", status, err, body.n.Load())
	}
	e.settle()
	w.gets(url, "hello")
	w.dialled(2)
}

func expectSlow(e *env) {
	waited := make(chan time.Duration, 1)
	url := e.serve(&http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		time.Sleep(2 * time.Second)
		n, err := io.Copy(io.Discard, r.Body)
		waited <- time.Since(began)
		if n != 1000 || err != nil {
			e.Errorf("the handler read %d B, %v", n, err)
		}
	})})
	w := e.web()
	start := time.Now()
	body := &counted{Reader: strings.NewReader(strings.Repeat("x", 1000))}
	time.AfterFunc(2*hop+time.Second-time.Millisecond, func() {
		if body.n.Load() != 0 {
			e.Errorf("%d B of the body were sent before a second was over", body.n.Load())
		}
	})
	time.AfterFunc(2*hop+time.Second+time.Millisecond, func() {
		if body.n.Load() != 1000 {
			e.Errorf("%d B of the body were sent after a second, want all 1000", body.n.Load())
		}
	})
	status, err := w.expect(url, body, 1000)
	e.took(start, 4*hop+2*time.Second)
	if status != 200 || err != nil {
		e.Errorf("POST: %d, %v", status, err)
	}
	e.at(<-waited, 2*time.Second)
}

// primeResolver makes package net read its files, and make its locks, outside of any bubble.
func primeResolver(t *testing.T) {
	r := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, io.EOF }}
	_, err := r.LookupNetIP(t.Context(), "ip4", "prime.test.")
	if err == nil {
		t.Fatal("a lookup without a server succeeded")
	}
}

// names is a DNS server on the server's port 53, and the client's resolver, that asks it.
type names struct {
	net.Resolver
	mu    sync.Mutex
	asked []string // the networks that were dialled
}

const (
	dnsTimeout = 5 * time.Second // of one question, unless /etc/resolv.conf has other options
	truncated  = 0x02            // of the flags: the answer did not fit
)

var dnsName, dnsAddr = "name.test.", netip.MustParseAddr("192.0.2.7")

// names makes both. Answers to datagrams have flags.
func (e *env) names(flags byte) *names {
	e.Helper()
	if conf, err := os.ReadFile("/etc/resolv.conf"); err == nil && strings.Contains(string(conf), "options") {
		e.Skip("/etc/resolv.conf has options")
	}
	p, err := e.server.ListenPacket("udp", ":53")
	e.must(err)
	e.Cleanup(func() { p.Close() })
	go answerDatagrams(p, flags)
	go answerConns(e.listenAt("tcp", ":53"))
	r := &names{}
	r.PreferGo = true
	r.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		r.mu.Lock()
		r.asked = append(r.asked, network)
		r.mu.Unlock()
		return e.client.DialContext(ctx, network, "server:53")
	}
	return r
}

func answerDatagrams(p net.PacketConn, flags byte) {
	b := make([]byte, 1500)
	for {
		n, from, err := p.ReadFrom(b)
		if err != nil {
			return
		}
		p.WriteTo(answer(b[:n], flags), from)
	}
}

// answerConns answers one question a connection, with its length before it.
func answerConns(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		b := make([]byte, 1500)
		if _, err := io.ReadFull(c, b[:2]); err == nil {
			question := b[2 : 2+binary.BigEndian.Uint16(b)]
			if _, err := io.ReadFull(c, question); err == nil {
				a := answer(question, 0)
				c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(a))), a...))
			}
		}
		c.Close()
	}
}

// answer is the answer to a DNS question (RFC 1035, section 4): one address.
func answer(question []byte, flags byte) []byte {
	end := 12
	for question[end] != 0 {
		end += 1 + int(question[end])
	}
	end += 1 + 4 // the root, a type and a class
	records := byte(1)
	if flags&truncated != 0 {
		records = 0
	}
	a := append(slices.Clone(question[:2]), 0x81|flags, 0x80, 0, 1, 0, records, 0, 0, 0, 0)
	a = append(a, question[12:end]...)
	if records == 1 {
		a = append(a, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4)
		a = append(a, dnsAddr.AsSlice()...)
	}
	return a
}

// resolves checks a lookup.
func (e *env) resolves(r *names) {
	e.Helper()
	got, err := r.LookupNetIP(context.Background(), "ip4", dnsName)
	if err != nil || len(got) != 1 || got[0].Unmap() != dnsAddr {
		e.Errorf("lookup: %v, %v, want %v", got, err, dnsAddr)
	}
}

func (e *env) asked(r *names, want ...string) {
	e.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.asked, want) {
		e.Errorf("dialled %v, want %v", r.asked, want)
	}
}

func resolverRetries(e *env) {
	r := e.names(0)
	heal := e.part()
	time.AfterFunc(time.Second, heal)
	start := time.Now()
	e.resolves(r)
	e.took(start, dnsTimeout+2*hop)
	e.asked(r, "udp", "udp")
}

func resolverTruncated(e *env) {
	r := e.names(truncated)
	start := time.Now()
	e.resolves(r)
	e.took(start, 6*hop) // a datagram there and back, a handshake, a question and an answer
	e.asked(r, "udp", "tcp")
}

// resolverTimesOut asks each server of /etc/resolv.conf twice.
func resolverTimesOut(e *env) {
	r := e.names(0)
	e.part()
	start := time.Now()
	_, err := r.LookupNetIP(context.Background(), "ip4", dnsName)
	r.mu.Lock()
	defer r.mu.Unlock()
	e.exactly(start, time.Duration(len(r.asked))*dnsTimeout)
	var dns *net.DNSError
	if !errors.As(err, &dns) || !dns.IsTimeout || len(r.asked) < 2 {
		e.Errorf("lookup: %v after %d dials, want a *net.DNSError that is a time-out after 2", err, len(r.asked))
	}
}
