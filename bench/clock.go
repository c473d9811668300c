package bench

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// A Sample is what it took to do some work so many times.
type Sample struct {
	Ops        int           // how often it was done
	CPU        time.Duration // processor time of the whole process, garbage collection included
	Wall       time.Duration // real time
	Allocs     uint64        // heap objects made
	Switches   uint64        // goroutines that began to run, estimated by the runtime from one in eight
	Held       float64       // heap bytes that stay in use for each thing made; works about memory only
	Goroutines float64       // goroutines that stay for each thing made; works about memory only
}

// read is what the system's clock of this kind says. A bubble has no power over it.
func read(clock int32) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(clock, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

// measure runs f, which does something n times, and tells what that took. It may be called inside a bubble and outside.
func measure(n int, f func()) Sample {
	var before, after runtime.MemStats
	runtime.GC()
	ran := switches()
	runtime.ReadMemStats(&before)
	wall, cpu := read(unix.CLOCK_MONOTONIC), read(unix.CLOCK_PROCESS_CPUTIME_ID)
	f()
	cpu, wall = read(unix.CLOCK_PROCESS_CPUTIME_ID)-cpu, read(unix.CLOCK_MONOTONIC)-wall
	runtime.ReadMemStats(&after)
	return Sample{Ops: n, CPU: cpu, Wall: wall, Allocs: after.Mallocs - before.Mallocs, Switches: switches() - ran}
}

// inBubble runs f in a bubble of its own.
func inBubble(f func()) {
	testing.Init() // a bubble is a test, and asks for the flags of tests
	ran := false
	synctest.Test(new(testing.T), func(*testing.T) {
		f()
		time.Sleep(time.Minute) // until what ends with a delay has ended
		ran = true
	})
	if !ran {
		panic("the bubble failed")
	}
}
