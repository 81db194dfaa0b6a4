package gates

import (
	"math"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates/facts"
)

// fineClockStep is the largest step of a clock, as a share of a time, that does not matter. With
// a coarser clock all samples of a side may read the same, and a difference of half a step looks like
// no difference, or like a whole step without noise. The intervals are wider then: see rounding.
// Where the step is more than maxClockStep of the samples, the runner takes too few launches a sample. It
// cannot foresee a much faster candidate, so of a single side the step may be as large as mostRounding.
const (
	fineClockStep = 0.005
	maxClockStep  = 0.02
	mostRounding  = 0.5
)

// A clockShare is the step of the clock in one round: as a share of the median of all samples, and of
// the smallest median of a side on one kind of input.
type clockShare struct{ all, most float64 }

// clockShareOf finds the share of a series. A block of samples has one kind of input.
func clockShareOf(s *Series, kind func(block int) int) clockShare {
	step := clockStep(s)
	if step == 0 {
		return clockShare{}
	}
	times := map[[2]int][]float64{}
	at := 0
	for block, letters := range strings.Fields(s.Order) {
		for _, letter := range letters {
			key := [2]int{int(letter), kind(block)}
			times[key] = append(times[key], s.Nanos[at])
			at++
		}
	}
	fastest := math.Inf(1)
	for _, of := range times {
		fastest = min(fastest, middle(of))
	}
	all := middle(slices.Clone(s.Nanos))
	return clockShare{step, step * all / fastest}
}

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
	limit := fineClockStep * slices.Min(times)
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

// clockShare is the step of the clock for the shape. The median over the rounds decides, so that a single
// odd round does not.
func (s *shapeComparison) clockShare() clockShare {
	if len(s.samples.steps) == 0 {
		return clockShare{}
	}
	var all, most []float64
	for _, c := range s.samples.steps {
		all, most = append(all, c.all), append(most, c.most)
	}
	return clockShare{middle(all), middle(most)}
}

func middle(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// rounding is how far a coarse clock may put a ratio off, on the log scale: each of the two times is off
// by less than a step, and in the same direction if the clock's ticks are where launches begin.
func (s *shapeComparison) rounding() float64 {
	if most := s.clockShare().most; most > fineClockStep {
		return -math.Log1p(-min(most, mostRounding))
	}
	return 0
}

// coarseClock is why the clock is not fit for the shape, or nil.
func (s *shapeComparison) coarseClock() facts.Fact {
	switch c := s.clockShare(); {
	case c.all > maxClockStep:
		return facts.CoarseClock{Shape: s.shape.Label(), Step: c.all, Most: maxClockStep}
	case c.most > mostRounding:
		return facts.CoarseClock{Shape: s.shape.Label(), Step: c.most, Most: mostRounding}
	}
	return nil
}
