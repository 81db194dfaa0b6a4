package pages

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/policy"
)

// A PolicyPage explains which rule applies to a change.
type PolicyPage struct {
	Repo    string      `json:"repository"`
	Change  string      `json:"change"`
	Title   string      `json:"title"`
	Number  int         `json:"number,omitempty"`
	File    string      `json:"file"`
	None    string      `json:"none,omitempty"` // why there is no policy
	Text    string      `json:"text,omitempty"`
	Kernels []RuleOfOne `json:"kernels,omitempty"`
	Asked   AskedChange `json:"asked"`
}

// AskedChange is the change that the rules are evaluated for: the change itself, or a hypothetical
// one from the URL's query.
type AskedChange struct {
	Labels string `json:"labels"`
	Branch string `json:"branch"`
	Title  string `json:"title"`
	Draft  bool   `json:"draft"`
	Kernel string `json:"kernel"`
	Other  bool   `json:"other"` // differs from the change itself
}

// A RuleOfOne describes the rule for one kernel.
type RuleOfOne struct {
	Kernel string              `json:"kernel"`
	Rule   string              `json:"rule"`
	Passed []policy.PassedOver `json:"passed_over,omitempty"`
	Why    string              `json:"why"` // why this rule applies
	Asks   []policy.Asked      `json:"asks"`
}

func (s *Server) policy(ctx context.Context, v *visit) (any, error) {
	q := v.URL.Query()
	if !q.Has("change") {
		return &PolicyPage{None: "Every change has its rules: a change's page leads to them."}, nil
	}
	state, repo, err := s.changeOf(ctx, v, q.Get("change"))
	if err != nil {
		return nil, err
	}
	p := &PolicyPage{Repo: repo, Change: state.ID.String(), Title: state.Facts.Title, Number: state.ID.Number}
	f := state.Facts
	p.Asked = AskedChange{Labels: strings.Join(f.Labels, ", "), Branch: f.Base, Title: f.Title, Draft: f.Draft, Kernel: q.Get("kernel")}
	if q.Has("ask") {
		p.Asked = AskedChange{Labels: q.Get("labels"), Branch: q.Get("branch"), Title: q.Get("title"), Draft: q.Has("draft"), Kernel: q.Get("kernel"), Other: true}
	}
	plan := state.Plan
	switch {
	case plan == nil:
		p.None = "This change is not planned yet: the bot has not read the base's policy."
		return p, nil
	case plan.NoPolicy:
		p.None = "The base has no policy, so nothing blocks this change."
		return p, nil
	}
	p.File, p.Text = plan.PolicyFile, plan.Policy
	rules, err := plan.ReadPolicy()
	if err != nil {
		p.None = "The base's policy has mistakes, so the bot cannot judge by it."
		return p, nil
	}
	asked := policy.Change{Branch: p.Asked.Branch, Title: p.Asked.Title, Draft: p.Asked.Draft}
	for _, label := range strings.Split(p.Asked.Labels, ",") {
		if label = strings.TrimSpace(label); label != "" {
			asked.Labels = append(asked.Labels, label)
		}
	}
	for _, k := range plan.Kernels {
		if p.Asked.Kernel != "" && k.KernelName() != p.Asked.Kernel {
			continue
		}
		if slices.ContainsFunc(p.Kernels, func(known RuleOfOne) bool { return known.Kernel == k.KernelName() }) {
			continue // on one more device
		}
		asked.Kernel, asked.Paths = k.ManifestName(), k.Paths
		rule := rules.RuleFor(asked)
		p.Kernels = append(p.Kernels, RuleOfOne{Kernel: k.KernelName(), Rule: rule.Name, Passed: rules.PassedOver(asked), Why: "it is for " + rule.When.String() + enforced(rules, rule, asked), Asks: rule.Asked()})
	}
	return p, nil
}

// enforced says which verdicts on a change block nothing.
func enforced(p *policy.Policy, rule *policy.Rule, asked policy.Change) string {
	text := ""
	if !rule.Enforce.Blocks() {
		text = fmt.Sprintf("; enforce: %s, so its verdict blocks nothing", rule.Enforce)
	}
	if trial := p.TrialFor(asked); trial != nil {
		text += fmt.Sprintf("; rule %s is tried as well (enforce: %s) and blocks nothing", trial.Name, trial.Enforce)
	}
	return text
}
