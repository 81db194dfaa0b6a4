package pages

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"net/url"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/bot/pages/chart"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
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
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(margin(a), margin(b)))
	})
	return rows
}

// margin returns how much faster than its goal a shape is at least, or +Inf if it has no goal.
func margin(c gates.Comparison) float64 {
	goal := goalOf(c)
	if goal == nil || c.Baseline == nil {
		return math.Inf(1)
	}
	least := c.Speedup.Value
	if c.Speedup.Lower != nil {
		least = *c.Speedup.Lower
	}
	return (1+least)/(1+*goal) - 1
}

// An Overview sums up the shapes of a run.
type Overview struct {
	Shapes, Met, Missed, Open int
	Mean                      float64           // geometric mean of the speedups
	Tightest                  *gates.Comparison // closest to its goal, or farthest below it
}

// overviewOf sums up rows that are sorted by margin. It is nil for fewer than two.
func overviewOf(rows []gates.Comparison) *Overview {
	o, logs := &Overview{}, 0.0
	for i, c := range rows {
		if c.Baseline == nil || c.Candidate == nil || !(c.Speedup.Value > -1) {
			continue
		}
		o.Shapes++
		logs += math.Log1p(c.Speedup.Value)
		switch c.Status {
		case gates.Passed:
			o.Met++
		case gates.Failed:
			o.Missed++
		case gates.Open:
			o.Open++
		}
		if !math.IsInf(margin(c), 0) && (o.Tightest == nil || margin(c) < margin(*o.Tightest)) {
			o.Tightest = &rows[i]
		}
	}
	if o.Shapes < 2 {
		return nil
	}
	o.Mean = math.Expm1(logs / float64(o.Shapes))
	return o
}

// Words returns the overview as a sentence.
func (o *Overview) Words() string {
	text := number.Plural(o.Shapes, "shape")
	if o.Met+o.Missed+o.Open > 0 {
		text = fmt.Sprintf("%d of %s %s", o.Met, text, plural(o.Met, "meets its goal", "meet their goals"))
		if o.Missed > 0 {
			text += fmt.Sprintf(", %d %s", o.Missed, plural(o.Missed, "misses it", "miss it"))
		}
		if o.Open > 0 {
			text += fmt.Sprintf(", %d %s undecided", o.Open, plural(o.Open, "is", "are"))
		}
	}
	text += fmt.Sprintf(". Geometric mean %s", number.Speedup(o.Mean))
	if c := o.Tightest; c != nil {
		text += fmt.Sprintf("; tightest on %s: %s, required %s", c.Label(), c.Speedup.Gain(goalsOf(*c)...), strings.ReplaceAll(asked(c.Goal), " ", string(number.NBSP)))
	}
	return text + "."
}

func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
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
