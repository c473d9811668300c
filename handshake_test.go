package gosimnet_test

import (
	"errors"
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
