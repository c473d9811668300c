package gosimnet

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// Capture keeps copies of packets, as tcpdump does, so that a test can look at them, and send them once more when they are stale. Make one with
// Simnet.Capture. Its methods may be called by any goroutine.
type Capture struct {
	net  *Simnet
	rule *rule
	mu   sync.Mutex // so that what was kept can be looked at by anybody, also when the network is no more
	kept []captured
}

type captured struct {
	shown  Packet
	double *packet // to be sent once more; nil for what a stream would hide
}

// Capture begins to keep copies of the packets that leave their sender from this instant on and that which chooses; nil chooses all. It sees them as a rule
// in its place does: see AddRule, also for what which must not do. A closed network has no packets.
func (s *Simnet) Capture(which func(p *Packet) bool) *Capture {
	c := &Capture{net: s}
	c.rule = &rule{decide: func(p *Packet) Verdict {
		if which == nil || which(p) {
			c.keep(*p)
		}
		return Pass()
	}}
	_ = s.control(func() error {
		s.rules = append(s.rules, c.rule)
		s.resegment()
		return nil
	})
	return c
}

// keep takes a copy of the packet that is being shown.
func (c *Capture) keep(shown Packet) {
	p := c.net.shown
	shown.Payload = slices.Clone(shown.Payload)
	k := captured{shown: shown}
	if p.loose() {
		k.double = &packet{flow: p.flow, number: p.number, kind: p.kind, issued: p.issued, size: p.size, count: p.count, class: p.class,
			circuit: p.circuit, socket: p.socket, payload: shown.Payload, resent: true}
		k.double.event.host = p.event.host
	}
	c.mu.Lock()
	c.kept = append(c.kept, k)
	c.mu.Unlock()
}

// Stop ends the capture. What it has kept stays.
func (c *Capture) Stop() {
	_ = c.net.control(func() error {
		c.net.rules = slices.DeleteFunc(c.net.rules, func(r *rule) bool { return r == c.rule })
		return nil
	})
}

// Packets lists what has been kept, in the order sent. It may be called by anybody, and after Close.
func (c *Capture) Packets() (all []Packet) {
	c.net.catchUpWith(&c.mu)
	defer c.mu.Unlock()
	for _, k := range c.kept {
		all = append(all, k.shown)
		all[len(all)-1].Payload = slices.Clone(k.shown.Payload)
	}
	return all
}

// catchUpWith locks what is being recorded, when all is there that happened before this instant.
func (s *Simnet) catchUpWith(mu *sync.Mutex) {
	_ = s.control(func() error { return nil })
	mu.Lock()
}

// Resend sends the datagrams and messages that have been kept once more, now and in the order sent, and reports how many they are. They cross their links, which may
// lose nothing of them but by a partition or a fault, as duplicates from long ago that some router had kept: whether their sender still has
// power does not matter. A closed network and circuits that are over get none.
func (c *Capture) Resend() (n int) {
	_ = c.net.control(func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, k := range c.kept {
			if p := k.double; p != nil && (p.circuit == nil || !p.circuit.conn.closed && !p.circuit.conn.reset && !p.circuit.conn.forgotten) {
				c.net.resend(p)
				n++
			}
		}
		return nil
	})
	return n
}

// resend sends a second p, which may have been sent long ago.
func (s *Simnet) resend(p *packet) {
	d := s.double(p)
	l := d.flow.way()
	l.stats.Duplicated.add(d)
	s.tracePacket(EventDuplicate, d, s.t, "")
	if l.cut != nil {
		s.lose(d, l.cut.stop(d), s.t)
		return
	}
	s.launch(d, s.t)
}

// Fate is what became of one packet.
type Fate struct {
	Network string `json:"network"` // "tcp", "udp", "simnet" …
	From    string `json:"from"`    // hosts
	To      string `json:"to"`
	SrcPort uint16 `json:"srcPort"`
	DstPort uint16 `json:"dstPort"`
	Flow    int    `json:"flow"` // the number of the flow among those with the same names and ports, from 0
	N       uint64 `json:"n"`    // the number of the packet in its flow

	Delays    []time.Duration `json:"delays,omitempty"`    // how long it took to arrive, in nanoseconds; two for a packet that was duplicated
	Lost      string          `json:"lost,omitempty"`      // if it did not arrive, the cause; "" if that was not known yet
	Corrupted bool            `json:"corrupted,omitempty"` // a bit of it was flipped
}

// Recording is what became of the packets of a run, by flow and number, so that another run of the same test can give each of them the same
// fate, with other links, other rates or another seed. It can be saved, and edited: a line a packet. The bare acknowledgements of
// streams are not packets. A nil *Recording has no fates. The methods may be called by anybody, and after Close.
type Recording struct {
	net   *Simnet // that it is or was made of; nil: it was read
	mu    sync.Mutex
	fates []*Fate
	flows flowNames
	at    map[*flow]map[uint64]*Fate
}

// flowNames numbers flows.
type flowNames struct {
	numbers map[*flow]int
	counts  map[flowName]int
}

// flowName is what a user knows of a flow.
type flowName struct {
	network, from, to string
	src, dst          uint16
}

// of is the name of a flow, and its number among those that have it.
func (n *flowNames) of(f *flow) (flowName, int) {
	name := flowName{f.network, f.from.name, f.to.name, f.src.Port(), f.dst.Port()}
	number, ok := n.numbers[f]
	if !ok {
		if n.numbers == nil {
			n.numbers, n.counts = make(map[*flow]int), make(map[flowName]int)
		}
		number = n.counts[name]
		n.counts[name]++
		n.numbers[f] = number
	}
	return name, number
}

// RecordFates begins to record the fates of all packets that are sent from this instant on. A closed network has none.
func (s *Simnet) RecordFates() *Recording {
	r := &Recording{net: s, at: make(map[*flow]map[uint64]*Fate)}
	_ = s.control(func() error {
		s.recordings = append(s.recordings, r)
		return nil
	})
	return r
}

// Stop ends the recording: packets that are under way have no fate in it.
func (r *Recording) Stop() {
	if r == nil || r.net == nil {
		return
	}
	_ = r.net.control(func() error {
		r.net.recordings = slices.DeleteFunc(r.net.recordings, func(o *Recording) bool { return o == r })
		return nil
	})
}

// note records an event of a packet.
func (r *Recording) note(kind string, p *packet, at int64, cause string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := p.flow
	if kind == EventSend {
		name, number := r.flows.of(f)
		fate := &Fate{Network: name.network, From: name.from, To: name.to, SrcPort: name.src, DstPort: name.dst, Flow: number, N: p.number}
		r.fates = append(r.fates, fate)
		if r.at[f] == nil {
			r.at[f] = make(map[uint64]*Fate)
		}
		r.at[f][p.number] = fate
		return
	}
	fate := r.at[f][p.number]
	switch {
	case fate == nil || p.resent:
	case kind == EventDeliver:
		fate.Delays = append(fate.Delays, time.Duration(at-p.issued))
		fate.Lost, fate.Corrupted = "", p.corrupted
	case kind == EventLost && len(fate.Delays) == 0:
		fate.Lost = cause
	}
}

// Fates lists what is known, in the order in which the packets were sent.
func (r *Recording) Fates() (all []Fate) {
	switch {
	case r == nil:
		return nil
	case r.net == nil:
		r.mu.Lock()
	default:
		r.net.catchUpWith(&r.mu)
	}
	defer r.mu.Unlock()
	for _, f := range r.fates {
		all = append(all, *f)
		all[len(all)-1].Delays = slices.Clone(f.Delays)
	}
	return all
}

// WriteTo writes a line of JSON for each packet, in the order sent: the fields of a Fate. It is what ReadRecording reads.
func (r *Recording) WriteTo(w io.Writer) (n int64, err error) {
	for _, f := range r.Fates() {
		line, err := json.Marshal(f)
		if err != nil {
			return n, err
		}
		m, err := w.Write(append(line, '\n'))
		n += int64(m)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// ReadRecording reads what WriteTo has written; empty lines are skipped. An error names the line.
func ReadRecording(r io.Reader) (*Recording, error) {
	if r == nil {
		return nil, errors.New("gosimnet: recording: nothing to read it from")
	}
	rec := &Recording{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		f := &Fate{}
		if err := json.Unmarshal(lines.Bytes(), f); err != nil {
			return nil, fmt.Errorf("gosimnet: recording, line %d: %w", n, err)
		}
		for _, d := range f.Delays {
			if err := possible(d); err != nil {
				return nil, fmt.Errorf("gosimnet: recording, line %d: %w", n, err)
			}
		}
		rec.fates = append(rec.fates, f)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("gosimnet: recording: %w", err)
	}
	return rec, nil
}

// script gives packets the fates of a recording.
type script struct {
	flows flowNames
	fates map[flowID]map[uint64]*Fate
	known map[*flow]map[uint64]*Fate
}

// flowID is a flow among all.
type flowID struct {
	flowName
	number int
}

// ReplayFates gives the packets that are sent from this instant on the fates of a recording: those that it knows arrive after the same time and as often, or are lost, whatever
// links, rules, partitions and faults would do to them; rules are asked, and not obeyed. Only a receiver without power gets nothing. Packets that the recording does not
// know meet the network as it is. Only the last call counts, and the function that it returns ends it, if it still does.
func (s *Simnet) ReplayFates(r *Recording) (stop func()) {
	p := &script{fates: make(map[flowID]map[uint64]*Fate), known: make(map[*flow]map[uint64]*Fate)}
	for _, f := range r.Fates() {
		id := flowID{flowName{f.Network, f.From, f.To, f.SrcPort, f.DstPort}, f.Flow}
		if p.fates[id] == nil {
			p.fates[id] = make(map[uint64]*Fate)
		}
		p.fates[id][f.N] = &f
	}
	set := func(to *script, instead *script) {
		_ = s.control(func() error {
			if instead == nil || s.replayed == instead {
				s.replayed = to
				s.reestimate()
			}
			return nil
		})
	}
	set(p, nil)
	return func() { set(nil, p) }
}

// fate is what the recording knows of p, or nil.
func (r *script) fate(p *packet) *Fate {
	if r == nil || p.resent {
		return nil
	}
	fates, ok := r.known[p.flow]
	if !ok {
		name, number := r.flows.of(p.flow)
		fates = r.fates[flowID{name, number}]
		r.known[p.flow] = fates
	}
	f := fates[p.number]
	if f == nil || len(f.Delays) == 0 && f.Lost == "" || p.copied && len(f.Delays) < 2 {
		return nil
	}
	return f
}

// ordain gives p its fate, if it is known, and reports whether it is.
func (s *Simnet) ordain(p *packet) bool {
	if p.fate = s.replayed.fate(p); p.fate == nil {
		return false
	}
	d := p.fate.Delays
	p.lat, p.jumps = minLatency, true
	p.twice, p.doubled = len(d) > 1, p.copied || len(d) < 2
	switch {
	case p.copied:
		p.lat = int64(d[1]) - 1
	case len(d) > 0:
		p.lat = int64(d[0]) - 1
	}
	return true
}

// fulfil is why p, whose fate is known, does not leave, or "".
func (s *Simnet) fulfil(p *packet) string {
	s.ask(p)
	switch {
	case len(p.fate.Delays) == 0:
		return p.fate.Lost
	case p.fate.Corrupted:
		return s.corrupt(p)
	}
	return ""
}
