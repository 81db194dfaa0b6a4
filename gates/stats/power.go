package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Never is what RoundsNeeded returns where no number of rounds will do, or
// more than fit: the estimate sits on the threshold, or as good as.
const Never = math.MaxInt32

// Detectable is the smallest relative distance from a threshold (0.018 is
// 1.8 %) at which this many rounds with this noise prove, with probability
// power, that the truth lies on its side of the threshold, at error rate alpha.
// It is +Inf unless alpha is in (0, 0.5) and power in (0, 1).
func (d *Distribution) Detectable(alpha, power float64) float64 {
	if !decidable(alpha, power) {
		return math.Inf(1)
	}
	// So far beyond the reach of the bound the truth must lie for the bound to clear the
	// threshold with the given probability.
	margin := max(d.student().quantile(power), 0) * d.StdErr
	return math.Expm1(d.reach(alpha) + margin)
}

// RoundsNeeded is the number of rounds in all, of the same size and noise,
// with which the threshold would be decided with probability power if the
// estimate were the truth. It is at least 2, and [Never] where the estimate
// equals the threshold or an argument makes no sense.
func (d *Distribution) RoundsNeeded(threshold, alpha, power float64) int {
	if !decidable(alpha, power) || !(threshold > 0) {
		return Never
	}
	distance := math.Abs(math.Log(threshold / d.Estimate))
	if distance == 0 {
		return Never
	}
	enough := func(rounds int) bool { return d.reachAfter(rounds, alpha, power) <= distance }

	if !enough(Never) {
		return Never // an offset that no number of rounds takes away
	}
	high := 2
	for !enough(high) {
		if high > Never/2 {
			return Never
		}
		high *= 2
	}
	low := high / 2 // not enough, or 1
	for high-low > 1 {
		if mid := (low + high) / 2; enough(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

// DetectableAfter is Detectable after so many rounds in all, of the same size and noise.
func (d *Distribution) DetectableAfter(rounds int, alpha, power float64) float64 {
	if rounds < 2 || !decidable(alpha, power) {
		return math.Inf(1)
	}
	return math.Expm1(d.reachAfter(rounds, alpha, power))
}

// ChanceToDecide is the probability that so many rounds in all, of the same size and noise, prove on
// which side of the threshold the truth lies. It expects the later rounds to agree with those so far
// as well as their noise allows. It is 0 where an argument makes no sense.
func (d *Distribution) ChanceToDecide(threshold float64, rounds int, alpha float64) float64 {
	if rounds < 2 || !decidable(alpha, 0.5) || !(threshold > 0) {
		return 0
	}
	reach, distance := d.reachAfter(rounds, alpha, 0.5), math.Log(d.Estimate/threshold)
	after, _ := d.after(rounds)
	moves := math.Sqrt(max(0, d.StdErr*d.StdErr-after*after)) // the estimate, until then
	if moves == 0 {
		if math.Abs(distance) >= reach {
			return 1
		}
		return 0
	}
	return distuv.UnitNormal.CDF((distance-reach)/moves) + distuv.UnitNormal.CDF((-distance-reach)/moves)
}

// reachAfter is the log distance from a threshold at which so many rounds of the same size and noise
// decide with probability power.
func (d *Distribution) reachAfter(rounds int, alpha, power float64) float64 {
	// What the percentile adds to the t bound is taken as a fixed share: a
	// skew would fade with more rounds, so the answer errs upwards.
	stretch := 1.0
	if d.StdErr > 0 {
		stretch = (d.reach(alpha) - d.offset.Most) / (-d.student().quantile(alpha) * d.StdErr)
	}
	stdErr, dof := d.after(rounds)
	t := student(dof)
	return (-stretch*t.quantile(alpha)+max(t.quantile(power), 0))*stdErr + d.offset.Most
}

// after is the standard error after so many rounds of the same size and noise, and its degrees of freedom.
func (d *Distribution) after(rounds int) (stdErr, dof float64) {
	between := math.Sqrt(max(0, d.StdErr*d.StdErr-d.offset.Scale*d.offset.Scale))
	return d.offset.widen(between*math.Sqrt(float64(d.Rounds)/float64(rounds)), rounds)
}

// reach is the log distance from the estimate to its farther bound.
func (d *Distribution) reach(alpha float64) float64 {
	below, above := d.reaches(alpha)
	return max(below, above)
}

func decidable(alpha, power float64) bool { return inUnit(alpha) && alpha < 0.5 && inUnit(power) }
