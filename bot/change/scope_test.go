package change

import (
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
)

// planBy plans for the facts as they are, by rules of the base.
func (s *story) planBy(rules string, kernels ...Kernel) *story {
	return s.then(Planned{Plan{Key: s.Facts.PlanKey(), Head: s.Facts.Head, Rules: rules, Kernels: kernels, RuleChange: &RuleChange{Loosens: true, Digest: "d"}}})
}

// retarget gives the pull request a different base.
func (s *story) retarget(base string) *story {
	f := s.Facts
	f.Base = base
	return s.seen(f)
}

// decide gives every decision that there is.
func (s *story) decide() *story {
	now, _ := s.Scope()
	s.command("o", Effect{Override: &Override{For: now, By: "ann", Reason: "hotfix"}})
	s.command("r", Effect{ApproveRules: &RulesApproved{For: now, By: "bob", Digest: "d"}})
	return s.command("f", Effect{Approve: &ForkApproved{For: now, By: "cat"}})
}

// decisions is those that hold.
func (s *story) decisions() string {
	var all []string
	if s.Overridden() != nil {
		all = append(all, "override")
	}
	if s.ApprovedRules(s.Current()) != nil {
		all = append(all, "rules")
	}
	if !s.Held() {
		all = append(all, "fork")
	}
	return strings.Join(all, " ")
}

// A decision holds for the base, the rules of the base and the head that it was given for. Anything else ends it, for
// good and visibly.
func TestDecisionsHoldForTheirScope(t *testing.T) {
	const all = "override rules fork"
	fork := facts(headOne)
	fork.Fork = true
	start := func(t *testing.T) *story { return begin(t).seen(fork).planBy("asks-built", kernel("a")).decide() }
	for name, test := range map[string]struct {
		then   func(*story) *story
		hold   string
		voided int
	}{
		"as given":                     {func(s *story) *story { return s }, all, 0},
		"new sources of the base":      {func(s *story) *story { return s.planBy("asks-merged", kernel("a")) }, all, 0},
		"new rules of the base":        {func(s *story) *story { return s.planBy("other-built", kernel("a")) }, "", 3},
		"new rules, and back":          {func(s *story) *story { return s.planBy("other-built").planBy("asks-built") }, "", 3},
		"a new base, before its plan":  {func(s *story) *story { return s.retarget("mine") }, "", 3},
		"a new base with equal rules":  {func(s *story) *story { return s.retarget("mine").planBy("asks-built") }, "", 3},
		"a new base, and back":         {func(s *story) *story { return s.retarget("mine").retarget("main").planBy("asks-built") }, "", 3},
		"a new title, before its plan": {func(s *story) *story { f := s.Facts; f.Title = "x"; return s.seen(f) }, "", 0},
		"a new title":                  {func(s *story) *story { f := s.Facts; f.Title = "x"; return s.seen(f).planBy("asks-built") }, all, 0},
		"a push":                       {func(s *story) *story { f := s.Facts; f.Head = headTwo; return s.seen(f).planBy("asks-built") }, "", 0},
		"a new base while it is closed": {func(s *story) *story {
			f := s.Facts
			f.Open = false
			s.seen(f)
			f.Base = "mine"
			s.seen(f)
			f.Open = true
			return s.seen(f).planBy("asks-built")
		}, "", 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := test.then(start(t))
			if got := s.decisions(); got != test.hold {
				t.Errorf("%q hold, want %q", got, test.hold)
			}
			if len(s.Voided) != test.voided {
				t.Errorf("voided %+v, want %d", s.Voided, test.voided)
			}
		})
	}
	// A command that was decided before the base changed has no effect after it.
	s := start(t)
	now, _ := s.Scope()
	s.retarget("mine").planBy("asks-built")
	s.command("late", Effect{Override: &Override{For: now}}).command("late2", Effect{ApproveRules: &RulesApproved{For: now}}).command("late3", Effect{Approve: &ForkApproved{For: now}})
	if got := s.decisions(); got != "" {
		t.Errorf("%s of a different base hold", got)
	}
	never := Plan{Key: s.Facts.PlanKey(), Head: headOne, Rules: "asks-built", Forks: "never"}
	if s.then(Planned{never}).decide(); !s.Held() {
		t.Error("the code of a fork runs where the policy never runs it")
	}
}

// What was measured for one base was compared with what that base has: it is not used for another.
func TestRunsEndWithTheBase(t *testing.T) {
	s := begin(t).seen(facts(headOne)).plan(kernel("a"), kernel("b")).finish("a", gates.Pass).start("b")
	s.retarget("mine").tells("past a@1 #1 done PASS", "past b@1 #1 abandoned", "needs plan", "dropping 1")
}

// A conclusion that GitHub shows is outdated as soon as the base is a different one, and until there is a new plan.
func TestOutdatedConclusions(t *testing.T) {
	post := func(s *story, done bool) *story {
		return s.then(Published{Complete: true, Checks: map[string]Posted{CheckKey("kernelgate", s.Facts.Head): {ID: 1, Done: done, For: s.PostedScope()}}})
	}
	otherRules := func(s *story, rules string) *story { f := s.Facts; f.Rules = rules; return s.seen(f) }
	start := func(t *testing.T) *story { return begin(t).seen(facts(headOne)).planBy("asks-built") }
	for name, test := range map[string]struct {
		then func(*story) *story
		want bool
	}{
		"planned":                   {func(s *story) *story { return post(s, true) }, false},
		"a new base":                {func(s *story) *story { return post(s, true).retarget("mine") }, true},
		"a new base, not concluded": {func(s *story) *story { return post(s, false).retarget("mine") }, false},
		"a new base, retracted":     {func(s *story) *story { return post(post(s, true).retarget("mine"), false) }, false},
		"a new base, planned":       {func(s *story) *story { return post(s, true).retarget("mine").planBy("asks-built") }, false},
		"new rules":                 {func(s *story) *story { return otherRules(post(s, true), "other-built") }, true},
		"new sources":               {func(s *story) *story { return otherRules(post(s, true), "asks-merged") }, false},
		"a new title":               {func(s *story) *story { f := post(s, true).Facts; f.Title = "x"; return s.seen(f) }, false},
		"an old head of an old base": {func(s *story) *story {
			f := post(s, true).Facts
			f.Head = headTwo
			s.seen(f).retarget("mine")
			f = s.Facts
			f.Head = headOne
			return s.seen(f)
		}, true},
		"closed, with a different base": {func(s *story) *story { f := post(s, true).Facts; f.Open, f.Base = false, "mine"; return s.seen(f) }, false},
		"reopened to a different base": {func(s *story) *story {
			f := post(s, true).Facts
			f.Open, f.Base = false, "mine"
			s.seen(f)
			f.Open = true
			return s.seen(f)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.then(start(t)).Outdated(); slices.Contains(got, "kernelgate") != test.want {
				t.Errorf("outdated: %v", got)
			}
		})
	}
}

// Evidence holds for the runners that the policy allows.
func TestEvidenceHolds(t *testing.T) {
	spec := kernel("a").KernelSpec
	run := Run{KernelSpec: spec, Head: headOne, Phase: Done}
	other := func(bend func(*KernelSpec)) KernelSpec { k := spec; bend(&k); return k }
	for name, test := range map[string]struct {
		head string
		spec KernelSpec
		want bool
	}{
		"equal":         {headOne, spec, true},
		"another head":  {headTwo, spec, false},
		"other sources": {headOne, other(func(k *KernelSpec) { k.Sources = "x" }), false},
		"other devices": {headOne, other(func(k *KernelSpec) { k.Labels = []string{"h200"} }), false},
		"more devices":  {headOne, other(func(k *KernelSpec) { k.Labels = []string{"l4", "h200"} }), false},
	} {
		if got := EvidenceHolds(run, test.head, test.spec); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if run.Phase = Abandoned; EvidenceHolds(run, headOne, spec) {
		t.Error("an abandoned run has evidence")
	}
}

// A merge group inherits the decisions of its own pull requests, for its own base.
func TestInherit(t *testing.T) {
	group := Facts{Repo: "o/r", Head: "g", Base: "main", BaseSHA: "b", Open: true, Members: []Member{{Number: 1, Head: headOne}}}
	pull := func(bend func(*story)) *State {
		s := begin(t).seen(facts(headOne)).planBy("asks-built", kernel("a"))
		now, _ := s.Scope()
		s.command("o", Effect{Override: &Override{For: now, By: "ann", Reason: "hotfix"}}).command("r", Effect{ApproveRules: &RulesApproved{For: now, By: "bob", Digest: "d"}})
		if bend != nil {
			bend(s)
		}
		return s.State
	}
	for name, test := range map[string]struct {
		bend  func(*story)
		rules string
		want  bool
	}{
		"its pull request":          {nil, "asks-merged", true},
		"rules that changed ahead":  {nil, "other-built", false},
		"closed":                    {func(s *story) { f := s.Facts; f.Open = false; s.seen(f) }, "asks-built", false},
		"of a different base":       {func(s *story) { s.retarget("mine").planBy("asks-built") }, "asks-built", false},
		"decided on another base":   {func(s *story) { s.retarget("mine").planBy("asks-built").decide().retarget("main").planBy("asks-built") }, "asks-built", false},
		"of a different head":       {func(s *story) { f := s.Facts; f.Head = headTwo; s.seen(f).planBy("asks-built").decide() }, "asks-built", false},
		"to be planned once more":   {func(s *story) { f := s.Facts; f.Rules = "asks-merged"; s.seen(f) }, "asks-merged", true},
		"not planned for this base": {func(s *story) { s.retarget("mine").retarget("main") }, "asks-built", false},
	} {
		t.Run(name, func(t *testing.T) {
			seen := Inherit(group, test.rules, []*State{pull(test.bend)}, "now")
			if got := seen.Override != nil; got != test.want {
				t.Errorf("override: %v", got)
			}
			if got := seen.RulesApproved != nil; got != test.want {
				t.Errorf("approval of rules: %v", got)
			}
			if test.want && (seen.Override.For != NewScope("g", "main", test.rules) || seen.RulesApproved.For != seen.Override.For) {
				t.Errorf("the group inherits it for %+v", seen.Override.For)
			}
		})
	}
	unknown := group
	unknown.Members = []Member{{}}
	if seen := Inherit(unknown, "asks-built", nil, "now"); seen.Override != nil || seen.RulesApproved != nil {
		t.Errorf("a group of unknown members inherits %+v", seen)
	}
}
