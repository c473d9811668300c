package gosimnet

import (
	"fmt"
	"net"
	"slices"
	"syscall"
)

// Faultstate is the health of a circuit or a host: two independent facts, faulty (its network card may lose packets)
// and isolated (it is cut off). Power is a third fact, and not part of it: cycling the power heals nothing.
type Faultstate int

// The states. A fault at an isolated host makes it FAULTY_ISOLATED, and a repair of the fault ISOLATED again.
const (
	HEALTHY         Faultstate = 0
	ISOLATED        Faultstate = 1
	FAULTY          Faultstate = 2
	FAULTY_ISOLATED Faultstate = 3
)

// String is the name of the constant.
func (f Faultstate) String() string {
	return nameOf(int(f), "Faultstate", "HEALTHY", "ISOLATED", "FAULTY", "FAULTY_ISOLATED")
}

func nameOf(n int, kind string, names ...string) string {
	if n < 0 || n >= len(names) {
		return fmt.Sprintf("%s(%d)", kind, n)
	}
	return names[n]
}

func faultstate(faulty, isolated bool) (f Faultstate) {
	if faulty {
		f |= FAULTY
	}
	if isolated {
		f |= ISOLATED
	}
	return f
}

// Alteration is what AlterHost and AlterCircuit do.
type Alteration int

// The alterations. UNDEFINED, as an undo, is that nothing changed; it cannot be asked for.
const (
	UNDEFINED Alteration = 0
	SHUTDOWN  Alteration = 1 // takes the power away: connections vanish without a word
	POWERON   Alteration = 2 // gives the power back, and starts the host's software
	ISOLATE   Alteration = 3 // cuts off: no packet leaves or arrives
	UNISOLATE Alteration = 4 // ends that
)

// String is the name of the constant.
func (a Alteration) String() string {
	return nameOf(int(a), "Alteration", "UNDEFINED", "SHUTDOWN", "POWERON", "ISOLATE", "UNISOLATE")
}

// undo is the alteration that reverses a.
func (a Alteration) undo() Alteration {
	return [...]Alteration{UNDEFINED, POWERON, SHUTDOWN, UNISOLATE, ISOLATE}[a]
}

// DropDeafSpec is a change of a network card's faults. A probability whose Update flag is false stays as it is.
type DropDeafSpec struct {
	UpdateDeafReads  bool
	DeafReadsNewProb float64 // that a packet which reaches the origin is lost there, from 0 to 1
	UpdateDropSends  bool
	DropSendsNewProb float64 // that a packet which the origin sends is lost, from 0 to 1
}

func (d DropDeafSpec) validate() error {
	if d.UpdateDeafReads && !probability(d.DeafReadsNewProb) {
		return fmt.Errorf("gosimnet: DropDeafSpec.DeafReadsNewProb is %v, want a probability from 0 to 1", d.DeafReadsNewProb)
	}
	if d.UpdateDropSends && !probability(d.DropSendsNewProb) {
		return fmt.Errorf("gosimnet: DropDeafSpec.DropSendsNewProb is %v, want a probability from 0 to 1", d.DropSendsNewProb)
	}
	return nil
}

// circuitFaults are the probabilities that apply to one flow.
type circuitFaults struct{ drop, deaf float64 }

// circuitFault is one setting of probabilities, at its origin. The last that matches a circuit counts.
type circuitFault struct {
	port   uint16   // of the origin; 0: any
	target endpoint // no host: any
	spec   DropDeafSpec
}

// matches reports whether the setting applies to the circuit from a port of its host to a port of another.
func (f circuitFault) matches(port uint16, target *Host, targetPort uint16) bool {
	return (f.port == 0 || f.port == port) && (f.target.host == nil || f.target.host == target) &&
		(f.target.port == 0 || f.target.port == targetPort)
}

// within reports whether all circuits of the setting are among those of another.
func (f circuitFault) within(o circuitFault) bool {
	return (o.port == 0 || o.port == f.port) && (o.target.host == nil || o.target.host == f.target.host) &&
		(o.target.port == 0 || o.target.port == f.target.port)
}

// current are the flow's probabilities: dropping at its sender, deafness at its receiver.
func (f *flow) current() circuitFaults {
	if !f.net.harmed {
		return circuitFaults{}
	}
	if f.asOf != f.net.faultGen {
		f.recount()
	}
	return f.faults
}

// recount finds the probabilities that apply now.
func (f *flow) recount() {
	f.asOf = f.net.faultGen
	f.faults = circuitFaults{}
	for _, c := range f.from.faults {
		if c.spec.UpdateDropSends && c.matches(f.src.Port(), f.to, f.dst.Port()) {
			f.faults.drop = c.spec.DropSendsNewProb
		}
	}
	for _, c := range f.to.faults {
		if c.spec.UpdateDeafReads && c.matches(f.dst.Port(), f.from, f.src.Port()) {
			f.faults.deaf = c.spec.DeafReadsNewProb
		}
	}
}

// isolated reports whether either end is cut off.
func (f *flow) isolated() bool {
	return f.net.harmed && f.eitherCutOff()
}

func (f *flow) eitherCutOff() bool { return f.from.cutOff(f.src.Port()) || f.to.cutOff(f.dst.Port()) }

// fate is the probability that the two network cards, or isolation, lose a packet.
func (f *flow) fate() float64 {
	if f.isolated() {
		return 1
	}
	c := f.current()
	return 1 - (1-c.drop)*(1-c.deaf)
}

// faulty reports whether any circuit of the host has a probability that is not zero.
func (h *Host) faulty() bool {
	return slices.ContainsFunc(h.faults, func(f circuitFault) bool {
		return f.spec.UpdateDeafReads && f.spec.DeafReadsNewProb > 0 || f.spec.UpdateDropSends && f.spec.DropSendsNewProb > 0
	})
}

func (h *Host) state() Faultstate { return faultstate(h.faulty(), h.isolate) }

// addFault changes probabilities. Settings that the new one replaces altogether are dropped.
func (h *Host) addFault(f circuitFault) {
	kept := h.faults[:0]
	for _, old := range h.faults {
		if old.within(f) {
			old.spec.UpdateDeafReads = old.spec.UpdateDeafReads && !f.spec.UpdateDeafReads
			old.spec.UpdateDropSends = old.spec.UpdateDropSends && !f.spec.UpdateDropSends
		}
		if old.spec.UpdateDeafReads || old.spec.UpdateDropSends {
			kept = append(kept, old)
		}
	}
	h.faults = append(kept, f)
	h.net.faultGen++
	h.net.harmed = true
}

// verb is a fault or repair, checked, to be applied at once or in a batch.
type verb struct {
	check func() error // the network is locked
	apply func()
}

// perform runs one verb now.
func (s *Simnet) perform(v verb) error {
	return s.control(func() error {
		if err := v.check(); err != nil {
			return err
		}
		v.apply()
		return nil
	})
}

// FaultCircuit changes the probabilities of a circuit, from origin to target: dropSend loses what origin sends, deafRead what reaches it. Each packet is lost
// or not independently. A name is a host, or one endpoint of it ("host:port"); an empty target is every target, present and future. The last call that matches a circuit
// counts. With deliverDroppedSends the messages of circuits that the fault had withheld so far, and no longer would, are delivered at once, in the order
// sent; on streams the lost segments are sent again at once, and datagrams stay lost: Capture can send those once more. An unknown name, an empty origin and
// an impossible probability are errors.
func (s *Simnet) FaultCircuit(origin, target string, dd DropDeafSpec, deliverDroppedSends bool) (err error) {
	return s.perform(s.faultCircuit(origin, target, dd, deliverDroppedSends))
}

// FaultHost is FaultCircuit for all circuits of a host: to every target, present and future.
func (s *Simnet) FaultHost(hostName string, dd DropDeafSpec, deliverDroppedSends bool) (err error) {
	return s.perform(s.faultHost(hostName, dd, deliverDroppedSends))
}

func (s *Simnet) faultHost(name string, dd DropDeafSpec, late bool) verb {
	v := s.faultCircuit(name, "", dd, late)
	check := v.check
	v.check = func() error {
		if _, err := s.mustHost(name); err != nil {
			return err
		}
		return check()
	}
	return v
}

func (s *Simnet) faultCircuit(origin, target string, dd DropDeafSpec, late bool) verb {
	var from, to endpoint
	return verb{
		check: func() (err error) {
			if from, err = s.place(origin); err != nil {
				return err
			}
			if target != "" {
				if to, err = s.place(target); err != nil {
					return err
				}
			}
			return dd.validate()
		},
		apply: func() {
			to.listener = nil
			from.host.addFault(circuitFault{from.port, to, dd})
			s.traceFault(EventFault, origin, target, fmt.Sprintf("drop %v deaf %v", dd.DropSendsNewProb, dd.DeafReadsNewProb))
			s.faultsChanged(scope{from, to}, late)
		},
	}
}

// RepairCircuit makes the circuits whose origin is a host, or one endpoint of it, healthy: their probabilities become 0. With unIsolate the origin is no longer cut
// off, with powerOnIfOff it gets its power back. See FaultCircuit for deliverDroppedSends and errors. What is not named stays as it is.
func (s *Simnet) RepairCircuit(originName string, unIsolate, powerOnIfOff, deliverDroppedSends bool) (err error) {
	return s.perform(s.repair(originName, unIsolate, powerOnIfOff, deliverDroppedSends))
}

// RepairHost is RepairCircuit for all circuits of a host, or, with allHosts, of all hosts, when the name is ignored.
func (s *Simnet) RepairHost(originName string, unIsolate, powerOnIfOff, allHosts, deliverDroppedSends bool) (err error) {
	return s.perform(s.repairHost(originName, unIsolate, powerOnIfOff, allHosts, deliverDroppedSends))
}

// AllHealthy repairs all hosts and ends all isolation, and, with powerOnIfOff, switches on all that is off. Partitions
// and links are not faults of hosts, and stay.
func (s *Simnet) AllHealthy(powerOnIfOff, deliverDroppedSends bool) (err error) {
	return s.perform(s.repairHost("", true, powerOnIfOff, true, deliverDroppedSends))
}

func (s *Simnet) repairHost(name string, unIsolate, powerOn, all, late bool) verb {
	if !all {
		v := s.repair(name, unIsolate, powerOn, late)
		check := v.check
		v.check = func() error {
			if _, err := s.mustHost(name); err != nil {
				return err
			}
			return check()
		}
		return v
	}
	return verb{check: func() error { return nil }, apply: func() {
		for _, h := range s.sortedHosts() {
			h.repair(0, unIsolate, powerOn)
		}
		s.traceFault(EventRepair, "", "", "all")
		s.faultsChanged(scope{}, late)
	}}
}

func (s *Simnet) repair(name string, unIsolate, powerOn, late bool) verb {
	var at endpoint
	return verb{
		check: func() (err error) {
			at, err = s.place(name)
			return err
		},
		apply: func() {
			at.host.repair(at.port, unIsolate, powerOn)
			s.traceFault(EventRepair, name, "", "")
			s.faultsChanged(scope{at: at}, late)
		},
	}
}

// repair heals the circuits of one port, or all for 0.
func (h *Host) repair(port uint16, unIsolate, powerOn bool) {
	h.faults = slices.DeleteFunc(h.faults, func(f circuitFault) bool { return port == 0 || f.port == port })
	if port != 0 {
		h.addFault(circuitFault{port: port, spec: DropDeafSpec{UpdateDeafReads: true, UpdateDropSends: true}})
	}
	h.net.faultGen++
	if unIsolate {
		h.alter(UNISOLATE, port)
	}
	if powerOn {
		h.alter(POWERON, port)
	}
	for p := range h.ends {
		if port != 0 {
			break
		}
		if unIsolate {
			h.alter(UNISOLATE, p)
		}
		if powerOn {
			h.alter(POWERON, p)
		}
	}
}

// AlterCircuit alters an endpoint ("host:port"), or a host; with wholeHost the host that the name belongs to. The undo is the true inverse, UNDEFINED if nothing
// changed. An unknown name and an impossible alteration are errors.
func (s *Simnet) AlterCircuit(simnodeName string, alter Alteration, wholeHost bool) (undo Alteration, err error) {
	err = s.perform(s.alter(simnodeName, alter, wholeHost, &undo))
	return undo, err
}

// AlterHost alters a host. The undo is the inverse of what it did, UNDEFINED if that was nothing. An unknown name
// and an impossible alteration are errors.
func (s *Simnet) AlterHost(simnodeName string, alter Alteration) (undo Alteration, err error) {
	err = s.perform(s.alter(simnodeName, alter, true, &undo))
	return undo, err
}

func (s *Simnet) alter(name string, a Alteration, wholeHost bool, undo *Alteration) verb {
	var at endpoint
	return verb{
		check: func() (err error) {
			if at, err = s.place(name); err != nil {
				return err
			}
			if a < SHUTDOWN || a > UNISOLATE {
				return fmt.Errorf("gosimnet: impossible alteration %v", a)
			}
			return nil
		},
		apply: func() {
			if wholeHost {
				at.port = 0
			}
			*undo = UNDEFINED
			if at.host.alter(a, at.port) {
				*undo = a.undo()
				s.traceAbout(a.about(), kindOfAlteration(a), name, "", a.String())
				s.faultsChanged(scope{at: at}, false)
			}
		},
	}
}

// about is what an alteration alters, the power or the isolation.
func (a Alteration) about() string {
	if a == SHUTDOWN || a == POWERON {
		return "power"
	}
	return "isolation"
}

func kindOfAlteration(a Alteration) string {
	switch a {
	case SHUTDOWN, POWERON:
		return EventPower
	case ISOLATE:
		return EventFault
	}
	return EventRepair
}

// alter applies an alteration to a port, or to the host for 0, and reports whether that changed anything.
func (h *Host) alter(a Alteration, port uint16) bool {
	h.net.harmed = true
	if port != 0 {
		return h.alterEnd(a, port)
	}
	switch {
	case a == SHUTDOWN && !h.powerOff:
		h.powerDown()
	case a == POWERON && h.powerOff:
		h.powerUp()
	case a == ISOLATE && !h.isolate, a == UNISOLATE && h.isolate:
		h.isolate = a == ISOLATE
	default:
		return false
	}
	return true
}

// alterEnd alters one endpoint.
func (h *Host) alterEnd(a Alteration, port uint16) bool {
	was := h.ends[port]
	is := was
	switch a {
	case SHUTDOWN, POWERON:
		is.powerOff = a == SHUTDOWN
	default:
		is.isolate = a == ISOLATE
	}
	if is == was {
		return false
	}
	if h.ends == nil {
		h.ends = make(map[uint16]endState)
	}
	h.ends[port] = is
	if is == (endState{}) {
		delete(h.ends, port)
	}
	if is.powerOff && !was.powerOff {
		h.dropPort(port)
	}
	return true
}

// powerDown takes everything that lives in the host's memory. What it has on the network a caller takes at the end of the instant,
// so that what the host's software does at this very instant comes to the same, whoever is first.
func (h *Host) powerDown() {
	h.powerOff, h.offSince = true, h.net.t
	for _, p := range h.programs {
		p.halt()
	}
	for len(h.timers) > 0 {
		h.timers[len(h.timers)-1].withdraw()
	}
	if h.net.acting {
		h.vanish()
		return
	}
	h.vanishing = event{host: h, act: (*vanishEvent)(h)}
	h.net.after(&h.vanishing, h.net.t)
}

// vanish ends all that the host has on the network.
func (h *Host) vanish() {
	h.dropAll(false)
	clear(h.ports.waiting)
}

// outcome is what a call comes to that has done its work, or has failed: net.ErrClosed if the host has lost its power before, at
// this very instant. What the call did is as if it had come first, for who comes first is chance.
func (s *Simnet) outcome(h *Host, n int, err error) (int, error) {
	if s.harmed && h.vanishing.scheduled() {
		return 0, net.ErrClosed
	}
	return n, err
}

type vanishEvent Host

// fire is the end of the instant of a power cut.
func (e *vanishEvent) fire(int64) { (*Host)(e).vanish() }

// powerUp starts the host's software.
func (h *Host) powerUp() {
	h.powerOff = false
	if h.vanishing.scheduled() {
		h.net.agenda.remove(&h.vanishing)
		h.vanish()
	}
	for _, p := range h.programs {
		p.start()
	}
}

// dropAll ends all connections, listeners and dials of the host without a word to the other ends.
func (h *Host) dropAll(closing bool) {
	for _, l := range slices.Clone(h.listeners) {
		l.forget(closing)
	}
	for _, c := range h.sortedConns() {
		c.forget(closing)
	}
	for _, c := range h.sortedSockets() {
		c.forget(closing)
	}
	h.net.wakeAll(&h.lookups, closing)
	for _, d := range slices.Clone(h.dials) {
		switch {
		case closing:
			h.net.wakeAll(&d.waiting, true)
		case h.powerOff && d.first == h.offSince:
			d.finish(sysErr("connect", syscall.ENETDOWN))
		default:
			d.finish(net.ErrClosed)
		}
	}
}

// dropPort is dropAll for one port.
func (h *Host) dropPort(port uint16) {
	for _, l := range slices.Clone(h.listeners) {
		if l.at.Port() == port {
			l.forget(false)
		}
	}
	for _, c := range h.sortedConns() {
		if c.port == port {
			c.forget(false)
		}
	}
	for _, c := range slices.Clone(h.sockets[port]) {
		c.forget(false)
	}
}

// scope is what a verb names: the circuits between an origin and a target, or all for none.
type scope struct{ at, target endpoint }

// holds reports whether an endpoint is one of those that a name means.
func (e endpoint) holds(h *Host, port uint16) bool {
	return e.host == nil || e.host == h && (e.port == 0 || e.port == port)
}

// blames reports whether a fault at the sender of a flow is within the scope.
func (z scope) blames(f *flow) bool {
	return z.at.holds(f.from, f.src.Port()) && z.target.holds(f.to, f.dst.Port())
}

// blamesReceiver reports whether a fault at the receiver of a flow is within the scope.
func (z scope) blamesReceiver(f *flow) bool {
	return z.at.holds(f.to, f.dst.Port()) && z.target.holds(f.from, f.src.Port())
}

// faultsChanged looks at the connections of a host, or all, after its faults have changed, and delivers late what they
// withheld within the scope and would no longer.
func (s *Simnet) faultsChanged(z scope, late bool) {
	s.pathsChanged(z.at.host, nil)
	if !late {
		return
	}
	s.deliverLate(z)
	for c := range s.connsOf(z.at.host) {
		for _, h := range []*half{c.out, c.in} {
			if z.blames(&h.flow) || z.blamesReceiver(&h.flow) {
				h.hurry()
			}
		}
	}
}

// passes reports whether a message that a fault within the scope has withheld would come through now.
func (s *Simnet) passes(p *packet, z scope) bool {
	f := p.flow
	named := p.cause != CauseDeafRead && z.blames(f) || p.cause != CauseDropSend && z.blamesReceiver(f)
	return named && f.fate() < 1 && !p.circuit.conn.peer.forgotten && !f.to.off(f.dst.Port())
}

// pathsChanged looks at the connections of two hosts, or of one, or of all.
func (s *Simnet) pathsChanged(a, b *Host) {
	for c := range s.connsOf(a) {
		c.pathChanged(s.t)
		c.peer.pathChanged(s.t)
	}
	if a != nil {
		a.orphansChanged()
	}
	if b != nil {
		s.pathsChanged(b, nil)
	}
}

// orphansChanged looks at the ends elsewhere of connections that the host knows no more: answers of it may be under way.
func (h *Host) orphansChanged() {
	for o := range h.links {
		for _, c := range o.conns {
			if c.peer.host == h && c.peer.place < 0 {
				c.pathChanged(h.net.t)
			}
		}
	}
}

// connsOf lists the connections of a host, or of all hosts, in canonical order.
func (s *Simnet) connsOf(h *Host) func(yield func(*Conn) bool) {
	hosts := []*Host{h}
	if h == nil {
		hosts = s.sortedHosts()
	}
	return func(yield func(*Conn) bool) {
		for _, h := range hosts {
			for _, c := range h.sortedConns() {
				if !yield(c) {
					return
				}
			}
		}
	}
}
