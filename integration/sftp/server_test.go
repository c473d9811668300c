package sftp

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/glycerine/gosimnet"
)

// disk is the file of a server, which survives power cuts.
type disk struct {
	mu    sync.Mutex
	bytes []byte
	bad   int64         // where the disk takes its time; 0: nowhere
	power chan struct{} // closed when it goes
}

// serve makes an SSH server with a disk the software of host "server"; there is a host "client", too.
func serve(t *testing.T, network *gosimnet.Simnet) *disk {
	t.Helper()
	d := new(disk)
	key := hostKey(t)
	host := network.Host("server")
	network.Host("client")
	host.Run(func(ctx context.Context) error {
		l, err := host.Listen("tcp", ":22")
		if err != nil {
			return err
		}
		defer context.AfterFunc(ctx, func() { l.Close() })()
		power := make(chan struct{})
		defer close(power)
		d.mu.Lock()
		d.power = power
		d.mu.Unlock()
		for {
			c, err := l.Accept()
			if err != nil {
				return err
			}
			go d.session(c, key)
		}
	})
	return d
}

// session serves one connection: channels for files, and nothing else.
func (d *disk) session(c net.Conn, key ssh.Signer) {
	defer c.Close()
	cfg := &ssh.ServerConfig{NoClientAuth: true}
	cfg.AddHostKey(key)
	conn, channels, requests, err := ssh.NewServerConn(c, cfg)
	if err != nil {
		return
	}
	defer conn.Close()
	go ssh.DiscardRequests(requests)
	for offer := range channels {
		channel, requests, err := offer.Accept()
		if err != nil {
			return
		}
		go func() {
			for r := range requests {
				r.Reply(r.Type == "subsystem", nil)
			}
		}()
		go func() {
			defer channel.Close()
			sftp.NewRequestServer(channel, sftp.Handlers{FileGet: d, FilePut: d, FileCmd: d, FileList: d}).Serve()
		}()
	}
}

func (d *disk) Fileread(*sftp.Request) (io.ReaderAt, error)  { return d, nil }
func (d *disk) Filewrite(*sftp.Request) (io.WriterAt, error) { return d, nil }

func (d *disk) OpenFile(r *sftp.Request) (sftp.WriterAtReaderAt, error) {
	if r.Pflags().Trunc {
		d.truncate(0)
	}
	return d, nil
}

// Filecmd does the one thing that resuming needs: it cuts the file short.
func (d *disk) Filecmd(r *sftp.Request) error {
	if r.Method != "Setstat" || !r.AttrFlags().Size {
		return sftp.ErrSSHFxOpUnsupported
	}
	d.truncate(int(r.Attributes().Size))
	return nil
}

func (d *disk) Filelist(*sftp.Request) (sftp.ListerAt, error) { return d, nil }

func (d *disk) ListAt(list []os.FileInfo, offset int64) (int, error) {
	if offset > 0 || len(list) == 0 {
		return 0, io.EOF
	}
	list[0] = info{int64(d.size())}
	return 1, nil
}

func (d *disk) ReadAt(b []byte, offset int64) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if offset >= int64(len(d.bytes)) {
		return 0, io.EOF
	}
	n := copy(b, d.bytes[offset:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt writes at once, but at a bad place it takes five seconds, and a power cut ends it.
func (d *disk) WriteAt(b []byte, offset int64) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bad != 0 && offset == d.bad {
		power := d.power
		d.mu.Unlock()
		retries := time.NewTimer(5 * time.Second)
		select {
		case <-retries.C:
		case <-power:
		}
		lost := !retries.Stop()
		d.mu.Lock()
		if !lost {
			return 0, os.ErrClosed
		}
	}
	if more := int(offset) + len(b) - len(d.bytes); more > 0 {
		d.bytes = append(d.bytes, make([]byte, more)...)
	}
	return copy(d.bytes[offset:], b), nil
}

func (d *disk) truncate(size int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bytes = d.bytes[:size]
}

func (d *disk) size() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.bytes)
}

// info is what is known of the file.
type info struct{ size int64 }

func (i info) Name() string     { return "file" }
func (i info) Size() int64      { return i.size }
func (info) Mode() os.FileMode  { return 0o600 }
func (info) ModTime() time.Time { return time.Time{} }
func (info) IsDir() bool        { return false }
func (info) Sys() any           { return nil }
