package main

import (
	"strings"
	"testing"

	"github.com/glycerine/gosimnet/bench"
)

// Every step has its line, and every subject its column.
func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(&out, [][]subject{{{bench.StreamPingPong(), "timers alone"}}}, 1); err != nil {
		t.Fatal(err)
	}
	for _, s := range steps() {
		if n := strings.Count(out.String(), "\n| "+s.name+" |"); n != 1 {
			t.Errorf("%q has %d lines, want 1", s.name, n)
		}
	}
	for _, want := range []string{"| stream round trip, 64 B | 2.00 |", "| step | timers alone: stream ping-pong, 1 ms latency |", "| **all** | **"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}

func TestUnknownContender(t *testing.T) {
	if err := run(&strings.Builder{}, [][]subject{{{bench.StreamPingPong(), "a carrier pigeon"}}}, 1); err == nil {
		t.Error("no error")
	}
}

func TestSubjectsExist(t *testing.T) {
	for _, subjects := range tables() {
		for _, s := range subjects {
			if _, err := s.work.Contender(s.contender); err != nil {
				t.Error(err)
			}
		}
	}
}
