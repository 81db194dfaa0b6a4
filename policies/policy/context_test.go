package policy_test

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/policy"
)

func TestContexts(t *testing.T) {
	for _, c := range []struct{ goal, want string }{
		{"{speedup: '>= 1%'}", "speedup >= +1% on all shapes"},
		{"{speedup: '>= 1%', context: cold}", "speedup >= +1% on all shapes"},
		{"{speedup: '>= 1%', context: warm}", "speedup >= +1% on all shapes, warm"},
		{"{speedup: '>= 1%', context: [warm, cold]}", "speedup >= +1% on all shapes, cold and warm"},
	} {
		if p, err := parseTarget(c.goal); err != nil || p.Rules[0].Gates.Performance.Target.String() != c.want {
			t.Errorf("%s: %v: %+v, want %q", c.goal, err, p, c.want)
		}
	}
	for _, c := range []struct{ goal, want string }{
		{"{speedup: '>= 1%', context: hot}", `p.yaml:1:108: gates.performance.target.context: "hot" is not one of cold, warm`},
		{"{speedup: '>= 1%', context: []}", "gates.performance.target.context: is empty (write cold, warm, or both)"},
		{"{speedup: '>= 1%', context: [warm, warm]}", `gates.performance.target.context[1]: "warm" is named twice (delete one)`},
		{"{speedup: '>= 1%', context: {warm: true}}", "gates.performance.target.context: is not one of cold, warm"},
		{"{speedup: '>= 1%', context: }", "gates.performance.target.context: is not one of cold, warm"},
		{"{weighted: '>= 1%', context: warm}", "gates.performance.target.context: does not go with weighted: weights.warm in the manifest says which launches of a step are warm"},
	} {
		if _, err := parseTarget(c.goal); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.goal, err, c.want)
		}
	}
}

func parseTarget(goal string) (*policy.Policy, error) {
	return policy.Parse("p.yaml", []byte("{version: 1, gates: {correctness: {norm_error: '<= 1%'}, performance: {target: "+goal+"}}, rules: [{name: default}]}"))
}

// TestCompareContexts checks that asking for fewer contexts loosens a policy, and that for one more the direction is open.
func TestCompareContexts(t *testing.T) {
	for _, c := range []struct {
		old, new string
		loosens  bool
	}{
		{"cold", "cold", false}, {"[cold, warm]", "[warm, cold]", false},
		{"[cold, warm]", "cold", true}, {"cold", "[cold, warm]", true}, {"cold", "warm", true},
	} {
		old, err := parseTarget("{speedup: '>= 1%', context: " + c.old + "}")
		if err != nil {
			t.Fatal(err)
		}
		is, err := parseTarget("{speedup: '>= 1%', context: " + c.new + "}")
		if err != nil {
			t.Fatal(err)
		}
		if got := policy.Compare(old, is); got.Loosens() != c.loosens {
			t.Errorf("%s to %s: %v", c.old, c.new, got)
		}
	}
}
