package main

import (
	"image/color"
	"math"
	"os"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/glycerine/gosimnet/bench"
)

// row is a line of the plot: a work's name, or a contender with how many times more it takes than the first one.
type row struct {
	label string
	ratio bench.Spread // zero for a work's name
	limit float64      // of a bar, or 0
	ours  bool
}

// rows are the lines of the plot, from the top. Everything is a cost there: of throughput it is the inverse, the time.
func rows(results []result, judged []judgement) (all []row) {
	for _, r := range results {
		all = append(all, row{label: r.Name + ", against " + r.Contenders[0].Name})
		cost := r.Shown
		if cost.Name == bench.Throughput.Name {
			cost = bench.CPUTime
		}
		for i, c := range r.Contenders {
			ratio := bench.Ratios(r.pairs[i], cost)
			if i > 0 && ratio.Q1 > 0 && !math.IsInf(ratio.Q3, 0) { // the scale is logarithmic
				all = append(all, row{c.Name, ratio, limit(r.Work, c, judged), strings.HasPrefix(c.Name, "gosimnet")})
			}
		}
	}
	return all
}

// limit is what a contender may cost at most, as a ratio, or 0 if no bar says so.
func limit(w bench.Work, c bench.Contender, judged []judgement) float64 {
	for _, j := range judged {
		if j.Work == w.Name && j.Contender == c.Name && j.Ratio {
			if j.AtLeast {
				return 1 / j.Limit
			}
			return j.Limit
		}
	}
	return 0
}

// dots are points with quartiles to both sides.
type dots struct {
	plotter.XYs
	plotter.XErrors
}

func (d *dots) add(at float64, s bench.Spread) {
	d.XYs = append(d.XYs, plotter.XY{X: s.Median, Y: at})
	d.XErrors = append(d.XErrors, struct{ Low, High float64 }{s.Median - s.Q1, s.Q3 - s.Median})
}

// perLine is the height of a line of the plot, in points.
const perLine = 16

// savePlot writes the ratios into an SVG file.
func savePlot(file string, results []result, judged []judgement) error {
	lines := rows(results, judged)
	p := plot.New()
	p.Title.Text, p.Title.Padding = "times the cost of the one compared with: quartiles, and | where a bar is", vg.Points(8)
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Legend.Top = true
	for _, style := range []*text.Style{&p.Title.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle} {
		style.Font.Variant = "Sans"
	}
	p.Add(plotter.NewGrid())
	if err := addRows(p, lines); err != nil {
		return err
	}
	return save(p, file, vg.Points(800), vg.Points(float64(60+perLine*len(lines))))
}

// save writes a plot with a margin.
func save(p *plot.Plot, file string, width, height vg.Length) error {
	const margin = 10
	c := vgsvg.New(width, height)
	p.Draw(draw.Crop(draw.New(c), margin, -margin, margin, -margin))
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if _, err := c.WriteTo(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// addRows draws the lines, the first at the top.
func addRows(p *plot.Plot, lines []row) error {
	var ours, others dots
	var limits plotter.XYs
	var ticks []plot.Tick
	for i, r := range lines {
		at := float64(len(lines) - i)
		ticks = append(ticks, plot.Tick{Value: at, Label: r.label})
		switch {
		case r.ratio == bench.Spread{}:
		case r.ours:
			ours.add(at, r.ratio)
		default:
			others.add(at, r.ratio)
		}
		if r.limit > 0 {
			limits = append(limits, plotter.XY{X: r.limit, Y: at})
		}
	}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
	p.Y.Min, p.Y.Max = 0, float64(len(lines)+1)
	p.X.Min, p.X.Max = extent(lines)
	if err := addDots(p, "gosimnet", ours, color.RGBA{R: 0x1f, G: 0x77, B: 0xb4, A: 0xff}); err != nil {
		return err
	}
	if err := addDots(p, "peers", others, color.RGBA{R: 0xff, G: 0x7f, B: 0x0e, A: 0xff}); err != nil {
		return err
	}
	return addLimits(p, limits)
}

// extent is what the axis of ratios has to show: all of them, and 1.
func extent(lines []row) (low, high float64) {
	all := []float64{0.5, 2}
	for _, r := range lines {
		if r.ratio != (bench.Spread{}) {
			all = append(all, r.ratio.Q1/1.2, r.ratio.Q3*1.2)
		}
	}
	return slices.Min(all), slices.Max(all)
}

func addDots(p *plot.Plot, name string, d dots, c color.Color) error {
	if len(d.XYs) == 0 {
		return nil
	}
	points, err := plotter.NewScatter(d.XYs)
	if err != nil {
		return err
	}
	points.Color, points.Shape, points.Radius = c, draw.CircleGlyph{}, vg.Points(3)
	quartiles, err := plotter.NewXErrorBars(d)
	if err != nil {
		return err
	}
	quartiles.Color = c
	p.Add(quartiles, points)
	p.Legend.Add(name, points)
	return nil
}

func addLimits(p *plot.Plot, limits plotter.XYs) error {
	for _, l := range limits {
		mark, err := plotter.NewLine(plotter.XYs{{X: l.X, Y: l.Y - 0.4}, {X: l.X, Y: l.Y + 0.4}})
		if err != nil {
			return err
		}
		mark.Width, mark.Color = vg.Points(1.5), color.Black
		p.Add(mark)
	}
	return nil
}
