package integration

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/glycerine/gosimnet"
)

// question is a message to the network's own name server, without EDNS.
func question(name string, kind uint16) *dns.Msg {
	return new(dns.Msg).SetQuestion(name, kind)
}

// ask sends a message to the name server over a connection of its own.
func ask(h *gosimnet.Host, network string, m *dns.Msg) (*dns.Msg, error) {
	c, err := h.Dial(network, "dns:53")
	if err != nil {
		return nil, err
	}
	defer c.Close()
	answer, _, err := new(dns.Client).ExchangeWithConn(m, &dns.Conn{Conn: c})
	return answer, err
}

// texts lists records without their header's names and times.
func texts(records []dns.RR) (all []string) {
	for _, r := range records {
		h := r.Header()
		all = append(all, strings.ToLower(h.Name)+" "+dns.TypeToString[h.Rrtype]+" "+strings.TrimPrefix(r.String(), h.String()))
	}
	return all
}

// zone is a network with a host "a", a name server, and some records.
func zone(t *testing.T, s *gosimnet.Simnet) *gosimnet.Host {
	t.Helper()
	a := s.Host("a")
	s.Host("dns")
	for name, records := range map[string][]string{
		"shop.example":          {"A 10.7.0.1", "A 10.7.0.2", "AAAA fd00::7", "TXT all of it"},
		"www.example":           {"CNAME shop.example"},
		"_http._tcp.shop":       {"SRV 10 5 8080 shop.example"},
		"a.long.one.":           {"TXT " + strings.Repeat("x", 600)},
		"9.9.9.10.in-addr.arpa": {"PTR shop.example"},
	} {
		if err := s.AddRecord(name, records...); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

func TestNameServerAnswers(t *testing.T) {
	bubble(t, hop(10*time.Millisecond), func(t *testing.T, s *gosimnet.Simnet) {
		a := zone(t, s)
		for _, network := range []string{"udp", "tcp"} {
			for _, test := range []struct {
				name  string
				kind  uint16
				rcode int
				want  []string
			}{
				{"a.", dns.TypeA, dns.RcodeSuccess, []string{"a. A 10.0.0.1"}},
				{"a.", dns.TypeAAAA, dns.RcodeSuccess, []string{"a. AAAA fd00::1"}},
				{"A.", dns.TypeA, dns.RcodeSuccess, []string{"a. A 10.0.0.1"}},
				{"1.0.0.10.in-addr.arpa.", dns.TypePTR, dns.RcodeSuccess, []string{"1.0.0.10.in-addr.arpa. PTR a."}},
				{"9.9.9.10.in-addr.arpa.", dns.TypePTR, dns.RcodeSuccess, []string{"9.9.9.10.in-addr.arpa. PTR shop.example."}},
				{"shop.example.", dns.TypeA, dns.RcodeSuccess, []string{"shop.example. A 10.7.0.1", "shop.example. A 10.7.0.2"}},
				{"shop.example.", dns.TypeTXT, dns.RcodeSuccess, []string{`shop.example. TXT "all of it"`}},
				{"www.example.", dns.TypeAAAA, dns.RcodeSuccess, []string{"www.example. CNAME shop.example.", "shop.example. AAAA fd00::7"}},
				{"www.example.", dns.TypeCNAME, dns.RcodeSuccess, []string{"www.example. CNAME shop.example."}},
				{"_http._tcp.shop.", dns.TypeSRV, dns.RcodeSuccess, []string{"_http._tcp.shop. SRV 10 5 8080 shop.example."}},
				{"shop.example.", dns.TypeMX, dns.RcodeSuccess, nil},
				{"nobody.", dns.TypeA, dns.RcodeNameError, nil},
			} {
				answer, err := ask(a, network, question(test.name, test.kind))
				if err != nil {
					t.Errorf("%s %s: %v", network, test.name, err)
					continue
				}
				if got := texts(answer.Answer); answer.Rcode != test.rcode || !slices.Equal(got, test.want) || !answer.Authoritative || !answer.RecursionAvailable {
					t.Errorf("%s %s %s: %s %q, want %s %q", network, test.name, dns.TypeToString[test.kind],
						dns.RcodeToString[answer.Rcode], got, dns.RcodeToString[test.rcode], test.want)
				}
			}
		}
	})
}

func TestNameServerRefuses(t *testing.T) {
	bubble(t, hop(10*time.Millisecond), func(t *testing.T, s *gosimnet.Simnet) {
		a := zone(t, s)
		two := question("a.", dns.TypeA)
		two.Question = append(two.Question, two.Question[0])
		status := question("a.", dns.TypeA)
		status.Opcode = dns.OpcodeStatus
		chaos := question("a.", dns.TypeA)
		chaos.Question[0].Qclass = dns.ClassCHAOS
		for want, m := range map[int]*dns.Msg{dns.RcodeFormatError: two, dns.RcodeNotImplemented: status, dns.RcodeRefused: chaos} {
			answer, err := ask(a, "udp", m)
			if err != nil || answer.Rcode != want || len(answer.Answer) > 0 {
				t.Errorf("%v, %v, want %s", answer, err, dns.RcodeToString[want])
			}
		}
		c, err := a.Dial("udp", "dns:53")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		reply := question("a.", dns.TypeA)
		reply.Response = true
		b, err := reply.Pack()
		if err != nil {
			t.Fatal(err)
		}
		for _, junk := range [][]byte{nil, {1}, make([]byte, 11), b, []byte(strings.Repeat("\xff", 100))} {
			c.Write(junk)
		}
		c.SetReadDeadline(time.Now().Add(time.Second))
		if n, err := c.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("junk is answered by %d bytes, %v", n, err)
		}
	})
}

func TestNameServerCutsLongAnswers(t *testing.T) {
	bubble(t, hop(10*time.Millisecond), func(t *testing.T, s *gosimnet.Simnet) {
		a := zone(t, s)
		plain, extended := question("a.long.one.", dns.TypeTXT), question("a.long.one.", dns.TypeTXT)
		extended.SetEdns0(1232, false)
		for _, test := range []struct {
			network string
			m       *dns.Msg
			cut     bool
		}{{"udp", plain, true}, {"udp", extended, false}, {"tcp", plain, false}} {
			answer, err := ask(a, test.network, test.m)
			if err != nil {
				t.Fatal(err)
			}
			if answer.Truncated != test.cut || (len(answer.Answer) == 0) != test.cut || (answer.IsEdns0() != nil) != (test.m == extended) {
				t.Errorf("%s: %v", test.network, answer)
			}
		}
	})
}

func TestLostQueryToTheNameServer(t *testing.T) {
	bubble(t, hop(10*time.Millisecond), func(t *testing.T, s *gosimnet.Simnet) {
		a, lost := zone(t, s), 0
		s.AddRule(func(p *gosimnet.Packet) gosimnet.Verdict {
			if lost++; p.To == "dns" && lost == 1 {
				return gosimnet.Drop()
			}
			return gosimnet.Pass()
		})
		start := time.Now()
		var timeout net.Error
		if _, err := ask(a, "udp", question("a.", dns.TypeA)); !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("the first query: %v", err)
		}
		if got := time.Since(start); got != 2*time.Second {
			t.Errorf("it ran out of time after %v", got)
		}
		if _, err := ask(a, "udp", question("a.", dns.TypeA)); err != nil {
			t.Errorf("the second query: %v", err)
		}
	})
}

func TestNameServersStreams(t *testing.T) {
	bubble(t, hop(10*time.Millisecond), func(t *testing.T, s *gosimnet.Simnet) {
		a := zone(t, s)
		c, err := a.Dial("tcp", "dns:53")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for i := range 3 {
			answer, _, err := new(dns.Client).ExchangeWithConn(question("a.", dns.TypeA), &dns.Conn{Conn: c})
			if err != nil || len(answer.Answer) != 1 {
				t.Errorf("query %d over one stream: %v, %v", i, answer, err)
			}
		}
		start := time.Now()
		c.SetReadDeadline(time.Time{})
		if _, err := c.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("an idle stream: %v", err)
		}
		if got := time.Since(start).Round(time.Millisecond); got != 10*time.Second {
			t.Errorf("an idle stream ends after %v", got)
		}
		if err := a.SetView("", gosimnet.Silence()); err != nil {
			t.Fatal(err)
		}
		for i := range 3 { // closing the network ends what serves these
			c, err := a.Dial("tcp", net.JoinHostPort(s.Host("dns").Addrs()[0].String(), "53"))
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := new(dns.Client).ExchangeWithConn(question(fmt.Sprint("q", i, "."), dns.TypeA), &dns.Conn{Conn: c}); err == nil {
				t.Error("a silent server answers")
			}
		}
	})
}
