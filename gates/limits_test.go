package gates

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// Figures keep six digits and stay within what JSON can hold.
func TestRound(t *testing.T) {
	for f, want := range map[float64]float64{
		1.23456789: 1.23457, -1.23456789: -1.23457, 0: 0, 1e300: 1e300, 1.5e300: 1e300, -1.5e300: -1e300, 1e299: 1e299, math.Inf(1): 1e300, math.Inf(-1): -1e300,
	} {
		if got := round(f); got != want {
			t.Errorf("round(%v) is %v, want %v", f, got, want)
		}
	}
	if got := round(math.NaN()); got != 0 {
		t.Errorf("round(NaN) is %v", got)
	}
}

// The physical floor is the larger of two limits; traffic counts only with cold caches, and what is unknown is no limit.
func TestFloor(t *testing.T) {
	device := Device{Peak: map[string]float64{"f16": 1e12}, Bandwidth: 1e9}
	for _, c := range []struct {
		name  string
		shape Shape
		cold  bool
		want  float64
	}{
		{"compute", Shape{FLOPs: 1e9, Bytes: 1e3, Peak: "f16"}, true, 1000},
		{"traffic", Shape{FLOPs: 1e3, Bytes: 1e6, Peak: "f16"}, true, 1000},
		{"traffic in warm caches", Shape{FLOPs: 1e6, Bytes: 1e6, Peak: "f16"}, false, 1},
		{"an unknown peak", Shape{FLOPs: 1e9, Bytes: 1e3, Peak: "f64"}, true, 1},
		{"nothing", Shape{Peak: "f16"}, true, 0},
	} {
		if got := floorMicros(device, c.shape, c.cold); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v µs, want %v", c.name, got, c.want)
		}
	}
	if got := floorMicros(Device{}, Shape{FLOPs: 1, Bytes: 1}, true); got != 0 {
		t.Errorf("an unknown device has the floor %v", got)
	}
	// A time at the floor is possible, and one below it is not, unless the policy says so.
	at := func(floor float64) *comparison {
		return &comparison{shapes: []*shapeComparison{{goalOf: goalOf{shape: Shape{Name: "s"}}, floor: floor, samples: &samples{candidate: []float64{10, 10}}}}}
	}
	for floor, below := range map[float64]bool{9.9: false, 10: false, 10.1: true} {
		if got := at(floor).belowFloor(&policy.PerformanceGate{}) != nil; got != below {
			t.Errorf("10 µs with a floor of %v µs: below is %v", floor, got)
		}
		if why := at(floor).belowFloor(&policy.PerformanceGate{Roofline: some(false)}); why != nil {
			t.Error(why)
		}
	}
	if why := (&comparison{shapes: []*shapeComparison{{floor: 1, samples: &samples{}}}}).belowFloor(&policy.PerformanceGate{}); why != nil {
		t.Errorf("nothing was timed: %s", why)
	}
}

// Rates are shown where the work is known.
func TestRates(t *testing.T) {
	for _, c := range []struct {
		flops, bytes, floor, micros float64
		want                        string
	}{
		{2e6, 4e3, 1, 2, `[1,2,0.5]`}, {0, 4e3, 1, 2, `[null,2,0.5]`}, {2e6, 0, 1, 2, `[1,null,0.5]`}, {2e6, 4e3, 0, 2, `[1,2,null]`}, {2e6, 4e3, 1, 0, `[null,null,null]`},
	} {
		var row Comparison
		s := &shapeComparison{goalOf: goalOf{shape: Shape{FLOPs: c.flops, Bytes: c.bytes}}, floor: c.floor}
		s.rates(&row, c.micros)
		got, err := json.Marshal([]*float64{row.TFLOPs, row.GBs, row.Roofline})
		if err != nil || string(got) != c.want {
			t.Errorf("%+v: %s, %v", c, got, err)
		}
	}
}

// Many resamples are drawn where few could decide by luck, and nowhere else.
func TestManyResamplesWhereItIsClose(t *testing.T) {
	const alpha = 0.01
	for _, c := range []struct {
		meet, miss float64
		close      bool
	}{
		{0.04, 1, true}, {0.0499, 1, true}, {5 * alpha, 1, false}, {0.06, 1, false}, {1, 0.04, true}, {1, 0.06, false},
		{alpha / 5 / 127, 1, true}, {alpha / 5 / 128, 1, false}, {alpha / 5 / 129, 1, false}, {0, 1, false}, {0, 0, false},
	} {
		s := &shapeComparison{tests: []test{{meet: 1, miss: 0}, {meet: c.meet, miss: c.miss}}}
		if got := s.nearThreshold(alpha); got != c.close {
			t.Errorf("p-values %v and %v: close is %v", c.meet, c.miss, got)
		}
	}
	for n, same := range map[int]bool{stats.MinResamples: true, fewResamples: true, fewResamples + 1: false, stats.DefaultResamples: false} {
		if r := newResamples(n); (r.few == r.many) != same {
			t.Errorf("%d resamples: few and many are the same: %v", n, r.few == r.many)
		}
	}
	// The figures that decide are those of the many.
	e := machine{model: heavy, ratio: 1.12, blocks: 20}.measured(newRand(3, 3), 6)
	gate := performancePolicy(t, gate10).Rules[0].Gates.Performance
	goals, _ := goalsOf(gate, e)
	r := newResamples(stats.DefaultResamples)
	at := func(r *resamples) test {
		q := analysis{gate: gate, evidence: e, goals: goals, resamples: r}
		return q.compare(interim{rounds: 6, alpha: 0.00375}, nil).shapes[0].tests[0]
	}
	with, few, many := at(r), at(&resamples{r.few, r.few}), at(&resamples{r.many, r.many})
	if few.meet == many.meet {
		t.Fatalf("few and many agree on %v", few.meet)
	}
	if with.meet != many.meet {
		t.Errorf("a close p-value is %v, of few %v and of many %v", with.meet, few.meet, many.meet)
	}
}

// What is known before a look is the speedup on the first target, or the time of a new kernel.
func TestSoFar(t *testing.T) {
	policy := fullPolicy
	for _, c := range []struct {
		name, policy string
		change       func(*Evidence)
		want         string // its beginning; empty where nothing is known
	}{
		{"a target", policy, func(*Evidence) {}, "mission +20.2\u00a0% ["},
		{"a guard", strings.Replace(policy, "    target: {shapes: [mission], speedup: \">= +10%\"}\n", "", 1), func(*Evidence) {}, "mission +20.2\u00a0% ["},
		{"the target is not the first shape", strings.Replace(policy, "target: {shapes: [mission]", "target: {shapes: [small]", 1), func(*Evidence) {}, "small +"},
		{"a new kernel", policy, func(e *Evidence) { e.Baseline = nil }, "mission 83.2\u00a0µs so far"},
		{"one round", policy, func(e *Evidence) { e.Performance.Rounds = e.Performance.Rounds[:1] }, ""},
		{"no rounds", policy, func(e *Evidence) { e.Performance.Rounds = nil }, ""},
		{"nothing timed", policy, func(e *Evidence) { e.Performance = nil }, ""},
		{"nothing asked", "version: 1\ngates: {}\nrules: [{name: default}]\n", func(*Evidence) {}, ""},
		{"no such shape", policy, func(e *Evidence) { e.Shapes = nil }, ""},
		{"only shapes that did not change", policy, func(e *Evidence) { e.SameShapes = []string{"mission", "small"} }, ""},
	} {
		e := passing()
		c.change(e)
		got := FindSoFar(&parsePolicy(t, c.policy).Rules[0], e)
		if (got == nil) != (c.want == "") || got != nil && !strings.HasPrefix(got.String(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, got, c.want)
		}
	}
	e := passing()
	for goal, want := range map[string]string{`speedup: ">= +10%"`: "0.1", `latency_reduction: ">= 20%"`: "0.25", `p50: "<= 9us"`: "none"} {
		got := "none"
		if s := FindSoFar(&performancePolicy(t, "{target: {shapes: [mission], "+goal+"}, pairs: 20}").Rules[0], e); s.Goal != nil {
			got = fmt.Sprint(*s.Goal)
		}
		if got != want {
			t.Errorf("the goal %s is shown as %s", goal, got)
		}
	}
}

// A goal about shapes that the manifest does not have is not met, whatever else was measured.
func TestGoalsAboutUnknownShapes(t *testing.T) {
	for _, gate := range []string{
		`{target: {shapes: [mission, moon], speedup: ">= +10%"}, pairs: 20}`,
		`{target: {shapes: [mission], speedup: ">= +10%"}, guard: {shapes: [moon], speedup: ">= -2%"}, pairs: 20}`,
	} {
		expect(t, judged(t, gate, passing()), Defer, ReasonInconclusive, "the manifest has no shape moon")
	}
}

// A case without a gate must not have an element beyond the tolerance.
func TestProblemWithoutAGate(t *testing.T) {
	for bad, wrong := range map[int]bool{0: false, 1: true} {
		if got := (Case{Errors: &Errors{Elements: 10, Bad: bad, Norm: 9, MaxAbs: 9}}).Problem(nil); (got != "") != wrong {
			t.Errorf("%d bad elements: %q", bad, got)
		}
	}
	if got := (Case{}).Problem(nil); got == "" {
		t.Error("an output that nobody compared is right")
	}
	if (&Evidence{}).Wrong(&policy.CorrectnessGate{}) != nil || passing().Wrong(nil) != nil {
		t.Error("cases are wrong without evidence or without a gate")
	}
}

// A shape that shows nothing suspicious, or has no such samples, does not hide what another shape shows.
func TestSuspicionOnOneOfTwoShapes(t *testing.T) {
	const gate = `{target: {shapes: all, speedup: ">= +10%"}, pairs: 20}`
	cheats := map[string]func(s *Series){
		"disturbs": func(s *Series) { s.Solo = slices.Repeat([]float64{0.8 * simulatedNanos}, 8) },
		"marks": func(s *Series) {
			s.Solo = slices.Repeat([]float64{simulatedNanos}, 40)
			for i := range 48 {
				s.Disturbed = append(s.Disturbed, i)
			}
		},
		"stands alone": func(s *Series) {
			s.Batch, s.Single = 8, &Singles{Baseline: []float64{simulatedNanos}, Candidate: []float64{3 * simulatedNanos}}
		},
		"keeps state": func(s *Series) { s.Stateful = []float64{0.5 * simulatedNanos, 0.5 * simulatedNanos} },
		"is not seen by the wall": func(s *Series) {
			for i, side := range strings.ReplaceAll(s.Order, " ", "") {
				wall := s.Nanos[i] + 2e4
				if side == SideCandidate {
					wall += simulatedNanos * (1 - 1/1.2)
				}
				s.Wall = append(s.Wall, wall)
			}
		},
	}
	for name, cheat := range cheats {
		for cheater := range 2 {
			e := quiet(1.2).measured(newRand(2, 2), 6)
			e.Shapes = append(e.Shapes, Shape{Name: "small", Dims: "S=2"})
			for r := range e.Performance.Rounds {
				round := &e.Performance.Rounds[r]
				other := round.Series[0]
				other.Shape = "small"
				round.Series = append(round.Series, other)
			}
			if cheater == 0 {
				expect(t, judged(t, gate, e), Pass, "", "Proven")
			}
			for r := range e.Performance.Rounds {
				cheat(&e.Performance.Rounds[r].Series[cheater])
			}
			if other := &e.Performance.Rounds[0].Series[1-cheater]; name == "is not seen by the wall" {
				other.Wall = other.Nanos // of one round, which says nothing
			}
			if v := judged(t, gate, e); v.Reason != ReasonSuspicious || !strings.Contains(v.Summary, []string{"mission", "small"}[cheater]) {
				t.Errorf("%s on shape %d: %s (%s): %s", name, cheater, v.Outcome, v.Reason, v.Summary)
			}
		}
	}
}

// The time with kept state is held against the candidate's in a batch.
func TestKeptNeedsTheCandidate(t *testing.T) {
	var k clocks
	k.add(&Series{Order: "bca", Nanos: []float64{1e5, 1e5, 1e5}, Stateful: []float64{5e4}}, clockRound{})
	if len(k.stateful.Rounds) != 1 || k.stateful.Rounds[0][0] != 2 {
		t.Errorf("kept %v", k.stateful.Rounds)
	}
	k = clocks{}
	if k.add(&Series{Order: "ba", Nanos: []float64{1, 1}, Stateful: []float64{1}}, clockRound{}); len(k.stateful.Rounds) != 0 {
		t.Errorf("no candidate in the batch: %v", k.stateful.Rounds)
	}
}

// More marks beside the candidate are suspicious where they are proven, and not where rounds differ as much.
func TestMarksMustBeProven(t *testing.T) {
	draws := newResamplePlan(stats.MinResamples)
	rounds := func(shares ...int) (s stats.Sample) {
		for _, n := range shares {
			s.Rounds = append(s.Rounds, marked(n, 20))
		}
		return s
	}
	for name, c := range map[string]struct {
		beside, alone stats.Sample
		proven        bool
	}{
		"in every round":     {rounds(8, 8, 9, 8, 8, 8), rounds(0, 0, 1, 0, 0, 0), true},
		"in one round":       {rounds(20, 0, 0, 0, 0, 0), rounds(0, 0, 0, 0, 0, 0), false},
		"as many before":     {rounds(8, 8, 8, 8, 8, 8), rounds(8, 8, 8, 8, 8, 8), false},
		"hardly more":        {rounds(1, 1, 1, 1, 1, 1), rounds(0, 0, 0, 0, 0, 0), false},
		"one in ten is more": {rounds(2, 2, 2, 2, 2, 2), rounds(0, 0, 0, 0, 0, 0), true},
	} {
		m := &marks{taken: 120, disturbed: 1, withCandidate: c.beside, withoutCandidate: c.alone}
		if got := m.moreWithCandidate(draws, "s"); (got.p < 0.01) != c.proven || c.proven && got.fact == nil {
			t.Errorf("%s: %+v", name, got)
		}
		m.disturbed = 0
		if got := m.moreWithCandidate(draws, "s"); got.p != 1 {
			t.Errorf("%s, without marks: p-value %v", name, got.p)
		}
	}
	for disturbed, fault := range map[int]bool{0: false, 59: false, 60: false, 61: true, 120: true} {
		if got := (&marks{taken: 120, disturbed: disturbed}).fault("s") != nil; got != fault {
			t.Errorf("%d of 120: a fault is %v", disturbed, got)
		}
	}
}

// A policy with one look decides there and nowhere before.
func TestOneLook(t *testing.T) {
	const gate = `{target: {shapes: [mission], speedup: ">= +10%"}, pairs: 20, rounds: {min: 8, max: 8}, interims: [8]}`
	expect(t, judged(t, gate, quiet(1.3).measured(newRand(1, 1), 7)), Defer, ReasonInconclusive, "7 rounds were measured; the first decision is after 8")
	expect(t, judged(t, gate, quiet(1.3).measured(newRand(1, 1), 8)), Pass, "", "Proven")
}
