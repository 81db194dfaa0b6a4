package gates

import (
	"fmt"
	"slices"
)

// build asks that the candidate compiled. A baseline that does not is the
// base's own trouble and cannot be blamed on the change, nor can what keeps both of
// them from it.
func (j *judgement) build() GateResult {
	c, b := j.evidence.Candidate, j.evidence.Baseline
	switch {
	case j.evidence.Removed:
		// Moving a kernel to another folder would shake off its gate.
		return GateResult{
			Status: Failed, Reason: ReasonSuspicious, Text: "The change removes the kernel's manifest, and with it the gate",
			ToPass: []string{"keep kernel.yaml where it is, or ask a maintainer to /override with the reason"},
		}
	case c == nil:
		return GateResult{Status: Missing, Text: "no build was recorded"}
	case !c.OK && sameRefusal(b, c):
		return j.neitherBuilds()
	case !c.OK:
		errors := c.errors()
		j.findings = append(j.findings, errors...)
		r := GateResult{
			Status: Failed, Reason: ReasonBuild,
			Text:    fmt.Sprintf("The candidate does not build: %s", c.Error),
			ToPass:  []string{"make the kernel compile with the manifest's flags"},
			Details: texts(errors),
		}
		if b != nil && !b.OK {
			r.Details = append(r.Details, "the baseline does not build either: "+b.Error)
		}
		return r
	case b != nil && !b.OK:
		return GateResult{
			Status: Failed, Reason: ReasonSetup,
			Text:   fmt.Sprintf("The baseline does not build on this runner: %s", b.Error),
			ToPass: []string{"mend the base branch or the runner's compiler, then run again"},
		}
	}
	text := "compiled with " + c.Compiler
	if c.Compiler == "" {
		text = "compiled"
	}
	if j.evidence.SameCode {
		text += "; the machine code is the same as the baseline's"
	}
	return GateResult{Status: Passed, Text: text, Details: texts(c.Diagnostics)}
}

// errors is what kept the compiler from its work.
func (b *Build) errors() []Diagnostic {
	return slices.DeleteFunc(slices.Clone(b.Diagnostics), func(d Diagnostic) bool { return d.Severity != "error" })
}

func texts(list []Diagnostic) []string {
	var all []string
	for _, d := range list {
		all = append(all, d.String())
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
