package runners

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
)

const (
	manifestYAML = `version: 1
name: k
mode: cpu
entry: f
source: f.c
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
reference: {source: r.c, entry: r}
tolerance: {abs: 0.1}
shapes:
  one: {N: 10}
  two: {N: 20}
limits: {N: 1..100}
secret: {N: 1..50}
`
	policyYAML = `version: 1
gates:
  correctness: {shapes: all, seeds: [0, 1], distributions: [normal, large], secret_cases: 3, norm_error: "<= 1%"}
  performance: {target: {shapes: [two], speedup: ">= +10%"}, rounds: {min: 6, max: 12}, pairs: 5, budget: 1h}
rules:
  - name: default
`
)

func job(t *testing.T) Job {
	t.Helper()
	m, err := manifest.Parse("kernel.yaml", []byte(manifestYAML))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("policy.yaml", []byte(policyYAML))
	if err != nil {
		t.Fatal(err)
	}
	return Job{Manifest: m, Policy: p, Baseline: &Side{Variant: m.DefaultVariant}, Candidate: Side{Variant: m.DefaultVariant}}
}

func TestCases(t *testing.T) {
	j := job(t)
	gate := j.Policy.Rules[0].Gates.Correctness
	cases := Cases(j, gate, rand.New(rand.NewPCG(1, 2)))
	if len(cases) != 2*2*2+3 {
		t.Fatalf("%d cases, want every shape, seed and distribution, and 3 secret ones", len(cases))
	}
	for _, c := range cases[8:] {
		if n, _ := c.Shape.Dims.Get("N"); !c.Secret || n < 1 || n > 50 {
			t.Errorf("the secret case %+v is not in its range", c)
		}
	}
	if again := Cases(j, gate, rand.New(rand.NewPCG(3, 4))); again[8].Seed == cases[8].Seed {
		t.Error("another run draws the same secret seed")
	}
}

func TestBlocksMirrorThemselves(t *testing.T) {
	seen := map[string]bool{}
	for _, block := range Blocks(rand.New(rand.NewPCG(1, 1)), 60) {
		back := []byte(block)
		slices.Reverse(back)
		if len(block) != 6 || string(back) != block || strings.Count(block, "b") != 2 || strings.Count(block, "c") != 2 {
			t.Fatalf("block %q", block)
		}
		seen[block] = true
	}
	if len(seen) != 6 {
		t.Errorf("%d orders of the three sides, want all 6", len(seen))
	}
}

// A scripted backend answers as the test sets it, and records what it was asked.
type scripted struct {
	job     Job
	asked   []string
	ratio   float64
	fail    string // the step that has a fault
	wrong   bool
	compile bool
	within  context.Context // the context of the last round
}

func (s *scripted) ask(step string) error {
	s.asked = append(s.asked, step)
	if s.fail == step {
		return errors.New("the disk is full")
	}
	return nil
}

func (s *scripted) Device() gates.Device     { return gates.Device{Kind: "cpu", Name: "scripted"} }
func (s *scripted) Seed() uint64             { return 1 }
func (s *scripted) Tools() map[string]string { return nil }

func (s *scripted) Build(_ context.Context, role Role, _ Side) (gates.Build, error) {
	return gates.Build{OK: s.compile || role == Baseline, Error: "no", Code: string(role)}, s.ask("build " + string(role))
}

func (s *scripted) Correctness(_ context.Context, gate *policy.CorrectnessGate, _ Progress) (*gates.Correctness, error) {
	c := &gates.Correctness{}
	for _, k := range Cases(s.job, gate, rand.New(rand.NewPCG(1, 2))) {
		e := k.Evidence()
		e.Errors = &gates.Errors{Elements: 10}
		if s.wrong {
			e.Errors.NaN = 1
		}
		c.Cases = append(c.Cases, e)
	}
	return c, s.ask("correctness")
}

func (s *scripted) Round(ctx context.Context, _ *policy.PerformanceGate, shapes []manifest.Shape, _ Progress) (gates.Round, error) {
	var r gates.Round
	for _, shape := range shapes {
		r.Series = append(r.Series, gates.Series{Shape: shape.Name, Batch: 1, Order: "bc bc", Nanos: []float64{1000 * s.ratio, 1000, 1001 * s.ratio, 1000}, Verified: 2, Worst: &gates.Errors{Elements: 10}})
	}
	s.within = ctx
	return r, s.ask("round")
}

func (s *scripted) Sanitize(_ context.Context, gate *policy.SanitizeGate, _ Progress) (*gates.Sanitize, error) {
	out := &gates.Sanitize{}
	for _, c := range SanitizeCases(s.job, gate, rand.New(rand.NewPCG(1, 2))) {
		out.Cases = append(out.Cases, c.Input())
	}
	for _, tool := range gate.Tools {
		out.Tools = append(out.Tools, gates.Sanitized{Tool: string(tool)})
	}
	return out, s.ask("sanitize")
}

func (s *scripted) Profile(context.Context, *policy.ProfileGate, Progress) (*gates.Profile, error) {
	return &gates.Profile{}, s.ask("profile")
}

type silent struct{}

// gathers runs a backend, and checks what it was asked for and how that is judged.
func gathers(t *testing.T, j Job, b scripted, asked string, outcome gates.Outcome) {
	t.Helper()
	b.job = j
	e, err := Gather(t.Context(), j, &b, silent{})
	if err != nil {
		t.Fatal(err)
	}
	v := gates.Judge(j.Policy, "policy.yaml", e)
	if got := strings.Join(b.asked, ", "); got != asked || v.Outcome != outcome {
		t.Errorf("asked %s; %s: %s\nwant %s; %s", got, v.Outcome, v.Summary, asked, outcome)
	}
}

func (silent) Report(Event) {}

func TestGatherStopsWhereTheVerdictFalls(t *testing.T) {
	const builds = "build baseline, build candidate"
	for _, c := range []struct {
		name    string
		backend scripted
		asked   string
		outcome gates.Outcome
	}{
		{"proven at the first look", scripted{compile: true, ratio: 2}, builds + ", correctness" + strings.Repeat(", round", 6), gates.Pass},
		{"does not compile", scripted{ratio: 2}, builds, gates.Defer},
		{"wrong", scripted{compile: true, ratio: 2, wrong: true}, builds + ", correctness", gates.Defer},
		{"too slow", scripted{compile: true, ratio: 1}, builds + ", correctness" + strings.Repeat(", round", 6), gates.Defer},
		{"a fault ends it as ERROR", scripted{compile: true, ratio: 2, fail: "round"}, builds + ", correctness, round", gates.Error},
	} {
		t.Run(c.name, func(t *testing.T) {
			gathers(t, job(t), c.backend, c.asked, c.outcome)
		})
	}
}

// TestGatherNewKernel checks that a kernel that the base does not have is timed against itself,
// once it is right.
func TestGatherNewKernel(t *testing.T) {
	j := job(t)
	j.Baseline = nil
	gathers(t, j, scripted{compile: true, ratio: 1}, "build candidate, correctness, build baseline"+strings.Repeat(", round", 6), gates.Pass)
	gathers(t, j, scripted{compile: true, ratio: 1, wrong: true}, "build candidate, correctness", gates.Defer)
}

// TestRoundsEndTheirContext checks that anything that a backend starts ahead, in the context of a
// round, ends with the rounds, whether or not the policy bounds their time. Otherwise a worker that
// holds a GPU would outlive the run.
func TestRoundsEndTheirContext(t *testing.T) {
	backend := &scripted{job: job(t), compile: true, ratio: 2}
	if _, err := Gather(t.Context(), backend.job, backend, silent{}); err != nil {
		t.Fatal(err)
	}
	if backend.within == nil || backend.within.Err() == nil || t.Context().Err() != nil {
		t.Error("the context of the rounds outlives them")
	}
}
