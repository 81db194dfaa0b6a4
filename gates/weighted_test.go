package gates

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates/stats/simulate"
	"github.com/kernelgate/kernelgate/internal/long"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A step is a truth about a whole step: shapes with their times, weights and ratios.
type step struct {
	shapes []stepShape
	pairs  int
	noise  simulate.Noise // of every shape
	shared float64        // standard deviation of what the ratios of all shapes of a round have in common
	drift  float64        // standard deviation of what the times of a round have in common
	alter  func(shape string, nanos []float64)
}

type stepShape struct {
	name     string
	launches float64
	micros   float64 // of the baseline
	ratio    float64
	noisy    float64 // times the noise
}

// truth is the speedup of the step as a ratio.
func (s step) truth() float64 {
	baseline, candidate := 0.0, 0.0
	for _, shape := range s.shapes {
		baseline += shape.launches * shape.micros
		candidate += shape.launches * shape.micros / shape.ratio
	}
	return baseline / candidate
}

func (s step) evidence() *Evidence {
	var names []string
	launches := map[string]float64{}
	for _, shape := range s.shapes {
		names = append(names, shape.name)
		if shape.launches > 0 {
			launches[shape.name] = shape.launches
		}
	}
	e := evidence(names...)
	e.Weights = &Weights{Launches: launches}
	return e
}

// measure adds rounds until there are n.
func (s step) measure(e *Evidence, rng *rand.Rand, n int, open ...string) {
	if e.Performance == nil {
		e.Performance = &Performance{}
	}
	for len(e.Performance.Rounds) < n {
		r := Round{Attempt: 1}
		both, drift := math.Exp(s.shared*rng.NormFloat64()), math.Exp(s.drift*rng.NormFloat64())
		for _, shape := range s.shapes {
			if len(open) > 0 && !slices.Contains(open, shape.name) {
				continue
			}
			noise := s.noise
			if shape.noisy > 0 {
				noise.Between, noise.Within = noise.Between*shape.noisy, noise.Within*shape.noisy
			}
			candidate := noise.Ratios(rng, shape.ratio*both, 1, s.pairs).Rounds[0]
			control := noise.Ratios(rng, 1, 1, s.pairs).Rounds[0]
			series := Series{Shape: shape.name, Batch: 1, Verified: s.pairs, Worst: &Errors{Elements: 100, Norm: 1e-4}}
			for i := range s.pairs {
				nanos := 1e3 * shape.micros * drift
				series.Order += " bca"
				series.Nanos = append(series.Nanos, nanos, nanos/candidate[i], nanos/control[i])
			}
			series.Order = strings.TrimSpace(series.Order)
			if s.alter != nil {
				s.alter(shape.name, series.Nanos)
			}
			r.Series = append(r.Series, series)
		}
		e.Performance.Rounds = append(e.Performance.Rounds, r)
	}
}

// decide runs the loop of a runner.
func (s step) decide(p *policy.Policy, rng *rand.Rand, r *resamples) (*Verdict, *Evidence) {
	e := s.evidence()
	for need := next(p, e, r); need.Gate == GatePerformance; need = next(p, e, r) {
		s.measure(e, rng, need.Rounds, openShapes(p, e, r)...)
	}
	return judge(p, "test.yaml", e, r), e
}

// unequal is a model that launches one shape 36 times as often as the other.
func unequal(ratio float64) step {
	return step{
		shapes: []stepShape{{name: "small", launches: 36, micros: 5, ratio: ratio}, {name: "mission", launches: 1, micros: 400, ratio: ratio}},
		pairs:  12, noise: simulate.Noise{Between: 0.01, Within: 0.02},
	}
}

const weightedPolicy = `{target: {weighted: ">= +3%"}, guard: {speedup: ">= -2%"}, rounds: {min: 6, max: 20}, pairs: 12, tails: none}`

// The figure is the ratio of the sums, not the mean of the ratios.
func TestWeightedFigure(t *testing.T) {
	p := performancePolicy(t, weightedPolicy)
	s := step{
		shapes: []stepShape{{name: "small", launches: 36, micros: 5, ratio: 1.25}, {name: "mission", launches: 1, micros: 400, ratio: 1}, {name: "long", micros: 900, ratio: 1}},
		pairs:  12, noise: simulate.Noise{Between: 0.0005, Within: 0.001},
	}
	e := s.evidence()
	e.Weights.Step, e.Weights.Kernel, e.Weights.Tool, e.Weights.Unmatched = 2900, 580, "torch", 3
	s.measure(e, rand.New(rand.NewPCG(1, 1)), 6)
	v := judgeQuickly(p, e)
	w := v.Weighted
	if v.Outcome != Pass || w == nil {
		t.Fatalf("%s: %s", v.Outcome, v.Summary)
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got/want-1) > 0.02 {
			t.Errorf("%s is %v, want about %v", what, got, want)
		}
	}
	near("the baseline's step", w.Baseline, 36*5+400)
	near("the candidate's step", w.Candidate, 36*4+400)
	near("the speedup", 1+w.Speedup.Value, 580.0/544)
	near("what is saved", w.Saved.Value, 36)
	near("the share of small", w.Shapes[0].Share, 180.0/580)
	near("the share of the step", w.Step.Share, 0.2)
	near("the speedup of the step", 1+w.Step.Speedup.Value, 2900.0/(2900-580+580*544.0/580))
	near("the most that the step can gain", w.Step.Most, 0.25)
	if w.Role != RoleTarget || w.Status != Passed || w.Goal != "weighted speedup >= +3%" || len(w.Shapes) != 2 || w.Tool != "torch" || w.Unmatched != 3 {
		t.Errorf("%+v", w)
	}
	if !(*w.Saved.Lower < w.Saved.Value && w.Saved.Value < *w.Saved.Upper) || !(*w.Step.Speedup.Lower < w.Step.Speedup.Value) {
		t.Errorf("the intervals are %+v and %+v", w.Saved, w.Step.Speedup)
	}
	// Nothing is asked of a shape on its own but what its guard asks.
	for _, c := range v.Comparisons {
		if c.Role != RoleGuard || c.Status != Passed {
			t.Errorf("%s is %s and %s", c.Shape, c.Role, c.Status)
		}
	}
	if want := "on all launches of a step (asked weighted speedup >= +3%)"; !strings.Contains(v.Summary, want) {
		t.Errorf("the summary is %q", v.Summary)
	}
}

// Where no goal asks for it, the figure is there for information, and decides nothing.
func TestWeightedForInformation(t *testing.T) {
	s := unequal(0.99)
	e := s.evidence()
	s.measure(e, rand.New(rand.NewPCG(1, 1)), 20)
	p := performancePolicy(t, `{guard: {speedup: ">= -10%"}, rounds: {min: 6, max: 20}, pairs: 12}`)
	v := judgeQuickly(p, e)
	if v.Outcome != Pass || v.Weighted == nil || v.Weighted.Role != RoleInfo || v.Weighted.Status != "" || v.Weighted.Goal != "" {
		t.Errorf("%s with %+v", v.Summary, v.Weighted)
	}
	without := *e
	without.Weights = nil
	bare := judgeQuickly(p, &without)
	if bare.Weighted != nil || bare.Summary != v.Summary || fmt.Sprint(bare.Comparisons) == "" {
		t.Errorf("without weights: %s with %+v", bare.Summary, bare.Weighted)
	}
}

// A goal for the sum without weights, or with weights of shapes that a side does not support, is missing evidence and never a pass.
func TestWeightedNeedsWeights(t *testing.T) {
	p := performancePolicy(t, weightedPolicy)
	s := unequal(1.2)
	e := s.evidence()
	s.measure(e, rand.New(rand.NewPCG(1, 1)), 6)
	if v := judgeQuickly(p, e); v.Outcome != Pass {
		t.Fatalf("%s: %s", v.Outcome, v.Summary)
	}
	without := *e
	without.Weights = nil
	v := judgeQuickly(p, &without)
	if v.Outcome != Defer || !strings.Contains(v.Summary, "has no weights") || !strings.Contains(strings.Join(v.ToPass, "\n"), "kernelgate weights TRACE") {
		t.Errorf("without weights: %s %s, to pass: %q", v.Outcome, v.Summary, v.ToPass)
	}
	// A candidate whose limits exclude the heavy shape has not made the step faster.
	shed := *e
	shed.Shapes = shed.Shapes[:1]
	if v := judgeQuickly(p, &shed); v.Outcome != Defer || !strings.Contains(v.Summary, "mission") {
		t.Errorf("without a shape: %s %s", v.Outcome, v.Summary)
	}
	// Evidence in which a shape was never timed is not enough, whatever the other one shows.
	partial := *e
	partial.Performance = &Performance{}
	s.measure(&partial, rand.New(rand.NewPCG(1, 2)), 20, "small")
	if v := judgeQuickly(p, &partial); v.Outcome == Pass {
		t.Errorf("without times of a shape: %s", v.Summary)
	}
}

// While the sum is open, all of its shapes are timed, those that have met their guards too. Shapes without a weight are not.
func TestWeightedKeepsItsShapesOpen(t *testing.T) {
	p := performancePolicy(t, weightedPolicy)
	s := unequal(1.03)
	s.shapes = append(s.shapes, stepShape{name: "long", micros: 50, ratio: 1.2})
	e := s.evidence()
	s.measure(e, rand.New(rand.NewPCG(5, 6)), 6)
	r := quickResamples()
	if need := next(p, e, r); need.Gate != GatePerformance {
		t.Fatalf("nothing more is needed: %+v", judge(p, "test.yaml", e, r).Summary)
	}
	if got := openShapes(p, e, r); !slices.Equal(got, []string{"small", "mission"}) {
		t.Errorf("open are %v, want the shapes that have a weight", got)
	}
}

// Once the sum is proven, only what is still open is timed. The sum's decision stands, and is about the rounds before.
func TestWeightedSettles(t *testing.T) {
	p := performancePolicy(t, weightedPolicy)
	s := unequal(1.5)
	s.shapes = append(s.shapes, stepShape{name: "long", micros: 50, ratio: 0.981})
	e := s.evidence()
	s.measure(e, rand.New(rand.NewPCG(5, 6)), 6)
	r := quickResamples()
	if got := openShapes(p, e, r); !slices.Equal(got, []string{"long"}) {
		t.Fatalf("open are %v, want long: %s", got, judge(p, "test.yaml", e, r).Summary)
	}
	s.measure(e, rand.New(rand.NewPCG(5, 7)), 13, "long")
	v := judge(p, "test.yaml", e, r)
	if w := v.Weighted; w == nil || w.Status != Passed || w.Rounds != 6 {
		t.Errorf("%s with %+v", v.Summary, w)
	}
}

// In how many runs a kernel passes whose step is exactly at the threshold, and how often the interval holds the truth. The
// weights are 36 to 1; rounds are correlated; a shape is noisy; the shapes gain differently.
func TestWeightedErrorRate(t *testing.T) {
	runs := long.Times(40, 200)
	p := performancePolicy(t, `{target: {weighted: ">= +3%"}, guard: {speedup: ">= -30%"}, rounds: {min: 6, max: 20}, pairs: 12, tails: none}`)
	at := func(s step) step { // scales the ratios so that the step is at the threshold
		by := 1.03 / s.truth()
		s.shapes = slices.Clone(s.shapes)
		for i := range s.shapes {
			s.shapes[i].ratio *= by
		}
		return s
	}
	plain := unequal(1.03)
	correlated := unequal(1.03)
	correlated.shared, correlated.drift = 0.01, 0.05
	noisy := unequal(1.03)
	noisy.shapes[0].noisy = 5
	apart := unequal(1.03)
	apart.shapes[0].ratio, apart.shapes[1].ratio = 1.4, 0.95
	heavy := unequal(1.03)
	heavy.noise.Dof = 3
	heavy.shapes[1].micros = 20
	for name, s := range map[string]step{"plain": plain, "correlated rounds": correlated, "one shape noisy": noisy, "gains apart": apart, "heavy tails": heavy} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, r := at(s), quickResamples()
			if math.Abs(s.truth()-1.03) > 1e-9 {
				t.Fatalf("the truth is %v", s.truth())
			}
			rng := rand.New(rand.NewPCG(11, uint64(len(name))))
			passed, held := 0, 0
			for range runs {
				v, _ := s.decide(p, rng, r)
				if v.Outcome == Pass {
					passed++
				}
				if w := v.Weighted; w != nil && *w.Speedup.Lower <= 0.03 && 0.03 <= *w.Speedup.Upper {
					held++
				}
			}
			t.Logf("%d of %d pass, %d intervals hold the truth", passed, runs, held)
			if passed > max(1, runs*25/1000) {
				t.Errorf("%d of %d runs at the threshold pass, more than 2.5 %%", passed, runs)
			}
			if held < runs*95/100 {
				t.Errorf("%d of %d intervals hold the truth, fewer than 95 %%", held, runs)
			}
		})
	}
}

// A gain that is there is found.
func TestWeightedPower(t *testing.T) {
	p := performancePolicy(t, weightedPolicy)
	s, r := unequal(1.10), quickResamples()
	rng, passed := rand.New(rand.NewPCG(3, 3)), 0
	for range 40 {
		if v, _ := s.decide(p, rng, r); v.Outcome == Pass {
			passed++
		}
	}
	if passed < 38 {
		t.Errorf("%d of 40 runs with +10 %% pass +3 %%", passed)
	}
}

// A shape with a small part of the baseline's time may have most of the candidate's. What a coarse clock rounds there counts by the
// larger part.
func TestWeightedRounding(t *testing.T) {
	const tick = 1900 // nanoseconds
	for at := range 80 {
		light := 96 + 0.11*float64(at)
		rng := rand.New(rand.NewPCG(uint64(at), 1))
		s := step{
			pairs: 60, noise: simulate.Noise{Within: 0.0005, Between: 0.00005},
			shapes: []stepShape{{name: "mission", launches: 1, micros: 900, ratio: 40}, {name: "small", launches: 1, micros: light, ratio: 1.004}},
			alter: func(shape string, nanos []float64) {
				for i := range nanos {
					if shape == "small" {
						nanos[i] = tick * (math.Floor(nanos[i]/tick) + float64(max(0, rng.IntN(40)-37)))
					}
				}
			},
		}
		e := s.evidence()
		s.measure(e, rng, 6)
		p := performancePolicy(t, fmt.Sprintf("{target: {weighted: '>= +%.4f%%'}, guard: {speedup: '>= -9%%'}, secret_shape: false}", 100*(1.001*s.truth()-1)))
		if v := NewSimulator().Judge(p, e); v.Outcome != Defer {
			t.Errorf("%.2f µs: %s: %s", light, v.Outcome, v.Summary)
		}
	}
}
