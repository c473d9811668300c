// Breakdown tells where the time of a message goes: it profiles the library at a few works, and sorts what the
// profile shows into the steps that a message takes, beside the least that a simulated network could do, two
// goroutines that set each other's timers.
//
//	go run ./cmd/breakdown             # tables as Markdown: how often things happen, and how long they take
//	go run ./cmd/breakdown -for 20s    # with less noise
//	go run ./cmd/breakdown -o times.md # in a file
//
// It works on one processor, as compare does.
//
// The profiler looks a hundred times a second, so that a step of 100 ns in 5 µs is known to a fifth of itself after
// some ten seconds.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"time"

	"github.com/google/pprof/profile"

	"github.com/glycerine/gosimnet/bench"
)

func main() {
	long := flag.Duration("for", 5*time.Second, "profile each work for about so much processor time")
	out := flag.String("o", "", "write the tables into this `file` instead of to the standard output")
	flag.Parse()
	runtime.GOMAXPROCS(1)
	var text bytes.Buffer
	err := run(&text, tables(), *long)
	if err == nil && *out != "" {
		err = os.WriteFile(*out, text.Bytes(), 0o666)
	} else if err == nil {
		_, err = os.Stdout.Write(text.Bytes())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "breakdown:", err)
		os.Exit(1)
	}
}

// subject is a contender that is profiled.
type subject struct {
	work      bench.Work
	contender string
}

// tables are the subjects of each table. The second one of the first table is the floor under the first.
func tables() [][]subject {
	return [][]subject{
		{
			{bench.StreamPingPong(), "gosimnet"},
			{bench.StreamPingPong(), "timers alone"},
			{bench.StreamPingPong(), "timers, in a select"},
			{bench.DatagramPingPong(), "gosimnet"},
			{bench.StreamBulk(), "gosimnet"},
			{bench.Dial(), "gosimnet"},
		},
		{
			{bench.StreamChatterGrowth(), "gosimnet, 10 hosts"},
			{bench.StreamChatterGrowth(), "gosimnet, 1000 hosts"},
			{bench.StreamChatterGrowth(), "gosimnet, 10000 hosts"},
			{bench.TimerGrowth(), "timers alone, 10 hosts"},
			{bench.TimerGrowth(), "timers alone, 10000 hosts"},
		},
	}
}

func run(w io.Writer, tables [][]subject, long time.Duration) error {
	fmt.Fprintf(w, "%s, %s/%s, GOMAXPROCS %d.\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0))
	writeCounts(w, bench.Counts(2_000))
	for _, subjects := range tables {
		var columns []column
		for _, s := range subjects {
			c, err := s.profile(long)
			if err != nil {
				return err
			}
			columns = append(columns, c)
		}
		writeSteps(w, columns)
	}
	return nil
}

// column is where the time of one subject goes.
type column struct {
	title string
	total time.Duration            // processor time for one operation
	steps map[string]time.Duration // parts of total
}

// profile does the work for about so long, and sorts what the profiler saw.
func (s subject) profile(long time.Duration) (c column, err error) {
	contender, err := s.work.Contender(s.contender)
	if err != nil {
		return c, err
	}
	contender.Run(s.work.Times) // what is made on first use is not profiled
	trial := contender.Run(s.work.Times)
	times := max(1, int(float64(long)/bench.CPUTime.Of(trial)))
	var raw bytes.Buffer
	if err := pprof.StartCPUProfile(&raw); err != nil {
		return c, err
	}
	sample := contender.Run(times)
	pprof.StopCPUProfile()
	p, err := profile.Parse(&raw)
	if err != nil {
		return c, err
	}
	c.title = fmt.Sprintf("%s: %s", s.contender, s.work.Name)
	c.total = time.Duration(bench.CPUTime.Of(sample))
	c.steps = share(p, c.total)
	return c, nil
}

// writeCounts writes how often things happen, as a Markdown table.
func writeCounts(w io.Writer, counts []bench.Count) {
	fmt.Fprintln(w, "| operation | steps | operations issued | allocations | goroutine switches |")
	fmt.Fprintln(w, "| --- | --- | --- | --- | --- |")
	for _, c := range counts {
		fmt.Fprintf(w, "| %s | %.2f | %.2f | %.2f | %.2f |\n", c.What, c.Steps, c.Operations, c.Allocations, c.Switches)
	}
	fmt.Fprintln(w)
}

// writeSteps writes where the time goes, in nanoseconds for one operation, as a Markdown table.
func writeSteps(w io.Writer, columns []column) {
	head, rule := "| step |", "| --- |"
	for _, c := range columns {
		head += " " + c.title + " |"
		rule += " ---: |"
	}
	fmt.Fprintf(w, "%s\n%s\n", head, rule)
	for _, s := range steps() {
		line := "| " + s.name + " |"
		for _, c := range columns {
			line += fmt.Sprintf(" %d |", c.steps[s.name].Nanoseconds())
		}
		fmt.Fprintln(w, line)
	}
	line := "| **all** |"
	for _, c := range columns {
		line += fmt.Sprintf(" **%d** |", c.total.Nanoseconds())
	}
	fmt.Fprintf(w, "%s\n\n", line)
}
