package quic

import (
	"context"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/quic-go/quic-go"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

const transferred = 16 << 20

// wide are windows that hold the whole transfer. The receiver then never sends a window update, of which it is chance
// whether it shares a datagram with the acknowledgement of the same instant: the reader asks for it, and another
// goroutine acknowledges.
var wide = &quic.Config{
	InitialStreamReceiveWindow: 2 * transferred, MaxStreamReceiveWindow: 2 * transferred,
	InitialConnectionReceiveWindow: 2 * transferred, MaxConnectionReceiveWindow: 2 * transferred,
}

// What arrives is what was sent, whatever the network does to packets. Packets that others overtake by three places
// are taken for lost, and sent again: RFC 9002, section 6.1.1, and https://github.com/quic-go/quic-go/pull/5734,
// "every packet displaced by 3 or more is declared lost even though it is delivered".
func TestTransferUnderLossAndReordering(t *testing.T) {
	c := newCredentials(t)
	link := gosimnet.LinkConfig{Loss: 0.02, Reorder: 0.05, BitsPerSecond: 100e6}
	scenario.Run(t, scenario.Scenario{
		Software: software, Shows: "16 MiB at 2 % loss with reordering", Slow: true, Repeats: true,
		Why:    "with GOMAXPROCS=1, and windows that hold the transfer",
		Config: &gosimnet.SimNetConfig{MinHop: latency, Link: link},
	}, func(t *testing.T, net *gosimnet.Simnet) {
		data := make([]byte, transferred)
		rand.NewChaCha8([32]byte{}).Read(data)
		l := listen(t, net, c, wide)
		received := make(chan [sha256.Size]byte, 1)
		go each(l, func(conn *quic.Conn) { received <- digest(t, conn) })
		conn := dial(t, net, transport(t, socket(t, net.Host("client"), ":0")), c, nil)
		s := scenario.Must(conn.OpenUniStream())(t)
		scenario.Must(s.Write(data))(t)
		s.Close()
		if got := <-received; got != sha256.Sum256(data) {
			t.Error("what has arrived is not what was sent")
		}
		link := scenario.Must(net.LinkStats("client", "server"))(t)
		if loss := float64(link.LostTo["loss"].Packets) / float64(link.Sent.Packets); loss < 0.015 || loss > 0.025 {
			t.Errorf("%.2f %% of packets were lost, want 2 %%", 100*loss)
		}
		if link.LostTo["loss"] != link.Lost {
			t.Errorf("lost to other causes than loss: %v", link)
		}
		if declared := conn.ConnectionStats().PacketsLost; declared <= link.Lost.Packets {
			t.Errorf("the sender believes %d packets lost, no more than the %d that were: none came so late that it seemed so",
				declared, link.Lost.Packets)
		}
	})
}

// digest is the hash of what comes on a connection's first stream.
func digest(t *testing.T, conn *quic.Conn) [sha256.Size]byte {
	h := sha256.New()
	s, err := conn.AcceptUniStream(context.Background())
	if err == nil {
		_, err = io.Copy(h, s)
	}
	if err != nil {
		t.Error(err)
	}
	return [sha256.Size]byte(h.Sum(nil))
}
