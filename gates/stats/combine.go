package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// A Figure is a quantile or a mean of one sample, which can be computed on every resample.
type Figure struct {
	rounds int
	of     func(weights []float64) float64
}

// QuantileOf is the pooled quantile of s.
func QuantileOf(s Sample, q float64) (Figure, error) {
	if !inUnit(q) {
		return Figure{}, fmt.Errorf("bootstrap: quantile %v: choose one between 0 and 1", q)
	}
	if err := s.validate(); err != nil {
		return Figure{}, fmt.Errorf("bootstrap: %w", err)
	}
	all, logs, centre := s.logs(q)
	r := newResampler(s, all, logs)
	return Figure{len(s.Rounds), func(w []float64) float64 { return math.Exp(r.quantile(w, q) + centre) }}, nil
}

// MeanOf is the mean of s.
func MeanOf(s Sample) (Figure, error) {
	if err := s.validate(); err != nil {
		return Figure{}, fmt.Errorf("bootstrap: %w", err)
	}
	sums, counts := s.sums()
	return Figure{len(s.Rounds), func(w []float64) float64 {
		sum, count := 0.0, 0.0
		for i, times := range w {
			sum += float64(times * sums[i])
			count += times * counts[i]
		}
		return sum / count
	}}, nil
}

// Combine is what the draws say about a positive function of several figures. All were measured in the
// same rounds, in the same order, and a resample draws a round with its values in all samples: what the
// samples of a round have in common stays in the distribution.
func (d *ResamplePlan) Combine(figures []Figure, of func(values []float64) float64) (*Distribution, error) {
	if len(figures) == 0 {
		return nil, errors.New("bootstrap: there is no figure to combine")
	}
	rounds := figures[0].rounds
	if slices.ContainsFunc(figures, func(f Figure) bool { return f.rounds != rounds }) {
		return nil, errors.New("bootstrap: the samples are not of the same rounds")
	}
	values := make([]float64, len(figures))
	on := func(weights []float64) float64 {
		for i, f := range figures {
			values[i] = f.of(weights)
		}
		return of(values)
	}
	estimate := on(slices.Repeat([]float64{1}, rounds))
	centre := math.Log(estimate)
	if math.IsNaN(centre) || math.IsInf(centre, 0) {
		return nil, fmt.Errorf("bootstrap: the combination is %v, which is not a positive number", estimate)
	}
	return d.distribution(estimate, rounds, func(w []float64) float64 { return math.Log(on(w)) - centre }), nil
}
