package yamux

import (
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/hashicorp/yamux"
	"go.uber.org/goleak"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

const (
	software  = "github.com/hashicorp/yamux v0.1.2"
	latency   = 10 * time.Millisecond
	roundTrip = 2 * latency
	window    = 256 << 10 // of a stream, by default

	// thinking is a pause before a program uses a session on which yamux itself may act at this instant: if both did,
	// it would be chance who writes first.
	thinking = time.Millisecond
)

var usual = &gosimnet.SimNetConfig{MinHop: latency}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quiet is a config that logs nothing.
func quiet() *yamux.Config {
	cfg := yamux.DefaultConfig()
	cfg.LogOutput = io.Discard
	return cfg
}

// sessions are the two ends of a session, for as long as the test runs.
func sessions(t *testing.T, network *gosimnet.Simnet, cfg *yamux.Config) (client, server *yamux.Session) {
	t.Helper()
	runtime.GC() // twice, which empties yamux's pool of timers, those of other bubbles
	runtime.GC()
	l := scenario.Must(network.Host("server").Listen("tcp", ":80"))(t)
	t.Cleanup(func() { l.Close() })
	a := scenario.Must(network.Host("client").Dial("tcp", "server:80"))(t)
	b := scenario.Must(l.Accept())(t)
	client, server = scenario.Must(yamux.Client(a, cfg))(t), scenario.Must(yamux.Server(b, cfg))(t)
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

// echo sends back what comes on the streams of a session.
func echo(session *yamux.Session) {
	for {
		s, err := session.Accept()
		if err != nil {
			return
		}
		go respond(s)
	}
}

// respond sends back what comes on a stream.
func respond(s io.ReadWriteCloser) {
	defer s.Close()
	b := make([]byte, 1<<10)
	for {
		n, err := s.Read(b)
		if err != nil {
			return
		}
		time.Sleep(thinking)
		s.Write(b[:n])
	}
}

// say writes a word to an echo, and reads it.
func say(t *testing.T, s io.ReadWriter, word string) {
	t.Helper()
	if _, err := io.WriteString(s, word); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, len(word))
	if _, err := io.ReadFull(s, b); string(b) != word || err != nil {
		t.Errorf("%q, %v; want %q", b, err, word)
	}
}
