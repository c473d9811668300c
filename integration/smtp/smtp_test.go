package smtp

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

const message = "From: ann@sender\r\nTo: bob@mx\r\nMessage-ID: <1@sender>\r\n\r\n" +
	"Hello Bob.\r\n.A line that begins with a dot.\r\n"

// submit sends the message over a new connection.
func submit(network *gosimnet.Simnet) error {
	conn, err := network.Host("sender").Dial("tcp", "mx:25")
	if err != nil {
		return err
	}
	client := smtp.NewClient(conn)
	defer client.Close()
	if err := client.SendMail("ann@sender", []string{"bob@mx"}, strings.NewReader(message)); err != nil {
		return err
	}
	return client.Quit()
}

// queue tries until the message is accepted or refused for good, first after a minute, then each time twice as long
// after the last, and returns when each attempt ended.
func queue(network *gosimnet.Simnet) (attempts []time.Duration, errs []error) {
	start := time.Now()
	for wait := time.Minute; ; wait *= 2 {
		err := submit(network)
		attempts, errs = append(attempts, time.Since(start).Round(time.Microsecond)), append(errs, err)
		var permanent *smtp.SMTPError
		if err == nil || errors.As(err, &permanent) && !permanent.Temporary() {
			return attempts, errs
		}
		time.Sleep(wait)
	}
}

// A greylisting server refuses the first attempts with 451 4.7.1, which is temporary:
// https://github.com/ergochat/ergo/issues/1659 is about software that gave up. Who has a queue gets through as soon
// as the server's time is over, and at once the next time.
func TestGreylistedMessageComesInTheEnd(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software,
		Shows:    "a greylisted message is accepted at the fourth attempt, the next one at once", Repeats: true,
		Config: usual,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		mx := newExchanger()
		mx.serve(t, net)
		attempts, errs := queue(net)
		const refused, accepted = 5 * roundTrip, 8 * roundTrip // dial, greeting, EHLO, MAIL, RCPT; DATA, its end, QUIT
		want := []time.Duration{
			refused, time.Minute + 2*refused, 3*time.Minute + 3*refused, 7*time.Minute + 3*refused + accepted,
		}
		if !slices.Equal(attempts, want) {
			t.Errorf("the attempts ended at %v, want %v", attempts, want)
		}
		for _, err := range errs[:len(errs)-1] {
			var refusal *smtp.SMTPError
			if !errors.As(err, &refusal) || refusal.Code != 451 || refusal.EnhancedCode != tryAgain || !refusal.Temporary() {
				t.Errorf("an attempt: %v, want 451 4.7.1", err)
			}
		}
		if err := errs[len(errs)-1]; err != nil {
			t.Error(err)
		}
		start := scenario.StartClock()
		if err := submit(net); err != nil {
			t.Error(err)
		}
		start.At(t, "the second message", accepted)
		if got := mx.mailbox(); !slices.Equal(got, []string{message, message}) {
			t.Errorf("delivered %q", got)
		}
	})
}

// When the server has a message and its reply to the end of it gets lost, the client must send the message again, and
// it is there twice: RFC 1047. The client waits for the reply for Client.SubmissionTimeout, 12 minutes, of RFC 5321,
// section 4.5.3.2.6 (10 minutes at least).
func TestLostReplyMeansTwoMessages(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software,
		Shows:    "the reply to a message is lost: after 12 minutes it is sent again, and delivered twice", Repeats: true,
		Config: usual,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		mx := newExchanger()
		mx.serve(t, net)
		mx.seen[[2]string{"ann@sender", "bob@mx"}] = time.Now().Add(-greylisted)
		remove := net.AddRule(func(p *gosimnet.Packet) gosimnet.Verdict {
			if p.From == "mx" && len(mx.mailbox()) > 0 {
				return gosimnet.Drop()
			}
			return gosimnet.Pass()
		})
		start := scenario.StartClock()
		if err := submit(net); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the submission without a reply: %v, want a time-out", err)
		}
		start.At(t, "the time-out", 6*roundTrip+12*time.Minute)
		if got := mx.mailbox(); !slices.Equal(got, []string{message}) {
			t.Errorf("delivered %q", got)
		}
		remove()
		time.Sleep(time.Minute)
		if err := submit(net); err != nil {
			t.Error(err)
		}
		if got := mx.mailbox(); !slices.Equal(got, []string{message, message}) {
			t.Errorf("delivered %q", got)
		}
	})
}

// A server that is lost in the middle of a conversation costs Client.CommandTimeout, 5 minutes, of RFC 5321, section
// 4.5.3.2.2, and nothing is delivered.
func TestSilentServer(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software,
		Shows:    "a partition after EHLO: the client gives up after 5 minutes", Repeats: true,
		Config: usual,
	}, func(t *testing.T, net *gosimnet.Simnet) {
		mx := newExchanger()
		mx.serve(t, net)
		conn := scenario.Must(net.Host("sender").Dial("tcp", "mx:25"))(t)
		client := smtp.NewClient(conn)
		defer client.Close()
		if err := client.Hello("sender"); err != nil {
			t.Fatal(err)
		}
		scenario.Must(net.Partition(gosimnet.DropPackets, []string{"sender"}, []string{"mx"}))(t)
		start := scenario.StartClock()
		if err := client.Mail("ann@sender", nil); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("MAIL: %v, want a time-out", err)
		}
		start.At(t, "the time-out", 5*time.Minute)
		if got := mx.mailbox(); len(got) > 0 {
			t.Errorf("delivered %q", got)
		}
	})
}
