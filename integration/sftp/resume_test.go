package sftp

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/pkg/sftp"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// Concurrent writes make uploads fast, and what an interrupted one leaves behind unsafe: parts may have been written
// behind one that has not, so that the file's size says nothing of where to go on. The offset of the client's file
// does, after the failure. See https://github.com/pkg/sftp/issues/472 and the documentation of UseConcurrentWrites.
// Here a sector of the disk takes its time when the power goes.
func TestAnUploadIsResumedAfterAPowerCut(t *testing.T) {
	const (
		size, chunk = 8 << 20, 32 << 10
		bad         = 1 << 20
	)
	original := content(size)
	scenario.Run(t, scenario.Scenario{
		Software: software, Config: config(), Repeats: true,
		Shows: "an upload cut by a power cut leaves a hole; resumed at the client's offset, the file is whole",
	}, func(t *testing.T, network *gosimnet.Simnet) {
		d := serve(t, network)
		widen(t, network)
		d.bad = bad
		f, err := files(t, network, sftp.UseConcurrentWrites(true)).Create("/file")
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(500*time.Millisecond, func() {
			alter(t, network, gosimnet.SHUTDOWN)
			time.Sleep(3 * time.Second)
			alter(t, network, gosimnet.POWERON)
		})
		// After 300.667 ms the client waits for answers. It has nothing to send, and is told by TCP's keep-alive,
		// which the server answers with a reset.
		takes(t, "the upload that is cut", 300667*time.Microsecond+15*time.Second, func() {
			if _, err := f.ReadFrom(bytes.NewReader(original)); !errors.Is(err, sftp.ErrSSHFxConnectionLost) {
				t.Errorf("the upload that is cut: %v", err)
			}
		})
		// Answers come in the order of requests, so that the client goes on only as long as it may have requests
		// without an answer: the slow one, and 64 more.
		if got, want := d.size(), bad+(1+64)*chunk; got != want {
			t.Errorf("%d bytes are on the disk, want %d", got, want)
		}
		if !bytes.Equal(d.bytes[bad:bad+chunk], make([]byte, chunk)) {
			t.Error("there is no hole in what is on the disk")
		}
		safe, err := f.Seek(0, io.SeekCurrent)
		if safe != bad || err != nil {
			t.Errorf("the offset after the failure is %d, %v; want %d", safe, err, bad)
		}

		d.bad = 0
		f, err = files(t, network, sftp.UseConcurrentWrites(true)).OpenFile("/file", os.O_RDWR)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(safe); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Seek(safe, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		if n, err := f.ReadFrom(bytes.NewReader(original[safe:])); n != size-safe || err != nil {
			t.Errorf("the rest of the upload: %d bytes, %v", n, err)
		}
		if !bytes.Equal(d.bytes, original) {
			t.Error("what was uploaded is not what is on the disk")
		}
	})
}
