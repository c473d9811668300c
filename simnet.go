package gosimnet

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/glycerine/idem"
)

// SimNetConfig says what a network is like. The zero value is a network with the defaults.
type SimNetConfig struct {
	// Seed is what every random draw derives from. The same seed gives the same run.
	Seed uint64
	// MinHop and MaxHop bound the one-way latency of a link, uniform between them. Both zero is 10 ms;
	// MaxHop zero is MinHop, that is, constant. Neither is above a year.
	MinHop, MaxHop time.Duration
	// BarrierOff lets several goroutines be woken at one virtual instant. Runs are faster and interleave
	// in more ways, and the same seed no longer gives the same run.
	BarrierOff bool
	// Link is what every link starts with.
	Link LinkConfig
	// SendBuffer and ReceiveBuffer are the bytes that each direction of a stream holds at the sender and at the receiver; 0 is 256 KiB.
	SendBuffer, ReceiveBuffer int
	// Backlog is the number of connections that may wait for Accept, and one more, as on Linux; 0 is 128.
	Backlog int
	// UserTimeout is how long a stream's data is sent again, unacknowledged, until the connection ends with
	// ETIMEDOUT; 0 is 924.6 s, Linux's 15 retransmissions. Set, it also ends connections whose
	// peer keeps its window closed for so long, as TCP_USER_TIMEOUT does.
	UserTimeout time.Duration
	// ChopReads makes reads of a stream return seeded random parts of what has arrived, which finds code
	// that takes a Read for a message.
	ChopReads bool
	// TracePayload makes TraceHash cover payload bytes too.
	TracePayload bool
	// TraceLimit is how many events are retained for Trace; 0 is 1024, negative none. TraceHash covers all events ever, retained or not.
	TraceLimit int
	// RecordCallers retains the file and line that issued each operation, for the snapshot's Xwhence. It is slow.
	RecordCallers bool
	// Retention is how many lost messages each host keeps for deliverDroppedSends and snapshots; 0 is 1024, negative none.
	// The oldest go first, and snapshots count them.
	Retention int
	// InitialSimnetScenario is the seed under its earlier name; it counts if Seed is 0.
	InitialSimnetScenario int64
}

const (
	defaultHop       = 10 * time.Millisecond
	defaultBuffer    = 256 << 10
	defaultBacklog   = 128
	defaultTrace     = 1024
	defaultRetention = 1024
	maxBuffer        = 1 << 30
	maxBacklog       = 1 << 16 // Linux: somaxconn is 16 bits wide in effect

	// linuxUserTimeout is the hypothetical time-out of tcp_retries2 = 15 (Documentation/networking/ip-sysctl).
	linuxUserTimeout = 924600 * time.Millisecond
)

// NewSimNetConfig returns a config with the defaults.
func NewSimNetConfig() *SimNetConfig { return &SimNetConfig{} }

// validate reports the first impossible field.
func (c *SimNetConfig) validate() error {
	if err := cmp.Or(
		impossibleTime("SimNetConfig.MinHop", c.MinHop, longest),
		impossibleTime("SimNetConfig.MaxHop", c.MaxHop, longest),
		impossibleTime("SimNetConfig.UserTimeout", c.UserTimeout, math.MaxInt64),
		impossibleHops("SimNetConfig", c.MinHop, c.MaxHop),
	); err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		v    int
		most int
	}{{"SendBuffer", c.SendBuffer, maxBuffer}, {"ReceiveBuffer", c.ReceiveBuffer, maxBuffer}, {"Backlog", c.Backlog, maxBacklog}} {
		if f.v < 0 || f.v > f.most {
			return fmt.Errorf("gosimnet: SimNetConfig.%s is %d, want 0 to %d", f.name, f.v, f.most)
		}
	}
	return c.Link.validate("SimNetConfig.Link.")
}

// withDefaults fills in what is zero.
func (c SimNetConfig) withDefaults() SimNetConfig {
	if c.Seed == 0 {
		c.Seed = uint64(c.InitialSimnetScenario)
	}
	if c.MinHop == 0 && c.MaxHop == 0 {
		c.MinHop = defaultHop
	}
	c.MinHop = max(c.MinHop, minLatency)
	c.MaxHop = max(c.MaxHop, c.MinHop)
	setDefault(&c.SendBuffer, defaultBuffer)
	setDefault(&c.ReceiveBuffer, defaultBuffer)
	setDefault(&c.Backlog, defaultBacklog)
	setDefault(&c.TraceLimit, defaultTrace)
	setDefault(&c.Retention, defaultRetention)
	return c
}

func setDefault(field *int, value int) {
	if *field == 0 {
		*field = value
	}
}

// Simnet is a simulated network. Its methods may be called by any goroutine of the bubble that it was made in, or, if it was made
// outside a bubble, by any goroutine outside of bubbles; a call from elsewhere returns an error that says so.
//
// Close it before the bubble's function returns.
type Simnet struct {
	scheduler
	harmed   bool // a host, an endpoint or a circuit has ever been altered: otherwise packets need not look at them
	cfg      SimNetConfig
	seed     uint64
	hops     Latency    // of links whose config has none
	usual    LinkConfig // of links that have no setting
	scenario Scenario
	life     *idem.Halter

	hosts      map[string]*Host
	inOrder    []*Host // of creation; those of one instant in any order
	byAddr     map[netip.Addr]*Host
	v4, v6     uint32 // the last addresses given out
	endpoints  map[string]*endpoint
	zone       map[string][]resource  // added ones, by folded name
	folded     map[string]*Host       // hosts whose name is not its own folded form, by that
	members    map[netip.Addr][]*Host // of multicast groups, in canonical order
	settings   []setting
	remembered []string // what was set last, for snapshots
	cuts       []*cut
	rules      []*rule
	shown      *packet // to the rules
	recordings []*Recording
	replayed   *script
	classify   func(network string, payload []byte) string
	delivered  map[string]uint64 // by kind

	unclassified uint64

	weather   Weather
	weathers  uint64 // so far
	storms    []*storm
	spells    []*spell
	shaped    uint64         // random shapes so far
	released  uint64         // packets that were held so far
	faultGen  uint32         // of all circuits' probabilities
	batches   []*SimnetBatch // whose time has not come
	submitted uint64         // batches so far

	trace   tracer
	spare   *packet
	buffers buffers
}

// New makes a network. A nil cfg is the defaults; an impossible value is an error that names the field.
// Inside a synctest bubble the network lives by the bubble's clock, outside by the wall's.
func New(cfg *SimNetConfig) (*Simnet, error) {
	if cfg == nil {
		cfg = &SimNetConfig{}
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Simnet{cfg: cfg.withDefaults(), life: idem.NewHalter(), hosts: make(map[string]*Host), byAddr: make(map[netip.Addr]*Host)}
	s.begin(cfg.BarrierOff)
	s.seed = mix(s.cfg.Seed + golden)
	s.hops = Uniform(s.cfg.MinHop, s.cfg.MaxHop)
	s.cfg.Link = s.cfg.Link.own()
	s.usual = s.cfg.Link
	s.scenario = Scenario{MinHop: s.cfg.MinHop, MaxHop: s.cfg.MaxHop}
	binary.LittleEndian.PutUint64(s.scenario.Seed[:], s.cfg.Seed)
	s.trace.hash = sha256.New()
	return s, nil
}

// Close ends everything: every blocked call returns net.ErrClosed, and so does every later one, the contexts of all
// hosts' software are cancelled, and no timer is left armed. It returns when the blocked calls have been left. It is idempotent: a second call, too, returns only then.
func (s *Simnet) Close() {
	if err := s.enter(); err != nil {
		if err == net.ErrClosed {
			<-s.ended
		}
		return
	}
	s.admitBefore(never)
	for _, h := range s.sortedHosts() {
		h.endAll()
	}
	s.abandonBatches()
	s.halt()
	s.leave()
	s.life.ReqStop.Close()
	<-s.ended
	s.life.MarkDone()
}

// control runs a call that looks at or changes the network as a whole.
func (s *Simnet) control(f func() error) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	return f()
}

// reestimate finds anew when the pending operations are needed, after latencies have changed.
func (s *Simnet) reestimate() {
	s.wanted, s.needed = never, nil
	for i := range s.pending {
		op := &s.pending[i]
		op.by = op.op.needed(op.at)
		s.want(op)
	}
}

// Scenario is a set of conditions under which a network runs.
type Scenario struct {
	Num            int      // for the reader only
	Seed           [32]byte // what random draws derive from
	Tick           time.Duration
	MinHop, MaxHop time.Duration // latency of the links whose config has none, uniform; both zero: unchanged; MaxHop zero: MinHop
}

// SetScenario changes the seed, the latencies of the links that have none of their own, and the tick that arrivals are rounded up to (0: not at all),
// for every packet that is issued from this instant on. Existing connections live on. A negative duration, one above a year, or a MaxHop that is
// not zero and below MinHop, is an error that names the field.
func (s *Simnet) SetScenario(sc Scenario) error {
	if err := cmp.Or(
		impossibleTime("Scenario.Tick", sc.Tick, longest),
		impossibleTime("Scenario.MinHop", sc.MinHop, longest),
		impossibleTime("Scenario.MaxHop", sc.MaxHop, longest),
		impossibleHops("Scenario", sc.MinHop, sc.MaxHop),
	); err != nil {
		return err
	}
	return s.control(func() error {
		if sc.MinHop == 0 && sc.MaxHop == 0 {
			sc.MinHop, sc.MaxHop = s.scenario.MinHop, s.scenario.MaxHop
		}
		sc.MinHop = max(sc.MinHop, minLatency)
		sc.MaxHop = max(sc.MaxHop, sc.MinHop)
		s.scenario = sc
		s.seed = foldSeed(sc.Seed)
		s.hops = Uniform(sc.MinHop, sc.MaxHop)
		s.reconfigure(nil, nil)
		s.traceFault(EventFault, "", "", "scenario")
		return nil
	})
}

// userTimeout is how long a sender goes on without an answer, in nanoseconds.
func (s *Simnet) userTimeout() int64 {
	if s.cfg.UserTimeout > 0 {
		return int64(min(s.cfg.UserTimeout, century))
	}
	return int64(linuxUserTimeout)
}

var (
	errEmptyName  = errors.New("gosimnet: a host's name is empty")
	errNoAddress  = errors.New("no such host")
	errUnmadeHost = errors.New("gosimnet: a host that Simnet.Host has not made")
	errNoNetwork  = errors.New("gosimnet: a snapshotter of no network; make one with Simnet.Snapshotter")
)

// Seed is the seed that the network was made with, whatever SetScenario has changed since. Tests draw their own random numbers from it.
func (s *Simnet) Seed() uint64 { return s.cfg.Seed }

// Host returns the host of a name, which it makes on first use, with one IPv4 and one IPv6 address. Any string that is not
// empty is a name, but only one that package net could take for a host's can be dialled as a stream. An empty name and a network
// that has been closed give a host whose every call returns an error that says so.
func (s *Simnet) Host(name string) *Host {
	h, err := s.host(name)
	if err != nil {
		return &Host{net: s, name: name, broken: err}
	}
	return h
}

func (s *Simnet) host(name string) (*Host, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	if h := s.hosts[name]; h != nil {
		return h, nil
	}
	return s.newHost(name, nil), nil
}

// AddHost makes a host with addresses of one's own choice; with none it is given them as Host's are. A name or an address that is taken
// already, and an address that no host can have (unspecified, multicast, broadcast or loopback), are errors.
func (s *Simnet) AddHost(name string, addrs ...netip.Addr) (*Host, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	if s.hosts[name] != nil {
		return nil, fmt.Errorf("gosimnet: host %q exists already", name)
	}
	own := make([]netip.Addr, len(addrs))
	for i, a := range addrs {
		a = a.Unmap()
		if !a.IsValid() || a.IsUnspecified() || a.IsMulticast() || a.IsLoopback() || broadcast(a) || a.Zone() != "" {
			return nil, &net.AddrError{Err: "no host can have this address", Addr: a.String()}
		}
		if s.byAddr[a] != nil || slices.Contains(own[:i], a) {
			return nil, &net.AddrError{Err: "address is taken", Addr: a.String()}
		}
		own[i] = a
	}
	return s.newHost(name, own), nil
}

// Hosts lists the hosts by name.
func (s *Simnet) Hosts() []*Host {
	if s.enter() != nil {
		return nil
	}
	defer s.leave()
	return s.sortedHosts()
}

func (s *Simnet) sortedHosts() []*Host {
	hosts := slices.Clone(s.inOrder)
	slices.SortFunc(hosts, func(a, b *Host) int { return compareStrings(a.name, b.name) })
	return hosts
}

// links lists the links that have been used, in canonical order.
func (s *Simnet) links() iter.Seq[*link] {
	return func(yield func(*link) bool) {
		for _, from := range s.sortedHosts() {
			for _, l := range from.sortedLinks() {
				if !yield(l) {
					return
				}
			}
		}
	}
}

// mustHost finds a host that exists.
func (s *Simnet) mustHost(name string) (*Host, error) {
	if name == "" {
		return nil, errEmptyName
	}
	h := s.hosts[name]
	if h == nil {
		return nil, fmt.Errorf("gosimnet: unknown host %q, which neither Host nor AddHost has made", name)
	}
	return h, nil
}

// hostPair finds the hosts of a link; "" is any, and gives nil.
func (s *Simnet) hostPair(origin, target string) (from, to *Host, err error) {
	if origin != "" {
		if from, err = s.mustHost(origin); err != nil {
			return nil, nil, err
		}
	}
	if target != "" {
		if to, err = s.mustHost(target); err != nil {
			return nil, nil, err
		}
	}
	return from, to, nil
}
