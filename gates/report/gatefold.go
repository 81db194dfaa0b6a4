package report

import (
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/facts"
)

// gistRunes is as much of a gate's finding as its heading shows.
const gistRunes = 200

// gateDetails is a gate's finding as a heading, and below it what it was found in.
func gateDetails(v *gates.Verdict, g gates.GateResult) []block {
	if g.Status == gates.NotRun {
		return nil
	}
	var inner []block
	if _, rest := detailsOf(v, g); len(rest) > 0 {
		inner = append(inner, bullets{detailLines(rest)})
	}
	switch g.Gate {
	case gates.GateBuild:
		inner = append(inner, builds(v)...)
	case gates.GatePTXAS:
		inner = append(inner, resources(v)...)
	case gates.GateCorrectness:
		inner = append(inner, correctness(v)...)
	case gates.GateSanitize:
		inner = append(inner, sanitizers(v)...)
	case gates.GatePerformance:
		inner = append(inner, performance(v)...)
	case gates.GateProfile:
		inner = append(inner, profile(v, g)...)
	}
	if inner == nil && told(v, g) {
		return nil
	}
	head := line{mark(signOfGate(g)), text(" " + orDash(g.Gate.Title(v.Device.Kind)) + ": " + gist(v, g))}
	if !g.Required {
		head = append(head, text(" (for information)"))
	}
	return append([]block{heading{4, head}}, inner...)
}

// detailsOf is a gate's details: those of shapes that are not as asked, which say why,
// and the rest. Those of a build that failed are the compiler's words, which are shown.
func detailsOf(v *gates.Verdict, g gates.GateResult) (why, rest []facts.Detail) {
	if stoppedBuild(v) != nil {
		return nil, nil
	}
	for _, d := range g.Details {
		if byKind(v, d) {
			continue
		}
		missed := g.Gate == gates.GatePerformance && speedDecides(v) && slices.ContainsFunc(v.Comparisons, func(c gates.Comparison) bool {
			return c.Status != gates.Passed && (d.Shape == c.Shape || d.Shape == c.Label())
		})
		if missed && len(why) < detailsShown {
			why = append(why, d)
		} else {
			rest = append(rest, d)
		}
	}
	return why, rest
}

func detailLines(all []facts.Detail) []line {
	var lines []line
	for _, d := range all {
		lines = append(lines, prose(orDash(d.Text)))
	}
	return lines
}

// byKind tells whether a detail says what a table by kind of input shows.
func byKind(v *gates.Verdict, d facts.Detail) bool {
	return slices.ContainsFunc(v.Comparisons, func(c gates.Comparison) bool {
		return len(c.Kinds) > 0 && d.Shape == c.Label() && (d.Kind == facts.DetailKindsApart || d.Kind == facts.DetailSlowKind && c.KindLimit != nil)
	})
}

// detailsShown is as many of a gate's details as stand in sight.
const detailsShown = 3

// told tells whether the headline says all that a gate has to say in words.
func told(v *gates.Verdict, g gates.GateResult) bool {
	return g.Required && g.Status != gates.Passed && g.Text == v.Summary
}

// gist is what a gate found in one line. What the top of the report says already is
// not repeated.
func gist(v *gates.Verdict, g gates.GateResult) string {
	switch {
	case g.Gate == gates.GatePerformance && len(v.Comparisons) > 0:
		return performanceGist(v)
	case told(v, g):
		return "what was found"
	}
	return Clip(plainText(prose(g.Text)), gistRunes)
}

// notRun names the gates that there was nothing to do for, by the reason.
func notRun(v *gates.Verdict) []block {
	var reasons []string
	names := map[string][]string{}
	for _, g := range v.Gates {
		if g.Status != gates.NotRun {
			continue
		}
		why := Plain(g.Text)
		if !slices.Contains(reasons, why) {
			reasons = append(reasons, why)
		}
		names[why] = append(names[why], orDash(g.Gate.Title(v.Device.Kind)))
	}
	var lines []line
	for _, why := range reasons {
		l := line{mark(signNone), text(" Not run: " + strings.Join(names[why], ", "))}
		if why != "" {
			l = append(append(l, text(" (")), append(prose(Clip(why, gistRunes)), text(")"))...)
		}
		lines = append(lines, l)
	}
	if lines == nil {
		return nil
	}
	return []block{stanza{lines}}
}
