package gosimnet

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
)

// timeoutError is a dial that ran out of time. It has both identities that package net can give it, which of them there is a race.
type timeoutError struct{}

func (timeoutError) Error() string   { return "i/o timeout" }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }
func (timeoutError) Is(err error) bool {
	return err == context.DeadlineExceeded || err == os.ErrDeadlineExceeded
}

// expiredError is a dial whose time was over before it began; package net gives it one identity.
type expiredError struct{ timeoutError }

func (expiredError) Is(err error) bool { return err == context.DeadlineExceeded }

// canceledError is a dial whose context was cancelled, with package net's words.
type canceledError struct{}

func (canceledError) Error() string     { return "operation was canceled" }
func (canceledError) Is(err error) bool { return err == context.Canceled }

// contextError is how package net reports the end of a dial's context.
func contextError(err error, begun bool) error {
	switch {
	case errors.Is(err, context.Canceled):
		return canceledError{}
	case begun:
		return timeoutError{}
	}
	return expiredError{}
}

// errMissingAddress is package net's, by its words.
var errMissingAddress = errors.New("missing address")

// sysErr wraps an errno as package net does, with the system call that reports it.
func sysErr(call string, errno syscall.Errno) error { return os.NewSyscallError(call, errno) }

// opError makes a *net.OpError. Nil addresses stay nil interfaces.
func opError(op, network string, source, addr net.Addr, err error) error {
	return &net.OpError{Op: op, Net: network, Source: source, Addr: addr, Err: err}
}

// ignoreClosed lets a second Close succeed.
func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
