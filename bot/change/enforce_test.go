package change_test

import (
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// The rule of the plan applies to a run of which only the runner's fault is known. If the default
// rule applied, which does not block here, a runner that fails would let everything pass.
func TestFaultEvidenceKeepsTheRule(t *testing.T) {
	p, err := policy.Parse("p.yaml", []byte(`version: 1
gates: {build: {timeout: 1m}}
rules:
  - {name: release, when: {branches: [main], kernels: [scale]}}
  - {name: default, enforce: shadow}
`))
	if err != nil {
		t.Fatal(err)
	}
	spec := change.KernelSpec{Name: "scale", Folder: "kernels/scale", Rule: "release"}
	s := &change.State{Facts: change.Facts{Repo: "olga/kernels", Base: "main", Labels: []string{"perf"}, Title: "Faster", Draft: true},
		Plan: &change.Plan{Base: "b", Kernels: []change.Kernel{{KernelSpec: spec, Paths: []string{"kernels/scale/scale.c"}}}}}
	e := s.FaultEvidence(change.Run{KernelSpec: spec, Head: "h"}, "the host is busy")
	if c := e.Change; c.Branch != "main" || len(c.Labels) != 1 || c.Title != "Faster" || !c.Draft || len(c.Paths) != 1 {
		t.Errorf("the change is %+v", c)
	}
	if v := change.Judge(p, "p.yaml", e, nil); v.Rule != "release" || v.Outcome != gates.Error || !v.Blocks() {
		t.Errorf("rule %s: %s, blocks: %t", v.Rule, v.Outcome, v.Blocks())
	}
}

// Of several rules, the verdict that blocks counts, although another is worse and does not block.
func TestJudgeTakesWhatBlocks(t *testing.T) {
	p, err := policy.Parse("p.yaml", []byte(`version: 1
gates: {build: {timeout: 1m}}
rules:
  - {name: looks, when: {branches: [main]}, enforce: shadow}
  - {name: release, when: {branches: [release]}, gates: {correctness: {norm_error: "<= 1%"}}}
  - {name: default, enforce: warn}
`))
	if err != nil {
		t.Fatal(err)
	}
	e := &gates.Evidence{Schema: gates.EvidenceSchema, Kernel: "scale", Change: policy.Change{Branch: "main"}, Baseline: &gates.Build{OK: true}, Candidate: &gates.Build{OK: true, Code: "c"}}
	if v := change.Judge(p, "p.yaml", e, nil); v.Rule != "looks" || v.Blocks() {
		t.Errorf("alone: rule %s, %s", v.Rule, v.Outcome)
	}
	v := change.Judge(p, "p.yaml", e, []string{"looks", "release"})
	if v.Rule != "release" || v.Outcome != gates.Defer || !v.Blocks() {
		t.Errorf("together: rule %s, %s, blocks: %t", v.Rule, v.Outcome, v.Blocks())
	}
	e.Candidate = &gates.Build{Error: "no"}
	if v := change.Judge(p, "p.yaml", e, []string{"default", "release", "looks"}); v.Rule != "release" || !v.Blocks() {
		t.Errorf("broken: rule %s, %s, blocks: %t", v.Rule, v.Outcome, v.Blocks())
	}
}
