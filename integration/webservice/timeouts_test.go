package webservice

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// timeouts are the ones that net/http documents for clients and servers, each with a peer that brings it about. Nothing
// else ends the request: the Transport's fields are zero, which is no limit, unless the row sets them.
var timeouts = []struct {
	name, url, text string
	set             func(c *http.Client, tr *http.Transport, h *gosimnet.Host)
	took            time.Duration
	is              error // what errors.Is finds in it
	timeout         bool  // what the error says of itself
}{
	{"Dialer.Timeout", "http://dark/", "i/o timeout",
		func(_ *http.Client, tr *http.Transport, h *gosimnet.Host) {
			d := h.Dialer()
			d.Timeout = 3 * time.Second
			tr.DialContext = d.DialContext
		}, 3 * time.Second, nil, true},
	{"TLSHandshakeTimeout", "https://mute:80/", "net/http: TLS handshake timeout",
		func(_ *http.Client, tr *http.Transport, _ *gosimnet.Host) {
			tr.TLSHandshakeTimeout = 2 * time.Second
			tr.TLSClientConfig = &tls.Config{ServerName: "mute"}
		}, 2*latency + 2*time.Second, nil, true},
	{"ResponseHeaderTimeout", "http://mute/", "net/http: timeout awaiting response headers",
		func(_ *http.Client, tr *http.Transport, _ *gosimnet.Host) {
			tr.ResponseHeaderTimeout = time.Second
		}, 2*latency + time.Second, context.DeadlineExceeded, true},
	{"Client.Timeout, for the headers", "http://mute/", "context deadline exceeded",
		func(c *http.Client, _ *http.Transport, _ *gosimnet.Host) {
			c.Timeout = 5 * time.Second
		}, 5 * time.Second, context.DeadlineExceeded, true},
	{"Client.Timeout, for the body", "http://server/drip", "context deadline exceeded",
		func(c *http.Client, _ *http.Transport, _ *gosimnet.Host) {
			c.Timeout = 5 * time.Second
		}, 5 * time.Second, context.DeadlineExceeded, true},
	{"Server.WriteTimeout", "http://server/late", "EOF",
		func(*http.Client, *http.Transport, *gosimnet.Host) {
		}, 4*latency + 4*time.Second, io.EOF, false},
}

// Each time-out ends the request at its own time, and says which one it was; golang/go#24138 tells of users who could
// not tell what a zero Client waits for. (Whether Client.Timeout names itself is chance: its timer and the context's
// deadline are due at one instant.) A server's WriteTimeout is the odd one: it does not interrupt the handler, whose
// answer is thrown away when it is made, and the client learns of it as an EOF (golang/go#21389 and #59602).
func TestTimeoutsComeWhenTheyAreSet(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software("net/http"), Shows: "six time-outs of clients and servers, each at its time", Repeats: true,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		net.Host("dark")
		if _, err := net.AlterHost("dark", gosimnet.SHUTDOWN); err != nil {
			t.Fatal(err)
		}
		scenario.Listen(t, net.Host("mute"), ":80") // connections wait for an Accept that never comes
		srv := &http.Server{Handler: http.HandlerFunc(drip), WriteTimeout: 3 * time.Second}
		l := scenario.Listen(t, net.Host("server"), ":80")
		go srv.Serve(l)
		t.Cleanup(func() { srv.Close() })
		for _, test := range timeouts {
			c, tr := newClient(t, net.Host("client"), nil)
			test.set(c, tr, net.Host("client"))
			start := scenario.StartClock()
			_, err := request(c, "GET", test.url)
			start.At(t, test.name, test.took)
			if err == nil || !strings.Contains(err.Error(), test.text) || os.IsTimeout(err) != test.timeout {
				t.Errorf("%s: %v, a time-out: %v; want %q, %v", test.name, err, os.IsTimeout(err), test.text, test.timeout)
			}
			if test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("%s: %v is not %v", test.name, err, test.is)
			}
		}
	})
}

// drip answers /late late, and everything else for ever, a byte a second.
func drip(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/late" {
		time.Sleep(4 * time.Second)
		io.WriteString(w, "too late")
		return
	}
	for rc := http.NewResponseController(w); r.Context().Err() == nil; time.Sleep(time.Second) {
		rc.SetWriteDeadline(time.Time{})
		io.WriteString(w, ".")
		rc.Flush()
	}
}
