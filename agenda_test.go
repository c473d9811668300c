package gosimnet

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTheAgendaGivesEventsInCanonicalOrder compares it with a list that is searched, whatever is added, moved and removed, in runs and out of order.
func TestTheAgendaGivesEventsInCanonicalOrder(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		var a agenda
		packets := make([]packet, 40) // and timers among them
		events := make([]*event, len(packets))
		for i := range packets {
			e := &packets[i].event
			e.key, e.n, e.exact = uint64(i/4), uint64(i%4), i%10 == 9
			if events[i] = e; i%3 > 0 {
				e.act = &packets[i]
			}
		}
		var want []*event
		forget := func(e *event) { want = slices.DeleteFunc(want, func(o *event) bool { return o == e }) }
		for step := range 400 {
			switch e := events[r.IntN(len(events))]; r.IntN(8) {
			case 0:
				a.remove(e)
				forget(e)
			case 1, 2:
				if len(want) == 0 {
					continue
				}
				first := slices.MinFunc(want, func(x, y *event) int {
					if x.before(y) {
						return -1
					}
					return 1
				})
				if at := a.earliest(); at != first.at {
					t.Fatalf("seed %d, step %d: the earliest is at %d, want %d", seed, step, at, first.at)
				}
				if got := a.pop(); got != first || got.scheduled() {
					t.Fatalf("seed %d, step %d: event %d/%d at %d is first, want %d/%d at %d", seed, step, got.key, got.n, got.at, first.key, first.n, first.at)
				}
				forget(first)
			case 3: // a burst, in order
				at := int64(r.IntN(5))
				for _, e := range events {
					if !e.scheduled() && !e.exact {
						a.add(e, at)
						want = append(want, e)
					}
				}
			default:
				forget(e)
				a.add(e, int64(r.IntN(5)))
				want = append(want, e)
			}
			n := 0
			for e := range a.all() {
				if n++; !slices.Contains(want, e) {
					t.Fatalf("seed %d, step %d: an event that was removed is still there", seed, step)
				}
			}
			if n != len(want) {
				t.Fatalf("seed %d, step %d: %d events, want %d", seed, step, n, len(want))
			}
		}
		a.clear()
		if i := slices.IndexFunc(events, func(e *event) bool { return e.scheduled() || e.next != nil }); i >= 0 || a.earliest() != never {
			t.Fatalf("seed %d: event %d is left after clear", seed, i)
		}
	}
}

// TestPacketsThatComeInOrderTakeOnePlaceInTheAgenda: they are one run, whatever timers are set meanwhile, and any of them can be taken out.
func TestPacketsThatComeInOrderTakeOnePlaceInTheAgenda(t *testing.T) {
	for name, at := range map[string]func(i int) int64{
		"at one instant": func(int) int64 { return 7 },
		"one by one":     func(i int) int64 { return int64(i) },
	} {
		t.Run(name, func(t *testing.T) {
			var a agenda
			packets := make([]packet, 1000)
			for i := range packets {
				p := &packets[i]
				p.n, p.act = uint64(i), p
				a.add(&p.event, at(i))
				var timer event
				a.add(&timer, 5000)
				a.remove(&timer)
			}
			for i := 0; i < len(packets); i += 3 {
				a.remove(&packets[i].event)
			}
			if n := len(a.slots); n != 1 {
				t.Errorf("%d places, want 1", n)
			}
			for i := range packets {
				if i%3 == 0 {
					continue
				}
				if got := a.pop(); got != &packets[i].event {
					t.Fatalf("event %d comes in place %d", got.n, i)
				}
			}
		})
	}
}

// TestTimersOfOneInstantHavePlacesOfTheirOwn: many connections may have one deadline, and each Read takes its own out again.
func TestTimersOfOneInstantHavePlacesOfTheirOwn(t *testing.T) {
	var a agenda
	events := make([]event, 1000)
	for i := range events {
		events[i].n = uint64(i)
		a.add(&events[i], 7)
	}
	if n := len(a.slots); n != len(events) {
		t.Errorf("%d places, want %d", n, len(events))
	}
}
