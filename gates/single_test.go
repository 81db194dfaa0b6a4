package gates

import (
	"math"
	"strings"
	"testing"
)

// withSingle adds launches that ran alone to evidence in batches. A single launch takes start
// longer than one in a batch; gains is how much faster the candidate's is than the
// baseline's for each kind of input, and noise the spread of a launch, all in nanoseconds.
func withSingle(e *Evidence, start, noise float64, gains ...float64) {
	rng := newRand(6, 6)
	for r := range e.Performance.Rounds {
		for i := range e.Performance.Rounds[r].Series {
			s := &e.Performance.Rounds[r].Series[i]
			s.Batch, s.Single = 8, &Singles{Isolated: true}
			base := s.Nanos[strings.IndexByte(strings.ReplaceAll(s.Order, " ", ""), SideBaseline)]
			for n := range 10 {
				s.Single.Baseline = append(s.Single.Baseline, base+start+noise*rng.NormFloat64())
				s.Single.Candidate = append(s.Single.Candidate, base+start-gains[n%len(gains)]+noise*rng.NormFloat64())
			}
		}
	}
}

// scaled is evidence of a run whose times are the simulated ones times a factor.
func scaled(ratio, factor float64) *Evidence {
	e := quiet(ratio).measured(newRand(2, 2), 6)
	for r := range e.Performance.Rounds {
		s := &e.Performance.Rounds[r].Series[0]
		for i := range s.Nanos {
			s.Nanos[i] *= factor
		}
	}
	return e
}

// A batch of 100 µs launches gains 16.7 µs a launch; the target asks for 9.1 µs.
func TestLaunchesThatRunAlone(t *testing.T) {
	claimed := simulatedNanos * (1 - 1/1.2)
	for _, c := range []struct {
		name        string
		gain, noise float64
		outcome     Outcome
		reason      Reason
		says        string
	}{
		{"the same gain", claimed, 200, Pass, "", "Proven"},
		{"more", 1.3 * claimed, 200, Pass, "", "Proven"},
		{"half a microsecond less", claimed - 500, 200, Pass, "", "Proven"},
		{"four microseconds less, and enough", claimed - 4000, 200, Pass, "", "Proven"},
		{"six microseconds less", claimed - 6000, 200, Defer, ReasonSuspicious, "a launch in a batch gains 16.7 µs, and a single launch gains over 4.7 µs less"},
		{"no gain", 0, 200, Defer, ReasonSuspicious, "launches of a batch share work"},
		{"a loss", -claimed, 200, Defer, ReasonSuspicious, "launches of a batch share work"},
		{"the same gain, in noise that hides it", claimed, 60_000, Defer, ReasonInconclusive, "single launches do not confirm it yet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := quiet(1.2).measured(newRand(2, 2), 6)
			withSingle(e, 2500, c.noise, c.gain)
			expect(t, judged(t, gate10, e), c.outcome, c.reason, c.says)
		})
	}
}

// A gain that just meets its target in a batch is refuted by launches that gain less alone,
// although they lack too little to prove that something is wrong with the figures.
func TestSingleLaunchesRefute(t *testing.T) {
	e := quiet(1.11).measured(newRand(2, 2), 6)
	claimed := simulatedNanos * (1 - 1/1.11)
	withSingle(e, 2500, 200, claimed-3000)
	v := judged(t, gate10, e)
	expect(t, v, Defer, ReasonTooSlow, "but single launches do not confirm it: a launch gains 9.93 µs in a batch and 6.8")
	if len(v.ToPass) == 0 || !strings.Contains(v.ToPass[0], "make a single launch") {
		t.Errorf("to pass: %q", v.ToPass)
	}
}

// A batch whose gain is in doubt is refuted as well: nobody waits for more rounds of it.
func TestSingleLaunchesRefuteWhatIsOpen(t *testing.T) {
	e := quiet(1.102).measured(newRand(2, 2), 6)
	withSingle(e, 2500, 200, 6000)
	expect(t, judged(t, gate10, e), Defer, ReasonTooSlow, "but single launches do not confirm it: ")
}

// The allowance is no larger than half of what is asked: a short kernel cannot hide its
// whole gain in it.
func TestSingleLaunchesOfShortKernels(t *testing.T) {
	for _, c := range []struct {
		name    string
		micros  float64 // of the baseline
		gain    float64 // alone, as a share of the gain in a batch
		outcome Outcome
	}{
		{"3 µs, all of it", 3, 1, Pass},
		{"3 µs, three quarters of it", 3, 0.75, Pass},
		{"3 µs, a fifth of it", 3, 0.2, Defer},
		{"3 µs, none of it", 3, 0, Defer},
		{"7 µs, none of it", 7, 0, Defer},
		{"255 µs, none of it", 255, 0, Defer},
		{"255 µs, all of it", 255, 1, Pass},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := scaled(1.15, c.micros*1e3/simulatedNanos)
			withSingle(e, 2500, 100, c.gain*c.micros*1e3*(1-1/1.15))
			if v := judged(t, gate10, e); v.Outcome != c.outcome {
				t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			}
		})
	}
}

// A guard claims no gain: an estimate within the allowance is enough, a proven loss is not.
func TestSingleLaunchesOfAGuard(t *testing.T) {
	for _, c := range []struct {
		name    string
		gain    float64
		outcome Outcome
		reason  Reason
	}{
		{"as in the batch", 0, Pass, ""},
		{"half a microsecond lost", -500, Pass, ""},
		{"four microseconds lost", -4000, Defer, ReasonRegression},
		{"a fifth lost", -0.2 * simulatedNanos, Defer, ReasonSuspicious},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := quiet(1).measured(newRand(2, 2), 6)
			withSingle(e, 2500, 200, c.gain)
			v := judged(t, `{guard: {shapes: [mission], speedup: ">= -2%"}, pairs: 20}`, e)
			if v.Outcome != c.outcome || v.Reason != c.reason {
				t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			}
		})
	}
}

// A guard that allows half of the speed to be lost is confirmed as well.
func TestSingleLaunchesOfAWideGuard(t *testing.T) {
	for _, guard := range []string{"-50%", "-90%"} {
		e := quiet(1.2).measured(newRand(2, 2), 6)
		withSingle(e, 2500, 200, simulatedNanos*(1-1/1.2))
		expect(t, judged(t, `{guard: {shapes: [mission], speedup: ">= `+guard+`"}, pairs: 20}`, e), Pass, "", "Proven")
	}
}

// Launches that share work for one kind of input are found, and the kind is named.
func TestSingleLaunchesByKind(t *testing.T) {
	r := newRand(9, 1)
	jitter := func() float64 { return math.Exp(0.003 * r.NormFloat64()) }
	e := quiet(1).measured(newRand(1, 1), 6)
	for i := range e.Performance.Rounds {
		e.Performance.Rounds[i].Series = []Series{inKinds([]float64{1.25, 1.25, 1.25}, 21, jitter)}
	}
	withSingle(e, 2500, 200, 20_000, 20_000, 5_000)
	expect(t, judged(t, gate10, e), Defer, ReasonSuspicious, "on mission with large inputs a launch in a batch gains 20")
}

// One round that is far off does not make the others look like noise.
func TestSingleLaunchesWithAnOutlierRound(t *testing.T) {
	e := quiet(1.2).measured(newRand(2, 2), 6)
	withSingle(e, 2500, 200, -3*simulatedNanos)
	far := e.Performance.Rounds[3].Series[0].Single
	for i := range far.Candidate {
		far.Candidate[i] *= 1000
	}
	expect(t, judged(t, gate10, e), Defer, ReasonSuspicious, "launches of a batch share work")
}

// A round of batches without launches that ran alone confirms nothing. Evidence of
// versions that had none at all keeps its verdict.
func TestSingleLaunchesAreMissing(t *testing.T) {
	e := quiet(1.2).measured(newRand(2, 2), 6)
	withSingle(e, 2500, 200, simulatedNanos*(1-1/1.2))
	e.Performance.Rounds[2].Series[0].Single = nil
	expect(t, judged(t, gate10, e), Defer, ReasonInconclusive, "too few single launches were timed to confirm it")
	for r := range e.Performance.Rounds {
		e.Performance.Rounds[r].Series[0].Single = nil
	}
	expect(t, judged(t, gate10, e), Pass, "", "Proven")
}

// A new kernel is timed beside copies of itself, which share work as it does: what it
// takes alone tells.
func TestSingleLaunchesOfANewKernel(t *testing.T) {
	for _, c := range []struct {
		name    string
		alone   float64 // beyond the time in a batch, in nanoseconds
		outcome Outcome
		reason  Reason
	}{
		{"a start", 3000, Pass, ""},
		{"the work of the whole batch", 700_000, Defer, ReasonSuspicious},
		{"half as much again", 50_000, Defer, ReasonSuspicious},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := quiet(1).measured(newRand(2, 2), 6)
			e.Baseline = nil
			withSingle(e, c.alone, 200, 0)
			v := judged(t, `{target: {shapes: [mission], p50: "<= 120us"}, pairs: 20}`, e)
			if v.Outcome != c.outcome || v.Reason != c.reason {
				t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			}
		})
	}
}

// Where no launch is ever alone on a GPU's terms, waking a process is part of the time.
func TestSingleLaunchesOnACPU(t *testing.T) {
	for _, c := range []struct {
		name        string
		gain, noise float64
		outcome     Outcome
	}{
		{"5 µs launches, the same gain", 833, 150, Pass},
		{"5 µs launches, none of it", 0, 150, Defer},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := scaled(1.2, 0.05)
			e.Mode = "cpu"
			withSingle(e, 4000, c.noise, c.gain)
			if v := judged(t, gate10, e); v.Outcome != c.outcome {
				t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			}
		})
	}
}
