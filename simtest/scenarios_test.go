package simtest_test

import (
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/simtest"
)

// scenarioSwitch makes TestScenario do something. The other tests run it in a process of its own, because most scenarios fail.
const scenarioSwitch = "SIMTEST_SCENARIO"

// scenarios are tests whose output the other tests look at.
var scenarios = map[string]func(t *testing.T){
	"passes": func(t *testing.T) {
		simtest.Run(t, func(t *testing.T, net *gosimnet.Simnet) { t.Logf("ran with %d", net.Seed()) })
	},
	"fails": func(t *testing.T) {
		simtest.Run(t, func(t *testing.T, net *gosimnet.Simnet) {
			cutAndDial(t, net)
			t.Errorf("the dial failed with seed %d", net.Seed())
		})
	},
	"it's odd (really)": func(t *testing.T) {
		simtest.Run(t, func(t *testing.T, net *gosimnet.Simnet) { t.Error("no") })
	},
	"stands still": func(t *testing.T) {
		simtest.Run(t, func(t *testing.T, net *gosimnet.Simnet) {
			listen(t, net.Host("server"))
			c, err := net.Host("client").Dial("tcp", "server:80")
			if err != nil {
				t.Fatal(err)
			}
			var one sync.Mutex
			for range 2 {
				go func() {
					one.Lock()
					defer one.Unlock()
					c.Write(make([]byte, 1<<20))
				}()
			}
			time.Sleep(time.Hour)
		}, simtest.WithSeed(13))
	},
	"waits for the world": func(t *testing.T) {
		outside := make(chan struct{})
		time.AfterFunc(8*time.Second, func() { close(outside) })
		simtest.Run(t, func(t *testing.T, net *gosimnet.Simnet) {
			go func() {
				select {
				case <-outside:
				case <-time.After(2 * time.Hour):
				}
			}()
			time.Sleep(time.Hour)
		}, simtest.WithSeed(14))
	},
	"fatal": func(t *testing.T) {
		simtest.Run(t, func(t *testing.T, net *gosimnet.Simnet) {
			cutAndDial(t, net)
			t.Fatal("stop here")
		}, simtest.WithSeed(11))
	},
	"panics": func(t *testing.T) {
		simtest.Run(t, func(t *testing.T, net *gosimnet.Simnet) {
			cutAndDial(t, net)
			panic("out of cheese")
		}, simtest.WithSeed(12))
	},
	"fails by the outer test": func(t *testing.T) {
		simtest.Run(t, func(*testing.T, *gosimnet.Simnet) { t.Error("no") }, simtest.WithSeed(20))
	},
	"failed before": func(t *testing.T) {
		t.Error("no")
		simtest.Run(t, func(*testing.T, *gosimnet.Simnet) {})
	},
	"cleanup fails": func(t *testing.T) {
		simtest.Run(t, func(t *testing.T, net *gosimnet.Simnet) {
			listener, err := net.Host("a").Listen("tcp", ":80")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := listener.Close(); err != nil {
					t.Error("the network was closed too early")
				}
				t.Error("something is left")
			})
		}, simtest.WithSeed(13))
	},
	"fails late": func(t *testing.T) {
		simtest.Run(t, func(t *testing.T, net *gosimnet.Simnet) {
			time.AfterFunc(time.Second, func() { t.Error("a second later") })
		}, simtest.WithSeed(14))
	},
	"waits for ever": func(t *testing.T) {
		simtest.Run(t, func(t *testing.T, net *gosimnet.Simnet) {
			listen(t, net.Host("b"))
			c, err := net.Host("a").Dial("tcp", "b:80")
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Read(make([]byte, 1))
			t.Log("Read was ended by:", err)
		}, simtest.WithSeed(15))
	},
	"takes too long": func(t *testing.T) {
		simtest.Run(t, func(t *testing.T, net *gosimnet.Simnet) {
			begin := time.Now()
			l := listen(t, net.Host("b"))
			go func() {
				for time.Since(begin) < 2*time.Hour {
					time.Sleep(time.Second)
				}
			}()
			l.Accept()
			l.Accept()
			t.Log("Accept was ended after", time.Since(begin))
			<-make(chan int)
		}, simtest.WithSeed(16), simtest.WithTimeout(time.Hour))
	},
	"leaks": func(t *testing.T) {
		simtest.Run(t, func(t *testing.T, net *gosimnet.Simnet) {
			cutAndDial(t, net)
			go func() { <-make(chan int) }()
		}, simtest.WithSeed(17))
	},
	"skips": func(t *testing.T) {
		simtest.Run(t, func(t *testing.T, net *gosimnet.Simnet) { t.Skip("not today") }, simtest.CheckDeterminism())
	},
	"one seed of five": func(t *testing.T) {
		simtest.Run(t, func(t *testing.T, net *gosimnet.Simnet) {
			if net.Seed() == 42 {
				t.Error("an unlucky seed")
			}
		}, simtest.WithSeeds(5), simtest.WithSeed(40))
	},
	"fails and leaks": func(t *testing.T) {
		simtest.Run(t, func(t *testing.T, net *gosimnet.Simnet) {
			go func() { <-make(chan int) }()
			t.Error("no")
		}, simtest.WithSeed(19))
	},
	"differs": func(t *testing.T) {
		n := 0
		simtest.Run(t, func(t *testing.T, net *gosimnet.Simnet) {
			n++
			write(t, net, make([]byte, 100+n))
		}, simtest.WithSeed(18), simtest.CheckDeterminism())
	},
	"differs in bytes": func(t *testing.T) {
		n := byte(0)
		simtest.Run(t, func(t *testing.T, net *gosimnet.Simnet) {
			n++
			write(t, net, []byte{n})
		}, simtest.WithConfig(&gosimnet.SimNetConfig{TracePayload: true}), simtest.CheckDeterminism())
	},
	"differs and keeps little": func(t *testing.T) {
		n := 0
		simtest.Run(t, func(t *testing.T, net *gosimnet.Simnet) {
			n++
			write(t, net, make([]byte, 100+n))
		}, simtest.WithConfig(&gosimnet.SimNetConfig{TraceLimit: 3}), simtest.CheckDeterminism())
	},
	"config is impossible": func(t *testing.T) {
		simtest.Run(t, func(*testing.T, *gosimnet.Simnet) {}, simtest.WithConfig(&gosimnet.SimNetConfig{MinHop: -1}))
	},
	"no seeds": func(t *testing.T) {
		simtest.Run(t, func(*testing.T, *gosimnet.Simnet) {}, simtest.WithSeeds(0))
	},
	"no time": func(t *testing.T) {
		simtest.Run(t, func(*testing.T, *gosimnet.Simnet) {}, simtest.WithTimeout(0))
	},
	"no function": func(t *testing.T) { simtest.Run(t, nil) },
}

// TestScenario runs the scenario that the switch names, as a subtest.
func TestScenario(t *testing.T) {
	name := os.Getenv(scenarioSwitch)
	if name == "" {
		t.Skip("the other tests run this in a process of its own")
	}
	t.Run(name, scenarios[name])
	t.Run("next", func(t *testing.T) { t.Log("the next test has run") })
}

// cutAndDial leaves a fault and some events behind, until f's cleanups run: a dial that times out after a second.
func cutAndDial(t *testing.T, net *gosimnet.Simnet) {
	t.Helper()
	a, b := net.Host("a"), net.Host("b")
	listen(t, b)
	heal, err := net.CutLink(gosimnet.DropPackets, "b", "a")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(heal)
	if _, err := a.DialTimeout("tcp", "b:80", time.Second); err == nil {
		t.Fatal("dialled through a cut link")
	}
}

// write sends bytes over a new connection.
func write(t *testing.T, net *gosimnet.Simnet, b []byte) {
	t.Helper()
	listen(t, net.Host("b"))
	c, err := net.Host("a").Dial("tcp", "b:80")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
}

// listen is a listener that nobody asks.
func listen(t *testing.T, h *gosimnet.Host) net.Listener {
	t.Helper()
	l, err := h.Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// serve is a web server at a host, and a client at another whose connections stay open.
func serve(t *testing.T, server, client *gosimnet.Host, h http.Handler) *http.Client {
	go http.Serve(listen(t, server), h)
	return &http.Client{Transport: &http.Transport{DialContext: client.DialContext}}
}
