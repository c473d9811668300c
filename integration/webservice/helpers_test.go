package webservice

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/glycerine/gosimnet"
)

// TestMain fails if anything is left running after all tests.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// latency is the network's, one way.
const latency = 10 * time.Millisecond

// http2Flushes is why runs of HTTP/2 over TLS may differ in the sizes of what is written, though not in outcomes and times.
const http2Flushes = "the HTTP/2 server selects among frames read, frames written and handlers' wishes: it is chance whether " +
	"its first SETTINGS ACK and WINDOW_UPDATE leave in one TLS record or two; with GOMAXPROCS=1, as here, nearly all runs " +
	"are alike, and without TLS all"

// oneByOne lets goroutines run one after the other until the test ends.
func oneByOne(t *testing.T) {
	before := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// software names what a scenario runs.
func software(packages string) string { return packages + " " + runtime.Version() }

// power makes a web service the software of a host: it listens on port 80, or 443 if there is a certificate, for as long
// as the host has power, and again at every power-on.
func power(t *testing.T, h *gosimnet.Host, cert *tls.Certificate, handler http.Handler) {
	h.Run(func(ctx context.Context) error {
		port := ":80"
		if cert != nil {
			port = ":443"
		}
		l, err := h.Listen("tcp", port)
		if err != nil {
			t.Error(err)
			return err
		}
		srv := serve(l, cert, handler)
		<-ctx.Done()
		return srv.Close()
	})
	t.Cleanup(func() { time.Sleep(time.Minute) }) // let handlers end
}

// serve runs a server until it is closed.
func serve(l net.Listener, cert *tls.Certificate, handler http.Handler) *http.Server {
	srv := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0), Protocols: &http.Protocols{}}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetHTTP2(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	if cert == nil {
		go srv.Serve(l)
		return srv
	}
	srv.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*cert}}
	go srv.ServeTLS(l, "", "")
	return srv
}

// newClient makes a client on a host. With roots it speaks HTTP/2 to who has a certificate.
func newClient(t *testing.T, h *gosimnet.Host, roots *x509.CertPool) (*http.Client, *http.Transport) {
	tr := &http.Transport{DialContext: h.DialContext, DisableCompression: true}
	if roots != nil {
		tr.TLSClientConfig = &tls.Config{RootCAs: roots}
		tr.ForceAttemptHTTP2 = true
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}, tr
}

// http2Only makes a Transport speak HTTP/2, with TLS or without.
func http2Only() *http.Protocols {
	var p http.Protocols
	p.SetHTTP2(true)
	p.SetUnencryptedHTTP2(true)
	return &p
}

// request makes a request and reads its answer, which comes as "200 OK: body".
func request(c *http.Client, method, url string, header ...string) (answer string, err error) {
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		return "", err
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return fmt.Sprintf("%s: %s", resp.Status, body), err
}

// expect makes a request that must be answered so.
func expect(t *testing.T, c *http.Client, method, url, want string) {
	t.Helper()
	if got, err := request(c, method, url); got != want || err != nil {
		t.Errorf("%s %s: %q, %v; want %q", method, url, got, err, want)
	}
}
