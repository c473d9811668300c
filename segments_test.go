package gosimnet_test

import (
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

// segmentsOf runs f with one end of a stream from a to b, closes it, and returns the sizes of the segments that a has sent and what b has read.
func segmentsOf(t *testing.T, begin func(t *testing.T, s *gosimnet.Simnet), f func(c io.Writer)) (sizes []int, read string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newNet(t, nil)
		c, peer := dialPair(t, s)
		begin(t, s)
		f(c)
		c.Close()
		b, err := io.ReadAll(peer)
		if err != nil {
			t.Error(err)
		}
		peer.Close()
		time.Sleep(time.Second)
		for e := range s.Trace() {
			if e.Kind == gosimnet.EventSend && e.From == "a" && e.What == "data" {
				sizes = append(sizes, e.Size)
			}
		}
		read = string(b)
	})
	return sizes, read
}

// What is written at one instant leaves in one segment, in however many writes; in several if that is more than a segment holds, and if rules look at packets. What is
// written later leaves later.
func TestWritesOfOneInstantLeaveTogether(t *testing.T) {
	nothing := func(*testing.T, *gosimnet.Simnet) {}
	for _, test := range []struct {
		name  string
		begin func(t *testing.T, s *gosimnet.Simnet)
		write []int // 0: a microsecond passes
		want  []int
	}{
		{"at one instant", nothing, []int{10, 20, 30}, []int{60}},
		{"at two instants", nothing, []int{10, 20, 0, 30, 40}, []int{30, 70}},
		{"more than a segment", nothing, []int{60 << 10, 3 << 10, 2 << 10, 1 << 10}, []int{64 << 10, 2 << 10}},
		{"on a wire", func(t *testing.T, s *gosimnet.Simnet) {
			if err := s.SetLink("a", "b", gosimnet.LinkConfig{BitsPerSecond: 1e9}); err != nil {
				t.Fatal(err)
			}
		}, []int{1000, 1000, 1000, 1000}, []int{1460, 1460, 1080}},
		{"with a rule", func(_ *testing.T, s *gosimnet.Simnet) {
			s.AddRule(func(*gosimnet.Packet) gosimnet.Verdict { return gosimnet.Pass() })
		}, []int{10, 20, 30}, []int{10, 20, 30}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var written string
			got, read := segmentsOf(t, test.begin, func(c io.Writer) {
				for i, n := range test.write {
					if n == 0 {
						time.Sleep(time.Microsecond)
					}
					b := slices.Repeat([]byte{byte('a' + i)}, n)
					written += string(b)
					if _, err := c.Write(b); err != nil {
						t.Error(err)
					}
				}
			})
			if fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("segments of %v bytes, want %v", got, test.want)
			}
			if read != written {
				t.Errorf("%d bytes were read, not the %d that were written", len(read), len(written))
			}
		})
	}
}

// Goroutines that write at one instant write in any order; the segments are the same.
func TestWritersOfOneInstantRepeat(t *testing.T) {
	for range 50 {
		got, _ := segmentsOf(t, func(*testing.T, *gosimnet.Simnet) {}, func(c io.Writer) {
			var writers sync.WaitGroup
			for n := range 5 {
				writers.Go(func() { c.Write(make([]byte, 100*(n+1))) })
			}
			writers.Wait()
		})
		if fmt.Sprint(got) != "[1500]" {
			t.Fatalf("segments of %v bytes, want one of 1500", got)
		}
	}
}

// A segment that has arrived is sent again when its acknowledgement is lost. What is written at that instant does not join it.
func TestWriteAtTheInstantOfARetransmission(t *testing.T) {
	run := func(again time.Duration) (at time.Duration, read string) {
		synctest.Test(t, func(t *testing.T) {
			s := newNet(t, nil)
			client, server := dialPair(t, s)
			heal, err := s.CutLink(gosimnet.DropPackets, "b", "a")
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			fmt.Fprint(client, "one ")
			if again > 0 {
				time.Sleep(again)
				fmt.Fprint(client, "two")
			}
			time.Sleep(time.Second)
			heal()
			server.SetReadDeadline(time.Now().Add(time.Second))
			b, _ := io.ReadAll(server)
			client.Close()
			server.Close()
			sent := 0
			for e := range s.Trace() {
				if e.Kind == gosimnet.EventSend && e.From == "a" && e.What == "data" {
					if sent++; sent == 2 {
						at = e.Time.Sub(start)
					}
				}
			}
			read = string(b)
		})
		return at, read
	}
	at, read := run(0)
	if at < 200*time.Millisecond || read != "one " {
		t.Fatalf("sent again after %v; %q was read", at, read)
	}
	if _, read := run(at); read != "one two" {
		t.Errorf("%q was read", read)
	}
}

// dialPair connects a to b.
func dialPair(t *testing.T, s *gosimnet.Simnet) (client, server net.Conn) {
	t.Helper()
	l, err := s.Host("b").Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	if client, err = s.Host("a").Dial("tcp", "b:80"); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return client, server
}
