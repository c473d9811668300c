package bench

import (
	"math"
	"testing"
	"time"
)

func TestSpreadOf(t *testing.T) {
	for _, test := range []struct {
		name   string
		values []float64
		want   Spread
	}{
		{"one", []float64{7}, Spread{7, 7, 7}},
		{"two", []float64{4, 2}, Spread{2.5, 3, 3.5}},
		{"odd number, in no order", []float64{5, 1, 4, 2, 3}, Spread{2, 3, 4}},
		{"even number", []float64{1, 2, 3, 4}, Spread{1.75, 2.5, 3.25}},
		{"an outlier moves neither median nor quartiles", []float64{1, 2, 3, 4, 1e9}, Spread{2, 3, 4}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := SpreadOf(test.values); got != test.want {
				t.Errorf("%v has %v, want %v", test.values, got, test.want)
			}
		})
	}
}

func TestSpreadOfLeavesItsArgumentAlone(t *testing.T) {
	values := []float64{3, 1, 2}
	SpreadOf(values)
	if values[0] != 3 || values[1] != 1 || values[2] != 2 {
		t.Errorf("the values are in another order: %v", values)
	}
}

func TestSpreadOfNothing(t *testing.T) {
	if s := SpreadOf(nil); !math.IsNaN(s.Q1) || !math.IsNaN(s.Median) || !math.IsNaN(s.Q3) {
		t.Errorf("%v, want no numbers", s)
	}
}

// The ratio is taken within each pair: a machine that is slow for a while slows both.
func TestRatiosAreOfPairs(t *testing.T) {
	pairs := []Pair{
		{Base: Sample{Ops: 10, CPU: time.Second}, Own: Sample{Ops: 10, CPU: 2 * time.Second}},
		{Base: Sample{Ops: 10, CPU: 50 * time.Second}, Own: Sample{Ops: 5, CPU: 50 * time.Second}},
		{Base: Sample{Ops: 10, CPU: 3 * time.Second}, Own: Sample{Ops: 20, CPU: 12 * time.Second}},
	}
	if got, want := Ratios(pairs, CPUTime), (Spread{2, 2, 2}); got != want {
		t.Errorf("ratios of time %v, want %v", got, want)
	}
	if got, want := Ratios(pairs, Throughput), (Spread{0.5, 0.5, 0.5}); got != want {
		t.Errorf("ratios of throughput %v, want %v", got, want)
	}
	if got, want := Values(pairs, CPUTime), (Spread{4e8, 6e8, 5.3e9}); got != want {
		t.Errorf("times %v, want %v", got, want)
	}
}

func TestSpreadFormat(t *testing.T) {
	for _, test := range []struct {
		s    Spread
		want string
	}{
		{Spread{1000, 2000, 3500}, "2 µs (1 µs – 3.5 µs)"},
		{Spread{2000, 2000.1, 2000.2}, "2 µs"},
	} {
		if got := test.s.Format(formatTime); got != test.want {
			t.Errorf("%v is %q, want %q", test.s, got, test.want)
		}
	}
}

func TestFormats(t *testing.T) {
	for _, test := range []struct {
		got, want string
	}{
		{formatTime(17.4), "17 ns"},
		{formatTime(1234), "1.23 µs"},
		{formatTime(12_345_678), "12.3 ms"},
		{formatTime(2.5e9), "2.5s"},
		{formatBytes(1023), "1023 B"},
		{formatBytes(4096), "4.0 KiB"},
		{formatCount(0.04), "0.0"},
		{formatCount(279.6), "280"},
	} {
		if test.got != test.want {
			t.Errorf("%q, want %q", test.got, test.want)
		}
	}
}
