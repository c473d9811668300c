package integration

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// roundTrip is one on a network of hop(latency).
const roundTrip = 2 * latency

// pair joins two hosts of a network by a stream.
func pair(t *testing.T, s *gosimnet.Simnet) (client, server net.Conn) {
	t.Helper()
	client, server, err := join(s.Host("client"), listen(t, s.Host("server"), "server:80"))
	if err != nil {
		t.Fatal(err)
	}
	return client, server
}

// Both ends write before either reads: the network holds what is under way.
func TestCrossedWrites(t *testing.T) {
	bubble(t, hop(latency), func(t *testing.T, s *gosimnet.Simnet) {
		a, b := pair(t, s)
		start := scenario.StartClock()
		var ends sync.WaitGroup
		for _, c := range []net.Conn{a, b} {
			ends.Go(func() {
				if _, err := c.Write([]byte(strings.Repeat("x", 32<<10))); err != nil {
					t.Error(err)
				}
				if n, err := io.ReadFull(c, make([]byte, 32<<10)); err != nil {
					t.Errorf("read %d bytes: %v", n, err)
				}
			})
		}
		ends.Wait()
		start.At(t, "both ends' end", latency)
	})
}

// Both ends of a TLS connection begin with a Write, which makes them shake hands.
func TestCrossedTLS(t *testing.T) {
	bubble(t, hop(latency), func(t *testing.T, s *gosimnet.Simnet) {
		cert, roots := scenario.Certificate(t, "server")
		a, b := pair(t, s)
		start := scenario.StartClock()
		var ends sync.WaitGroup
		for _, c := range []*tls.Conn{
			tls.Client(a, &tls.Config{RootCAs: roots, ServerName: "server"}),
			tls.Server(b, &tls.Config{Certificates: []tls.Certificate{cert}}),
		} {
			ends.Go(func() {
				if _, err := c.Write([]byte("hello")); err != nil {
					t.Error(err)
				}
				hello := make([]byte, 5)
				if _, err := io.ReadFull(c, hello); err != nil || string(hello) != "hello" {
					t.Errorf("read %q, %v", hello, err)
				}
			})
		}
		ends.Wait()
		// The server's turn comes after three half round trips: hello, hello back, finished.
		start.At(t, "both ends' end", 2*roundTrip)
	})
}

// Logging in costs five round trips: for TCP, the versions, the keys, the service and the user. A command costs two.
func TestSSH(t *testing.T) {
	bubble(t, hop(latency), func(t *testing.T, s *gosimnet.Simnet) {
		start := scenario.StartClock()
		client := login(t, s)
		start.At(t, "the login", 5*roundTrip)
		command(t, client)
		start.At(t, "the command's output", 7*roundTrip)
	})
}

func TestSSHOnTheWallClock(t *testing.T) {
	t.Parallel()
	command(t, login(t, newNet(t, hop(time.Millisecond))))
}

// login runs an SSH server, and a client that logs in, for as long as the test runs.
func login(t *testing.T, s *gosimnet.Simnet) *ssh.Client {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer := scenario.Must(ssh.NewSignerFromKey(key))(t)
	cfg := &ssh.ServerConfig{NoClientAuth: true}
	cfg.AddHostKey(signer)
	l := listen(t, s.Host("server"), ":22")
	go func() {
		if c, err := l.Accept(); err != nil {
			t.Error(err)
		} else {
			serveSSH(t, c, cfg)
		}
	}()
	c, err := s.Host("client").Dial("tcp", "server:22")
	if err != nil {
		t.Fatal(err)
	}
	conn, channels, requests, err := ssh.NewClientConn(c, "server:22", &ssh.ClientConfig{User: "me", HostKeyCallback: ssh.FixedHostKey(signer.PublicKey())})
	if err != nil {
		t.Fatal(err)
	}
	client := ssh.NewClient(conn, channels, requests)
	t.Cleanup(func() { client.Close() })
	return client
}

// command has the server run a command.
func command(t *testing.T, client *ssh.Client) {
	t.Helper()
	out, err := scenario.Must(client.NewSession())(t).Output("echo")
	if string(out) != "you said echo" || err != nil {
		t.Errorf("the command said %q, %v", out, err)
	}
}

// serveSSH answers commands with what they are.
func serveSSH(t *testing.T, c net.Conn, cfg *ssh.ServerConfig) {
	conn, channels, requests, err := ssh.NewServerConn(c, cfg)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	go ssh.DiscardRequests(requests)
	for offer := range channels {
		channel, requests, err := offer.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		for r := range requests {
			var command struct{ Line string }
			ssh.Unmarshal(r.Payload, &command)
			r.Reply(r.Type == "exec", nil)
			io.WriteString(channel, "you said "+command.Line)
			channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{0}))
			channel.Close()
		}
	}
}
