package gates

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/policies/policy"
)

// withEnforce is a policy whose rule fast asks for a gain of a fifth of changes with a label, and
// whose default rule asks for a tenth.
func withEnforce(t testing.TB, fast, last string) *policy.Policy {
	t.Helper()
	return parsePolicy(t, `version: 1
gates:
  correctness: {shapes: [mission], seeds: [0], norm_error: "<= 1%"}
  performance: {target: {shapes: [mission], speedup: ">= +10%"}, pairs: 20}
rules:
  - name: fast
    when: {labels: [fast]}
    enforce: `+fast+`
    gates: {performance: {target: {speedup: ">= +20%"}}}
  - name: default
    enforce: `+last+`
`)
}

// A rule on trial is judged by the same evidence and moves no verdict.
func TestTrial(t *testing.T) {
	for _, c := range []struct {
		name          string
		ratio         float64
		fast, last    string
		rule          string
		outcome       Outcome
		blocks        bool
		trial         Outcome // "" for none
		trialEnforced policy.Enforce
	}{
		{"it would defer what passes", 1.15, "shadow", "block", "default", Pass, false, Defer, policy.EnforceShadow},
		{"it would defer what is deferred", 1.02, "warn", "block", "default", Defer, true, Defer, policy.EnforceWarn},
		{"it would pass as well", 1.3, "warn", "block", "default", Pass, false, Pass, policy.EnforceWarn},
		{"it blocks", 1.15, "block", "block", "fast", Defer, true, "", ""},
		{"nothing blocks", 1.15, "warn", "shadow", "fast", Defer, false, "", ""},
		{"nothing blocks, and it passes", 1.3, "shadow", "shadow", "fast", Pass, false, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := quiet(c.ratio).measured(newRand(1, 2), 20)
			e.Change.Labels = []string{"fast"}
			v := judgeQuickly(withEnforce(t, c.fast, c.last), e)
			if v.Rule != c.rule || v.Outcome != c.outcome || v.Blocks() != c.blocks {
				t.Errorf("%s by %s (blocks: %t): %s", v.Outcome, v.Rule, v.Blocks(), v.Summary)
			}
			switch {
			case c.trial == "" && v.Trial != nil:
				t.Errorf("%+v is tried", v.Trial)
			case c.trial == "":
			case v.Trial == nil || v.Trial.Rule != "fast" || v.Trial.Outcome != c.trial || v.Trial.Enforce != c.trialEnforced || v.Trial.Lacks != "":
				t.Errorf("the trial is %+v", v.Trial)
			}
		})
	}
}

// The evidence is what the blocking rule asked for. A trial for which that is too little is not
// decided, and gathers nothing.
func TestTrialLacksEvidence(t *testing.T) {
	p := withEnforce(t, "shadow", "block")
	e := machine{model: heavy, ratio: 1.21, blocks: 20}.measured(newRand(3, 4), 6)
	e.Change.Labels = []string{"fast"}
	v := judgeQuickly(p, e)
	if v.Outcome != Pass || v.Trial == nil || v.Trial.Lacks != GatePerformance || v.Trial.Outcome != Defer {
		t.Errorf("%s, trial %+v", v.Outcome, v.Trial)
	}
	if need := Next(p, e); need != (Need{}) {
		t.Errorf("the trial has the runner gather %+v", need)
	}
	e.Fault = "the host is busy"
	if v := judgeQuickly(p, e); v.Trial != nil || !v.Blocks() {
		t.Errorf("a fault of the runner: %+v, blocks: %t", v.Trial, v.Blocks())
	}
}

// Nobody is advised to give a change the label of a rule that decides nothing.
func TestNoAdviceToBeTried(t *testing.T) {
	p := parsePolicy(t, `version: 1
gates:
  correctness: {shapes: [mission], seeds: [0], norm_error: "<= 1%"}
  performance: {target: {shapes: [mission], speedup: ">= +10%"}, pairs: 20}
rules:
  - {name: tidy, when: {title: "^tidy"}, enforce: shadow, gates: {performance: none}}
  - name: default
`)
	e := evidence("mission")
	e.SameCode = true
	if v := judgeQuickly(p, e); v.Outcome != Defer || strings.Contains(strings.Join(v.ToPass, " "), "tidy") {
		t.Errorf("%s: %q", v.Outcome, v.ToPass)
	}
}
