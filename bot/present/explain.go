package present

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// Explain says, in Markdown, which rule of the policy applies to each kernel of a
// change, and what it asks. No policy is nil.
func Explain(s *change.State, pol *policy.Policy) string {
	p := s.Current()
	switch {
	case s.Facts.BaseGone:
		return "The base branch is gone: see the check."
	case p == nil:
		return "The change is still being read. Ask again in a moment."
	case p.Refused:
		return "The change is more than is read of one: see the check."
	case len(p.Problems) > 0:
		return "The policy or a manifest on the base branch has mistakes: see the check."
	case pol == nil:
		return "The base branch has no policy, so nothing is asked of this change."
	case len(p.Kernels) == 0:
		return "No kernel changed: there is nothing to measure."
	}
	f := s.Facts
	var text []string
	for _, k := range p.Kernels {
		text = append(text, explain(pol, p.PolicyFile, policy.Change{
			Labels: f.Labels, Branch: f.Base, Title: f.Title, Draft: f.Draft, Kernel: k.ManifestName(), Paths: k.Paths,
		}))
	}
	return strings.Join(text, "\n")
}

// explain is one kernel's part, as lists: their lines break where the reader's window ends, and those of code do not.
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
			a.Text += " (informs only)"
		}
		fmt.Fprintf(&b, "%d. **%s**: %s\n", i+1, report.Escape(a.Gate), report.Escape(a.Text))
	}
	return b.String()
}
