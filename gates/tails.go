package gates

import (
	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A tail is the mean or the p90 compared with the goal of the median. A median does not react to the
// slowest launches, but a caller has to wait for them.
//
// The change claims the gain of the median, so it must be proven. It does not claim that the tails
// are no worse, and to prove that takes many times the rounds on a noisy machine. So a tail defers a
// change only where it is proven to be below its limit. An estimate below the limit leaves the shape
// open, and more rounds decide.
type tail struct {
	metric string
	limit  float64 // of baseline/candidate
	dist   *stats.Distribution
	miss   float64 // p-value of having missed
}

// tailsOf is the tails of a shape. Their limits are somewhat below the goal of the median. A goal
// that bounds only microseconds asks nothing relative to the baseline, and has no tails. It is not
// ok where the samples do not show them.
func (s *shapeComparison) tailsOf(draws *stats.ResamplePlan, gate *policy.PerformanceGate) (tails []tail, ok bool) {
	asked := s.goal.Ratio()
	if asked == 0 || gate.Tails == nil {
		return nil, true
	}
	offset, ok := s.runBias(), true
	add := func(metric string, allowed float64, d *stats.Distribution, err error) {
		if err != nil {
			ok = false
			return
		}
		t := tail{metric: metric, limit: asked * (1 - allowed), dist: d.With(offset), miss: 1}
		if d.Estimate < t.limit {
			t.miss = t.dist.PBelow(t.limit)
		}
		tails = append(tails, t)
	}
	if allowed := gate.Tails.Mean; allowed != nil {
		d, err := draws.MeanRatio(s.samples.baselineTimes.Sample, s.samples.candidateTimes.Sample)
		add("mean", float64(*allowed), d, err)
	}
	if allowed := gate.Tails.P90; allowed != nil {
		d, err := draws.QuantileRatio(s.samples.baselineTimes.Sample, s.samples.candidateTimes.Sample, 0.9)
		add("p90", float64(*allowed), d, err)
	}
	return tails, ok
}

// decideTails tests the tails of the shapes of a role whose goals are met. They are corrected
// together, separately from the goals: where a goal is just met, its tails are far from their
// limits.
func (c *comparison) decideTails(role Role, gate *policy.PerformanceGate) {
	var misses []float64
	var of []*shapeComparison
	for _, s := range c.shapes {
		if s.role != role || s.settled || s.status != Passed {
			continue
		}
		var ok bool
		if s.tails, ok = s.tailsOf(c.few, gate); !ok {
			s.status = Open
		}
		for _, t := range s.tails {
			of, misses = append(of, s), append(misses, t.miss)
			if t.dist.Estimate < t.limit {
				s.status = Open
			}
		}
	}
	for i, missed := range stats.Holm(misses, c.alpha) {
		if missed {
			of[i].status = Failed
		}
	}
}

// slowTail is the tail that keeps the shape from passing, or nil.
func (s *shapeComparison) slowTail(alpha float64) facts.Fact {
	for _, t := range s.tails {
		if t.dist.Estimate < t.limit {
			return facts.SlowTail{Metric: t.metric, Speedup: speedupOf(t.dist, alpha), Limit: t.limit - 1}
		}
	}
	return nil
}
