package quic

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// A telephone leaves the reach of its wireless network. Each way out is a host of its own here, with links of its own.
const (
	cellularLatency   = 40 * time.Millisecond
	cellularRoundTrip = 2 * cellularLatency
)

// phone is a connection from "wifi" to an echo on "server", and a path from "cellular" that has not been tried.
func phone(t *testing.T, net *gosimnet.Simnet, c credentials) (here, there *quic.Conn, s *quic.Stream, path *quic.Path) {
	t.Helper()
	l := listen(t, net, c, &quic.Config{MaxIdleTimeout: 10 * time.Second})
	accepted := make(chan *quic.Conn, 1)
	go each(l, func(conn *quic.Conn) {
		accepted <- conn
		echo(conn)
	})
	cellular := transport(t, socket(t, net.Host("cellular"), ":0"))
	for _, to := range [][2]string{{"cellular", "server"}, {"server", "cellular"}} {
		if err := net.SetLink(to[0], to[1], gosimnet.LinkConfig{Latency: almost(cellularLatency)}); err != nil {
			t.Fatal(err)
		}
	}
	here = dial(t, net, transport(t, socket(t, net.Host("wifi"), ":0")), c, nil)
	s = scenario.Must(here.OpenStream())(t)
	start := scenario.StartClock()
	if err := say(s, "by wifi"); err != nil {
		t.Fatal(err)
	}
	start.At(t, "the echo by wifi", roundTrip+thinking)
	return here, <-accepted, s, scenario.Must(here.AddPath(cellular))(t)
}

// A path is probed while the other one still works, takes over, and the connection never notices that the first one
// dies: RFC 9000, section 9, and https://github.com/quic-go/quic-go/issues/3990. The probe takes one round trip of
// the new path; a path that has not been probed cannot be switched to.
func TestMigrationToAnotherPath(t *testing.T) {
	c := newCredentials(t)
	scenario.Run(t, scenario.Scenario{
		Software: software,
		Shows:    "a connection moves to another path, and survives the end of the first", Repeats: true,
		Config: hop(latency),
	}, func(t *testing.T, net *gosimnet.Simnet) {
		here, there, s, path := phone(t, net, c)
		if err := path.Switch(); !errors.Is(err, quic.ErrPathNotValidated) {
			t.Errorf("Switch before Probe: %v", err)
		}
		start := scenario.StartClock()
		if err := path.Probe(t.Context()); err != nil {
			t.Fatal(err)
		}
		start.At(t, "the probe's answer", cellularRoundTrip)
		time.Sleep(time.Second)
		if got, want := host(net, there.RemoteAddr()), "wifi"; got != want {
			t.Errorf("after the probe the server sends to %s, want %s", got, want)
		}
		if err := path.Switch(); err != nil {
			t.Fatal(err)
		}
		scenario.Must(net.Partition(gosimnet.DropPackets, []string{"wifi"}, []string{"server"}))(t)
		time.Sleep(time.Second)
		start = scenario.StartClock()
		if err := say(s, "by cellular"); err != nil {
			t.Fatal(err)
		}
		start.At(t, "the echo by cellular", cellularRoundTrip+thinking)
		if got, want := host(net, there.RemoteAddr()), "cellular"; got != want {
			t.Errorf("after the switch the server sends to %s, want %s", got, want)
		}
		time.Sleep(8 * time.Second)
		if err := say(s, "still here"); err != nil {
			t.Errorf("after longer than a connection without its path lives: %v", err)
		}
		if err := context.Cause(here.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Without the switch the same connection ends with the first path, although the second is good: quic-go moves nothing
// by itself.
func TestWithoutMigrationThePathIsTheConnection(t *testing.T) {
	c := newCredentials(t)
	scenario.Run(t, scenario.Scenario{
		Software: software,
		Shows:    "a probed path that nobody switches to does not save the connection", Repeats: true,
		Config: hop(latency),
	}, func(t *testing.T, net *gosimnet.Simnet) {
		here, _, s, path := phone(t, net, c)
		if err := path.Probe(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		scenario.Must(net.Partition(gosimnet.DropPackets, []string{"wifi"}, []string{"server"}))(t)
		start := scenario.StartClock()
		if err := say(s, "by wifi?"); !errors.As(err, new(*quic.IdleTimeoutError)) {
			t.Errorf("a word into the partition: %v, want the idle time-out", err)
		}
		idleAfter(t, "client", here, start, 10*time.Second)
	})
}

// Probe repeats its challenge after 200 ms, which quic-go takes for the first guess of a path's round trip, and gives
// up with its context: https://github.com/quic-go/quic-go/issues/5057, "Blocked at (*Path).Probe". The connection
// goes on by the first path.
func TestProbeOfADeadPath(t *testing.T) {
	c := newCredentials(t)
	scenario.Run(t, scenario.Scenario{
		Software: software,
		Shows:    "a path that answers late, and one that never does", Repeats: true,
		Config: hop(latency),
	}, func(t *testing.T, net *gosimnet.Simnet) {
		_, _, s, path := phone(t, net, c)
		heal := scenario.Must(net.Partition(gosimnet.DropPackets, []string{"cellular"}, []string{"server"}))(t)
		start := scenario.StartClock()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := path.Probe(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Probe into a partition: %v", err)
		}
		start.At(t, "the end of Probe", 5*time.Second)
		time.AfterFunc(300*time.Millisecond, heal)
		start = scenario.StartClock()
		if err := path.Probe(t.Context()); err != nil {
			t.Error(err)
		}
		start.At(t, "the answer to the third challenge", 600*time.Millisecond+cellularRoundTrip)
		start = scenario.StartClock()
		if err := say(s, "by wifi"); err != nil {
			t.Fatal(err)
		}
		start.At(t, "the echo by wifi", roundTrip+thinking)
	})
}
