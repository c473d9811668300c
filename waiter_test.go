package gosimnet_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/simtest"
)

// Several dials end at one instant, and their callers go on one by one, a nanosecond apart. When all are cancelled before
// the last has had its turn, the steps that were left to them must be made all the same: a datagram arrives in time.
func TestDialsCancelledBeforeTheirTurnHoldNobodyUp(t *testing.T) {
	for late := range 20 * time.Nanosecond {
		t.Run(fmt.Sprint(late), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { cancelAfter(t, 10*time.Millisecond, late) })
		})
	}
}

// cancelAfter cancels eight dials at about the time when they succeed, and sends a datagram after that.
func cancelAfter(t *testing.T, latency, late time.Duration) {
	s := newNet(t, &gosimnet.SimNetConfig{MinHop: latency})
	if _, err := s.Host("server").Listen("tcp", ":80"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ends := make(chan error, 8)
	for i := range cap(ends) {
		client := s.Host(fmt.Sprint("client", i))
		go func() {
			_, err := client.DialContext(ctx, "tcp", "server:80")
			ends <- err
		}()
	}
	time.Sleep(2*latency + late)
	cancel()
	for range cap(ends) {
		if err := <-ends; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	from, err := s.Host("from").ListenPacket("udp", ":1")
	if err != nil {
		t.Fatal(err)
	}
	to, err := s.Host("to").ListenPacket("udp", ":1")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	from.WriteTo([]byte("hello"), &net.UDPAddr{IP: s.Host("to").Addrs()[0].AsSlice(), Port: 1})
	_, _, err = to.ReadFrom(make([]byte, 8))
	if d := time.Since(start); err != nil || d.Truncate(time.Microsecond) != latency {
		t.Errorf("a datagram after %v, %v, want it after %v", d, err, latency)
	}
}

// A power cut is to wake all readers of a host, one after the other; but its software closes their connections at the same
// instant, and they are gone before it is their turn. Time goes on nevertheless.
func TestReadersLeaveBeforeTheirTurn(t *testing.T) {
	simtest.Run(t, func(t *testing.T, s *gosimnet.Simnet) {
		server, client := s.Host("server"), s.Host("client")
		server.Run(func(ctx context.Context) error {
			l, err := server.Listen("tcp", ":80")
			if err != nil {
				return err
			}
			var conns []net.Conn
			go func() {
				<-ctx.Done()
				l.Close()
				for _, c := range conns {
					c.Close()
				}
			}()
			for {
				c, err := l.Accept()
				if err != nil {
					return err
				}
				conns = append(conns, c)
				go c.Read(make([]byte, 1))
			}
		})
		for range 3 {
			c, err := client.Dial("tcp", "server:80")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
		}
		time.Sleep(time.Second)
		for _, step := range []gosimnet.Alteration{gosimnet.SHUTDOWN, gosimnet.POWERON} {
			if _, err := s.AlterHost("server", step); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		start := time.Now()
		c, err := client.Dial("tcp", "server:80")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if took := time.Since(start).Truncate(time.Microsecond); took != 20*time.Millisecond {
			t.Errorf("a dial took %v, want a round trip of 20ms", took)
		}
	}, simtest.WithTimeout(time.Hour))
}
