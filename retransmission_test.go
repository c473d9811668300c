package gosimnet_test

import (
	"errors"
	"io"
	"math"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

// lossyPair is the ends of a stream over links that lose packets both ways.
func lossyPair(t *testing.T, cfg gosimnet.SimNetConfig) (client, server net.Conn) {
	t.Helper()
	s := newNet(t, &cfg)
	l, err := s.Host("server").Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	if client, err = s.Host("client").Dial("tcp", "server:80"); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return client, server
}

// A window of a dozen segments loses about one a round trip, and each costs a retransmission time-out or a few: a
// megabyte takes seconds. If time-outs grew with the delays that they cause, it would take hours.
func TestLossesCostTimeoutsThatDoNotGrow(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			client, server := lossyPair(t, gosimnet.SimNetConfig{Seed: seed, MinHop: time.Millisecond, MaxHop: 20 * time.Millisecond,
				SendBuffer: 16 << 10, ReceiveBuffer: 16 << 10, Link: gosimnet.LinkConfig{Loss: 0.1}})
			start := time.Now()
			go func() {
				if _, err := client.Write(make([]byte, 1<<20)); err != nil {
					t.Error(err)
				}
				client.Close()
			}()
			n, err := io.Copy(io.Discard, server)
			if n != 1<<20 || err != nil {
				t.Fatalf("seed %d: read %d bytes, %v; want 1 MiB and the end", seed, n, err)
			}
			if took := time.Since(start); took < 5*time.Second || took > 30*time.Second {
				t.Errorf("seed %d: 1 MiB took %v, want 5 to 30 s", seed, took)
			}
		})
	}
}

// Somebody who does not read answers the probes of a closed window, those that get through.
func TestClosedWindowOutlivesLosses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := lossyPair(t, gosimnet.SimNetConfig{Link: gosimnet.LinkConfig{Loss: 0.1}})
		go func() {
			if _, err := client.Write(make([]byte, 1<<20)); err != nil {
				t.Error(err)
			}
			client.Close()
		}()
		time.Sleep(24 * time.Hour)
		if n, err := io.Copy(io.Discard, server); n != 1<<20 || err != nil {
			t.Errorf("a day later, read %d bytes, %v; want 1 MiB and the end", n, err)
		}
	})
}

func TestUserTimeoutEndsClosedWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := lossyPair(t, gosimnet.SimNetConfig{UserTimeout: 3 * time.Second})
		start := time.Now()
		n, err := client.Write(make([]byte, 1<<20))
		if !errors.Is(err, syscall.ETIMEDOUT) || n != 512<<10 {
			t.Errorf("Write to somebody who does not read: %d, %v; want 512 KiB, the two buffers, and ETIMEDOUT", n, err)
		}
		if took := time.Since(start); took < 3*time.Second || took > 3500*time.Millisecond {
			t.Errorf("Write took %v, want 3 s and a bit", took)
		}
	})
}

func TestUserTimeoutOfForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := lossyPair(t, gosimnet.SimNetConfig{UserTimeout: math.MaxInt64})
		if err := client.SetWriteDeadline(time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Write(make([]byte, 1<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Write to somebody who does not read: %v, want that the hour is over", err)
		}
	})
}

// An acknowledgement of what came later is none of what was lost, though it tells of room that a reader has made: the
// time-out counts from the last acknowledgement of something new (RFC 6298, section 5.3).
func TestWiderWindowDoesNotPutOffRetransmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newNet(t, &gosimnet.SimNetConfig{MinHop: 10 * time.Millisecond})
		l, err := s.Host("server").Listen("tcp", ":80")
		if err != nil {
			t.Fatal(err)
		}
		client, err := s.Host("client").Dial("tcp", "server:80")
		if err != nil {
			t.Fatal(err)
		}
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		lost := false
		s.AddRule(func(p *gosimnet.Packet) gosimnet.Verdict {
			if lost || string(p.Payload) != "lost" {
				return gosimnet.Pass()
			}
			lost = true
			return gosimnet.Drop()
		})
		start := time.Now()
		for _, word := range []string{"head", "lost", "later"} {
			if word == "later" {
				time.Sleep(5 * time.Millisecond)
			}
			if _, err := io.WriteString(client, word); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := io.ReadFull(server, make([]byte, len("headlost"))); err != nil {
			t.Fatal(err)
		}
		want := 20*time.Millisecond + 200*time.Millisecond + 10*time.Millisecond // "head" is acknowledged, time is out, "lost" comes
		if took := time.Since(start).Truncate(time.Microsecond); took != want {
			t.Errorf("what was lost came after %v, want %v", took, want)
		}
	})
}
