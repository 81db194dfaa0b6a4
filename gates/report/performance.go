package report

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
)

// measured reports whether both sides have times. Shapes with equal machine code, and shapes that an
// earlier gate kept from being timed, have none.
func measured(c gates.Comparison) bool { return c.Baseline != nil && c.Candidate != nil }

// performance is everything that was timed.
func performance(v *gates.Verdict) []block {
	var blocks []block
	blocks = append(blocks, hiddenSpeeds(v)...)
	if l := measuring(v); l != nil {
		blocks = append(blocks, paragraph{l})
	}
	return append(blocks, figures(v)...)
}

// performanceGist is how long the measuring took; the result is visible above.
func performanceGist(v *gates.Verdict) string {
	if m := v.Measuring; m != nil && m.Rounds > 0 {
		s := number.Plural(m.Rounds, "round")
		if d := number.Seconds(m.Seconds); d != dash {
			s += " in " + d
		}
		return s + ", all figures"
	}
	return "all figures"
}

// gain is a speedup with its interval: "+16.1 % [+15.8 %, +16.4 %]", "6.4× [6.3×, 6.5×]". Without an
// interval it is only the value.
func gain(e gates.Estimate, goals []float64) line {
	l := line{bold(e.Gain(goals...))}
	if s := e.Interval(goals...); s != "" {
		l = append(l, text(" "+s))
	}
	return l
}

func interval(e gates.Estimate, goals []float64) string {
	bound := func(x *float64) string {
		if x == nil {
			return dash
		}
		return number.Percent(*x, goals...)
	}
	return "[" + bound(e.Lower) + "," + string(nbsp) + bound(e.Upper) + "]"
}

// goalText finds the figures of a goal such as "speedup >= +10%, p50 <= 5us".
var goalText = regexp.MustCompile(`(-?)(\d+(?:\.\d+)?)[\s\x{a0}]*(%|us|µs|μs)`)

type figuresOfGoal struct{ shares, micros []float64 }

// goalFigures reads the figures of a goal, onto which a shown figure must not be rounded. If it
// cannot read a goal, a figure has one decimal more or less.
func goalFigures(goal string) figuresOfGoal {
	var f figuresOfGoal
	for _, m := range goalText.FindAllStringSubmatch(goal, -1) {
		x, err := strconv.ParseFloat(m[2], 64)
		switch {
		case err != nil:
		case m[3] == "%":
			if m[1] == "-" {
				x = -x
			}
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
	return number.Condition(before)
}

// measuring says how the figures were measured, so that a reader can judge how reliable they are.
func measuring(v *gates.Verdict) line {
	m := v.Measuring
	if m == nil || m.Rounds <= 0 {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Measured in %s of fresh processes", number.Plural(m.Rounds, "round"))
	if m.MaxRounds > 0 {
		fmt.Fprintf(&b, " (at most %d)", m.MaxRounds)
	}
	if m.Pairs > 0 {
		fmt.Fprintf(&b, ", %s", number.Plural(m.Pairs, "pair"))
	}
	if m.Interim > 0 && m.Interims > 1 {
		fmt.Fprintf(&b, ", at the %s of the policy's %d interim analyses", ordinal(m.Interim), m.Interims)
	}
	b.WriteString(". A speedup is the median of paired ratios, baseline/candidate block by block")
	if m.Inputs > 1 {
		fmt.Fprintf(&b, ", for each of %d kinds of input, and their geometric mean", m.Inputs)
	}
	b.WriteString(". The candidate's time next to it is the baseline's p50 divided by the speedup; its own p50 is in the table below.")
	if proper(m.Confidence) {
		fmt.Fprintf(&b, " Intervals are at %s and include the offset that the A/A control shows", number.Confidence(m.Confidence))
		if proper(m.Policy) {
			fmt.Fprintf(&b, ", so that all interim analyses and attempts together keep the policy's %s", number.Confidence(m.Policy))
		}
		b.WriteString(".")
	}
	if m.Attempts > 1 {
		fmt.Fprintf(&b, " This is attempt %d at this machine code; all earlier attempts count.", m.Attempts)
	}
	if m.CodeNumber > 1 && proper(m.Policy) {
		fmt.Fprintf(&b, " This is machine code %d of this change or its author: it is judged at an error rate of %s, out of the policy's %s.", m.CodeNumber, number.SmallShare(m.ErrorRate), number.SmallShare(1-m.Policy))
	}
	switch {
	case m.Disturbed == 1:
		b.WriteString(" Other activity on the machine disturbed 1 sample. It is kept and marked, but not used; a PASS must also hold with it.")
	case m.Disturbed > 1:
		fmt.Fprintf(&b, " Other activity on the machine disturbed %d samples. They are kept and marked, but not used; a PASS must also hold with them.", m.Disturbed)
	}
	return line{text(b.String())}
}

func proper(level float64) bool { return level > 0 && level <= 1 }

func ordinal(n int) string {
	switch {
	case n%100 >= 11 && n%100 <= 13:
	case n%10 == 1:
		return fmt.Sprintf("%dst", n)
	case n%10 == 2:
		return fmt.Sprintf("%dnd", n)
	case n%10 == 3:
		return fmt.Sprintf("%drd", n)
	}
	return fmt.Sprintf("%dth", n)
}

// detectable is a relative distance; none was computed where it is zero.
func detectable(x float64) string {
	if !number.Finite(x) || x <= 0 || x >= 10 {
		return dash
	}
	return number.Share(x)
}
