package gates

import (
	"fmt"
	"slices"
	"testing"
)

// mark marks the blocks of a series that match, with all of their samples.
func mark(e *Evidence, match func(round, block int) bool) {
	for r := range e.Performance.Rounds {
		s := &e.Performance.Rounds[r].Series[0]
		for block := range len(s.Nanos) / 6 {
			if match(r, block) {
				for i := range 6 {
					s.Disturbed = append(s.Disturbed, 6*block+i)
				}
			}
		}
	}
}

func TestMarkedSamples(t *testing.T) {
	// A candidate that is slow in two blocks of five, which happen to be the marked ones.
	slow := quiet(1.2)
	slow.alter = func(_, block int, side rune, ns float64) float64 {
		if side == SideCandidate && block%5 < 2 {
			return ns * 1.4
		}
		return ns
	}
	solo := func(e *Evidence, disturbed int) {
		for r := range e.Performance.Rounds {
			s := &e.Performance.Rounds[r].Series[0]
			s.Solo, s.SoloDisturbed = slices.Repeat([]float64{simulatedNanos, 1.001 * simulatedNanos}, 5), disturbed
		}
	}
	t.Run("a pass must hold with them", func(t *testing.T) {
		e := slow.measured(newRand(1, 1), 20)
		mark(e, func(_, block int) bool { return block%5 < 2 })
		expect(t, judged(t, gate10, e), Defer, ReasonInconclusive, "it passes only if the 288 disturbed samples are left out")
	})
	t.Run("and does where it makes no difference", func(t *testing.T) {
		e := quiet(1.2).measured(newRand(1, 1), 6)
		mark(e, func(_, block int) bool { return block%5 < 2 })
		expect(t, judged(t, gate10, e), Pass, "", "Proven")
		if v := judged(t, gate10, e); v.Measuring.Disturbed != 6*8*6 {
			t.Errorf("%d samples are counted as disturbed, of all three sides", v.Measuring.Disturbed)
		}
	})
	t.Run("more of them beside the candidate are suspicious", func(t *testing.T) {
		e := quiet(1.2).measured(newRand(1, 1), 6)
		mark(e, func(_, block int) bool { return block%5 < 2 })
		solo(e, 0)
		expect(t, judged(t, gate10, e), Defer, ReasonSuspicious, "40.0\u00a0% of the samples on mission while the candidate was loaded, and 0\u00a0% before")
		solo(e, 4)
		expect(t, judged(t, gate10, e), Pass, "", "Proven")
	})
	t.Run("an index named twice is one sample", func(t *testing.T) {
		e := quiet(1.2).measured(newRand(1, 1), 6)
		for r := range e.Performance.Rounds {
			e.Performance.Rounds[r].Series[0].Disturbed = slices.Repeat([]int{0}, 500)
		}
		expect(t, judged(t, gate10, e), Pass, "", "Proven")
	})
	for _, share := range []int{60, 100} {
		t.Run(fmt.Sprint(share, " % are the runner's fault"), func(t *testing.T) {
			e := quiet(1.2).measured(newRand(1, 1), 6)
			mark(e, func(_, block int) bool { return 5*block < share })
			expect(t, judged(t, gate10, e), Error, ReasonRunner, " samples on mission")
			if need := Next(performancePolicy(t, gate10), e); need != (Need{}) {
				t.Errorf("still asks for %+v", need)
			}
		})
	}
}
