package change

import "testing"

// What reviews say is theirs to take back, and what a command has said is not.
func TestReviewed(t *testing.T) {
	loosens := func(s *story, rules string) *story {
		return s.then(Planned{Plan{Key: s.Facts.PlanKey(), Head: s.Facts.Head, Rules: rules, RuleChange: &RuleChange{Loosens: true, Digest: "d"}}})
	}
	word := &RulesApproved{For: NewScope(headOne, "main", "r1"), By: "ann", Digest: "d", Reviews: []int64{5}}
	waits := func(name string, s *story, want bool) {
		t.Helper()
		if got := s.RulesWait(s.Current()); got != want {
			t.Errorf("%s: waits is %v", name, got)
		}
	}
	s := loosens(begin(t).seen(facts(headOne)), "r1")
	waits("at first", s, true)
	waits("approved", s.then(Reviewed{word}), false)
	waits("taken back", s.then(Reviewed{}), true)
	waits("of another head", s.then(Reviewed{&RulesApproved{For: NewScope(headTwo, "main", "r1"), Digest: "d", Reviews: []int64{6}}}), true)
	s.then(Asked{ID: "comment-1"}, Answered{ID: "comment-1", OK: true, Effect: Effect{ApproveRules: &RulesApproved{For: NewScope(headOne, "main", "r1"), Digest: "d"}}})
	waits("said", s.then(Reviewed{}), false)
	if !s.RulesSince.IsZero() {
		t.Errorf("other rules since %v", s.RulesSince)
	}
	loosens(s.seen(facts(headTwo)), "r1")
	if !s.RulesSince.IsZero() {
		t.Errorf("a new head has brought other rules at %v", s.RulesSince)
	}
	loosens(s.seen(facts(headOne)), "r2") // the base's, while the head was another
	if !s.RulesSince.Equal(s.at()) {
		t.Errorf("other rules since %v, not %v", s.RulesSince, s.at())
	}
}
