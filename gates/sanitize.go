package gates

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// sanitize asks that every tool of the policy ran on every case and found
// nothing. What a runner cannot look for is no proof that it is not there: unless
// the policy says that a missing tool only informs, the gate stays open.
func (j *judgement) sanitize() GateResult {
	gate, s := j.rule.Gates.Sanitize, j.evidence.Sanitize
	switch {
	case s == nil:
		return j.unlooked("no sanitizer was run", "run kernelgate check on a runner that has the tools")
	case s.Skipped != "":
		return j.unlooked(s.Skipped, "")
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
		return GateResult{Status: Missing, Text: "not run under the sanitizers: " + strings.Join(missing, ", "), Details: missing}
	}
	if len(l.lacking) == len(l.asked) && len(l.lacking) > 0 {
		return j.unlooked(strings.Join(l.lacking, "; "), "")
	}
	return j.clean(l)
}

// unlooked is the result where nobody looked: told, and no pass.
func (j *judgement) unlooked(why, remedy string) GateResult {
	r := GateResult{Status: Missing, Text: "not looked for races and bad accesses: " + why}
	if remedy != "" {
		r.ToPass = []string{remedy}
	}
	if j.rule.Gates.Sanitize.MissingTool == policy.MissingInforms {
		r.Status = Informs
		j.noteText("Nobody has looked for races and bad accesses: " + why)
	}
	return r
}

// clean is a pass as far as the tools could look; what they could not is told.
func (j *judgement) clean(l *search) GateResult {
	text := fmt.Sprintf("%s found nothing in %s", strings.Join(l.ran, ", "), plural(len(j.evidence.Sanitize.Cases), "case"))
	if len(l.found) > 0 {
		text = fmt.Sprintf("%s found nothing new in %s; as before this change: %s (see below)",
			strings.Join(l.ran, ", "), plural(len(j.evidence.Sanitize.Cases), "case"), plural(len(l.found), "finding"))
		j.noteExisting(l.found)
	}
	if len(l.ran) == 0 {
		text = "there is nothing for these tools to find in this kernel"
	}
	r := GateResult{Status: Passed, Text: text}
	for _, f := range l.found {
		r.Details = append(r.Details, f.String())
	}
	r.Details = append(r.Details, j.evidence.Sanitize.Unseen...)
	if len(l.lacking) > 0 {
		r.Text += "; not looked for: " + strings.Join(l.lacking, "; ")
		if l.gate.MissingTool != policy.MissingInforms {
			r.Status = Missing
		}
	}
	return r
}

// noteExisting tells what is wrong with the baseline, so that somebody fixes it.
func (j *judgement) noteExisting(found []Finding) {
	j.existing = append(j.existing, plural(len(found), "sanitizer finding")+" as before")
	more := ""
	if len(found) > 1 {
		more = fmt.Sprintf(", and %d more", len(found)-1)
	}
	first := found[0]
	first.Before = false // the sentence says so
	j.noteText(fmt.Sprintf("The baseline has a mistake that this change did not cause: %s%s. Fix it on the base branch.", first, more))
}

// plural is a count with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// A search sorts what the tools say.
type search struct {
	gate     *policy.SanitizeGate
	evidence *Evidence

	asked   []string  // tools that have something to look for
	ran     []string  // that ended
	lacking []string  // that the runner does not have, with the reason
	found   []Finding // of all tools; each names its own
	hidden  int       // more than are listed
	broken  *Sanitized
}

// tool is one tool's row.
func (l *search) tool(name string) SanitizerRow {
	row := SanitizerRow{Tool: name, Status: Missing}
	i := slices.IndexFunc(l.evidence.Sanitize.Tools, func(r Sanitized) bool { return r.Tool == name })
	if i < 0 {
		l.asked = append(l.asked, name)
		l.lacking = append(l.lacking, name+" was not run")
		row.Note = "was not run"
		return row
	}
	run := &l.evidence.Sanitize.Tools[i]
	row.With = run.With
	if run.NotApplicable != "" {
		row.Status, row.Note = NotRun, run.NotApplicable
		return row
	}
	l.asked = append(l.asked, name)
	if run.Skipped != "" {
		l.lacking = append(l.lacking, name+": "+run.Skipped)
		row.Note = run.Skipped
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
		row.Status, row.Note = Failed, fmt.Sprintf("and %d more that are not listed", run.Hidden)
	}
	switch {
	case run.Failure != nil && row.Status != Failed:
		// What comes behind an existing finding was not looked at either.
		row.Status, row.Note = Failed, run.Failure.Detail
		l.broken = cmp.Or(l.broken, run)
	case row.Status != Failed:
		l.ran = append(l.ran, name)
	}
	return row
}

// decides tells whether a finding decides the gate.
func (l *search) decides() bool {
	defers := l.gate.Existing == policy.ExistingDefers
	return l.hidden > 0 || slices.ContainsFunc(l.found, func(f Finding) bool { return defers || !f.Before })
}

// faulty names the first finding in one line.
func (l *search) faulty() GateResult {
	r := GateResult{Status: Failed, Reason: ReasonCorrectness, ToPass: []string{"fix what the sanitizers found; every finding stands on its line"}}
	before := 0
	slices.SortStableFunc(l.found, func(a, b Finding) int { return boolOrder(a.Before) - boolOrder(b.Before) })
	for _, f := range l.found {
		r.Details = append(r.Details, f.String())
		before += boolOrder(f.Before)
	}
	if len(l.found) == 0 {
		r.Text = fmt.Sprintf("The sanitizers found %d faults and list none", l.hidden)
		return r
	}
	r.Text = r.Details[0]
	if more := len(l.found) - 1 + l.hidden; more > 0 {
		r.Text += fmt.Sprintf("; %d more", more)
	}
	if before == len(l.found) && l.hidden == 0 {
		r.Text += ". It was there before this change"
		r.ToPass = []string{"fix it in this change or on the base branch first: the policy defers for what the baseline has as well (gates.sanitize.existing)"}
	}
	return r
}

// unfinished is a tool that gave no answer while the candidate ran under it: an
// author could see to that, so it is never taken for a missing tool.
func (l *search) unfinished() GateResult {
	r := GateResult{
		Status: Failed, Reason: ReasonCorrectness,
		Text:   fmt.Sprintf("%s: %s", l.broken.Tool, l.broken.Failure.Detail),
		ToPass: []string{"make the kernel run to its end under " + cmp.Or(l.broken.With, l.broken.Tool)},
	}
	if l.broken.Failure.Kind == FailureTimeout || l.broken.Failure.Kind == FailureTool {
		r.Reason = ReasonInconclusive
		r.ToPass = []string{"name a smaller shape in gates.sanitize.shapes, or raise gates.sanitize.timeout"}
	}
	return r
}

// missingCases is what the policy asks and no sanitizer has seen.
func (l *search) missingCases() []string {
	names := l.evidence.shapeNames()
	var missing []string
	for _, name := range l.gate.Shapes.Unknown(names) {
		missing = append(missing, fmt.Sprintf("shape %s, which the kernel's manifest does not have", name))
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
				missing = append(missing, fmt.Sprintf("%s, %s inputs", shape, d))
			}
		}
	}
	if lacking := int(l.gate.SecretCases) - secret; lacking > 0 {
		missing = append(missing, fmt.Sprintf("%d secret cases", lacking))
	}
	return missing
}

// String is the finding in one line: the tool, what it saw, where, and how often.
func (f Finding) String() string {
	text := f.Text
	if f.Tool != "" {
		text = f.Tool + ": " + text
	}
	switch {
	case f.File != "":
		text += " in " + f.place()
	case f.Kernel != "":
		text += " in " + f.Kernel
	}
	if f.Count > 1 {
		unit := "times"
		if f.Kind == KindRace {
			unit = "hazards"
		}
		text += fmt.Sprintf(" (%s %s)", thousands(f.Count), unit)
	}
	if f.Before {
		text += " (the baseline has it as well)"
	}
	return text
}

// place is the line, or both lines of a race.
func (f Finding) place() string {
	text := fmt.Sprintf("%s:%d", f.File, f.Line)
	switch {
	case f.OtherFile == "" || f.OtherFile == f.File && f.OtherLine == f.Line:
	case f.OtherFile == f.File:
		text += fmt.Sprintf(" and :%d", f.OtherLine)
	default:
		text += fmt.Sprintf(" and %s:%d", f.OtherFile, f.OtherLine)
	}
	return text
}

// thousands sets a large number apart: 6,144.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// annotate puts every finding onto its line; a race stands on both. One that existed and
// decides nothing is a note.
func (j *judgement) annotate(found []Finding, existing policy.Existing) {
	for _, f := range found {
		d := Diagnostic{File: f.File, Line: f.Line, Severity: cmp.Or(f.Severity, "error"), Message: f.String()}
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

// suspectRace adds to a result what to do where a kernel is right at one time and
// wrong at another: on a GPU a race is the usual cause, on a CPU memory that nobody has written, and the sanitizers name its line.
func (j *judgement) suspectRace(r GateResult) GateResult {
	cause := "look for a race"
	if j.evidence.Mode == string(manifest.ModeCPU) {
		cause = "look for memory that is read before it is written, or that several threads use at once"
	}
	switch gate := j.rule.Gates.Sanitize; {
	case r.Reason != ReasonCorrectness:
	case gate == nil:
		r.ToPass = append(r.ToPass, cause+": write sanitize: {shapes: [SMALL]} below gates in the policy, with the name of a small shape, and run kernelgate check")
	case j.evidence.Sanitize == nil:
		r.ToPass = append(r.ToPass, cause+": run kernelgate check --policy with a copy of the policy that has determinism: false, so that the sanitize gate comes to speak")
	default:
		r.ToPass = append(r.ToPass, fmt.Sprintf("%s: the sanitizers found nothing on %s; name more shapes in gates.sanitize.shapes and run kernelgate check", cause, gate.Shapes))
	}
	return r
}

// problem is what no runner writes and the judge would misread.
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
			if problem := f.problem(len(s.Cases)); problem != "" {
				return fmt.Sprintf("%s.findings[%d]", at, k), problem
			}
		}
		for k, f := range run.Baseline {
			if problem := f.problem(len(s.Cases)); problem != "" {
				return fmt.Sprintf("%s.baseline[%d]", at, k), problem
			}
		}
	}
	return "", ""
}

// problem is what no tool says about a finding.
func (f Finding) problem(cases int) string {
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
