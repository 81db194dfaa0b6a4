package gates

import (
	"math"
	"slices"

	"github.com/kernelgate/kernelgate/gates/facts"
)

// maxClockStep is the largest step of a clock, as a share of the median, whose samples can be
// judged. With a coarser clock all samples of a side may read the same, and a difference of half a
// step looks like no difference, or like a whole step without noise.
const maxClockStep = 0.005

// clockStep is the step of the clock behind a series as a share of the median, as far as the samples
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
	limit := maxClockStep * first
	step := 0.0
	for _, t := range times[1:] {
		step = commonStep(step, math.Abs(t-first), noise)
		if step > 0 && step < limit/2 {
			return 0
		}
	}
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
	return step / times[len(times)/2]
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

// coarseClock is why the clock is not fit for the shape, or nil. The median over the rounds
// decides, so that a single odd round does not.
func (s *shapeComparison) coarseClock() facts.Fact {
	steps := slices.Sorted(slices.Values(s.samples.steps))
	if len(steps) == 0 {
		return nil
	}
	if step := steps[len(steps)/2]; step > maxClockStep {
		return facts.CoarseClock{Shape: s.shape.Label(), Step: step, Most: maxClockStep}
	}
	return nil
}
