package main

import (
	"strings"
	"testing"
)

// All subjects exist and can be profiled, and every step has its line in both tables of times.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("it profiles for some seconds")
	}
	var out strings.Builder
	if err := run(&out, 1); err != nil {
		t.Fatal(err)
	}
	for _, s := range steps() {
		if n := strings.Count(out.String(), "\n| "+s.name+" |"); n != len(tables()) {
			t.Errorf("%q has %d lines, want %d", s.name, n, len(tables()))
		}
	}
	for _, want := range []string{"| stream round trip, 64 B | 2.00 |", "| timers alone: stream ping-pong, 1 ms latency |", "| sleepers alone, 10000 hosts: "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}
