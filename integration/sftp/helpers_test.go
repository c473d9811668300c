package sftp

import (
	"crypto/ed25519"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"github.com/glycerine/gosimnet"
)

// software is what the scenarios run.
const software = "github.com/pkg/sftp v1.13.12, golang.org/x/crypto/ssh v0.58.0"

// TestMain fails if anything is left running after all tests.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// config makes networks in which SSH never waits for room to write.
func config() *gosimnet.SimNetConfig { return &gosimnet.SimNetConfig{SendBuffer: 8 << 20} }

// widen makes the links between client and server ones of 100 Mbit/s, and 10 ms.
func widen(t *testing.T, network *gosimnet.Simnet) {
	t.Helper()
	for _, way := range [][2]string{{"client", "server"}, {"server", "client"}} {
		if err := network.SetLink(way[0], way[1], gosimnet.LinkConfig{
			Latency: gosimnet.Constant(10 * time.Millisecond), BitsPerSecond: 100_000_000, QueueBytes: 8 << 20, MTU: 9000,
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// content is a file of so many bytes, of which no two parts are alike.
func content(size int) []byte {
	b := make([]byte, size)
	rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// hostKey is the server's, the same in all runs.
func hostKey(t *testing.T) ssh.Signer {
	t.Helper()
	signer, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// login makes an SSH connection from host "client" to host "server", which ends with the test.
func login(t *testing.T, network *gosimnet.Simnet) *ssh.Client {
	t.Helper()
	c, err := network.Host("client").Dial("tcp", "server:22")
	if err != nil {
		t.Fatal(err)
	}
	conn, channels, requests, err := ssh.NewClientConn(c, "server:22", &ssh.ClientConfig{
		User: "me", HostKeyCallback: ssh.FixedHostKey(hostKey(t).PublicKey()),
	})
	if err != nil {
		t.Fatal(err)
	}
	client := ssh.NewClient(conn, channels, requests)
	t.Cleanup(func() { client.Close() })
	return client
}

// files logs in for files.
func files(t *testing.T, network *gosimnet.Simnet, options ...sftp.ClientOption) *sftp.Client {
	t.Helper()
	c, err := sftp.NewClient(login(t, network), options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// takes fails the test unless f takes exactly so long. Every packet arrives a few nanoseconds after its latency is
// over, so that less than a microsecond is no difference.
func takes(t *testing.T, what string, want time.Duration, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if got := time.Since(start); (got - want).Abs() >= time.Microsecond {
		t.Errorf("%s took %v, want %v", what, got, want)
	}
}

// alter changes the server's power.
func alter(t *testing.T, network *gosimnet.Simnet, how gosimnet.Alteration) {
	t.Helper()
	if _, err := network.AlterHost("server", how); err != nil {
		t.Fatal(err)
	}
}
