package gosimnet

import (
	"net"
	"syscall"
	"time"
)

// keepAlive finds out that a peer is gone while nothing is sent. While the path is healthy it costs nothing: each probe would be
// answered, so that only its time is computed. On a path that is not, probes are packets like any other.
type keepAlive struct {
	event
	conn     *Conn
	on       bool
	count    uint8 // probes without an answer that end the connection
	sent     uint8 // without an answer
	idle     int64 // nanoseconds without a sign of life until the first probe
	interval int64 // between probes
	last     int64 // when the last probe was sent
}

// The defaults of net.Dialer and net.ListenConfig.
const (
	keepAliveIdle     = 15 * time.Second
	keepAliveInterval = 15 * time.Second
	keepAliveCount    = 9
)

// The most that Linux takes.
const (
	maxKeepAlive      = 32767 * time.Second
	maxKeepAliveCount = 127
)

// configure does as net.KeepAliveConfig says, whose times and number count as soon as probes are turned on. More than Linux takes is the
// most that it takes.
func (k *keepAlive) configure(cfg net.KeepAliveConfig) {
	k.on = cfg.Enable
	k.setTime(&k.idle, cfg.Idle, keepAliveIdle)
	k.setTime(&k.interval, cfg.Interval, keepAliveInterval)
	switch {
	case cfg.Count == 0:
		k.count = keepAliveCount
	case cfg.Count > 0:
		k.count = uint8(min(cfg.Count, maxKeepAliveCount))
	}
}

// setTime sets one of the times: zero is the default, and less leaves it as it is. The kernel counts in whole seconds, which package net rounds up to.
func (k *keepAlive) setTime(t *int64, d, byDefault time.Duration) {
	switch {
	case d == 0:
		*t = int64(byDefault)
	case d > 0:
		d = min(d, maxKeepAlive)
		*t = int64((d + time.Second - 1).Truncate(time.Second))
	}
}

// watch begins to probe if the path is not healthy. Until now it was, and the probes of that time were answered; one that is
// under way is not.
func (k *keepAlive) watch(now int64) {
	c := k.conn
	if !k.on || k.scheduled() || !c.up || c.healthy(k.count) {
		return
	}
	c.out.settle(now)
	k.sent = 0
	next := c.heard + k.idle
	if since := now - next - c.out.rtt; since >= 0 {
		cycle := max(k.interval, k.idle+c.out.rtt)
		answered := next + since/cycle*cycle
		c.heard = answered + c.out.rtt
		next = answered + cycle
	}
	if next <= now {
		k.sent, k.last = 1, next
		next += k.interval
	}
	c.net.after(&k.event, max(now, next))
}

// stop ends the probing.
func (k *keepAlive) stop() { k.conn.net.agenda.remove(&k.event) }

// fire is the time for a probe, or for giving up, which is told to a peer that may hear it after all. While data is
// unacknowledged its retransmission decides instead.
func (k *keepAlive) fire(now int64) {
	c := k.conn
	c.out.settle(now)
	if c.heard > k.last {
		k.sent = 0
	}
	switch {
	case c.out.outstanding():
		k.rest(now)
	case c.heard+k.idle > now:
		k.rest(c.heard)
	case k.sent >= k.count:
		c.net.sendReset(&c.out.flow, c.peer)
		c.fail(syscall.ETIMEDOUT, now)
	default:
		k.sent, k.last = k.sent+1, now
		c.out.probe()
		c.net.after(&k.event, now+k.interval)
	}
}

// rest begins anew after a sign of life, or stops probing a path that has become healthy.
func (k *keepAlive) rest(heard int64) {
	k.sent = 0
	if !k.conn.healthy(k.count) {
		k.conn.net.after(&k.event, heard+k.idle)
	}
}

// healthy reports whether a keep-alive probe is certain to be answered: nothing on the way is down, and a run of losses as long as
// it takes to end the connection is not to be expected in a million years.
func (c *Conn) healthy(count uint8) bool {
	if c.peer.forgotten || c.peer.reset {
		return false
	}
	lost := 1 - (1-c.out.fails())*(1-c.in.fails())
	all := 1.0
	for range max(1, count) {
		all *= lost
	}
	return all < 1e-12
}

// SetKeepAlive turns keep-alive probes on or off, and leaves their times as they are; they are on, unless the dialer said otherwise.
func (c *Conn) SetKeepAlive(on bool) error {
	return c.setKeepAlive(true, func(k *keepAlive) { k.on = on })
}

// SetKeepAlivePeriod sets the time without a sign of life after which the first probe is sent. As in package net, the time between probes stays as it is, and
// so does whether there are any. Zero is the default, 15 s, and less changes nothing; more than 32767 s is EINVAL.
func (c *Conn) SetKeepAlivePeriod(d time.Duration) error {
	return c.setKeepAlive(d <= maxKeepAlive, func(k *keepAlive) { k.setTime(&k.idle, d, keepAliveIdle) })
}

// SetKeepAliveConfig sets all of it; fields that are zero are the defaults, 15 s, 15 s and 9 probes, and those that are less change nothing. Times are rounded up to whole
// seconds. An idle connection to a peer that does not answer ends with ETIMEDOUT Count × Interval after the first probe, which is sent Idle after the last sign of life. A peer that
// hears nevertheless is reset then. Its own probes are no sign of life. As on Linux, times above 32767 s and more than 127 probes are EINVAL.
func (c *Conn) SetKeepAliveConfig(cfg net.KeepAliveConfig) error {
	possible := cfg.Idle <= maxKeepAlive && cfg.Interval <= maxKeepAlive && cfg.Count <= maxKeepAliveCount
	return c.setKeepAlive(possible, func(k *keepAlive) { k.configure(cfg) })
}

// setKeepAlive changes the probes, unless that is impossible.
func (c *Conn) setKeepAlive(possible bool, change func(k *keepAlive)) error {
	if !possible {
		return c.opErr("set", c.impossible())
	}
	return c.setOption(func() { change(&c.keepAlive); c.keepAlive.again() })
}

// again applies changed times.
func (k *keepAlive) again() {
	k.stop()
	k.watch(k.conn.net.t)
}
