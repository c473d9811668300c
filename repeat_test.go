package gosimnet_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

// program is software that is drawn at random: several goroutines share each connection and each listener, and what each call
// did at which nanosecond is written down.
type program struct {
	r    *rand.Rand
	s    *gosimnet.Simnet
	wg   sync.WaitGroup
	from time.Time

	network                       string
	readers, writers, acceptors   int
	size, chunk, servers, clients int
	pause, patience               time.Duration
	cancelAfter                   time.Duration // of dials; 0: never

	mu    sync.Mutex
	lines []string
	conns []net.Conn
}

func drawProgram(t *testing.T, seed uint64) *program {
	r := rand.New(rand.NewPCG(seed, 5))
	s := newNet(t, &gosimnet.SimNetConfig{SendBuffer: 1000 << r.IntN(8), ReceiveBuffer: 1000 << r.IntN(8)})
	p := &program{r: r, s: s, from: time.Now(), network: "tcp", servers: 1 + r.IntN(2), clients: 1 + r.IntN(4),
		readers: 1 + r.IntN(3), writers: 1 + r.IntN(3), acceptors: 1 + r.IntN(3),
		size: 1 + r.IntN(6000), chunk: 1 + r.IntN(6000),
		pause:       time.Duration(1+r.IntN(3)) * 7 * time.Millisecond,
		patience:    time.Duration(r.IntN(3)) * 13 * time.Millisecond,
		cancelAfter: time.Duration(r.IntN(4)) * 10 * time.Millisecond,
	}
	if p.patience > 0 {
		p.readers = 1 // whose deadline it is would be chance
	}
	if r.IntN(4) == 0 {
		p.network = "simnet"
	}
	if r.IntN(2) == 0 {
		cfg := gosimnet.LinkConfig{Loss: 0.05 * float64(r.IntN(2)), BitsPerSecond: int64(r.IntN(2)) * 1e7, Duplicate: 0.2 * float64(r.IntN(2))}
		noError(t, s.SetLink("", "", cfg))
	}
	return p
}

// note writes down what a call has done.
func (p *program) note(did ...any) {
	at := time.Since(p.from)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = append(p.lines, fmt.Sprintf("%012d %s", at, fmt.Sprintln(did...)))
}

// aligned is how long it takes until the next multiple of d: many do something then.
func (p *program) aligned(d time.Duration) time.Duration { return d - time.Since(p.from)%d }

func (p *program) address(server int) (listen, dial string) {
	if p.network == "simnet" {
		name := fmt.Sprint("endpoint", server)
		return name, name
	}
	return ":1", fmt.Sprintf("s%d:1", server)
}

func (p *program) serve(l net.Listener, server int) {
	for range p.acceptors {
		p.wg.Go(func() {
			for {
				c, err := l.Accept()
				p.note("s", server, "accept", err != nil)
				if err != nil {
					return
				}
				p.use(fmt.Sprint("s", server, "<-", strings.Split(c.RemoteAddr().String(), ":")[0]), c)
			}
		})
	}
}

func (p *program) dial(client, server int) {
	ctx := context.Background()
	if p.cancelAfter > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.cancelAfter)
		defer cancel()
	}
	_, to := p.address(server)
	c, err := p.s.Host(fmt.Sprint("c", client)).DialContext(ctx, p.network, to)
	p.note("c", client, "dial", server, err)
	if err == nil {
		p.use(fmt.Sprint("c", client, "->", server), c)
	}
}

func (p *program) use(who string, c net.Conn) {
	p.mu.Lock()
	p.conns = append(p.conns, c)
	p.mu.Unlock()
	for range p.readers {
		p.wg.Go(func() { p.read(who, c) })
	}
	for range p.writers {
		p.wg.Go(func() { p.write(who, c) })
	}
}

func (p *program) read(who string, c net.Conn) {
	b := make([]byte, p.chunk)
	for timeouts := 0; timeouts < 40; {
		n, err := c.Read(b)
		p.note(who, "read", n, err != nil)
		switch {
		case err == nil:
		case !os.IsTimeout(err) || p.patience == 0:
			return
		default:
			timeouts++
		}
		if p.patience > 0 {
			c.SetReadDeadline(time.Now().Add(p.aligned(p.patience)))
		}
	}
}

func (p *program) write(who string, c net.Conn) {
	for time.Since(p.from) < 150*time.Millisecond {
		n, err := c.Write(make([]byte, p.size))
		p.note(who, "wrote", n, err != nil)
		if err != nil {
			return
		}
		time.Sleep(p.aligned(p.pause))
	}
}

// harm does something to the network, and returns what mends it.
func (p *program) harm(t *testing.T) (mend func()) {
	mend = func() {}
	var err error
	switch p.r.IntN(10) {
	case 0:
		mend, err = p.s.CutLink(gosimnet.PartitionMode(p.r.IntN(3)), "", "s0")
	case 1:
		mend, err = p.s.Clog("s0", "", 0)
	case 2:
		_, err = p.s.Clog("", "", 10*time.Millisecond)
	case 3:
		var n int
		n, err = p.s.ClearLink("", "s0")
		p.note("cleared", n)
	case 4:
		p.note(p.s.GetSimnetSnapshot().String() != "")
	case 5:
		err = p.s.FaultHost("s0", gosimnet.DropDeafSpec{UpdateDropSends: true, DropSendsNewProb: 0.3, UpdateDeafReads: true, DeafReadsNewProb: 0.3}, false)
	case 6:
		_, err = p.s.AlterHost("c0", gosimnet.ISOLATE)
	case 7:
		err = p.s.AllHealthy(true, p.r.IntN(2) == 0)
	case 8:
		_, err = p.s.AlterHost("s0", gosimnet.SHUTDOWN)
	case 9:
		var n int
		n, err = p.s.ResetConns("c0", "s0")
		p.note("reset", n)
	}
	noError(t, err)
	return mend
}

// run plays the program, and tells what its calls did, in the order of time, and the hash of the trace.
func (p *program) run(t *testing.T) (lines []string, hash string) {
	for i := range p.clients {
		p.s.Host(fmt.Sprint("c", i))
	}
	for i := range p.servers {
		at, _ := p.address(i)
		l, err := p.s.Host(fmt.Sprint("s", i)).Listen(p.network, at)
		noError(t, err)
		p.serve(l, i)
		defer l.Close()
	}
	for i := range p.clients {
		for j := range p.servers {
			p.wg.Go(func() { p.dial(i, j) })
		}
	}
	for range p.r.IntN(6) {
		time.Sleep(p.aligned(time.Millisecond) + time.Duration(p.r.IntN(60))*time.Millisecond + 333*time.Microsecond) // clear of the calls: who is first is chance then
		defer p.harm(t)()
	}
	time.Sleep(3 * time.Second)
	hash = p.s.TraceHash()
	p.s.Close()
	p.wg.Wait()
	slices.Sort(p.lines)
	return p.lines, hash
}

// TestRandomProgramsRepeat runs each of many programs several times, on one processor and on two: every call does the same at the same nanosecond.
// SIMNET_TEST_SEEDS is how many programs.
func TestRandomProgramsRepeat(t *testing.T) {
	for seed := range uint64(fromEnv("SIMNET_TEST_SEEDS", 200)) {
		var want []string
		var wantHash string
		for procs := range 4 {
			var got []string
			var hash string
			before := runtime.GOMAXPROCS(1 + procs%2)
			synctest.Test(t, func(t *testing.T) { got, hash = drawProgram(t, seed).run(t) })
			runtime.GOMAXPROCS(before)
			if procs == 0 {
				want, wantHash = got, hash
			}
			if !slices.Equal(got, want) || hash != wantHash {
				t.Fatalf("program %d, run %d: %s", seed, procs, firstDifference(want, got))
			}
		}
	}
}

func firstDifference(want, got []string) string {
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			return fmt.Sprintf("line %d of %d: %swas %s", i, len(want), got[i], want[i])
		}
	}
	return fmt.Sprintf("%d lines, %d before; the traces differ", len(got), len(want))
}
