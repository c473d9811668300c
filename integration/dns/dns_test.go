package dns

import (
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

var usual = &gosimnet.SimNetConfig{MinHop: latency}

// lose is a rule that loses the first datagrams from a host.
func lose(from string, n int) gosimnet.Rule {
	return func(p *gosimnet.Packet) gosimnet.Verdict {
		if p.From == from && p.Network == "udp" && n > 0 {
			n--
			return gosimnet.Drop()
		}
		return gosimnet.Pass()
	}
}

// ask tries up to so many times, as resolv.conf's attempts do. The client does not: "Exchange does not retry a failed
// query", and https://github.com/miekg/dns/pull/449, "let user implement their own re-try logic".
func ask(conn *dns.Conn, q *dns.Msg, attempts int) (answer *dns.Msg, tries int, err error) {
	for tries = 1; tries <= attempts; tries++ {
		answer, _, err = new(dns.Client).ExchangeWithConn(q, conn)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return answer, tries, err
		}
	}
	return nil, attempts, err
}

// A query or an answer that is lost costs two seconds, dns.Client's default, and another attempt.
func TestLostQueryIsRetried(t *testing.T) {
	for _, lost := range []struct {
		from  string
		asked int32 // how often the server is
	}{{"client", 1}, {"server", 3}} {
		t.Run("from the "+lost.from, func(t *testing.T) {
			scenario.Run(t, scenario.Scenario{
				Software: software,
				Shows:    "two lost datagrams from the " + lost.from + ": the third attempt succeeds, after 4 s", Repeats: true,
				Config: usual,
			}, func(t *testing.T, net *gosimnet.Simnet) {
				var asked atomic.Int32
				serve(t, net.Host("server"), func(w dns.ResponseWriter, q *dns.Msg) {
					asked.Add(1)
					texts(1)(w, q)
				})
				net.AddRule(lose(lost.from, 2))
				conn, start := dial(t, net, "udp"), scenario.StartClock()
				answer, tries, err := ask(conn, question("example.org."), 3)
				if err != nil || len(answer.Answer) != 1 || tries != 3 {
					t.Errorf("%v, %d attempts, %v; want a text after three", answer, tries, err)
				}
				start.At(t, "the answer", 4*time.Second+roundTrip)
				if n := asked.Load(); n != lost.asked {
					t.Errorf("the server was asked %d times, want %d", n, lost.asked)
				}
				net.AddRule(lose("client", 2))
				start = scenario.StartClock()
				_, tries, err = ask(conn, question("example.org."), 2)
				if tries != 2 || !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%d attempts, %v; want two, in vain", tries, err)
				}
				start.At(t, "the error", 4*time.Second)
			})
		})
	}
}

// An answer that comes when the client has given up, and has asked something else from the same port, is not taken
// for the answer to that, nor for an error: ExchangeWithConn skips answers with other identities, since
// https://github.com/miekg/dns/issues/1156.
func TestLateAnswerIsNotTheNextOne(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software,
		Shows:    "the late answer to the first question does not answer the second", Repeats: true,
		Config: usual,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		serve(t, net.Host("server"), texts(1))
		conn, start := dial(t, net, "udp"), scenario.StartClock()
		first := true
		net.AddRule(func(p *gosimnet.Packet) gosimnet.Verdict {
			if p.From != "server" {
				return gosimnet.Pass()
			}
			if first {
				first = false
				return gosimnet.Delay(2*time.Second + 5*time.Millisecond - roundTrip) // 15 ms before the next answer
			}
			return gosimnet.Pass()
		})
		if err := net.SetLink("server", "client", gosimnet.LinkConfig{Ordering: gosimnet.Unordered}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := new(dns.Client).ExchangeWithConn(question("first."), conn); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the first question: %v, want a time-out", err)
		}
		start.At(t, "the time-out", 2*time.Second)
		answer, _, err := new(dns.Client).ExchangeWithConn(question("second."), conn)
		if err != nil || answer.Answer[0].Header().Name != "second." {
			t.Errorf("the second question: %v, %v", answer, err)
		}
		start.At(t, "the answer", 2*time.Second+roundTrip)
	})
}

// What does not fit 512 bytes is cut short, and says so by its TC bit: RFC 1035, section 4.2.1. It is the user who
// asks again over TCP, https://github.com/miekg/dns/issues/1279, or with room for a larger answer, RFC 6891.
func TestTruncatedAnswerComesByTCP(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software,
		Shows:    "an answer of 40 texts is truncated over UDP, and complete over TCP", Repeats: true,
		Config: usual,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		serve(t, net.Host("server"), texts(40))
		start := scenario.StartClock()
		conn := dial(t, net, "udp")
		answer, _, err := new(dns.Client).ExchangeWithConn(question("example.org."), conn)
		if err != nil || !answer.Truncated || len(answer.Answer) == 0 || len(answer.Answer) >= 40 {
			t.Fatalf("over UDP: %v, %v; want a part of the answer", answer, err)
		}
		if n := scenario.Must(net.LinkStats("server", "client"))(t).Delivered.Bytes; n > dns.MinMsgSize {
			t.Errorf("the answer over UDP has %d bytes", n)
		}
		start.At(t, "the truncated answer", roundTrip)
		answer, _, err = new(dns.Client).ExchangeWithConn(question("example.org."), dial(t, net, "tcp"))
		if err != nil || answer.Truncated || len(answer.Answer) != 40 {
			t.Fatalf("over TCP: %v, %v; want all of it", answer, err)
		}
		start.At(t, "the whole answer", 3*roundTrip) // TCP takes one for its handshake
		large := question("example.org.").SetEdns0(4096, false)
		answer, _, err = new(dns.Client).ExchangeWithConn(large, conn)
		if err != nil || answer.Truncated || len(answer.Answer) != 40 {
			t.Fatalf("over UDP with room: %v, %v; want all of it", answer, err)
		}
		start.At(t, "the large answer", 4*roundTrip)
	})
}
