package integration

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

func TestHTTPUpgradeHijacksTheConnection(t *testing.T) {
	bubble(t, hop(latency), func(t *testing.T, s *gosimnet.Simnet) {
		serve(t, listen(t, s.Host("server"), ":80"), shout)
		c, _ := client(t, s.Host("client"))
		start := scenario.StartClock()
		stream := upgrade(t, c, "http://server/")
		start.At(t, "the upgrade", 4*latency)
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
	req := scenario.Must(http.NewRequest("GET", url, nil))(t)
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
		start := scenario.StartClock()
		fmt.Fprintln(stream, word)
		got, err := lines.ReadString('\n')
		if want := strings.ToUpper(word) + "\n"; got != want || err != nil {
			t.Errorf("read %q, %v; want %q", got, err, want)
		}
		start.At(t, "the answer", roundTrip)
	}
	stream.Close()
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
			start := scenario.StartClock()
			if got := get(t, c, "http://proxy/"); got != "hello from proxy" {
				t.Errorf("GET: %q", got)
			}
			start.At(t, "the answer", roundTrips*2*latency)
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
		start := scenario.StartClock()
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
			start.At(t, lines.Text(), time.Duration(n)*time.Second+4*latency)
			lines.Scan()
		}
		start = scenario.StartClock()
		resp.Body.Close()
		<-left
		start.At(t, "the handler's end", latency)
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
		start := scenario.StartClock()
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
		t.Logf("64 MiB took %v", time.Since(start.Start))
	})
}
