package present

import (
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/policies"
)

// Explain says, in Markdown, which rule of the policy applies to each kernel of a
// change, and what it asks. No policy is nil.
func Explain(s *change.State, policy *policies.Policy) string {
	p := s.Current()
	switch {
	case p == nil:
		return "The change is still being read. Ask again in a moment."
	case p.Refused:
		return "The change is more than is read of one: see the check."
	case len(p.Problems) > 0:
		return "The policy or a manifest on the base branch has mistakes: see the check."
	case policy == nil:
		return "The base branch has no policy, so nothing is asked of this change."
	case len(p.Kernels) == 0:
		return "No kernel changed: there is nothing to measure."
	}
	f := s.Facts
	var text []string
	for _, k := range p.Kernels {
		text = append(text, policy.Explain(p.PolicyFile, policies.Change{
			Labels: f.Labels, Branch: f.Base, Title: f.Title, Draft: f.Draft, Kernel: k.ManifestName(), Paths: p.Paths,
		}))
	}
	return "```text\n" + strings.ReplaceAll(strings.Join(text, "\n"), "```", "'''") + "\n```"
}
