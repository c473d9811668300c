package integration

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/hashicorp/yamux"
	"github.com/miekg/dns"

	"github.com/glycerine/gosimnet"
)

// answerA answers every question with one address.
func answerA(w dns.ResponseWriter, q *dns.Msg) {
	m := new(dns.Msg).SetReply(q)
	m.Answer = []dns.RR{&dns.A{
		Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60},
		A:   net.IPv4(192, 0, 2, 1),
	}}
	w.WriteMsg(m)
}

// serveDNS answers over UDP and TCP for as long as the test runs.
func serveDNS(t *testing.T, h *gosimnet.Host) {
	t.Helper()
	packets, err := h.ListenPacket("udp", ":53")
	if err != nil {
		t.Fatal(err)
	}
	for _, srv := range []*dns.Server{{PacketConn: packets}, {Listener: listen(t, h, ":53")}} {
		srv.Handler = dns.HandlerFunc(answerA)
		started := make(chan struct{})
		srv.NotifyStartedFunc = func() { close(started) }
		go srv.ActivateAndServe()
		<-started
		t.Cleanup(func() { srv.Shutdown() })
	}
}

// resolve asks the DNS server over a connection made for it.
func resolve(h *gosimnet.Host, network string) (*dns.Msg, error) {
	c, err := h.Dial(network, "server:53")
	if err != nil {
		return nil, err
	}
	defer c.Close()
	answer, _, err := new(dns.Client).ExchangeWithConn(new(dns.Msg).SetQuestion("example.org.", dns.TypeA), &dns.Conn{Conn: c})
	return answer, err
}

// The client tells UDP from TCP by the connection's methods, and gives up a lost question after two seconds.
func TestDNS(t *testing.T) {
	bubble(t, hop(latency), func(t *testing.T, s *gosimnet.Simnet) {
		serveDNS(t, s.Host("server"))
		for network, roundTrips := range map[string]time.Duration{"udp": 1, "tcp": 2} {
			start := startClock()
			answer, err := resolve(s.Host("client"), network)
			if err != nil {
				t.Fatal(err)
			}
			start.at(t, "the answer over "+network, roundTrips*roundTrip)
			if a, ok := answer.Answer[0].(*dns.A); !ok || a.A.String() != "192.0.2.1" {
				t.Errorf("the answer over %s is %v", network, answer.Answer)
			}
		}
		heal := cutOff(t, s)
		start := startClock()
		_, err := resolve(s.Host("client"), "udp")
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a question into the partition: %v, want a time-out", err)
		}
		start.at(t, "the error", 2*time.Second)
		heal()
		if _, err := resolve(s.Host("client"), "udp"); err != nil {
			t.Errorf("a question after the partition: %v", err)
		}
	})
}

// A ping every two seconds, and one second to write its answer: a partition ends the session after three.
func TestYamuxKeepAliveFindsAPartition(t *testing.T) {
	bubble(t, hop(latency), func(t *testing.T, s *gosimnet.Simnet) {
		cfg := yamux.DefaultConfig()
		cfg.KeepAliveInterval, cfg.ConnectionWriteTimeout = 2*time.Second, time.Second
		cfg.LogOutput = io.Discard
		a, b := pair(t, s)
		server := must(yamux.Server(b, cfg))(t)
		defer server.Close()
		go func() {
			for {
				stream, err := server.Accept()
				if err != nil {
					return
				}
				go func() { io.Copy(stream, stream); stream.Close() }()
			}
		}()
		session := must(yamux.Client(a, cfg))(t)
		stream := must(session.Open())(t)
		start := startClock()
		io.WriteString(stream, "hello")
		if _, err := io.ReadFull(stream, make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
		start.at(t, "the echo", roundTrip)
		cutOff(t, s)
		if n, err := stream.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("Read: %d, %v; want EOF", n, err)
		}
		start.within(t, "the end of the stream", 3*time.Second, 10*time.Millisecond)
		if !session.IsClosed() {
			t.Error("the session is still open")
		}
	})
}
