package pages

import (
	"cmp"
	"html/template"
	"net/url"
	"slices"

	"github.com/kernelgate/kernelgate/bot/pages/chart"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
)

// A TimeRow is a shape's times, with its interval drawn against its goal.
type TimeRow struct {
	gates.Comparison
	Margin template.HTML
	Here   bool   // its samples are shown
	At     string // address of the page with its samples
}

// timeRows draws the rows of the table of times.
func timeRows(rows []gates.Comparison) []TimeRow {
	var intervals []chart.Interval
	for _, c := range rows {
		i := chart.Interval{Label: c.Label(), Value: c.Speedup.Value, Lower: c.Speedup.Lower, Upper: c.Speedup.Upper, Goal: goalOf(c), Class: rowSign(c).Class}
		if c.Baseline == nil {
			i.Goal = nil // a new kernel has a time but no speedup
		}
		intervals = append(intervals, i)
	}
	list := make([]TimeRow, len(rows))
	for i, drawn := range chart.Margins(intervals) {
		list[i] = TimeRow{Comparison: rows[i], Margin: picture(drawn)}
	}
	return list
}

// byMargin sorts shapes: those that failed or are undecided first, then by the distance between the interval and the goal.
func byMargin(rows []gates.Comparison) []gates.Comparison {
	rows = slices.Clone(rows)
	rank := func(c gates.Comparison) int {
		switch c.Status {
		case gates.Failed:
			return 0
		case gates.Open:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(rows, func(a, b gates.Comparison) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(report.Margin(a), report.Margin(b)))
	})
	return rows
}

// manyShapes is the number of shapes from which on the page offers a filter.
const manyShapes = 9

// choose filters the shapes, and draws the samples of the one that the visitor chose, or of the first.
func (p *RunPage) choose(filter, shape string) {
	p.Filter, p.Filters = filter, len(p.Times) >= manyShapes
	if p.Verdict == nil && p.Evidence == nil {
		return
	}
	if filter != "" {
		times := slices.DeleteFunc(slices.Clone(p.Times), func(r TimeRow) bool { return !matches(filter, r.Shape, r.Dims) })
		p.Hidden, p.Times = len(p.Times)-len(times), times
		p.Speeds, p.Cases = p.Speeds.filtered(filter), p.Cases.filtered(filter)
	}
	if p.Evidence == nil || p.Evidence.Performance == nil {
		return
	}
	var names []string
	for _, r := range p.Times {
		names = append(names, r.Shape)
	}
	for _, s := range p.Evidence.Shapes {
		names = append(names, s.Name)
	}
	if slices.Contains(names, shape) {
		names = append([]string{shape}, names...)
	}
	for _, name := range names {
		if p.Samples = samplesOfShape(p.Evidence, p.Verdict, name); p.Samples != nil {
			break
		}
	}
	p.Times = slices.Clone(p.Times) // the original belongs to the cache
	for i := range p.Times {
		r := &p.Times[i]
		r.Here = p.Samples != nil && p.Samples.Name == r.Shape
		query := url.Values{"shape": {r.Shape}}
		if filter != "" {
			query.Set("shapes", filter)
		}
		r.At = "?" + query.Encode() + "#samples"
	}
}
