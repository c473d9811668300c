package netrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	stdnet "net"
	"net/rpc"
	"net/rpc/jsonrpc"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// TestMain fails if anything is left running after all tests.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	latency   = 10 * time.Millisecond // one way
	roundTrip = 2 * latency
)

func software() string { return "net/rpc " + runtime.Version() }

// Shop is the service.
type Shop struct{}

// Wait answers after so long.
func (Shop) Wait(d time.Duration, reply *string) error {
	time.Sleep(d)
	*reply = "done"
	return nil
}

// List answers with so many bytes.
func (Shop) List(n int, reply *[]byte) error {
	*reply = make([]byte, n)
	return nil
}

// power makes the service the software of a host. Its connections are closed when the power goes.
func power(t *testing.T, h *gosimnet.Host) {
	h.Run(func(ctx context.Context) error {
		server := rpc.NewServer()
		if err := server.Register(Shop{}); err != nil {
			t.Error(err)
			return err
		}
		l, err := h.Listen("tcp", ":1234")
		if err != nil {
			t.Error(err)
			return err
		}
		context.AfterFunc(ctx, func() { l.Close() })
		for {
			c, err := l.Accept()
			if err != nil {
				return nil
			}
			stop := context.AfterFunc(ctx, func() { c.Close() })
			go func() {
				defer stop()
				server.ServeConn(c)
			}()
		}
	})
}

// dial connects a client.
func dial(t *testing.T, net *gosimnet.Simnet, codec func(io.ReadWriteCloser) *rpc.Client) *rpc.Client {
	t.Helper()
	c, err := net.Host("client").Dial("tcp", "server:1234")
	if err != nil {
		t.Fatal(err)
	}
	client := codec(c)
	t.Cleanup(func() { client.Close() })
	return client
}

// fail fails the test unless the error is this one.
func fail(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// Three calls are under way when their connection ends. If the server has closed it, they fail with
// io.ErrUnexpectedEOF, one way later; if it is reset, with the reset. Each later call is rpc.ErrShutdown, at once: a
// Client does not dial again ("connection is shut down", golang/go#31337, minio/minio#3221). Both codecs do the same.
func TestCallsUnderWayWhenTheirConnectionEnds(t *testing.T) {
	for name, codec := range map[string]func(io.ReadWriteCloser) *rpc.Client{"gob": rpc.NewClient, "json": jsonrpc.NewClient} {
		for _, test := range []struct {
			name string
			cut  func(t *testing.T, net *gosimnet.Simnet, server stdnet.Conn)
			want error
			took time.Duration
		}{
			{"closed", func(_ *testing.T, _ *gosimnet.Simnet, server stdnet.Conn) { server.Close() }, io.ErrUnexpectedEOF, latency},
			{"reset", func(t *testing.T, net *gosimnet.Simnet, _ stdnet.Conn) {
				if _, err := net.ResetConns("client", "server"); err != nil {
					t.Fatal(err)
				}
			}, syscall.ECONNRESET, 0},
		} {
			t.Run(name+" "+test.name, func(t *testing.T) {
				scenario.Run(t, scenario.Scenario{
					Software: software(), Shows: "calls under way when their connection is " + test.name + ", " + name, Repeats: true,
				}, func(t *testing.T, net *gosimnet.Simnet) {
					server := rpc.NewServer()
					if err := server.Register(Shop{}); err != nil {
						t.Fatal(err)
					}
					l := scenario.Listen(t, net.Host("server"), ":1234")
					accepted := make(chan stdnet.Conn, 1)
					go func() {
						c, err := l.Accept()
						if err != nil {
							t.Error(err)
							return
						}
						accepted <- c
						if name == "json" {
							server.ServeCodec(jsonrpc.NewServerCodec(c))
						} else {
							server.ServeConn(c)
						}
					}()
					client := dial(t, net, codec)
					var replies [3]string
					done := make(chan *rpc.Call, 3)
					for i := range replies {
						client.Go("Shop.Wait", time.Minute, &replies[i], done)
						time.Sleep(time.Millisecond)
					}
					time.Sleep(time.Second)
					start := scenario.StartClock()
					test.cut(t, net, <-accepted)
					for range replies {
						fail(t, "a call under way", (<-done).Error, test.want)
					}
					start.At(t, "the calls' end", test.took)
					fail(t, "a call afterwards", client.Call("Shop.Wait", time.Duration(0), nil), rpc.ErrShutdown)
					start.At(t, "its end", test.took)
					time.Sleep(time.Minute) // for the methods, which nobody stops
				})
			})
		}
	}
}

// A reply of a megabyte is cut after half of it: the call fails with what the connection says, in the words of the
// client ("reading body …"), and the half is thrown away.
func TestReplyCutInTheMiddle(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software(), Shows: "a reply that is cut after half of it", Repeats: true,
		Config: &gosimnet.SimNetConfig{SendBuffer: 4 << 20, ReceiveBuffer: 4 << 20},
	}, func(t *testing.T, net *gosimnet.Simnet) {
		power(t, net.Host("server"))
		client := dial(t, net, rpc.NewClient)
		if err := net.SetLink("server", "client", gosimnet.LinkConfig{BitsPerSecond: 8 << 20, QueueBytes: 4 << 20}); err != nil {
			t.Fatal(err)
		}
		var whole, half []byte
		start := scenario.StartClock()
		if err := client.Call("Shop.List", 1<<20, &whole); err != nil || len(whole) != 1<<20 {
			t.Errorf("a reply of %d bytes, %v", len(whole), err)
		}
		start.Within(t, "a whole reply", time.Second+roundTrip, time.Millisecond)
		time.AfterFunc(500*time.Millisecond+roundTrip, func() { net.ResetConns("client", "server") })
		start = scenario.StartClock()
		err := client.Call("Shop.List", 1<<20, &half)
		start.At(t, "the cut", 500*time.Millisecond+roundTrip)
		if text := fmt.Sprint(err); !strings.Contains(text, "reading body") || !strings.Contains(text, "connection reset by peer") || half != nil {
			t.Errorf("a reply that is cut: %d bytes, %v", len(half), err)
		}
		fail(t, "a call afterwards", client.Call("Shop.List", 1, &half), rpc.ErrShutdown)
	})
}

// "The package net/rpc has no timeout mechanism" (golang/go#33615 found a call that was 15 minutes old). When the
// server's host loses power, what ends a call is TCP: 15 times sent again without an acknowledgement, 924.6 s, for a
// request that is lost; its keep-alive, 150 s after the last acknowledgement, for a call whose request had arrived. A
// time-out of one's own, by Go and select, leaves the call in the client's memory until then.
func TestCallsIntoAPowerCut(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software(), Shows: "calls into a power cut wait until TCP gives up", Repeats: true,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		power(t, net.Host("server"))
		waiting, asking := dial(t, net, rpc.NewClient), dial(t, net, rpc.NewClient)
		var late, lost string
		arrived := waiting.Go("Shop.Wait", time.Hour, &late, nil)
		if err := asking.Call("Shop.Wait", time.Duration(0), &lost); err != nil {
			t.Fatal(err)
		}
		if _, err := net.AlterHost("server", gosimnet.SHUTDOWN); err != nil {
			t.Fatal(err)
		}
		start := scenario.StartClock()
		request := asking.Go("Shop.Wait", time.Duration(0), &lost, nil)
		select {
		case <-request.Done:
			t.Errorf("a call without power: %v", request.Error)
		case <-time.After(time.Second): // a time-out of one's own
		}
		<-arrived.Done
		fail(t, "the call that had arrived", arrived.Error, syscall.ETIMEDOUT)
		start.At(t, "its end", 150*time.Second)
		<-request.Done
		fail(t, "the call that was lost", request.Error, syscall.ETIMEDOUT)
		start.At(t, "its end", 924600*time.Millisecond)
		time.Sleep(time.Hour) // for the method, which nobody stops
	})
}

// caller dials again when it has to: after an error that is not the method's own it makes a new client, at most every
// second.
type caller struct {
	dial   func() (stdnet.Conn, error)
	client *rpc.Client
}

func (c *caller) call(method string, args, reply any) (err error) {
	for range 10 {
		if c.client == nil {
			conn, dialErr := c.dial()
			if err = dialErr; err != nil {
				time.Sleep(time.Second)
				continue
			}
			c.client = rpc.NewClient(conn)
		}
		err = c.client.Call(method, args, reply)
		if _, own := err.(rpc.ServerError); err == nil || own {
			return err
		}
		c.client.Close()
		c.client = nil
	}
	return fmt.Errorf("no connection: %w", err)
}

// A caller that dials again goes through a power cycle: a call over the dead connection is reset after a round trip,
// and repeated over a new one. While the power is off dials time out, and it tries each second. (It may repeat what the
// server has done already: for that net/rpc has no remedy.)
func TestCallerThatDialsAgain(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software(), Shows: "a caller that dials again survives power cycles", Repeats: true,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		power(t, net.Host("server"))
		dialer := net.Host("client").Dialer()
		dialer.Timeout = 500 * time.Millisecond
		c := &caller{dial: func() (stdnet.Conn, error) { return dialer.Dial("tcp", "server:1234") }}
		t.Cleanup(func() { c.client.Close() })
		call := func(what string, want time.Duration) {
			t.Helper()
			var reply string
			start := scenario.StartClock()
			if err := c.call("Shop.Wait", time.Duration(0), &reply); err != nil || reply != "done" {
				t.Errorf("%s: %q, %v", what, reply, err)
			}
			start.At(t, what, want)
		}
		call("the first call", 2*roundTrip)
		call("the second call", roundTrip)
		scenario.PowerCycle(t, net, "server", time.Second)
		call("a call after a power cycle", 3*roundTrip)
		if _, err := net.AlterHost("server", gosimnet.SHUTDOWN); err != nil {
			t.Fatal(err)
		}
		c.client.Close()
		time.AfterFunc(4*time.Second, func() { net.AlterHost("server", gosimnet.POWERON) })
		call("a call without power", 3*1500*time.Millisecond+2*roundTrip) // dials at 0, 1.5, 3 and 4.5 s
	})
}
