package gosimnet_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/glycerine/gosimnet"
)

// Somebody who is to be woken at the next instant, and leaves before for another reason, does not take the network's steps along.
func TestAReaderThatLeavesBeforeItsTurnHoldsUpNobody(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		toFirst, first := openStream(t, s, "a", "b", ":1")
		toSecond, second := openStream(t, s, "a", "b", ":2")
		toThird, third := openStream(t, s, "a", "b", ":3")
		ended := make(chan error, 2)
		read := func(mine, others net.Conn) {
			_, err := mine.Read(make([]byte, 1))
			_ = others.SetReadDeadline(time.Unix(0, 0))
			ended <- err
		}
		go read(first, second) // both are due at one instant
		go read(second, first)
		time.Sleep(time.Millisecond)
		say(t, toFirst, "x")
		say(t, toSecond, "x")
		var sent time.Time
		time.AfterFunc(time.Millisecond, func() {
			sent = time.Now()
			say(t, toThird, "x")
		})
		if one, other := <-ended, <-ended; one != nil || !errors.Is(other, os.ErrDeadlineExceeded) {
			t.Errorf("the readers got %v and %v, want a byte and a timeout", one, other)
		}
		_, err := third.Read(make([]byte, 1))
		noError(t, err)
		if took := time.Since(sent); !about(took, 10*time.Millisecond) {
			t.Errorf("what is sent meanwhile takes %v, want 10ms", took)
		}
	})
}

// Everybody who reads from a connection learns of its end.
func TestAllReadersOfAConnectionSeeItsEnd(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		for name, open := range map[string]func() (client, server net.Conn){
			"stream":  func() (client, server net.Conn) { return openStream(t, s, "a", "b", ":1") },
			"circuit": func() (client, server net.Conn) { return openCircuit(t, s, "a", "b") },
		} {
			client, server := open()
			const readers = 3
			ends := make(chan error, readers)
			for range readers {
				go func() {
					_, err := server.Read(make([]byte, 1))
					ends <- err
				}()
			}
			time.Sleep(time.Millisecond)
			noError(t, client.Close())
			for range readers {
				if err := <-ends; err != io.EOF {
					t.Errorf("a reader of the %s got %v, want EOF", name, err)
				}
			}
		}
	})
}

// Of two readers one gets the datagram, and the other one the refusal that arrives with it.
func TestARefusalAndADatagramWakeTwoReaders(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		server, err := s.Host("b").ListenPacket("udp", ":7")
		noError(t, err)
		client, err := s.Host("a").Dial("udp", "b:7")
		noError(t, err)
		say(t, client, "question")
		_, from, err := server.ReadFrom(make([]byte, 10))
		noError(t, err)
		unclog, err := s.Clog("b", "a", 0)
		noError(t, err)
		_, err = server.WriteTo([]byte("answer"), from)
		noError(t, err)
		noError(t, server.Close())
		say(t, client, "question")
		ends := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := client.Read(make([]byte, 10))
				ends <- err
			}()
		}
		time.Sleep(time.Second)
		unclog()
		one, other := <-ends, <-ends
		if errors.Is(one, syscall.ECONNREFUSED) == errors.Is(other, syscall.ECONNREFUSED) || one != nil && other != nil {
			t.Errorf("the readers got %v and %v, want a datagram and ECONNREFUSED", one, other)
		}
	})
}

// A dial whose deadline is the very instant at which the network was made is out of time.
func TestADeadlineAtTheBeginning(t *testing.T) {
	bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
		_, err := s.Host("b").Listen("tcp", ":1")
		noError(t, err)
		d := s.Host("a").Dialer()
		d.Deadline = time.Now()
		if _, err := d.Dial("tcp", "b:1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the dial returned %v, want a timeout", err)
		}
	})
}

// Of two readers of each connection the first wakes the second, which comes before the readers of other connections that are due already. It
// has an instant of its own all the same, though the network had meant to make the step of the first itself, while nobody read.
func TestReadersOfOneConnectionAreWokenAtInstantsOfTheirOwn(t *testing.T) {
	for range 20 {
		bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
			var clients, conns []net.Conn
			for _, port := range []string{":1", ":2", ":3"} {
				client, server := openStream(t, s, "a", "b", port)
				clients, conns = append(clients, client), append(conns, server, server)
			}
			_, idle := openStream(t, s, "c", "b", ":1")
			for _, c := range clients {
				say(t, c, "xx")
			}
			time.Sleep(time.Millisecond)
			times := make(chan time.Time, len(conns))
			for _, c := range conns {
				go func() {
					_, err := c.Read(make([]byte, 1))
					times <- time.Now()
					noError(t, err)
				}()
			}
			noError(t, idle.SetReadDeadline(time.Now().Add(time.Millisecond))) // somebody else makes a step before
			_, err := idle.Read(make([]byte, 1))
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("Read: %v, want a timeout", err)
			}
			for last := (time.Time{}); len(conns) > 0; conns = conns[1:] {
				at := <-times
				if at.Equal(last) {
					t.Errorf("two readers are woken at %v", at)
				}
				last = at
			}
		})
	}
}

// Goroutines that write to one connection at one instant, or read from it, go on at that instant if there is room and data for all of them, whether one finds
// the other in the middle of its call or not.
func TestLargeCallsOfOneInstantAreOverAtIt(t *testing.T) {
	for range 50 {
		bubble(t, func(t *testing.T, s *gosimnet.Simnet) {
			client, server := openStream(t, s, "a", "b", ":1")
			const each = 20_000
			for _, what := range []string{"write", "read"} {
				call := client.Write
				if what == "read" {
					call = func(b []byte) (int, error) { return io.ReadFull(server, b) }
				}
				start, times := time.Now(), make(chan time.Duration, 4)
				for range cap(times) {
					go func() {
						n, err := call(make([]byte, each))
						times <- time.Since(start)
						if n != each || err != nil {
							t.Errorf("%s: %d, %v", what, n, err)
						}
					}()
				}
				time.Sleep(2 * time.Second)
				for first := <-times; len(times) > 0; {
					if at := <-times; at != first {
						t.Errorf("a %s is over at %v, another one at %v", what, first, at)
					}
				}
			}
		})
	}
}
