package bench

import "testing"

// The counts are what the library has come to. One more of anything is a step back, which no clock would show for sure.
func TestCounts(t *testing.T) {
	limits := []Count{
		{"stream round trip, 64 B", 2, 2, 0, 4},
		{"stream write of 32 KiB, and its reading", 0.5, 1.25, 0, 1.25},
		{"UDP round trip, 64 B", 2, 2, 0, 4},
		{"dial, accept, close", 3, 8, 4, 7},
	}
	counts := Counts(2000)
	for range 9 { // a switch more is often the runtime's, on a machine that has other things to do
		for i, c := range Counts(2000) {
			counts[i].Allocations = min(counts[i].Allocations, c.Allocations)
			counts[i].Switches = min(counts[i].Switches, c.Switches)
		}
	}
	if len(counts) != len(limits) {
		t.Fatalf("%d counts, want %d", len(counts), len(limits))
	}
	for i, got := range counts {
		most := limits[i]
		if got.What != most.What {
			t.Fatalf("counted %q, want %q", got.What, most.What)
		}
		const noise = 0.1 // beginnings and ends, and the runtime's own doings
		if got.Steps > most.Steps+noise || got.Operations > most.Operations+noise {
			t.Errorf("%+v, want at most %+v", got, most)
		}
		if raced {
			continue // its own allocations and switches are counted, too
		}
		if got.Allocations > most.Allocations+noise || got.Switches > most.Switches*1.25+noise {
			t.Errorf("%+v, want at most %+v", got, most)
		}
	}
}
