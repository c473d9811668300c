package smtp

import (
	"io"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"go.uber.org/goleak"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

const (
	software  = "github.com/emersion/go-smtp v0.26.0"
	latency   = 10 * time.Millisecond
	roundTrip = 2 * latency
)

var usual = &gosimnet.SimNetConfig{MinHop: latency}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// exchanger is a mail server that greylists: RFC 6647, section 2.1. The first message of a sender to a recipient is
// put off, until five minutes have passed.
type exchanger struct {
	mu        sync.Mutex
	seen      map[[2]string]time.Time
	delivered []string
}

const greylisted = 5 * time.Minute

// tryAgain is the enhanced code of a message that is put off: RFC 3463, section 3.8.
var tryAgain = smtp.EnhancedCode{4, 7, 1}

func newExchanger() *exchanger { return &exchanger{seen: make(map[[2]string]time.Time)} }

// serve is the server on the host "mx", for as long as the test runs.
func (x *exchanger) serve(t *testing.T, network *gosimnet.Simnet) {
	t.Helper()
	l := scenario.Must(network.Host("mx").Listen("tcp", ":25"))(t)
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &session{x: x}, nil }))
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
}

// mailbox is what has been delivered.
func (x *exchanger) mailbox() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return append([]string(nil), x.delivered...)
}

// session is one conversation.
type session struct {
	x    *exchanger
	from string
}

func (s *session) Reset()        {}
func (s *session) Logout() error { return nil }

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	s.from = from
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	first, ok := s.x.seen[[2]string{s.from, to}]
	if !ok {
		first = time.Now()
		s.x.seen[[2]string{s.from, to}] = first
	}
	if time.Since(first) < greylisted {
		return &smtp.SMTPError{Code: 451, EnhancedCode: tryAgain, Message: "Greylisted, please try again later"}
	}
	return nil
}

func (s *session) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	if err == nil {
		s.x.mu.Lock()
		defer s.x.mu.Unlock()
		s.x.delivered = append(s.x.delivered, string(b))
	}
	return err
}
