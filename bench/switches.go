package bench

import "runtime/metrics"

// tracked is how many times a goroutine begins to run for each time that the runtime counts it.
const tracked = 8

// switches is how often goroutines have begun to run since the process began, as far as the runtime's statistics tell.
func switches() uint64 {
	sample := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(sample)
	var n uint64
	for _, count := range sample[0].Value.Float64Histogram().Counts {
		n += count
	}
	return n * tracked
}
