package present

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// outcome is a finished run's. One without a verdict that is known is the
// machinery's fault, never a pass.
func outcome(r change.Run) gates.Outcome {
	if r.Result == nil {
		return gates.Error
	}
	switch r.Result.Outcome {
	case gates.Pass, gates.Defer:
		return r.Result.Outcome
	}
	return gates.Error
}

// ofRun is what one kernel's check says.
func (v View) ofRun(r change.Run) checkStatus {
	switch {
	case r.Phase == change.Done:
		return v.done(r)
	case !r.Unfinished() || !v.State.Facts.Open:
		return v.stopped()
	case v.State.Held():
		return v.held()
	case r.Phase == change.Running:
		return newCheckStatus(signWorking, inProgress, "", v.working(r), "")
	}
	return newCheckStatus(signWorking, queued, "", v.waiting(r), "")
}

func (v View) done(r change.Run) checkStatus {
	title, conclusion := v.line(r), failure
	switch outcome(r) {
	case gates.Pass:
		conclusion = success
	case gates.Error:
		if !r.Result.Blocks() {
			break
		}
		title = runnerTitle + strings.TrimPrefix(strings.TrimPrefix(title, "ERROR (runner) "), "ERROR ")
	}
	sign := report.SignEnforced(outcome(r), reason(r), enforce(r))
	if !r.Result.Blocks() {
		conclusion = success
	}
	if v.forInformation() {
		return newCheckStatus(sign, completed, success, "(for information) "+title, "The base branch has no policy: this blocks nothing.")
	}
	at := newCheckStatus(sign, completed, conclusion, title, "")
	at.faulty = outcome(r) == gates.Error && r.Result.Blocks()
	if verdict := v.known(r); verdict != nil {
		at.heading = report.Headline(verdict)
	}
	return at
}

// enforce is that of the rule of a run that has a verdict.
func enforce(r change.Run) policy.Enforce {
	if r.Result == nil {
		return policy.EnforceBlock
	}
	return r.Result.Enforce
}

func reason(r change.Run) gates.Reason {
	if r.Result == nil {
		return ""
	}
	return r.Result.Reason
}

// known is the verdict that a run ended with, where it is at hand.
func (v View) known(r change.Run) *gates.Verdict {
	if verdict := v.Verdicts[r.Job]; verdict != nil && r.Result != nil && verdict.Outcome == r.Result.Outcome && verdict.Enforce == r.Result.Enforce {
		return verdict
	}
	return nil
}

// line is the verdict in one line, which begins with its word.
func (v View) line(r change.Run) string {
	if verdict := v.known(r); verdict != nil {
		return report.OneLine(verdict)
	}
	if r.Result != nil && report.Plain(r.Result.Line) != "" {
		return report.Plain(r.Result.Line)
	}
	return word(r) + " " + r.Name
}

// word is the verdict with its reason.
func word(r change.Run) string {
	text := string(outcome(r))
	if !enforce(r).Blocks() && outcome(r) != gates.Pass {
		text = string(enforce(r)) + ": would be " + text
	}
	if reason := reason(r); reason != "" && outcome(r) != gates.Pass {
		text += " (" + string(reason) + ")"
	}
	return text
}

// finding is the line without what a table says in other columns.
func (v View) finding(r change.Run) string {
	line := v.line(r)
	if rest, ok := strings.CutPrefix(line, word(r)+" "+report.Plain(r.Name)); ok {
		return strings.TrimPrefix(rest, ": ")
	}
	return line
}

// stopped is a run that ended before its verdict.
func (v View) stopped() checkStatus {
	s := v.State
	switch {
	case !s.Facts.Open:
		return newCheckStatus(signCancelled, completed, cancelled, closedTitle(s), "Nothing is measured any more.")
	case s.Cancelled == s.Facts.Head:
		return newCheckStatus(signCancelled, completed, cancelled, "Cancelled: comment /rebench to start again",
			"`/cancel` stopped the measurement. Comment `/rebench` to start again, or push a new commit.")
	}
	return newCheckStatus(signCancelled, completed, cancelled, "Stopped before a verdict: comment /rebench to start again",
		"The measurement stopped before a verdict. Comment `/rebench` to start again, or push a new commit.")
}

func closedTitle(s *change.State) string {
	switch {
	case s.ID.Kind == change.Group:
		return "The merge group is gone"
	case s.Facts.Merged:
		return "The pull request was merged"
	}
	return "The pull request was closed"
}

// about is where a kernel's verdict comes from, in addition to what its report says.
func (v View) about(r change.Run) string {
	parts := []string{fmt.Sprintf("Attempt %d", r.Count())}
	if len(r.Labels) > 0 {
		parts = append(parts, "runners labelled "+report.EscapeCode(strings.Join(r.Labels, " or ")))
	}
	if v.known(r) != nil {
		if r.Runner != "" {
			parts = append(parts, "on "+report.EscapeCode(report.Clip(r.Runner, 60)))
		}
		return strings.Join(parts, " · ") + "\n"
	}
	if r.Rule != "" {
		parts = append(parts, "rule "+report.EscapeCode(r.Rule))
	}
	if where := measuredOn(r); where != dash {
		parts = append(parts, "on "+where)
	}
	return strings.Join(parts, " · ") + "\n"
}

// measuredOn is the runner and its device.
func measuredOn(r change.Run) string {
	var parts []string
	if r.Runner != "" {
		parts = append(parts, report.EscapeCode(report.Clip(r.Runner, 60)))
	}
	if r.Result != nil && r.Result.Device != "" {
		parts = append(parts, report.Escape(report.Clip(r.Result.Device, 60)))
	}
	if len(parts) == 0 {
		return dash
	}
	return strings.Join(parts, ", ")
}

// reportOf is a part of a run's verdict without its title, which stands above it already.
func (v View) reportOf(r change.Run, part report.Part, limit int) string {
	verdict := v.Verdicts[r.Job]
	if verdict == nil {
		return ""
	}
	text := report.Markdown(verdict, report.Options{MaxBytes: limit, Part: part, Links: v.linksOf(r), Overridden: v.override() != nil})
	if _, rest, ok := strings.Cut(text, "\n"); ok && strings.HasPrefix(text, "### ") {
		text = strings.TrimLeft(rest, "\n")
	}
	return mute(text)
}
