package bench

import (
	"fmt"
	"time"
)

// A Quantity is what a sample is measured by.
type Quantity struct {
	Name   string
	Of     func(s Sample) float64
	Format func(v float64) string
}

// The quantities.
var (
	// CPUTime is processor time for each time that the work is done. It is what other processes on the machine
	// disturb least.
	CPUTime = Quantity{"CPU time", func(s Sample) float64 { return float64(s.CPU) / float64(s.Ops) }, formatTime}
	// WallTime is real time for each time that the work is done.
	WallTime = Quantity{"wall time", func(s Sample) float64 { return float64(s.Wall) / float64(s.Ops) }, formatTime}
	// Throughput is how often the work is done in a second of processor time.
	Throughput = Quantity{"throughput", func(s Sample) float64 { return float64(s.Ops) / s.CPU.Seconds() }, formatRate}
	// Allocations are heap objects made for each time that the work is done.
	Allocations = Quantity{"allocations", func(s Sample) float64 { return float64(s.Allocs) / float64(s.Ops) }, formatCount}
	// GoroutineSwitches are goroutines that begin to run for each time that the work is done, an estimate.
	GoroutineSwitches = Quantity{"switches", func(s Sample) float64 { return float64(s.Switches) / float64(s.Ops) }, formatCount}
	// HeldMemory is the heap that one thing keeps in use.
	HeldMemory = Quantity{"memory", func(s Sample) float64 { return s.Held }, formatBytes}
	// HeldGoroutines are the goroutines of one thing.
	HeldGoroutines = Quantity{"goroutines", func(s Sample) float64 { return s.Goroutines }, formatCount}
)

func formatRate(v float64) string { return fmt.Sprintf("%.3g/s", v) }

func formatTime(ns float64) string {
	switch {
	case ns < 1e3:
		return fmt.Sprintf("%.0f ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%.3g µs", ns/1e3)
	case ns < 1e9:
		return fmt.Sprintf("%.3g ms", ns/1e6)
	}
	return time.Duration(ns).Round(10 * time.Millisecond).String()
}

func formatBytes(b float64) string {
	if b < 1<<10 {
		return fmt.Sprintf("%.0f B", b)
	}
	return fmt.Sprintf("%.1f KiB", b/(1<<10))
}

func formatCount(n float64) string {
	if n >= 100 {
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprintf("%.1f", n)
}
