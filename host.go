package gosimnet

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Host is one machine of the network: it has addresses and ports, power and health, and software that runs on it.
// Its methods may be called by any goroutine.
type Host struct {
	net              *Simnet
	powerOff         bool
	isolate          bool
	served           bool                // it has ever listened
	ends             map[uint16]endState // alterations of single endpoints
	uplink, downlink *wire
	clock            int64 // logical, after Lamport
	offSince         int64 // when the power was cut last
	vanishing        event // the end of that instant
	created          int64

	name   string
	broken error // why every call fails
	number int   // in order of creation, from 0
	addrs  []netip.Addr
	links  map[*Host]*link // to other hosts

	faults    []circuitFault
	withheld  *MopQueue // messages lost on the way out
	deafened  *MopQueue // messages lost on the way in
	forgotten uint64    // lost messages that were not retained

	ports        ports
	conns        []*Conn
	listeners    []*Listener
	sockets      map[uint16][]*PacketConn
	bindings     uint64            // of sockets so far, made and ended
	bound        map[uint16]uint64 // sockets so far, by port
	socketCursor uint16
	views        map[string]View    // by folded name
	joined       map[netip.Addr]int // sockets that are members of a group
	about        map[uint64]uint64  // conversations so far, by what they are about
	lookups      waitlist           // that get no answer
	timers       []*SimTimer
	dials        []*dial
	programs     []*program
}

// endState is what has been altered at one endpoint, a port of a host.
type endState struct{ powerOff, isolate bool }

func compareStrings(a, b string) int { return strings.Compare(a, b) }

func checkName(name string) error {
	if name == "" {
		return errEmptyName
	}
	return nil
}

// newHost makes a host; the name is free and the addresses are good.
func (s *Simnet) newHost(name string, addrs []netip.Addr) *Host {
	h := &Host{net: s, name: name, number: len(s.inOrder), created: s.t, addrs: addrs}
	if len(addrs) == 0 {
		h.addrs = s.freeAddrs(name)
	}
	for _, a := range h.addrs {
		s.byAddr[a] = h
	}
	s.hosts[name] = h
	if k := foldName(name); k != name && s.folded[k] == nil {
		if s.folded == nil {
			s.folded = make(map[string]*Host)
		}
		s.folded[k] = h
	}
	s.inOrder = append(s.inOrder, h)
	return h
}

// freeAddrs gives out an address of each family.
func (s *Simnet) freeAddrs(name string) []netip.Addr {
	if name == nameServer && s.byAddr[nameServerV4] == nil && s.byAddr[nameServerV6] == nil {
		return []netip.Addr{nameServerV4, nameServerV6}
	}
	return []netip.Addr{s.freeV4(), s.freeV6()}
}

// freeV4 gives out 10.0.0.1, 10.0.0.2 and so on.
func (s *Simnet) freeV4() netip.Addr {
	for {
		s.v4++
		a := netip.AddrFrom4([4]byte{10, byte(s.v4 >> 16), byte(s.v4 >> 8), byte(s.v4)})
		if last := byte(s.v4); last != 0 && last != 255 && s.byAddr[a] == nil {
			return a
		}
	}
}

// freeV6 gives out fd00::1, fd00::2 and so on.
func (s *Simnet) freeV6() netip.Addr {
	for {
		s.v6++
		a := netip.AddrFrom16([16]byte{0: 0xfd, 12: byte(s.v6 >> 24), 13: byte(s.v6 >> 16), 14: byte(s.v6 >> 8), 15: byte(s.v6)})
		if s.byAddr[a] == nil {
			return a
		}
	}
}

// before is the canonical order of hosts: hosts made later come later, and those made at one instant go by name.
func (h *Host) before(o *Host) bool { return h.compare(o) < 0 }

func (h *Host) compare(o *Host) int {
	switch {
	case h == o:
		return 0
	case h == nil:
		return -1
	case o == nil:
		return 1
	}
	return cmp.Or(cmp.Compare(h.created, o.created), strings.Compare(h.name, o.name))
}

// fault is why every call on the host fails, or nil.
func (h *Host) fault() error {
	if h.broken == nil && h.net == nil {
		return errUnmadeHost
	}
	return h.broken
}

// enter locks the network for a call on the host.
func (h *Host) enter() error {
	if err := h.fault(); err != nil {
		return err
	}
	return h.net.enter()
}

// Name is the host's name, which Dial resolves.
func (h *Host) Name() string { return h.name }

// Addrs lists the host's addresses.
func (h *Host) Addrs() []netip.Addr { return slices.Clone(h.addrs) }

// State is the host's health, over all its circuits: FAULTY if any of them may lose packets at its network card, ISOLATED if
// all of it is cut off. Power is another matter: see PoweredOff.
func (h *Host) State() Faultstate {
	if h.enter() != nil {
		return HEALTHY
	}
	defer h.net.leave()
	return h.state()
}

// PoweredOff reports whether the host has no power. It is false for a host of a closed network.
func (h *Host) PoweredOff() bool {
	if h.enter() != nil {
		return false
	}
	defer h.net.leave()
	return h.powerOff
}

// off reports whether the endpoint at a port has no power.
func (h *Host) off(port uint16) bool { return h.powerOff || h.ends != nil && h.ends[port].powerOff }

// cutOff reports whether the endpoint at a port is isolated.
func (h *Host) cutOff(port uint16) bool { return h.isolate || h.ends != nil && h.ends[port].isolate }

func (h *Host) sortedLinks() []*link {
	links := make([]*link, 0, len(h.links))
	for _, l := range h.links {
		links = append(links, l)
	}
	slices.SortFunc(links, func(a, b *link) int { return strings.Compare(a.to.name, b.to.name) })
	return links
}

// v4 is the host's first IPv4 address, and v6 its first IPv6 address; they are invalid if there is none.
func (h *Host) v4() netip.Addr { return h.firstAddr(netip.Addr.Is4) }
func (h *Host) v6() netip.Addr { return h.firstAddr(netip.Addr.Is6) }

func (h *Host) firstAddr(is func(netip.Addr) bool) netip.Addr {
	for _, a := range h.addrs {
		if is(a) {
			return a
		}
	}
	return netip.Addr{}
}

// program is the software of a host, started anew at every power-on.
type program struct {
	host    *Host
	f       func(ctx context.Context) error
	ctx     context.Context    // of the power that is on; nil while off
	stop    context.CancelFunc // of ctx
	ran     context.Context    // of the last run
	running bool               // the goroutine of the last run has not ended yet
	err     error              // of the last run that ended by itself
}

// Run makes f the host's software: it is started now, if the host has power, and at every power-on, in a goroutine of its own. Its
// context is cancelled when the power goes and when the network closes; f should then return. A run that starts
// while the one before has not returned begins when it has, so that the two never share the host. The error
// that f returns is shown in snapshots, unless it follows from the power cut. A host may have several such programs. A nil f does nothing.
func (h *Host) Run(f func(ctx context.Context) error) {
	if f == nil || h.enter() != nil {
		return
	}
	p := &program{host: h, f: f}
	h.programs = append(h.programs, p)
	if !h.powerOff {
		p.start()
	}
	h.net.leave()
}

// start gives the program power.
func (p *program) start() {
	p.ctx, p.stop = context.WithCancel(context.Background())
	if !p.running {
		p.running = true
		go p.loop()
	}
}

// halt takes the power away.
func (p *program) halt() {
	if p.ctx != nil {
		p.stop()
		p.ctx = nil
	}
}

// loop runs f once for each time that there is power.
func (p *program) loop() {
	for ctx := p.next(); ctx != nil; ctx = p.next() {
		err := p.f(ctx)
		s := p.host.net
		s.reenter()
		if ctx.Err() == nil {
			p.err = err
		}
		s.leave()
	}
}

// next is the context of a run that is due, or nil if there is none.
func (p *program) next() context.Context {
	s := p.host.net
	s.reenter()
	defer s.leave()
	if p.ctx == nil || p.ctx == p.ran {
		p.running = false
		return nil
	}
	p.ran, p.err = p.ctx, nil
	return p.ctx
}

// endAll takes down all that the host has, because the network closes.
func (h *Host) endAll() {
	for _, p := range h.programs {
		p.halt()
	}
	h.dropAll(true)
	for _, t := range slices.Clone(h.timers) {
		t.withdraw()
	}
}

// time is an instant as users see it.
func (s *Simnet) time(at int64) time.Time { return s.start.Add(time.Duration(at)) }
