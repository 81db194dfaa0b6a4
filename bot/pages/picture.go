package pages

import (
	"html/template"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/bot/pages/chart"
	"github.com/kernelgate/kernelgate/gates"
)

// picture marks the output of package chart as safe: chart escapes every text.
func picture(svg string) template.HTML { return template.HTML(svg) }

// A ShapeCharts holds the measurements of one shape.
type ShapeCharts struct {
	Name      string
	Dims      string
	Secret    bool // the size was drawn at random for the run
	Disturbed int
	Kinds     []gates.KindTime // by kind of input, if there are several
	ByKind    template.HTML
	Strip     template.HTML
	ECDF      template.HTML
	Order     template.HTML
	States    template.HTML // of the device, over the same samples
	Clock     string        // a sentence, if the clock moved much
}

// sideNames are the sides in display order.
var sideNames = []struct {
	letter rune
	name   string
}{{gates.SideBaseline, "baseline"}, {gates.SideControl, "control"}, {gates.SideCandidate, "candidate"}}

// samplesOfShape draws the samples of a shape, or returns nil if it was not timed.
func samplesOfShape(e *gates.Evidence, v *gates.Verdict, name string) *ShapeCharts {
	at := slices.IndexFunc(e.Shapes, func(s gates.Shape) bool { return s.Name == name })
	if at < 0 || e.Performance == nil {
		return nil
	}
	shape := e.Shapes[at]
	groups, sequence, disturbed := samplesOf(e.Performance.Rounds, shape.Name)
	if len(groups[0].Values)+len(groups[2].Values) == 0 {
		return nil
	}
	if len(groups[1].Values) == 0 { // older evidence has no control
		groups = []chart.Group{groups[0], groups[2]}
	}
	c := &ShapeCharts{
		Name: shape.Name, Dims: shape.Dims, Secret: shape.Secret, Disturbed: disturbed,
		Strip: picture(chart.Strip(shape.Label()+": every sample", "µs per launch", groups)),
		ECDF:  picture(chart.ECDF(shape.Label()+": share of samples up to a time", "µs per launch", []chart.Group{groups[0], groups[len(groups)-1]})),
		Order: picture(chart.Order(shape.Label()+": samples in the order they were taken", "µs per launch", sequence)),
	}
	c.States, c.Clock = statesOf(e.Performance.Rounds, shape, sequence.Breaks), clockOf(e, shape)
	if c.Kinds = gates.KindTimes(e, name); v.ComparisonOf(name) != nil {
		c.Kinds = kindsOf(*v.ComparisonOf(name), e)
	}
	if len(c.Kinds) > 1 {
		c.ByKind = byKind(shape.Label(), c.Kinds)
	}
	return c
}

// byKind draws the speedup on each kind of input.
func byKind(label string, kinds []gates.KindTime) template.HTML {
	var intervals []chart.Interval
	for _, k := range kinds {
		class := "none"
		switch s := k.Speedup; {
		case s.Lower != nil && *s.Lower > 0:
			class = "pass"
		case s.Upper != nil && *s.Upper < 0:
			class = "fail"
		}
		intervals = append(intervals, chart.Interval{Label: k.Kind, Value: k.Speedup.Value, Lower: k.Speedup.Lower, Upper: k.Speedup.Upper, Class: class, Text: k.Speedup.Gain()})
	}
	return picture(chart.Rows(label+": speedup on each kind of input", intervals))
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

// intervalsOf returns each shape's interval and goal, for pictures outside of a page.
func intervalsOf(comparisons []gates.Comparison) []chart.Interval {
	var rows []chart.Interval
	for _, c := range comparisons {
		if c.Baseline == nil || !c.Speedup.Known() {
			continue // a new kernel has a time but no speedup
		}
		row := chart.Interval{
			Label: c.Label(), Value: c.Speedup.Value, Lower: c.Speedup.Lower, Upper: c.Speedup.Upper, Goal: goalOf(c), Class: rowSign(c).Class,
			Text: c.Speedup.Gain(goalsOf(c)...),
		}
		if c.Goal != "" {
			row.Text += " (" + asked(c.Goal) + ")"
		}
		rows = append(rows, row)
	}
	return rows
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
			spots = append(spots, chart.Spot{Name: c.Label() + ", candidate", Intensity: s.FLOPs / s.Bytes, FLOPs: s.FLOPs / c.CandidateTime() * 1e6, Class: "candidate", Label: c.Shape})
		}
	}
	if len(spots) == 0 {
		return ""
	}
	return picture(chart.Roofline("Roofline of "+e.Device.Name, e.Device.Bandwidth, ceilings, spots))
}
