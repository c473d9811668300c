package gosimnet

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Weather is what goes wrong by itself, in virtual time: each kind of fault has a mean gap until the next one comes, Every, and a mean
// duration, Last; both are exponentially distributed. A kind whose Every is zero never comes. One fault of a kind is there at a time, but
// for power cuts. Weather that does nothing costs nothing.
type Weather struct {
	// Hosts are those whom it may hurt; nil is all that exist at the time of a fault. Links are hurt between two of them.
	Hosts []string
	// Partitions divide the hosts.
	Partitions struct {
		Every, Last time.Duration // means
		MinApart    time.Duration // no partition is shorter
		MinTogether time.Duration // no gap between two is shorter
		Shape       PartitionShape
		OneWay      bool
		Mode        PartitionMode
	}
	// Clogs clog a random link each time, in one direction.
	Clogs struct{ Every, Last time.Duration }
	// PowerCuts take the power of a random host that has it.
	PowerCuts struct {
		Every, Last time.Duration
		AtMost      int // hosts without power at once, by whatever cause; 0: a minority of the hosts
	}
	// Degrade gives a random link, in one direction, other properties for a while. What To leaves zero stays as it is.
	Degrade struct {
		Every, Last time.Duration
		To          LinkConfig
	}
}

// String tells what may happen.
func (w Weather) String() string {
	var parts []string
	add := func(every, last time.Duration, what string) {
		if every > 0 {
			parts = append(parts, fmt.Sprintf("%s every %v for %v", what, every.Round(time.Millisecond), last.Round(time.Millisecond)))
		}
	}
	p := w.Partitions
	shape := fmt.Sprintf("%v partitions (%v, at least %v, and %v apart)", p.Shape, p.Mode, p.MinApart.Round(time.Millisecond), p.MinTogether.Round(time.Millisecond))
	if p.OneWay {
		shape = "one-way " + shape
	}
	add(p.Every, p.Last, shape)
	add(w.Clogs.Every, w.Clogs.Last, "clogs")
	cuts := "power cuts"
	if w.PowerCuts.AtMost > 0 {
		cuts += fmt.Sprintf(" (%d at once at most)", w.PowerCuts.AtMost)
	}
	add(w.PowerCuts.Every, w.PowerCuts.Last, cuts)
	add(w.Degrade.Every, w.Degrade.Last, fmt.Sprintf("degraded links (%v)", w.Degrade.To))
	if len(parts) == 0 {
		return "calm"
	}
	if len(w.Hosts) > 0 {
		parts = append(parts, "among "+strings.Join(w.Hosts, ", "))
	}
	return strings.Join(parts, "; ")
}

// validate reports the first impossible field.
func (w *Weather) validate() error {
	for _, f := range []struct {
		name string
		v    time.Duration
	}{
		{"Partitions.Every", w.Partitions.Every}, {"Partitions.Last", w.Partitions.Last}, {"Partitions.MinApart", w.Partitions.MinApart},
		{"Partitions.MinTogether", w.Partitions.MinTogether}, {"Clogs.Every", w.Clogs.Every}, {"Clogs.Last", w.Clogs.Last},
		{"PowerCuts.Every", w.PowerCuts.Every}, {"PowerCuts.Last", w.PowerCuts.Last}, {"Degrade.Every", w.Degrade.Every}, {"Degrade.Last", w.Degrade.Last},
	} {
		if f.v < 0 {
			return fmt.Errorf("gosimnet: Weather.%s is %v, want no negative duration", f.name, f.v)
		}
	}
	if m := w.Partitions.Mode; m < DropPackets || m > RejectPackets {
		return fmt.Errorf("gosimnet: Weather.Partitions.Mode is %v", m)
	}
	if p := w.Partitions.Shape; p < UniformSize || p > MajoritiesRing {
		return fmt.Errorf("gosimnet: Weather.Partitions.Shape is %v", p)
	}
	if w.PowerCuts.AtMost < 0 {
		return fmt.Errorf("gosimnet: Weather.PowerCuts.AtMost is %d, want no negative number", w.PowerCuts.AtMost)
	}
	return w.Degrade.To.validate("Weather.Degrade.To.")
}

// SetWeather lets a weather begin, in place of the one so far, whose faults that are there last as long as they would have. The zero Weather
// ends it, and mends nothing by itself. An impossible value and an unknown host are errors that name it.
func (s *Simnet) SetWeather(w Weather) error {
	if err := w.validate(); err != nil {
		return err
	}
	w.Hosts, w.Degrade.To = slices.Clone(w.Hosts), w.Degrade.To.own()
	return s.control(func() error {
		if _, err := s.hostsNamed(w.Hosts); err != nil {
			return err
		}
		kind := EventFault
		if w.calm() {
			kind = EventRepair
		} else {
			s.remember("weather: " + w.String())
		}
		s.traceFault(kind, "", "", "weather: "+w.String())
		s.begins(w)
		return nil
	})
}

// calm reports whether no fault ever comes.
func (w Weather) calm() bool {
	return w.Partitions.Every == 0 && w.Clogs.Every == 0 && w.PowerCuts.Every == 0 && w.Degrade.Every == 0
}

// begins makes the storms of a weather.
func (s *Simnet) begins(w Weather) {
	s.endWeather()
	s.weather = w
	s.weathers++
	p := w.Partitions
	s.storm("partition", p.Every, p.Last, p.MinTogether, p.MinApart, func(d *dice) func() { return s.divide(d) })
	s.storm("clog", w.Clogs.Every, w.Clogs.Last, 0, 0, func(d *dice) func() { return s.clogSome(d) })
	s.storm("power", w.PowerCuts.Every, w.PowerCuts.Last, 0, 0, func(d *dice) func() { return s.cutPower(d) }).many = true
	s.storm("degrade", w.Degrade.Every, w.Degrade.Last, 0, 0, func(d *dice) func() { return s.degrade(d) })
}

// endWeather stops drawing; what is there stays until its time is over.
func (s *Simnet) endWeather() {
	for _, st := range s.storms {
		s.agenda.remove(&st.event)
	}
	s.storms = nil
	s.weather = Weather{}
}

// storm is one kind of fault of a weather.
type storm struct {
	event                     // the next fault
	net         *Simnet       //
	every, last time.Duration // means
	gap, hold   time.Duration // floors, a century at most
	dice        dice
	hurt        func(d *dice) (mend func()) // nil: there was nothing to hurt
	many        bool                        // several faults may be there at once
}

// storm starts one kind of fault.
func (s *Simnet) storm(name string, every, last, gap, hold time.Duration, hurt func(d *dice) func()) *storm {
	st := &storm{net: s, every: every, last: last, gap: min(gap, century), hold: min(hold, century), hurt: hurt}
	st.dice = dice{s.seed, hashString(s.weathers, name), drawWeather, 0}
	st.event = event{act: st, key: st.dice.key}
	if every > 0 {
		s.storms = append(s.storms, st)
		st.wait(s.t)
	}
	return st
}

// wait schedules the next fault.
func (st *storm) wait(from int64) {
	st.net.after(&st.event, from+max(int64(st.gap), st.exponential(st.every)))
}

// exponential is a duration with a mean, at most a century.
func (st *storm) exponential(mean time.Duration) int64 {
	return int64(min(float64(century), -math.Log1p(-unit(st.dice.word()))*float64(mean)))
}

// fire is a fault.
func (st *storm) fire(now int64) {
	mend := st.hurt(&st.dice)
	end := now + max(1, int64(st.hold), st.exponential(st.last))
	if mend != nil {
		st.net.spell(mend, end, st.dice.word())
	} else {
		end = now
	}
	if st.many {
		end = now
	}
	st.wait(end)
}

// spell is a fault that is there until its event, or one that comes then.
type spell struct {
	event
	net   *Simnet
	begin func() // of one that comes
	mend  func() // of one that is there
}

// spell ends a fault at an instant.
func (s *Simnet) spell(mend func(), end int64, key uint64) {
	s.enlist(&spell{net: s, mend: mend}, end, key)
}

// later begins a fault at an instant.
func (s *Simnet) later(at int64, key uint64, begin func()) {
	s.enlist(&spell{net: s, begin: begin}, at, key)
}

func (s *Simnet) enlist(sp *spell, at int64, key uint64) {
	sp.event = event{act: sp, key: key}
	s.spells = append(s.spells, sp)
	s.after(&sp.event, at)
}

// fire is the end of a fault, or its beginning.
func (sp *spell) fire(int64) {
	if sp.over(); sp.mend != nil {
		sp.mend()
	} else {
		sp.begin()
	}
}

// over takes the spell off the books.
func (sp *spell) over() {
	s := sp.net
	s.spells = slices.DeleteFunc(s.spells, func(o *spell) bool { return o == sp })
	s.agenda.remove(&sp.event)
}

// endSpells mends the faults that are there, and lets those that would come be.
func (s *Simnet) endSpells() {
	for len(s.spells) > 0 {
		sp := s.spells[0]
		if sp.over(); sp.mend != nil {
			sp.mend()
		}
	}
}

// exposed are the hosts whom the weather may hurt.
func (s *Simnet) exposed() []*Host {
	hosts, _ := s.hostsNamed(s.weather.Hosts)
	return hosts
}

// divide begins a partition.
func (s *Simnet) divide(d *dice) (mend func()) {
	p, hosts := s.weather.Partitions, s.exposed()
	if len(hosts) < p.Shape.least() {
		return nil
	}
	c := &cut{mode: p.Mode, net: s}
	c.divide(p.Shape, hosts, p.OneWay, *d)
	d.n += 1 << 20
	s.addCut(c)
	return func() { s.mendCut(c) }
}

// someLink chooses a link at random.
func (s *Simnet) someLink(d *dice) (from, to *Host) {
	hosts := s.exposed()
	if len(hosts) < 2 {
		return nil, nil
	}
	i, j := d.upTo(len(hosts)), d.upTo(len(hosts)-1)
	if j >= i {
		j++
	}
	return hosts[i], hosts[j]
}

// clogSome clogs a link.
func (s *Simnet) clogSome(d *dice) (mend func()) {
	from, to := s.someLink(d)
	if from == nil {
		return nil
	}
	c := s.clog(from, to, 0)
	return func() { s.unclog(c) }
}

// cutPower takes the power of a host, unless too many have none.
func (s *Simnet) cutPower(d *dice) (mend func()) {
	hosts := s.exposed()
	most := s.weather.PowerCuts.AtMost
	if most == 0 {
		most = Minority(len(hosts))
	}
	on := slices.DeleteFunc(slices.Clone(hosts), func(h *Host) bool { return h.powerOff })
	if len(on) == 0 || len(hosts)-len(on) >= most {
		return nil
	}
	h := on[d.upTo(len(on))]
	s.switchPower(h, SHUTDOWN)
	return func() {
		if h.powerOff {
			s.switchPower(h, POWERON)
		}
	}
}

func (s *Simnet) switchPower(h *Host, a Alteration) {
	h.alter(a, 0)
	s.traceFault(EventPower, h.name, "", a.String())
	s.faultsChanged(scope{at: endpoint{host: h}}, false)
}

// degrade makes a link worse.
func (s *Simnet) degrade(d *dice) (mend func()) {
	from, to := s.someLink(d)
	if from == nil {
		return nil
	}
	l, worse := s.linkBetween(from, to), s.weather.Degrade.To
	s.spoil(l, &worse, EventFault)
	return func() {
		if l.spoilt == &worse {
			s.spoil(l, nil, EventRepair)
		}
	}
}

// spoil sets what is worse about a link for a while, or, for nil, ends that.
func (s *Simnet) spoil(l *link, worse *LinkConfig, kind string) {
	l.spoilt = worse
	s.traceAbout("degraded", kind, l.from.name, l.to.name, "degraded")
	s.reconfigure(l.from, l.to)
}

// Heal mends everything: faults, isolation, partitions, cuts and clogs, and what links do to packets by loss, duplication, corruption and reordering, whoever has set it. It ends
// the weather and what is left of it, and lets go what rules hold. Latencies, their order, rates, queues and MTUs stay as they are, and so do rules. Hosts without
// power stay off, but for those whose power the weather took. What was held is delivered; streams whose segments were lost send them again when their
// time comes.
func (s *Simnet) Heal() {
	_ = s.control(func() error {
		s.endWeather()
		s.endSpells()
		s.mendLinks()
		for len(s.cuts) > 0 {
			s.heal(s.cuts[0])
		}
		for _, r := range s.rules {
			s.releaseHeld(&r.held)
		}
		for _, h := range s.sortedHosts() {
			h.repair(0, true, false)
		}
		s.traceFault(EventRepair, "", "", "heal")
		s.faultsChanged(scope{}, false)
		return nil
	})
}
