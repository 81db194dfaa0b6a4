package scripted_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather/scripted"
)

// manifestYAML is of a kernel whose source has another name.
var manifestYAML = strings.Replace(scripted.Manifest, "scale.c", "fast.c", 1) + `shapes: {mission: {N: 1000}}
limits: {N: 1..100000}
`

const policyYAML = `version: 1
gates:
  ptxas: {stack: {max: 64KiB}}
  correctness: {seeds: [0], distributions: [normal], norm_error: "<= 1%", determinism: true, end_to_end: {bad_elements: "<= 1%"}}
  sanitize: {shapes: [mission], secret_cases: 0}
  performance: {target: {shapes: [mission], speedup: ">= +10%"}, rounds: {min: 6, max: 6}, interims: [6], pairs: 20, budget: 1h}
rules: [{name: default}]
`

type silent struct{}

func (silent) Report(runners.Event) {}

// An impatient one cancels when it comes to the rounds.
type impatient func()

func (cancel impatient) Report(e runners.Event) {
	if e.Gate == "performance" {
		cancel()
	}
}

func job(t *testing.T, baseline, candidate string) runners.Job {
	t.Helper()
	m, err := manifest.Parse("kernel.yaml", []byte(manifestYAML))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("policy.yaml", []byte(policyYAML))
	if err != nil {
		t.Fatal(err)
	}
	side := func(source string) runners.Side {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "fast.c"), []byte(source), 0o644); err != nil {
			t.Fatal(err)
		}
		return runners.Side{Dir: dir, Variant: m.DefaultVariant}
	}
	before := side(baseline)
	return runners.Job{Manifest: m, Policy: p, Trusted: before.Dir, Baseline: &before, Candidate: side(candidate)}
}

// Whatever the words say, the verdict comes from the gates.
func TestWords(t *testing.T) {
	stages := func(source string) string {
		return map[string]string{"one": "speed 1", "two": "speed 2", "bad": "speed 2 WRONG"}[source]
	}
	for name, c := range map[string]struct {
		runner              scripted.Runner
		baseline, candidate string
		outcome             gates.Outcome
		reason              gates.Reason
		nanos               float64 // of the baseline
	}{
		"faster":            {scripted.Runner{}, "speed 2", "speed 3", gates.Pass, "", 1e5},
		"no faster":         {scripted.Runner{}, "", "speed 1", gates.Defer, gates.ReasonTooSlow, 1e5},
		"broken":            {scripted.Runner{}, "", "BROKEN", gates.Defer, gates.ReasonBuild, 0},
		"racing":            {scripted.Runner{}, "", "speed 2 RACE", gates.Defer, gates.ReasonCorrectness, 0},
		"wrong":             {scripted.Runner{}, "", "speed 2 WRONG", gates.Defer, gates.ReasonCorrectness, 0},
		"a fault":           {scripted.Runner{}, "", "speed 2 FAULT", gates.Error, gates.ReasonRunner, 0},
		"another's words":   {scripted.Runner{Script: stages, Nanos: 2e7}, "one", "two", gates.Pass, "", 2e7},
		"a later baseline":  {scripted.Runner{Script: stages, Nanos: 2e7}, "two", "one", gates.Defer, gates.ReasonTooSlow, 1e7},
		"wrong, in another": {scripted.Runner{Script: stages}, "one", "bad", gates.Defer, gates.ReasonCorrectness, 0},
	} {
		t.Run(name, func(t *testing.T) {
			j := job(t, c.baseline, c.candidate)
			out, err := c.runner.Measure(t.Context(), j, "", silent{})
			if err != nil {
				t.Fatal(err)
			}
			v := gates.Judge(j.Policy, "policy.yaml", out.Evidence)
			if v.Outcome != c.outcome || v.Reason != c.reason {
				t.Fatalf("judged %s (%s), want %s (%s): %+v", v.Outcome, v.Reason, c.outcome, c.reason, v.Gates)
			}
			if c.nanos > 0 && out.Evidence.Performance.Rounds[0].Series[0].Nanos[0] != c.nanos {
				t.Errorf("the baseline takes %v ns, want %v", out.Evidence.Performance.Rounds[0].Series[0].Nanos[0], c.nanos)
			}
			if b := out.Evidence.Candidate; b.Source != "fast.c" || !b.OK && !strings.HasPrefix(b.Error, "fast.c:1: ") {
				t.Errorf("built %q: %q", b.Source, b.Error)
			}
		})
	}
}

// A held measurement goes on when it is let go, and ends when nobody waits for it.
func TestHold(t *testing.T) {
	open := make(chan struct{})
	close(open)
	out, err := scripted.Runner{Hold: open}.Measure(t.Context(), job(t, "", "speed 2 HOLD"), "", silent{})
	if err != nil || out.Evidence.Fault != "" {
		t.Errorf("let go: %v, %q", err, out.Evidence.Fault)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stopped := false
	held := scripted.Runner{Hold: make(chan struct{}), Stopped: func() { stopped = true }}
	if _, err := held.Measure(ctx, job(t, "", "speed 2 HOLD"), "", impatient(cancel)); err == nil {
		t.Error("a cancelled measurement has ended as if nothing were")
	}
	if !stopped {
		t.Error("nobody was told that it was cancelled")
	}
}
