package websocket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// TestMain fails if anything is left running after all tests.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	software  = "github.com/coder/websocket v1.8.15"
	latency   = 10 * time.Millisecond // one way
	roundTrip = 2 * latency
)

// serve runs a server of WebSockets on port 80 of host "server", whose connections the handler has until it returns.
func serve(t *testing.T, net *gosimnet.Simnet, handle func(ctx context.Context, c *websocket.Conn)) *http.Server {
	t.Helper()
	srv := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.CloseNow()
		c.SetReadLimit(-1)
		handle(context.Background(), c)
	})}
	go srv.Serve(scenario.Listen(t, net.Host("server"), ":80"))
	t.Cleanup(func() { srv.Close() })
	return srv
}

// dial connects a host to the server.
func dial(t *testing.T, net *gosimnet.Simnet, host string) *websocket.Conn {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DialContext: net.Host(host).DialContext}}
	c, _, err := websocket.Dial(t.Context(), "ws://server/", &websocket.DialOptions{HTTPClient: client})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.CloseNow() })
	c.SetReadLimit(-1)
	return c
}

// echo sends back what it gets.
func echo(ctx context.Context, c *websocket.Conn) {
	for {
		kind, b, err := c.Read(ctx)
		if err != nil || c.Write(ctx, kind, b) != nil {
			return
		}
	}
}

// converse sends a message and gets it back.
func converse(t *testing.T, c *websocket.Conn, message string) {
	t.Helper()
	if err := c.Write(t.Context(), websocket.MessageText, []byte(message)); err != nil {
		t.Fatal(err)
	}
	_, b, err := c.Read(t.Context())
	if err != nil || string(b) != message {
		t.Fatalf("the echo of %q is %q, %v", message, b, err)
	}
}

// A connection ends between two messages. If it ends without a closing handshake, CloseStatus is -1, and the error is
// the connection's: io.EOF when the peer closed it (coder/websocket#398 and #520 ask what that means), a reset when it
// was reset, and when the peer's host lost its power and has it back, once something is sent. With a handshake the
// status is the peer's. Each arrives as soon as it can.
func TestConnectionEndsBetweenMessages(t *testing.T) {
	for _, test := range []struct {
		name   string
		cut    func(t *testing.T, net *gosimnet.Simnet, client, server *websocket.Conn)
		status websocket.StatusCode
		is     error
		took   time.Duration
	}{
		{"closed without a handshake", func(_ *testing.T, _ *gosimnet.Simnet, _, server *websocket.Conn) {
			server.CloseNow()
		}, -1, io.EOF, latency},
		{"reset", func(t *testing.T, net *gosimnet.Simnet, _, _ *websocket.Conn) {
			if _, err := net.ResetConns("client", "server"); err != nil {
				t.Fatal(err)
			}
		}, -1, syscall.ECONNRESET, 0},
		{"power cycle", func(t *testing.T, net *gosimnet.Simnet, client, _ *websocket.Conn) {
			scenario.PowerCycle(t, net, "server", 5*time.Second)
			if err := client.Write(t.Context(), websocket.MessageText, []byte("anybody there?")); err != nil {
				t.Error(err)
			}
		}, -1, syscall.ECONNRESET, 5*time.Second + roundTrip},
		{"closed with a handshake", func(_ *testing.T, _ *gosimnet.Simnet, _, server *websocket.Conn) {
			go server.Close(websocket.StatusGoingAway, "maintenance")
		}, websocket.StatusGoingAway, nil, latency},
	} {
		t.Run(test.name, func(t *testing.T) {
			scenario.Run(t, scenario.Scenario{
				Software: software, Shows: "a connection that ends between messages: " + test.name, Repeats: true,
			}, func(t *testing.T, net *gosimnet.Simnet) {
				servers := make(chan *websocket.Conn, 1)
				serve(t, net, func(ctx context.Context, c *websocket.Conn) {
					servers <- c
					echo(ctx, c)
				})
				client := dial(t, net, "client")
				converse(t, client, "hello")
				time.Sleep(time.Second)
				start := scenario.StartClock()
				read := make(chan error, 1)
				go func() {
					_, _, err := client.Read(context.Background())
					read <- err
				}()
				test.cut(t, net, client, <-servers)
				err := <-read
				start.At(t, "the end", test.took)
				if got := websocket.CloseStatus(err); got != test.status || !errors.Is(err, test.is) && test.is != nil {
					t.Errorf("Read: status %d, %v; want %d, %v", got, err, test.status, test.is)
				}
				client.Write(t.Context(), websocket.MessageText, []byte("x")) // TCP may take one more
				time.Sleep(15 * time.Second)
				if err := client.Write(t.Context(), websocket.MessageText, []byte("x")); err == nil {
					t.Error("Write after the end succeeded")
				}
			})
		})
	}
}

// A message of a megabyte, which takes a second, is cut in the middle: in a frame, or between two of the frames that a
// Writer sends. A reset is told as such, and the end of the connection in a frame as io.ErrUnexpectedEOF. An end
// between two frames version 1.8.15 takes for the end of the message: Read gives half of it and no error, and the next
// Read says that the "previous message [was] not read to completion". (gorilla/websocket#127 mended the same in another
// library.) Who sends by Writer should say in the message where it ends.
func TestConnectionEndsInAMessage(t *testing.T) {
	const size = 1 << 20
	closed := func(_ *testing.T, _ *gosimnet.Simnet, server *websocket.Conn) { server.CloseNow() }
	reset := func(t *testing.T, net *gosimnet.Simnet, _ *websocket.Conn) {
		if _, err := net.ResetConns("client", "server"); err != nil {
			t.Error(err)
		}
	}
	for _, test := range []struct {
		name   string
		frames int
		cut    func(t *testing.T, net *gosimnet.Simnet, server *websocket.Conn)
		is     error         // nil: none, and half of the message
		took   time.Duration // after the cut
		more   time.Duration
	}{
		{"closed in a frame", 1, closed, io.ErrUnexpectedEOF, latency, 250 * time.Millisecond}, // for what the send buffer holds, a quarter
		{"reset in a frame", 1, reset, syscall.ECONNRESET, 0, time.Microsecond},
		{"closed between frames", 2, closed, nil, latency, time.Microsecond},
		{"reset between frames", 2, reset, syscall.ECONNRESET, 0, time.Microsecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			scenario.Run(t, scenario.Scenario{
				Software: software, Shows: "a message that is cut in the middle: " + test.name, Repeats: true,
			}, func(t *testing.T, net *gosimnet.Simnet) {
				cut := make(chan scenario.Clock, 1)
				serve(t, net, func(ctx context.Context, c *websocket.Conn) {
					if err := net.SetLink("server", "client", gosimnet.LinkConfig{BitsPerSecond: 8 * size, QueueBytes: size}); err != nil {
						t.Error(err)
					}
					time.AfterFunc(time.Duration(test.frames)*500*time.Millisecond, func() {
						cut <- scenario.StartClock()
						test.cut(t, net, c)
					})
					w, err := c.Writer(ctx, websocket.MessageBinary)
					if err != nil {
						t.Error(err)
						return
					}
					w.Write(make([]byte, size/test.frames))
					time.Sleep(10 * time.Second)
				})
				client := dial(t, net, "client")
				_, b, err := client.Read(t.Context())
				(<-cut).Within(t, "the news of the cut", test.took, test.more)
				if test.is == nil {
					if len(b) != size/2 || err != nil {
						t.Errorf("%d bytes, %v; want half of the message, as if complete", len(b), err)
					}
					_, b, err = client.Read(t.Context())
					if len(b) != 0 || err == nil || !strings.Contains(err.Error(), "previous message not read to completion") {
						t.Errorf("the next Read: %d bytes, %v", len(b), err)
					}
				} else if len(b) == 0 || len(b) >= size || !errors.Is(err, test.is) || websocket.CloseStatus(err) != -1 {
					t.Errorf("%d bytes, %v; want %v", len(b), err, test.is)
				}
				time.Sleep(10 * time.Second)
			})
		})
	}
}

// The closing handshake takes a round trip, and gives both ends the status. If the peer does not answer, Close returns
// after the five seconds that its documentation states, with an error.
func TestClosingHandshake(t *testing.T) {
	for _, test := range []struct {
		name   string
		cut    bool
		took   time.Duration
		closes error
	}{
		{"answered", false, roundTrip, nil},
		{"unanswered", true, 5 * time.Second, context.DeadlineExceeded},
	} {
		t.Run(test.name, func(t *testing.T) {
			scenario.Run(t, scenario.Scenario{
				Software: software, Shows: "a closing handshake: " + test.name, Repeats: true,
			}, func(t *testing.T, net *gosimnet.Simnet) {
				ended := make(chan error, 1)
				serve(t, net, func(ctx context.Context, c *websocket.Conn) {
					_, _, err := c.Read(ctx)
					ended <- err
				})
				client := dial(t, net, "client")
				time.Sleep(time.Second)
				if test.cut {
					if _, err := net.CutLink(gosimnet.DropPackets, "client", "server"); err != nil {
						t.Fatal(err)
					}
				}
				start := scenario.StartClock()
				if err := client.Close(websocket.StatusNormalClosure, "bye"); !errors.Is(err, test.closes) {
					t.Errorf("Close: %v, want %v", err, test.closes)
				}
				start.At(t, "Close returned", test.took)
				if !test.cut {
					var ce websocket.CloseError
					if err := <-ended; !errors.As(err, &ce) || ce.Code != websocket.StatusNormalClosure || ce.Reason != "bye" {
						t.Errorf("the server's Read: %v", err)
					}
				}
				net.Heal()
				time.Sleep(time.Minute)
			})
		})
	}
}

// A client asks for a sign of life every ten seconds, and waits three for it. When the server is cut off, the ping
// fails with its context, and with it the connection: the library closes it "on any error from any method", so that
// Read ends at the same instant. Without pings a reader waits for ever.
func TestPingFindsADeadPeer(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "pings end a connection to a peer that is cut off", Repeats: true,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		serve(t, net, echo)
		client := dial(t, net, "client")
		start := scenario.StartClock()
		pings := 0
		failed := make(chan error, 1)
		go func() {
			for {
				time.Sleep(10 * time.Second)
				ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
				err := client.Ping(ctx)
				cancel()
				if err != nil {
					failed <- err
					client.CloseNow()
					return
				}
				pings++
			}
		}()
		time.AfterFunc(35*time.Second, func() { net.Partition(gosimnet.DropPackets, []string{"client"}, []string{"server"}) })
		_, _, err := client.Read(context.Background())
		start.At(t, "Read ended", 43*time.Second+3*roundTrip)
		if err == nil || websocket.CloseStatus(err) != -1 {
			t.Errorf("Read: %v", err)
		}
		if err := <-failed; !errors.Is(err, context.DeadlineExceeded) || pings != 3 {
			t.Errorf("after %d pings: %v", pings, err)
		}
	})
}

// A server goes down for maintenance: it says so to each of its fifty clients by StatusGoingAway, as RFC 6455, section
// 7.4.1, has it. http.Server.Shutdown does not know of WebSockets (its documentation: "Shutdown does not attempt to
// close nor wait for hijacked connections such as WebSockets"), so that the program must. Each client is in the middle
// of a conversation, and gets every answer until it is told.
func TestServerSaysGoodbye(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "a server says goodbye to fifty clients, and loses no answer", Repeats: true,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		var mu sync.Mutex
		conns := map[*websocket.Conn]int{}
		shutting := make(chan struct{})
		srv := serve(t, net, func(ctx context.Context, c *websocket.Conn) {
			mu.Lock()
			n := len(conns)
			conns[c] = n
			mu.Unlock()
			go func() {
				<-shutting
				time.Sleep(time.Duration(n) * time.Millisecond) // one after the other
				c.Close(websocket.StatusGoingAway, "maintenance")
			}()
			echo(ctx, c)
		})
		var clients sync.WaitGroup
		var told []string
		for n := range 50 {
			host := fmt.Sprintf("c%02d", n)
			client := dial(t, net, host)
			clients.Go(func() {
				for i := 0; ; i++ {
					message := strings.Repeat("x", i)
					if client.Write(context.Background(), websocket.MessageText, []byte(message)) != nil {
						_, _, err := client.Read(context.Background())
						t.Errorf("%s: Write %d failed before Read: %v", host, i, err)
						return
					}
					_, b, err := client.Read(context.Background())
					if err != nil {
						mu.Lock()
						defer mu.Unlock()
						told = append(told, fmt.Sprint(websocket.CloseStatus(err)))
						return
					}
					if string(b) != message {
						t.Errorf("%s: message %d came back as %d bytes", host, i, len(b))
					}
				}
			})
		}
		time.Sleep(time.Second)
		if err := srv.Shutdown(context.Background()); err != nil { // it returns at once
			t.Error(err)
		}
		start := scenario.StartClock()
		close(shutting)
		clients.Wait()
		start.Within(t, "the last goodbye", 49*time.Millisecond+latency, latency)
		if got, want := strings.Join(told, " "), strings.TrimSpace(strings.Repeat("StatusGoingAway ", 50)); got != want {
			t.Errorf("the clients were told %s", got)
		}
		time.Sleep(15 * time.Second)
	})
}
