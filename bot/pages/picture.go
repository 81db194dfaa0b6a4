package pages

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/bot/pages/chart"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
)

// picture marks the output of package chart as safe: chart escapes every text.
func picture(svg string) template.HTML { return template.HTML(svg) }

// A ShapeCharts holds the measurements of one shape.
type ShapeCharts struct {
	Name      string
	Dims      string
	Secret    bool // the size was drawn at random for the run
	Role      gates.Role
	Failed    bool
	Open      bool // shown unfolded, because it failed
	Disturbed int
	Strip     template.HTML
	ECDF      template.HTML
	Order     template.HTML
}

// sideNames are the sides in display order.
var sideNames = []struct {
	letter rune
	name   string
}{{gates.SideBaseline, "baseline"}, {gates.SideControl, "control"}, {gates.SideCandidate, "candidate"}}

// shapes draws the samples of every shape that was timed.
func shapes(e *gates.Evidence, v *gates.Verdict) []ShapeCharts {
	if e.Performance == nil {
		return nil
	}
	var list []ShapeCharts
	for _, shape := range e.Shapes {
		groups, sequence, disturbed := samplesOf(e.Performance.Rounds, shape.Name)
		if len(groups[0].Values)+len(groups[2].Values) == 0 {
			continue
		}
		if len(groups[1].Values) == 0 { // older evidence has no control
			groups = []chart.Group{groups[0], groups[2]}
		}
		c := ShapeCharts{
			Name: shape.Name, Dims: shape.Dims, Secret: shape.Secret, Role: roleOf(v, shape.Name), Disturbed: disturbed,
			Strip: picture(chart.Strip(shape.Label()+": every sample", "µs per launch", groups)),
			ECDF:  picture(chart.ECDF(shape.Label()+": share of samples up to a time", "µs per launch", []chart.Group{groups[0], groups[len(groups)-1]})),
			Order: picture(chart.Order(shape.Label()+": samples in the order they were taken", "µs per launch", sequence)),
		}
		if row := v.ComparisonOf(shape.Name); row != nil {
			c.Failed = row.Status == gates.Failed || row.Status == gates.Open
		}
		c.Open = c.Failed
		list = append(list, c)
	}
	slices.SortStableFunc(list, func(a, b ShapeCharts) int { return rank(a.Failed, a.Role) - rank(b.Failed, b.Role) })
	return list
}

// rank returns a shape's position in a list: failed shapes first, then target shapes.
func rank(failed bool, role gates.Role) int {
	switch {
	case failed:
		return 0
	case role == gates.RoleTarget:
		return 1
	}
	return 2
}

func failingFirst(rows []gates.Comparison) []gates.Comparison {
	rows = slices.Clone(rows)
	at := func(c gates.Comparison) int {
		return rank(c.Status == gates.Failed || c.Status == gates.Open, c.Role)
	}
	slices.SortStableFunc(rows, func(a, b gates.Comparison) int { return at(a) - at(b) })
	return rows
}

// A KindCharts shows how the kinds of input of a shape differ.
type KindCharts struct {
	gates.Comparison
	Chart template.HTML
	Open  bool // shown unfolded
}

// kinds returns the shapes whose speedup depends on the kind of input.
func kinds(rows []gates.Comparison) []KindCharts {
	var list []KindCharts
	for _, c := range rows {
		if len(c.Kinds) == 0 {
			continue
		}
		var intervals []chart.Interval
		for _, k := range c.Kinds {
			class := "none"
			switch s := k.Speedup; {
			case s.Lower != nil && *s.Lower > 0:
				class = "pass"
			case s.Upper != nil && *s.Upper < 0:
				class = "fail"
			}
			intervals = append(intervals, chart.Interval{Label: k.Kind, Value: k.Speedup.Value, Lower: k.Speedup.Lower, Upper: k.Speedup.Upper, Class: class, Text: k.Speedup.Gain()})
		}
		list = append(list, KindCharts{c, picture(chart.Forest(c.Label()+": speedup on each kind of input", intervals)), c.Status == gates.Failed || c.Status == gates.Open})
	}
	return list
}

func roleOf(v *gates.Verdict, shape string) gates.Role {
	if c := v.ComparisonOf(shape); c != nil {
		return c.Role
	}
	return gates.RoleInfo
}

// samplesOf groups a shape's samples by side, in microseconds. It counts disturbed samples and
// leaves them out, like the verdict.
func samplesOf(rounds []gates.Round, shape string) ([]chart.Group, chart.Sequence, int) {
	groups := make([]chart.Group, len(sideNames))
	sequence := chart.Sequence{Values: make([][]float64, len(sideNames))}
	for i, side := range sideNames {
		groups[i] = chart.Group{Name: side.name, Class: side.name}
	}
	sequence.Groups = slices.Clone(groups)
	disturbed, n := 0, 0
	for _, round := range rounds {
		for _, series := range round.Series {
			if series.Shape != shape {
				continue
			}
			sequence.Breaks = append(sequence.Breaks, n)
			i := 0
			for _, letter := range series.Order {
				if letter == ' ' {
					continue
				}
				if i >= len(series.Nanos) {
					break
				}
				for g, side := range sideNames {
					value := math.NaN()
					if side.letter == letter && !slices.Contains(series.Disturbed, i) {
						value = series.Nanos[i] / 1e3
						groups[g].Values = append(groups[g].Values, value)
					}
					sequence.Values[g] = append(sequence.Values[g], value)
				}
				i++
				n++
			}
			disturbed += len(series.Disturbed)
		}
	}
	return groups, sequence, disturbed
}

// forest draws each shape's interval and goal.
func forest(comparisons []gates.Comparison) template.HTML {
	var rows []chart.Interval
	for _, c := range comparisons {
		if c.Baseline == nil {
			continue // a new kernel has a time but no speedup
		}
		row := chart.Interval{
			Label: c.Label(), Value: c.Speedup.Value, Lower: c.Speedup.Lower, Upper: c.Speedup.Upper, Goal: goalOf(c), Class: rowSign(c).Class,
			Text: c.Speedup.Gain(),
		}
		if c.Goal != "" {
			row.Text += " (" + asked(c.Goal) + ")"
		}
		rows = append(rows, row)
	}
	if rows == nil {
		return ""
	}
	return picture(chart.Forest("Speedup of each shape against its goal", rows))
}

var goalPattern = regexp.MustCompile(`^(speedup|latency reduction)?\s*[<>]?=?\s*([+−-]?[0-9.]+)[\s\x{a0}]*%`)

// goalOf parses a goal as a speedup, or returns nil if it is not one.
func goalOf(c gates.Comparison) *float64 {
	m := goalPattern.FindStringSubmatch(strings.TrimSpace(c.Goal))
	if m == nil {
		return nil
	}
	value, err := strconv.ParseFloat(strings.NewReplacer("−", "-", "+", "").Replace(m[2]), 64)
	if err != nil {
		return nil
	}
	value /= 100
	if m[1] == "latency reduction" {
		if value >= 1 {
			return nil
		}
		value = 1/(1-value) - 1
	}
	return &value
}

// bars compares the resources of both sides that the compiler reported.
func bars(v *gates.Verdict) template.HTML {
	var rows []chart.Bar
	for _, r := range v.Resources {
		if none := func(x *float64) bool { return x == nil || *x == 0 }; none(r.Baseline) && none(r.Candidate) && r.Status != gates.Failed {
			continue
		}
		text := figure(r.Baseline, r.Unit) + " → " + figure(r.Candidate, r.Unit)
		if r.Limit != "" {
			text += " (" + number.PlainCondition(r.Limit) + ")"
		}
		rows = append(rows, chart.Bar{Label: r.Name, Before: r.Baseline, After: r.Candidate, Text: text, Class: statusOf(r.Status).Class})
	}
	if rows == nil {
		return ""
	}
	return picture(chart.Bars("What the compiler reports about baseline and candidate", rows))
}

// grid shows every case: one row for each shape and kind of input, one column for each seed.
func grid(e *gates.Evidence, v *gates.Verdict) template.HTML {
	if e.Correctness == nil || len(e.Correctness.Cases) == 0 {
		return ""
	}
	var seeds []uint64
	secret := 0
	rows := map[string][]gates.Case{}
	var order []string
	for _, c := range e.Correctness.Cases {
		label := c.Shape + " · " + c.Distribution
		if c.Secret {
			label = "secret · " + c.Distribution
		} else if !slices.Contains(seeds, c.Seed) {
			seeds = append(seeds, c.Seed)
		}
		if rows[label] == nil {
			order = append(order, label)
		}
		rows[label] = append(rows[label], c)
		if c.Secret {
			secret = max(secret, len(rows[label]))
		}
	}
	slices.Sort(seeds)
	const most = 200
	var columns []string
	for _, seed := range seeds {
		columns = append(columns, fmt.Sprint("seed ", seed))
	}
	for len(columns) < secret {
		columns = append(columns, "")
	}
	if len(columns) > most || len(order) > most {
		return ""
	}
	var list []chart.GridRow
	for _, label := range order {
		cases := rows[label]
		failed := failures(cases, v)
		row := chart.GridRow{Label: label, Cells: make([]chart.Cell, len(columns))}
		for i, c := range cases {
			at := i
			if !c.Secret {
				at, _ = slices.BinarySearch(seeds, c.Seed)
			}
			class := "pass"
			if failed[i] {
				class = "fail"
			}
			row.Cells[at] = chart.Cell{Class: class, Hint: caseWords(c)}
		}
		list = append(list, row)
	}
	return picture(chart.Grid("Correctness, case by case", columns, list))
}

// failures reports which cases of a row failed. The verdict has only their number. The cases with
// the worst errors are taken as the failed ones.
func failures(cases []gates.Case, v *gates.Verdict) []bool {
	failed, count := make([]bool, len(cases)), 0
	for i, c := range cases {
		x := c.Errors
		failed[i] = c.Failure != nil || c.OutOfBounds || c.StateKept || len(c.InputsChanged) > 0 || x != nil && (x.NaN > 0 || x.Inf > 0 || x.Unwritten > 0)
		if failed[i] {
			count++
		}
	}
	if v == nil {
		return failed
	}
	for _, row := range v.Correctness {
		if row.Shape != cases[0].Shape || row.Distribution != cases[0].Distribution || row.Secret != cases[0].Secret {
			continue
		}
		byWorst := make([]int, len(cases))
		for i := range byWorst {
			byWorst[i] = i
		}
		badness := func(i int) float64 {
			if x := cases[i].Errors; x != nil {
				return float64(x.Bad)/float64(max(1, x.Elements)) + x.Norm
			}
			return 0
		}
		slices.SortStableFunc(byWorst, func(a, b int) int { return cmp.Compare(badness(b), badness(a)) })
		for _, i := range byWorst {
			if count < row.Total-row.Passed && !failed[i] {
				failed[i] = true
				count++
			}
		}
	}
	return failed
}

// caseWords describes one case with its worst element.
func caseWords(c gates.Case) string {
	text := fmt.Sprintf("%s (%s), %s, seed %d", c.Shape, c.Dims, c.Distribution, c.Seed)
	if x := c.Errors; x != nil {
		text += fmt.Sprintf(": worst |error| %.3g, norm %.3g, %d of %d elements bad", x.MaxAbs, x.Norm, x.Bad, x.Elements)
		if x.NaN+x.Inf+x.Unwritten > 0 {
			text += fmt.Sprintf(", %d NaN, %d Inf, %d unwritten", x.NaN, x.Inf, x.Unwritten)
		}
	}
	if c.Failure != nil {
		text += ": " + string(c.Failure.Kind) + ": " + c.Failure.Detail
	}
	return text
}

// roofline shows both sides below the limits of the device.
func roofline(e *gates.Evidence, v *gates.Verdict) template.HTML {
	if v == nil || e.Device.Bandwidth <= 0 {
		return ""
	}
	var ceilings []chart.Ceiling
	var spots []chart.Spot
	for _, c := range v.Comparisons {
		i := slices.IndexFunc(e.Shapes, func(s gates.Shape) bool { return s.Name == c.Shape })
		if i < 0 || e.Shapes[i].FLOPs <= 0 || e.Shapes[i].Bytes <= 0 {
			continue
		}
		s := e.Shapes[i]
		if peak := e.Device.Peak[s.Peak]; peak > 0 && !slices.ContainsFunc(ceilings, func(c chart.Ceiling) bool { return c.Name == s.Peak }) {
			ceilings = append(ceilings, chart.Ceiling{Name: s.Peak, FLOPs: peak})
		}
		if c.Baseline != nil && c.Baseline.P50 > 0 {
			spots = append(spots, chart.Spot{Name: c.Label() + ", baseline", Intensity: s.FLOPs / s.Bytes, FLOPs: s.FLOPs / c.Baseline.P50 * 1e6, Class: "baseline"})
		}
		if c.Candidate != nil && c.Candidate.P50 > 0 {
			spots = append(spots, chart.Spot{Name: c.Label() + ", candidate", Intensity: s.FLOPs / s.Bytes, FLOPs: s.FLOPs / c.Candidate.P50 * 1e6, Class: "candidate"})
		}
	}
	if len(spots) == 0 {
		return ""
	}
	return picture(chart.Roofline("Roofline of "+e.Device.Name, e.Device.Bandwidth, ceilings, spots))
}
