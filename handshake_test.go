package gosimnet_test

import (
	"errors"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

func lossy(seed uint64, loss float64) *gosimnet.SimNetConfig {
	return &gosimnet.SimNetConfig{Seed: seed, Link: gosimnet.LinkConfig{Loss: loss}}
}

// Whatever packet of the handshake is lost is sent again, the last one too, although the dialler says nothing more.
func TestLostHandshakesAreRepeated(t *testing.T) {
	accepted := 0
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			s := newNet(t, lossy(seed, 0.3))
			l, err := s.Host("server").Listen("tcp", ":80")
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				if _, err := l.Accept(); err == nil {
					accepted++
				}
			}()
			start := time.Now()
			_, err = s.Host("client").Dial("tcp", "server:80")
			if err != nil && !(errors.Is(err, syscall.ETIMEDOUT) && time.Since(start) > 127*time.Second) {
				t.Errorf("seed %d: Dial after %v: %v", seed, time.Since(start), err)
			}
			time.Sleep(2 * time.Minute)
		})
	}
	// About one in a hundred uses up its seven SYNs, and about as many their SYN/ACKs.
	if accepted < 190 {
		t.Errorf("%d of 200 connections were accepted, want nearly all", accepted)
	}
}

func TestLostRefusalsAreRepeated(t *testing.T) {
	refused := 0
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			s := newNet(t, lossy(seed, 0.3))
			s.Host("server")
			start := time.Now()
			_, err := s.Host("client").Dial("tcp", "server:80")
			switch {
			case errors.Is(err, syscall.ECONNREFUSED):
				refused++
			case !errors.Is(err, syscall.ETIMEDOUT) || time.Since(start) < 127*time.Second:
				t.Errorf("seed %d: Dial after %v: %v", seed, time.Since(start), err)
			}
		})
	}
	if refused < 190 {
		t.Errorf("%d of 200 dials were refused, want nearly all", refused)
	}
}

// The dialler may have taken a connection for made that the server has given up: its data tells them.
func TestHalfMadeConnectionsEndWithReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newNet(t, nil)
		l, err := s.Host("server").Listen("tcp", ":80")
		if err != nil {
			t.Fatal(err)
		}
		dialled := make(chan error)
		go func() {
			c, err := s.Host("client").Dial("tcp", "server:80")
			if err == nil {
				_, err = c.Read(make([]byte, 1))
			}
			dialled <- err
		}()
		time.Sleep(15 * time.Millisecond) // the SYN has arrived, its answer is on its way
		heal, err := s.CutLink(gosimnet.DropPackets, "client", "server")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		heal()
		go func() {
			if c, err := l.Accept(); err == nil {
				t.Errorf("accepted %v, of which nothing was heard for five minutes", c.RemoteAddr())
			}
		}()
		if err := <-dialled; !errors.Is(err, syscall.ETIMEDOUT) && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the dialler's Read: %v, want ETIMEDOUT or ECONNRESET", err)
		}
	})
}

// A dial whose SYN/ACK does not come through ends in any case, whatever becomes of the server meanwhile: it is refused by the RST of a listener that
// closes, and a SYN that comes once more is answered as the first one would be.
func TestADialEndsThoughItsServerHasForgottenIt(t *testing.T) {
	refused := func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
	made := func(err error) bool { return err == nil }
	for _, test := range []struct {
		name   string
		lost   []string // kinds of packets
		until  time.Duration
		listen func(s *gosimnet.Simnet, l net.Listener) // after 100 ms
		want   func(error) bool
		after  time.Duration
	}{
		{"listener closes", []string{"SYN/ACK"}, 200 * time.Millisecond, func(_ *gosimnet.Simnet, l net.Listener) {
			l.Close()
		}, refused, 110 * time.Millisecond},
		{"listener closes, RST lost", []string{"SYN/ACK", "RST"}, 200 * time.Millisecond, func(_ *gosimnet.Simnet, l net.Listener) {
			l.Close()
		}, refused, 1020 * time.Millisecond},
		{"another listens", []string{"SYN/ACK", "RST"}, 200 * time.Millisecond, func(s *gosimnet.Simnet, l net.Listener) {
			l.Close()
			_ = second(s.Host("b").Listen("tcp", ":1"))
		}, made, 1020 * time.Millisecond},
		{"power goes and comes back", []string{"SYN/ACK"}, 200 * time.Millisecond, func(s *gosimnet.Simnet, _ net.Listener) {
			_ = second(s.AlterHost("b", gosimnet.SHUTDOWN))
			_ = second(s.AlterHost("b", gosimnet.POWERON))
		}, refused, 1020 * time.Millisecond},
		{"server gives up", []string{"SYN/ACK"}, 63500 * time.Millisecond, func(s *gosimnet.Simnet, _ net.Listener) {
			_ = s.SetLink("a", "b", gosimnet.LinkConfig{Latency: gosimnet.Constant(time.Second)})
		}, made, 64010 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
				l, err := s.Host("b").Listen("tcp", ":1")
				noError(t, err)
				heal := s.AddRule(func(p *gosimnet.Packet) gosimnet.Verdict {
					if slices.Contains(test.lost, p.What) {
						return gosimnet.Drop()
					}
					return gosimnet.Pass()
				})
				time.AfterFunc(100*time.Millisecond, func() { test.listen(s, l) })
				time.AfterFunc(test.until, heal)
				start := time.Now()
				c, err := s.Host("a").Dial("tcp", "b:1")
				if took := time.Since(start); !test.want(err) || !about(took, test.after) {
					t.Errorf("the dial returned %v after %v, want it after %v", err, took, test.after)
				}
				if err != nil {
					return
				}
				say(t, c, "x") // the server's end is a whole one
				noError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
				if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("Read: %v, want a timeout", err)
				}
			})
		})
	}
}
