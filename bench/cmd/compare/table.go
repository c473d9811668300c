package main

import (
	"fmt"
	"io"

	"github.com/glycerine/gosimnet/bench"
)

// writeBars writes the bars as a Markdown table.
func writeBars(w io.Writer, judged []judgement) {
	if len(judged) == 0 {
		return
	}
	fmt.Fprintln(w, "| work | bar | measured | verdict | best peer, earlier |")
	fmt.Fprintln(w, "| --- | --- | --- | --- | --- |")
	for _, j := range judged {
		fmt.Fprintf(w, "| %s | %v | %s | %v | %s |\n", j.What, j.Bar, j.measured.Format(j.Format), j.verdict, j.Peer)
	}
	fmt.Fprintln(w)
}

// writeComparison writes all contenders as a Markdown table.
func writeComparison(w io.Writer, results []result) {
	fmt.Fprintln(w, "| work | contender | one of it | against the first | allocations |")
	fmt.Fprintln(w, "| --- | --- | --- | --- | --- |")
	for _, r := range results {
		what := fmt.Sprintf("**%s**: %s per %s", r.Name, r.Shown.Name, r.Per)
		if r.Shown.Name == bench.Throughput.Name {
			what = fmt.Sprintf("**%s**: %s of %s", r.Name, r.Shown.Name, r.Per)
		}
		for i, c := range r.Contenders {
			ratio := "1"
			if i > 0 {
				ratio = bench.Ratios(r.pairs[i], r.Shown).Format(bench.FormatRatio)
			}
			own := bench.Values(r.pairs[i], r.Shown).Format(r.Shown.Format)
			allocations := bench.Values(r.pairs[i], bench.Allocations).Format(bench.Allocations.Format)
			fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", what, c.Name, own, ratio, allocations)
			what = ""
		}
	}
}
