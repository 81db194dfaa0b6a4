package gates

import "testing"

func TestCubinGrowth(t *testing.T) {
	sized := func(before, after int) func(*Evidence) {
		return func(e *Evidence) { e.Baseline.Resources.CodeSize, e.Candidate.Resources.CodeSize = &before, &after }
	}
	for _, c := range []struct {
		name    string
		policy  string
		change  func(*Evidence)
		outcome Outcome
		reason  Reason
		says    string
	}{
		{"at the limit", "{}", sized(1000, 1050), Pass, "", ""},
		{"beyond it", "{}", sized(1000, 1051), Defer, ReasonResources, "machine code 1000B → 1051B"},
		{"smaller", "{}", sized(1000, 10), Pass, "", ""},
		{"another limit", "{increase: '<= 50%'}", sized(1000, 1500), Pass, "", ""},
		{"below, not at, a limit", "{increase: '< 50%'}", sized(1000, 1500), Defer, ReasonResources, "limit < 50%"},
		{"only informs", "{required: false}", sized(1000, 9000), Pass, "", ""},
		{"no figure", "{}", func(e *Evidence) { sized(1000, 1000)(e); e.Candidate.Resources.CodeSize = nil }, Defer, ReasonInconclusive, "no resource usage was recorded"},
		{"no figure of the baseline", "{}", func(e *Evidence) { sized(1000, 1000)(e); e.Baseline.Resources = nil }, Defer, ReasonInconclusive, "no resource usage was recorded"},
		{"a new kernel", "{}", func(e *Evidence) { sized(1000, 9000)(e); e.Baseline = nil }, Pass, "", ""},
		{"all kernels of a launch count", "{}", func(e *Evidence) {
			sized(1000, 1000)(e)
			e.Candidate.Kernels = []KernelUse{{Entry: "a", Resources: *e.Candidate.Resources}, {Entry: "b", Resources: *e.Candidate.Resources}}
		}, Defer, ReasonResources, "1000B → 2000B"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := passing()
			c.change(e)
			p := parsePolicy(t, "version: 1\ngates:\n  cubin_growth: "+c.policy+"\nrules:\n  - name: default\n")
			expect(t, Judge(p, "test.yaml", e), c.outcome, c.reason, c.says)
			if need := Next(p, e); need.Gate != "" {
				t.Errorf("it asks for evidence of %s", need.Gate)
			}
		})
	}
}
