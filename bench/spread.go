package bench

import (
	"fmt"
	"math"
	"slices"
)

// A Spread is what several measurements of one quantity come to: the median and the quartiles around it. Half of the
// measurements are between the quartiles, and this is what counts as noise.
type Spread struct{ Q1, Median, Q3 float64 }

// SpreadOf condenses values, in any order. Of none it is not a number.
func SpreadOf(values []float64) Spread {
	sorted := slices.Sorted(slices.Values(values))
	return Spread{quantile(sorted, 0.25), quantile(sorted, 0.5), quantile(sorted, 0.75)}
}

// quantile interpolates linearly between the two values next to it, as spreadsheets and R do by default.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := q * float64(len(sorted)-1)
	below := int(at)
	above := min(below+1, len(sorted)-1)
	return sorted[below] + (at-float64(below))*(sorted[above]-sorted[below])
}

// A Pair is one measurement of a contender and, right before it, of the one that it is compared with.
type Pair struct{ Base, Own Sample }

// Ratios are how many times more of a quantity the contender has, pair by pair.
func Ratios(pairs []Pair, q Quantity) Spread {
	return spreadBy(pairs, func(p Pair) float64 { return q.Of(p.Own) / q.Of(p.Base) })
}

// Values are what the contender has of a quantity.
func Values(pairs []Pair, q Quantity) Spread {
	return spreadBy(pairs, func(p Pair) float64 { return q.Of(p.Own) })
}

func spreadBy(pairs []Pair, f func(p Pair) float64) Spread {
	values := make([]float64, len(pairs))
	for i, p := range pairs {
		values[i] = f(p)
	}
	return SpreadOf(values)
}

// Format is the median with the quartiles in brackets, or without them if they are printed alike.
func (s Spread) Format(format func(v float64) string) string {
	median, q1, q3 := format(s.Median), format(s.Q1), format(s.Q3)
	if q1 == median && q3 == median {
		return median
	}
	return fmt.Sprintf("%s (%s – %s)", median, q1, q3)
}
