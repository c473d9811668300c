// Package bench lets this library and what a user might pick instead do the same work in one process, and compares
// them.
//
// Peers are net.Pipe, gRPC's bufconn, the kernel's TCP and UDP over loopback, pion's vnet, and marcopolo's simnet.
// Simulated networks run in bubbles of testing/synctest, in virtual time; net.Pipe, bufconn and loopback outside,
// as people use them. [Works] lists the works with their contenders, [Bars] what this library has to reach. A
// bubble has a clock of its own, and so what is measured is read from the system's.
//
// The command compare, in cmd/compare, measures contenders in pairs, A B A B, and prints ratios, which hold where
// absolute figures drift:
//
//	go run ./cmd/compare -run 'ping-pong' -plot ratios.svg
//
// The benchmarks are the same works, to be profiled:
//
//	go test -run '^$' -bench 'StreamPingPong/gosimnet$' -cpuprofile cpu.out
//
// The command breakdown, in cmd/breakdown, sorts such a profile into the steps that a message takes. BENCH.md,
// beside this file, says what came of it all. "go generate" renews the figures in the folder results, in some ten
// minutes.
//
// # What cannot be compared
//
// The simulated network of github.com/glycerine/rpc25519, from which this library began, is not among the
// contenders, because no version of its module could be fetched from the public module mirror when this was
// written, neither by "latest" nor by number. An earlier measurement of it gave about 100 times net.Pipe for a
// round trip of 64 bytes, which took 22 ms of virtual time, with a scheduler that ticks each millisecond: about a
// second of real time for an idle minute.
//
// Neither vnet nor simnet has streams. Of stream peers none but the simulated network can lose anything, or has
// latency.
package bench

//go:generate go run ./cmd/breakdown -o results/breakdown.md
//go:generate go run ./cmd/compare -o results/compare.md -plot results/ratios.svg
