package dns

import (
	"fmt"
	"testing"
	"time"

	"github.com/miekg/dns"
	"go.uber.org/goleak"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

const (
	software  = "github.com/miekg/dns v1.1.73"
	latency   = 10 * time.Millisecond
	roundTrip = 2 * latency
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve answers over UDP and TCP for as long as the test runs.
func serve(t *testing.T, h *gosimnet.Host, handler dns.HandlerFunc) {
	t.Helper()
	packets := scenario.Must(h.ListenPacket("udp", ":53"))(t)
	for _, srv := range []*dns.Server{{PacketConn: packets}, {Listener: scenario.Must(h.Listen("tcp", ":53"))(t)}} {
		srv.Handler = handler
		started := make(chan struct{})
		srv.NotifyStartedFunc = func() { close(started) }
		go srv.ActivateAndServe()
		<-started
		t.Cleanup(func() { srv.Shutdown() })
	}
}

// texts answers every question with so many texts, and with what fits of them.
func texts(n int) dns.HandlerFunc {
	return func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		for i := range n {
			hdr := dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeTXT, Class: dns.ClassINET, Ttl: 60}
			m.Answer = append(m.Answer, &dns.TXT{Hdr: hdr, Txt: []string{fmt.Sprintf("text number %d", i)}})
		}
		if w.LocalAddr().Network() == "udp" {
			size := dns.MinMsgSize
			if opt := q.IsEdns0(); opt != nil {
				size = int(opt.UDPSize())
			}
			m.Truncate(size)
		}
		w.WriteMsg(m)
	}
}

// question asks for the texts of a name.
func question(name string) *dns.Msg { return new(dns.Msg).SetQuestion(name, dns.TypeTXT) }

// dial connects to the server for as long as the test runs.
func dial(t *testing.T, network *gosimnet.Simnet, proto string) *dns.Conn {
	t.Helper()
	c := scenario.Must(network.Host("client").Dial(proto, "server:53"))(t)
	t.Cleanup(func() { c.Close() })
	return &dns.Conn{Conn: c}
}
