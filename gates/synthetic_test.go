package gates

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kernelgate/kernelgate/gates/stats/simulate"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// parsePolicy reads a policy that the test has written out.
func parsePolicy(t testing.TB, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// performancePolicy asks for correctness in its simplest form, and for the given
// performance.
func performancePolicy(t testing.TB, performance string) *policy.Policy {
	t.Helper()
	return parsePolicy(t, fmt.Sprintf(`version: 1
gates:
  correctness: {shapes: [mission], seeds: [0], norm_error: "<= 1%%"}
  performance: %s
rules:
  - name: default
`, performance))
}

// evidence is a kernel that compiled and is right, with nothing measured yet.
func evidence(shapes ...string) *Evidence {
	e := &Evidence{
		Schema: EvidenceSchema, Kernel: "k", Mode: "cuda",
		Baseline:  &Build{Variant: "a", OK: true, Code: "1"},
		Candidate: &Build{Variant: "b", OK: true, Code: "2"},
		Correctness: &Correctness{Cases: []Case{
			{Input: Input{Shape: "mission", Dims: "S=512", Seed: 0, Distribution: "normal"}, Errors: &Errors{Elements: 100, Norm: 1e-4}},
		}},
	}
	for _, s := range shapes {
		e.Shapes = append(e.Shapes, Shape{Name: s, Dims: "S=512"})
	}
	return e
}

// A truth is how much faster the candidate really is, by shape, and the noise
// that hides it.
type truth struct {
	noise   simulate.Noise
	ratios  map[string]float64
	control float64 // baseline/control; 1 for a fit runner
	pairs   int
}

// measure adds rounds to the evidence until there are n. They time the open shapes, or all if none is named.
func (tr truth) measure(e *Evidence, rng *rand.Rand, n, attempt int, open ...string) {
	if e.Performance == nil {
		e.Performance = &Performance{}
	}
	for len(e.Performance.Rounds) < n {
		r := Round{Attempt: attempt}
		for _, s := range e.Shapes {
			ratio, ok := tr.ratios[s.Name]
			if !ok || len(open) > 0 && !slices.Contains(open, s.Name) {
				continue
			}
			candidate := tr.noise.Ratios(rng, ratio, 1, tr.pairs).Rounds[0]
			control := tr.noise.Ratios(rng, tr.control, 1, tr.pairs).Rounds[0]
			series := Series{Shape: s.Name, Batch: 1, Verified: tr.pairs, Worst: &Errors{Elements: 100, Norm: 1e-4}}
			for i := range tr.pairs {
				if i > 0 {
					series.Order += " "
				}
				series.Order += "bca"
				series.Nanos = append(series.Nanos, 1e5, 1e5/candidate[i], 1e5/control[i])
			}
			r.Series = append(r.Series, series)
		}
		e.Performance.Rounds = append(e.Performance.Rounds, r)
	}
}

// decide runs the loop of a runner on made-up times: measure as many rounds as
// Next asks for, of the shapes that are open, then judge.
func (tr truth) decide(p *policy.Policy, rng *rand.Rand, r *resamples) *Verdict {
	var shapes []string
	for _, name := range []string{"mission", "small", "long", "batch"} {
		if _, ok := tr.ratios[name]; ok {
			shapes = append(shapes, name)
		}
	}
	e := evidence(shapes...)
	for need := next(p, e, r); need.Gate == "performance"; need = next(p, e, r) {
		tr.measure(e, rng, need.Rounds, 1, openShapes(p, e, r)...)
	}
	return judge(p, "test.yaml", e, r)
}

var heavyTailed = simulate.Noise{Between: 0.01, Within: 0.02, Dof: 3}
