package gates

import (
	"math"
	"slices"
	"strconv"

	"github.com/kernelgate/kernelgate/gates/stats"
)

// rows is the comparison as a table shows it.
func (c *comparison) rows() []Comparison {
	var rows []Comparison
	for _, s := range c.shapes {
		base, cand := describe(s.samples.baseline), describe(s.samples.candidate)
		base.P50, cand.P50 = round(s.samples.time(s.samples.baselineTimes)), round(s.samples.time(s.samples.candidateTimes))
		row := Comparison{
			Shape: s.shape.Name, Dims: s.shape.Dims, Secret: s.shape.Secret, Of: s.shape.Of, Context: s.shape.Context, Role: s.role, Goal: s.goalText(), Status: s.status,
		}
		// A shape that was never timed has no times: zeros would read as some.
		if base.P50 > 0 {
			row.Baseline = &base
		}
		if cand.P50 > 0 {
			row.Candidate = &cand
		}
		if s.ratio != nil {
			row.Speedup = speedupOf(s.ratio, s.alpha)
			row.LatencyReduction = reductionOf(row.Speedup)
			row.Detectable = round(s.ratio.Detectable(s.alpha, power))
			if s.status == Open && len(s.tests) > 0 {
				row.RoundsNeeded = s.tests[0].dist.RoundsNeeded(s.tests[0].threshold, s.alpha, power)
			}
		}
		if s.control != nil {
			row.Control = new(speedupOf(s.control, s.alpha))
		}
		if solo := draw(c.few, s.samples.solo, 0.5); solo != nil {
			row.SoloShift = new(speedupOf(solo, s.alpha))
		}
		if s.alone != nil {
			row.Alone = new(singleSpeedup(s.alone, s.alpha))
		}
		row.Kinds = s.kindTimes(s.alpha)
		if s.belowKindFloor() {
			row.KindLimit = rounded(s.kindFloor - 1)
		}
		s.rates(&row, cand.P50)
		rows = append(rows, row)
	}
	return rows
}

// goalText is empty for a shape that is timed only for the weighted sum.
func (s *shapeComparison) goalText() string {
	if s.role == RoleInfo {
		return ""
	}
	return s.goal.String()
}

// time is how long a launch takes on a shape: the geometric mean of the medians on each kind of
// input, as the speedup is the geometric mean of the speedups.
func (s *samples) time(t timedSample) float64 {
	sum, n := 0.0, 0
	for _, median := range t.byKind(len(s.strata.kinds)) {
		if median > 0 {
			sum += math.Log(median)
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return math.Exp(sum / float64(n))
}

// kindTimes is the times on each kind of input; none where all kinds gain the same and none of them
// is why the shape does not pass.
func (s *shapeComparison) kindTimes(alpha float64) []KindTime {
	strata := &s.samples.strata
	if s.others == nil && (len(strata.kinds) < 2 || !strata.differs() && !s.belowKindFloor()) {
		return nil
	}
	all := s.samples.kindTimes()
	if s.others != nil {
		all = append(all, s.others.kindTimes()...)
	}
	for i := range all {
		for _, tested := range s.kinds {
			if tested.name == all[i].Kind {
				all[i].Speedup = speedupOf(tested.dist, alpha)
			}
		}
	}
	return all
}

// kindTimes is the times and the speedup on each kind of input that has a pair.
func (s *samples) kindTimes() []KindTime {
	kinds, ratios := len(s.strata.kinds), s.strata.medians
	if kinds == 1 && len(s.ratios.Rounds) > 0 {
		ratios = []float64{stats.Describe(slices.Concat(s.ratios.Rounds...)).P50}
	}
	if len(ratios) != kinds {
		return nil
	}
	baseline, candidate := s.baselineTimes.byKind(kinds), s.candidateTimes.byKind(kinds)
	var all []KindTime
	for k, name := range s.strata.kinds {
		if median := ratios[k]; median != 0 {
			all = append(all, KindTime{Kind: name, Baseline: round(baseline[k]), Candidate: round(candidate[k]), Speedup: Estimate{Value: round(median - 1)}})
		}
	}
	return all
}

// KindTimes is the times and the speedup of a shape on each kind of input, for readers: a verdict has them only where the kinds
// differ. Disturbed pairs are left out. It is nil where the inputs were of one kind.
func KindTimes(e *Evidence, shape string) []KindTime {
	if e.Performance == nil {
		return nil
	}
	s := collect(e.Performance.Rounds, shape, clean)
	if len(s.strata.kinds) < 2 {
		return nil
	}
	return s.kindTimes()
}

// rates adds the achieved rates and, where the limits of the device are known, their share of them.
func (s *shapeComparison) rates(row *Comparison, micros float64) {
	if micros <= 0 {
		return
	}
	if s.shape.FLOPs > 0 {
		row.TFLOPs = rounded(s.shape.FLOPs / micros / 1e6)
	}
	if s.shape.Bytes > 0 {
		row.GBs = rounded(s.shape.Bytes / micros / 1e3)
	}
	if s.floor > 0 {
		row.Roofline = rounded(s.floor / micros)
	}
}

func describe(micros []float64) stats.Summary {
	d := stats.Describe(micros)
	return stats.Summary{
		N: d.N, Min: round(d.Min), P50: round(d.P50), P90: round(d.P90), P99: round(d.P99),
		Mean: round(d.Mean), Std: round(d.Std), CV: round(d.CV),
	}
}

// speedupOf is a ratio's distribution as a speedup, with the interval at the error rate of the
// interim analysis.
func speedupOf(d *stats.Distribution, alpha float64) Estimate {
	lower, upper := d.Bounds(alpha)
	return Estimate{Value: round(d.Estimate - 1), Lower: rounded(lower - 1), Upper: rounded(upper - 1)}
}

// reductionOf converts a speedup into a latency reduction.
func reductionOf(speedup Estimate) Estimate {
	turn := func(s float64) float64 { return round(1 - 1/(1+s)) }
	e := Estimate{Value: turn(speedup.Value)}
	if speedup.Lower != nil {
		e.Lower, e.Upper = rounded(turn(*speedup.Lower)), rounded(turn(*speedup.Upper))
	}
	return e
}

// round keeps six significant digits, so that a verdict does not depend on the last bit of
// floating-point arithmetic, and stays within the numbers of JSON.
func round(f float64) float64 {
	switch {
	case math.IsNaN(f):
		return 0
	case math.IsInf(f, 0) || math.Abs(f) > 1e300:
		return math.Copysign(1e300, f)
	}
	r, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'g', 6, 64), 64)
	return r
}

func rounded(f float64) *float64 { return new(round(f)) }
