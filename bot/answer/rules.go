package answer

import (
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/command"
	"github.com/kernelgate/kernelgate/policies"
)

// approveRules lets the commit that is named, and no other, change the gate's own rules.
// Nobody waves their own change through, but for an administrator, who could take the
// gate away altogether.
func (d Decider) approveRules(s *change.State, c change.Command, a command.ApprovePolicy, has policies.Role) (change.Answered, error) {
	plan := s.Current()
	switch {
	case plan == nil:
		return refused("The change is still being read. Say it again in a moment.")
	case plan.RuleChange == nil:
		return refused("This change leaves the policy, the manifests and the references as they are: there is nothing to approve.")
	case !plan.RuleChange.Loosens:
		return refused("This change only tightens the rules: that needs no approval.")
	case a.SHA != s.Facts.Head:
		return refused("`%s` is not the whole id of the head, which is `%s`. Look at that one, and comment `/approve-policy %[2]s`.", a.SHA, s.Facts.Head)
	case c.Head != s.Facts.Head:
		return moved(s)
	case !MayApproveRules(s, c.By, has):
		return refused("You are the author of this change: somebody else has to approve what it does to the rules.")
	}
	given := change.RulesApproved{SHA: s.Facts.Head, By: c.By, At: d.Now().UTC().Format(time.RFC3339), Digest: plan.RuleChange.Digest}
	return granted(change.Effect{ApproveRules: &given}, "%.12s may change the rules. A new push, or other rules on the base, need a new approval.", s.Facts.Head)
}

// MayApproveRules tells whether somebody is not the author of the change, or may do
// anything in the repository.
func MayApproveRules(s *change.State, login string, has policies.Role) bool {
	return !strings.EqualFold(login, s.Facts.Author) || policies.Role("admin").Allows(has)
}
