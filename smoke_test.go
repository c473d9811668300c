package gosimnet_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

func newNet(t *testing.T, cfg *gosimnet.SimNetConfig) *gosimnet.Simnet {
	t.Helper()
	s, err := gosimnet.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestEcho(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newNet(t, nil)
		a, b := s.Host("a"), s.Host("b")
		l, err := b.Listen("tcp", ":80")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			c, err := l.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			io.Copy(c, c)
			c.Close()
		}()
		start := time.Now()
		c, err := a.Dial("tcp", "b:80")
		if err != nil {
			t.Fatal(err)
		}
		t.Log("dialled", time.Since(start), c.LocalAddr(), c.RemoteAddr())
		c.Write([]byte("hello"))
		buf := make([]byte, 5)
		io.ReadFull(c, buf)
		t.Log("echo", time.Since(start), string(buf))
		big := make([]byte, 4<<20)
		rand.Read(big)
		go func() { c.Write(big); c.(*gosimnet.Conn).CloseWrite() }()
		got, err := io.ReadAll(c)
		t.Log(len(got), err, bytes.Equal(got, big), time.Since(start))
		c.Close()
		_, err = a.Dial("tcp", "b:81")
		t.Log(err, errors.Is(err, syscall.ECONNREFUSED), time.Since(start))
		t.Log(s.GetSimnetSnapshot())
	})
}

func TestPartitionDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newNet(t, nil)
		a, b := s.Host("a"), s.Host("b")
		l, _ := b.Listen("tcp", ":80")
		got := make(chan string)
		go func() {
			c, _ := l.Accept()
			buf := make([]byte, 5)
			_, err := io.ReadFull(c, buf)
			if err != nil {
				t.Error(err)
			}
			got <- string(buf)
		}()
		c, _ := a.Dial("tcp", "b:80")
		heal, err := s.Partition(gosimnet.DropPackets, []string{"a"}, []string{"b"})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for i := range 5 {
			if _, err := c.Write([]byte{byte('0' + i)}); err != nil {
				t.Error(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(500 * time.Millisecond)
		heal()
		t.Log(<-got, time.Since(start))
		// dead peer
		c.Write([]byte("x"))
		time.Sleep(time.Second)
		s.AlterHost("b", gosimnet.SHUTDOWN)
		_, err = c.Read(make([]byte, 1))
		t.Log(err, time.Since(start))
		start = time.Now()
		_, err = a.Dial("tcp", "b:80")
		t.Log(err, time.Since(start))
	})
}

var _ net.Conn
