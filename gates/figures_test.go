package gates

import (
	"math"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/quantity"
)

// always is a distribution of rounds that are all alike.
func always(t *testing.T, value float64) *stats.Distribution {
	t.Helper()
	d := draw(newResamplePlan(fewResamples), stats.Sample{Rounds: [][]float64{{value}, {value}, {value}, {value}, {value}, {value}}}, 0.5)
	if d == nil || d.Estimate != value {
		t.Fatalf("%+v", d)
	}
	return d
}

// A kind of input may lose what the guard allows, whether or not the shape is guarded itself.
func TestKindLimit(t *testing.T) {
	goal := func(by float64) *policy.Goal { g := faster(by); return &g }
	micros := within(5, 0)
	for _, c := range []struct {
		name  string
		role  Role
		goal  *policy.Goal
		guard *policy.Goal
		want  float64
	}{
		{"a guard", RoleGuard, goal(-0.05), goal(-0.05), 0.95},
		{"a guard in microseconds", RoleGuard, &micros, &micros, 0},
		{"a target without a guard", RoleTarget, goal(0.1), nil, 0.98},
		{"a target with a guard", RoleTarget, goal(0.1), goal(-0.05), 0.95},
		{"a target with a guard in microseconds", RoleTarget, goal(0.1), &micros, 0.98},
		{"a target with a guard that asks for a gain", RoleTarget, goal(0.1), goal(0.3), 1.1},
		{"a target in microseconds", RoleTarget, &micros, nil, 0},
	} {
		s := &shapeComparison{goalOf: goalOf{role: c.role, goal: c.goal}}
		if got := s.kindLimit(&policy.PerformanceGate{Guard: c.guard}); !near(got, c.want) {
			t.Errorf("%s: %g, want %g", c.name, got, c.want)
		}
	}
}

// A kind that was never timed does not count in what a target is raised to, nor does a target that asks for no gain rise.
func TestRaisedTargetOfFewKinds(t *testing.T) {
	s := &shapeComparison{goalOf: goalOf{role: RoleTarget}}
	if a, b := s.raisedThreshold(1.1, []float64{0, 1, 1.5}), s.raisedThreshold(1.1, []float64{1, 1.5}); !near(a, b) || a <= 1.1 {
		t.Errorf("%g and %g", a, b)
	}
	if got := s.raisedThreshold(1.1, []float64{0, 1.5}); got != 1.1 {
		t.Errorf("one kind: %g", got)
	}
	if got := s.raisedThreshold(1, []float64{1, 1.5}); got != 1 {
		t.Errorf("no gain: %g", got)
	}
	s.role = RoleGuard
	if got := s.raisedThreshold(1.1, []float64{1, 1.5}); got != 1.1 {
		t.Errorf("a guard: %g", got)
	}
}

// A kind, or a tail, that lies exactly on its limit keeps to it.
func TestOnTheLimit(t *testing.T) {
	one := stats.Sample{Rounds: [][]float64{{1}, {1}, {1}, {1}, {1}, {1}}}
	half := stats.Sample{Rounds: [][]float64{{0.5}, {0.5}, {0.5}, {0.5}, {0.5}, {0.5}}}
	goal := faster(-0.5)
	s := &shapeComparison{goalOf: goalOf{role: RoleGuard, goal: &goal}, status: Passed, samples: &samples{byKind: []stats.Sample{one, half}, strata: strata{kinds: []string{"normal", "large"}}}}
	c := &comparison{alpha: 0.025, few: newResamplePlan(fewResamples), shapes: []*shapeComparison{s}}
	c.decideKinds(RoleGuard, &policy.PerformanceGate{})
	if s.status != Passed || len(s.kinds) != 2 || s.kinds[1].miss != 1 || s.slowKind(0.025) != nil {
		t.Errorf("%s: %+v", s.status, s.kinds)
	}
	s.samples.byKind[1] = stats.Sample{Rounds: [][]float64{{0.4}, {0.4}, {0.4}, {0.4}, {0.4}, {0.4}}}
	s.kinds = nil
	c.decideKinds(RoleGuard, &policy.PerformanceGate{})
	if s.status != Failed || !strings.Contains(words(s.slowKind(0.025)), "on large inputs it is −60") {
		t.Errorf("%s: %s", s.status, s.slowKind(0.025))
	}
	// One that has lost in most rounds proves nothing yet.
	s.status, s.kinds, s.samples.byKind[1] = Passed, nil, stats.Sample{Rounds: [][]float64{{0.45}, {0.45}, {0.45}, {0.6}, {0.45}, {0.6}}}
	c.decideKinds(RoleGuard, &policy.PerformanceGate{})
	if s.status != Open {
		t.Errorf("%s: %+v", s.status, s.kinds)
	}
	// A kind of which too little is known keeps the shape open.
	s.status, s.kinds, s.samples.byKind = Passed, nil, []stats.Sample{one, {}}
	c.decideKinds(RoleGuard, &policy.PerformanceGate{})
	if s.status != Open || !s.tooFew || len(s.kinds) != 1 {
		t.Errorf("%s: %+v", s.status, s.kinds)
	}
	s.tails = []tail{{metric: "mean", limit: 1.25, dist: always(t, 1.25)}}
	if text := words(s.slowTail(0.025)); text != "" {
		t.Error(text)
	}
	s.tails[0].limit = 1.3
	if text := words(s.slowTail(0.025)); !strings.Contains(text, "the speedup of the mean is +25.0") {
		t.Error(text)
	}
}

// What a round without some of its samples adds.
func TestRoundsWithoutSomeSamples(t *testing.T) {
	series := func(edit func(*Series)) []Round {
		s := Series{Shape: "mission", Order: "bca acb", Nanos: []float64{1000, 500, 1000, 2000, 1000, 2000}}
		edit(&s)
		return []Round{{Series: []Series{s}}}
	}
	lengths := func(s *samples) [8]int {
		return [8]int{
			len(s.ratios.Rounds), len(s.control.Rounds), len(s.solo.Rounds), len(s.candidateTimes.Rounds), len(s.candidateTimes.kinds), len(s.baselineTimes.Rounds), len(s.strata.rounds), s.pairs,
		}
	}
	for _, c := range []struct {
		name string
		edit func(*Series)
		want [8]int
	}{
		{"whole", func(*Series) {}, [8]int{1, 1, 0, 1, 1, 1, 1, 2}},
		{"with solo times", func(s *Series) { s.Solo = []float64{1500} }, [8]int{1, 1, 1, 1, 1, 1, 1, 2}},
		{"one block", func(s *Series) { s.Order, s.Nanos, s.Solo = "bca", s.Nanos[:3], []float64{1500} }, [8]int{1, 1, 1, 1, 1, 1, 1, 1}},
		{"without the candidate", func(s *Series) { s.Disturbed, s.Solo = []int{1, 4}, []float64{1500} }, [8]int{0, 1, 1, 0, 0, 0, 0, 0}},
		{"without the baseline", func(s *Series) { s.Disturbed, s.Solo = []int{0, 5}, []float64{1500} }, [8]int{}},
		{"without the control", func(s *Series) { s.Disturbed = []int{2, 3} }, [8]int{1, 0, 0, 1, 1, 1, 1, 2}},
	} {
		if got := lengths(collect(series(c.edit), "mission", clean)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	s := collect(series(func(s *Series) { s.Solo = []float64{1000, 2000, 4000} }), "mission", clean)
	if got := s.solo.Rounds[0]; got[0] != 0.5 || got[1] != 1 {
		t.Errorf("beside the candidate the baseline takes %v of its time alone", got)
	}
	if s.ratios.Rounds[0][0] != 2 || s.ratios.Rounds[0][1] != 2 || s.control.Rounds[0][0] != 1 || s.candidate[0] != 0.5 || s.baseline[1] != 2 {
		t.Errorf("%+v", s)
	}
	if s := collect(series(func(s *Series) { s.Disturbed = []int{1} }), "mission", whole); s.pairs != 2 || s.marks.disturbed != 1 {
		t.Errorf("as if none were marked: %d pairs, %d marked", s.pairs, s.marks.disturbed)
	}
	times := newKindTimes()
	if _, ok := times.gain(0); ok {
		t.Error("a gain of nothing")
	}
	times.add(0, side{sum: 3, n: 1}, side{sum: 1, n: 1})
	if gain, ok := times.gain(0); !ok || gain != 2 {
		t.Errorf("%g, %v", gain, ok)
	}
}

func TestClip(t *testing.T) {
	for _, c := range [][4]float64{{2, 1, 3, 2}, {0, 1, 3, 1}, {4, 1, 3, 3}, {math.NaN(), 1, 3, 1}, {math.Inf(1), 1, 3, 3}, {math.Inf(-1), 1, 3, 1}} {
		if got := clip(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("%g within %g and %g: %g, want %g", c[0], c[1], c[2], got, c[3])
		}
	}
}

// Marks are compared where the baseline was timed alone as well.
func TestMarksBesideAndAlone(t *testing.T) {
	var m marks
	m.add(&Series{}, []bool{true, false})
	if m.taken != 2 || m.disturbed != 1 || len(m.withCandidate.Rounds)+len(m.withoutCandidate.Rounds) != 0 {
		t.Errorf("%+v", m)
	}
	m.add(&Series{Solo: []float64{1, 1, 1}, SoloDisturbed: 1}, []bool{true, false, false, true})
	if m.taken != 6 || m.disturbed != 3 || share(m.withCandidate) != 0.5 || share(m.withoutCandidate) != 1.0/3 {
		t.Errorf("%+v", m)
	}
	m.add(&Series{Solo: []float64{1}}, nil)
	if len(m.withCandidate.Rounds) != 1 || len(m.withoutCandidate.Rounds) != 1 {
		t.Errorf("a round without samples counts: %+v", m)
	}
	if m.fault("mission") != nil {
		t.Error("half of the samples are too many")
	}
	m.add(&Series{}, []bool{true})
	if !strings.HasSuffix(words(m.fault("mission")), "disturbed 4 of 7 samples on mission") {
		t.Errorf("%s", m.fault("mission"))
	}
}

// What the clock on the wall says of a block, as shares of the baseline's time.
func TestBlockOnTheWall(t *testing.T) {
	var r clockRound
	r.add(0, side{sum: 8, wall: 12, n: 2}, side{sum: 4, wall: 10, n: 2}) // 4 and 2 µs; on the wall 6 and 5 µs
	for name, c := range map[string]struct {
		got  []float64
		want float64
	}{
		"wall": {r.wall, 1.2}, "slow": {r.candidateWall, 5}, "besides": {r.baselineWall, 6}, "gain": {r.gain, 0.5}, "waits": {r.waits, 1}, "waiting": {r.waiting, 2.25}, "host": {r.host, 1},
	} {
		if len(c.got) != 1 || !near(c.got[0], c.want) {
			t.Errorf("%s: %v, want %g", name, c.got, c.want)
		}
	}
	// What is far off counts as far off, and no further.
	for _, c := range []struct{ base, candidate, waiting, host float64 }{{100, 10, 1, 1.5}, {10, 100, 3, 0.5}} {
		var far clockRound
		far.add(0, side{sum: 4, wall: c.base, n: 1}, side{sum: 4, wall: c.candidate, n: 1})
		if far.waiting[0] != c.waiting || far.host[0] != c.host {
			t.Errorf("%+v: %v and %v", c, far.waiting, far.host)
		}
	}
}

// The loss that one change may make is the guard's, or the goal's own.
func TestAllowance(t *testing.T) {
	speedup, gain := faster(-0.05), faster(0.1)
	reduction := func(by float64) *policy.Goal {
		return &policy.Goal{LatencyReduction: &quantity.Bound[quantity.Percent]{Op: quantity.AtLeast, Value: quantity.Percent(by)}}
	}
	for _, c := range []struct {
		goals []*policy.Goal
		want  float64
	}{
		{nil, 0}, {[]*policy.Goal{nil, nil}, 0}, {[]*policy.Goal{&speedup}, 0.05}, {[]*policy.Goal{&gain}, 0}, {[]*policy.Goal{&gain, &speedup}, 0.05}, {[]*policy.Goal{nil, &speedup}, 0.05},
		{[]*policy.Goal{reduction(-0.25)}, 0.2}, {[]*policy.Goal{reduction(0.09)}, 0}, {[]*policy.Goal{reduction(0.09), &speedup}, 0.05},
	} {
		if got := allowance(c.goals...); !near(got, c.want) {
			t.Errorf("%v: %g, want %g", c.goals, got, c.want)
		}
	}
}

// A note tells a cumulative loss beyond what one change may lose, and a gain that wins back what was there before.
func TestNoteOfTheBest(t *testing.T) {
	for _, c := range []struct {
		name                        string
		own, baseline, sum, allowed float64
		says                        string
	}{
		{"a loss", -0.02, -0.05, -0.07, 0.05, "7.0\u00a0% slower than at its best commit"},
		{"what one change may lose", 0, -0.05, -0.05, 0.05, ""},
		{"less than is shown", 0, -0.01, -0.01, 0, ""},
		{"a little more than is shown", 0, -0.011, -0.011, 0, "1.1\u00a0% slower than at its best commit"},
		{"a gain that wins back", 0.01, -0.01, 0, 0.05, "+1.0\u00a0% against the baseline"},
		{"a gain too small to show", 0.009, -0.2, -0.03, 0.05, ""},
		{"a gain over the best", 0.05, -0.009, 0.04, 0.05, ""},
	} {
		for unmeasured, more := range []string{"", "One merge since then was not measured", "2 merges since then were not measured"} {
			note, noted := AgainstBest{Shape: "mission", Commit: bestCommit, Baseline: c.baseline, Speedup: Estimate{Value: c.sum}, Unmeasured: unmeasured}.note(Estimate{Value: c.own}, c.allowed)
			got := note.Sentence()
			if noted != (c.says != "") || c.says != "" && !(strings.Contains(got, c.says) && strings.Contains(got, more)) {
				t.Errorf("%s, %d not measured: %q", c.name, unmeasured, got)
			}
		}
	}
}

// A time below what the device needs is told also where it is shorter than a microsecond.
func TestBelowTheFloor(t *testing.T) {
	for _, c := range []struct {
		micros, floor float64
		below         bool
	}{{0.5, 0.6, true}, {0.5, 0.5, false}, {0.5, 0, false}, {5, 6, true}, {0, 6, false}} {
		cmp := &comparison{shapes: []*shapeComparison{{floor: c.floor, samples: &samples{candidate: []float64{c.micros}}}}}
		if got := cmp.belowFloor(&policy.PerformanceGate{}); (got != nil) != c.below {
			t.Errorf("%g µs of at least %g: %q", c.micros, c.floor, got)
		}
		if got := cmp.belowFloor(&policy.PerformanceGate{Roofline: new(false)}); got != nil {
			t.Errorf("the policy does not ask for it: %q", got)
		}
	}
}

// The progress of a run is shown with the interval of the policy's confidence and what the control shows.
func TestSoFarHasTheControlsInterval(t *testing.T) {
	e := quiet(1.2).measured(newRand(2, 2), 6)
	policy := performancePolicy(t, gate10)
	rule := policy.Rules[0]
	gate := rule.Gates.Performance
	got := FindSoFar(&rule, e)
	s := &shapeComparison{samples: collect(e.Performance.Rounds, "mission", clean)}
	draws := newResamplePlan(stats.DefaultResamples)
	s.control = draw(draws, s.samples.control, 0.5)
	want := speedupOf(draw(draws, s.samples.ratios, 0.5).With(s.runBias()), (1-float64(gate.Confidence))/2)
	if got == nil || got.Speedup.Value != want.Value || *got.Speedup.Lower != *want.Lower || *got.Speedup.Upper != *want.Upper || *got.Goal != 0.1 {
		t.Errorf("%+v, want %s", got, want)
	}
}

// Before the first round there is something to say about the measuring all the same.
func TestMeasuringBeforeTheFirstRound(t *testing.T) {
	m := (&comparison{alpha: 0.025}).measuring(&policy.PerformanceGate{Confidence: 0.95}, &Performance{}, []interim{{6, 0.01}, {12, 0.01}})
	if m.Attempts != 1 || m.MaxRounds != 12 || m.Interims != 2 || m.Rounds != 0 {
		t.Errorf("%+v", m)
	}
}
