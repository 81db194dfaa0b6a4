package gates

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// settling is a run of two shapes of which the first is proven at the first analysis.
func settling(t *testing.T, seed uint64) (*policy.Policy, truth, *Evidence, *rand.Rand) {
	t.Helper()
	p := performancePolicy(t, `{target: {shapes: all, speedup: ">= +10%"}, rounds: {min: 6, max: 20}, control: 5%, pairs: 20}`)
	return p, truth{heavyTailed, map[string]float64{"mission": 1.4, "small": 1.115}, 1, 20}, evidence("mission", "small"), newRand(seed, 1)
}

// A shape that is proven stays so although later rounds do not time it, and the verdict says so.
func TestSettledShapesAreTimedNoMore(t *testing.T) {
	p, tr, e, rng := settling(t, 1)
	if open := OpenShapes(p, e); open != nil {
		t.Fatalf("before the first round, only %v", open)
	}
	first := Next(p, e).Rounds
	tr.measure(e, rng, first-1, 1)
	if open := OpenShapes(p, e); open != nil {
		t.Fatalf("before the first analysis, only %v", open)
	}
	tr.measure(e, rng, first, 1)
	if open := OpenShapes(p, e); !slices.Equal(open, []string{"small"}) {
		t.Fatalf("after the first analysis, %v is open", open)
	}
	at := func(v *Verdict, shape string) Comparison {
		return v.Comparisons[slices.IndexFunc(v.Comparisons, func(c Comparison) bool { return c.Shape == shape })]
	}
	early := at(Judge(p, "", e), "mission")
	for need := Next(p, e); need.Gate == GatePerformance; need = Next(p, e) {
		tr.measure(e, rng, need.Rounds, 1, OpenShapes(p, e)...)
	}
	v := Judge(p, "", e)
	if v.Outcome != Pass || len(e.Performance.Rounds) <= first || len(e.Performance.Rounds[first].Series) != 1 {
		t.Fatalf("%s after %d rounds, the last of %d shapes", v.Outcome, len(e.Performance.Rounds), len(e.Performance.Rounds[first].Series))
	}
	if late := at(v, "mission"); late.Speedup.String() != early.Speedup.String() || late.Status != Passed {
		t.Errorf("mission was %v and is %v", early.Speedup, late.Speedup)
	}
	result := v.Gates[slices.IndexFunc(v.Gates, func(r GateResult) bool { return r.Gate == GatePerformance })]
	settled := slices.DeleteFunc(slices.Clone(result.Details), func(d Detail) bool { return d.Kind != facts.DetailSettled })
	if len(settled) != 1 || settled[0].Shape != "mission" || !strings.Contains(settled[0].Text, "after 6 rounds") {
		t.Errorf("the verdict says of settled shapes: %+v", settled)
	}
}

// A settled shape that is timed after all is judged by all of its samples.
func TestSettledShapeThatIsTimedAgain(t *testing.T) {
	p, tr, e, rng := settling(t, 1)
	tr.measure(e, rng, 6, 1)
	slow := tr
	slow.ratios = map[string]float64{"mission": 0.5, "small": 1.115}
	slow.measure(e, rng, 20, 1)
	if v := Judge(p, "", e); v.Outcome == Pass {
		t.Errorf("%s: 14 slow rounds of a shape do not count", v.Outcome)
	}
}

// A shape that misses or is open is never settled, and a fault of the runner keeps all shapes.
func TestWhatIsNotSettled(t *testing.T) {
	p, tr, e, rng := settling(t, 2)
	tr.control = 1.3
	tr.measure(e, rng, 6, 1)
	if open := OpenShapes(p, e); open != nil {
		t.Errorf("on an unfit runner only %v", open)
	}
	p, tr, e, rng = settling(t, 3)
	tr.ratios = map[string]float64{"mission": 1.105, "small": 1.105}
	tr.measure(e, rng, 6, 1)
	if open := OpenShapes(p, e); !slices.Equal(open, []string{"mission", "small"}) {
		t.Errorf("of two open shapes %v", open)
	}
	// A shape without later rounds that had not passed is judged by what there is.
	tr.ratios["mission"] = 1.1
	e = evidence("mission", "small")
	tr.measure(e, rng, 6, 1)
	tr.measure(e, rng, 20, 1, "small")
	if v := Judge(p, "", e); v.Outcome == Pass {
		t.Errorf("%s although a shape at its threshold has six rounds", v.Outcome)
	}
}
