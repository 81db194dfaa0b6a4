package change_test

import (
	"maps"
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// Of several rules that count the worst verdict does, whichever was measured by.
func TestJudgeByTheWorst(t *testing.T) {
	t.Parallel()
	policy, err := policy.Parse("policy.yaml", []byte(`version: 1
gates: {}
rules:
  - name: careful
    when: {labels: [careful]}
    gates:
      correctness: {shapes: all, seeds: [0], distributions: [normal], norm_error: "<= 1%"}
  - name: default
`))
	if err != nil {
		t.Fatal(err)
	}
	e := &gates.Evidence{Schema: gates.EvidenceSchema, Kernel: "scale", Candidate: &gates.Build{OK: true}}
	for _, test := range []struct {
		rules []string
		want  gates.Outcome
		by    string
	}{
		{nil, gates.Pass, "default"},
		{[]string{"default"}, gates.Pass, "default"},
		{[]string{"careful", "default"}, gates.Defer, "careful"},
		{[]string{"default", "careful"}, gates.Defer, "careful"},
	} {
		if v := change.Judge(policy, "policy.yaml", e, test.rules); v.Outcome != test.want || v.Rule != test.by {
			t.Errorf("%v: %s by %s (%s), want %s by %s", test.rules, v.Outcome, v.Rule, v.Summary, test.want, test.by)
		}
	}
}

// The ratios of a result are those that a high-water mark may be derived from: of figures that can be believed, and of the same code.
func TestCompare(t *testing.T) {
	t.Parallel()
	shapes := []gates.Shape{{Name: "one", Dims: "N=1"}, {Name: "two", Dims: "N=2"}}
	row := func(speedup float64) gates.Comparison {
		return gates.Comparison{Shape: "one", Baseline: &stats.Summary{N: 5}, Speedup: gates.Estimate{Value: speedup}}
	}
	for _, c := range []struct {
		name    string
		v       gates.Verdict
		e       gates.Evidence
		against string
		want    map[string]change.Ratio
	}{
		{"no baseline", gates.Verdict{}, gates.Evidence{Shapes: shapes}, "base", nil},
		{"no commit", gates.Verdict{}, gates.Evidence{Shapes: shapes, Baseline: &gates.Build{OK: true}, SameCode: true}, "", nil},
		{"the same code", gates.Verdict{}, gates.Evidence{Shapes: shapes, Baseline: &gates.Build{OK: true}, SameCode: true}, "base", map[string]change.Ratio{"one": {Value: 1, Dims: "N=1"}, "two": {Value: 1, Dims: "N=2"}}},
		{"the same code on one shape", gates.Verdict{Comparisons: []gates.Comparison{{Shape: "two", Same: true}}}, gates.Evidence{Shapes: shapes, Baseline: &gates.Build{OK: true}}, "base", map[string]change.Ratio{"two": {Value: 1, Dims: "N=2"}}},
		{"a gain", gates.Verdict{Comparisons: []gates.Comparison{row(0.25)}}, gates.Evidence{Shapes: shapes, Baseline: &gates.Build{OK: true}}, "base", map[string]change.Ratio{"one": {Value: 1.25, Dims: "N=1"}}},
		{"a loss", gates.Verdict{Comparisons: []gates.Comparison{row(-0.25)}}, gates.Evidence{Shapes: shapes, Baseline: &gates.Build{OK: true}}, "base", map[string]change.Ratio{"one": {Value: 0.75, Dims: "N=1"}}},
		{"no speed at all", gates.Verdict{Comparisons: []gates.Comparison{row(-1)}}, gates.Evidence{Shapes: shapes, Baseline: &gates.Build{OK: true}}, "base", nil},
		{"no figure", gates.Verdict{Comparisons: []gates.Comparison{row(0)}}, gates.Evidence{Shapes: shapes, Baseline: &gates.Build{OK: true}}, "base", nil},
		{"no baseline's figure", gates.Verdict{Comparisons: []gates.Comparison{{Shape: "one", Speedup: gates.Estimate{Value: 0.25}}}}, gates.Evidence{Shapes: shapes, Baseline: &gates.Build{OK: true}}, "base", nil},
		{"a fault", gates.Verdict{Outcome: gates.Error, Comparisons: []gates.Comparison{row(0.25)}}, gates.Evidence{Shapes: shapes, Baseline: &gates.Build{OK: true}}, "base", nil},
		{"too good to be true", gates.Verdict{Reason: gates.ReasonSuspicious, Comparisons: []gates.Comparison{row(0.25)}}, gates.Evidence{Shapes: shapes, Baseline: &gates.Build{OK: true}}, "base", nil},
		{"a wrong output", gates.Verdict{Reason: gates.ReasonCorrectness, Comparisons: []gates.Comparison{row(0.25)}}, gates.Evidence{Shapes: shapes, Baseline: &gates.Build{OK: true}}, "base", nil},
		{"a baseline that does not build", gates.Verdict{}, gates.Evidence{Shapes: shapes, Baseline: &gates.Build{}}, "base", nil},
	} {
		var r change.Result
		c.e.Device.Arch = "sm_90"
		r.Compare(&c.v, &c.e, c.against)
		if !maps.Equal(r.Ratios, c.want) {
			t.Errorf("%s: %v, want %v", c.name, r.Ratios, c.want)
		}
		if known := c.e.Baseline != nil && c.against != ""; known != (r.Against == "base" && r.Arch == "sm_90") || r.Unbuildable != (known && !c.e.Baseline.OK) {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}
