package stats

import (
	"math"
	"slices"
)

// A Summary describes values for a reader; nothing is judged by it.
type Summary struct {
	N    int     `json:"n"`
	Min  float64 `json:"min"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	Mean float64 `json:"mean"`
	Std  float64 `json:"std"` // with n−1; 0 for a single value
	CV   float64 `json:"cv"`  // Std/Mean; 0 where the mean is 0
}

// Describe summarises finite values, which it leaves in their order. Quantiles
// interpolate linearly between the closest ranks (type 7, the default of R and
// NumPy). No values give the zero Summary.
func Describe(values []float64) Summary {
	n := len(values)
	if n == 0 {
		return Summary{}
	}
	sorted := slices.Sorted(slices.Values(values))
	quantile := func(q float64) float64 {
		i, frac := position(n, q)
		if frac == 0 {
			return sorted[i]
		}
		return sorted[i] + float64(frac*(sorted[i+1]-sorted[i]))
	}
	s := Summary{N: n, Min: sorted[0], P50: quantile(0.5), P90: quantile(0.9), P99: quantile(0.99)}
	for _, v := range sorted {
		s.Mean += v
	}
	s.Mean /= float64(n)
	if n > 1 {
		s.Std = spread(sorted)
	}
	if s.Mean != 0 {
		s.CV = math.Abs(s.Std / s.Mean)
	}
	return s
}
