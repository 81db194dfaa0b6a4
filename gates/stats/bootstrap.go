package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// stream keeps the generator apart from others that use the same seed.
const stream = 0x6b65726e656c6774

// Bootstrap draws the sampling distribution of the pooled quantile of s: rounds
// with replacement, then values within each drawn round with replacement. The
// package comment says how one draw stands for a whole resample; the
// approximation is good for quantiles with ten or more values on either side.
func Bootstrap(s Sample, opt Options) (*Distribution, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("bootstrap: %w", err)
	}
	if err := s.validate(); err != nil {
		return nil, fmt.Errorf("bootstrap: %w", err)
	}

	all := s.pool()
	logs := make([]float64, len(all))
	for i, p := range all {
		logs[i] = math.Log(p.value)
	}
	// The neighbours bound the estimate to the last bit: a sample without noise
	// gives back its value, and a ratio of 1.1 does not miss a threshold of 1.1.
	i, frac := position(len(all), opt.Quantile)
	next := min(i+1, len(all)-1)
	centre := logs[i] + float64(frac*(logs[next]-logs[i]))
	estimate := min(max(math.Exp(centre), all[i].value), all[next].value)
	if frac == 0 {
		estimate = all[i].value
	}

	d := &Distribution{
		Estimate: estimate,
		Rounds:   len(s.Rounds),
		Values:   len(all),
		offsets:  make([]float64, opt.Resamples),
	}
	for i := range logs {
		logs[i] -= centre
	}

	draw := newResampler(s, all, logs)
	rng := rand.New(rand.NewPCG(opt.Seed, stream))
	for i := range d.offsets {
		d.offsets[i] = draw.quantile(rng, opt.Quantile)
	}
	slices.Sort(d.offsets)
	d.StdErr = spread(d.offsets) * smallSample(d.Rounds)
	return d, nil
}

// smallSample undoes the narrowness of resampling n rounds: the spread of the
// rounds around their own mean is short of the true one by √((n−1)/n).
func smallSample(n int) float64 { return math.Sqrt(float64(n) / float64(n-1)) }

// spread is the standard deviation of the resamples. The conversions keep the
// compiler from fusing multiply and add on the platforms that could.
func spread(values []float64) float64 {
	if values[0] == values[len(values)-1] {
		return 0
	}
	mean := 0.0
	for _, v := range values {
		mean += v
	}
	mean /= float64(len(values))
	sum := 0.0
	for _, v := range values {
		sum += float64((v - mean) * (v - mean))
	}
	return math.Sqrt(sum / float64(len(values)-1))
}
