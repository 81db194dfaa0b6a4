package cpu

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather"
)

// Two variants of which each is right for its own problems alone, and has a stack that the policy sees.
const choiceManifest = `version: 1
name: scale
mode: cpu
entry: scale
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
  - {name: N, dtype: i32, access: scalar, value: N}
reference: {source: reference.c, entry: reference}
tolerance: {abs: 0.0001}
shapes: {small: {N: 96}, middle: {N: 512}, mission: {N: 3000}}
secret: {N: 1..4000}
flags: [-O2]
variants:
  plain: {source: plain.c}
  short: {source: short.c}
  long: {source: long.c}
choose: [{when: "N >= 1000", variant: long}, {variant: short}]
`

const (
	shortSource = "#include <stdint.h>\nvoid scale(const float *x, float *y, int32_t N) { for (int i = 0; i < N; i++) y[i] = N < 1000 ? 2 * x[i] : 0; }\n"
	longSource  = "#include <stdint.h>\nvoid scale(const float *x, float *y, int32_t N) { for (int i = 0; i < N; i++) y[i] = N >= 1000 ? 2 * x[i] : 0; }\n"
)

// untimed asks for everything but times.
const untimed = `version: 1
gates:
  ptxas: {stack: "<= 64KiB"}
  correctness: {shapes: [small], seeds: [0], secret_cases: 0, norm_error: "<= 1%", determinism: true}
rules:
  - name: default
`

// chosen gathers evidence about the choice against the slow baseline, by sources and a policy.
func chosen(t *testing.T, manifestYAML, policyYAML string, files map[string]string) (*Worker, *gates.Evidence, *gates.Verdict) {
	t.Helper()
	m, err := manifest.Parse("kernel.yaml", []byte(manifestYAML))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("test.yaml", []byte(policyYAML))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"plain.c": baseline, "short.c": shortSource, "long.c": longSource, "reference.c": reference}
	for name, text := range files {
		all[name] = text
	}
	dir := sourceFolder(t, all)
	job := runners.Job{Manifest: m, Policy: p, Trusted: dir, Baseline: &runners.Side{Dir: dir, Variant: "plain"}, Candidate: runners.Side{Dir: dir, Variant: m.DefaultVariant}}
	w := newWorker(t, job, Config{Scratch: t.TempDir(), LaunchTimeout: time.Minute, Seed: 1, Getenv: func(string) string { return "" }})
	e, err := gather.Gather(t.Context(), job, w, silent{})
	if err != nil {
		t.Fatal(err)
	}
	return w, e, gates.Judge(p, "test.yaml", e)
}

// Every problem, secret ones among them, goes to the variant that is for it: compared, timed and sanitized.
func TestChoose(t *testing.T) {
	policyYAML := strings.NewReplacer("shapes: [small], seeds: [0], secret_cases: 0", "shapes: all, seeds: [0], distributions: [normal], secret_cases: 12",
		"rules:", "  sanitize: {shapes: [small, mission], distributions: [normal], secret_cases: 0, tools: [memcheck], missing_tool: inform}\nrules:").Replace(untimed)
	w, e, v := chosen(t, choiceManifest, policyYAML, nil)
	if v.Outcome != gates.Pass {
		t.Fatalf("%s (%s): %s %s", v.Outcome, v.Reason, v.Summary, e.Fault)
	}
	if got, want := e.Candidate.Chosen(), "mission by long; small, middle by short"; got != want {
		t.Errorf("served %q, want %q", got, want)
	}
	if !slices.Contains(v.Notes, "The candidate chooses a variant by problem size: mission by long; small, middle by short.") {
		t.Errorf("nobody is told: %q", v.Notes)
	}
	sides := map[bool]int{}
	for _, k := range e.Correctness.Cases {
		if k.Secret {
			sides[len(k.Dims) == len("N=1000")]++
		}
	}
	if sides[true] == 0 || sides[false] == 0 {
		t.Errorf("secret cases on both sides of the bound: %v", sides)
	}
	round, err := w.Round(t.Context(), &policy.PerformanceGate{Pairs: 2}, w.job.Manifest.Shapes[:2], silent{})
	if err != nil || round.Failure != nil || len(round.Series) != 2 {
		t.Fatalf("timing both: %v, %+v", err, round)
	}
	for _, s := range round.Series {
		if s.Worst == nil || s.Worst.Bad > 0 || s.Verified == 0 {
			t.Errorf("%s was timed with wrong outputs: %+v", s.Shape, s.Worst)
		}
	}
	var names []string
	for _, r := range v.Resources {
		names = append(names, r.Name)
	}
	if !slices.Contains(names, "stack of long") || !slices.Contains(names, "stack of short") {
		t.Errorf("resources are judged of %q", names)
	}
	// A bound in the wrong place is a wrong output.
	if _, _, v := chosen(t, strings.Replace(choiceManifest, "N >= 1000", "N >= 2000", 1), policyYAML, nil); v.Reason != gates.ReasonCorrectness {
		t.Errorf("a bound in the wrong place: %s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
}

// A variant that no shape of the policy is given to does not get by unseen: neither its outputs, nor its resources, nor that
// it does not compile.
func TestChooseHidesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		source string
		reason gates.Reason
		says   string
	}{
		"wrong":          {strings.Replace(longSource, "2 * x[i]", "3 * x[i]", 1), gates.ReasonCorrectness, "mission"},
		"large":          {strings.Replace(longSource, "{ for", "{ volatile char big[100000]; big[N] = 1; for", 1), gates.ReasonResources, "long: Over budget: stack"},
		"does not build": {"int x = ;", gates.ReasonBuild, "variant long: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, e, v := chosen(t, choiceManifest, untimed, map[string]string{"long.c": c.source})
			if v.Outcome != gates.Defer || v.Reason != c.reason || !strings.Contains(v.Summary, c.says) {
				t.Errorf("%s (%s): %s %s", v.Outcome, v.Reason, v.Summary, e.Fault)
			}
		})
	}
}

// A change of one variant is timed at the shapes that it serves, and at no other. The same code under another choice is another
// thing where the choice gives it other shapes, and no more.
func TestChooseTimesWhatChanged(t *testing.T) {
	m, err := manifest.Parse("kernel.yaml", []byte(choiceManifest))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("test.yaml", []byte(strings.Replace(untimed, "rules:", "  performance: {guard: {shapes: all, speedup: \">= -2%\"}}\nrules:", 1)))
	if err != nil {
		t.Fatal(err)
	}
	quicker := strings.Replace(longSource, "N >= 1000 ? 2 * x[i] : 0", "2 * x[i]", 1)
	for name, c := range map[string]struct {
		long, manifest string
		same, timed    []string
	}{
		"one variant":        {quicker, choiceManifest, []string{"small", "middle"}, []string{"mission"}},
		"the bound":          {quicker, strings.Replace(choiceManifest, "N >= 1000", "N >= 500", 1), []string{"small"}, []string{"middle", "mission"}},
		"a variant in place": {longSource, strings.Replace(choiceManifest, "choose: [{when: \"N >= 1000\", variant: long}, {variant: short}]", "default_variant: short", 1), []string{"small", "middle"}, []string{"mission"}},
		"nothing":            {longSource, choiceManifest, nil, []string{"small", "middle", "mission"}}, // it is the same as a whole
	} {
		head, err := manifest.Join("kernel.yaml", []byte(choiceManifest), []byte(c.manifest))
		if err != nil {
			t.Fatal(err)
		}
		root := t.TempDir()
		for file, text := range map[string]string{"base/long.c": longSource, "head/long.c": c.long, "base/short.c": shortSource, "head/short.c": shortSource, "base/plain.c": baseline, "head/plain.c": baseline, "base/reference.c": reference} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		dir := func(name string) string { return filepath.Join(root, name) }
		job := runners.Job{
			Manifest: m, Policy: p, Trusted: dir("base"), Baseline: &runners.Side{Dir: dir("base"), Variant: m.DefaultVariant},
			Candidate: runners.Side{Dir: dir("head"), Variant: head.DefaultVariant, Manifest: head, ManifestText: c.manifest},
		}
		w := newWorker(t, job, Config{Scratch: t.TempDir(), LaunchTimeout: time.Minute, Seed: 1, Getenv: func(string) string { return "" }})
		before, err := w.Build(t.Context(), runners.Baseline, *job.Baseline)
		if err != nil {
			t.Fatal(err)
		}
		after, err := w.Build(t.Context(), runners.Candidate, job.Candidate)
		if err != nil {
			t.Fatal(err)
		}
		e := &gates.Evidence{Baseline: &before, Candidate: &after, SameCode: job.SameCode(&before, &after)}
		if e.Shapes, err = job.ShapesOnRecord(); err != nil {
			t.Fatal(err)
		}
		e.SameShapes = job.SameShapes(e)
		if timed := gates.TimedShapes(job.Rule(), e); !slices.Equal(e.SameShapes, c.same) || !slices.Equal(timed, c.timed) || e.SameCode != (c.same == nil) {
			t.Errorf("%s: %q are the same and %q are timed; the same as a whole: %v", name, e.SameShapes, timed, e.SameCode)
		}
	}
}
