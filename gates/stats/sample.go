// Package stats turns the ratios that rounds of fresh processes measured into
// an estimate, bounds with a stated error rate, and the size of what could not
// be seen.
//
// It knows nothing of kernels, thresholds or verdicts, reads no clock and
// draws no randomness but from the seed it is given: on one platform the same
// sample gives the same bits. (Across platforms math.Log and math.Exp may
// differ in the last place; the resamples themselves do not.)
//
// # Why rounds
//
// Two launches in one process share their allocations, clocks and module
// placement, so they say less about the next process than their number
// suggests. The unit of evidence is the round: a resample draws rounds with
// replacement and takes each with all of its values, and the number of rounds,
// never the number of values, sets the degrees of freedom.
//
// Drawing the values of a round again as well would count the noise within rounds
// twice, because the spread between rounds already contains it.
//
// # What does not average out
//
// Some of the noise is the same in all rounds of a run: where the two sides were
// loaded, which came first. No number of rounds shrinks it, and no resampling of
// rounds shows it. A [RunBias] carries it as a separate variance.
//
// # Why logarithms
//
// A ratio of 2 and a ratio of ½ are equally far from 1. On the log scale the
// estimate does not depend on which side is called the baseline.
package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

const (
	// DefaultResamples is enough for a p-value that decides.
	DefaultResamples = 10_000

	// MinResamples is the fewest resamples accepted: with fewer, the standard
	// error is itself a draw of luck and bounds come out too narrow.
	MinResamples = 1_000
)

// ErrTooFewRounds says that a sample holds too few rounds to show how much
// rounds differ.
var ErrTooFewRounds = errors.New("needs at least 2 rounds")

// A Sample is values grouped by the round (fresh process) that produced them,
// in the order taken.
type Sample struct{ Rounds [][]float64 }

func (s Sample) validate() error {
	if len(s.Rounds) < 2 {
		return fmt.Errorf("%d measured: %w to see how rounds differ; measure more", len(s.Rounds), ErrTooFewRounds)
	}
	for r, values := range s.Rounds {
		if len(values) == 0 {
			return fmt.Errorf("round %d is empty: leave out rounds without values", r+1)
		}
		for i, v := range values {
			if !(v > 0) || math.IsInf(v, 1) {
				return fmt.Errorf("round %d, value %d is %v: ratios must be positive and finite; leave out spoilt pairs", r+1, i+1, v)
			}
		}
	}
	return nil
}

// A pooled value remembers its round.
type pooled struct {
	value float64
	round int32
}

// pool returns all values in ascending order. Ties are ordered by round so that
// the order is a function of the sample alone.
func (s Sample) pool() []pooled {
	n := 0
	for _, values := range s.Rounds {
		n += len(values)
	}
	all := make([]pooled, 0, n)
	for r, values := range s.Rounds {
		for _, v := range values {
			all = append(all, pooled{v, int32(r)})
		}
	}
	slices.SortFunc(all, func(a, b pooled) int {
		switch {
		case a.value < b.value:
			return -1
		case a.value > b.value:
			return 1
		}
		return int(a.round - b.round)
	})
	return all
}

// logs is the pooled values in ascending order, and the distances of their logarithms
// from that of the q-quantile, which is the centre.
func (s Sample) logs(q float64) (all []pooled, logs []float64, centre float64) {
	all = s.pool()
	logs = make([]float64, len(all))
	for i, p := range all {
		logs[i] = math.Log(p.value)
	}
	i, frac := position(len(all), q)
	centre = logs[i] + float64(frac*(logs[min(i+1, len(all)-1)]-logs[i]))
	for i := range logs {
		logs[i] -= centre
	}
	return all, logs, centre
}

// sums is the sum and the number of the values of each round.
func (s Sample) sums() (sums, counts []float64) {
	for _, values := range s.Rounds {
		sum := 0.0
		for _, v := range values {
			sum += v
		}
		sums, counts = append(sums, sum), append(counts, float64(len(values)))
	}
	return sums, counts
}

// position locates the q-quantile of n sorted values by linear interpolation
// between the closest ranks (type 7 of Hyndman and Fan): the fraction frac of
// the way from value i to value i+1, counted from 0. It is its own mirror image:
// the q-quantile from below is the (1−q)-quantile from above.
func position(n int, q float64) (i int, frac float64) {
	h := float64(n-1) * q
	whole := math.Floor(h)
	return int(whole), h - whole
}

// inUnit is false for NaN too.
func inUnit(x float64) bool { return x > 0 && x < 1 }
