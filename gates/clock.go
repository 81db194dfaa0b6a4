package gates

import (
	"math"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates/facts"
)

// fineClockStep is the largest step of a clock, as a share of the faster side's median, that does not matter. With
// a coarser clock all samples of a side may read the same, and a difference of half a step looks like
// no difference, or like a whole step without noise. Up to maxClockStep the intervals are wider
// instead: see rounding.
const (
	fineClockStep = 0.005
	maxClockStep  = 0.02
)

// clockStep is the step of the clock behind a series as a share of the faster side's median, as far as the samples
// show it: the greatest step that all differences of the times are multiples of. It is 0 where the
// step is too fine to matter. The clock ticks over whole samples, so times are multiplied by the
// batch.
//
// A quiet machine has few distinct times too. So a step counts only where the samples lie on at
// least three points of its lattice, two of them adjacent.
func clockStep(s *Series) float64 {
	if len(s.Nanos) == 0 {
		return 0
	}
	batch := float64(max(s.Batch, 1))
	times := make([]float64, len(s.Nanos))
	for i, ns := range s.Nanos {
		times[i] = ns * batch
	}
	first, highest := times[0], slices.Max(times)
	// Runners keep times in 32-bit floats, or round them.
	noise := highest * 1e-6
	limit := fineClockStep * slices.Min(times)
	step := 0.0
	for _, t := range times[1:] {
		step = commonStep(step, math.Abs(t-first), noise)
		if step > 0 && step < limit/2 {
			return 0
		}
	}
	faster := s.fasterMedian(times)
	slices.Sort(times)
	places, nearest := 1, math.Inf(1)
	for i := 1; i < len(times); i++ {
		if gap := times[i] - times[i-1]; gap > noise {
			places++
			nearest = min(nearest, gap)
		}
	}
	if places < 3 || nearest > 1.5*step {
		return 0
	}
	return step / faster
}

// fasterMedian is the smallest of the medians of the sides.
func (s *Series) fasterMedian(times []float64) float64 {
	sides := map[rune][]float64{}
	for i, side := range []rune(strings.ReplaceAll(s.Order, " ", "")) {
		if i < len(times) {
			sides[side] = append(sides[side], times[i])
		}
	}
	if len(sides) == 0 {
		sides[SideBaseline] = slices.Clone(times)
	}
	faster := math.Inf(1)
	for _, of := range sides {
		slices.Sort(of)
		faster = min(faster, of[len(of)/2])
	}
	return faster
}

// commonStep is the greatest common step of two lengths by Euclid's algorithm. A length within the
// noise counts as zero.
func commonStep(a, b, noise float64) float64 {
	for b > noise {
		rest := math.Mod(a, b)
		if b-rest <= noise {
			rest = 0
		}
		a, b = b, rest
	}
	if a <= noise {
		return 0
	}
	return a
}

// clockStep is the step of the clock as a share of the shape's samples. The median over the rounds
// decides, so that a single odd round does not.
func (s *shapeComparison) clockStep() float64 {
	steps := slices.Sorted(slices.Values(s.samples.steps))
	if len(steps) == 0 {
		return 0
	}
	return steps[len(steps)/2]
}

// rounding is how far a coarse clock may put a ratio off, on the log scale: each of the two times is off
// by less than a step, and in the same direction if the clock's ticks are where launches begin.
func (s *shapeComparison) rounding() float64 {
	if step := s.clockStep(); step > fineClockStep {
		return -math.Log1p(-min(step, maxClockStep))
	}
	return 0
}

// coarseClock is why the clock is not fit for the shape, or nil.
func (s *shapeComparison) coarseClock() facts.Fact {
	if step := s.clockStep(); step > maxClockStep {
		return facts.CoarseClock{Shape: s.shape.Label(), Step: step, Most: maxClockStep}
	}
	return nil
}
