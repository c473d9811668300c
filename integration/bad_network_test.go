package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// bad is a network that does to streams all that a network can do without ending them. The send buffer holds all that is written: HTTP/2
// clients, among others, hold a mutex while they write, and a bubble stands still for ever when one goroutine waits for
// room in the buffer, and another for the mutex.
func bad(seed uint64) gosimnet.SimNetConfig {
	return gosimnet.SimNetConfig{
		Seed: seed, MinHop: time.Millisecond, MaxHop: 30 * time.Millisecond, SendBuffer: 8 << 20, ReceiveBuffer: 8 << 10, ChopReads: true,
		Link: gosimnet.LinkConfig{Loss: 0.05, Burst: &gosimnet.GilbertElliott{GoodToBad: 0.01, BadToGood: 0.2, LossGood: 0.02, LossBad: 0.8}},
	}
}

// interrupt cuts the network in two for three seconds every ten, and its links one way in between, until the test ends.
func interrupt(ctx context.Context, t *testing.T, s *gosimnet.Simnet) {
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(5 * time.Second):
		}
		var heal func()
		var err error
		switch n % 3 {
		case 0:
			heal, err = s.Partition(gosimnet.DropPackets, []string{"client"}, []string{"server"})
		case 1:
			heal, err = s.CutLink(gosimnet.HoldPackets, "server", "client")
		case 2:
			heal, err = s.CutLink(gosimnet.DropPackets, "client", "server")
		}
		if err != nil {
			t.Error(err)
			return
		}
		time.Sleep(3 * time.Second)
		heal()
	}
}

// Nothing is lost, and nothing hangs.
func TestSoftwareOnABadNetwork(t *testing.T) {
	cert, roots := scenario.Certificate(t, "server")
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble(t, bad(seed), func(t *testing.T, s *gosimnet.Simnet) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go interrupt(ctx, t, s)
				var users sync.WaitGroup
				users.Go(func() { mirrored(t, s, cert, roots) })
				users.Go(func() { called(t, s) })
				users.Wait()
			})
		})
	}
}

// mirrored sends bodies over HTTP/2, which must come back as they were.
func mirrored(t *testing.T, s *gosimnet.Simnet, cert tls.Certificate, roots *x509.CertPool) {
	serveTLS(t, listen(t, s.Host("server"), ":443"), cert, func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	c, _ := clientTLS(t, s.Host("client"), roots)
	var requests sync.WaitGroup
	for n := range 20 {
		requests.Go(func() {
			body := make([]byte, 20_000)
			rand.NewChaCha8([32]byte{byte(n)}).Read(body)
			resp, err := c.Post("https://server/", "application/octet-stream", bytes.NewReader(body))
			if err != nil {
				t.Errorf("request %d: %v", n, err)
				return
			}
			defer resp.Body.Close()
			if got := readAll(t, resp.Body); got != string(body) {
				t.Errorf("request %d: %d bytes came back, not the %d that were sent", n, len(got), len(body))
			}
		})
	}
	requests.Wait()
}

// called makes calls over gRPC, one after the other.
func called(t *testing.T, s *gosimnet.Simnet) {
	serveGRPC(t, listen(t, s.Host("server"), ":80"))
	ch := dialGRPC(t, s)
	for range 50 {
		expect(t, "a call", ch.call(time.Minute), codes.OK, "")
	}
	if len(ch.dials) != 1 {
		t.Errorf("%d dials, want 1", len(ch.dials))
	}
}
