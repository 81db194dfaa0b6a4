package gates

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kernelgate/kernelgate/gates/stats"
)

// anyRun draws a run of any noise, with a truth around the threshold.
func anyRun(rng *rand.Rand, models []noiseModel, rounds int) *Evidence {
	m := machine{model: models[rng.IntN(len(models))], ratio: 1.08 + 0.1*rng.Float64(), blocks: 8}
	if rng.IntN(3) == 0 {
		m.alter = func(_, block int, side rune, ns float64) float64 {
			if side == SideCandidate && block%4 == 0 {
				return ns * 1.3
			}
			return ns
		}
	}
	return m.measured(rng, rounds)
}

// A mark takes a sample out of the figures that are shown; it never makes a verdict
// better than the one without marks. (Marks on top of marks can: what the first ones
// kept open, the next may leave out. But never beyond what holds with none.)
func TestMarksNeverHelp(t *testing.T) {
	p := performancePolicy(t, gate10)
	models := noiseModels()
	passed := 0
	for seed := range uint64(150) {
		rng := newRand(21, seed)
		e := anyRun(rng, models, 6+rng.IntN(15))
		before := judgeQuickly(p, e)
		switch rng.IntN(3) {
		case 0: // whole blocks, as runners mark them
			every := 2 + rng.IntN(4)
			mark(e, func(_, block int) bool { return block%every == 0 })
		case 1: // the slowest samples of the candidate: as bad as it gets
			for r := range e.Performance.Rounds {
				s := &e.Performance.Rounds[r].Series[0]
				at := 0
				for _, side := range s.Order {
					if side == ' ' {
						continue
					}
					if side == SideCandidate && s.Nanos[at] > simulatedNanos/1.12 {
						s.Disturbed = append(s.Disturbed, at)
					}
					at++
				}
			}
		default:
			for r := range e.Performance.Rounds {
				s := &e.Performance.Rounds[r].Series[0]
				for i := range s.Nanos {
					if rng.IntN(4) == 0 {
						s.Disturbed = append(s.Disturbed, i)
					}
				}
			}
		}
		after := judgeQuickly(p, e)
		if before.Outcome == Pass {
			passed++
		}
		if after.Outcome == Pass && before.Outcome != Pass {
			t.Errorf("run %d: %s (%s) without marks, PASS with them:\n%s\n%s", seed, before.Outcome, before.Reason, before.Summary, after.Summary)
		}
	}
	if passed < 15 || passed > 135 {
		t.Errorf("%d of 150 runs pass without marks: they are no test", passed)
	}
}

// The looks of a run that has lost a round in the middle are those of a run with one
// round less, so that dropping the round that speaks against a change wins no look:
// a verdict that was proven needs all of its rounds, and one round less does not
// pass where all of them were too slow.
func TestDroppingARoundNeverHelps(t *testing.T) {
	p := performancePolicy(t, gate10)
	models := noiseModels()
	for seed := range uint64(60) {
		rng := newRand(22, seed)
		e := anyRun(rng, models, []int{6, 13, 20}[rng.IntN(3)])
		before := judgeQuickly(p, e)
		rounds := e.Performance.Rounds
		for drop := 1; drop < len(rounds)-1; drop += 1 + rng.IntN(4) {
			less := *e
			less.Performance = &Performance{Rounds: slices.Delete(slices.Clone(rounds), drop, drop+1)}
			after := judgeQuickly(p, &less)
			switch {
			case len(rounds) == 6 && after.Reason != ReasonInconclusive:
				t.Errorf("run %d without round %d of 6 is %s (%s)", seed, drop+1, after.Outcome, after.Reason)
			case before.Reason == ReasonTooSlow && after.Outcome == Pass:
				t.Errorf("run %d is too slow with all rounds and passes without round %d:\n%s\n%s", seed, drop+1, before.Summary, after.Summary)
			}
		}
	}
}

// The same evidence gives the same verdict, byte for byte, however often and in
// whatever company it is judged.
func TestSameEvidenceSameVerdict(t *testing.T) {
	p := performancePolicy(t, gate10)
	models := noiseModels()
	for seed := range uint64(20) {
		var texts [][]byte
		for range 2 {
			e := anyRun(newRand(23, seed), models, 13)
			mark(e, func(round, block int) bool { return (round+block)%5 == 0 })
			Next(p, e)
			text, err := json.Marshal(judge(p, "test.yaml", e, newResamples(stats.DefaultResamples)))
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, text)
		}
		if !bytes.Equal(texts[0], texts[1]) {
			t.Errorf("run %d:\n%s\n%s", seed, texts[0], texts[1])
		}
	}
}
