package sftp

import (
	"bytes"
	"testing"
	"time"

	"github.com/pkg/sftp"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// flap takes the link between client and server away for 250 ms of each second, until done.
func flap(t *testing.T, network *gosimnet.Simnet, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-time.After(750 * time.Millisecond):
		}
		heal, err := network.Partition(gosimnet.DropPackets, []string{"client"}, []string{"server"})
		if err != nil {
			t.Error(err)
			return
		}
		time.Sleep(250 * time.Millisecond)
		heal()
	}
}

// A file of 32 MiB goes up and comes down over one connection, although the link is gone for a quarter of the time,
// and arrives byte for byte. What the outages cost is retransmissions: SSH adds nothing of its own, neither a
// time-out nor a new connection (RFC 4253, section 4, leaves it to the transport to be reliable).
func TestAFileThroughAFlappingLink(t *testing.T) {
	original := content(32 << 20)
	scenario.Run(t, scenario.Scenario{
		Software: software, Config: config(), Slow: true, Repeats: true,
		Shows: "32 MiB up and down through a link that flaps once a second, byte for byte",
	}, func(t *testing.T, network *gosimnet.Simnet) {
		d := serve(t, network)
		widen(t, network)
		c := files(t, network, sftp.UseConcurrentWrites(true))
		done := make(chan struct{})
		defer close(done)
		go flap(t, network, done)

		d.bytes = make([]byte, 0, len(original))
		f, err := c.Create("/file")
		if err != nil {
			t.Fatal(err)
		}
		takes(t, "the upload, 2.8 s without outages", 4452951*time.Microsecond, func() {
			if n, err := f.ReadFrom(bytes.NewReader(original)); n != int64(len(original)) || err != nil {
				t.Errorf("the upload: %d bytes, %v", n, err)
			}
		})
		if !bytes.Equal(d.bytes, original) {
			t.Error("what was uploaded is not what is on the disk")
		}
		copied := make([]byte, len(original))
		takes(t, "the download, 2.8 s without outages", 4870063*time.Microsecond, func() {
			// WriteTo would do as well, but asks beyond the end as often as a select has it.
			if n, err := f.ReadAt(copied, 0); n != len(original) || err != nil {
				t.Errorf("the download: %d bytes, %v", n, err)
			}
		})
		if !bytes.Equal(copied, original) {
			t.Error("what was downloaded is not what was uploaded")
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		for _, way := range [][2]string{{"client", "server"}, {"server", "client"}} {
			stats, err := network.LinkStats(way[0], way[1])
			if err != nil || stats.LostTo["partition"].Bytes < 1_000_000 {
				t.Errorf("%s to %s: %v, %v; want a megabyte lost to outages", way[0], way[1], stats, err)
			}
		}
	})
}
