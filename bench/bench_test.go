package bench

import "testing"

// benchmark lets each contender do the work.
func benchmark(b *testing.B, w Work) {
	for _, c := range w.Contenders {
		b.Run(c.Name, func(b *testing.B) {
			n := b.N
			if w.Kept {
				n = min(n, w.Times)
			}
			s := c.Run(n)
			b.ReportMetric(WallTime.Of(s), "ns/op")
			b.ReportMetric(CPUTime.Of(s), "cpu-ns/op")
			b.ReportMetric(Allocations.Of(s), "allocs/op")
			b.ReportMetric(GoroutineSwitches.Of(s), "switches/op")
			if w.Kept {
				b.ReportMetric(s.Held, "held-B/op")
			}
		})
	}
}

func BenchmarkStreamPingPong(b *testing.B)             { benchmark(b, StreamPingPong()) }
func BenchmarkStreamPingPongLossy(b *testing.B)        { benchmark(b, StreamPingPongLossy()) }
func BenchmarkStreamBulk(b *testing.B)                 { benchmark(b, StreamBulk()) }
func BenchmarkStreamBulkLarge(b *testing.B)            { benchmark(b, StreamBulkLarge()) }
func BenchmarkDial(b *testing.B)                       { benchmark(b, Dial()) }
func BenchmarkHTTPGet(b *testing.B)                    { benchmark(b, HTTPGet()) }
func BenchmarkGRPCUnary(b *testing.B)                  { benchmark(b, GRPCUnary()) }
func BenchmarkDatagramPingPong(b *testing.B)           { benchmark(b, DatagramPingPong()) }
func BenchmarkDatagramBulk(b *testing.B)               { benchmark(b, DatagramBulk()) }
func BenchmarkDatagramsInFlight(b *testing.B)          { benchmark(b, DatagramsInFlight()) }
func BenchmarkChatter(b *testing.B)                    { benchmark(b, Chatter()) }
func BenchmarkChatterApart(b *testing.B)               { benchmark(b, ChatterApart()) }
func BenchmarkStreamChatterGrowth(b *testing.B)        { benchmark(b, StreamChatterGrowth()) }
func BenchmarkDatagramChatterGrowth(b *testing.B)      { benchmark(b, DatagramChatterGrowth()) }
func BenchmarkSleeperGrowth(b *testing.B)              { benchmark(b, SleeperGrowth()) }
func BenchmarkTimerGrowth(b *testing.B)                { benchmark(b, TimerGrowth()) }
func BenchmarkStreamChatterGrowthApart(b *testing.B)   { benchmark(b, StreamChatterGrowthApart()) }
func BenchmarkDatagramChatterGrowthApart(b *testing.B) { benchmark(b, DatagramChatterGrowthApart()) }
func BenchmarkTimerGrowthApart(b *testing.B)           { benchmark(b, TimerGrowthApart()) }
func BenchmarkIdleDay(b *testing.B)                    { benchmark(b, IdleDay()) }
func BenchmarkElectionStorm(b *testing.B)              { benchmark(b, ElectionStorm()) }
func BenchmarkOpenConnections(b *testing.B)            { benchmark(b, OpenConnections()) }
func BenchmarkPingPongAmongConnections(b *testing.B)   { benchmark(b, PingPongAmongConnections()) }
func BenchmarkMemoryPerHost(b *testing.B)              { benchmark(b, MemoryPerHost()) }
func BenchmarkMemoryPerConnection(b *testing.B)        { benchmark(b, MemoryPerConnection()) }
func BenchmarkLimitedStream(b *testing.B)              { benchmark(b, LimitedStream()) }
func BenchmarkLimitedDatagrams(b *testing.B)           { benchmark(b, LimitedDatagrams()) }
func BenchmarkTracedPingPong(b *testing.B)             { benchmark(b, TracedPingPong()) }
func BenchmarkSnapshot(b *testing.B)                   { benchmark(b, Snapshot()) }
