package gates

import (
	"math"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// withMeans adds the means over the launches of each process to evidence of [withSingle], as
// a CPU runner of 32 launches a process gathers them. cost is what the launches of the n-th
// process of the candidate took in total beyond their median, in nanoseconds.
func withMeans(e *Evidence, noise float64, cost func(process int) float64) {
	rng := newRand(8, 8)
	e.Mode = "cpu"
	process := 0
	for r := range e.Performance.Rounds {
		for i := range e.Performance.Rounds[r].Series {
			s := e.Performance.Rounds[r].Series[i].Single
			s.Launches = 32
			for n := range s.Baseline {
				s.MeanBaseline = append(s.MeanBaseline, s.Baseline[n]+noise*rng.ExpFloat64()/31)
				s.MeanCandidate = append(s.MeanCandidate, s.Candidate[n]+(noise*rng.ExpFloat64()+cost(process))/31)
				process++
			}
		}
	}
}

// Launches of 100 µs gain 16.7 µs by their median. What a few of them do for the others, or
// lose, shows in the mean.
func TestUnevenLaunches(t *testing.T) {
	always := func(nanos float64) func(int) float64 { return func(int) float64 { return nanos } }
	every := func(n int, nanos float64) func(int) float64 {
		return func(process int) float64 {
			if process%n == 0 {
				return nanos
			}
			return 0
		}
	}
	const launch = simulatedNanos
	for _, c := range []struct {
		name        string
		noise, cost float64
		every       int
		outcome     Outcome
		reason      Reason
		says        string
	}{
		{"no launch takes longer", 5_000, 0, 1, Pass, "", "Proven"},
		{"noise of both sides", 200_000, 0, 1, Pass, "", "Proven"},
		{"a tenth of a launch", 5_000, 0.1 * launch, 1, Pass, "", "Proven"},
		{"a table of two launches", 5_000, 2 * launch, 1, Defer, ReasonSuspicious, "a few launches do work that the others skip"},
		{"a third of the launches takes three times as long", 5_000, 10 * 2 * launch, 1, Defer, ReasonSuspicious, "a few launches do work that the others skip"},
		{"one process that was disturbed", 5_000, 31 * 100 * launch, 60, Pass, "", "Proven"},
		{"a table of two launches, in noise that hides it", 150_000, 2 * launch, 1, Defer, ReasonInconclusive, "a few launches do work that the others skip"},
		{"every fifth process is four times slower", 5_000, 31 * 3 * launch, 5, Defer, ReasonTooSlow, "slow launches count as well"},
		{"every twentieth process is five times slower", 5_000, 31 * 4 * launch, 20, Defer, ReasonInconclusive, "slow launches count as well"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := quiet(1.2).measured(newRand(2, 2), 6)
			withSingle(e, 2500, 200, simulatedNanos*(1-1/1.2))
			cost := always(c.cost)
			if c.every > 1 {
				cost = every(c.every, c.cost)
			}
			withMeans(e, c.noise, cost)
			expect(t, judged(t, gate10, e), c.outcome, c.reason, c.says)
		})
	}
}

// A launch that is five times as fast stays so, whatever a disturbance adds to it: short launches on a busy machine do not wait for
// more rounds. A table is found all the same.
func TestUnevenShortLaunches(t *testing.T) {
	for _, c := range []struct {
		name    string
		cost    float64
		outcome Outcome
		reason  Reason
	}{
		{"disturbances that weigh more in short launches", 1.1 * simulatedNanos / 5, Pass, ""},
		{"a table of three launches", 3 * simulatedNanos / 5, Defer, ReasonSuspicious},
	} {
		e := quiet(5).measured(newRand(2, 2), 6)
		withSingle(e, 2500, 200, simulatedNanos*(1-1/5.0))
		withMeans(e, 12_000, func(int) float64 { return c.cost })
		t.Run(c.name, func(t *testing.T) { expect(t, judged(t, gate10, e), c.outcome, c.reason, "") })
	}
}

// A fast candidate cannot hide extra work in the noise of a baseline that takes twenty times as long.
func TestUnevenInTheNoiseOfASlowBaseline(t *testing.T) {
	const fast = 20.0
	for _, c := range []struct {
		name     string
		noise    float64 // of the baseline's processes, in launches of the baseline
		launches float64 // that one launch of a candidate's process works, likewise
		outcome  Outcome
		reason   Reason
	}{
		{"the work of four launches, in the noise of three", 3, 4, Defer, ReasonInconclusive},
		{"the work of four launches, in the noise of ten", 10, 4, Defer, ReasonInconclusive},
		{"the noise of a candidate for as long as it runs", 3, 3 / fast, Pass, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := quiet(fast).measured(newRand(2, 2), 6)
			withSingle(e, 2500, 200, simulatedNanos*(1-1/fast))
			withMeans(e, 0, func(int) float64 { return c.launches * simulatedNanos })
			for i := range e.Performance.Rounds {
				for k := range e.Performance.Rounds[i].Series {
					s := e.Performance.Rounds[i].Series[k].Single
					for n := range s.MeanBaseline {
						s.MeanBaseline[n] = s.Baseline[n] + c.noise*simulatedNanos/31
					}
				}
			}
			expect(t, judged(t, gate10, e), c.outcome, c.reason, "")
		})
	}
}

// The first launches of a few processes take so long that launches gain nothing on average. No median shows it.
func TestSlowFirstLaunchesOfAFewProcesses(t *testing.T) {
	const launch = simulatedNanos
	for _, c := range []struct {
		name      string
		launches  int // of a process
		every     int // so many processes, one has a slow first launch
		candidate float64
		baseline  float64 // what the first launches of as many of its processes take
		outcome   Outcome
	}{
		{"a process costs the same on both sides", 32, 1, 0.3 * launch, 0.3 * launch, Pass},
		{"every fourth takes 200 launches", 32, 4, 200 * launch, 0.3 * launch, Defer},
		{"every fourth of two takes two launches", 2, 4, 2 * launch, 0, Defer},
		{"every fourth takes 200 launches on both sides", 32, 4, 200 * launch, 200 * launch, Pass},
		{"every twentieth was disturbed for ten launches", 32, 20, 10 * launch, 0, Pass},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := quiet(1.2).measured(newRand(2, 2), 6)
			withSingle(e, 2500, 200, simulatedNanos*(1-1/1.2))
			withMeans(e, 5_000, func(int) float64 { return 0 })
			process := 0
			for i := range e.Performance.Rounds {
				s := e.Performance.Rounds[i].Series[0].Single
				s.Launches = c.launches
				for n := range s.Baseline {
					b, slow := 0.0, 0.0
					if process++; process%c.every == 0 {
						b, slow = c.baseline, c.candidate
					}
					s.FirstBaseline, s.FirstCandidate = append(s.FirstBaseline, s.Baseline[n]+b), append(s.FirstCandidate, s.Candidate[n]+slow)
				}
			}
			v := judged(t, gate10, e)
			if v.Outcome != c.outcome || v.Outcome == Defer && !strings.Contains(v.Summary, "slow launches count as well") {
				t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			}
		})
	}
}

// The noise of a machine can make some launches of the baseline faster than the others. It is noise all the same: a candidate that
// is disturbed by less is not uneven.
func TestUnevenBaselineOfFasterLaunches(t *testing.T) {
	e := quiet(5).measured(newRand(2, 2), 6)
	withSingle(e, 2500, 200, simulatedNanos*(1-1/5.0))
	withMeans(e, 0, func(int) float64 { return 15_000 })
	for i := range e.Performance.Rounds {
		for k := range e.Performance.Rounds[i].Series {
			s := e.Performance.Rounds[i].Series[k].Single
			for n := range s.MeanBaseline {
				s.MeanBaseline[n] = s.Baseline[n] - 25_000/31.0
			}
		}
	}
	expect(t, judged(t, gate10, e), Pass, "", "Proven")
}

// What a new process costs is allowed in the first launch, even if some later launches of the baseline happened to be faster than the
// others by as much.
func TestUnevenFasterLaunchesDoNotHideTheStart(t *testing.T) {
	s := &samples{}
	for range 6 {
		s.addUneven(&Series{Single: &Singles{
			Baseline: []float64{6_000, 6_300, 6_600}, MeanBaseline: []float64{5_600, 5_850, 6_200}, FirstBaseline: []float64{19_000, 18_300, 17_600},
			Candidate: []float64{2_100, 2_200, 2_300}, MeanCandidate: []float64{2_200, 2_300, 2_400}, FirstCandidate: []float64{12_800, 13_800, 14_300}, Launches: 32,
		}})
	}
	for _, round := range s.uneven[0].lenient.Rounds {
		if round[0] >= 1 {
			t.Errorf("the candidate is uneven: %g", round[0])
		}
	}
}

// Where the noise of a round is longer than a launch, no more honest kernels are accused than the error rate says: here their first
// launches take as long as is just allowed, and later ones too.
func TestAccusationsOfShortLaunches(t *testing.T) {
	const runs, alpha = 1000, 0.001
	draws, rng := newResamplePlan(stats.MinResamples), newRand(3, 3)
	first, uneven := 0, 0
	for range runs {
		s := &shapeComparison{goalOf: goalOf{goal: &policy.Goal{}}, samples: &samples{strata: strata{kinds: []string{"normal"}}}}
		for range 6 {
			single := &Singles{Launches: 32}
			noise := func() float64 { return 12_000 * rng.NormFloat64() }
			for range 3 {
				single.Baseline, single.FirstBaseline = append(single.Baseline, 13_000), append(single.FirstBaseline, 21_000)
				single.MeanBaseline = append(single.MeanBaseline, 13_000)
				single.Candidate, single.FirstCandidate = append(single.Candidate, 4_500), append(single.FirstCandidate, 4_500+12_000+noise())
				single.MeanCandidate = append(single.MeanCandidate, 4_500+(4_000+noise())/31)
			}
			s.samples.clocks.addFirst(single)
			s.samples.addUneven(&Series{Single: single})
		}
		if s.preparesOnce(draws)[0].p <= alpha {
			first++
		}
		if s.unevenAlone(draws, &Evidence{Mode: "cpu", Baseline: &Build{}}, alpha)[0].proven <= alpha {
			uneven++
		}
	}
	const most = 5 // of 1 that is expected
	if first > most || uneven > most {
		t.Errorf("of %d honest kernels, %d are accused for their first launches and %d for uneven ones, at an error rate of %g", runs, first, uneven, alpha)
	}
}

// A table for one kind of input alone is found, in whatever launch it is made.
func TestUnevenLaunchesByKind(t *testing.T) {
	for _, first := range []bool{false, true} {
		r := newRand(9, 1)
		jitter := func() float64 { return math.Exp(0.003 * r.NormFloat64()) }
		e := quiet(1).measured(newRand(1, 1), 6)
		for i := range e.Performance.Rounds {
			e.Performance.Rounds[i].Series = []Series{inKinds([]float64{1.25, 1.25, 1.25}, 21, jitter)}
		}
		withSingle(e, 2500, 200, 20_000)
		large := func(process int) float64 {
			if process%10%3 == 2 {
				return 2 * simulatedNanos
			}
			return 0
		}
		if !first {
			withMeans(e, 5_000, large)
		} else {
			withMeans(e, 20_000, func(int) float64 { return 0 })
			for i := range e.Performance.Rounds {
				s := e.Performance.Rounds[i].Series[0].Single
				for n := range s.Baseline {
					s.FirstBaseline = append(s.FirstBaseline, s.Baseline[n]+10_000)
					s.FirstCandidate = append(s.FirstCandidate, s.Candidate[n]+10_000+large(n))
				}
			}
		}
		expect(t, judged(t, gate10, e), Defer, ReasonSuspicious, "on mission with large inputs some launches of a process take longer")
	}
}

// Of two launches of a long kernel either can be the slower one. A slow baseline of which it is the later one makes no fast candidate
// uneven.
func TestUnevenBaselineIsNoStandard(t *testing.T) {
	s := &samples{}
	for range 6 {
		s.addUneven(&Series{Single: &Singles{
			Baseline: []float64{2_000_000, 1_900_000}, MeanBaseline: []float64{2_000_000, 1_900_000}, FirstBaseline: []float64{1_700_000, 1_700_000},
			Candidate: []float64{540_000, 550_000}, MeanCandidate: []float64{540_000, 550_000}, FirstCandidate: []float64{560_000, 545_000}, Launches: 2,
		}})
	}
	for _, sample := range []stats.Sample{s.uneven[0].lenient, s.uneven[0].strict} {
		for _, round := range sample.Rounds {
			if round[0] >= 1 {
				t.Errorf("the candidate is uneven: %g", round[0])
			}
		}
	}
	if len(s.uneven[0].lenient.Rounds) != 6 || len(s.uneven[0].strict.Rounds) != 6 {
		t.Errorf("%+v", s.uneven)
	}
}
