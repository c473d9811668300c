package gosimnet_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

// onHosts runs a case in a bubble, on a client and a server that are so far apart.
func onHosts(t *testing.T, oneWay time.Duration, f func(e *env)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := simulated(t, &gosimnet.SimNetConfig{MinHop: oneWay})
		e.rtt, e.pause = 2*oneWay, 20*oneWay
		f(e)
	})
}

// at runs f at an instant.
func at(start time.Time, d time.Duration, f func()) {
	time.Sleep(time.Until(start.Add(d)))
	f()
}

func TestStaleWriteCostsARoundTrip(t *testing.T) {
	const ms = time.Millisecond
	onHosts(t, 50*ms, func(e *env) {
		c, s := e.pair()
		start := time.Now()
		e.must(s.Close())
		at(start, 55*ms, func() { e.ends(c) })
		for _, when := range []time.Duration{60 * ms, 100 * ms, 140 * ms} {
			at(start, when, func() { e.writes(c, "x") })
		}
		at(start, 159*ms, func() { e.writes(c, "x") })
		at(start, 161*ms, func() { e.writeFails(c, errPipe) })
		at(start, 170*ms, func() { e.writeFails(c, errPipe) })
		e.ends(c)
	})
}

// relay copies between two connections, each direction to its own end.
func relay(a, b net.Conn) {
	var both sync.WaitGroup
	for _, way := range []struct{ from, to net.Conn }{{a, b}, {b, a}} {
		both.Go(func() {
			io.Copy(way.to, way.from)
			if half, ok := way.to.(interface{ CloseWrite() error }); ok {
				half.CloseWrite()
			} else {
				way.to.Close()
			}
		})
	}
	both.Wait()
	a.Close()
	b.Close()
}

// answerAtEnd reads a request to its end, and then answers it.
func answerAtEnd(c net.Conn) (request string, err error) {
	defer c.Close()
	got, err := io.ReadAll(c)
	if err == nil {
		_, err = io.WriteString(c, "answer to "+string(got[:8]))
	}
	return string(got), err
}

func TestHalfCloseThroughARelay(t *testing.T) {
	onHosts(t, hop, func(e *env) {
		middle := e.sim.Host("relay")
		inner, err := e.server.Listen("tcp", ":80")
		e.must(err)
		outer, err := middle.Listen("tcp", ":80")
		e.must(err)
		relayed := e.start(func() (int, error) {
			a, err := outer.Accept()
			e.must(err)
			b, err := middle.Dial("tcp", "server:80")
			e.must(err)
			relay(a, b)
			return 0, nil
		})
		c, err := e.client.Dial("tcp", "relay:80")
		e.must(err)
		s := e.accept(inner)
		var asked string
		served := e.start(func() (_ int, err error) { asked, err = answerAtEnd(s); return })
		e.settle()
		e.asksThrough(c, &asked, relayed, served)
	})
}

// asksThrough sends a request that only its end ends, and checks the answer, and that everything else has ended too.
func (e *env) asksThrough(c net.Conn, asked *string, others ...*call) {
	e.Helper()
	request := strings.Repeat("question", 4000)
	start := time.Now()
	e.writes(c, request)
	e.must(c.(stream).CloseWrite())
	answer, err := io.ReadAll(c)
	e.took(start, 4*hop)
	if string(answer) != "answer to question" || err != nil {
		e.Errorf("answer: %q, %v", answer, err)
	}
	e.must(c.Close())
	for _, o := range others {
		if _, err := e.within(time.Second, o); err != nil {
			e.Error(err)
		}
	}
	if *asked != request {
		e.Errorf("the server read %d B of the request, want all %d", len(*asked), len(request))
	}
}

func TestHalfCloseThroughAReverseProxy(t *testing.T) {
	onHosts(t, hop, func(e *env) {
		var asked string
		served := &call{done: make(chan struct{})}
		backend := e.serve(&http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			e.must(err)
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tunnel\r\n\r\n")
			asked, served.err = answerAtEnd(c)
			close(served.done)
		})})
		proxied := e.proxy(backend)
		c, err := e.client.Dial("tcp", "relay:80")
		e.must(err)
		e.writes(c, "GET / HTTP/1.1\r\nHost: relay\r\nConnection: Upgrade\r\nUpgrade: tunnel\r\n\r\n")
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		e.must(err)
		if res.StatusCode != http.StatusSwitchingProtocols {
			e.Fatalf("the proxy answers %v", res.Status)
		}
		e.asksThrough(c, &asked, proxied, served)
	})
}

// proxy runs a reverse proxy on the host relay, and reports the end of its request.
func (e *env) proxy(backend string) (proxied *call) {
	e.Helper()
	middle := e.sim.Host("relay")
	to, err := url.Parse(backend)
	e.must(err)
	p := httputil.NewSingleHostReverseProxy(to)
	p.Transport = &http.Transport{DialContext: middle.DialContext}
	p.ModifyResponse = func(res *http.Response) error {
		if _, ok := res.Body.(interface{ CloseWrite() error }); !ok {
			e.Skip("this net/http does not pass on the end of an upgraded connection's request")
		}
		return nil
	}
	l, err := middle.Listen("tcp", ":80")
	e.must(err)
	proxied = &call{done: make(chan struct{})}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.ServeHTTP(w, r)
		close(proxied.done)
	})}
	go srv.Serve(l)
	e.Cleanup(func() { srv.Close(); time.Sleep(time.Second) })
	return proxied
}

func TestAddressesAndPorts(t *testing.T) {
	onHosts(t, hop, func(e *env) {
		l := e.listenAt("tcp", "0.0.0.0:7000")
		_, err := e.server.Listen("tcp", e.serverIP+":7000")
		e.same(err, listenError("listen", e.tcp(e.serverIP, 7000), errInUse))
		_, err = e.server.Listen("tcp", ":7000")
		e.same(err, listenError("listen", &net.TCPAddr{Port: 7000}, errInUse))
		p, err := e.server.ListenPacket("udp", ":7000")
		e.must(err)
		e.must(p.Close())

		byName, err := e.client.Dial("tcp", "server:7000")
		e.must(err)
		e.concrete(byName, e.accept(l), e.serverIP)
		other, err := e.client.Dial("tcp", e.otherIP+":7000")
		e.must(err)
		s := e.accept(l)
		e.concrete(other, s, e.otherIP)

		e.must(l.Close()) // with connections that are alive
		l = e.listenAt("tcp", e.serverIP+":7000")
		e.writes(other, "alive")
		e.reads(s, "alive")
		_, err = e.client.Dial("tcp", e.otherIP+":7000")
		if want := "dial tcp " + e.otherIP + ":7000: connect: connection refused"; err == nil || err.Error() != want {
			e.Errorf("a dial of the other address: %v, want %s", err, want)
		}
		e.dial(l)
	})
}

// concrete checks that both ends know the server by the address that was dialled.
func (e *env) concrete(c, s net.Conn, ip string) {
	e.Helper()
	want := e.tcp(ip, 7000)
	if !sameAddr(c.RemoteAddr(), want) || !sameAddr(s.LocalAddr(), want) || !sameAddr(c.LocalAddr(), s.RemoteAddr()) {
		e.Errorf("ends are %v→%v and %v→%v, want the server at %v", c.LocalAddr(), c.RemoteAddr(), s.LocalAddr(), s.RemoteAddr(), want)
	}
}

func TestPortsOfManyDials(t *testing.T) {
	onHosts(t, hop, func(e *env) {
		l := e.listen()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() { io.Copy(io.Discard, c); c.Close() }()
			}
		}()
		inUse := make(map[string]bool)
		var open []net.Conn
		for range 5000 {
			c, err := e.client.Dial("tcp", l.Addr().String())
			e.must(err)
			if port := c.LocalAddr().String(); inUse[port] {
				e.Fatalf("%s is in use twice", port)
			} else {
				inUse[port] = true
			}
			if open = append(open, c); len(open) == 20 {
				e.must(open[0].Close())
				delete(inUse, open[0].LocalAddr().String())
				open = open[1:]
			}
		}
		for _, c := range open {
			e.must(c.Close())
		}
	})
}

func TestDialAndWalkAway(t *testing.T) {
	onHosts(t, hop, func(e *env) {
		e.alter("server", gosimnet.ISOLATE)
		ctx, cancel := context.WithTimeoutCause(context.Background(), time.Hour, nil)
		start := time.Now()
		time.AfterFunc(300*time.Millisecond, cancel)
		_, err := e.client.DialContext(ctx, "tcp", e.serverIP+":80")
		e.exactly(start, 300*time.Millisecond)
		e.same(err, dialError(nil, e.tcp(e.serverIP, 80), errCancelled))
		e.noConns()
	})
}

func TestRequestAndWalkAway(t *testing.T) {
	onHosts(t, hop, func(e *env) {
		e.alter("server", gosimnet.ISOLATE)
		dialled := make(chan error, 1)
		w := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := e.client.DialContext(ctx, network, address)
			dialled <- err
			return c, err
		}}}
		ctx, cancel := context.WithCancel(context.Background())
		req, err := http.NewRequestWithContext(ctx, "GET", "http://server/", nil)
		e.must(err)
		start := time.Now()
		time.AfterFunc(300*time.Millisecond, cancel)
		_, err = w.Do(req)
		e.exactly(start, 300*time.Millisecond)
		if !errors.Is(err, context.Canceled) {
			e.Errorf("GET: %v, want context.Canceled", err)
		}
		w.CloseIdleConnections() // which ends the dial, that another request might have used
		if err := <-dialled; !errors.Is(err, context.Canceled) {
			e.Errorf("dial: %v, want context.Canceled", err)
		}
		e.exactly(start, 300*time.Millisecond)
		e.noConns()
	})
}

func TestWalkAwayFromASlowHost(t *testing.T) {
	onHosts(t, 500*time.Millisecond, func(e *env) {
		l := e.listen()
		a := e.startAccept(l)
		ctx, cancel := context.WithCancel(context.Background())
		start := time.Now()
		time.AfterFunc(700*time.Millisecond, cancel)
		_, err := e.client.DialContext(ctx, "tcp", l.Addr().String())
		e.exactly(start, 700*time.Millisecond)
		e.same(err, dialError(nil, l.Addr(), errCancelled))
		at(start, 1600*time.Millisecond, func() { e.noConns() })
		e.sentAt("client", "RST", start, time.Second)
		time.Sleep(time.Hour)
		e.unfinished(a)
	})
}

// noConns checks that nothing is left of any connection.
func (e *env) noConns() {
	e.Helper()
	for _, p := range e.sim.GetSimnetSnapshot().Peer {
		if len(p.Conn)+len(p.Dialing) > 0 {
			e.Errorf("%s has %d connections and %d dials left", p.Name, len(p.Conn), len(p.Dialing))
		}
	}
}

func TestCutAndHealLosesNothing(t *testing.T) {
	onHosts(t, hop, func(e *env) {
		c, s := e.pair()
		heal := e.part()
		start := time.Now()
		var first time.Time
		r := e.start(func() (int, error) {
			got := make([]byte, 5)
			_, err := io.ReadFull(s, got[:1])
			first = time.Now()
			if err == nil {
				_, err = io.ReadFull(s, got[1:])
			}
			if string(got) != "01234" {
				err = errors.Join(err, errors.New("arrived: "+string(got)))
			}
			return len(got), err
		})
		for i, digit := range strings.Split("01234", "") {
			at(start, time.Duration(i)*100*time.Millisecond, func() { e.writes(c, digit) })
		}
		at(start, time.Second, heal)
		if _, err := e.wait(r); err != nil {
			e.Error(err)
		}
		e.at(first.Sub(start), 1600*time.Millisecond+hop)
		e.settle()
		e.must(c.Close())
		e.ends(s)
	})
}

func TestCutInTheMiddleOfALargeTransfer(t *testing.T) {
	onHosts(t, hop, func(e *env) { e.transferAcrossCut(3 * time.Second) })
}

func TestRefusalsOfDatagrams(t *testing.T) {
	errRead, errWrite := sysError("read", syscall.ECONNREFUSED), sysError("write", syscall.ECONNREFUSED)
	onHosts(t, hop, func(e *env) {
		closed := e.closedSocket()
		good := e.socket(e.server, e.serverIP)
		u := e.socket(e.client, e.clientIP)
		e.sendsTo(u, []byte("bad"), closed)
		e.sendsTo(u, []byte("good"), good.LocalAddr())
		e.gets(good, "good", u.LocalAddr())
		e.silent(u)

		c := e.connected(closed)
		r := e.readByte(c)
		start := time.Now()
		e.writes(c, "x")
		n, err := e.wait(r)
		e.took(start, 2*hop)
		e.fails(n, err, connError(c, "read", errRead))
		e.silent(c)

		for i := range 4 {
			if i%2 == 0 {
				e.writes(c, "x")
			} else {
				e.writeFails(c, errWrite)
			}
			time.Sleep(30 * time.Millisecond)
		}

		e.alter("server", gosimnet.ISOLATE)
		for range 4 {
			e.writes(c, "x")
			e.sendsTo(u, []byte("x"), closed)
			time.Sleep(30 * time.Millisecond)
		}
		e.silent(c)
		e.silent(u)
	})
}

func TestOneWayOrRoundTrip(t *testing.T) {
	const there, back = 10 * time.Millisecond, 90 * time.Millisecond
	t.Run("the same both ways", func(t *testing.T) { onHosts(t, 50*time.Millisecond, roundTrips) })
	t.Run("10 ms there and 90 ms back", func(t *testing.T) {
		onHosts(t, 50*time.Millisecond, func(e *env) {
			e.must(e.sim.SetLink("client", "server", gosimnet.LinkConfig{Latency: gosimnet.Constant(there)}))
			e.must(e.sim.SetLink("server", "client", gosimnet.LinkConfig{Latency: gosimnet.Constant(back)}))
			roundTrips(e)
		})
	})
}

// roundTrips measures what costs how many times 100 ms, there and back.
func roundTrips(e *env) {
	const rtt = 100 * time.Millisecond
	cert, roots := certificate(e, "server")
	plain := e.serve(&http.Server{Handler: http.HandlerFunc(hello)})
	go (&http.Server{Handler: http.HandlerFunc(hello), TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}}).
		ServeTLS(e.listenAt("tcp", ":443"), "", "")
	go echoDatagrams(e.socketAt(e.server, ":7"))
	w := e.web()
	w.transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}
	for _, m := range []struct {
		what  string
		trips time.Duration
		do    func()
	}{
		{"dial", 1, func() { c, err := e.client.Dial("tcp", "server:80"); e.must(err); c.Close() }},
		{"GET on a new connection", 2, func() { w.gets(plain, "hello") }},
		{"GET on the same", 1, func() { w.gets(plain, "hello") }},
		{"GET over TLS on a new connection", 3, func() { w.gets("https://server/", "hello") }},
		{"UDP echo", 1, func() {
			c, err := e.client.Dial("udp", "server:7")
			e.must(err)
			defer c.Close()
			e.writes(c, "echo")
			e.reads(c, "echo")
		}},
		{"refused dial", 1, func() {
			if _, err := e.client.Dial("tcp", "server:"+strconv.Itoa(closedPort)); !errors.Is(err, syscall.ECONNREFUSED) {
				e.Errorf("dial of a closed port: %v", err)
			}
		}},
	} {
		start := time.Now()
		m.do()
		if took := time.Since(start); took < m.trips*rtt || took > m.trips*rtt+time.Microsecond {
			e.Errorf("%s took %v, want %v", m.what, took, m.trips*rtt)
		}
		time.Sleep(time.Second)
	}
}

func (e *env) socketAt(n gosimnet.Network, address string) net.PacketConn {
	e.Helper()
	p, err := n.ListenPacket("udp", address)
	e.must(err)
	e.Cleanup(func() { p.Close() })
	return p
}

func echoDatagrams(p net.PacketConn) {
	b := make([]byte, 1500)
	for {
		n, from, err := p.ReadFrom(b)
		if err != nil {
			return
		}
		p.WriteTo(b[:n], from)
	}
}

// certificate makes one that is valid also at the beginning of a bubble's time.
func certificate(e *env, name string) (tls.Certificate, *x509.CertPool) {
	e.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	e.must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	e.must(err)
	cert, err := x509.ParseCertificate(der)
	e.must(err)
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}
