package main

import (
	"fmt"
	"io"

	"github.com/glycerine/gosimnet/bench"
)

// result is what the measurements of one work came to, in the order of its contenders. The first of them was measured
// together with each of the others, and its pairs are with itself.
type result struct {
	bench.Work
	pairs [][]bench.Pair
}

// measure does all works that the options ask for, and says so as it goes.
func (o options) measure(works []bench.Work, progress io.Writer) (results []result) {
	for _, w := range works {
		if o.only.MatchString(w.Name) {
			fmt.Fprintln(progress, w.Name)
			results = append(results, result{w, o.compare(w)})
		}
	}
	return results
}

// compare measures the contenders of a work against the first one: A B A C, A B A C, and so on. One that is alone
// is measured alone.
func (o options) compare(w bench.Work) [][]bench.Pair {
	times := w.Times
	if o.quick {
		times = max(1, times/20)
	}
	for _, c := range w.Contenders { // what is made on first use is not measured
		c.Run(max(1, times/20))
	}
	pairs := make([][]bench.Pair, len(w.Contenders))
	for range o.rounds {
		for i, c := range w.Contenders[1:] {
			base := w.Contenders[0].Run(times)
			pairs[0] = append(pairs[0], bench.Pair{Base: base, Own: base})
			pairs[i+1] = append(pairs[i+1], bench.Pair{Base: base, Own: c.Run(times)})
		}
	}
	return pairs
}

// judgement is a bar with what was measured.
type judgement struct {
	bench.Bar
	measured bench.Spread
	verdict  bench.Verdict
}

// judge compares results with the bars that are about them.
func judge(bars []bench.Bar, results []result) (judged []judgement) {
	for _, b := range bars {
		for _, r := range results {
			for i, c := range r.Contenders {
				if r.Name == b.Work && c.Name == b.Contender {
					measured := b.Measured(r.pairs[i])
					judged = append(judged, judgement{b, measured, b.Judge(measured)})
				}
			}
		}
	}
	return judged
}

// missed is whether any bar is.
func missed(judged []judgement) bool {
	for _, j := range judged {
		if j.verdict == bench.Missed {
			return true
		}
	}
	return false
}
