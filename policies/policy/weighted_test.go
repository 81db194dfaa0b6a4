package policy_test

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/policy"
)

const weighted = `version: 1
gates:
  correctness: {norm_error: "<= 1%"}
  performance: {target: {weighted: ">= +3%"}, guard: {speedup: ">= -2%"}}
rules: [{name: default}]
`

func performanceOf(t *testing.T, text string) *policy.PerformanceGate {
	t.Helper()
	p, err := policy.Parse("p.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p.RuleFor(policy.Change{}).Gates.Performance
}

func TestWeightedGoal(t *testing.T) {
	for _, e := range []struct {
		target, text string
		perShape     bool
		inputs       int
	}{
		{`{weighted: ">= +3%"}`, "weighted speedup >= +3%", false, 1},
		{`{weighted: ">= +3%", shapes: [mission], speedup: ">= +5%"}`, "weighted speedup >= +3% and speedup >= +5% on mission", true, 2},
		{`{speedup: ">= +5%"}`, "speedup >= +5% on all shapes", true, 2},
	} {
		gate := performanceOf(t, strings.Replace(weighted, `{weighted: ">= +3%"}`, e.target, 1))
		if got := gate.Target.String(); got != e.text || gate.Target.PerShape() != e.perShape {
			t.Errorf("%s: %q, of single shapes: %v", e.target, got, gate.Target.PerShape())
		}
		if goal := gate.Weighted(); (goal != nil) != strings.Contains(e.target, "weighted") || goal != nil && goal.Alone().Weighted != nil {
			t.Errorf("%s: the weighted goal is %v", e.target, goal)
		}
		if got := strings.Contains(gate.String(), e.text); !got {
			t.Errorf("%s is explained as %s", e.target, gate)
		}
		p, err := policy.Parse("p.yaml", []byte(strings.Replace(weighted, `{weighted: ">= +3%"}`, e.target, 1)))
		if err != nil {
			t.Fatal(err)
		}
		speeds := 0
		for _, in := range p.RuleFor(policy.Change{}).Gates.Inputs() {
			if strings.HasPrefix(in.Field, "performance.") {
				speeds++
			}
		}
		if speeds != e.inputs {
			t.Errorf("%s: %d lists of shapes are timed, want %d", e.target, speeds, e.inputs)
		}
	}
}

// A measurement of named shapes asks nothing of a sum that it does not measure.
func TestNarrowWeighted(t *testing.T) {
	for text, want := range map[string]string{
		weighted: "speedup >= -2% on long",
		strings.Replace(weighted, `, guard: {speedup: ">= -2%"}`, "", 1):                                             "speedup >= +3% on long",
		strings.Replace(weighted, `guard: {speedup: ">= -2%"}`, `guard: {weighted: ">= -1%", speedup: ">= -5%"}`, 1): "",
	} {
		p, err := policy.Parse("p.yaml", []byte(text))
		if want == "" {
			if err == nil {
				t.Error("both goals bound the weighted speedup, and nobody says so")
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		gate := p.Narrow([]string{"long"}, nil).RuleFor(policy.Change{}).Gates.Performance
		if gate.Target != nil || gate.Guard.String() != want || gate.Weighted() != nil {
			t.Errorf("target %v, guard %v, want %s", gate.Target, gate.Guard, want)
		}
	}
}

// A rule cannot apply to a kernel that an earlier rule always takes, or that its globs exclude.
func TestMayApply(t *testing.T) {
	p, err := policy.Parse("p.yaml", []byte(`version: 1
gates: {correctness: {norm_error: "<= 1%"}}
rules:
  - {name: tried, when: {kernels: [a]}, enforce: shadow}
  - {name: labelled, when: {kernels: [a, b], labels: [perf]}}
  - {name: named, when: {kernels: ["b*"]}}
  - {name: default}
`))
	if err != nil {
		t.Fatal(err)
	}
	for rule, kernels := range map[string]string{"tried": "a", "labelled": "a b", "named": "b bc", "default": "a c", "none": ""} {
		var got []string
		for _, kernel := range []string{"a", "b", "bc", "c"} {
			if p.MayApply(rule, kernel) {
				got = append(got, kernel)
			}
		}
		if strings.Join(got, " ") != kernels {
			t.Errorf("%s may apply to %v, want %s", rule, got, kernels)
		}
	}
}
