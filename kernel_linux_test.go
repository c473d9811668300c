package gosimnet_test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/glycerine/gosimnet"
)

// loopback makes an environment of real sockets. Each row has server addresses of its own, which
// ephemeral ports of other rows and of other programs never meet.
func loopback(t *testing.T, row int) *env {
	return &env{
		T: t, client: gosimnet.OS, server: gosimnet.OS,
		clientIP: "127.0.0.1", serverIP: fmt.Sprintf("127.9.%d.1", row), otherIP: fmt.Sprintf("127.9.%d.5", row), foreignIP: "192.0.2.1",
		pause: 250 * time.Millisecond, window: 64 << 10,
		dialer:      func(d net.Dialer) dialer { return &d },
		silence:     silentListener,
		listenShort: listenShort,
	}
}

// silentListener is a listener whose backlog is full: its kernel drops every SYN.
func silentListener(e *env) net.Addr {
	l := e.listenShort(e)
	e.dial(l)
	e.dial(l)
	return l.Addr()
}

// listenShort listens with a backlog of 1, which package net does not offer.
func listenShort(e *env) net.Listener {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	e.must(err)
	f := os.NewFile(uintptr(fd), "listener")
	defer f.Close()
	e.must(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: netip.MustParseAddr(e.serverIP).As4()}))
	e.must(syscall.Listen(fd, 1))
	l, err := net.FileListener(f)
	e.must(err)
	e.Cleanup(func() { l.Close() })
	return l
}
