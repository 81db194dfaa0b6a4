package report

import (
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/facts"
)

// gistRunes is how much of a gate's finding its heading shows.
const gistRunes = 200

// tablesOf are the tables of gates that have more to show than their details.
var tablesOf = map[gates.Gate]func(*gates.Verdict, gates.GateResult) []block{
	gates.GateBuild:       func(v *gates.Verdict, _ gates.GateResult) []block { return builds(v) },
	gates.GatePTXAS:       func(v *gates.Verdict, _ gates.GateResult) []block { return resources(v) },
	gates.GateCorrectness: func(v *gates.Verdict, _ gates.GateResult) []block { return correctness(v) },
	gates.GateSanitize:    func(v *gates.Verdict, _ gates.GateResult) []block { return sanitizers(v) },
	gates.GatePerformance: func(v *gates.Verdict, _ gates.GateResult) []block { return performance(v) },
	gates.GateEnergy:      energy,
	gates.GateProfile:     profile,
}

// gateDetails is a gate's finding as a heading, with its details and tables below.
func gateDetails(v *gates.Verdict, g gates.GateResult) []block {
	if g.Status == gates.NotRun {
		return nil
	}
	var inner []block
	if !told(v, g) && g.Gate != gates.GatePerformance && runes(plainText(prose(g.Text))) > gistRunes {
		inner = append(inner, paragraph{prose(Clip(g.Text, remedyRunes))})
	}
	if _, rest := detailsOf(v, g); len(rest) > 0 {
		inner = append(inner, bullets{detailLines(rest)})
	}
	if tables := tablesOf[g.Gate]; tables != nil {
		inner = append(inner, tables(v, g)...)
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

// detailsOf separates the details about shapes that do not pass, which say why, from the rest. A
// build that failed has none: the compiler's output is shown instead.
func detailsOf(v *gates.Verdict, g gates.GateResult) (why, rest []facts.Detail) {
	if stoppedBuild(v) != nil {
		return nil, nil
	}
	for _, d := range g.Details {
		if byKind(v, d) {
			continue
		}
		missed := g.Gate == gates.GatePerformance && speedDecides(v) && slices.ContainsFunc(v.Judged(), func(c gates.Comparison) bool {
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
		lines = append(lines, prose(orDash(InNotation(d.Text))))
	}
	return lines
}

// byKind reports whether a table by kind of input shows what a detail says.
func byKind(v *gates.Verdict, d facts.Detail) bool {
	return slices.ContainsFunc(v.Comparisons, func(c gates.Comparison) bool {
		return len(c.Kinds) > 0 && d.Shape == c.Label() && (d.Kind == facts.DetailKindsApart || d.Kind == facts.DetailSlowKind && c.KindLimit != nil)
	})
}

// detailsShown is how many of a gate's details are visible.
const detailsShown = 3

// told reports whether the headline already has a gate's text.
func told(v *gates.Verdict, g gates.GateResult) bool {
	return g.Required && g.Status != gates.Passed && g.Text == v.Summary
}

// gist is what a gate found, in one line. It does not repeat the top of the report.
func gist(v *gates.Verdict, g gates.GateResult) string {
	switch {
	case g.Gate == gates.GatePerformance && len(v.Comparisons) > 0:
		return performanceGist(v)
	case told(v, g):
		return "what was found"
	}
	return Clip(plainText(prose(InNotation(g.Text))), gistRunes)
}

// notRun names the gates that were not run, by reason.
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
			l = append(append(l, text(" (")), append(prose(Clip(why, remedyRunes)), text(")"))...)
		}
		lines = append(lines, l)
	}
	if lines == nil {
		return nil
	}
	return []block{stanza{lines}}
}
