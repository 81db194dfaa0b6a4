package stats

import (
	"math"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"
)

// A Distribution is what resampling says about the true quantile.
//
// A bound is the outer one of two, and so is a p-value the larger of two:
//
//   - The percentile of the resamples follows the shape of the noise, but with n
//     rounds it is too narrow twice over: resampled rounds vary less than rounds
//     do by √((n−1)/n), and a percentile reads the normal table where n rounds
//     call for Student's t with n−1 degrees of freedom. It is therefore taken at
//     the expanded level Φ(−√(n/(n−1))·t(n−1, 1−alpha)).
//   - The estimate ± t(n−1, 1−alpha)·StdErr. With few rounds no percentile can
//     leave the range that the rounds span, and no percentile of B resamples
//     can speak about levels below 1/B; this one can.
type Distribution struct {
	Estimate float64 // the pooled sample quantile
	Rounds   int
	StdErr   float64 // of the logarithm, corrected for few rounds, with the RunBias

	offset  RunBias
	dof     float64
	offsets []float64 // resampled quantiles, ascending: log distance from Estimate
}

// Bounds is the one-sided lower and upper bound, each with error rate alpha. An alpha
// outside (0, 1) allows no claim: they are 0 and +Inf.
func (d *Distribution) Bounds(alpha float64) (lower, upper float64) {
	if !inUnit(alpha) {
		return 0, math.Inf(1)
	}
	below, above := d.reaches(alpha)
	return d.Estimate * math.Exp(-below), d.Estimate * math.Exp(above)
}

// PBelow is the one-sided p-value of "the truth is at or above the threshold":
// small means proven below. PBelow(x) ≤ alpha exactly when the upper bound is ≤ x.
func (d *Distribution) PBelow(threshold float64) float64 {
	if math.IsNaN(threshold) || threshold <= 0 {
		return 1
	}
	distance := math.Log(threshold/d.Estimate) - d.offset.Most
	beyond := len(d.offsets) - sort.Search(len(d.offsets), func(i int) bool { return d.offsets[i] > distance })
	return max(d.studentP(distance), d.percentileP(beyond))
}

// PAbove is the one-sided p-value of "the truth is at or below the threshold":
// small means proven above. PAbove(x) ≤ alpha exactly when the lower bound is ≥ x.
func (d *Distribution) PAbove(threshold float64) float64 {
	if math.IsNaN(threshold) {
		return 1
	}
	if threshold <= 0 {
		return 0
	}
	distance := math.Log(threshold/d.Estimate) + d.offset.Most
	beyond := sort.SearchFloat64s(d.offsets, distance)
	return max(d.studentP(-distance), d.percentileP(beyond))
}

// reaches is the log distances from the estimate to its lower and its upper bound.
func (d *Distribution) reaches(alpha float64) (below, above float64) {
	t := d.student().quantile(alpha)
	student, tail := d.studentReach(t), d.tail(t)
	return max(student, -d.offsets[tail-1]) + d.offset.Most, max(student, d.offsets[len(d.offsets)-tail]) + d.offset.Most
}

// studentReach is the distance of the t bound, and 0 without noise even where
// the quantile is infinite.
func (d *Distribution) studentReach(t float64) float64 {
	if d.StdErr == 0 {
		return 0
	}
	return -t * d.StdErr
}

// tail is the number of resamples at or beyond the percentile bound, given the
// t quantile of its error rate. Where the level is finer than the resamples
// resolve, it is the outermost one.
func (d *Distribution) tail(t float64) int {
	expanded := distuv.UnitNormal.CDF(smallSample(d.Rounds) * t)
	k := math.Floor(expanded * float64(len(d.offsets)+1))
	return min(max(int(k), 1), len(d.offsets))
}

// percentileP inverts the percentile bound: the smallest alpha whose bound
// leaves this many resamples beyond itself.
func (d *Distribution) percentileP(beyond int) float64 {
	switch beyond {
	case 0:
		return 0
	case len(d.offsets):
		return 1
	}
	expanded := float64(beyond+1) / float64(len(d.offsets)+1)
	return d.student().cdf(distuv.UnitNormal.Quantile(expanded) / smallSample(d.Rounds))
}

// studentP inverts the t bound at a log distance on the proven side of the
// estimate.
func (d *Distribution) studentP(distance float64) float64 {
	switch {
	case d.StdErr > 0:
		return d.student().cdf(-distance / d.StdErr)
	case distance >= 0:
		return 0
	default:
		return 1
	}
}

func (d *Distribution) student() student { return student(d.dof) }

// student is Student's t distribution with so many degrees of freedom.
type student float64

// From here on the normal distribution is used: it differs by about 0.1 % at
// the usual levels, while gonum's quantile of t loses its tails at 10⁵ degrees.
const nearlyNormal = 1_000

func (s student) quantile(p float64) float64 {
	if s > nearlyNormal {
		return distuv.UnitNormal.Quantile(p)
	}
	return distuv.StudentsT{Sigma: 1, Nu: float64(s)}.Quantile(p)
}

func (s student) cdf(x float64) float64 {
	if s > nearlyNormal {
		return distuv.UnitNormal.CDF(x)
	}
	return distuv.StudentsT{Sigma: 1, Nu: float64(s)}.CDF(x)
}
