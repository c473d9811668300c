// Compare lets this library and its peers do the same work, in pairs, and prints how many times more the library
// takes.
//
//	go run ./cmd/compare                        # everything, as Markdown
//	go run ./cmd/compare -run 'ping-pong|bulk'  # some works
//	go run ./cmd/compare -plot ratios.svg       # the ratios as a plot, too
//	go run ./cmd/compare -o ratios.md           # the tables in a file
//	go run ./cmd/compare -procs 0               # on all processors
//
// It works on one processor: in a bubble one goroutine at a time has something to do, and what other processors add to the
// processor time is mostly their looking for more.
//
// A contender is measured once in each round, each time right after the one that it is compared with, so that both
// meet the same machine. The figures are medians, with quartiles in brackets. It exits with 1 if a bar is missed by
// the median and by three quarters of the measurements, and with 2 if it is used wrongly.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"

	"github.com/glycerine/gosimnet/bench"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// options are the command line's.
type options struct {
	rounds int
	procs  int
	only   *regexp.Regexp
	out    string
	plot   string
	quick  bool
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.SetOutput(stderr)
	only := flags.String("run", "", "do only works whose names match this `regexp`")
	flags.IntVar(&o.rounds, "rounds", 9, "measure each pair so many times")
	flags.IntVar(&o.procs, "procs", 1, "work on so many processors; 0 is all")
	flags.StringVar(&o.out, "o", "", "write the tables into this `file` instead of to the standard output")
	flags.StringVar(&o.plot, "plot", "", "write the ratios into this SVG `file`")
	flags.BoolVar(&o.quick, "quick", false, "do a twentieth of each work, in 3 rounds unless -rounds is given: to see that it runs")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	given := false
	flags.Visit(func(f *flag.Flag) { given = given || f.Name == "rounds" })
	if o.quick && !given {
		o.rounds = 3
	}
	if o.rounds < 1 {
		return o, fmt.Errorf("-rounds %d: want 1 or more", o.rounds)
	}
	if o.procs < 0 {
		return o, fmt.Errorf("-procs %d: want 0 or more", o.procs)
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	o.only, err = regexp.Compile(*only)
	return o, err
}

// run is the command, and returns its exit code.
func run(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if err == flag.ErrHelp {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "compare:", err)
		return 2
	}
	return o.run(bench.Works(), bench.Bars(), stdout, stderr)
}

// run measures, prints and judges.
func (o options) run(works []bench.Work, bars []bench.Bar, stdout, stderr io.Writer) int {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(o.procs))
	results := o.measure(works, stderr)
	if len(results) == 0 {
		fmt.Fprintf(stderr, "compare: no work matches %q\n", o.only)
		return 2
	}
	judged := judge(bars, results)
	if err := o.write(stdout, results, judged); err != nil {
		fmt.Fprintln(stderr, "compare:", err)
		return 2
	}
	if missed(judged) {
		return 1
	}
	return 0
}

// write writes the tables and the plot to where the options say.
func (o options) write(stdout io.Writer, results []result, judged []judgement) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s, %s/%s, GOMAXPROCS %d, %d rounds. Medians, with quartiles in brackets.\n\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), o.rounds)
	writeBars(&text, judged)
	writeComparison(&text, results)
	var err error
	if o.out == "" {
		_, err = stdout.Write(text.Bytes())
	} else {
		err = os.WriteFile(o.out, text.Bytes(), 0o666)
	}
	if err == nil && o.plot != "" {
		err = savePlot(o.plot, results, judged)
	}
	return err
}
