package sftp

import (
	"errors"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/glycerine/gosimnet"
	"github.com/glycerine/gosimnet/integration/scenario"
)

// SSH has no keep-alive of its own, which https://github.com/golang/go/issues/19338 asks for. Who waits for a server
// that has lost its power waits for TCP to give up: 150 s if the connection is idle, but more than a quarter of an
// hour if a request is under way. A request every five seconds, and an end if it is not answered within five more,
// makes ten seconds of it.
func TestServersThatVanish(t *testing.T) {
	scenario.Run(t, scenario.Scenario{
		Software: software, Config: config(), Repeats: true,
		Shows: "how long a client waits for a server without power: idle, with a request under way, with keep-alive",
	}, func(t *testing.T, network *gosimnet.Simnet) {
		serve(t, network)
		idle := login(t, network)
		asking := files(t, network)
		alive := login(t, network)
		watched, err := sftp.NewClient(alive)
		if err != nil {
			t.Fatal(err)
		}
		defer watched.Close()
		time.Sleep(time.Second)
		alter(t, network, gosimnet.SHUTDOWN)
		go keepAlive(alive, 5*time.Second)
		var waiting sync.WaitGroup
		waiting.Go(func() {
			takes(t, "the idle connection, silent for 1.32 s", 150*time.Second-1320*time.Millisecond, func() {
				if err := idle.Wait(); !errors.Is(err, syscall.ETIMEDOUT) {
					t.Errorf("the idle connection ended with %v", err)
				}
			})
		})
		waiting.Go(func() {
			takes(t, "the request", 924600*time.Millisecond, func() {
				if _, err := asking.Stat("/file"); !errors.Is(err, sftp.ErrSSHFxConnectionLost) {
					t.Errorf("the request ended with %v", err)
				}
			})
		})
		waiting.Go(func() {
			takes(t, "the request on the connection with keep-alive", 10*time.Second, func() {
				if _, err := watched.Stat("/file"); !errors.Is(err, sftp.ErrSSHFxConnectionLost) {
					t.Errorf("the request on the connection with keep-alive ended with %v", err)
				}
			})
		})
		waiting.Wait()
	})
}

// keepAlive asks something that every server answers, if only by refusing it, and ends the connection when there is
// no answer.
func keepAlive(c *ssh.Client, every time.Duration) {
	for {
		time.Sleep(every)
		limit := time.AfterFunc(every, func() { c.Close() })
		_, _, err := c.SendRequest("keepalive@openssh.com", true, nil)
		limit.Stop()
		if err != nil {
			return
		}
	}
}
