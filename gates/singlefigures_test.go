package gates

import (
	"math"
	"testing"

	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/quantity"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

// What may be lacking alone is at most so many microseconds, a share of the baseline's time on a GPU, and half of the gain that a target
// asks.
func TestSingleAllowance(t *testing.T) {
	gpu, cpu := singleAllowanceOf(unrecorded["cuda"]), singleAllowanceOf(unrecorded["cpu"])
	if gpu.start != 5 || cpu.start != 50 {
		t.Errorf("to start alone may cost %g and %g µs", gpu.start, cpu.start)
	}
	for _, c := range []struct {
		name        string
		allowed     singleAllowance
		base, asked float64
		want        float64
	}{
		{"a long kernel", gpu, 100, 0, 0.5},
		{"a short kernel", gpu, 4, 0, 0.2},
		{"a short kernel that must not lose", gpu, 4, 0.98, 0.2},
		{"a short kernel that must be as fast", gpu, 4, 1, 0.2},
		{"a short kernel that must gain", gpu, 4, 1.1, 0.5 * (4 - 4/1.1)},
		{"a long kernel that must gain", gpu, 100, 1.1, 0.5},
		{"on a CPU", cpu, 100, 0, 1},
		{"a short one on a CPU", cpu, 0.5, 0, 1},
		{"a short one on a CPU that must gain", cpu, 0.5, 1.25, 0.05},
	} {
		if got := c.allowed.lacking(c.base, c.asked); !near(got, c.want) {
			t.Errorf("%s: %g µs, want %g", c.name, got, c.want)
		}
	}
}

func TestSharesAndRatios(t *testing.T) {
	for ratio, share := range map[float64]float64{1: 1, 2: 1.5, 0.5: 0, 4: 1.75} {
		if got := shareOfRatio(ratio); !near(got, share) {
			t.Errorf("the ratio %g is the share %g, want %g", ratio, got, share)
		}
		if got := ratioOfShare(share); !near(got, ratio) {
			t.Errorf("the share %g is the ratio %g, want %g", share, got, ratio)
		}
	}
	if got := ratioOfShare(7); !near(got, 20) {
		t.Errorf("a share without an end is the ratio %g, want 20", got)
	}
}

// A singleRun is a shape whose launches ran alone in six rounds, the same in each round unless gains say otherwise.
type singleRun struct {
	role      Role
	goal      policy.Goal
	base      float64 // the baseline's time in a batch, in microseconds
	candidate float64 // alone; the baseline's less the gain where it is 0
	gains     []float64
	kinds     []float64 // instead of gains: those of each kind of input, as shares of base
}

func (r singleRun) shape() *shapeComparison {
	s := &shapeComparison{goalOf: goalOf{role: r.role, goal: &r.goal, shape: Shape{Name: "mission"}}, samples: &samples{}}
	l := &s.samples.single
	kinds := max(1, len(r.kinds))
	for range kinds {
		s.samples.strata.kinds = append(s.samples.strata.kinds, "")
		l.baseline, l.candidate = append(l.baseline, r.base), append(l.candidate, r.base)
	}
	for round := range 6 {
		var pairs []singlePair
		for i := range 9 {
			kind, gain := i%kinds, 0.0
			if len(r.kinds) > 0 {
				gain = r.kinds[kind] * r.base
			} else if len(r.gains) > 0 {
				gain = r.gains[round%len(r.gains)]
			}
			p := singlePair{kind: kind, baseline: r.base, candidate: r.base - gain}
			if r.candidate > 0 {
				p.candidate = r.candidate
			}
			pairs = append(pairs, p)
		}
		l.rounds = append(l.rounds, pairs)
	}
	l.batches = len(l.rounds)
	return s
}

func faster(by float64) policy.Goal {
	return policy.Goal{Speedup: &quantity.Bound[quantity.Percent]{Op: quantity.AtLeast, Value: quantity.Percent(by)}}
}

func within(p50, p90 float64) policy.Goal {
	bound := func(micros float64) *quantity.Bound[quantity.Micros] {
		if micros == 0 {
			return nil
		}
		return &quantity.Bound[quantity.Micros]{Op: quantity.AtMost, Value: quantity.Micros(micros)}
	}
	return policy.Goal{P50: bound(p50), P90: bound(p90)}
}

// The goal of a shape, held against launches that ran alone: a goal is met, missed, or neither is proven.
func TestGoalsHeldAgainstSingleLaunches(t *testing.T) {
	const met, missed, open, granted = "met", "missed", "open", "granted"
	measured, fresh, onCPU := &Evidence{Mode: "cuda", Baseline: &Build{}}, &Evidence{Mode: "cuda"}, &Evidence{Mode: "cpu"}
	for _, c := range []struct {
		name string
		e    *Evidence
		run  singleRun
		want string
	}{
		{"a target that is met", measured, singleRun{role: RoleTarget, goal: faster(0.1), base: 100, gains: []float64{20}}, met},
		{"a target that is missed", measured, singleRun{role: RoleTarget, goal: faster(0.1), base: 100, gains: []float64{4}}, missed},
		{"a target that is met in most rounds", measured, singleRun{role: RoleTarget, goal: faster(0.1), base: 100, gains: []float64{20, 20, 20, 4, 20, 4}}, open},
		{"a target that asks for no gain", measured, singleRun{role: RoleTarget, goal: faster(0), base: 100, gains: []float64{20}}, met},
		{"half a microsecond may be lacking", measured, singleRun{role: RoleTarget, goal: faster(0.25), base: 100, gains: []float64{20.4}}, met},
		{"a guard that is met", measured, singleRun{role: RoleGuard, goal: faster(-0.02), base: 100, gains: []float64{0}}, met},
		{"a guard that is met in most rounds", measured, singleRun{role: RoleGuard, goal: faster(-0.02), base: 100, gains: []float64{-1, -1, -1, -6, -1, -6}}, granted},
		{"a guard that is missed in most rounds", measured, singleRun{role: RoleGuard, goal: faster(-0.02), base: 100, gains: []float64{-6, -6, -6, -1, -6, -1}}, open},
		{"a guard that is missed", measured, singleRun{role: RoleGuard, goal: faster(-0.02), base: 100, gains: []float64{-10}}, missed},
		{"a wide guard that is missed by far", measured, singleRun{role: RoleGuard, goal: faster(-0.9), base: 100, gains: []float64{-1400}}, missed},
		{"a wide guard that is met", measured, singleRun{role: RoleGuard, goal: faster(-0.9), base: 100, gains: []float64{-50}}, met},
		{"one kind does not pay for the others", measured, singleRun{role: RoleTarget, goal: faster(0.1), base: 100, kinds: []float64{0, 0.13, 0.9}}, open},
		{"all kinds gain", measured, singleRun{role: RoleTarget, goal: faster(0.1), base: 100, kinds: []float64{0.11, 0.13, 0.9}}, met},
		{"a time alone says nothing about the gain", measured, singleRun{role: RoleTarget, goal: within(1e6, 0), base: 100, gains: []float64{-3000}}, met},
		{"a time that is kept", measured, singleRun{role: RoleTarget, goal: within(80, 0), base: 100, gains: []float64{20}}, met},
		{"a time that is not kept", measured, singleRun{role: RoleTarget, goal: within(79, 0), base: 100, gains: []float64{20}}, missed},
		{"a p90 that is kept", measured, singleRun{role: RoleTarget, goal: within(0, 80), base: 100, gains: []float64{20}}, met},
		{"a p90 that is not kept", measured, singleRun{role: RoleTarget, goal: within(90, 79), base: 100, gains: []float64{20}}, missed},
		{"a time of less than a twentieth counts as one, kept", measured, singleRun{role: RoleTarget, goal: within(5.1, 0), base: 100, gains: []float64{98}}, met},
		{"a time of less than a twentieth counts as one, not kept", measured, singleRun{role: RoleTarget, goal: within(4.9, 0), base: 100, gains: []float64{98}}, missed},
		{"a new kernel has no gain", fresh, singleRun{role: RoleTarget, goal: faster(0.1), base: 100}, met},
		{"a new kernel's time, with its start", fresh, singleRun{role: RoleTarget, goal: within(15.5, 0), base: 10, candidate: 20}, met},
		{"a new kernel's time, beyond its start", fresh, singleRun{role: RoleTarget, goal: within(14.5, 0), base: 10, candidate: 20}, missed},
		{"a new kernel's time on a CPU, with its start", onCPU, singleRun{role: RoleTarget, goal: within(50.5, 0), base: 10, candidate: 100}, met},
		{"a new kernel's time on a CPU, beyond its start", onCPU, singleRun{role: RoleTarget, goal: within(49.5, 0), base: 10, candidate: 100}, missed},
		{"a new kernel that is all start, kept", fresh, singleRun{role: RoleTarget, goal: within(0.151, 0), base: 1, candidate: 3}, met},
		{"a new kernel that is all start, not kept", fresh, singleRun{role: RoleTarget, goal: within(0.146, 0), base: 1, candidate: 3}, missed},
	} {
		got, ok := c.run.shape().singleTest(newResamplePlan(fewResamples), c.e)
		is := open
		switch {
		case got.meet == 0 && got.miss > 0.02:
			is = granted // an estimate is enough for a guard
			if c.want == met {
				is = met
			}
		case got.meet < 0.01:
			is = met
		case got.miss < 0.01:
			is = missed
		}
		if !ok || is != c.want {
			t.Errorf("%s: %s (meet %g, miss %g, %v), want %s", c.name, is, got.meet, got.miss, ok, c.want)
		}
	}
	few := singleRun{role: RoleTarget, goal: faster(0.1), base: 100, gains: []float64{20}}.shape()
	few.samples.single.rounds = few.samples.single.rounds[:1]
	if _, ok := few.singleTest(newResamplePlan(fewResamples), measured); ok {
		t.Error("one round says enough")
	}
}

// On a CPU the processes of launches that ran alone must prove a p90. A slow baseline does not matter. If one of a few processes is
// slow, more rounds decide.
func TestP90OfSingleLaunches(t *testing.T) {
	for _, c := range []struct {
		name          string
		goal          policy.Goal
		every         int
		slow, slowing float64 // times of the candidate and of the baseline in so many processes
		met           bool
	}{
		{"all processes are fast", within(0, 85), 1, 80, 100, true},
		{"every fourth is slow", within(0, 85), 4, 800, 100, false},
		{"every fourth is slow, and no p90 is asked", within(85, 0), 4, 800, 100, true},
		{"every fourth of the baseline is fast", within(0, 85), 4, 80, 50, true},
		{"one of a few is slow", within(0, 85), 18, 800, 100, false},
	} {
		s := singleRun{role: RoleTarget, goal: c.goal, base: 100, gains: []float64{20}}.shape()
		n := 0
		for _, pairs := range s.samples.single.rounds {
			for i := range pairs {
				if n++; n%c.every == 0 {
					pairs[i].candidate, pairs[i].baseline = c.slow, c.slowing
				}
			}
		}
		got, ok := s.singleTest(newResamplePlan(fewResamples), &Evidence{Mode: "cpu", Baseline: &Build{}})
		if met := got.meet < 0.01; !ok || met != c.met {
			t.Errorf("%s: meet %g, miss %g", c.name, got.meet, got.miss)
		}
	}
}

// A control that is off widens what single launches show.
func TestSingleLaunchesWithAControlThatIsOff(t *testing.T) {
	e := &Evidence{Mode: "cuda", Baseline: &Build{}}
	draws := newResamplePlan(fewResamples)
	s := singleRun{role: RoleTarget, goal: faster(0.1), base: 100, gains: []float64{11}}.shape()
	still, _ := s.singleTest(draws, e)
	s.control = draw(draws, stats.Sample{Rounds: [][]float64{{1.05}, {1.05}, {1.05}, {1.05}, {1.05}, {1.05}}}, 0.5)
	off, _ := s.singleTest(draws, e)
	if still.meet > 0.01 || off.meet < 0.05 {
		t.Errorf("the p-value is %g, and %g where the control is off", still.meet, off.meet)
	}
}

// A large gain on every kind of input is confirmed on a machine whose control is off; one of three kinds out of five is not.
func TestLargeGainsWithAControlThatIsOff(t *testing.T) {
	e := &Evidence{Mode: "cpu", Baseline: &Build{}}
	draws := newResamplePlan(fewResamples)
	p := func(gains ...float64) float64 {
		s := singleRun{role: RoleTarget, goal: faster(0.1), base: 100, kinds: gains}.shape()
		s.control = draw(draws, stats.Sample{Rounds: [][]float64{{1.12}, {1.12}, {1.12}, {1.12}, {1.12}, {1.12}}}, 0.5)
		got, _ := s.singleTest(draws, e)
		return got.meet
	}
	if got := p(0.7, 0.7, 0.7, 0.7, 0.7); got > 0.01 {
		t.Errorf("all kinds gain 70 %%: the p-value is %g", got)
	}
	if got := p(0.9); got > 0.001 {
		t.Errorf("the only kind gains 90 %%: the p-value is %g", got)
	}
	if got := p(0.9, 0.9, 0.9, 0, 0); got < 0.05 {
		t.Errorf("three kinds of five gain: the p-value is %g", got)
	}
}

// What a reader is shown of single launches is the geometric mean over the kinds of input.
func TestSingleShareOfKinds(t *testing.T) {
	draws := newResamplePlan(fewResamples)
	d := singleRun{base: 100, kinds: []float64{0, 0.2, 0.5}}.shape().singleShare(draws)
	if d == nil {
		t.Fatal("no share")
	}
	want := math.Cbrt(1 * 1.2 * 1.5)
	if math.Abs(d.Estimate-want) > 1e-6 {
		t.Errorf("the share is %g, want %g", d.Estimate, want)
	}
	got := singleSpeedup(d, 0.025)
	if speedup := 1/(2-want) - 1; math.Abs(got.Value-speedup) > 1e-5 || math.Abs(*got.Lower-speedup) > 1e-3 || math.Abs(*got.Upper-speedup) > 1e-3 {
		t.Errorf("the speedup is %s, want %g", got, speedup)
	}
	if d := (singleRun{base: 100, gains: []float64{300}}).shape().singleShare(draws); !near(d.Estimate, 1.95) {
		t.Errorf("a gain beyond the whole time is the share %g", d.Estimate)
	}
	if d := (singleRun{base: 100, gains: []float64{-300}}).shape().singleShare(draws); !near(d.Estimate, 0.05) {
		t.Errorf("a loss of three times the time is the share %g", d.Estimate)
	}
	if d := (&shapeComparison{samples: &samples{}}).singleShare(draws); d != nil {
		t.Errorf("without launches that ran alone the share is %g", d.Estimate)
	}
}

// Launches are held against batches of the same round and kind of input.
func TestPairsOfSingleLaunches(t *testing.T) {
	kindOf := func(i int) int { return i % 2 }
	batched := newKindTimes()
	batched.add(0, side{sum: 30, n: 3}, side{sum: 16, n: 2}) // 10 and 8 µs
	l := &singles{}
	l.add(&Series{Batch: 1}, batched, kindOf)
	if l.batches != 0 || len(l.rounds) != 0 {
		t.Errorf("%+v", l)
	}
	l.add(&Series{Batch: 2, Single: &Singles{Baseline: []float64{1000, 2000, 3000}, Candidate: []float64{500, 600, 700, 800}}}, batched, kindOf)
	want := []singlePair{{kind: 0, baseline: 1, candidate: 0.5, batch: 2}, {kind: 0, baseline: 3, candidate: 0.7, batch: 2}} // nothing was timed on the other kind
	if l.batches != 1 || len(l.rounds) != 1 || len(l.rounds[0]) != 2 || l.rounds[0][0] != want[0] || l.rounds[0][1] != want[1] {
		t.Errorf("%+v, want %v", l, want)
	}
	l.add(&Series{Batch: 2, Single: &Singles{Baseline: []float64{1000}, Candidate: []float64{500}}}, newKindTimes(), kindOf)
	if l.batches != 2 || len(l.rounds) != 1 {
		t.Errorf("a round without a pair counts: %+v", l)
	}
}

// A reader is shown the speedup of launches that ran alone next to that of the batch.
func TestSingleSpeedupInTheTable(t *testing.T) {
	e := quiet(1.2).measured(newRand(2, 2), 6)
	withSingle(e, 2500, 200, simulatedNanos*(1-1/1.2))
	if row := judged(t, gate10, e).Comparisons[0]; row.Alone == nil || math.Abs(row.Alone.Value-0.2) > 0.01 {
		t.Errorf("%+v", row.Alone)
	}
	if row := judged(t, gate10, quiet(1.2).measured(newRand(2, 2), 6)).Comparisons[0]; row.Alone != nil {
		t.Errorf("nothing ran alone, and %+v is shown", row.Alone)
	}
}
