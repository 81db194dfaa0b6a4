package stats

import (
	"cmp"
	"fmt"
)

// Offsets shows the resampled quantiles, as ascending log distances from the
// estimate, to the tests that compare them with plain resampling.
func (d *Distribution) Offsets() []float64 { return d.offsets }

// Options say how to resample. The zero value asks for the median from
// [DefaultResamples] resamples with seed 0.
type Options struct {
	Resamples int
	Seed      uint64
	Quantile  float64 // in (0, 1); 0 means 0.5
}

// Bootstrap draws the sampling distribution of the pooled quantile of s.
func Bootstrap(s Sample, opt Options) (*Distribution, error) {
	draws, err := NewResamplePlan(cmp.Or(opt.Resamples, DefaultResamples), opt.Seed)
	if err != nil {
		return nil, fmt.Errorf("bootstrap: %w", err)
	}
	return draws.Quantile(s, cmp.Or(opt.Quantile, 0.5))
}

// An Interval holds the truth with the given confidence.
type Interval struct{ Lower, Upper, Confidence float64 }

// Interval is the two-sided interval; half of the error is spent on each side.
func (d *Distribution) Interval(confidence float64) Interval {
	lower, upper := d.Bounds((1 - confidence) / 2)
	return Interval{lower, upper, confidence}
}

// Lower is the lower one of the bounds with error rate alpha.
func (d *Distribution) Lower(alpha float64) float64 {
	lower, _ := d.Bounds(alpha)
	return lower
}

// Upper is the upper one.
func (d *Distribution) Upper(alpha float64) float64 {
	_, upper := d.Bounds(alpha)
	return upper
}
