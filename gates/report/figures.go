package report

import (
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/stats"
)

// figures is everything that was measured, for those who doubt.
func figures(v *gates.Verdict) []block {
	var times, rates [][]line
	for _, c := range v.Comparisons {
		if c.Baseline != nil {
			times = append(times, timesRow(c.Shape, "baseline", c.Baseline))
		}
		if c.Candidate != nil {
			times = append(times, timesRow(c.Shape, "candidate", c.Candidate))
		}
		row := []line{codeCell(c.Shape), rate(c.TFLOPs), rate(c.GBs), cell(dash), control(c.Control), control(c.SoloShift), cell(detectable(c.Detectable))}
		if c.Roofline != nil {
			row[3] = cell(share(*c.Roofline))
		}
		for _, said := range row[1:] {
			if !said.blank() {
				rates = append(rates, row)
				break
			}
		}
	}
	var inner []block
	if times != nil {
		inner = append(inner, paragraph{cell("Time per launch in µs.")}, newTable([]column{
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
		inner = append(inner, newTable([]column{
			{title: "shape"},
			{title: "TFLOP/s", right: true, optional: true},
			{title: "GB/s", right: true, optional: true},
			{title: "of roofline", right: true, optional: true},
			{title: "A/A control", optional: true, wrap: true},
			{title: "solo shift", optional: true, wrap: true},
			{title: "detectable", optional: true, wrap: true, spare: 1},
		}, rates), paragraph{legend(rates)})
	}
	if inner == nil {
		return nil
	}
	return []block{details{"All figures", inner}}
}

// timesRow shows zero as missing: older reports have no more than a few of the
// figures.
func timesRow(shape, side string, s *stats.Summary) []line {
	row := []line{codeCell(shape), cell(side), cell(micros(s.P50)), cell(micros(s.P90)), cell(micros(s.P99)),
		cell(micros(s.Mean)), cell(dash), cell(dash), cell(micros(s.Min)), cell(count(s.N))}
	if s.N > 1 && s.Mean > 0 || s.Std > 0 {
		row[6], row[7] = cell(spread(s.Std)), cell(share(s.CV))
	}
	return row
}

func spread(std float64) string {
	if std == 0 {
		return "0"
	}
	return micros(std)
}

func rate(x *float64) line {
	if x == nil {
		return cell(dash)
	}
	return cell(significant(*x, 3))
}

func control(e *gates.Estimate) line {
	if e == nil {
		return cell(dash)
	}
	s := percent(e.Value)
	if e.Lower != nil || e.Upper != nil {
		s += " " + interval(*e, nil)
	}
	return cell(s)
}

// legend explains the columns whose names alone do not.
func legend(rates [][]line) line {
	said := func(column int) bool {
		for _, row := range rates {
			if !row[column].blank() {
				return true
			}
		}
		return false
	}
	s := "Rates are the candidate's, at p50."
	if said(4) {
		s += " A/A control: a second copy of the baseline, measured as if it were the candidate."
	}
	if said(5) {
		s += " Solo shift: how much slower the baseline is beside the candidate than alone."
	}
	if said(6) {
		s += " Detectable: the smallest difference from the goal that this run could show."
	}
	return cell(s)
}
