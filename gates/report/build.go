package report

import (
	"fmt"

	"github.com/kernelgate/kernelgate/gates"
)

// build makes the document of a verdict, once for all forms: the verdict with its number, the
// comparison table, the resources before and after, the gates in one line, the steps to pass, and
// where to find more. The rest is folded.
func build(v *gates.Verdict, to Links) document {
	var d document
	see := func(name string, keep int, blocks []block) {
		if len(blocks) > 0 {
			d.sections = append(d.sections, section{name: name, keep: keep, brief: keep >= 80, blocks: blocks})
		}
	}
	fold := func(name, more string, keep int, blocks []block) {
		if len(blocks) > 0 {
			d.sections = append(d.sections, section{name: name, more: more, keep: keep, folded: true, blocks: blocks})
		}
	}
	see("title", 100, []block{heading{3, append(line{mark(signFor(v)), text(" ")}, prose(Headline(v))...)}})
	see("what blocks nothing", 95, enforcement(v))
	see("the shapes", 90, speeds(v))
	see("why the times differ", 84, reasons(v))
	see("the resources in sight", 55, resourceLine(v))
	see("the gates", 56, gateLine(v))
	see("what stopped the build", 88, stoppedBuild(v))
	see("the finding in full", 87, cutOff(v))
	see("why", 86, whyNot(v))
	if v.Outcome == gates.Defer && v.Blocks() {
		see(meaning, 57, []block{paragraph{cell(Meaning)}})
	}
	if v.Outcome == gates.Error && v.Blocks() {
		see(meaning, 57, []block{paragraph{cell(meaningOfError)}})
	}
	see(whatToDo, 85, toPass(v))
	see("the rule", 50, whereFrom(v, to))
	fold("more steps", "more steps", 58, moreSteps(v))
	if len(v.Notes)+len(v.Unsteady) > 0 {
		fold("notes", "", 60, append([]block{heading{4, cell("Notes")}}, notes(v)...))
		d.sections[len(d.sections)-1].asked = true
	}
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
		fold(orDash(g.Gate.Title(v.Device.Kind)), "all figures", keep, gateDetails(v, g))
	}
	fold("what warps wait for", "what warps wait for", 16, waits(v))
	fold("the machine code", "the machine code", 15, machineCode(v))
	fold("gates that were not run", "", 46, notRun(v))
	if len(v.Rivals) > 0 {
		fold("rivals", "", 30, rivals(v))
		d.sections[len(d.sections)-1].asked = true
	}
	fold("provenance", "provenance and how to reproduce", 25, provenance(v))
	return d
}

// Sections that a verdict which somebody overrides does not show, or not in sight.
const (
	meaning  = "what the verdict means"
	whatToDo = "what would make it pass"
)

// sight separates the visible sections from the folded ones.
func (d document) sight() (above, folded []section) {
	for _, s := range d.sections {
		if s.folded {
			folded = append(folded, s)
		} else {
			above = append(above, s)
		}
	}
	return above, folded
}

// FoldTitle is the title of the fold with everything that is not visible.
const FoldTitle = "Details: all figures, how they were measured, how to reproduce"

// Fold folds Markdown below a title. The title is escaped.
func Fold(title, markdown string) string {
	return fmt.Sprintf("<details><summary>%s</summary>\n\n%s\n</details>\n", EscapeSummary(title), markdown)
}
