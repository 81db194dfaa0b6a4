package present

import (
	"fmt"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates/hindsight"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/policies/compare"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// withRules adds what the change does to the gate's own rules. A pass waits for
// somebody's word where that may loosen them; what does not pass stays as it is.
func (v View) withRules(own checkStatus) checkStatus {
	s, plan := v.State, v.plan()
	if plan == nil || plan.RuleChange == nil {
		return own
	}
	rules, at := plan.RuleChange, own
	var word string
	list := ruleList(rules)
	switch approved := s.ApprovedRules(plan); {
	case s.RulesWait(plan):
		role := plan.Commands().ApprovePolicy
		word = v.howToApprove(role)
		list = "**Changes to the rules**\n\n" + list
		if own.conclusion == success {
			at = newCheckStatus(signWaits, completed, actionRequired, fmt.Sprintf("The change loosens the rules: waits for /approve-policy by someone with %s access", role), "")
			word += "\n\nEverything else: " + own.sign + " " + clause(own.heading) + "."
		}
	case rules.Loosens:
		word = fmt.Sprintf("This change may loosen the rules of the gate. **Approved** by %s%s, for this commit only.", report.Escape("@"+approved.By), when(approved.At))
		at.add("; its changes to the rules are approved by @" + approved.By)
		list = details("Changes to the rules", list)
	default:
		word = "This change only tightens the rules of the gate, which needs no approval."
		at.add("; the rules are tightened")
	}
	at.lead = joined(word, own.lead, list, pastTable(rules))
	return at
}

// add says more where no kernel has a word to say.
func (at *checkStatus) add(more string) {
	if at.untouched {
		at.title = report.Clip(report.Plain(at.title+more), titleRunes)
		at.heading = at.title
	}
}

func (v View) howToApprove(role policy.Role) string {
	text := "This change may loosen the rules of the gate, which needs an approval. "
	if v.State.ID.Kind != change.Pull {
		return text + "It waits until each of its pull requests is approved."
	}
	more := ""
	if v.Workflow && v.State.Facts.Fork {
		more = " On a fork's pull request, a review cannot start a workflow that may write: after the review, comment " + report.EscapeCode("/rebench") + " here."
	}
	return text + fmt.Sprintf("Someone with %s access reads the list below, then comments %s. They must be an administrator, or must neither have opened this change nor pushed its head. A code owner of the loosened files can approve this commit in a review instead.%s A new push, a different base branch, or changed rules on the base branch need a new approval.",
		report.EscapeCode(string(role)), report.EscapeCode("/approve-policy "+v.State.Facts.Head), more)
}

// ruleList is what the change does to the rules: what may loosen them in sight, and what
// tightens them folded.
func ruleList(r *change.RuleChange) string {
	code := func(text string) string {
		if text == "" {
			return dash
		}
		return report.EscapeCode(report.Clip(report.Plain(text), 160))
	}
	var loose, tight []string
	for _, d := range r.Differences {
		what := fmt.Sprintf("%s in %s: %s → %s", code(d.Path), code(d.File), code(d.Old), code(d.New))
		switch d.Direction {
		case compare.Tightens:
			tight = append(tight, "- tightens "+what)
		case compare.Loosens:
			loose = append(loose, "- ⚠️ loosens "+what)
		default:
			loose = append(loose, "- ⚠️ changes "+what)
		}
	}
	var text string
	if loose != nil {
		text = foldOverflow(loose, leadRoom, "differences")
	}
	if r.More > 0 {
		text = joined(text, fmt.Sprintf("… and %d more differences.\n", r.More))
	}
	if tight != nil {
		text = joined(text, details(fmt.Sprintf("What it tightens (%d)", len(tight)), list(tight, 5000, "differences")))
	}
	return text
}

// pastTable is what the new policy makes of past runs: the verdicts that would be different, and the
// evidence that would not suffice.
func pastTable(r *change.RuleChange) string {
	if r.Judged == 0 {
		return ""
	}
	note := ""
	if r.Unjudged > 0 {
		note = fmt.Sprintf(" (no time for %d more)", r.Unjudged)
	}
	if len(r.Past)+len(r.Lacking) == 0 {
		return fmt.Sprintf("The new policy would change none of the last %d verdicts%s.\n", r.Judged, note)
	}
	cells := func(p change.PastVerdict, last ...string) string {
		return row(append([]string{changeName(p.Change), report.EscapeCode(report.Short(p.Head)), report.EscapeCode(report.Clip(report.Plain(p.Kernel), nameRunes)), report.Escape(judgement(p.Old))}, last...)...)
	}
	var flips, lacking []string
	for _, p := range r.Past {
		flips = append(flips, cells(p, report.Escape(judgement(p.New)), report.Escape(report.Plain(p.Why))))
	}
	for _, p := range r.Lacking {
		lacking = append(lacking, cells(p, report.Escape(report.Plain(p.Why))))
	}
	var text string
	if flips != nil {
		text = table([]string{"change", "commit", "kernel", "with the base's policy", "with the new policy", "because"}, flips, pastRoom, "verdicts")
	}
	if lacking != nil {
		text = joined(text, "Runs whose evidence would not suffice:\n", table([]string{"change", "commit", "kernel", "with the base's policy", "the new policy lacks"}, lacking, pastRoom, "runs"))
	}
	if max(r.OldSeconds, r.NewSeconds) >= worthALine {
		text = joined(text, fmt.Sprintf("Measuring takes %.1f s per verdict with the base's policy, and %.1f s or more with the new policy.\n", r.OldSeconds, r.NewSeconds))
	}
	title := fmt.Sprintf("The new policy would change %d of the last %d verdicts", len(r.Past), r.Judged)
	if lacking != nil {
		title += fmt.Sprintf(", and %d would need more evidence", len(lacking))
	}
	return details(title+note, text)
}

const (
	// pastRoom is the room of each table about past runs.
	pastRoom = 4000
	// worthALine is how many seconds a verdict takes where anybody minds.
	worthALine = 0.5
)

// changeName is a change as people name it.
func changeName(id change.ID) string {
	if id.Kind == change.Pull {
		return fmt.Sprintf("#%d", id.Number)
	}
	return string(id.Kind)
}

// judgement is an outcome with its reason: "DEFER (correctness)".
func judgement(j change.Judgement) string {
	return hindsight.Judgement{Outcome: j.Outcome, Reason: j.Reason, Enforce: j.Enforce}.String()
}
