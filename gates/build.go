package gates

import (
	"fmt"
	"slices"

	"github.com/kernelgate/kernelgate/gates/facts"
)

// build asks that the candidate compiled. A baseline that does not compile is a fault of the base
// branch, and so is a reason that keeps both sides from compiling.
func (j *judgement) build() GateResult {
	c, b := j.evidence.Candidate, j.evidence.Baseline
	switch {
	case j.evidence.Removed:
		// Moving a kernel to a different folder must not remove its gate.
		return GateResult{
			Status: Failed, Reason: ReasonSuspicious,
			Found: facts.ManifestRemoved{}, Steps: []facts.Advice{facts.KeepManifest{}},
		}
	case c == nil:
		return GateResult{Status: Missing, Found: facts.NoBuild{}}
	case !c.OK && sameRefusal(b, c):
		return GateResult{
			Status: Failed, Reason: ReasonSetup,
			Found: facts.BuildFailed{Baseline: true, Candidate: true, Error: c.Error},
			More:  diagnostics(c.errors()), Steps: []facts.Advice{facts.FixBase{}},
		}
	case !c.OK:
		errors := c.errors()
		j.findings = append(j.findings, errors...)
		r := GateResult{
			Status: Failed, Reason: ReasonBuild,
			Found: facts.BuildFailed{Candidate: true, Error: c.Error},
			More:  diagnostics(errors), Steps: []facts.Advice{facts.MakeItCompile{}},
		}
		if b != nil && !b.OK {
			r.More = append(r.More, facts.BaselineFailedToo{Error: b.Error})
		}
		return r
	case b != nil && !b.OK:
		return GateResult{
			Status: Failed, Reason: ReasonSetup,
			Found: facts.BuildFailed{Baseline: true, Error: b.Error}, Steps: []facts.Advice{facts.FixBaseOrCompiler{}},
		}
	}
	return GateResult{
		Status: Passed, Found: facts.Built{Compiler: c.Compiler, SameCode: j.evidence.SameCode}, More: diagnostics(c.Diagnostics),
	}
}

// errors is the diagnostics that kept the compiler from its work.
func (b *Build) errors() []Diagnostic {
	return slices.DeleteFunc(slices.Clone(b.Diagnostics), func(d Diagnostic) bool { return d.Severity != "error" })
}

func diagnostics(list []Diagnostic) []facts.Fact {
	var all []facts.Fact
	for _, d := range list {
		all = append(all, facts.Quote(d.String()))
	}
	return all
}

// String is the diagnostic as compilers print it.
func (d Diagnostic) String() string {
	switch {
	case d.File == "":
		return d.Severity + ": " + d.Message
	case d.Column > 0:
		return fmt.Sprintf("%s:%d:%d: %s: %s", d.File, d.Line, d.Column, d.Severity, d.Message)
	default:
		return fmt.Sprintf("%s:%d: %s: %s", d.File, d.Line, d.Severity, d.Message)
	}
}
