package gates

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates/stats"
)

func TestCoarseClock(t *testing.T) {
	ticking := func(m machine, tick float64) machine { m.tick = tick; return m }
	loud := quiet(1.2)
	loud.model = noiseModels()[0]
	for _, c := range []struct {
		name    string
		machine machine
		batch   int
		outcome Outcome
	}{
		{"a fine clock", loud, 1, Pass},
		{"ticks of 0.1 %", ticking(loud, 0.001), 1, Pass},
		{"ticks of 1 %", ticking(loud, 0.01), 1, Pass},
		{"ticks of 3 %", ticking(loud, 0.03), 1, Error},
		{"ticks of 10 %", ticking(loud, 0.1), 1, Error},
		{"ticks of 1 % on a quiet machine", ticking(quiet(1.2), 0.01), 1, Pass},
		{"ticks of 1 %, and a gain that is less than a tick above the goal", ticking(quiet(1.105), 0.01), 1, Defer},
		{"ticks of 0.032 % on a quiet machine: few distinct times", ticking(quiet(1.2), 0.00032), 1, Pass},
		{"32 launches a sample", ticking(loud, 0.03), 32, Error},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := c.machine.measured(newRand(4, 4), 6)
			for r := range e.Performance.Rounds {
				s := &e.Performance.Rounds[r].Series[0]
				s.Batch = c.batch
				for i, ns := range s.Nanos {
					s.Nanos[i] = float64(float32(ns / float64(c.batch))) // as an event's time is kept
				}
			}
			v := judged(t, gate10, e)
			if v.Outcome != c.outcome || c.outcome == Error && !strings.Contains(v.Summary, "the clock's resolution is") {
				t.Errorf("got %s (%s): %s", v.Outcome, v.Reason, v.Summary)
			}
		})
	}
	t.Run("a constant time says nothing of the clock", func(t *testing.T) {
		e := quiet(1.25).measured(newRand(4, 4), 6)
		for r := range e.Performance.Rounds {
			s := &e.Performance.Rounds[r].Series[0]
			for i, side := range strings.ReplaceAll(s.Order, " ", "") {
				s.Nanos[i] = map[rune]float64{SideBaseline: 1e5, SideControl: 1e5, SideCandidate: 8e4}[side]
			}
		}
		expect(t, judged(t, gate10, e), Pass, "", "Proven")
	})
	t.Run("no recorded clock is coarse", func(t *testing.T) {
		for _, c := range recordedSeries(t) {
			if step := clockStep(&c); step > 0 {
				t.Errorf("%s has a step of %v", c.Shape, step)
			}
		}
	})
}

// A coarse clock may round the baseline up and the candidate down, or the other way round. Whatever it does, it proves nothing that
// is within its steps.
func TestRoundingProvesNothing(t *testing.T) {
	run := func(goal string, round func(float64) float64, ticks, baseline, candidate float64) *Verdict {
		t.Helper()
		rng := newRand(7, 7)
		e := quiet(1).measured(rng, 6)
		for r := range e.Performance.Rounds {
			s := &e.Performance.Rounds[r].Series[0]
			for i, side := range strings.ReplaceAll(s.Order, " ", "") {
				own := baseline
				if side == SideCandidate {
					own = candidate
				}
				s.Nanos[i] = 32 * (round(ticks*own) + float64(max(0, rng.IntN(40)-37))) // some are late, by one tick or two
			}
		}
		return judged(t, goal, e)
	}
	for ticks := 60.0; ticks < 190; ticks += 1.37 {
		for _, truth := range []float64{1.0999, 1.1001} {
			v := run(gate10, math.Round, ticks, 1, 1/truth)
			if v.Outcome == Pass || v.Reason == ReasonTooSlow {
				t.Errorf("%.2f ticks to %.2f: %s", ticks, ticks/truth, v.Summary)
			}
		}
	}
	for _, ticks := range []float64{60, 110, 190} {
		if v := run(gate10, math.Round, ticks, 1, 1/1.2); v.Outcome != Pass {
			t.Errorf("%.0f ticks: %s: %s", ticks, v.Outcome, v.Summary)
		}
		if v := run(gate10, math.Round, ticks, 1, 1); v.Reason != ReasonTooSlow {
			t.Errorf("%.0f ticks: %s: %s", ticks, v.Outcome, v.Summary)
		}
	}
	// The clock's step is a larger part of a faster candidate.
	for ticks := 60.0; ticks < 300; ticks += 0.73 {
		for name, round := range map[string]func(float64) float64{"rounded": math.Round, "cut off": math.Floor} {
			for _, goal := range []string{"speedup: '>= +200%'", "p50: '<= " + fmt.Sprint(0.032*ticks/3) + "us'"} {
				run := func(candidate float64) *Verdict {
					return run("{target: {shapes: [mission], "+goal+"}, pairs: 20}", round, ticks, 1, candidate)
				}
				if v := run(1.001 / 3); v.Outcome != Defer {
					t.Errorf("%s: %.2f ticks to %.2f, %s: %s: %s", goal, ticks, ticks/3, name, v.Outcome, v.Summary)
				}
				if v := run(1 / 3.7); v.Outcome != Pass {
					t.Errorf("%s: %.2f ticks to %.2f, %s: %s: %s", goal, ticks, ticks/3.7, name, v.Outcome, v.Summary)
				}
			}
		}
	}
	if v := run(gate10, math.Round, 400, 1, 0.1); v.Outcome != Pass {
		t.Errorf("ten times as fast: %s: %s", v.Outcome, v.Summary)
	}
}

// A kind of input that takes few ticks is rounded by more than the samples together show.
func TestRoundingOfAKind(t *testing.T) {
	for ticks := 20.0; ticks < 40; ticks += 0.3 {
		rng := newRand(7, 7)
		e := quiet(1).measured(rng, 6)
		for r := range e.Performance.Rounds {
			s := &e.Performance.Rounds[r].Series[0]
			s.Distributions = []string{"normal", "constant"}
			at := 0
			for block, letters := range strings.Fields(s.Order) {
				for _, side := range letters {
					own := []float64{4000, ticks}[block%2]
					if side == SideCandidate {
						own /= 1.0975
					}
					s.Nanos[at] = 32 * (math.Floor(own) + float64(max(0, rng.IntN(40)-37)))
					at++
				}
			}
		}
		if v := judged(t, gate10, e); v.Outcome == Pass {
			t.Errorf("%.1f ticks: %s", ticks, v.Summary)
		}
	}
}

// A kind of input that takes few ticks moves a speedup over five kinds by a fifth of what it is off itself.
func TestRoundingOfOneKindOfFive(t *testing.T) {
	rng := newRand(7, 7)
	e := quiet(1).measured(rng, 6)
	for r := range e.Performance.Rounds {
		s := &e.Performance.Rounds[r].Series[0]
		s.Distributions = []string{"normal", "uniform", "large", "dominant", "constant"}
		at := 0
		for block, letters := range strings.Fields(s.Order) {
			for range letters {
				own := 4000.4
				if block%5 == 4 {
					own = 30.4
				}
				s.Nanos[at] = 32 * (math.Floor(own) + float64(max(0, rng.IntN(40)-37)))
				at++
			}
		}
	}
	if v := judged(t, "{guard: {speedup: '>= -2%'}, pairs: 20, secret_shape: false}", e); v.Outcome != Pass {
		t.Errorf("an equal kernel: %s: %s", v.Outcome, v.Summary)
	}
}

// Times that were kept as milliseconds in 32-bit floats show their clock as well.
func TestClockOfFloatMilliseconds(t *testing.T) {
	for ticks := 151.0; ticks < 300; ticks += 1.7 {
		s := &Series{Batch: 1, Order: strings.TrimSpace(strings.Repeat("bcaacb ", 20))}
		rng := newRand(uint64(ticks), 7)
		for _, side := range strings.ReplaceAll(s.Order, " ", "") {
			own := ticks
			if side == SideCandidate {
				own /= 3
			}
			ns := 32 * (math.Floor(own) + float64(max(0, rng.IntN(10)-7)))
			s.Nanos = append(s.Nanos, float64(float32(ns*1e-6))*1e6)
		}
		if c := clockShareOf(s, func(int) int { return 0 }); math.Abs(c.most*math.Floor(ticks/3)-1) > 0.01 {
			t.Errorf("%.1f ticks: a step of %v of the candidate", ticks, c.most)
		}
	}
}

// A harness times launches one by one, by a clock that is coarse beside them. The median of a process may then have two readings
// alone, which also a quiet machine has. The launches tell the step.
func TestClockOfLaunches(t *testing.T) {
	run := func(clock, truth, launch float64, seed uint64) *Verdict {
		rng := newRand(seed, 7)
		e := quiet(1).measured(rng, 6)
		for r := range e.Performance.Rounds {
			s := &e.Performance.Rounds[r].Series[0]
			launches := map[bool][][]float64{}
			for i, side := range strings.ReplaceAll(s.Order, " ", "") {
				own := launch
				if side == SideCandidate {
					own /= truth
				}
				var times []float64
				for range 25 {
					at, took := clock*rng.Float64(), own*(1+0.01*rng.NormFloat64())
					times = append(times, clock*math.Floor((at+took)/clock))
				}
				s.Nanos[i] = stats.Describe(times).P50
				launches[side == SideCandidate] = append(launches[side == SideCandidate], times)
			}
			s.ClockNanos = max(ClockStep(launches[true]), ClockStep(launches[false]))
		}
		return judged(t, gate10, e)
	}
	passed := 0
	for seed := range uint64(100) {
		v := run(1000, 1.085, 4000+40*float64(seed), seed)
		if v.Outcome == Pass {
			t.Errorf("a launch of %d ns by a clock of 1 µs: %s", 4000+40*seed, v.Summary)
		}
		if v = run(32, 1.085, 4000+40*float64(seed), seed); v.Outcome != Defer {
			t.Errorf("a launch of %d ns by a clock of 32 ns: %s: %s", 4000+40*seed, v.Outcome, v.Summary)
		}
		if v = run(32, 1.2, 4000+40*float64(seed), seed); v.Outcome == Pass {
			passed++
		}
		if v = run(1, 1.12, 4000+40*float64(seed), seed); v.Outcome != Pass {
			t.Errorf("a launch of %d ns by a clock of 1 ns: %s: %s", 4000+40*seed, v.Outcome, v.Summary)
		}
	}
	if passed < 98 {
		t.Errorf("of +20 %%, %d of 100 pass by a clock of 32 ns", passed)
	}
	for name, c := range map[string]struct {
		processes [][]float64
		want      float64
	}{
		"nothing":                       {nil, 0},
		"a process without times":       {[][]float64{{}, {5000}}, 0},
		"a machine that counts":         {[][]float64{{5000, 5000, 5000}, {5000, 5000, 5000}}, 0},
		"its first launch takes longer": {[][]float64{{6000, 5000, 5000}, {6000, 5000, 5000}}, 0},
		"it has two kinds of launches":  {[][]float64{{6000, 5000, 6000, 5000}, {5000, 6000, 5000, 6000}}, 0},
		"two readings":                  {[][]float64{{6000, 5000, 5000, 6000}, {6000, 5000, 5000, 5000}}, 1000},
		"three readings":                {[][]float64{{7000, 5000, 5000, 6000}, {5000, 5000, 5000, 5000}}, 1000},
		"one process":                   {[][]float64{{7000, 5000, 5000, 6000}}, 0},
		"each once":                     {[][]float64{{7000, 5000, 6000}, {5000, 6000, 8000}}, 0},
		"no common step":                {[][]float64{{7000, 5000, 5000, 5900}, {5000}}, 0},
		"readings that one lacks":       {[][]float64{{100, 100, 101, 102, 102}, {99, 99, 102, 102, 102}}, 1},
		"a finer clock of another":      {[][]float64{{50e3, 50e3, 50030, 50070}, {50e3, 50e3, 50400, 50400}}, 0},
		"two slow launches":             {[][]float64{{5000, 5000, 5000, 6000, 6100}, {5000, 5000, 5000, 6003, 6104}}, 0},
		"a step that does not matter":   {[][]float64{{5000, 5000, 5012, 5012}, {5000, 5012}}, 0},
	} {
		if got := ClockStep(c.processes); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
