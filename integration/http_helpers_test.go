package integration

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"testing"

	"github.com/glycerine/gosimnet"
)

// serve runs an HTTP server for as long as the test runs.
func serve(t *testing.T, l net.Listener, h http.HandlerFunc) *http.Server {
	t.Helper()
	srv := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	go srv.Serve(l)
	t.Cleanup(func() { srv.Close() })
	return srv
}

// serveTLS is serve with TLS and HTTP/2.
func serveTLS(t *testing.T, l net.Listener, cert tls.Certificate, h http.HandlerFunc) *http.Server {
	t.Helper()
	srv := &http.Server{Handler: h, TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}, ErrorLog: log.New(io.Discard, "", 0)}
	go srv.ServeTLS(l, "", "")
	t.Cleanup(func() { srv.Close() })
	return srv
}

// client is an HTTP client on a host.
func client(t *testing.T, h *gosimnet.Host) (*http.Client, *http.Transport) {
	t.Helper()
	tr := &http.Transport{DialContext: h.DialContext, DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}, tr
}

// clientTLS is a client that trusts one certificate and speaks HTTP/2.
func clientTLS(t *testing.T, h *gosimnet.Host, roots *x509.CertPool) (*http.Client, *http.Transport) {
	t.Helper()
	c, tr := client(t, h)
	tr.TLSClientConfig = &tls.Config{RootCAs: roots}
	tr.ForceAttemptHTTP2 = true
	return c, tr
}

// get makes a request and returns its body, which must come with status 200.
func get(t *testing.T, c *http.Client, url string) string {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("GET %s: %s", url, resp.Status)
	}
	return readAll(t, resp.Body)
}
