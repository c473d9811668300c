// Calls tells how often each function of the library is called for one operation of a benchmark: queue operations
// for a packet, say. Unlike a profile it is exact. It runs the benchmark with so many operations and with twice as
// many, counts by the coverage tool, and prints the difference.
//
//	go run ./cmd/calls -bench 'StreamPingPong$/^gosimnet$'
//	go run ./cmd/calls -bench 'StreamPingPong$/^gosimnet$' -only 'agenda|issue|Timer|await'
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const library = "github.com/glycerine/gosimnet"

func main() {
	bench := flag.String("bench", "StreamPingPong$/^gosimnet$", "count in the benchmark that this `regexp` matches")
	only := flag.String("only", "", "print only functions whose names match this `regexp`")
	n := flag.Int("n", 2000, "count over so many operations")
	least := flag.Float64("least", 0.01, "print only functions that are called so often")
	flag.Parse()
	if err := run(os.Stdout, *bench, *only, *n, *least); err != nil {
		fmt.Fprintln(os.Stderr, "calls:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, bench, only string, n int, least float64) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", library).Output()
	if err != nil {
		return fmt.Errorf("finding the library: %w", err)
	}
	functions, err := functionsIn(strings.TrimSpace(string(dir)))
	if err != nil {
		return err
	}
	once, err := profile(bench, n)
	if err != nil {
		return err
	}
	twice, err := profile(bench, 2*n)
	if err != nil {
		return err
	}
	write(w, perOperation(functions, once, twice, n), match, least)
	return nil
}

// write writes the functions, the most called first, as a Markdown table.
func write(w io.Writer, all []calls, match *regexp.Regexp, least float64) {
	slices.SortStableFunc(all, func(a, b calls) int {
		switch {
		case a.perOp > b.perOp:
			return -1
		case a.perOp < b.perOp:
			return 1
		}
		return strings.Compare(a.function, b.function)
	})
	fmt.Fprintln(w, "| function | calls |")
	fmt.Fprintln(w, "| --- | ---: |")
	for _, c := range all {
		if c.perOp >= least && match.MatchString(c.function) {
			fmt.Fprintf(w, "| %s | %.2f |\n", c.function, c.perOp)
		}
	}
}

// profile runs the benchmark with n operations, and counts how often each block of the library is entered.
func profile(bench string, n int) (map[place]int, error) {
	dir, err := os.MkdirTemp("", "calls")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "cover.out")
	out, err := exec.Command("go", "test", "-run", "^$", "-bench", bench, "-benchtime", fmt.Sprintf("%dx", n),
		"-covermode", "count", "-coverpkg", library, "-coverprofile", file, library+"/bench").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parse(f)
}
