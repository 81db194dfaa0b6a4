package gates

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates/stats/simulate"
)

// An author makes the heaviest shape faster and pays for it with the others. The sum is well above the goal, and the guards of the
// others defer the change.
func TestHeavyGainPaysForNoLoss(t *testing.T) {
	p := performancePolicy(t, weightedPolicy)
	s := unequal(1)
	s.shapes[0].micros, s.shapes[0].ratio = 50, 1.5
	s.shapes[1].ratio = 0.9
	s.shapes = append(s.shapes, stepShape{name: "long", micros: 100, ratio: 0.5}) // which no step launches
	if s.truth() < 1.2 {
		t.Fatalf("the sum gains only %v", s.truth())
	}
	r := quickResamples()
	v, _ := s.decide(p, rand.New(rand.NewPCG(1, 9)), r)
	if v.Outcome != Defer || v.Reason != ReasonRegression || !strings.Contains(v.Summary, "mission") || !strings.Contains(v.Summary, "long") {
		t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
	if v.Weighted == nil || v.Weighted.Speedup.Value < 0.2 {
		t.Errorf("the sum is %+v", v.Weighted)
	}
}

// A shape that the policy guards nowhere is timed for the sum, and a loss on it counts there.
func TestUnguardedShapesCount(t *testing.T) {
	p := performancePolicy(t, `{target: {weighted: ">= +3%"}, rounds: {min: 6, max: 20}, pairs: 12, tails: none}`)
	s := unequal(1)
	s.shapes[0].ratio, s.shapes[1].ratio = 1.5, 0.7
	v, _ := s.decide(p, rand.New(rand.NewPCG(1, 9)), quickResamples())
	if v.Outcome != Defer || v.Reason != ReasonTooSlow || !strings.Contains(v.Summary, StepLabel) {
		t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
	}
	if !slices.ContainsFunc(v.ToPass, func(s string) bool { return strings.Contains(s, "all launches of a step together") }) {
		t.Errorf("to pass: %q", v.ToPass)
	}
	for _, c := range v.Comparisons {
		if c.Role != RoleInfo || c.Goal != "" || c.Baseline == nil {
			t.Errorf("%s is %s with goal %q", c.Shape, c.Role, c.Goal)
		}
	}
}

// The median of the launches gains, and one launch in six takes many times as long.
func TestWeightedTails(t *testing.T) {
	p := performancePolicy(t, strings.Replace(weightedPolicy, ", tails: none", "", 1))
	s := unequal(1.2)
	v, _ := s.decide(p, rand.New(rand.NewPCG(1, 9)), quickResamples())
	if v.Outcome != Pass {
		t.Fatalf("without slow launches: %s", v.Summary)
	}
	// The guards allow it: they ask for less than the goal of the sum.
	p = performancePolicy(t, `{target: {weighted: ">= +15%"}, guard: {speedup: ">= -50%"}, rounds: {min: 6, max: 20}, pairs: 12}`)
	if v, _ = s.decide(p, rand.New(rand.NewPCG(1, 9)), quickResamples()); v.Outcome != Pass {
		t.Fatalf("without slow launches: %s", v.Summary)
	}
	s.alter = func(_ string, nanos []float64) {
		for i := 1; i < len(nanos); i += 18 { // every sixth sample of the candidate
			nanos[i] *= 2
		}
	}
	v, _ = s.decide(p, rand.New(rand.NewPCG(1, 9)), quickResamples())
	if v.Outcome != Defer || !strings.Contains(v.Summary, "slow launches count as well") {
		t.Errorf("%s: %s", v.Outcome, v.Summary)
	}
}

// A batch whose launches share work gains 8 % and the same launches gain nothing when they run alone: within every guard, and
// short of the allowance above which a batch is suspicious. The sum does not pass by it.
func TestWeightedGainAlone(t *testing.T) {
	p := performancePolicy(t, weightedPolicy)
	for name, alone := range map[string]float64{"honest": 1.08, "shared": 1.0} {
		s := unequal(1.08)
		s.shapes = []stepShape{{name: "small", launches: 36, micros: 40, ratio: 1.08}, {name: "mission", launches: 1, micros: 60, ratio: 1.08}}
		e := s.evidence()
		e.Device = Device{Kind: DeviceGPU}
		rng := rand.New(rand.NewPCG(4, 4))
		measure := func(n int) {
			first := 0
			if e.Performance != nil {
				first = len(e.Performance.Rounds)
			}
			s.measure(e, rng, n)
			for _, r := range e.Performance.Rounds[first:] {
				for i := range r.Series {
					series := &r.Series[i]
					series.Batch, series.Single = 32, &Singles{Isolated: true}
					for range 8 {
						base := 1e3*s.shapes[i].micros*(1+0.002*rng.NormFloat64()) + 2e3
						series.Single.Baseline = append(series.Single.Baseline, base)
						series.Single.Candidate = append(series.Single.Candidate, (base-2e3)/alone+2e3)
					}
				}
			}
		}
		r := quickResamples()
		for need := next(p, e, r); need.Gate == GatePerformance; need = next(p, e, r) {
			measure(need.Rounds)
		}
		v := judge(p, "test.yaml", e, r)
		if name == "honest" && v.Outcome != Pass || name == "shared" && v.Outcome == Pass {
			t.Errorf("%s: %s: %s", name, v.Outcome, v.Summary)
		}
		if name == "shared" && !strings.Contains(v.Summary, "single launches do not confirm it") && v.Reason != ReasonSuspicious {
			t.Errorf("%s: %s", name, v.Summary)
		}
	}
}

// One of five kinds of input gains so much that the mean of all is above the goal: it counts in part only, as on a shape.
func TestWeightedKindCounts(t *testing.T) {
	p := performancePolicy(t, `{target: {weighted: ">= +10%"}, guard: {speedup: ">= -2%"}, rounds: {min: 6, max: 20}, pairs: 12, tails: none}`)
	kinds := []string{"normal", "large", "zero", "edges", "constant"}
	s := unequal(1)
	s.pairs, s.noise = 15, simulate.Noise{Between: 0.001, Within: 0.002}
	e := s.evidence()
	s.measure(e, rand.New(rand.NewPCG(2, 2)), 20)
	for _, r := range e.Performance.Rounds {
		for i := range r.Series {
			series := &r.Series[i]
			series.Distributions = kinds
			for block := range s.pairs {
				if kinds[block%len(kinds)] == "zero" {
					series.Nanos[3*block+1] /= 3
				}
			}
		}
	}
	v := judgeQuickly(p, e)
	if v.Weighted == nil || v.Weighted.Speedup.Value < 0.1 {
		t.Fatalf("the mean of the kinds is %+v", v.Weighted)
	}
	if v.Outcome != Defer || v.Weighted.Status == Passed {
		t.Errorf("%s: %s", v.Outcome, v.Summary)
	}
}

// Where equal code serves a shape, its ratio is exactly 1: its noise does not widen the interval, and its time counts.
func TestWeightedWithEqualCode(t *testing.T) {
	p := performancePolicy(t, weightedPolicy)
	s := unequal(1.5)
	s.shapes[1].ratio, s.shapes[1].noisy = 1, 3
	e := s.evidence()
	e.SameShapes = []string{"mission"}
	if got := TimedShapes(ruleFor(p, e), e); !slices.Equal(got, []string{"small", "mission"}) {
		t.Fatalf("timed are %v", got)
	}
	s.measure(e, rand.New(rand.NewPCG(2, 2)), 20)
	v := judgeQuickly(p, e)
	if w := v.Weighted; v.Outcome != Pass || w == nil || w.Shapes[1].Baseline != w.Shapes[1].Candidate {
		t.Errorf("%s: %+v", v.Summary, w)
	}
	without := *e
	without.SameShapes = nil
	if wide := judgeQuickly(p, &without).Weighted; *wide.Speedup.Upper-*wide.Speedup.Lower <= *v.Weighted.Speedup.Upper-*v.Weighted.Speedup.Lower {
		t.Errorf("the interval %v of equal code is not narrower than %v", v.Weighted.Speedup, wide.Speedup)
	}
}

// Equal machine code gains nothing in a step either, and nothing has to be measured for that.
func TestWeightedSameCode(t *testing.T) {
	e := unequal(1).evidence()
	e.SameCode = true
	if v := judgeQuickly(performancePolicy(t, weightedPolicy), e); v.Outcome != Defer || v.Reason != ReasonTooSlow {
		t.Errorf("%s: %s", v.Outcome, v.Summary)
	}
	if v := judgeQuickly(performancePolicy(t, `{guard: {weighted: ">= -1%"}}`), e); v.Outcome != Pass {
		t.Errorf("%s: %s", v.Outcome, v.Summary)
	}
}

// A guard for the sum defers what is within the guard of every shape.
func TestWeightedGuard(t *testing.T) {
	p := performancePolicy(t, `{guard: {weighted: ">= -1%", speedup: ">= -10%"}, rounds: {min: 6, max: 20}, pairs: 12, tails: none}`)
	for ratio, want := range map[float64]Outcome{0.95: Defer, 1: Pass} {
		v, _ := unequal(ratio).decide(p, rand.New(rand.NewPCG(3, 1)), quickResamples())
		if v.Outcome != want || want == Defer && v.Reason != ReasonRegression {
			t.Errorf("%v: %s (%s): %s", ratio, v.Outcome, v.Reason, v.Summary)
		}
	}
}

// Evidence with weights that cannot be used is refused by its place.
func TestWeightsAreParsed(t *testing.T) {
	for old, want := range map[string]string{
		`"mission":1`:            `weights.launches: has -1 launches of "mission"`,
		`{"mission":1}`:          "weights.launches: is empty",
		`"step_us":100`:          "weights.step_us: is -100",
		`"step_us":100,`:         "weights.kernel_us: is 6.5, more than the whole step",
		`"unmatched":2,"tool":"`: `unknown field "weight"`,
	} {
		text := `{"schema":"kernelgate/evidence/v1","kernel":"k","shapes":[{"name":"mission"}],"weights":{"launches":{"mission":1},"step_us":100,"unmatched":2,"tool":"torch"}}`
		bad := map[string]string{`"mission":1`: `"mission":-1`, `{"mission":1}`: `{}`, `"step_us":100`: `"step_us":-100`, `"step_us":100,`: `"step_us":1,"kernel_us":6.5,`, `"unmatched":2,"tool":"`: `"unmatched":2,"weight":"`}[old]
		if _, err := ParseEvidence("e.json", []byte(text)); err != nil {
			t.Fatalf("good weights: %v", err)
		}
		_, err := ParseEvidence("e.json", []byte(strings.Replace(text, old, bad, 1)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", bad, err, want)
		}
	}
}
