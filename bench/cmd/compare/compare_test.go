package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/glycerine/gosimnet/bench"
)

// scripted is a contender whose measurements are given, in nanoseconds for one of the work, and that notes when it
// is asked.
func scripted(name string, asked *[]string, ns ...time.Duration) bench.Contender {
	next := -1 // the first run is to warm up
	return bench.Contender{Name: name, Run: func(times int) bench.Sample {
		*asked = append(*asked, name)
		took := time.Second
		if next >= 0 {
			took = ns[next%len(ns)]
		}
		next++
		return bench.Sample{Ops: times, CPU: took * time.Duration(times), Wall: time.Hour, Allocs: uint64(3 * times)}
	}}
}

// relay is a work at which others take 2 to 4 times, and always 10 times, as long as the first contender.
func relay(asked *[]string) bench.Work {
	return bench.Work{
		Name: "relay race", Per: "lap", Times: 100, Shown: bench.CPUTime,
		Contenders: []bench.Contender{
			scripted("walker", asked, 1000),
			scripted("gosimnet", asked, 2000, 3000, 4000),
			scripted("snail", asked, 10_000),
		},
	}
}

func options3(t *testing.T, args ...string) options {
	t.Helper()
	o, err := parse(append([]string{"-rounds", "3"}, args...), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestContendersAreMeasuredInPairs(t *testing.T) {
	var asked []string
	options3(t).compare(relay(&asked))
	round := []string{"walker", "gosimnet", "walker", "snail"}
	want := slices.Concat([]string{"walker", "gosimnet", "snail"}, round, round, round)
	if !slices.Equal(asked, want) {
		t.Errorf("measured %v, want %v", asked, want)
	}
}

func TestReport(t *testing.T) {
	var asked []string
	var out, progress strings.Builder
	bars := []bench.Bar{
		{What: "laps", Work: "relay race", Contender: "gosimnet", Of: bench.CPUTime, Ratio: true, Limit: 3, Peer: "5 ×"},
		{What: "laps of others", Work: "another race", Contender: "gosimnet", Of: bench.CPUTime},
	}
	if code := options3(t).run([]bench.Work{relay(&asked)}, bars, &out, &progress); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	_, got, _ := strings.Cut(out.String(), "\n\n")
	want := `| work | bar | measured | verdict | best peer, earlier |
| --- | --- | --- | --- | --- |
| laps | ≤ 3.00 × | 3.00 × (2.50 × – 3.50 ×) | met | 5 × |

| work | contender | one of it | against the first | allocations |
| --- | --- | --- | --- | --- |
| **relay race**: CPU time per lap | walker | 1 µs | 1 | 3.0 |
|  | gosimnet | 3 µs (2.5 µs – 3.5 µs) | 3.00 × (2.50 × – 3.50 ×) | 3.0 |
|  | snail | 10 µs | 10.00 × | 3.0 |
`
	if got != want {
		t.Errorf("printed\n%s\nwant\n%s", got, want)
	}
	if progress.String() != "relay race\n" {
		t.Errorf("progress %q", progress.String())
	}
}

func TestExitCode(t *testing.T) {
	for _, test := range []struct {
		name  string
		limit float64
		want  int
	}{
		{"met", 3, 0},
		{"missed by less than the noise", 2.6, 0},
		{"missed by more", 2.4, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			var asked []string
			bars := []bench.Bar{{Work: "relay race", Contender: "gosimnet", Of: bench.CPUTime, Ratio: true, Limit: test.limit}}
			if code := options3(t).run([]bench.Work{relay(&asked)}, bars, io.Discard, io.Discard); code != test.want {
				t.Errorf("exit code %d, want %d", code, test.want)
			}
		})
	}
}

func TestWrongUse(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "0"}, {"-procs", "-1"}, {"-run", "("}, {"-unknown"}, {"stray"}, {"-run", "no such work"}} {
		var stderr strings.Builder
		if code := run(args, io.Discard, &stderr); code != 2 {
			t.Errorf("%q: exit code %d, want 2", args, code)
		}
		if stderr.Len() == 0 {
			t.Errorf("%q: nothing said", args)
		}
	}
}

func TestQuickIsShort(t *testing.T) {
	for _, test := range []struct {
		args []string
		want int
	}{
		{nil, 9},
		{[]string{"-quick"}, 3},
		{[]string{"-quick", "-rounds", "5"}, 5},
	} {
		o, err := parse(test.args, io.Discard)
		if err != nil || o.rounds != test.want {
			t.Errorf("%q: %d rounds, %v, want %d", test.args, o.rounds, err, test.want)
		}
	}
	var asked []string
	o := options3(t, "-quick")
	for _, pairs := range o.compare(relay(&asked)) {
		if got := pairs[0].Own.Ops; got != 5 {
			t.Errorf("done %d times, want 100/20", got)
		}
	}
}

// The plot is well-formed, and names all that it shows.
func TestPlot(t *testing.T) {
	var asked []string
	file := filepath.Join(t.TempDir(), "ratios.svg")
	bars := []bench.Bar{{Work: "relay race", Contender: "gosimnet", Of: bench.CPUTime, Ratio: true, Limit: 3}}
	if code := options3(t, "-plot", file).run([]bench.Work{relay(&asked)}, bars, io.Discard, io.Discard); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	svg, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{">relay race, against walker<", ">gosimnet<", ">snail<", ">peers<"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("%q is not in the plot", want)
		}
	}
	d := xml.NewDecoder(strings.NewReader(string(svg)))
	for err == nil {
		_, err = d.Token()
	}
	if !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// In the plot everything is a cost, throughput and its bars, too.
func TestRowsOfThroughputAreTimes(t *testing.T) {
	var asked []string
	w := relay(&asked)
	w.Shown = bench.Throughput
	o := options3(t)
	r := result{w, o.compare(w)}
	judged := judge([]bench.Bar{{Work: w.Name, Contender: "gosimnet", Of: bench.Throughput, Ratio: true, AtLeast: true, Limit: 0.5}}, []result{r})
	got := rows([]result{r}, judged)
	want := []row{
		{label: "relay race, against walker"},
		{"gosimnet", bench.Spread{Q1: 2.5, Median: 3, Q3: 3.5}, 2, true},
		{"snail", bench.Spread{Q1: 10, Median: 10, Q3: 10}, 0, false},
	}
	if !slices.Equal(got, want) {
		t.Errorf("rows %v, want %v", got, want)
	}
}

func TestTablesInFile(t *testing.T) {
	var asked []string
	var out strings.Builder
	file := filepath.Join(t.TempDir(), "ratios.md")
	options3(t, "-o", file).run([]bench.Work{relay(&asked)}, nil, &out, io.Discard)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if out.Len() > 0 || !strings.Contains(string(text), "| snail | 10 µs | 10.00 × | 3.0 |") {
		t.Errorf("printed %q, and into the file %q", out.String(), text)
	}
}

func TestPlotThatCannotBeWritten(t *testing.T) {
	var asked []string
	var stderr strings.Builder
	o := options3(t, "-plot", filepath.Join(t.TempDir(), "nowhere", "ratios.svg"))
	if code := o.run([]bench.Work{relay(&asked)}, nil, io.Discard, &stderr); code != 2 || !strings.Contains(stderr.String(), "nowhere") {
		t.Errorf("exit code %d, %q", code, stderr.String())
	}
}
