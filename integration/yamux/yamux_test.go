package yamux

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// A stream that nobody reads takes a window, 256 KiB, and no more, and its writer waits; the other streams do not
// notice: https://github.com/hashicorp/yamux/issues/112 asks what would be if it took more. When its reader comes,
// all of it arrives.
func TestStalledStreamAmongHealthyOnes(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "a stream that nobody reads stalls alone", Repeats: true, Config: usual,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		client, server := sessions(t, net, quiet())
		stalled := scenario.Must(client.OpenStream())(t)
		far := scenario.Must(server.AcceptStream())(t)
		go echo(server)
		healthy := []*yamux.Stream{scenario.Must(client.OpenStream())(t), scenario.Must(client.OpenStream())(t), scenario.Must(client.OpenStream())(t)}
		time.Sleep(time.Second)

		data := bytes.Repeat([]byte("0123456789abcdef"), window/8)
		start := scenario.StartClock()
		stalled.SetWriteDeadline(time.Now().Add(5 * time.Second))
		written := make(chan int)
		go func() {
			n, err := stalled.Write(data)
			start.At(t, "the end of Write", 5*time.Second)
			if !errors.Is(err, yamux.ErrTimeout) {
				t.Errorf("Write: %v, want the time-out", err)
			}
			written <- n
		}()
		time.Sleep(time.Second)
		for _, s := range healthy {
			start := scenario.StartClock()
			say(t, s, "hello")
			start.At(t, "the echo on a healthy stream", roundTrip+thinking)
			time.Sleep(thinking)
		}
		if n := <-written; n != window {
			t.Errorf("the stalled stream took %d bytes, want its window, %d", n, window)
		}

		got := make([]byte, window)
		if _, err := io.ReadFull(far, got); err != nil || !bytes.Equal(got, data[:window]) {
			t.Errorf("what was written has not arrived as it was: %v", err)
		}
		time.Sleep(time.Second)
		stalled.SetWriteDeadline(time.Time{})
		if n, err := stalled.Write([]byte("more")); n != 4 || err != nil {
			t.Errorf("Write with a reader: %d, %v", n, err)
		}
	})
}

// All streams share one connection, and wait for its lost segments: an echo that has nothing to do with the lost one
// is late by a retransmission time-out, 200 ms. RFC 9000, section 1, calls it head-of-line blocking, and QUIC is made
// to avoid it.
func TestLostSegmentStallsAllStreams(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software,
		Shows:    "a lost segment of one stream stalls all for a retransmission time-out", Repeats: true,
		Config: usual,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		client, server := sessions(t, net, quiet())
		one := scenario.Must(client.OpenStream())(t)
		go io.Copy(io.Discard, scenario.Must(server.AcceptStream())(t))
		go echo(server)
		time.Sleep(time.Second)
		other := scenario.Must(client.OpenStream())(t)
		time.Sleep(time.Second)
		lost := false
		net.AddRule(func(p *gosimnet.Packet) gosimnet.Verdict {
			if lost || !bytes.Contains(p.Payload, []byte("lost")) {
				return gosimnet.Pass()
			}
			lost = true
			return gosimnet.Drop()
		})
		start := scenario.StartClock()
		if _, err := io.WriteString(one, "lost"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
		say(t, other, "hello")
		// The frame's header is a segment of its own; the time-out counts from its acknowledgement.
		start.At(t, "the echo on the other stream", roundTrip+200*time.Millisecond+roundTrip+thinking)
	})
}

// A ping every two seconds, and one second for its answer: a partition ends the session after three, and a Read with
// io.EOF. With the defaults that takes 40 s, for which Reads hang: https://github.com/hashicorp/yamux/issues/142.
func TestKeepAliveFindsAPartition(t *testing.T) {
	for _, c := range []struct {
		name            string
		every, patience time.Duration
	}{{"short", 2 * time.Second, time.Second}, {"default", 30 * time.Second, 10 * time.Second}} {
		t.Run(c.name, func(t *testing.T) {
			scenario.Run(t, scenario.Scenario{
				Software: software,
				Shows:    "keep-alives of " + c.every.String() + " and " + c.patience.String() + " find a partition", Repeats: true,
				Config: usual,
			}, func(t *testing.T, net *gosimnet.Simnet) {
				cfg := quiet()
				cfg.KeepAliveInterval, cfg.ConnectionWriteTimeout = c.every, c.patience
				client, server := sessions(t, net, cfg)
				begin := scenario.StartClock()
				go echo(server)
				stream := scenario.Must(client.OpenStream())(t)
				say(t, stream, "hello")
				scenario.Must(net.Partition(gosimnet.DropPackets, []string{"client"}, []string{"server"}))(t)
				if n, err := stream.Read(make([]byte, 1)); n != 0 || err != io.EOF {
					t.Errorf("Read: %d, %v; want the end", n, err)
				}
				begin.At(t, "the end of the stream", c.every+c.patience)
				if !client.IsClosed() {
					t.Error("the session is still open")
				}
			})
		})
	}
}
