package report

import (
	"fmt"
	"slices"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
	"github.com/kernelgate/kernelgate/gates/stats"
)

// figures is a table of times, and one of the figures derived from them.
func figures(v *gates.Verdict) []block {
	shapes := shapesOf(v.Comparisons, func(c gates.Comparison) string { return c.Dims })
	var times, rates [][]line
	for _, c := range v.Comparisons {
		if c.Baseline != nil {
			times = append(times, timesRow(c.Shape, "baseline", c.Baseline))
		}
		if c.Candidate != nil {
			times = append(times, timesRow(c.Shape, "candidate", c.Candidate))
		}
		row := []line{shapes.cell(c.Shape, c.Dims), cell(orDash(c.Role)), cell(dash), rate(c.TFLOPs), rate(c.GBs), cell(dash), control(c.Control), control(c.SoloShift), control(c.Alone), cell(detectable(c.Detectable))}
		if measured(c) {
			row[2] = cell(number.Percent(-c.LatencyReduction.Value, goalFigures(c.Goal).shares...))
		}
		if c.Roofline != nil {
			row[5] = cell(number.Share(*c.Roofline))
		}
		rates = append(rates, row)
	}
	var blocks []block
	if times != nil {
		blocks = append(blocks, paragraph{cell("Time per launch, each side on its own: the ratio of two medians is not the speedup, which compares launches in pairs.")}, newTable([]column{
			{title: "shape"},
			{title: "side"},
			{title: "p50", right: true},
			{title: "p90", right: true, optional: true},
			{title: "p99", right: true, optional: true},
			{title: "mean", right: true, optional: true},
			{title: "std", right: true, optional: true, spare: 1},
			{title: "CV", right: true, optional: true},
			{title: "min", right: true, optional: true},
			{title: "n", right: true, optional: true, spare: 2},
		}, times))
	}
	if rates != nil {
		blocks = append(blocks, newTable([]column{
			shapes.column(),
			{title: "role"},
			{title: "latency change", right: true, optional: true},
			{title: "TFLOP/s", right: true, optional: true},
			{title: "GB/s", right: true, optional: true},
			{title: "of roofline", right: true, optional: true},
			{title: "A/A control", optional: true, wrap: true},
			{title: "solo shift", optional: true, wrap: true},
			{title: "single launches", optional: true, wrap: true},
			{title: "detectable", optional: true, wrap: true, spare: 1},
		}, rates), paragraph{legend(v, rates)})
	}
	return blocks
}

// timesRow shows zero as missing: older reports have no more than a few of the
// figures.
func timesRow(shape, side string, s *stats.Summary) []line {
	row := []line{codeCell(shape), cell(side), cell(number.Time(s.P50)), cell(number.Time(s.P90)), cell(number.Time(s.P99)),
		cell(number.Time(s.Mean)), cell(dash), cell(dash), cell(number.Time(s.Min)), cell(number.Count(s.N))}
	if s.N > 1 && s.Mean > 0 || s.Std > 0 {
		row[6], row[7] = cell(spread(s.Std)), cell(number.Share(s.CV))
	}
	return row
}

func spread(std float64) string {
	if std == 0 {
		return "0"
	}
	return number.Time(std)
}

func rate(x *float64) line {
	if x == nil {
		return cell(dash)
	}
	return cell(number.Significant(*x, 3))
}

func control(e *gates.Estimate) line {
	if e == nil {
		return cell(dash)
	}
	s := number.Percent(e.Value)
	if e.Lower != nil || e.Upper != nil {
		s += " " + interval(*e, nil)
	}
	return cell(s)
}

// legend explains the columns whose names are not self-explanatory.
func legend(v *gates.Verdict, rates [][]line) line {
	said := func(column int) bool {
		return slices.ContainsFunc(rates, func(row []line) bool { return !row[column].blank() })
	}
	s := "A target must become faster, and a guard must not become slower."
	if i := slices.IndexFunc(v.Comparisons, func(c gates.Comparison) bool { return c.Secret }); i >= 0 {
		s += fmt.Sprintf(" %s is a random size, different in every run, so that no kernel can be fast only on the named sizes.", Plain(v.Comparisons[i].Label()))
	}
	if said(3) || said(4) || said(5) {
		s += " Rates are the candidate's, at p50."
	}
	if said(6) {
		s += " A/A control: a second copy of the baseline, measured as if it were the candidate."
	}
	if said(7) {
		s += " Solo shift: how much slower the baseline is when it alternates with the candidate than when it runs alone."
	}
	if said(8) {
		s += " Single launches: the speedup of launches outside a batch, which must confirm the speedup of batches."
	}
	if said(9) {
		s += " Detectable: the smallest difference from the goal that this run could show."
	}
	return cell(s)
}
