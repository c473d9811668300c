package gosimnet_test

import (
	"errors"
	"io"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

// An answer whose acknowledgement is lost is sent again. When it arrives the second time, the client has closed its
// connection; but it has had these bytes, so that they are acknowledged, and not answered with RST, and the kernel
// goes on sending what the client wrote before it closed. Linux 6.18 does so, as segments made by hand show.
func TestDuplicateDoesNotResetAClosedConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newNet(t, nil)
		client, server := openStream(t, s, "client", "server", ":80")
		say(t, server, "answer")
		_, err := io.ReadFull(client, make([]byte, 6))
		noError(t, err)
		heal, err := s.CutLink(gosimnet.DropPackets, "client", "server")
		noError(t, err)
		time.Sleep(1200 * time.Millisecond)
		say(t, client, "commit")
		client.Close()
		time.Sleep(1800 * time.Millisecond)
		heal() // between the server's retransmissions, of which the next is sooner than the client's
		start := time.Now()
		got, err := io.ReadAll(server)
		if string(got) != "commit" || err != nil {
			t.Errorf("after the healing the server reads %q, %v; want what was written before Close, and the end", got, err)
		}
		if d := time.Since(start).Truncate(time.Millisecond); d != 1410*time.Millisecond {
			t.Errorf("it reads that after %v, want 1.41 s, by the client's retransmission", d)
		}
	})
}

// Data that the client has not had ends its closed connection: the kernel answers with RST, even if that does not get
// through, and forgets what it has not got across itself. Linux 6.18 does that, too.
func TestNewDataEndsAClosedConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newNet(t, nil)
		client, server := openStream(t, s, "client", "server", ":80")
		heal, err := s.CutLink(gosimnet.DropPackets, "client", "server")
		noError(t, err)
		say(t, client, "commit")
		client.Close()
		time.Sleep(500 * time.Millisecond)
		say(t, server, "news")
		time.Sleep(250 * time.Millisecond)
		heal() // the client would send again at 0.8 s, the server at 0.9 s
		start := time.Now()
		if n, err := server.Read(make([]byte, 10)); n != 0 || !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("after the healing the server reads %d bytes, %v; want ECONNRESET", n, err)
		}
		if d := time.Since(start).Truncate(time.Millisecond); d != 170*time.Millisecond {
			t.Errorf("it reads that after %v, want 170 ms, a round trip after its retransmission", d)
		}
	})
}
