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
	// Degrade gives a random link, in one direction, other properties for a while.
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
	shape := fmt.Sprintf("%v partitions (%v)", p.Shape, p.Mode)
	if p.OneWay {
		shape = "one-way " + shape
	}
	add(p.Every, p.Last, shape)
	add(w.Clogs.Every, w.Clogs.Last, "clogs")
	add(w.PowerCuts.Every, w.PowerCuts.Last, "power cuts")
	add(w.Degrade.Every, w.Degrade.Last, "degraded links")
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
	w.Hosts = slices.Clone(w.Hosts)
	return s.control(func() error {
		if _, err := s.hostsNamed(w.Hosts); err != nil {
			return err
		}
		kind := EventFault
		if w.calm() {
			kind = EventRepair
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
	gap, hold   time.Duration // floors
	dice        dice
	hurt        func(d *dice) (mend func()) // nil: there was nothing to hurt
	many        bool                        // several faults may be there at once
}

// storm starts one kind of fault.
func (s *Simnet) storm(name string, every, last, gap, hold time.Duration, hurt func(d *dice) func()) *storm {
	st := &storm{net: s, every: every, last: last, gap: gap, hold: hold, hurt: hurt}
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

// spell is a fault of the weather that is there, until its event.
type spell struct {
	event
	net  *Simnet
	mend func()
}

func (s *Simnet) spell(mend func(), end int64, key uint64) {
	sp := &spell{net: s, mend: mend}
	sp.event = event{act: sp, key: key}
	s.spells = append(s.spells, sp)
	s.after(&sp.event, end)
}

// fire is the end of a fault.
func (sp *spell) fire(int64) {
	s := sp.net
	s.spells = slices.DeleteFunc(s.spells, func(o *spell) bool { return o == sp })
	s.agenda.remove(&sp.event)
	sp.mend()
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
	c := &cut{mode: p.Mode, name: p.Shape.String(), net: s, matches: p.Shape.matcher(hosts, p.OneWay, *d)}
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
	s.spoil(from, to, &s.weather.Degrade.To)
	return func() { s.spoil(from, to, nil) }
}

// spoil sets what a link is for a while, or, for nil, what it was before.
func (s *Simnet) spoil(from, to *Host, cfg *LinkConfig) {
	kind := EventRepair
	l := s.linkBetween(from, to)
	l.spoilt = nil
	if cfg != nil {
		c := *cfg
		l.spoilt, kind = &c, EventFault
	}
	s.configure(l)
	s.traceFault(kind, from.name, to.name, "degraded")
	s.reestimate()
	s.pathsChanged(from, to)
}

// Heal mends every fault, isolation, partition, cut and clog, ends the weather and what is left of it, and lets go what rules hold. Latencies, rates and what else SetLink
// has set stay as they are, and so do rules. Hosts without power stay off, but for those whose power the weather took. What
// was held is delivered; streams whose segments were lost send them again when their time comes.
func (s *Simnet) Heal() {
	_ = s.control(func() error {
		s.endWeather()
		for len(s.spells) > 0 {
			s.spells[0].fire(s.t)
		}
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

// SwizzleClog clogs the links to hosts, or to all for none named, one after the other at random instants in the first half of a window, and unclogs them in another random order in
// the second half: FoundationDB found that this finds what simple partitions do not. All is released when the window is over. An unknown host and a
// window below a microsecond are errors.
func (s *Simnet) SwizzleClog(window time.Duration, hosts ...string) error {
	if window < time.Microsecond {
		return fmt.Errorf("gosimnet: a window of %v is too short", window)
	}
	return s.control(func() error {
		among, err := s.hostsNamed(hosts)
		if err != nil {
			return err
		}
		s.shaped++
		d := dice{s.seed, s.shaped, drawSwizzle, 0}
		half := float64(window / 2)
		for _, h := range d.shuffle(among) {
			from := int64(unit(d.word()) * half)
			until := int64(window/2) + int64(unit(d.word())*half)
			s.spell(func() {
				c := s.clog(nil, h, 0)
				s.spell(func() { s.unclog(c) }, max(s.t, s.t+until-from), d.word())
			}, s.t+from, d.word())
		}
		return nil
	})
}

// Swarm draws a link and a weather for hosts, or for all for none named, within limits that a healthy cluster of replicas survives: each family of
// faults is there or not, by the toss of a coin, and each figure is drawn anew. The same seed draws the same. Their String
// methods say what was drawn.
func Swarm(seed uint64, hosts ...string) (LinkConfig, Weather) {
	d := &dice{mix(seed + golden), 0, drawSwarm, 0}
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(unit(d.word())*float64(most-least))
	}
	coin := func() bool { return d.word()&1 == 0 }
	ms, sec := time.Millisecond, time.Second
	var l LinkConfig
	floor := between(ms/10, 20*ms)
	l.Latency = Exponential(floor, floor+between(ms/10, 30*ms))
	set := func(p *float64, most float64) {
		if coin() {
			*p = unit(d.word()) * most
		}
	}
	set(&l.Loss, 0.1)
	set(&l.Duplicate, 0.1)
	set(&l.Reorder, 0.1)
	if coin() {
		l.Ordering = Unordered
	}
	if coin() {
		l.QueueBytes = 16<<10 + d.upTo(240<<10)
		l.BitsPerSecond = int64(between(5*1000*1000, 1000*1000*1000))
		l.Overflow = Overflow(d.upTo(3))
	}
	w := Weather{Hosts: slices.Clone(hosts)}
	if coin() {
		p := &w.Partitions
		p.Every, p.Last = between(5*sec, 60*sec), between(sec, 10*sec)
		p.MinTogether, p.MinApart = between(sec, 5*sec), between(ms, sec)
		p.Shape, p.OneWay = PartitionShape(d.upTo(int(RandomHalves)+1)), coin()
		p.Mode = []PartitionMode{DropPackets, HoldPackets}[d.upTo(2)]
	}
	if coin() {
		w.Clogs.Every, w.Clogs.Last = between(sec, 20*sec), between(10*ms, 2*sec)
	}
	if coin() {
		w.PowerCuts.Every, w.PowerCuts.Last = between(10*sec, 120*sec), between(100*ms, 10*sec)
	}
	if coin() {
		w.Degrade.Every, w.Degrade.Last = between(5*sec, 60*sec), between(sec, 10*sec)
		w.Degrade.To = LinkConfig{Latency: Uniform(floor, floor+between(50*ms, 500*ms)), Loss: 0.3 * unit(d.word())}
	}
	return l, w
}

// String tells what is not the default.
func (c LinkConfig) String() string {
	var parts []string
	add := func(on bool, format string, args ...any) {
		if on {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(c.Latency != nil, "latency %v", c.Latency)
	add(c.Loss > 0 && c.Burst == nil, "loss %.3g", c.Loss)
	if b := c.Burst; b != nil {
		add(true, "bursts %.3g/%.3g, loss %.3g/%.3g", b.GoodToBad, b.BadToGood, b.LossGood, b.LossBad)
	}
	add(c.Duplicate > 0, "duplicates %.3g", c.Duplicate)
	add(c.Corrupt > 0, "corrupts %.3g", c.Corrupt)
	add(c.Reorder > 0, "reorders %.3g", c.Reorder)
	add(c.Ordering != Ordered, "%v", c.Ordering)
	add(c.BitsPerSecond > 0, "%.3g Mbit/s", float64(c.BitsPerSecond)/1e6)
	add(c.Trace != nil, "a delivery trace")
	add(c.QueueBytes > 0, "queue %d B", c.QueueBytes)
	add(c.Overflow != DropNewest, "%v", c.Overflow)
	add(c.MTU > 0, "MTU %d", c.MTU)
	if len(parts) == 0 {
		return "default link"
	}
	return strings.Join(parts, ", ")
}
