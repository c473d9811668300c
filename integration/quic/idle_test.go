package quic

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// talk is a connection from "client" to an echo on "server", and its two ends.
func talk(t *testing.T, net *gosimnet.Simnet, c credentials, client, server *quic.Config) (
	here, there *quic.Conn, s *quic.Stream,
) {
	t.Helper()
	l := listen(t, net, c, server)
	accepted := make(chan *quic.Conn, 1)
	go each(l, func(conn *quic.Conn) {
		accepted <- conn
		echo(conn)
	})
	here = dial(t, net, transport(t, socket(t, net.Host("client"), ":0")), c, client)
	s = scenario.Must(here.OpenStream())(t)
	if err := say(s, "hello"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	return here, <-accepted, s
}

// idleAfter waits for the end of a connection, which must be the idle time-out, after so long.
func idleAfter(t *testing.T, whose string, conn *quic.Conn, start scenario.Clock, want time.Duration) {
	t.Helper()
	<-conn.Context().Done()
	start.At(t, "the end of the "+whose+"'s connection", want)
	var idle *quic.IdleTimeoutError
	if err := context.Cause(conn.Context()); !errors.As(err, &idle) {
		t.Errorf("the %s's connection has ended with %v, want the idle time-out", whose, err)
	}
}

// The shorter of both ends' time-outs counts for both, from the last packet that an end has received: RFC 9000,
// section 10.1, and https://github.com/quic-go/quic-go/issues/2191, "I set IdleTimeout 120s, but 15 seconds later".
func TestIdleTimeoutIsTheShorterOne(t *testing.T) {
	c := newCredentials(t)
	scenario.Run(t, scenario.Scenario{
		Software: software,
		Shows:    "an idle connection ends after the shorter time-out of both ends", Repeats: true,
		Config: hop(latency),
	}, func(t *testing.T, net *gosimnet.Simnet) {
		long, short := &quic.Config{MaxIdleTimeout: 2 * time.Minute}, &quic.Config{MaxIdleTimeout: 15 * time.Second}
		here, there, s := talk(t, net, c, long, short)
		start := scenario.StartClock()
		if err := say(s, "last words"); err != nil {
			t.Fatal(err)
		}
		idleAfter(t, "client", here, start, roundTrip+thinking+15*time.Second)
		const acknowledged = 25 * time.Millisecond // after what it acknowledges
		idleAfter(t, "server", there, start, roundTrip+thinking+acknowledged+latency+15*time.Second)
		if err := say(s, "too late"); !errors.As(err, new(*quic.IdleTimeoutError)) {
			t.Errorf("a stream of the connection: %v, want the idle time-out", err)
		}
	})
}

// Keep-alives hold an idle connection for ever, but not across a partition. An end's time begins with the last packet
// that has come, or with the first that it sends after that: no end stays behind, as in
// https://github.com/quic-go/quic-go/issues/1275, "Keep alive can leave idle connection hung".
func TestKeepAlivesEndAtAPartition(t *testing.T) {
	c := newCredentials(t)
	scenario.Run(t, scenario.Scenario{
		Software: software,
		Shows:    "keep-alives hold a connection for an hour; at a partition both ends give it up", Repeats: true,
		Config: hop(latency),
	}, func(t *testing.T, net *gosimnet.Simnet) {
		cfg := &quic.Config{MaxIdleTimeout: 10 * time.Second, KeepAlivePeriod: 2 * time.Second}
		here, there, s := talk(t, net, c, cfg, nil)
		time.Sleep(time.Hour)
		start := scenario.StartClock()
		if err := say(s, "still there"); err != nil {
			t.Fatal(err)
		}
		start.At(t, "an echo after an hour", roundTrip+thinking)
		scenario.Must(net.Partition(gosimnet.DropPackets, []string{"client"}, []string{"server"}))(t)
		idleAfter(t, "server", there, start, latency+thinking+10*time.Second)
		idleAfter(t, "client", here, start, roundTrip+thinking+2*time.Second+10*time.Second)
	})
}

// A dial that nobody answers is repeated after 200, 400, 800 ms … (RFC 9002, section 6.2.1, with quic-go's guess of a
// round trip, 100 ms), and ends after Config.HandshakeIdleTimeout, 5 s.
func TestDialWithoutAnswer(t *testing.T) {
	c := newCredentials(t)
	scenario.Run(t, scenario.Scenario{
		Software: software,
		Shows:    "a dial that nobody answers: probe time-outs, and the end after 5 s", Repeats: true,
		Config: hop(latency),
	}, func(t *testing.T, net *gosimnet.Simnet) {
		tr := transport(t, socket(t, net.Host("client"), ":0"))
		server := serverAddr(net)
		start := scenario.StartClock()
		var sent []time.Duration
		remove := net.AddRule(func(p *gosimnet.Packet) gosimnet.Verdict {
			if at := p.Time.Sub(start.Start); !slices.Contains(sent, at) {
				sent = append(sent, at)
			}
			return gosimnet.Drop()
		})
		_, err := tr.Dial(t.Context(), server, c.client(), nil)
		if !errors.As(err, new(*quic.IdleTimeoutError)) {
			t.Errorf("Dial: %v, want the idle time-out", err)
		}
		start.At(t, "the error", 5*time.Second)
		remove()
		want := []time.Duration{0, 200 * time.Millisecond, 600 * time.Millisecond, 1400 * time.Millisecond, 3 * time.Second}
		if !slices.Equal(sent, want) {
			t.Errorf("packets left at %v, want %v", sent, want)
		}
	})
}
