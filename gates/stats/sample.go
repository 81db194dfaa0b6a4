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
// suggests. The unit of evidence is the round. [Bootstrap] resamples rounds
// first and values within each drawn round second; the number of rounds, never
// the number of values, sets the degrees of freedom.
//
// Drawing the values of a round again counts the noise within rounds twice,
// because the spread between rounds already contains it. Where rounds differ
// by much more than the error of their own medians, this is nothing. Where they
// do not differ at all, the intervals are up to √2 too wide: the safe side.
//
// # Why logarithms
//
// A ratio of 2 and a ratio of ½ are equally far from 1. On the log scale the
// estimate does not depend on which side is called the baseline.
//
// # How a resample is drawn
//
// A resample of 20 rounds of 200 values would take 4,000 draws and a
// selection, ten thousand times over. Only its quantile is wanted. Once the
// multiset of rounds is drawn, with round r of size n_r taken w_r times, the
// number of resampled values at or below x is a sum of independent binomials
// whose mean Σ w_r·n_r·F_r(x) and variance Σ w_r·n_r·F_r(x)·(1−F_r(x)) are
// known. The j-th smallest resampled value is at or below x exactly when that
// number reaches j. So one normal draw z and a search for the first x with
//
//	mean(x) − (j − ½) ≥ z·sd(x)
//
// draws the j-th smallest value with the distribution it has, up to the normal
// approximation of the binomials; the ½ is the continuity correction. Ties need
// no care: breaking them in any order yields the same values.
package stats

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

const (
	// DefaultResamples is used where Options.Resamples is 0.
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

// Options say how to resample. The zero value asks for the median from
// [DefaultResamples] resamples with seed 0.
type Options struct {
	Resamples int
	Seed      uint64
	Quantile  float64 // in (0, 1); 0 means 0.5
}

func (o Options) withDefaults() (Options, error) {
	o.Resamples = cmp.Or(o.Resamples, DefaultResamples)
	o.Quantile = cmp.Or(o.Quantile, 0.5)
	if o.Resamples < MinResamples {
		return o, fmt.Errorf("%d resamples: ask for at least %d", o.Resamples, MinResamples)
	}
	if !inUnit(o.Quantile) {
		return o, fmt.Errorf("quantile %v: choose one between 0 and 1", o.Quantile)
	}
	return o, nil
}

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
		return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(a.round, b.round))
	})
	return all
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
