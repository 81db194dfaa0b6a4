package change

import (
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/compare"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A RuleChange is what a change would do to the gate's own rules on the branch that it
// goes to: policy, manifests, references and harnesses. It is judged by the rules as they
// are, and says nothing of the kernels.
type RuleChange struct {
	Differences []RuleDifference `json:"differences"`    // what may loosen first
	More        int              `json:"more,omitempty"` // differences that are not listed
	Loosens     bool             `json:"loosens,omitempty"`
	Files       []string         `json:"files,omitempty"`    // that do: a code owner of each can approve it; none where they are too many
	Digest      string           `json:"digest"`             // of all differences
	Judged      int              `json:"judged,omitempty"`   // how many past runs were judged by the new policy too
	Past        []PastVerdict    `json:"past,omitempty"`     // those of them whose verdict would change
	Lacking     []PastVerdict    `json:"lacking,omitempty"`  // those of them whose evidence would not suffice
	Unjudged    int              `json:"unjudged,omitempty"` // past runs for which there was no time
	// Seconds of measuring per verdict, over the runs of which the new policy asks something else.
	OldSeconds float64 `json:"old_seconds,omitempty"`
	NewSeconds float64 `json:"new_seconds,omitempty"`
}

// A RuleDifference is one of a file.
type RuleDifference struct {
	File string `json:"file"`
	compare.Difference
}

// A PastVerdict is that of a past run, by both policies.
type PastVerdict struct {
	Kernel string    `json:"kernel"`
	Change ID        `json:"change"`
	Head   string    `json:"head"`
	Old    Judgement `json:"old"` // by the base's policy
	New    Judgement `json:"new"`
	Why    string    `json:"why,omitempty"` // in a sentence: the new verdict, or what its evidence lacks
}

// A Judgement is an outcome with its reason.
type Judgement struct {
	Outcome gates.Outcome  `json:"outcome"`
	Reason  gates.Reason   `json:"reason,omitempty"`
	Enforce policy.Enforce `json:"enforce,omitempty"` // where the rule does not block
}

// RulesApproved is somebody's word that one head may change the rules.
type RulesApproved struct {
	For Scope  `json:"for"`
	By  string `json:"by"`
	At  string `json:"at,omitempty"`
	// Digest is of the differences that they could read. It is empty where that is not
	// known: for a merge group, whose pull requests were approved, and in a workflow.
	Digest string `json:"digest,omitempty"`
	// Reviews is the approving reviews of code owners that it stands on; none where it was
	// said in a command. Without them it is void.
	Reviews []int64 `json:"reviews,omitempty"`
}

// RulesWait tells whether a plan's change of the rules waits for somebody's word.
func (s *State) RulesWait(p *Plan) bool {
	return p != nil && p.RuleChange != nil && p.RuleChange.Loosens && s.ApprovedRules(p) == nil
}

// ApprovedRules is the word that the head has for what a plan finds, if it has one. A
// pull request that goes to another branch now, or a branch with other rules, is not what
// somebody has read.
func (s *State) ApprovedRules(p *Plan) *RulesApproved {
	a := s.RulesApproved
	if a == nil || p == nil || a.For != NewScope(s.Facts.Head, s.Facts.Base, p.Rules) || p.RuleChange == nil || a.Digest != "" && a.Digest != p.RuleChange.Digest {
		return nil
	}
	return a
}

// reviewed takes the word of reviews. One that was said in a command is not theirs to take
// back.
func (s *State) reviewed(a *RulesApproved) {
	switch {
	case a != nil && s.holds(a.For):
		s.RulesApproved = a
	case a == nil && s.RulesApproved != nil && len(s.RulesApproved.Reviews) > 0:
		s.RulesApproved = nil
	}
}

// otherRules notes since when the branch asks what it asks: who has reviewed before that
// has read another change of the rules, whichever head it was.
func (s *State) otherRules(at time.Time, p *Plan) {
	if s.Plan != nil && requirements(s.Plan.Rules) != requirements(p.Rules) {
		s.RulesSince = at
	}
}
