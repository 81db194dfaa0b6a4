package verify_test

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/verify"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
)

// weighed is a job whose policy asks for the weighted sum.
func weighed(t *testing.T, speed, launches string) runners.Job {
	t.Helper()
	job := asked(t, speed)
	var err error
	job.ManifestText = manifestYAML + "weights: {launches: " + launches + "}\n"
	if job.Manifest, err = manifest.Parse("kernels/scale/kernel.yaml", []byte(job.ManifestText)); err != nil {
		t.Fatal(err)
	}
	job.PolicyText = strings.Replace(policyYAML, `target: {shapes: [mission], speedup: ">= +10%"}`, `target: {weighted: ">= +10%"}`, 1)
	if job.Policy, err = policy.Parse("policy.yaml", []byte(job.PolicyText)); err != nil {
		t.Fatal(err)
	}
	return job
}

// The bot takes the weights from its own manifest. A runner that sends others, or none, is not believed.
func TestWeightsAreTheJobs(t *testing.T) {
	job := weighed(t, "1.3", "{mission: 1, small: 36}")
	e := honest(t, job)
	if err := verify.Check(job, 0, e); err != nil {
		t.Fatal(err)
	}
	if v := gates.Judge(job.Policy, "policy.yaml", e); v.Outcome != gates.Pass || v.Weighted == nil || v.Weighted.Role != gates.RoleTarget {
		t.Fatalf("%s: %s", v.Outcome, v.Summary)
	}
	for name, lie := range map[string]func(*gates.Evidence){
		"none":     func(e *gates.Evidence) { e.Weights = nil },
		"others":   func(e *gates.Evidence) { e.Weights.Launches["mission"] = 5000 },
		"one less": func(e *gates.Evidence) { delete(e.Weights.Launches, "small") },
		"a step":   func(e *gates.Evidence) { e.Weights.Step = 1 },
	} {
		if err := verify.Check(job, 0, told(t, e, lie)); err == nil || !strings.Contains(err.Error(), "weights") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Nor is one that invents weights where there are none.
	plain := asked(t, "1.3")
	if err := verify.Check(plain, 0, told(t, honest(t, plain), func(e *gates.Evidence) { e.Weights = &gates.Weights{Launches: map[string]float64{"mission": 1}} })); err == nil {
		t.Error("invented weights are believed")
	}
}

// While the sum is open, its shapes may not be left out, although each of them has met its guard.
func TestOpenSumKeepsItsShapes(t *testing.T) {
	job := weighed(t, "1.1", "{mission: 1, small: 36}") // at the goal of the sum, and well within the guards
	e := honest(t, job)
	if len(e.Performance.Rounds) != 8 {
		t.Fatalf("%d rounds: the sum is not open after the first analysis", len(e.Performance.Rounds))
	}
	if err := verify.Check(job, 0, e); err != nil {
		t.Fatal(err)
	}
	lie := told(t, e, func(e *gates.Evidence) {
		r := &e.Performance.Rounds[6]
		for i, s := range r.Series {
			if s.Shape == "small" {
				r.Series = append(r.Series[:i], r.Series[i+1:]...)
				break
			}
		}
	})
	if err := verify.Check(job, 0, lie); err == nil || !strings.Contains(err.Error(), "performance.rounds[6].series") {
		t.Errorf("%v", err)
	}
}
