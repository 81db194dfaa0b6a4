package report

import (
	"slices"

	"github.com/kernelgate/kernelgate/gates"
)

// build puts the verdict into words, once for all forms: the verdict and why, a row
// for each shape, what would make it pass. Everything else is folded, a fold for each
// gate with its finding in one line. Nothing is said twice.
func build(v *gates.Verdict) document {
	var d document
	add := func(name string, keep int, blocks []block) {
		if len(blocks) > 0 {
			d.sections = append(d.sections, section{name, keep, blocks})
		}
	}
	add("title", 100, []block{heading{3, line{mark(signOfVerdict(v.Outcome, v.Reason)), text(" " + Headline(v))}}})
	add("the shapes", 90, shapes(v))
	add("what stopped the build", 88, stoppedBuild(v))
	add("what would make it pass", 85, toPass(v))
	add("notes", 60, notes(v))
	add("the rule", 50, judgedBy(v))
	for i, g := range v.Gates {
		keep := 45 - i
		switch {
		case g.Required && g.Status != gates.Passed:
			keep = 70
		case g.Gate == gates.GatePerformance:
			keep = 48
		case g.Gate == gates.GateBuild:
			keep = 20
		}
		add(orDash(g.Gate), keep, gateFold(v, g))
	}
	add("the machine code", 15, machineCode(v))
	add("gates that were not run", 46, notRun(v))
	add("rivals", 30, rivals(v))
	add("provenance", 25, provenance(v))
	return d
}

func shapes(v *gates.Verdict) []block {
	var blocks []block
	if shown, _ := speedRows(v); len(shown) > 0 {
		blocks = append(blocks, stanza{shown})
	}
	for _, g := range v.Gates {
		if why, _ := detailsOf(v, g); len(why) > 0 {
			blocks = append(blocks, bullets{proseLines(why)})
		}
	}
	if v.Imported != "" {
		blocks = append(blocks, paragraph{imported(v)})
	}
	return blocks
}

// above tells whether any of a section stands in sight.
func (s section) above() bool {
	return slices.ContainsFunc(s.blocks, func(bl block) bool {
		_, folded := bl.(details)
		return !folded
	})
}
