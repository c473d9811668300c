package gosimnet_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/glycerine/gosimnet"
)

// The examples run outside of bubbles, because an example has no *testing.T for synctest. Their networks live by the wall clock, with latencies of
// microseconds. Tests run in virtual time: see package simtest.
func fast() *gosimnet.Simnet {
	s, err := gosimnet.New(&gosimnet.SimNetConfig{MinHop: 10 * time.Microsecond})
	if err != nil {
		panic(err)
	}
	return s
}

func Example() {
	network := fast()
	defer network.Close()
	server, client := network.Host("server"), network.Host("client")

	listener, err := server.Listen("tcp", ":7000")
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		io.Copy(conn, conn)
	}()

	conn, err := client.Dial("tcp", "server:7000")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Fprintln(conn, "hello")
	line, err := bufio.NewReader(conn).ReadString('\n')
	fmt.Printf("%q %v from %v\n", line, err, conn.RemoteAddr())
	// Output: "hello\n" <nil> from 10.0.0.1:7000
}

// A service that takes a Network runs over the simulation in tests, and over the real one in production.
func ExampleNetwork() {
	ask := func(network gosimnet.Network, address string) error {
		conn, err := network.Dial("tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	}
	simulated := fast()
	defer simulated.Close()
	simulated.Host("server")
	fmt.Println(ask(simulated.Host("client"), "server:80"))
	fmt.Println(ask(gosimnet.OS, "127.0.0.1:99999"))
	// Output:
	// dial tcp 10.0.0.1:80: connect: connection refused
	// dial tcp: address 99999: invalid port
}

// A host's software starts with its power, and again after a power cut.
func ExampleHost_Run() {
	network := fast()
	defer network.Close()
	started, stopped := make(chan string), make(chan string)
	server := network.Host("server")
	server.Run(func(ctx context.Context) error {
		listener, err := server.Listen("tcp", ":80")
		if err != nil {
			return err
		}
		started <- "listening on " + listener.Addr().String()
		_, err = listener.Accept() // ends when the power does
		stopped <- fmt.Sprint("closed: ", errors.Is(err, net.ErrClosed), ", context: ", ctx.Err())
		return err
	})
	fmt.Println(<-started)
	network.AlterHost("server", gosimnet.SHUTDOWN)
	fmt.Println(<-stopped)
	network.AlterHost("server", gosimnet.POWERON)
	fmt.Println(<-started)
	network.Close()
	fmt.Println(<-stopped)
	// Output:
	// listening on [::]:80
	// closed: true, context: context canceled
	// listening on [::]:80
	// closed: true, context: context canceled
}

// While a partition lasts nobody answers, and nobody refuses.
func ExampleSimnet_Partition() {
	network := fast()
	defer network.Close()
	a, b := network.Host("a"), network.Host("b")
	if _, err := b.Listen("tcp", ":80"); err != nil {
		fmt.Println(err)
		return
	}
	heal, err := network.Partition(gosimnet.DropPackets, []string{"a"}, []string{"b"})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = a.DialTimeout("tcp", "b:80", 5*time.Millisecond)
	fmt.Println(err, errors.Is(err, os.ErrDeadlineExceeded))
	heal()
	_, err = a.Dial("tcp", "b:80")
	fmt.Println(err)
	// Output:
	// dial tcp 10.0.0.2:80: i/o timeout true
	// <nil>
}

func ExampleHost_ListenPacket() {
	network := fast()
	defer network.Close()
	server, err := network.Host("server").ListenPacket("udp", ":53")
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := network.Host("client").Dial("udp", "server:53")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Fprint(client, "who is there?")
	b := make([]byte, 1500)
	n, from, err := server.ReadFrom(b)
	fmt.Printf("%q from %v %v\n", b[:n], from.(*net.UDPAddr).IP, err)
	// Output: "who is there?" from 10.0.0.2 <nil>
}

// A rule sees every packet that leaves a host. This one loses the first of two datagrams.
func ExampleSimnet_AddRule() {
	network := fast()
	defer network.Close()
	server, err := network.Host("server").ListenPacket("udp", ":53")
	if err != nil {
		fmt.Println(err)
		return
	}
	remove := network.AddRule(func(p *gosimnet.Packet) gosimnet.Verdict {
		if p.Network == "udp" && p.N == 0 {
			return gosimnet.Drop()
		}
		return gosimnet.Pass()
	})
	defer remove()
	client, err := network.Host("client").Dial("udp", "server:53")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Fprint(client, "first")
	fmt.Fprint(client, "second")
	b := make([]byte, 1500)
	n, _, err := server.ReadFrom(b)
	fmt.Printf("%q %v\n", b[:n], err)
	stats, err := network.LinkStats("client", "server")
	fmt.Println(stats.Sent, stats.Delivered, stats.LostTo, err)
	// Output:
	// "second" <nil>
	// {2 11} {1 6} map[rule:{1 5}] <nil>
}

// A faulty network card loses messages, which can be delivered after all when it is repaired. Its losses delay a stream,
// but never take a byte of it.
func ExampleSimnet_FaultHost() {
	network := fast()
	defer network.Close()
	listener, err := network.Host("server").Listen("simnet", "server")
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := network.Host("client").Dial("simnet", "server")
	if err != nil {
		fmt.Println(err)
		return
	}
	server, err := listener.Accept()
	if err != nil {
		fmt.Println(err)
		return
	}
	receive := func() {
		b := make([]byte, 100)
		n, err := server.Read(b)
		fmt.Printf("%q %v\n", b[:n], err)
	}
	network.FaultHost("client", gosimnet.DropDeafSpec{UpdateDropSends: true, DropSendsNewProb: 1}, false)
	fmt.Fprint(client, "lost")
	fmt.Println(network.Host("client").State())
	network.RepairHost("client", false, false, false, true)
	receive()
	fmt.Fprint(client, "on time")
	receive()
	fmt.Println(network.Host("client").State())
	// Output:
	// FAULTY
	// "lost" <nil>
	// "on time" <nil>
	// HEALTHY
}

// A batch makes several faults at one instant, or, if one of them is impossible, none.
func ExampleSimnet_NewSimnetBatch() {
	network := fast()
	defer network.Close()
	network.Host("a")
	network.Host("b")

	good := network.NewSimnetBatch(time.Time{}, true)
	good.AlterHost("a", gosimnet.ISOLATE)
	good.AlterHost("b", gosimnet.SHUTDOWN)
	network.SubmitBatch(good)
	<-good.Done()
	fmt.Println(good.Err(), network.Host("a").State(), network.Host("b").PoweredOff())

	bad := network.NewSimnetBatch(time.Time{}, true)
	bad.AlterHost("a", gosimnet.UNISOLATE)
	bad.AlterHost("nobody", gosimnet.ISOLATE)
	network.SubmitBatch(bad)
	<-bad.Done()
	fmt.Println(bad.Err(), network.Host("a").State())
	// Output:
	// <nil> ISOLATED true
	// verb 1 of the batch: gosimnet: unknown host "nobody", which neither Host nor AddHost has made ISOLATED
}

// Code for earlier versions of this package goes on to work.
func ExampleNewSimNet() {
	cfg := gosimnet.NewSimNetConfig()
	cfg.InitialSimnetScenario = 43
	network := gosimnet.NewSimNet(cfg)
	defer network.Close()

	server := network.NewSimServer("server")
	defer server.Close()
	listener, err := server.Listen("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := network.NewSimClient("client")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	conn, err := client.Dial("gosimnet", listener.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(client.LocalAddr(), conn.RemoteAddr().Network(), conn.RemoteAddr())
	// Output: client simnet server
}

// A name means different things to different hosts, or nothing at all.
func ExampleHost_SetView() {
	network := fast()
	defer network.Close()
	office, home, lab := network.Host("office"), network.Host("home"), network.Host("lab")

	network.AddRecord("db.example", "A 10.1.0.1")
	home.SetView("db.example", gosimnet.Answers("A 10.2.0.1"))
	lab.SetView("db.example", gosimnet.NXDomain())

	for _, host := range []*gosimnet.Host{office, home, lab} {
		addrs, err := host.Resolver().LookupNetIP(context.Background(), "ip4", "db.example.")
		var dns *net.DNSError
		fmt.Println(host.Name(), addrs, errors.As(err, &dns) && dns.IsNotFound)
	}
	// Output:
	// office [10.1.0.1] false
	// home [10.2.0.1] false
	// lab [] true
}

func ExampleHost_ListenMulticastUDP() {
	network := fast()
	defer network.Close()
	group := &net.UDPAddr{IP: net.IPv4(239, 0, 0, 1), Port: 7000}

	member, err := network.Host("member").ListenMulticastUDP("udp", nil, group)
	if err != nil {
		fmt.Println(err)
		return
	}
	sender, err := network.Host("sender").ListenPacket("udp", ":7001")
	if err != nil {
		fmt.Println(err)
		return
	}
	sender.WriteTo([]byte("hello"), group)
	buf := make([]byte, 100)
	n, from, err := member.ReadFrom(buf)
	fmt.Printf("%q from %v %v\n", buf[:n], from, err)
	// Output: "hello" from 10.0.0.2:7001 <nil>
}
