package gates

import (
	"math"
	"slices"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A kernel can gain on one kind of input and lose on the rest. Every kind counts the same in the
// speedup of a shape, which is the geometric mean of the kinds' medians. But a kernel that returns
// at once on one kind could then lose on all the rest. So there are two more rules. No kind may lose
// more than the guard allows. And of the gain of one kind, at most kindShare times the gain that the
// target asks counts.

// kindShare is how much of a target's gain one kind may contribute. Three of five kinds cannot reach
// a target without the rest: they come to 3 × 1.5 / 5 of it.
const kindShare = 1.5

// kindLoss is what a kind of a target may lose where the policy has no guard.
const kindLoss = 0.02

// A kindTest tests one kind of input against the guard. The change does not claim that no kind lost
// anything, so a kind defers only where its loss is proven. An estimate beyond the limit leaves the
// shape open.
type kindTest struct {
	name string
	dist *stats.Distribution
	miss float64 // p-value of having missed
}

// kindLimit is the least speedup, as a ratio, that each kind of a shape must have.
func (s *shapeComparison) kindLimit(gate *policy.PerformanceGate) float64 {
	if s.role == RoleGuard {
		return s.goal.Ratio()
	}
	limit := 1 - kindLoss
	if gate.Guard != nil && gate.Guard.Ratio() > 0 {
		limit = gate.Guard.Ratio()
	}
	return min(limit, s.goal.Ratio())
}

// decideKinds tests the kinds of the shapes of a role whose goals are met or open: a proven loss of
// one kind needs no more rounds.
func (c *comparison) decideKinds(role Role, gate *policy.PerformanceGate) {
	var misses []float64
	var of []*shapeComparison
	for _, s := range c.judged() {
		limit := 0.0
		if s.role == role && !s.settled && s.status != Failed {
			limit = s.kindLimit(gate)
		}
		kinds := s.kindSamples()
		if limit == 0 || len(kinds) < 2 {
			continue
		}
		s.kindFloor = limit
		for _, k := range kinds {
			d := draw(c.few, k.sample, 0.5)
			if d == nil { // too few clean rounds to know what this kind lost
				s.status, s.tooFew = Open, true
				continue
			}
			t := kindTest{name: k.name, dist: d.With(s.offset()), miss: 1}
			if d.Estimate < limit {
				s.status = Open
				t.miss = t.dist.PBelow(limit)
			}
			s.kinds = append(s.kinds, t)
			of, misses = append(of, s), append(misses, t.miss)
		}
	}
	for i, missed := range stats.Holm(misses, c.alpha) {
		if missed {
			of[i].status = Failed
		}
	}
}

// A kindSample is the ratios on one kind of input.
type kindSample struct {
	name   string
	sample stats.Sample
}

// kindSamples is the ratios on every kind of input, also on those that the goal is not about.
func (s *shapeComparison) kindSamples() []kindSample {
	var all []kindSample
	for _, part := range []*samples{s.samples, s.others} {
		switch {
		case part == nil:
		case len(part.byKind) > 0 && len(part.byKind) == len(part.strata.kinds):
			for k, sample := range part.byKind {
				all = append(all, kindSample{part.strata.kinds[k], sample})
			}
		case len(part.strata.kinds) == 1:
			all = append(all, kindSample{part.strata.kinds[0], part.ratios})
		}
	}
	return all
}

// slowKind is the kind of input that keeps the shape from passing, or nil.
func (s *shapeComparison) slowKind(alpha float64) facts.Fact {
	for _, t := range s.kinds {
		if t.dist.Estimate < s.kindFloor {
			return facts.SlowKind{Kind: t.name, Speedup: speedupOf(t.dist, alpha), Limit: s.kindFloor - 1}
		}
	}
	return nil
}

// belowKindFloor reports whether a kind of input is a reason why the shape does not pass.
func (s *shapeComparison) belowKindFloor() bool {
	return slices.ContainsFunc(s.kinds, func(t kindTest) bool { return t.dist.Estimate < s.kindFloor })
}

// kindTimesToReach is the advice with the times that the kinds of input which lost too much must come down to.
func (s *shapeComparison) kindTimesToReach() facts.Advice {
	step := facts.BringKinds{Shape: s.shape.Label()}
	for _, part := range []*samples{s.samples, s.others} {
		if part == nil {
			continue
		}
		for k, micros := range part.baselineTimes.byKind(len(part.strata.kinds)) {
			for _, t := range s.kinds {
				if t.name == part.strata.kinds[k] && t.dist.Estimate < s.kindFloor && micros > 0 {
					step.Kinds = append(step.Kinds, facts.KindLimit{Kind: t.name, Micros: micros / s.kindFloor})
				}
			}
		}
	}
	return step
}

// capped is the kinds whose gain counts only in part, where the target is missed for that; else nil.
func (s *shapeComparison) capped() facts.Fact {
	if s.ratio == nil || s.ratio.Estimate < s.goal.Ratio() || s.ratio.Estimate >= s.raisedThreshold(s.goal.Ratio(), s.samples.strata.medians) {
		return nil // the target is reached or missed, whatever counts
	}
	limit := math.Pow(s.goal.Ratio(), kindShare)
	capped := facts.Capped{Most: limit - 1}
	for k, m := range s.samples.strata.medians {
		if m > limit {
			capped.Kinds = append(capped.Kinds, s.samples.strata.kinds[k])
		}
	}
	return capped
}

// raisedThreshold is the ratio that the geometric mean of the kinds must reach for a target to be
// met, given the kinds' medians: if all medians are scaled by one factor so that the mean of the
// parts that count just reaches the target, it is the mean of the scaled medians. Where no kind
// gains more than its share, it is the target. A guard asks for no gain, and its threshold stays.
func (s *shapeComparison) raisedThreshold(asked float64, medians []float64) float64 {
	if s.role != RoleTarget || asked <= 1 {
		return asked
	}
	var logs []float64
	centre := 0.0
	for _, m := range medians {
		if m > 0 {
			logs = append(logs, math.Log(m))
			centre += math.Log(m)
		}
	}
	if len(logs) < 2 {
		return asked
	}
	n := float64(len(logs))
	centre /= n
	goal, limit := math.Log(asked), kindShare*math.Log(asked)
	counts := func(by float64) float64 {
		sum := 0.0
		for _, l := range logs {
			sum += min(l+by, limit)
		}
		return sum / n
	}
	low, high := goal-slices.Max(logs), goal-slices.Min(logs) // where the best reaches the goal, and where all do
	for range 60 {
		if mid := (low + high) / 2; counts(mid) < goal {
			low = mid
		} else {
			high = mid
		}
	}
	return math.Exp(centre + high)
}
