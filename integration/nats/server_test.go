package nats

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/glycerine/gosimnet"
)

// serve makes a NATS server the software of host "nats". Its streams are in files, which survive power cuts as they
// are at the cut: what the server writes when it is shut down goes where nobody looks.
func serve(t *testing.T, network *gosimnet.Simnet) {
	t.Helper()
	dir := t.TempDir()
	host := network.Host("nats")
	var running sync.WaitGroup
	runs := 0
	host.Run(func(ctx context.Context) error {
		running.Add(1)
		defer running.Done()
		mine, next := filepath.Join(dir, strconv.Itoa(runs)), filepath.Join(dir, strconv.Itoa(runs+1))
		runs++
		err := run(ctx, host, mine, func() {
			if err := os.CopyFS(next, os.DirFS(mine)); err != nil {
				t.Error(err)
			}
		})
		if ctx.Err() == nil {
			t.Errorf("the server ended by itself: %v", err)
		}
		return err
	})
	t.Cleanup(func() {
		network.AlterHost("nats", gosimnet.SHUTDOWN)
		running.Wait()
	})
}

// run is one run of the server with its files in a directory, until the context is cancelled. Then it does something
// before it shuts the server down.
func run(ctx context.Context, host *gosimnet.Host, dir string, last func()) error {
	srv, err := server.NewServer(&server.Options{
		ServerName: "nats", DontListen: true, NoLog: true, NoSigs: true,
		JetStream: true, StoreDir: dir, JetStreamMaxMemory: 1 << 20, JetStreamMaxStore: 1 << 24,
		DisableShortFirstPing: true, // it comes at random, without a seed; two minutes later it does no harm
	})
	if err != nil {
		return err
	}
	srv.Start()
	defer srv.WaitForShutdown()
	defer srv.Shutdown()
	l, err := host.Listen("tcp", ":4222")
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		c, err := l.Accept()
		if err != nil {
			last()
			return err
		}
		inside, err := srv.InProcessConn()
		if err != nil {
			return err
		}
		go splice(c, inside)
	}
}

// splice copies between two connections until one of them ends, and ends both.
func splice(a, b net.Conn) {
	defer a.Close()
	defer b.Close()
	ended := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		go func() {
			io.Copy(way[0], way[1])
			ended <- struct{}{}
		}()
	}
	<-ended
}
