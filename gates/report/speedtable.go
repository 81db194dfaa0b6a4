package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
)

const (
	rowsShown  = 8
	kindsShown = 2  // shapes with a visible table by kind of input
	shapeRunes = 40 // of a shape's name
)

// speedDecides reports whether the verdict hangs on the shapes' speed. Where it hangs on something else, marks at the
// rows would contradict it.
func speedDecides(v *gates.Verdict) bool {
	switch v.Reason {
	case "", gates.ReasonTooSlow, gates.ReasonRegression, gates.ReasonInconclusive:
		return v.Outcome == gates.Pass || v.Outcome == gates.Defer
	}
	return false
}

// speeds is the comparison table, and the same by kind of input where a shape that does not pass gains differently on them.
func speeds(v *gates.Verdict) []block {
	if v.Outcome != gates.Pass && v.Outcome != gates.Defer {
		return nil // the times of a runner that is not fit to measure are no comparison
	}
	if len(v.Comparisons) == 0 {
		return unjudged(v)
	}
	shown, hidden := byUrgency(v)
	var blocks []block
	overview := OverviewOf(v.Comparisons)
	if overview != nil && len(hidden) > 0 {
		blocks = append(blocks, paragraph{cell(overview.Words())})
	}
	if len(shown) > 0 {
		blocks = append(blocks, speedTable(v, shown))
	}
	if words := WeightedWords(v); words != "" {
		blocks = append(blocks, paragraph{cell(words)})
	}
	if len(hidden) > 0 && overview != nil {
		blocks = append(blocks, paragraph{line{text(fmt.Sprintf("%d more.", len(hidden)))}})
	} else if len(hidden) > 0 {
		missed := 0
		for _, c := range hidden {
			if c.Status != gates.Passed {
				missed++
			}
		}
		more := line{text(fmt.Sprintf("%s more, which meet their goals.", number.Plural(len(hidden), "shape")))}
		if missed > 0 {
			more = line{text(fmt.Sprintf("%s more, %d of which do not meet their goals.", number.Plural(len(hidden), "shape"), missed))}
		}
		blocks = append(blocks, paragraph{more})
	}
	for _, c := range kindsInSight(v) {
		blocks = append(blocks, kindTable(c)...)
	}
	for _, c := range shown {
		if c.Secret {
			blocks = append(blocks, paragraph{append(codeCell(c.Shape), text(" is a random size, different in every run: "+c.Dims+"."))})
		}
	}
	return blocks
}

// unjudged is the times that were measured although an earlier gate decided.
func unjudged(v *gates.Verdict) []block {
	if len(v.Unjudged) == 0 {
		return nil
	}
	times := speedTable(v, v.Unjudged[:min(len(v.Unjudged), rowsShown)])
	said := "Measured, and not judged: the verdict hangs on " + reasonWords(v.Reason) + "."
	if more := len(v.Unjudged) - rowsShown; more > 0 {
		said += fmt.Sprintf(" %s more.", number.Plural(more, "shape"))
	}
	return []block{times, paragraph{cell(said)}}
}

func reasonWords(r gates.Reason) string {
	switch r {
	case gates.ReasonCorrectness:
		return "wrong outputs"
	case gates.ReasonResources:
		return "resources"
	}
	return "an earlier gate"
}

// hiddenSpeeds is the shapes that are not visible, and those of a verdict whose times are not
// reliable.
func hiddenSpeeds(v *gates.Verdict) []block {
	_, hidden := byUrgency(v)
	if v.Outcome != gates.Pass && v.Outcome != gates.Defer {
		hidden = v.Comparisons
	}
	var blocks []block
	if len(hidden) > 0 {
		blocks = append(blocks, speedTable(v, hidden))
	}
	seen := kindsInSight(v)
	for _, c := range v.Comparisons {
		if len(c.Kinds) > 0 && !slices.ContainsFunc(seen, func(s gates.Comparison) bool { return s.Shape == c.Shape }) {
			blocks = append(blocks, kindTable(c)...)
		}
	}
	return blocks
}

// byUrgency separates the visible shapes, those that do not pass first, from the rest.
func byUrgency(v *gates.Verdict) (shown, hidden []gates.Comparison) {
	all := slices.Clone(v.Judged())
	slices.SortStableFunc(all, func(a, b gates.Comparison) int { return urgency(b) - urgency(a) })
	n := min(len(all), rowsShown)
	return all[:n], all[n:]
}

func urgency(c gates.Comparison) int {
	switch {
	case c.Status == gates.Failed && c.Role != gates.RoleTarget: // a loss counts before a missed gain
		return 4
	case c.Status == gates.Failed:
		return 3
	case c.Status == gates.Open:
		return 2
	case c.Role == gates.RoleTarget:
		return 1
	}
	return 0
}

func speedTable(v *gates.Verdict, shapes []gates.Comparison) table {
	var rows [][]line
	for _, c := range shapes {
		rows = append(rows, speedRow(c, speedDecides(v)))
	}
	bounded := slices.ContainsFunc(shapes, func(c gates.Comparison) bool { return c.Speedup.Lower != nil || c.Speedup.Upper != nil })
	return newTable([]column{
		{title: "shape", wrap: true},
		{title: "baseline", right: true, optional: true},
		{title: "candidate", right: true, optional: true},
		gainColumn(bounded),
		{title: "required", wrap: true, optional: true},
	}, rows)
}

func gainColumn(bounded bool) column {
	if bounded {
		return column{title: "speedup [interval]", wrap: true, optional: true}
	}
	return column{title: "speedup", wrap: true, optional: true}
}

// speedRow is a shape with its times, its speedup and its goal. A target is in bold.
func speedRow(c gates.Comparison, marked bool) []line {
	name := line{}
	if marked {
		name = append(name, mark(signOf(c.Status)), text(string(nbsp)))
	}
	if shape := Clip(orDash(Plain(c.Shape)), shapeRunes); c.Role == gates.RoleTarget {
		name = append(name, bold(shape))
	} else {
		name = append(name, text(shape))
	}
	goal := goalFigures(c.Goal)
	row := []line{name, cell(dash), cell(dash), cell(dash), cell(orDash(askedWords(c.Goal)))}
	if c.Baseline != nil {
		row[1] = cell(number.Time(c.Baseline.P50))
	}
	if c.Candidate != nil {
		row[2] = cell(number.Time(c.CandidateTime(), goal.micros...))
	}
	switch {
	case measured(c) && !c.Speedup.Known():
		row[3] = cell("too few samples")
	case measured(c):
		row[3] = gain(c.Speedup, goal.shares)
	case c.Same:
		row[3] = cell("same machine code")
	case c.Candidate == nil:
		row[3] = cell("not measured")
	}
	return row
}

// kindsInSight is the shapes that do not pass and gain differently by kind of input: the mean of the
// kinds does not show why.
func kindsInSight(v *gates.Verdict) []gates.Comparison {
	if v.Outcome != gates.Defer || !speedDecides(v) {
		return nil
	}
	shown, _ := byUrgency(v)
	shown = slices.DeleteFunc(slices.Clone(shown), func(c gates.Comparison) bool {
		return len(c.Kinds) == 0 || c.Status != gates.Failed && c.Status != gates.Open
	})
	return shown[:min(len(shown), kindsShown)]
}

// kindTable is a shape by kind of input, the least gain first.
func kindTable(c gates.Comparison) []block {
	kinds := slices.Clone(c.Kinds)
	slices.SortStableFunc(kinds, func(a, b gates.KindTime) int { return cmp.Compare(a.Speedup.Value, b.Speedup.Value) })
	var goals []float64
	said := append(codeCell(Clip(Plain(c.Label()), shapeRunes)), text(" by kind of input:"))
	if c.KindLimit != nil {
		goals = []float64{*c.KindLimit}
		said = append(said[:1], text(" by kind of input, each of which must reach "+limit(*c.KindLimit)+":"))
	}
	var rows [][]line
	bounded := false
	for _, k := range kinds {
		name := cell(orDash(Plain(k.Kind)))
		if c.KindLimit != nil && k.Speedup.Value < *c.KindLimit {
			name = line{mark(signOf(c.Status)), text(string(nbsp) + orDash(Plain(k.Kind)))}
		}
		bounded = bounded || k.Speedup.Lower != nil || k.Speedup.Upper != nil
		rows = append(rows, []line{name, cell(number.Time(k.Baseline)), cell(number.Time(k.CandidateTime())), gain(k.Speedup, goals)})
	}
	return []block{paragraph{said}, newTable([]column{
		{title: "inputs", wrap: true},
		{title: "baseline", right: true},
		{title: "candidate", right: true},
		gainColumn(bounded),
	}, rows)}
}

// askedWords is the goal of a speedup, without the word speedup.
func askedWords(goal string) string {
	words := goalWords(goal)
	if words == dash {
		return ""
	}
	if rest, ok := strings.CutPrefix(words, "speedup "); ok && !strings.Contains(rest, " and ") {
		words = rest
	}
	return Clip(clean(words), 80)
}
