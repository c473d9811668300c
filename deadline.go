package gosimnet

import "time"

// deadline bounds the waiting of one kind of call. It costs an event only while somebody waits.
type deadline struct {
	at   int64 // the instant, or never
	net  *Simnet
	list *waitlist // those who wait
	flow *flow     // whose packets they wait for, or nil
	event
}

func (d *deadline) init(net *Simnet, host *Host, list *waitlist, key, n uint64) {
	if d.at == 0 {
		d.at = never
	}
	d.net, d.list = net, list
	d.event = event{host: host, key: key, n: n, act: d}
}

// set moves the deadline; the zero time is none.
func (d *deadline) set(t time.Time) {
	d.net.agenda.remove(&d.event)
	d.at = never
	if !t.IsZero() {
		d.at = max(-1, int64(t.Sub(d.net.start)))
	}
	if !d.list.empty() {
		d.arm()
	}
}

// arm schedules the expiry, or lets it happen.
func (d *deadline) arm() {
	switch {
	case d.at == never || d.scheduled():
	case d.expired():
		d.fire(d.net.t)
	default:
		d.net.exactly(&d.event, d.at)
	}
}

func (d *deadline) expired() bool { return d.at <= d.net.t }

// fire wakes everybody, at the very instant.
func (d *deadline) fire(int64) { d.net.wakeAll(d.list, true) }

// await waits in the list until woken or expired.
func (d *deadline) await(what call) {
	d.arm()
	by := priority{host: d.host, key: d.key, n: d.n}
	if d.flow != nil {
		by.line = d.flow.line
	}
	d.net.await(d.list, by, what)
	if d.at != never && d.list.empty() {
		d.net.agenda.remove(&d.event)
	}
}
