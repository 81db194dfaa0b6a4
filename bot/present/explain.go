package present

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates/number"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// explanation writes the answers to /explain.
func explanation(a change.Answer) string {
	switch a.Kind {
	case change.AnswerExplainNoBase:
		return "The base branch is gone: see the check."
	case change.AnswerExplainUnread:
		return "The change is still being read. Ask again in a moment."
	case change.AnswerExplainRefused:
		return "The change is too large to read: see the check."
	case change.AnswerExplainMistakes:
		return "The policy or a manifest on the base branch has mistakes: see the check."
	case change.AnswerExplainNoPolicy:
		return "The base branch has no policy, so nothing is asked of this change."
	case change.AnswerExplainNoKernel:
		return "No kernel changed: there is nothing to measure."
	case change.AnswerExplainedByRules:
		return explainRules(a.Rules)
	}
	return ""
}

// explainRules says which rule of the policy applies to each kernel of a change, and what it asks.
func explainRules(r *change.AppliedRules) string {
	if r == nil {
		return ""
	}
	read, err := policy.Parse(r.File, []byte(r.Policy))
	if err != nil { // it was read when the command was answered
		return fmt.Sprintf("The policy cannot be read: %s", report.Escape(err.Error()))
	}
	var text []string
	for _, k := range r.Kernels {
		c := r.Change
		c.Kernel, c.Paths = k.Name, k.Paths
		text = append(text, explain(read, r.File, c))
	}
	return strings.Join(text, "\n")
}

// explain is one kernel's part in the words of the comment, as lists: their lines break where the reader's window ends, and those of code do not.
func explain(policy *policy.Policy, file string, c policy.Change) string {
	rule := policy.RuleFor(c)
	var b strings.Builder
	fmt.Fprintf(&b, "Rule %s of %s applies to %s.\n\n", report.EscapeCode(rule.Name), report.EscapeCode(file), report.EscapeCode(c.Kernel))
	for _, earlier := range policy.PassedOver(c) {
		fmt.Fprintf(&b, "- %s does not: it is for %s\n", report.EscapeCode(earlier.Rule), report.Escape(earlier.For))
	}
	if !rule.Enforce.Blocks() {
		fmt.Fprintf(&b, "- it has %s: its verdict blocks nothing\n", report.EscapeCode("enforce: "+string(rule.Enforce)))
	}
	if trial := policy.TrialFor(c); trial != nil {
		fmt.Fprintf(&b, "- %s is tried as well, with %s: its verdict is shown and blocks nothing\n", report.EscapeCode(trial.Name), report.EscapeCode("enforce: "+string(trial.Enforce)))
	}
	b.WriteString("\nIt asks, in this order:\n\n")
	for i, a := range rule.Asked() {
		if !a.Decides {
			a.Text += " (for information)"
		}
		fmt.Fprintf(&b, "%d. **%s**: %s\n", i+1, report.Escape(a.Gate), report.Escape(number.Condition(a.Text)))
	}
	return b.String()
}
