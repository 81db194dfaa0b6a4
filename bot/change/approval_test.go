package change

import "testing"

// An approval counts for the head and the differences that somebody has read, and for nothing else.
func TestApprovalCounts(t *testing.T) {
	loosens := &RuleChange{Loosens: true, Digest: "d"}
	for _, c := range []struct {
		name     string
		approval *RulesApproved
		plan     *Plan
		counts   bool
		waits    bool
	}{
		{"for this head and these differences", &RulesApproved{For: given(headTwo), Digest: "d"}, &Plan{RuleChange: loosens}, true, false},
		{"for this head, whatever the differences", &RulesApproved{For: given(headTwo)}, &Plan{RuleChange: loosens}, true, false},
		{"for another head", &RulesApproved{For: given(headOne), Digest: "d"}, &Plan{RuleChange: loosens}, false, true},
		{"for another head, whatever the differences", &RulesApproved{For: given(headOne)}, &Plan{RuleChange: loosens}, false, true},
		{"for other differences", &RulesApproved{For: given(headTwo), Digest: "e"}, &Plan{RuleChange: loosens}, false, true},
		{"where there is none", nil, &Plan{RuleChange: loosens}, false, true},
		{"of a change that tightens", nil, &Plan{RuleChange: &RuleChange{Digest: "d"}}, false, false},
		{"of a change that leaves the rules alone", &RulesApproved{For: given(headTwo)}, &Plan{}, false, false},
		{"before there is a plan", &RulesApproved{For: given(headTwo)}, nil, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := begin(t).then(Seen{Facts: facts(headTwo), RulesApproved: c.approval})
			if got := s.ApprovedRules(c.plan) != nil; got != c.counts {
				t.Errorf("counts is %v", got)
			}
			if got := s.RulesWait(c.plan); got != c.waits {
				t.Errorf("waits is %v", got)
			}
		})
	}
}
