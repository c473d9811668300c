package gosimnet

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// SimnetSnapshot is a picture of the network at one instant. It shares nothing with the network: it stays
// as it is, and may be kept, changed and read by anybody.
type SimnetSnapshot struct {
	Asof               time.Time    // the instant
	Loopi              int64        // steps of the scheduler so far
	NetClosed          bool         // Close has been called
	GetSimnetStatusErr error        // why nothing else could be found out, such as a caller with another clock
	Cfg                SimNetConfig // with the defaults filled in
	PeerConnCount      int          // ends of connections at hosts that listen, or did
	LoneCliConnCount   int          // ends of connections at hosts that only dial

	ScenarioNum    int
	ScenarioSeed   [32]byte
	ScenarioTick   time.Duration
	ScenarioMinHop time.Duration
	ScenarioMaxHop time.Duration

	Peer    []*SimnetPeerStatus          // all hosts, by name
	Peermap map[string]*SimnetPeerStatus // the same, by name
	LoneCli map[string]*SimnetPeerStatus // those that only dial

	Links []SimnetLinkStatus // the links that have been used, by name of the sender and then of the receiver

	Xcountsn int64 // operations issued so far

	// The operations that have ended and are still retained, in the order in which they ended.
	Xfinorder []int64     // numbered from 1 in that order
	Xwhence   []string    // file:line of the caller, if SimNetConfig.RecordCallers is set
	Xkind     []string    // how they ended: EventDeliver, EventLost …
	Xissuetm  []time.Time // when they were issued
	Xfintm    []time.Time // when they ended
	Xwho      []int       // the number of the host that issued them, in order of creation from 0; -1: the test

	Xhash string // TraceHash

	Events  []Event  // the last events that are retained, oldest first
	Faults  []Event  // the last 64 faults, repairs and changes of power, oldest first, whether they are among Events or not
	Cuts    []string // the partitions, cut links and clogs in force, in words: their mode or "clog", and who is apart from whom
	Weather string   // what goes wrong by itself, in words; "" for nothing
	Set     []string // the last sixteen weathers and links that were set, in words and with their times, oldest first; whether they are in force or not
}

// SimnetPeerStatus is one host in a snapshot.
type SimnetPeerStatus struct {
	Name         string
	Conn         []*SimnetConnSummary          // its ends of connections, in canonical order
	Connmap      map[string]*SimnetConnSummary // by target: the last of several
	ServerState  Faultstate
	Poweroff     bool
	LC           int64  // its logical clock
	ServerBaseID string // its name, which is what groups its endpoints
	IsLoneCli    bool   // it only dials

	Addrs     []string // its IP addresses
	Listening []string // the addresses it listens on, with those who wait for a connection
	Sockets   []string // its sockets for datagrams, with what waits in them and those who wait for it
	Timers    []Mop    // its SimTimers
	Dialing   []Mop    // its dials under way
	ProgErrs  []error  // errors that its software returned
	Forgotten uint64   // lost messages that were not retained

	UplinkPeak, DownlinkPeak int // the most bytes that have waited for its uplink and its downlink

	Up time.Duration // since it was made
}

// SimnetConnSummary is one end of a connection in a snapshot, its origin.
type SimnetConnSummary struct {
	OriginIsCli      bool // it dialled
	Opening          bool // the handshake is not over at the origin
	Origin           string
	OriginState      Faultstate
	OriginConnClosed bool
	OriginPoweroff   bool
	Target           string
	TargetState      Faultstate
	TargetConnClosed bool
	TargetPoweroff   bool
	DropSendProb     float64
	DeafReadProb     float64

	Qs string // the queues in words

	DroppedSendQ *MopQueue // messages that were lost on their way out; of a stream, segments to be sent again
	DeafReadQ    *MopQueue // messages that reached the origin and were lost there
	ReadQ        *MopQueue // calls that wait at the origin: reads, and writes and closes that wait for room
	PreArrQ      *MopQueue // packets under way to the origin
	TimerQ       *MopQueue // its deadlines, retransmissions and keep-alive probes

	Network    string // "tcp" …
	SendBuffer int    // bytes that the origin has written and not sent
	InFlight   int    // bytes that it has sent and that have not been acknowledged, as of this instant
	Unread     int    // bytes that have arrived and that it has not read
}

// SimnetSnapshotter is a handle for code that may look at a network and not touch it. Its zero value gives snapshots of nothing.
type SimnetSnapshotter struct{ net *Simnet }

// Snapshotter returns a handle that can only look.
func (s *Simnet) Snapshotter() *SimnetSnapshotter { return &SimnetSnapshotter{s} }

// GetSimnetSnapshot is Simnet.GetSimnetSnapshot.
func (s *SimnetSnapshotter) GetSimnetSnapshot() *SimnetSnapshot {
	if s == nil || s.net == nil {
		return &SimnetSnapshot{GetSimnetStatusErr: errNoNetwork, Peermap: map[string]*SimnetPeerStatus{}, LoneCli: map[string]*SimnetPeerStatus{}}
	}
	return s.net.GetSimnetSnapshot()
}

// GetSimnetSnapshot takes a picture of the network at this instant. It works after Close, too, and shows what is left.
func (s *Simnet) GetSimnetSnapshot() (snap *SimnetSnapshot) {
	if err := s.look(func() { snap = s.snapshot() }); err != nil {
		snap = &SimnetSnapshot{GetSimnetStatusErr: err, Peermap: map[string]*SimnetPeerStatus{}, LoneCli: map[string]*SimnetPeerStatus{}}
	}
	return snap
}

// snapshot takes the picture; the network is locked.
func (s *Simnet) snapshot() *SimnetSnapshot {
	s.trace.flush()
	z := &SimnetSnapshot{
		Asof: s.time(s.t), Loopi: s.steps, NetClosed: s.closed, Cfg: s.cfg,
		ScenarioNum: s.scenario.Num, ScenarioSeed: s.scenario.Seed, ScenarioTick: s.scenario.Tick,
		ScenarioMinHop: s.scenario.MinHop, ScenarioMaxHop: s.scenario.MaxHop,
		Peermap: make(map[string]*SimnetPeerStatus), LoneCli: make(map[string]*SimnetPeerStatus),
		Xcountsn: s.issues, Xhash: hex.EncodeToString(s.trace.hash.Sum(nil)),
	}
	z.Cfg.Link = s.cfg.Link.own()
	under := s.underWay()
	for _, h := range s.sortedHosts() {
		p := h.status(under)
		z.Peer = append(z.Peer, p)
		z.Peermap[p.Name] = p
		if p.IsLoneCli {
			z.LoneCli[p.Name] = p
			z.LoneCliConnCount += len(p.Conn)
		} else {
			z.PeerConnCount += len(p.Conn)
		}
	}
	z.Links = s.linkStatus()
	for _, c := range s.cuts {
		z.Cuts = append(z.Cuts, c.title())
	}
	if !s.weather.calm() {
		z.Weather = s.weather.String()
	}
	z.Faults = s.faults()
	z.Set = slices.Clone(s.remembered)
	z.operations(s)
	return z
}

// remember keeps what was set for snapshots, which show it long after the trace has forgotten it.
func (s *Simnet) remember(what string) {
	const most = 16
	s.remembered = append(s.remembered, fmt.Sprintf("at %s: %s", s.time(s.t).UTC().Format("15:04:05.000000000"), what))
	s.remembered = s.remembered[max(0, len(s.remembered)-most):]
}

// operations lists what is retained of operations and events.
func (z *SimnetSnapshot) operations(s *Simnet) {
	first := s.trace.count - int64(len(s.trace.ring))
	for r := range s.records() {
		first++
		z.Events = append(z.Events, s.event(r))
		if r.kind == EventSend {
			continue
		}
		who := -1
		if r.flow != nil {
			who = r.flow.from.number
		} else if r.host != nil {
			who = r.host.number
		}
		z.Xfinorder = append(z.Xfinorder, first)
		z.Xwhence = append(z.Xwhence, r.more().whence)
		z.Xkind = append(z.Xkind, r.kind)
		z.Xissuetm = append(z.Xissuetm, s.time(r.issued))
		z.Xfintm = append(z.Xfintm, s.time(r.at))
		z.Xwho = append(z.Xwho, who)
	}
}

// underWay lists the packets that are on a link, or about to be, by the connection that they are for.
func (s *Simnet) underWay() map[*Conn][]Mop {
	under := make(map[*Conn][]Mop)
	put := func(p *packet, due int64) {
		if c := p.receiver(); c != nil {
			under[c] = append(under[c], mopOf(p, due))
		}
	}
	for e := range s.agenda.all() {
		if p, ok := e.act.(*packet); ok {
			put(p, e.at)
		}
	}
	for _, op := range s.pending {
		if p, ok := op.op.(*packet); ok {
			put(p, p.issued+p.lat)
		}
	}
	return under
}

// receiver is the end of a connection that p is for, or nil.
func (p *packet) receiver() *Conn {
	switch {
	case p.half != nil:
		return p.half.reader
	case p.circuit != nil:
		return p.circuit.conn
	case p.conn != nil:
		return p.conn
	case p.dial != nil && p.kind != kindSYN:
		return p.dial.conn
	}
	return nil
}

// mopOf describes a packet.
func mopOf(p *packet, due int64) Mop {
	f := p.flow
	return Mop{
		Kind: MopSend, Origin: end(f.from.name, f.src), Target: end(f.to.name, f.dst), N: p.number, Size: p.size, What: p.kind.String(),
		Issued: time.Duration(p.issued), Due: time.Duration(due), packet: p, key: f.key,
	}
}

// status is a host in a snapshot.
func (h *Host) status(under map[*Conn][]Mop) *SimnetPeerStatus {
	p := &SimnetPeerStatus{
		Name: h.name, ServerBaseID: h.name, ServerState: h.state(), Poweroff: h.powerOff, LC: h.clock, IsLoneCli: !h.served,
		Connmap: make(map[string]*SimnetConnSummary), Forgotten: h.forgotten, Up: time.Duration(h.net.t - h.created),
		UplinkPeak: h.uplink.most(), DownlinkPeak: h.downlink.most(),
	}
	for _, a := range h.addrs {
		p.Addrs = append(p.Addrs, a.String())
	}
	for _, l := range h.listeners {
		p.Listening = append(p.Listening, l.describe())
	}
	for _, c := range h.sortedSockets() {
		p.Sockets = append(p.Sockets, c.describe())
	}
	for _, t := range h.timers {
		p.Timers = append(p.Timers, Mop{Kind: MopTimer, What: "timer", Origin: h.name, Issued: time.Duration(t.since), Due: time.Duration(t.at)})
	}
	slices.SortFunc(p.Timers, func(a, b Mop) int { return a.compare(&b) })
	for _, d := range h.dials {
		p.Dialing = append(p.Dialing, Mop{Kind: MopRead, What: "dial", Origin: h.name, Target: d.describe(), Issued: time.Duration(d.first)})
	}
	slices.SortFunc(p.Dialing, func(a, b Mop) int { return a.compare(&b) })
	for _, f := range h.programs {
		if f.err != nil {
			p.ProgErrs = append(p.ProgErrs, f.err)
		}
	}
	for _, c := range h.sortedConns() {
		sum := c.summary(under[c])
		p.Conn = append(p.Conn, sum)
		p.Connmap[sum.Target] = sum
	}
	return p
}

func (l *Listener) describe() string {
	s := l.network + " " + l.addr.String()
	if n := len(l.queue); n > 0 {
		s += fmt.Sprintf(", %d to accept", n)
	}
	return s + l.acceptors.describe()
}

func (c *PacketConn) describe() string {
	s := c.network + " " + c.LocalAddr().String()
	if to := c.RemoteAddr(); to != nil {
		s += " → " + to.String()
	}
	if n := len(c.queue); n > 0 {
		s += fmt.Sprintf(", %d to read", n)
	}
	return s + c.readers.describe()
}

// describe tells who waits and since when.
func (l *waitlist) describe() (s string) {
	for w := range l.all() {
		s += fmt.Sprintf(", %s waits since %v", w.what, time.Duration(w.since))
	}
	return s
}

func (d *dial) describe() string {
	switch {
	case d.there != nil:
		return d.there.addr
	case d.to != nil:
		return end(d.to.name, d.dst)
	}
	return d.dst.String()
}

// summary is one end of a connection in a snapshot.
func (c *Conn) summary(under []Mop) *SimnetConnSummary {
	o, t := c.host, c.out.to
	name := func(h *Host, port uint16) string {
		if c.circuit != nil {
			return ""
		}
		return fmt.Sprintf("%s:%d", h.name, port)
	}
	z := &SimnetConnSummary{
		OriginIsCli: c.dialed, Opening: !c.up && !c.closed && !c.reset && !c.forgotten, Origin: name(o, c.port), OriginState: c.health(o, t), OriginConnClosed: c.closed || c.reset, OriginPoweroff: o.off(c.port),
		DropSendProb: c.out.current().drop, DeafReadProb: c.in.current().deaf, Network: c.network,
		DroppedSendQ: newMopQueue(), DeafReadQ: newMopQueue(), ReadQ: newMopQueue(), PreArrQ: newMopQueue(), TimerQ: newMopQueue(),
		Unread: c.in.unread(),
	}
	if c.circuit != nil {
		z.Origin, z.Target = c.circuit.local.addr, c.circuit.remote.addr
		for _, p := range c.circuit.inbox {
			z.Unread += len(p.payload)
		}
		z.Unread -= c.circuit.taken
	}
	if t != nil {
		if c.circuit == nil {
			z.Target = name(t, c.out.dst.Port())
		}
		z.TargetState, z.TargetPoweroff = c.health(t, o), t.off(c.out.dst.Port())
	}
	z.TargetConnClosed = c.peer.closed || c.peer.reset || c.peer.forgotten
	z.queues(c, under)
	z.Qs = z.describeQueues()
	return z
}

// health is the state of the circuit from a host to another, as far as the first is concerned.
func (c *Conn) health(h, other *Host) Faultstate {
	f := &c.out.flow
	if f.from != h {
		f = &c.in.flow
	}
	if f.from == nil || f.to == nil || other == nil {
		return h.state()
	}
	back := &c.in.flow
	if f == back {
		back = &c.out.flow
	}
	faulty := f.current().drop > 0
	if back.from != nil && back.to != nil {
		faulty = faulty || back.current().deaf > 0
	}
	return faultstate(faulty, h.cutOff(f.src.Port()))
}

// queues fills in what waits.
func (z *SimnetConnSummary) queues(c *Conn, under []Mop) {
	s := c.net
	c.out.settle(s.t)
	z.SendBuffer, z.InFlight = int(c.out.written-c.out.sent), int(c.out.sent-c.out.acked)
	for i := range under {
		m := under[i]
		m.packet = nil
		z.PreArrQ.add(&m)
	}
	for n := c.out.segments.base; n < c.out.segments.end(); n++ {
		if seg := c.out.segments.get(n); seg.state == segmentLost {
			z.DroppedSendQ.add(&Mop{Kind: MopSend, What: seg.what(), Origin: z.Origin, Target: z.Target, N: n, Size: int(seg.end - seg.start),
				Issued: time.Duration(seg.first), Due: time.Duration(seg.first), lost: true})
		}
	}
	kept := func(to *MopQueue, from *MopQueue, ours func(p *packet) bool) {
		for m := range from.All() {
			if ours(m.packet) {
				m.packet, m.lost = nil, true
				to.add(&m)
			}
		}
	}
	kept(z.DroppedSendQ, c.host.withheld, func(p *packet) bool { return p.circuit.conn == c.peer })
	kept(z.DeafReadQ, c.host.deafened, func(p *packet) bool { return p.circuit.conn == c })
	for _, l := range []*waitlist{&c.in.readers, &c.out.room, &c.out.turns, &c.closers} {
		i := 0
		for w := range l.all() {
			z.ReadQ.add(&Mop{Kind: MopRead, What: w.what.String(), Origin: z.Origin, Target: z.Target, N: uint64(i), Issued: time.Duration(w.since), Due: time.Duration(w.since)})
			i++
		}
	}
	timer := func(e *event, what string, since int64) {
		if e.scheduled() {
			z.TimerQ.add(&Mop{Kind: MopTimer, What: what, Origin: z.Origin, Issued: time.Duration(since), Due: time.Duration(e.at)})
		}
	}
	timer(&c.readBy.event, "read deadline", c.in.readers.since())
	timer(&c.writeBy.event, "write deadline", c.out.room.since())
	timer(&c.out.retry, "retransmission", c.out.base)
	timer(&c.keepAlive.event, "keep-alive", c.heard)
	timer(&c.synAnswer, "SYN/ACK again", c.answered)
}

// describeQueues is the queues in words, those that are not empty.
func (z *SimnetConnSummary) describeQueues() string {
	var parts []string
	for _, q := range []struct {
		name string
		q    *MopQueue
	}{{"dropped", z.DroppedSendQ}, {"deaf", z.DeafReadQ}, {"waiting", z.ReadQ}, {"arriving", z.PreArrQ}, {"timers", z.TimerQ}} {
		if q.q.Len() == 0 {
			continue
		}
		var ms []string
		for m := range q.q.All() {
			if ms = append(ms, m.String()); len(ms) == 8 && q.q.Len() > 8 {
				ms = append(ms, fmt.Sprintf("and %d more", q.q.Len()-8))
				break
			}
		}
		parts = append(parts, fmt.Sprintf("%s: %s", q.name, strings.Join(ms, "; ")))
	}
	return strings.Join(parts, "\n")
}

// healthy reports whether the network has no fault, no partition, and power everywhere.
func (z *SimnetSnapshot) healthy() bool {
	if z.GetSimnetStatusErr != nil || len(z.Cuts) > 0 {
		return false
	}
	return !slices.ContainsFunc(z.Peer, func(p *SimnetPeerStatus) bool {
		return p.Poweroff || p.ServerState != HEALTHY || len(p.ProgErrs) > 0 || slices.ContainsFunc(p.Conn, func(c *SimnetConnSummary) bool {
			return c.OriginState != HEALTHY || c.OriginPoweroff || c.DroppedSendQ.Len() > 0
		})
	})
}

// String is one line if all is well, and everything if not.
func (z *SimnetSnapshot) String() string { return z.ShortString() }

// ShortString is one line if all is well, and everything if not.
func (z *SimnetSnapshot) ShortString() string {
	if z.healthy() {
		return z.headline() + ", all healthy\n"
	}
	return z.LongString()
}

func (z *SimnetSnapshot) headline() string {
	state := ""
	if z.NetClosed {
		state = ", closed"
	}
	return fmt.Sprintf("simnet at %s%s: %d hosts, %d ends of connections, %d operations, seed %d",
		z.Asof.UTC().Format("15:04:05.000000000"), state, len(z.Peer), z.PeerConnCount+z.LoneCliConnCount, z.Xcountsn, z.Cfg.Seed)
}

// LongString tells every host and connection: state, probabilities, queues, who waits for what and since when.
func (z *SimnetSnapshot) LongString() string {
	var b strings.Builder
	if z.GetSimnetStatusErr != nil {
		fmt.Fprintf(&b, "simnet: %v\n", z.GetSimnetStatusErr)
		return b.String()
	}
	fmt.Fprintln(&b, z.headline())
	if z.Weather != "" {
		fmt.Fprintf(&b, "  weather: %s\n", z.Weather)
	}
	for _, set := range z.Set {
		fmt.Fprintf(&b, "  set %s\n", set)
	}
	for _, c := range z.Cuts {
		if links, ok := strings.CutPrefix(c, "clog "); ok {
			fmt.Fprintf(&b, "  clog: %s\n", links)
		} else {
			fmt.Fprintf(&b, "  partition: %s\n", c)
		}
	}
	for _, p := range z.Peer {
		b.WriteString(indent(p.String()))
	}
	z.describeLinks(&b)
	return b.String()
}

// describeLinks tells the links that have lost packets or hold some, those that stand out first.
func (z *SimnetSnapshot) describeLinks(b *strings.Builder) {
	const most = 32
	bad := slices.DeleteFunc(slices.Clone(z.Links), func(l SimnetLinkStatus) bool { return l.Lost.Packets+l.Held.Packets == 0 })
	slices.SortStableFunc(bad, func(x, y SimnetLinkStatus) int {
		return cmp.Compare(y.Lost.Packets+y.Held.Packets, x.Lost.Packets+x.Held.Packets)
	})
	for i, l := range bad {
		if i == most {
			fmt.Fprintf(b, "  and %d more links that lost packets\n", len(bad)-most)
			return
		}
		fmt.Fprintf(b, "  link %v\n", l)
	}
}

func indent(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n  ") + "\n"
}

// String describes the host and its connections.
func (p *SimnetPeerStatus) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %v, power %s, clock %d\n", p.Name, strings.Join(p.Addrs, ", "), p.ServerState, onOff(!p.Poweroff), p.LC)
	for _, l := range p.Listening {
		fmt.Fprintf(&b, "  listens on %s\n", l)
	}
	for _, c := range p.Sockets {
		fmt.Fprintf(&b, "  %s\n", c)
	}
	for _, m := range slices.Concat(p.Dialing, p.Timers) {
		fmt.Fprintf(&b, "  %v\n", m)
	}
	for _, err := range p.ProgErrs {
		fmt.Fprintf(&b, "  its software ended: %v\n", err)
	}
	for _, c := range p.Conn {
		b.WriteString(indent(c.String()))
	}
	return b.String()
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// String describes the connection, from its origin's side.
func (z *SimnetConnSummary) String() string {
	arrow := "←"
	if z.OriginIsCli {
		arrow = "→"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s %s: %v", z.Network, z.Origin, arrow, z.Target, z.OriginState)
	if z.DropSendProb > 0 || z.DeafReadProb > 0 {
		fmt.Fprintf(&b, ", drops %v, deaf %v", z.DropSendProb, z.DeafReadProb)
	}
	if z.Opening {
		b.WriteString(", opening")
	}
	if z.OriginConnClosed {
		b.WriteString(", closed here")
	}
	if z.TargetConnClosed {
		b.WriteString(", closed there")
	}
	if z.TargetPoweroff {
		b.WriteString(", power off there")
	}
	for _, n := range []struct {
		what  string
		bytes int
	}{{"unsent", z.SendBuffer}, {"in flight", z.InFlight}, {"unread", z.Unread}} {
		if n.bytes > 0 {
			fmt.Fprintf(&b, ", %s %d B", n.what, n.bytes)
		}
	}
	b.WriteByte('\n')
	if z.Qs != "" {
		b.WriteString(indent(z.Qs))
	}
	return b.String()
}

// ToFile writes LongString to a file. If that cannot be done, GetSimnetStatusErr tells why.
func (z *SimnetSnapshot) ToFile(nm string) {
	if err := os.WriteFile(nm, []byte(z.LongString()), 0o644); err != nil {
		z.GetSimnetStatusErr = fmt.Errorf("gosimnet: snapshot: %w", err)
	}
}
