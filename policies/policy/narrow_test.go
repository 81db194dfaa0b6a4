package policy_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/policies/policy"
)

func TestNarrow(t *testing.T) {
	text, err := policies.Shipped("l4")
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("l4.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	whole := p
	p = p.Narrow([]string{"long"}, nil)
	rule := p.RuleFor(policy.Change{Branch: "main"})
	perf, correct := rule.Gates.Performance, rule.Gates.Correctness
	if perf.Target != nil || perf.Guard.Shapes.String() != "long" || correct.Shapes.String() != "long" {
		t.Errorf("target %v, guard %v, correctness on %s: want the guard and correctness on long alone", perf.Target, perf.Guard, correct.Shapes)
	}
	if !slices.Equal(correct.Seeds, []int64{0, 1, 2}) {
		t.Errorf("seeds became %v without being named", correct.Seeds)
	}
	p = p.Narrow(nil, []int64{7})
	if rule := p.RuleFor(policy.Change{Branch: "main"}); !slices.Equal(rule.Gates.Correctness.Seeds, []int64{7}) || rule.Gates.Performance.Guard.Shapes.String() != "long" {
		t.Errorf("after naming seed 7: %v on %s", rule.Gates.Correctness.Seeds, rule.Gates.Performance.Guard.Shapes)
	}
	if again, err := policy.Parse("l4.yaml", text); err != nil || !reflect.DeepEqual(whole, again) {
		t.Errorf("narrowing has changed the policy itself: %v", err)
	}
	if whole.Narrow(nil, nil) != whole {
		t.Error("narrowing to nothing makes a copy")
	}
}

func TestAtMost(t *testing.T) {
	text, err := policies.Shipped("l4")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		rounds   int
		interims []int
		cut      bool
	}{
		{20, []int{6, 12, 20}, false},
		{15, []int{6, 12, 15}, true},
		{12, []int{6, 12}, true},
		{2, []int{policy.MinRounds}, true}, // fewer would decide by luck
	} {
		p, err := policy.Parse("l4.yaml", text)
		if err != nil {
			t.Fatal(err)
		}
		bounded, cut := p.AtMost(c.rounds)
		if interims := bounded.RuleFor(policy.Change{}).Gates.Performance.Interims; cut != c.cut || !slices.Equal(interims, c.interims) {
			t.Errorf("at most %d rounds: interims %v, cut %v", c.rounds, interims, cut)
		}
		if interims := p.RuleFor(policy.Change{}).Gates.Performance.Interims; !slices.Equal(interims, []int{6, 12, 20}) {
			t.Errorf("at most %d rounds: the policy itself has the interims %v now", c.rounds, interims)
		}
	}
}

// TestAtLeast checks that more rounds than the policy's get more time, and one more look at their
// end.
func TestAtLeast(t *testing.T) {
	text, err := policies.Shipped("l4")
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("l4.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	was := *p.RuleFor(policy.Change{}).Gates.Performance
	if _, raised := p.AtLeast(15); raised {
		t.Error("fewer rounds are raised")
	}
	longer, raised := p.AtLeast(49)
	is := longer.RuleFor(policy.Change{}).Gates.Performance
	if !raised || is.Rounds.Max != 49 || !slices.Equal(is.Interims, []int{6, 12, 20, 49}) || is.Budget != 3*was.Budget || is.Timeout != 3*was.Timeout {
		t.Errorf("raised %v to %+v, interims %v, %v and %v", raised, is.Rounds, is.Interims, is.Budget, is.Timeout)
	}
	if now := *p.RuleFor(policy.Change{}).Gates.Performance; !reflect.DeepEqual(now, was) {
		t.Errorf("the policy itself was raised to %+v", now)
	}
}

func TestStatic(t *testing.T) {
	text, err := policies.Shipped("l4")
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("l4.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range p.Static().Rules {
		if g := r.Gates; g.Correctness != nil || g.Sanitize != nil || g.Performance != nil || g.Profile != nil || g.PTXAS == nil {
			t.Errorf("rule %s has %+v", r.Name, g)
		}
	}
	if p.RuleFor(policy.Change{}).Gates.Performance == nil {
		t.Error("the policy itself lost its gates")
	}
}

// A probe draws nothing that an author must not know, and leaves the policy as it is.
func TestProbe(t *testing.T) {
	p, err := policy.Parse("p.yaml", []byte("version: 1\ngates:\n  correctness: {shapes: all, seeds: [0], secret_cases: 5, norm_error: '<= 1%'}\n"+
		"  sanitize: {shapes: all, secret_cases: 1}\n  performance: {guard: {speedup: '>= -5%'}, rounds: {min: 6, max: 20}}\nrules:\n  - name: default\n"))
	if err != nil {
		t.Fatal(err)
	}
	g := p.Probe().Rules[0].Gates
	if g.Correctness.SecretCases != 0 || g.Sanitize.SecretCases != 0 || *g.Performance.SecretShape || g.Profile != nil || slices.Max(g.Performance.Interims) != policy.MinRounds {
		t.Errorf("the probe asks %+v, %+v, %+v", g.Correctness, g.Sanitize, g.Performance)
	}
	if was := p.Rules[0].Gates; was.Correctness.SecretCases != 5 || was.Sanitize.SecretCases != 1 || was.Performance.SecretShape != nil {
		t.Error("the policy has changed")
	}
}
