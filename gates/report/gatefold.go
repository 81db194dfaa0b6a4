package report

import (
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
)

// gistRunes is as much of a gate's finding as its fold shows.
const gistRunes = 200

// gateFold is a gate's finding in one line, and folded behind it what it was found in.
func gateFold(v *gates.Verdict, g gates.GateResult) []block {
	if g.Status == gates.NotRun {
		return nil
	}
	var inner []block
	if _, rest := detailsOf(v, g); len(rest) > 0 {
		var items []line
		for _, d := range rest {
			items = append(items, prose(orDash(d)))
		}
		inner = append(inner, bullets{items})
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
	summary := line{mark(signOfGate(g)), text(" "), bold(orDash(g.Gate)), text(": " + gist(v, g))}
	if !g.Required {
		summary = append(summary, text(" (for information)"))
	}
	switch {
	case inner != nil:
	case told(v, g):
		return nil
	default:
		return []block{paragraph{summary}}
	}
	return []block{details{summary: summary, blocks: inner}}
}

// detailsOf is a gate's details: those of shapes that are not as asked, which say why,
// and the rest. Those of a build that failed are the compiler's words, which are shown.
func detailsOf(v *gates.Verdict, g gates.GateResult) (why, rest []string) {
	if stoppedBuild(v) != nil {
		return nil, nil
	}
	for _, d := range g.Details {
		missed := g.Gate == gates.GatePerformance && speedDecides(v) && slices.ContainsFunc(v.Comparisons, func(c gates.Comparison) bool {
			return c.Status != gates.Passed && strings.HasPrefix(d, c.Shape)
		})
		if missed && len(why) < detailsShown {
			why = append(why, d)
		} else {
			rest = append(rest, d)
		}
	}
	return why, rest
}

// detailsShown is as many of a gate's details as stand in sight.
const detailsShown = 3

// told tells whether the headline says all that a gate has to say in words.
func told(v *gates.Verdict, g gates.GateResult) bool {
	return g.Required && g.Status != gates.Passed && g.Text == v.Summary
}

// gist is what a fold tells before it is opened. What the top of the report says
// already is not repeated.
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
		names[why] = append(names[why], orDash(g.Gate))
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
