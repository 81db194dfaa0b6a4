package report

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
)

// measured tells whether there is anything to compare: a shape of which the
// same machine code was built, or that an earlier gate kept from being timed,
// has no figures.
func measured(c gates.Comparison) bool { return c.Baseline != nil && c.Candidate != nil }

func performance(v *gates.Verdict) []block {
	if len(v.Comparisons) == 0 {
		return nil
	}
	var dims []string
	for _, c := range v.Comparisons {
		dims = append(dims, c.Dims)
	}
	shapes := shapesOf(dims)
	var rows [][]line
	speedup := "speedup"
	for _, c := range v.Comparisons {
		if c.Speedup.Lower != nil || c.Speedup.Upper != nil {
			speedup = "speedup [lower, upper]"
		}
		goal := goalFigures(c.Goal)
		row := []line{shapes.cell(c.Shape, c.Dims), cell(orDash(c.Role)), cell(goalWords(c.Goal)),
			cell(dash), cell(dash), cell(dash), cell(dash), rowResult(c.Status)}
		if measured(c) {
			row[3] = cell(micros(c.Baseline.P50))
			row[4] = cell(micros(c.Candidate.P50, goal.micros...))
			row[5] = estimate(c.Speedup, goal.shares)
			row[6] = cell(percent(-c.LatencyReduction.Value, goal.shares...))
		}
		rows = append(rows, row)
	}
	blocks := []block{subheading("Performance"), newTable([]column{
		shapes.column(),
		{title: "role", spare: 2},
		{title: "goal", wrap: true},
		{title: "baseline p50 (µs)", right: true},
		{title: "candidate p50 (µs)", right: true},
		{title: speedup, wrap: true},
		{title: "latency change", right: true, spare: 1},
		{title: "result"},
	}, rows)}
	if l := measuring(v); l != nil {
		blocks = append(blocks, paragraph{l})
	}
	if open := undecided(v); open != nil {
		blocks = append(blocks, bullets{open})
	}
	return blocks
}

// estimate is "+16.1 % [+15.8 %, +16.4 %]"; without an interval it is the value
// alone.
func estimate(e gates.Estimate, goals []float64) line {
	l := line{bold(percent(e.Value, goals...))}
	if e.Lower == nil && e.Upper == nil {
		return l
	}
	return append(l, text(" "+interval(e, goals)))
}

func interval(e gates.Estimate, goals []float64) string {
	bound := func(x *float64) string {
		if x == nil {
			return dash
		}
		return percent(*x, goals...)
	}
	return "[" + bound(e.Lower) + "," + string(nbsp) + bound(e.Upper) + "]"
}

// goalText finds the figures of a goal such as "speedup >= +10%, p50 <= 5us".
var goalText = regexp.MustCompile(`(\d+(?:\.\d+)?)[\s\x{a0}]*(%|us|µs|μs)`)

type figuresOfGoal struct{ shares, micros []float64 }

// goalFigures reads what a shown figure must not be rounded onto. A goal that it
// cannot read costs a decimal, nothing more.
func goalFigures(goal string) figuresOfGoal {
	var f figuresOfGoal
	for _, m := range goalText.FindAllStringSubmatch(goal, -1) {
		x, err := strconv.ParseFloat(m[1], 64)
		switch {
		case err != nil:
		case m[2] == "%":
			f.shares = append(f.shares, x/100)
		default:
			f.micros = append(f.micros, x)
		}
	}
	return f
}

// goalWords leaves out the shapes that a goal is for: a row has one.
func goalWords(goal string) string {
	before, _, _ := strings.Cut(goal, " on ")
	return conditionWords(before)
}

// measuring says how the figures were reached, so that a reader can tell what
// they are worth.
func measuring(v *gates.Verdict) line {
	m := v.Measuring
	if m == nil || m.Rounds <= 0 {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Measured in %s of fresh processes", plural(m.Rounds, "round"))
	if m.MaxRounds > 0 {
		fmt.Fprintf(&b, " (at most %d)", m.MaxRounds)
	}
	if m.Pairs > 0 {
		fmt.Fprintf(&b, ", %s", plural(m.Pairs, "pair"))
	}
	if m.Look > 0 && m.Looks > 0 {
		fmt.Fprintf(&b, ", look %d of %d", m.Look, m.Looks)
	}
	if d := duration(m.Seconds); d != dash {
		fmt.Fprintf(&b, ", in %s", d)
	}
	b.WriteString(". A speedup is the median of paired ratios, baseline/candidate block by block")
	if m.Inputs > 1 {
		fmt.Fprintf(&b, ", for each of %d kinds of input, and their geometric mean", m.Inputs)
	}
	b.WriteString(": the two p50 may give another one.")
	if proper(m.Confidence) {
		fmt.Fprintf(&b, " Intervals at %s, the offset that the A/A control shows included", confidence(m.Confidence))
		if proper(m.Policy) {
			fmt.Fprintf(&b, ", so that all looks and attempts together keep the policy's %s", confidence(m.Policy))
		}
		b.WriteString(".")
	}
	if m.Attempts > 1 {
		fmt.Fprintf(&b, " Attempt %d at this machine code: those before it count, whatever became of them.", m.Attempts)
	}
	switch {
	case m.Spoiled == 1:
		b.WriteString(" 1 sample was spoiled from outside: kept, marked, not used; a pass must hold with it too.")
	case m.Spoiled > 1:
		fmt.Fprintf(&b, " %d samples were spoiled from outside: kept, marked, not used; a pass must hold with them too.", m.Spoiled)
	}
	return line{text(b.String())}
}

func proper(level float64) bool { return level > 0 && level <= 1 }

// undecided says of every open shape what the run could have shown, and what it
// would take.
func undecided(v *gates.Verdict) []line {
	var out []line
	for _, c := range v.Comparisons {
		if c.Status != gates.Open {
			continue
		}
		var parts []string
		if d := detectable(c.Detectable); d != dash {
			parts = append(parts, "this run could show a difference of "+d+" from the goal, no less")
		}
		switch m := v.Measuring; {
		case c.RoundsNeeded <= 0:
		case c.RoundsNeeded >= unaffordable:
			parts = append(parts, "the estimate stands so close to the goal that no affordable number of rounds would decide")
		case m != nil && m.MaxRounds > 0 && c.RoundsNeeded > m.MaxRounds:
			parts = append(parts, fmt.Sprintf("if the estimate is the truth, %d rounds would decide (the policy allows %d)", c.RoundsNeeded, m.MaxRounds))
		default:
			parts = append(parts, fmt.Sprintf("if the estimate is the truth, %d rounds would decide", c.RoundsNeeded))
		}
		if parts != nil {
			out = append(out, line{mono(orDash(c.Shape)), text(" is open: " + strings.Join(parts, "; ") + ".")})
		}
	}
	return out
}

// unaffordable is a number of rounds that nobody would wait for.
const unaffordable = 10_000

// detectable is a relative distance; none was computed where it is zero.
func detectable(x float64) string {
	if !finite(x) || x <= 0 || x >= 10 {
		return dash
	}
	return share(x)
}
