package gosimnet

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// LinkID names a link: one direction between two hosts.
type LinkID struct{ From, To string }

// String is the link in words.
func (id LinkID) String() string { return id.From + "→" + id.To }

// LinkCount counts packets and their payload bytes.
type LinkCount struct{ Packets, Bytes uint64 }

func (c *LinkCount) add(p *packet) {
	c.Packets += uint64(p.count)
	c.Bytes += uint64(p.size)
}

func (c *LinkCount) sub(p *packet) {
	c.Packets -= uint64(p.count)
	c.Bytes -= uint64(p.size)
}

// LinkStats counts what became of the packets of one link since the network began. At every instant
// Sent + Duplicated = Delivered + Lost + Held + InFlight, in packets and in bytes. A retransmission is a packet of its own, a segment or datagram above the MTU
// is as many packets as it would take, and the bare acknowledgements of a stream are not packets here. Packets that their sender issued at this very
// instant are not yet counted.
type LinkStats struct {
	Sent, Delivered, InFlight, Lost, Duplicated, Held LinkCount

	Corrupted  LinkCount            // of Sent, datagrams and messages of which a bit was flipped
	Rejected   LinkCount            // of Lost, those that were answered
	Overflowed LinkCount            // of Delivered, those that the host had no room for: a full receive queue, once for each socket, or a full backlog
	LostTo     map[string]LinkCount // by cause; nil for none
	QueuePeak  int                  // the most bytes that have waited for the link's wire
}

// lose counts a lost packet.
func (c *LinkStats) lose(p *packet, cause string) {
	c.Lost.add(p)
	if c.LostTo == nil {
		c.LostTo = make(map[string]LinkCount)
	}
	n := c.LostTo[cause]
	n.add(p)
	c.LostTo[cause] = n
	if cause == CauseRejected {
		c.Rejected.add(p)
	}
}

// String tells what is not zero.
func (c LinkStats) String() string {
	var parts []string
	add := func(what string, n LinkCount) {
		if n.Packets > 0 {
			parts = append(parts, fmt.Sprintf("%s %d (%d B)", what, n.Packets, n.Bytes))
		}
	}
	add("sent", c.Sent)
	add("delivered", c.Delivered)
	add("in flight", c.InFlight)
	add("held", c.Held)
	add("duplicated", c.Duplicated)
	add("corrupted", c.Corrupted)
	add("overflowed", c.Overflowed)
	for _, cause := range slices.Sorted(maps.Keys(c.LostTo)) {
		add("lost to "+cause, c.LostTo[cause])
	}
	if c.QueuePeak > 0 {
		parts = append(parts, fmt.Sprintf("queue up to %d B", c.QueuePeak))
	}
	if len(parts) == 0 {
		return "nothing sent"
	}
	return strings.Join(parts, ", ")
}

// LinkStats tells what became of the packets from origin to target, two hosts. The counters of hosts that never
// met are zero. An unknown or empty name is an error.
func (s *Simnet) LinkStats(origin, target string) (stats LinkStats, err error) {
	err = s.control(func() error {
		from, err := s.mustHost(origin)
		if err != nil {
			return err
		}
		to, err := s.mustHost(target)
		if err != nil {
			return err
		}
		if l := from.links[to]; l != nil {
			stats = l.counted()
		}
		return nil
	})
	return stats, err
}

// AllLinkStats lists the links that have been used, by name of the sender and then of the receiver, with what became of their packets. It shows
// them as of its first step, and may be called after Close.
func (s *Simnet) AllLinkStats() iter.Seq2[LinkID, LinkStats] {
	return func(yield func(LinkID, LinkStats) bool) {
		var all []SimnetLinkStatus
		_ = s.look(func() { all = s.linkStatus() })
		for _, l := range all {
			if !yield(l.LinkID, l.LinkStats) {
				return
			}
		}
	}
}

// SimnetLinkStatus is one link in a snapshot.
type SimnetLinkStatus struct {
	LinkID
	LinkStats
}

// String is the link in one line.
func (l SimnetLinkStatus) String() string { return fmt.Sprintf("%v: %v", l.LinkID, l.LinkStats) }

func (s *Simnet) linkStatus() (all []SimnetLinkStatus) {
	for l := range s.links() {
		all = append(all, SimnetLinkStatus{LinkID{l.from.name, l.to.name}, l.counted()})
	}
	return all
}

// counted is a copy of the link's counters.
func (l *link) counted() LinkStats {
	stats := l.stats
	stats.LostTo = maps.Clone(stats.LostTo)
	stats.QueuePeak = l.wire.most()
	return stats
}
