package gates

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// sanitize asks that every tool of the policy ran on every case and found nothing. A tool that the
// runner does not have proves nothing: the gate stays open, unless the policy says that a missing
// tool only informs.
func (j *judgement) sanitize() GateResult {
	gate, s := j.rule.Gates.Sanitize, j.evidence.Sanitize
	switch {
	case s == nil:
		return j.notSearched(facts.NoSanitizer{}, facts.UseRunnerWithTools{})
	case s.Skipped != "":
		return j.notSearched(facts.Quote(s.Skipped))
	}
	l := &search{gate: gate, evidence: j.evidence}
	for _, tool := range gate.Tools {
		j.sanitizers = append(j.sanitizers, l.tool(string(tool)))
	}
	j.annotate(l.found, gate.Existing)
	if l.decides() {
		return l.faulty()
	}
	if l.broken != nil {
		return l.unfinished()
	}
	if missing := l.missingCases(); len(missing) > 0 {
		return GateResult{Status: Missing, Found: facts.NotSanitized{Missing: missing}, More: missing}
	}
	if len(l.lacking) == l.asked && len(l.lacking) > 0 {
		var lacking facts.Series
		for _, tool := range l.lacking {
			lacking = append(lacking, tool)
		}
		return j.notSearched(lacking)
	}
	return j.clean(l)
}

// notSearched is the result where no tool has searched the kernel. It is no pass.
func (j *judgement) notSearched(why facts.Fact, steps ...facts.Advice) GateResult {
	r := GateResult{Status: Missing, Found: facts.NotSearched{Why: why}, Steps: steps}
	if j.rule.Gates.Sanitize.MissingTool == policy.MissingInforms {
		r.Status = Informs
		j.note(facts.NotSearched{Why: why, Note: true})
	}
	return r
}

// clean is a pass as far as the tools that ran can see. It names those that did not run.
func (j *judgement) clean(l *search) GateResult {
	r := GateResult{
		Status: Passed,
		Found:  facts.Clean{Ran: l.ran, Cases: len(j.evidence.Sanitize.Cases), Existing: len(l.found), Lacking: l.lacking},
	}
	if len(l.found) > 0 { // the baseline has them as well, and somebody should fix them there
		j.existing = append(j.existing, facts.ExistingFindings{Findings: len(l.found)})
		j.note(facts.FaultyBaseline{First: l.found[0], More: len(l.found) - 1})
	}
	for _, f := range l.found {
		r.More = append(r.More, f)
	}
	r.More = append(r.More, facts.Quotes(j.evidence.Sanitize.Unseen)...)
	if len(l.lacking) > 0 && l.gate.MissingTool != policy.MissingInforms {
		r.Status = Missing
	}
	return r
}

// A search collects the results of the tools.
type search struct {
	gate     *policy.SanitizeGate
	evidence *Evidence

	asked   int      // tools that have something to look for
	ran     []string // tools that ended
	lacking []facts.ToolLacking
	found   []Finding // of all tools; each names its tool
	hidden  int       // more than are listed
	broken  *Sanitized
}

// tool is one tool's row.
func (l *search) tool(name string) SanitizerRow {
	row := SanitizerRow{Tool: name, Status: Missing}
	i := slices.IndexFunc(l.evidence.Sanitize.Tools, func(r Sanitized) bool { return r.Tool == name })
	if i < 0 {
		l.asked++
		row.Note = l.lack(facts.ToolLacking{Tool: name})
		return row
	}
	run := &l.evidence.Sanitize.Tools[i]
	row.With = run.With
	if run.NotApplicable != "" {
		row.Status, row.Note = NotRun, run.NotApplicable
		return row
	}
	l.asked++
	if run.Skipped != "" {
		row.Note = l.lack(facts.ToolLacking{Tool: name, Why: run.Skipped})
		return row
	}
	row.Status = Passed
	for _, f := range run.Findings {
		if f.Severity == "info" {
			continue
		}
		f.Tool = name
		row.Findings = append(row.Findings, f)
	}
	if l.evidence.Baseline != nil {
		markExisting(row.Findings, run.Baseline)
	}
	if len(row.Findings) > 0 {
		row.Status = Failed
		if l.gate.Existing != policy.ExistingDefers && !slices.ContainsFunc(row.Findings, func(f Finding) bool { return !f.Before }) {
			row.Status = Informs
		}
	}
	l.found, l.hidden = append(l.found, row.Findings...), l.hidden+run.Hidden
	if run.Hidden > 0 {
		row.Status, row.Note = Failed, facts.HiddenFindings{Findings: run.Hidden}.Sentence()
	}
	switch {
	case run.Failure != nil && row.Status != Failed:
		// The tool stopped at an existing finding, and did not search what comes after it.
		row.Status, row.Note = Failed, run.Failure.Detail
		l.broken = cmp.Or(l.broken, run)
	case row.Status != Failed:
		l.ran = append(l.ran, name)
	}
	return row
}

// decides reports whether a finding decides the gate.
func (l *search) decides() bool {
	defers := l.gate.Existing == policy.ExistingDefers
	return l.hidden > 0 || slices.ContainsFunc(l.found, func(f Finding) bool { return defers || !f.Before })
}

// lack records a tool that was not run, and returns the reason.
func (l *search) lack(tool facts.ToolLacking) string {
	l.lacking = append(l.lacking, tool)
	return tool.Reason()
}

// faulty names the findings, those that the baseline does not have first.
func (l *search) faulty() GateResult {
	slices.SortStableFunc(l.found, func(a, b Finding) int { return toInt(a.Before) - toInt(b.Before) })
	caused := slices.ContainsFunc(l.found, func(f Finding) bool { return !f.Before })
	existed := !caused && l.hidden == 0
	r := GateResult{
		Status: Failed, Reason: ReasonCorrectness,
		Found: facts.Faulty{Findings: l.found, Hidden: l.hidden, Existed: existed},
		Steps: []facts.Advice{facts.FixFindings{Existed: existed}},
	}
	for _, f := range l.found {
		r.More = append(r.More, f)
	}
	return r
}

// unfinished is a tool that gave no answer while the candidate ran under it. The candidate
// may have caused that, so it never counts as a missing tool.
func (l *search) unfinished() GateResult {
	r := GateResult{
		Status: Failed, Reason: ReasonCorrectness,
		Found: facts.ToolFailed{Tool: l.broken.Tool, Detail: l.broken.Failure.Detail},
		Steps: []facts.Advice{facts.RunToEnd{Under: cmp.Or(l.broken.With, l.broken.Tool)}},
	}
	if l.broken.Failure.Kind == FailureTimeout || l.broken.Failure.Kind == FailureTool {
		r.Reason, r.Steps = ReasonInconclusive, []facts.Advice{facts.SanitizeLess{}}
	}
	return r
}

// missingCases is the cases that the policy asks for and no sanitizer has seen.
func (l *search) missingCases() []facts.Fact {
	names := l.evidence.shapeNames()
	var missing []facts.Fact
	for _, name := range l.gate.Shapes.Unknown(names) {
		missing = append(missing, facts.UnknownShape{Name: name})
	}
	secret := 0
	for _, c := range l.evidence.Sanitize.Cases {
		if c.Secret {
			secret++
		}
	}
	for _, shape := range l.gate.Shapes.Pick(names) {
		for _, d := range l.gate.Distributions {
			if !slices.ContainsFunc(l.evidence.Sanitize.Cases, func(c Input) bool {
				return !c.Secret && c.Shape == shape && c.Distribution == string(d)
			}) {
				missing = append(missing, facts.InputNotSanitized{Shape: shape, Distribution: string(d)})
			}
		}
	}
	if lacking := int(l.gate.SecretCases) - secret; lacking > 0 {
		missing = append(missing, facts.SecretCasesLacking{Cases: lacking})
	}
	return missing
}

// annotate puts every finding on its line, and a race on both of its lines. An existing finding that
// decides nothing is a note.
func (j *judgement) annotate(found []Finding, existing policy.Existing) {
	for _, f := range found {
		d := Diagnostic{File: f.File, Line: f.Line, Severity: cmp.Or(f.Severity, "error"), Message: f.Sentence()}
		if f.Before && existing != policy.ExistingDefers {
			d.Severity = "note"
		}
		if f.File != "" {
			j.findings = append(j.findings, d)
		}
		if f.OtherFile != "" && (f.OtherFile != f.File || f.OtherLine != f.Line) {
			d.File, d.Line = f.OtherFile, f.OtherLine
			j.findings = append(j.findings, d)
		}
	}
}

// suspectRace adds the advice for a kernel that is right at one time and wrong at another. On a GPU a race is
// the usual cause, on a CPU memory that is read before it is written. The sanitizers name the line.
func (j *judgement) suspectRace(r GateResult) GateResult {
	if r.Reason != ReasonCorrectness {
		return r
	}
	step := facts.LookForRace{CPU: j.evidence.Can().onHost(), Searched: facts.NothingFound}
	switch gate := j.rule.Gates.Sanitize; {
	case gate == nil:
		step.Searched = facts.NoSanitizeGate
	case j.evidence.Sanitize == nil:
		step.Searched = facts.NotYetSearched
	default:
		step.Shapes = gate.Shapes.String()
	}
	r.Steps = append(r.Steps, step)
	return r
}

// problem is the first field that no runner writes and the judge would misread.
func (s *Sanitize) problem() (field, problem string) {
	for i, run := range s.Tools {
		at := fmt.Sprintf("tools[%d]", i)
		if run.Tool == "" || slices.ContainsFunc(s.Tools[:i], func(r Sanitized) bool { return r.Tool == run.Tool }) {
			return at + ".tool", "is empty or named twice"
		}
		if run.Hidden < 0 {
			return at + ".hidden", "is negative"
		}
		for k, f := range run.Findings {
			if problem := invalidFinding(f, len(s.Cases)); problem != "" {
				return fmt.Sprintf("%s.findings[%d]", at, k), problem
			}
		}
		for k, f := range run.Baseline {
			if problem := invalidFinding(f, len(s.Cases)); problem != "" {
				return fmt.Sprintf("%s.baseline[%d]", at, k), problem
			}
		}
	}
	return "", ""
}

// invalidFinding is what is wrong with a finding that no tool reports.
func invalidFinding(f Finding, cases int) string {
	switch {
	case f.Kind == "" || f.Text == "":
		return "has no kind or no text"
	case f.Line < 0 || f.OtherLine < 0 || f.Count < 0:
		return "has a negative line or count"
	case f.Severity != "" && f.Severity != "error" && f.Severity != "warning" && f.Severity != "info":
		return fmt.Sprintf("has the severity %q (error, warning and info are known)", f.Severity)
	case slices.ContainsFunc(f.Cases, func(i int) bool { return i < 0 || i >= cases }):
		return fmt.Sprintf("names the cases %v of %d", f.Cases, cases)
	}
	return ""
}
