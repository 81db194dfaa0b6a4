package change_test

import (
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies"
)

// Of several rules that count the worst verdict does, whichever was measured by.
func TestJudgeByTheWorst(t *testing.T) {
	t.Parallel()
	policy, err := policies.Parse("policy.yaml", []byte(`version: 1
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
