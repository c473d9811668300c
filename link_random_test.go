package gosimnet_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glycerine/gosimnet"
)

// meddler does random things to the links of a network, none of which ends a stream.
type meddler struct {
	*rand.Rand
	t        *testing.T
	s        *gosimnet.Simnet
	undo     []func()
	captures []*gosimnet.Capture
}

func (m *meddler) host() string      { return string("abc"[m.IntN(3)]) }
func (m *meddler) hostOrAny() string { return []string{"", "a", "b", "c"}[m.IntN(4)] }
func (m *meddler) below(p float64) float64 {
	if m.IntN(2) == 0 {
		return 0
	}
	return m.Float64() * p
}

func (m *meddler) link() (c gosimnet.LinkConfig) {
	c.Latency = []gosimnet.Latency{nil, gosimnet.Constant(ms), gosimnet.Uniform(ms, 40*ms), gosimnet.Exponential(us, 10*ms), gosimnet.Normal(10*ms, 5*ms)}[m.IntN(5)]
	c.Loss, c.Duplicate, c.Corrupt, c.Reorder = m.below(0.3), m.below(0.5), m.below(0.2), m.below(0.5)
	c.Ordering, c.Overflow = gosimnet.Ordering(m.IntN(2)), gosimnet.Overflow(m.IntN(3))
	if m.IntN(2) == 0 {
		c.BitsPerSecond, c.QueueBytes = 1e6+m.Int64N(50e6), 2000+m.IntN(50_000)
	}
	if m.IntN(3) == 0 {
		c.Burst = &gosimnet.GilbertElliott{GoodToBad: 0.05, BadToGood: 0.3, LossBad: 0.8}
	}
	if m.IntN(2) == 0 {
		c.MTU = 100 + m.IntN(3000)
	}
	return c
}

func (m *meddler) rule() gosimnet.Rule {
	verdicts := []gosimnet.Verdict{gosimnet.Pass(), gosimnet.Pass(), gosimnet.Drop(), gosimnet.Hold(), gosimnet.Delay(5 * ms), gosimnet.Duplicate(), gosimnet.Corrupt()}
	dice := rand.New(rand.NewPCG(m.Uint64(), 0))
	return func(*gosimnet.Packet) gosimnet.Verdict { return verdicts[dice.IntN(len(verdicts))] }
}

// meddle does one thing.
func (m *meddler) meddle() {
	s, t := m.s, m.t
	mend := func(undo func(), err error) {
		must(t, err)
		m.undo = append(m.undo, undo)
	}
	switch m.IntN(15) {
	case 0, 1, 2:
		setLink(t, s, m.hostOrAny(), m.hostOrAny(), m.link())
	case 3:
		must(t, s.SetUplink(m.host(), m.link()))
	case 4:
		must(t, s.SetDownlink(m.host(), m.link()))
	case 5:
		mend(s.Clog(m.hostOrAny(), m.hostOrAny(), time.Duration(m.IntN(2))*300*ms))
	case 6:
		mend(s.PartitionShaped(gosimnet.PartitionMode(m.IntN(2)), gosimnet.PartitionShape(m.IntN(6)), m.IntN(2) == 0))
	case 7:
		mend(s.CutLink(gosimnet.PartitionMode(m.IntN(2)), m.hostOrAny(), m.host()))
	case 8:
		mend(s.AddRule(m.rule()), nil)
	case 9:
		must(t, second(s.ClearLink(m.hostOrAny(), m.hostOrAny())))
	case 10:
		must(t, s.SwizzleClog(time.Second))
	case 11:
		m.captures = append(m.captures, s.Capture(func(p *gosimnet.Packet) bool { return p.Network == "udp" && p.N%10 == 0 }))
	case 12:
		for _, c := range m.captures {
			c.Stop()
			c.Resend()
		}
		m.captures = nil
	case 13:
		w := storm()
		w.PowerCuts.Every = 0
		must(t, s.SetWeather(w))
	case 14:
		s.Heal()
	}
	for len(m.undo) > 3 {
		i := m.IntN(len(m.undo))
		m.undo[i]()
		m.undo = append(m.undo[:i], m.undo[i+1:]...)
	}
	for id := range s.AllLinkStats() {
		statsOf(t, s, id.From, id.To)
	}
}

// A stream and datagrams cross a network whose links somebody changes at random all the time.
func TestLinksUnderRandomOperations(t *testing.T) {
	seeds := uint64(40)
	if raced {
		seeds = 10
	}
	for seed := range seeds {
		run := func() (hash string) {
			synctest.Test(t, func(t *testing.T) {
				s := newNet(t, &gosimnet.SimNetConfig{Seed: seed})
				for _, h := range "abc" {
					s.Host(string(h))
				}
				m := &meddler{rand.New(rand.NewPCG(seed, 1)), t, s, nil, nil}
				client, server := streamPair(t, s)
				var wg sync.WaitGroup
				wg.Go(func() { mutter(t, s) })
				wg.Go(func() { crossStream(t, client, server, 300_000) })
				for range 200 {
					m.meddle()
					time.Sleep(time.Duration(m.IntN(100)) * ms)
				}
				s.Heal()
				for _, undo := range m.undo {
					undo()
				}
				wg.Wait()
				time.Sleep(time.Minute)
				for id, stats := range s.AllLinkStats() {
					if stats.InFlight.Packets > 0 || stats.Held.Packets > 0 {
						t.Errorf("seed %d: %v, at rest: %v", seed, id, stats)
					}
				}
				hash = s.TraceHash()
			})
			return hash
		}
		if one, other := run(), run(); one != other {
			t.Errorf("seed %d: hash %s, and then %s", seed, one, other)
		}
	}
}

// mutter sends datagrams among all hosts for twenty seconds.
func mutter(t *testing.T, s *gosimnet.Simnet) {
	var sockets []*gosimnet.PacketConn
	for _, h := range s.Hosts() {
		sockets = append(sockets, listenUDP(t, s, h.Name(), ":7"))
	}
	for i := range 2000 {
		from, dst := sockets[i%3], s.Hosts()[i*7%11%3]
		fmt.Fprintf(to{from, udpAddr(dst.Addrs()[0].AsSlice(), 7)}, "%0*d", 1+i*31%2000, i)
		time.Sleep(10 * ms)
	}
	for _, c := range sockets {
		c.Close()
	}
}
