package gosimnet_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

// inBubbleAndOutside runs a test by both clocks.
func inBubbleAndOutside(t *testing.T, f func(t *testing.T)) {
	t.Run("in a bubble", func(t *testing.T) { synctest.Test(t, f) })
	t.Run("outside", f)
}

// The test that everybody who comes from the earlier gosimnet has: a client and an echo server over the simulated network.
func TestBasicsOfTheEarlierAPI(t *testing.T) {
	inBubbleAndOutside(t, func(t *testing.T) {
		cfg := gosimnet.NewSimNetConfig()
		cfg.InitialSimnetScenario = 43
		network := gosimnet.NewSimNet(cfg)
		defer network.Close()

		srv := network.NewSimServer("srv_" + t.Name())
		lsn, err := srv.Listen("", "")
		noError(t, err)
		defer srv.Close()
		serverAddr := lsn.Addr()
		if serverAddr.String() != "srv_"+t.Name() {
			t.Errorf("the server's address is %v", serverAddr)
		}
		var served sync.WaitGroup
		served.Go(func() {
			for {
				c, err := lsn.Accept()
				if err != nil {
					if !errors.Is(err, net.ErrClosed) {
						t.Errorf("Accept: %v", err)
					}
					return
				}
				served.Go(func() {
					defer c.Close()
					b := make([]byte, 1000)
					for {
						n, err := c.Read(b)
						if err != nil {
							if err != io.EOF {
								t.Errorf("the server's Read: %v", err)
							}
							return
						}
						if _, err := fmt.Fprintf(c, "hi back from echo server, I saw '%v'\n", string(b[:n])); err != nil {
							t.Errorf("the server's Write: %v", err)
						}
					}
				})
			}
		})

		cli, err := network.NewSimClient("cli_" + t.Name())
		noError(t, err)
		if cli.LocalAddr() != "" || cli.RemoteAddr() != "" {
			t.Errorf("before Dial the addresses are %q and %q", cli.LocalAddr(), cli.RemoteAddr())
		}
		conn, err := cli.Dial("gosimnet", serverAddr.String())
		noError(t, err)
		if cli.LocalAddr() != conn.LocalAddr().String() || cli.LocalAddr() != "cli_"+t.Name() || cli.RemoteAddr() != serverAddr.String() {
			t.Errorf("the client's addresses are %q and %q", cli.LocalAddr(), cli.RemoteAddr())
		}
		fmt.Fprintf(conn, "hello gosimnet")
		response, err := bufio.NewReader(conn).ReadString('\n')
		if want := "hi back from echo server, I saw 'hello gosimnet'\n"; err != nil || response != want {
			t.Errorf("the response is %q, %v", response, err)
		}

		start, goal := time.Now(), 50*ms
		timeout := cli.NewTimer(goal)
		at := <-timeout.C
		if took := time.Since(start); took < goal || at.Sub(start) < goal || took > time.Second {
			t.Errorf("a timer of %v took %v and told %v", goal, took, at.Sub(start))
		}
		timeout.Discard()
		never := srv.NewTimer(time.Hour)
		if !never.Discard() || never.Discard() {
			t.Error("Discard does not tell whether the timer was armed")
		}

		noError(t, cli.Close())
		noError(t, cli.Close())
		noError(t, srv.Close())
		noError(t, srv.Close())
		served.Wait()
	})
}

func TestTheEarlierSeedCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := gosimnet.NewSimNetConfig()
		cfg.InitialSimnetScenario = 43
		s := gosimnet.NewSimNet(cfg)
		defer s.Close()
		if seed := s.Seed(); seed != 43 {
			t.Errorf("the seed is %d", seed)
		}
		cfg.Seed = 7
		both := gosimnet.NewSimNet(cfg)
		defer both.Close()
		if seed := both.Seed(); seed != 7 {
			t.Errorf("with both the seed is %d", seed)
		}
	})
}

func TestEarlierAPIWithWhatIsWrong(t *testing.T) {
	inBubbleAndOutside(t, func(t *testing.T) {
		before := runtime.NumGoroutine()
		broken := gosimnet.NewSimNet(&gosimnet.SimNetConfig{MinHop: -1})
		if _, err := broken.NewSimClient("cli"); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a client of a network that cannot be: %v", err)
		}
		if _, err := broken.NewSimServer("srv").Listen("", ""); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a server of a network that cannot be: %v", err)
		}
		if n := runtime.NumGoroutine(); n > before {
			t.Errorf("a network that cannot be has left %d goroutines", n-before)
		}

		s := gosimnet.NewSimNet(nil)
		defer s.Close()
		if _, err := s.NewSimClient(""); err == nil {
			t.Error("a client without a name")
		}
		nameless := s.NewSimServer("")
		if _, err := nameless.Listen("", ""); err == nil {
			t.Error("a server without a name listens")
		}
		if fired(nameless.NewTimer(time.Millisecond)) || nameless.Close() == nil {
			t.Error("a server without a name has a timer, or can be closed")
		}
		srv := s.NewSimServer("srv")
		noError(t, srv.Close())
		_, err := srv.Listen("tcp", "ignored:80")
		noError(t, err)
		if _, err := srv.Listen("", ""); err == nil {
			t.Error("a server listens twice")
		}
		cli, err := s.NewSimClient("cli")
		noError(t, err)
		noError(t, cli.Close())
		if _, err := cli.Dial("gosimnet", "nobody"); err == nil {
			t.Error("a client dialled nobody")
		}
		if _, err := cli.Dial("", "srv"); err != nil {
			t.Errorf("Dial without a network's name: %v", err)
		}
		srv.Close()
	})
}

// Two clients of one name, as software that was started twice has them.
func TestSeveralClientsOfOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := gosimnet.NewSimNet(nil)
		defer s.Close()
		lsn, err := s.NewSimServer("srv").Listen("", "")
		noError(t, err)
		for i := range 3 {
			cli, err := s.NewSimClient("cli")
			noError(t, err)
			c, err := cli.Dial("gosimnet", "srv")
			noError(t, err)
			server, err := lsn.Accept()
			noError(t, err)
			say(t, c, fmt.Sprint("hello ", i))
			wantHeard(t, server, fmt.Sprint("hello ", i))
		}
	})
}
