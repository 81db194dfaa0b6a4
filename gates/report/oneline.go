package report

import (
	"github.com/kernelgate/kernelgate/gates"

	"github.com/kernelgate/kernelgate/gates/number"
)

// oneLineRunes is what GitHub takes for a commit status, the shortest of the
// places where the line is shown.
const oneLineRunes = 140

// OneLine is the verdict for a title or a progress line, in plain text of at
// most 140 characters: "PASS sdpa_cpu: +16.1 % [+15.8 %, +16.4 %] on mission",
// "DEFER (too-slow) sdpa_cpu: …".
func OneLine(v *gates.Verdict) string {
	s := wordAndReason(v)
	if kernel := Plain(v.Name()); kernel != "" {
		s += " " + kernel
	}
	if about := deciding(v); about != "" {
		s += ": " + about
	} else if summary := summary(v); summary != "" {
		s += ": " + summary
	}
	return Clip(s, oneLineRunes-runes(existing(v))) + existing(v)
}

// deciding is the figure on which the verdict hangs, where it hangs on one.
func deciding(v *gates.Verdict) string {
	c := decidingShape(v)
	if c == nil || !speedDecides(v) {
		return ""
	}
	goal := goalFigures(c.Goal)
	s := plainText(gain(c.Speedup, goal.shares))
	if c.Shape != "" {
		s += " on " + Plain(c.Label())
	}
	if v.Outcome != gates.Pass && c.Goal != "" {
		s += ", goal " + Plain(goalWords(c.Goal))
	}
	return s
}

// decidingShape is the first shape, or the sum over a step, that does not pass, or else the first target. A regression is of
// something that had to gain nothing. It is nil where nothing that was measured explains a DEFER.
func decidingShape(v *gates.Verdict) *gates.Comparison {
	all := []func(c *gates.Comparison) bool{
		func(c *gates.Comparison) bool {
			return c.Status == gates.Failed && (v.Reason != gates.ReasonRegression || c.Role != gates.RoleTarget)
		},
		func(c *gates.Comparison) bool { return c.Status == gates.Failed },
		func(c *gates.Comparison) bool { return c.Status == gates.Open },
		func(c *gates.Comparison) bool { return c.Role == gates.RoleTarget },
		func(c *gates.Comparison) bool { return true },
	}
	if v.Outcome == gates.Defer {
		all = all[:3]
	}
	for _, wanted := range all {
		for _, c := range v.Judged() {
			if measured(c) && number.Finite(c.Speedup.Value) && wanted(&c) {
				return &c
			}
		}
	}
	return nil
}
