package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Quantile is what the draws say about the pooled quantile of s.
func (d *ResamplePlan) Quantile(s Sample, q float64) (*Distribution, error) {
	if !inUnit(q) {
		return nil, fmt.Errorf("bootstrap: quantile %v: choose one between 0 and 1", q)
	}
	if err := s.validate(); err != nil {
		return nil, fmt.Errorf("bootstrap: %w", err)
	}
	all, logs, centre := s.logs(q)
	// The neighbours bound the estimate to the last bit: a sample without noise
	// gives back its value, and a ratio of 1.1 does not miss a threshold of 1.1.
	i, frac := position(len(all), q)
	next := min(i+1, len(all)-1)
	estimate := min(max(math.Exp(centre), all[i].value), all[next].value)
	if frac == 0 {
		estimate = all[i].value
	}
	r := newResampler(s, all, logs)
	return d.distribution(estimate, len(s.Rounds), func(w []float64) float64 { return r.quantile(w, q) }), nil
}

// QuantileRatio is what the draws say about the q-quantile of a over that of b. The
// two were measured in the same rounds, in the same order.
func (d *ResamplePlan) QuantileRatio(a, b Sample, q float64) (*Distribution, error) {
	if !inUnit(q) {
		return nil, fmt.Errorf("bootstrap: quantile %v: choose one between 0 and 1", q)
	}
	if err := sameRounds(a, b); err != nil {
		return nil, fmt.Errorf("bootstrap: %w", err)
	}
	allA, logsA, centreA := a.logs(q)
	allB, logsB, centreB := b.logs(q)
	ra, rb := newResampler(a, allA, logsA), newResampler(b, allB, logsB)
	return d.distribution(math.Exp(centreA-centreB), len(a.Rounds), func(w []float64) float64 {
		return ra.quantile(w, q) - rb.quantile(w, q)
	}), nil
}

// MeanRatio is what the draws say about the mean of a over that of b. The two were
// measured in the same rounds, in the same order.
func (d *ResamplePlan) MeanRatio(a, b Sample) (*Distribution, error) {
	if err := sameRounds(a, b); err != nil {
		return nil, fmt.Errorf("bootstrap: %w", err)
	}
	sumA, countA := a.sums()
	sumB, countB := b.sums()
	mean := func(w, sums, counts []float64) float64 {
		sum, count := 0.0, 0.0
		for i, times := range w {
			sum += float64(times * sums[i])
			count += times * counts[i]
		}
		return sum / count
	}
	once := slices.Repeat([]float64{1}, len(a.Rounds))
	estimate := mean(once, sumA, countA) / mean(once, sumB, countB)
	centre := math.Log(estimate)
	if math.IsNaN(centre) || math.IsInf(centre, 0) {
		return nil, fmt.Errorf("bootstrap: the means' ratio is %v: the values are too large to add up", estimate)
	}
	return d.distribution(estimate, len(a.Rounds), func(w []float64) float64 {
		return math.Log(mean(w, sumA, countA)/mean(w, sumB, countB)) - centre
	}), nil
}

// distribution gathers a statistic, as a log distance from its estimate, over all
// resamples.
func (d *ResamplePlan) distribution(estimate float64, rounds int, statistic func(weights []float64) float64) *Distribution {
	t := d.of(rounds)
	out := &Distribution{Estimate: estimate, Rounds: rounds, offsets: make([]float64, 0, d.resamples), dof: float64(rounds - 1)}
	for i, times := range t.times {
		value := statistic(t.row(i))
		for range times {
			out.offsets = append(out.offsets, value)
		}
	}
	sortFloats(out.offsets)
	out.StdErr = spread(out.offsets) * smallSample(rounds)
	return out
}

func sameRounds(a, b Sample) error {
	if len(a.Rounds) != len(b.Rounds) {
		return errors.New("the two samples are not of the same rounds")
	}
	if err := a.validate(); err != nil {
		return err
	}
	return b.validate()
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
