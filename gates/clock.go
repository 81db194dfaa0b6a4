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
// the smallest median of a side on one kind of input. Off is how far it may put the ratio off, on the
// log scale.
type clockShare struct{ all, most, off float64 }

// clockShareOf finds the share of a series. A block of samples has one kind of input.
func clockShareOf(s *Series, kind func(block int) int) clockShare {
	found := clockShare{all: clockStep(s)}
	if found.all == 0 {
		return found
	}
	step := found.all * middle(slices.Clone(s.Nanos))
	times := map[int]map[rune][]float64{}
	at := 0
	for block, letters := range strings.Fields(s.Order) {
		of := times[kind(block)]
		if of == nil {
			of = map[rune][]float64{}
			times[kind(block)] = of
		}
		for _, letter := range letters {
			of[letter] = append(of[letter], s.Nanos[at])
			at++
		}
	}
	for _, sides := range times {
		shortest := math.Inf(1)
		for _, of := range sides {
			shortest = min(shortest, middle(of))
		}
		// Each of two times is off by less than a step, and in the same direction if the clock's ticks are where launches begin. The
		// speedup is the geometric mean of those on the kinds.
		found.most = max(found.most, step/shortest)
		found.off -= math.Log1p(-min(step/shortest, mostRounding)) / float64(len(times))
	}
	return found
}

// clockStep is the step of the clock behind a series as a share of the median, as far as the samples
// show it. It is 0 where the step is too fine to matter.
//
// A quiet machine has few distinct readings too. So a step counts only where the samples have at
// least three readings, and one of them more than once.
func clockStep(s *Series) float64 {
	if len(s.Nanos) == 0 {
		return 0
	}
	times := slices.Sorted(slices.Values(s.Nanos))
	median := times[len(times)/2]
	return max(tickOf(times, 3), s.ClockNanos) / median
}

// ClockStep is the step of the clock that timed single launches of one side in several processes, as far as the times show it, and
// 0 where it is too fine to matter. By a fine clock hardly two launches take equally long. So two readings suffice, if each came more
// than once in a process. The step is that of all processes together, because one alone may not have all readings. Processes with
// the same times belong to a machine that counts, and show no clock.
func ClockStep(processes [][]float64) float64 {
	shown, differ := false, false
	var all, first []float64
	for i, times := range processes {
		times = slices.Sorted(slices.Values(times))
		if i == 0 {
			first = times
		}
		differ = differ || !slices.Equal(times, first)
		shown = shown || len(times) > 0 && tickOf(times, 2) > 0
		all = append(all, times...)
	}
	if !shown || !differ {
		return 0
	}
	slices.Sort(all)
	return tickOf(all, 2)
}

// tickOf is the smallest distance of two sorted readings, if all other distances are multiples of it, and there are at
// least so many different readings. Some must have come more than once; where there are only two, both.
func tickOf(times []float64, least int) float64 {
	noise := times[len(times)-1] * 1e-6 // runners keep times in 32-bit floats, or round them
	var gaps []float64
	once, since := 0, 0
	for i := 1; i <= len(times); i++ {
		if i < len(times) && times[i]-times[i-1] <= noise {
			continue
		}
		if i < len(times) {
			gaps = append(gaps, times[i]-times[i-1])
		}
		if i-since == 1 {
			once++
		}
		since = i
	}
	readings := len(gaps) + 1
	if readings < least || once == readings || readings == 2 && once > 0 {
		return 0
	}
	slices.Sort(gaps)
	step, multiple := gaps[0], 1.0
	for _, gap := range gaps {
		n := math.Round(gap / step)
		if math.Abs(gap/step-n) > 0.05 {
			return 0
		}
		if n > multiple { // a larger distance tells the step more exactly
			step, multiple = gap/n, n
		}
	}
	if step < fineClockStep/2*times[0] {
		return 0
	}
	return step
}

// clockShare is the step of the clock for the shape. The median over the rounds decides, so that a single
// odd round does not.
func (s *shapeComparison) clockShare() clockShare {
	if len(s.samples.steps) == 0 {
		return clockShare{}
	}
	var all, most, off []float64
	for _, c := range s.samples.steps {
		all, most, off = append(all, c.all), append(most, c.most), append(off, c.off)
	}
	return clockShare{middle(all), middle(most), middle(off)}
}

func middle(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// rounding is how far a coarse clock may put a ratio off, on the log scale.
func (s *shapeComparison) rounding() float64 {
	if c := s.clockShare(); c.most > fineClockStep {
		return c.off
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
