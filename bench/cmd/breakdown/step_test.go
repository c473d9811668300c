package main

import (
	"testing"
	"time"

	"github.com/google/pprof/profile"
)

// stack is a sample that was seen so often, its functions from the innermost on.
func stack(count int64, functions ...string) *profile.Sample {
	s := &profile.Sample{Value: []int64{count}}
	for _, f := range functions {
		s.Location = append(s.Location, &profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: f}}}})
	}
	return s
}

func TestStepOf(t *testing.T) {
	const net = "github.com/glycerine/gosimnet."
	for _, test := range []struct {
		want  string
		stack []string
	}{
		{"entering and leaving a call: clock, lock", []string{"runtime.nanotime", "time.Now", net + "(*scheduler).enter", net + "(*Conn).Write"}},
		{"writing: buffer, segment, packet", []string{net + "(*half).transmit", net + "(*Conn).write", net + "(*Conn).Write"}},
		{"writing: buffer, segment, packet", []string{net + "aHelper", net + "(*Conn).write"}},
		{"admission: fate, time of arrival", []string{net + "(*flow).delay", net + "(*packet).admit", net + "(*scheduler).step"}},
		{"queue of what is to come", []string{net + "(*agenda).add", net + "(*scheduler).step"}},
		{"waiting: channels", []string{"runtime.lock2", "runtime.selectgo", net + "(*scheduler).await", net + "(*Conn).read"}},
		{"timers: set, sorted, fired", []string{"runtime.unlock2", "runtime.(*timer).unlock", "runtime.resetTimer", "time.(*Timer).Reset", net + "(*scheduler).arm"}},
		{"the bubble: who is at rest, time moves", []string{"runtime.lock2", "runtime.(*synctestBubble).changegstatus", "runtime.casgstatus", "runtime.park_m"}},
		{"switching goroutines", []string{"runtime.execute", "runtime.schedule", "runtime.park_m", "runtime.mcall"}},
		{"trace", []string{"crypto/sha256.block", net + "(*tracer).encode", net + "(*packet).admit"}},
		{"copying bytes", []string{"runtime.memmove", net + "(*byteQueue).write"}},
		{"memory: allocation, collection, stacks", []string{"runtime.memclrNoHeapPointers", "runtime.mallocgc", net + "(*dial).run"}},
		{"opening, closing, names", []string{"strconv.Atoi", net + "parsePort", net + "(*Host).resolve", net + "(*Dialer).DialContext"}},
		{rest, []string{net + "somethingNew"}},
		{own, []string{"github.com/glycerine/gosimnet/bench.trips"}},
		{other, []string{"gogo"}},
		{other, nil},
	} {
		if got := stepOf(stack(1, test.stack...), steps()); got != test.want {
			t.Errorf("%q is %q, want %q", test.stack, got, test.want)
		}
	}
}

func TestShare(t *testing.T) {
	p := &profile.Profile{Sample: []*profile.Sample{
		stack(1, "runtime.execute"), stack(2, "runtime.memmove"), stack(1, "runtime.schedule"),
	}}
	got := share(p, 8*time.Microsecond)
	if len(got) != 2 || got["switching goroutines"] != 4*time.Microsecond || got["copying bytes"] != 4*time.Microsecond {
		t.Errorf("shares %v, want 4µs each of switching and copying", got)
	}
}

// A step that is named twice would be counted in two lines.
func TestStepsAreNamedOnce(t *testing.T) {
	seen := make(map[string]bool)
	for _, s := range steps() {
		if seen[s.name] {
			t.Errorf("%q twice", s.name)
		}
		seen[s.name] = true
	}
}
