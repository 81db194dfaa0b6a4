package gates

import (
	"math"
	"slices"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// A goal may be about all launches of a step together: the sum over the shapes of launches × time. The
// sum is tested as one more shape whose launches take that long, with the same bootstrap over rounds, at
// the same analyses and error rates, and with the same corrections among the misses of its role.
//
// The time of a shape is its median, and the candidate's is that divided by the speedup of the shape, as
// everywhere. A resample draws rounds with the samples of all shapes in them, so that noise which the
// shapes of a round share is in the interval. That needs rounds in which every shape was timed: while
// the sum is open, all of its shapes are.

// What sentences and tables call the sums.
const (
	StepLabel     = "all launches of a step"
	WarmStepLabel = "all launches of a warm step"
)

func stepLabel(c policy.Context) string {
	if c == policy.Warm {
		return WarmStepLabel
	}
	return StepLabel
}

// IsStep reports whether the label of a row is that of a sum, and not the name of a shape.
func IsStep(label string) bool { return label == StepLabel || label == WarmStepLabel }

// A weightedSum is what one analysis knows of the sum, in addition to its shapeComparison.
type weightedSum struct {
	terms    []term
	baseline float64 // microseconds per step
	rounds   int
}

// A term is one shape's part of the sum. Its comparison is about the rounds that all shapes have.
type term struct {
	*shapeComparison
	launches float64
	same     bool // equal machine code serves the shape on both sides
	// micros is the baseline's time of one launch, on all inputs together.
	micros    float64
	baselines stats.Sample // the times behind it
}

// stepsOf is the analyses of the sums, one for each context. There is none where the evidence has no weights, or not a round of each
// shape that has one.
func (q analysis) stepsOf(l interim, c, before *comparison) []*shapeComparison {
	e := q.evidence
	if e.Weights == nil || e.Baseline == nil || len(e.lackWeights()) > 0 {
		return nil
	}
	var steps []*shapeComparison
	for i, context := range e.sumContexts(q.gate) {
		var last *shapeComparison
		if before != nil && i < len(before.steps) {
			last = before.steps[i]
		}
		if s := q.stepOf(context, l, c, before, last); s != nil {
			steps = append(steps, s)
		}
	}
	return steps
}

func (q analysis) stepOf(context policy.Context, l interim, c, before *comparison, last *shapeComparison) *shapeComparison {
	rounds := q.evidence.Performance.Rounds[:l.rounds]
	if last != nil && last.status == Passed && q.leftOut(context, rounds[before.rounds:]) {
		own := *last
		own.settled = true
		return &own
	}
	s := &shapeComparison{goalOf: goalOf{shape: Shape{Name: stepLabel(context), Context: context}, role: RoleInfo, goal: &policy.Goal{}}, samples: &samples{}, alpha: l.alpha, tooFew: true}
	if goal := q.gate.Weighted(); goal != nil {
		s.goal, s.role = &policy.Goal{Speedup: goal.Weighted}, RoleGuard
		if goal == q.gate.Target {
			s.role = RoleTarget
		}
	}
	sum := q.sumOf(context, q.common(context, rounds), c)
	if sum == nil && s.role == RoleInfo {
		return nil
	}
	if s.sum = sum; sum == nil {
		s.sum = &weightedSum{}
		return s
	}
	s.samples.ratios, s.samples.byKind = sum.byRound()
	s.samples.strata = sum.strata()
	if s.testSum(q.few); q.many != q.few && s.nearThreshold(l.alpha) {
		s.testSum(q.many)
	}
	return s
}

// common is the rounds that have pairs of every shape that the sum counts.
func (q analysis) common(context policy.Context, rounds []Round) []Round {
	shapes := q.evidence.weighed(context)
	return slices.DeleteFunc(slices.Clone(rounds), func(r Round) bool {
		return slices.ContainsFunc(shapes, func(s Shape) bool { return len(collect([]Round{r}, s.Name, q.view).ratios.Rounds) == 0 })
	})
}

// sumOf collects the terms from so many rounds; nil where a shape has none. A shape that the comparison has
// read from the same rounds is not read again.
func (q analysis) sumOf(context policy.Context, rounds []Round, c *comparison) *weightedSum {
	sum, shapes := &weightedSum{rounds: len(rounds)}, q.evidence.weighed(context)
	if len(rounds) < 2 || len(shapes) == 0 || len(shapes) != len(q.evidence.weighedNames(context)) {
		return nil
	}
	for _, shape := range shapes {
		at := slices.IndexFunc(c.shapes, func(s *shapeComparison) bool {
			return s.shape.Name == shape.Name && !s.settled && len(rounds) == c.rounds
		})
		var s *shapeComparison
		if at >= 0 {
			s = c.shapes[at]
		} else {
			s = q.read(goalOf{shape: shape}, rounds, c.alpha)
		}
		t := term{shapeComparison: s, launches: q.evidence.Weights.of(shape), same: slices.Contains(q.evidence.SameShapes, shape.Name)}
		t.micros = s.samples.time(s.samples.baselineTimes)
		t.baselines = s.samples.baselineTimes.centre(len(s.samples.strata.kinds))
		if len(t.baselines.Rounds) != len(rounds) || len(s.samples.ratios.Rounds) != len(rounds) {
			return nil
		}
		sum.terms = append(sum.terms, t)
		sum.baseline += t.launches * t.micros
	}
	return sum
}

// ratioOf is the speedup of the sum as a ratio, from the time of each term and its ratio.
func (w *weightedSum) ratioOf(times, ratios []float64) float64 {
	baseline, candidate := 0.0, 0.0
	for i, t := range w.terms {
		baseline += t.launches * times[i]
		candidate += t.launches * times[i] / ratios[i]
	}
	return baseline / candidate
}

// combine is the distribution of the sum's ratio, given the figure of each term's time, and the figure from which its ratio follows.
func (w *weightedSum) combine(draws *stats.ResamplePlan, time, figure func(t term) (stats.Figure, error), ratio func(t term, time, figure float64) float64) *stats.Distribution {
	var figures []stats.Figure
	for _, t := range w.terms {
		base, err := time(t)
		if err != nil {
			return nil
		}
		own, err := figure(t)
		if err != nil {
			return nil
		}
		figures = append(figures, base, own)
	}
	times, ratios := make([]float64, len(w.terms)), make([]float64, len(w.terms))
	d, err := draws.Combine(figures, func(values []float64) float64 {
		for i, t := range w.terms {
			times[i], ratios[i] = values[2*i], 1
			if !t.same {
				ratios[i] = ratio(t, values[2*i], values[2*i+1])
			}
		}
		return w.ratioOf(times, ratios)
	})
	if err != nil {
		return nil
	}
	return d.With(w.bias())
}

func medianTime(t term) (stats.Figure, error) { return stats.QuantileOf(t.baselines, 0.5) }

// speed is the distribution of the sum's speedup.
func (w *weightedSum) speed(draws *stats.ResamplePlan) *stats.Distribution {
	return w.combine(draws, medianTime,
		func(t term) (stats.Figure, error) { return stats.QuantileOf(t.samples.ratios, 0.5) },
		func(_ term, _, ratio float64) float64 { return ratio })
}

// bias is how far the sum may be off for the whole run. The offsets of the shapes may all point in one
// direction, so they add up.
func (w *weightedSum) bias() stats.RunBias {
	bias, shares := stats.RunBias{}, w.candidateShares()
	for i, t := range w.terms {
		if t.same {
			continue
		}
		own := t.runBias()
		part := max(w.share(i), shares[i])
		bias.Scale += part * own.Scale
		bias.Most += part * own.Most
		if bias.Dof == 0 || own.Dof < bias.Dof {
			bias.Dof = own.Dof
		}
	}
	return bias
}

// share is the part of the baseline's time that a term has.
func (w *weightedSum) share(i int) float64 {
	return w.terms[i].launches * w.terms[i].micros / w.baseline
}

// candidateShares is the parts of the candidate's time: an error in the ratio of a term counts so much.
func (w *weightedSum) candidateShares() []float64 {
	shares, all := make([]float64, len(w.terms)), 0.0
	for i, t := range w.terms {
		shares[i] = t.launches * t.candidateMicros()
		all += shares[i]
	}
	for i := range shares {
		shares[i] /= all
	}
	return shares
}

// candidateMicros is the candidate's time of one launch.
func (t term) candidateMicros() float64 {
	if ratios := slices.Concat(t.samples.ratios.Rounds...); !t.same && len(ratios) > 0 {
		return t.micros / stats.Describe(ratios).P50
	}
	return t.micros
}

// byRound is the sum's ratio in each round, over all inputs and for each kind of them.
func (w *weightedSum) byRound() (all stats.Sample, byKind []stats.Sample) {
	times, ratios := make([]float64, len(w.terms)), make([]float64, len(w.terms))
	for r := range w.rounds {
		for i, t := range w.terms {
			times[i], ratios[i] = stats.Describe(t.baselines.Rounds[r]).P50, 1
			if !t.same {
				ratios[i] = stats.Describe(t.samples.ratios.Rounds[r]).P50
			}
		}
		all.Rounds = append(all.Rounds, []float64{w.ratioOf(times, ratios)})
	}
	for k := range w.kinds() {
		var sample stats.Sample
		for r := range w.rounds {
			complete := true
			for i, t := range w.terms {
				times[i], ratios[i] = t.micros, 1
				if own := t.samples.byKind[k]; len(own.Rounds) != w.rounds {
					complete = false
				} else if !t.same {
					ratios[i] = stats.Describe(own.Rounds[r]).P50
				}
			}
			if complete {
				sample.Rounds = append(sample.Rounds, []float64{w.ratioOf(times, ratios)})
			}
		}
		byKind = append(byKind, sample)
	}
	return all, byKind
}

// kinds is the kinds of input, where every term has the same; else nil.
func (w *weightedSum) kinds() []string {
	kinds := w.terms[0].samples.strata.kinds
	for _, t := range w.terms {
		if !slices.Equal(t.samples.strata.kinds, kinds) || len(t.samples.byKind) != len(kinds) {
			return nil
		}
	}
	return kinds
}

// strata is the kinds of input with the sum's ratio on each: of the gain on one kind, no more counts than of a shape's.
func (w *weightedSum) strata() strata {
	all := strata{kinds: w.kinds()}
	times, ratios := make([]float64, len(w.terms)), make([]float64, len(w.terms))
	for k := range all.kinds {
		known := true
		for i, t := range w.terms {
			times[i], ratios[i] = t.micros, 1
			if medians := t.samples.strata.medians; len(medians) != len(all.kinds) || medians[k] <= 0 {
				known = false
			} else if !t.same {
				ratios[i] = medians[k]
			}
		}
		if !known {
			return strata{}
		}
		all.medians = append(all.medians, w.ratioOf(times, ratios))
	}
	return all
}

// testSum tests the sum against its goal.
func (s *shapeComparison) testSum(draws *stats.ResamplePlan) {
	s.tests, s.tooFew = nil, true
	if s.ratio = s.sum.speed(draws); s.ratio == nil {
		return
	}
	s.tooFew = false
	b := s.goal.Speedup
	if b == nil {
		return
	}
	threshold := s.raisedThreshold(1+float64(b.Value), s.samples.strata.medians)
	agree := agreeing(s.samples.ratios, func(round stats.Summary) bool { return round.P50 >= threshold })
	s.tests = []test{{"weighted speedup", b.String(), s.ratio.PAbove(threshold), s.ratio.PBelow(threshold), threshold, s.ratio, agree, s.sum.rounds}}
}

// judged is the shapes, and the sums where a goal is about them.
func (c *comparison) judged() []*shapeComparison {
	all := slices.Clip(c.shapes)
	for _, s := range c.steps {
		if s.role != RoleInfo {
			all = append(all, s)
		}
	}
	return all
}

// leftOut reports whether some of the rounds do not have all shapes of a sum: an analysis before them has passed it.
func (q analysis) leftOut(context policy.Context, rounds []Round) bool {
	for _, r := range rounds {
		for _, shape := range q.evidence.weighed(context) {
			if !slices.ContainsFunc(r.Series, func(s Series) bool { return s.Shape == shape.Name }) {
				return true
			}
		}
	}
	return false
}

// decideStepTails compares the mean and the p90 of a step with the goal of its medians, as those of a shape.
func (c *comparison) decideStepTails(s *shapeComparison, gate *policy.PerformanceGate) {
	if s.settled || s.status != Passed || gate.Tails == nil || s.role == RoleInfo {
		return
	}
	s.tails = nil
	var misses []float64
	add := func(metric string, allowed float64, of func(stats.Sample) (stats.Figure, error)) {
		d := s.sum.combine(c.few,
			func(t term) (stats.Figure, error) { return of(t.samples.baselineTimes.Sample) },
			func(t term) (stats.Figure, error) { return of(t.samples.candidateTimes.Sample) },
			func(_ term, time, candidate float64) float64 { return time / candidate })
		if d == nil {
			s.status = Open
			return
		}
		t := tail{metric: metric, limit: s.goal.Ratio() * (1 - allowed), dist: d, miss: 1}
		if d.Estimate < t.limit {
			s.status, t.miss = Open, d.PBelow(t.limit)
		}
		s.tails, misses = append(s.tails, t), append(misses, t.miss)
	}
	if allowed := gate.Tails.Mean; allowed != nil {
		add("mean", float64(*allowed), stats.MeanOf)
	}
	if allowed := gate.Tails.P90; allowed != nil {
		add("p90", float64(*allowed), func(sample stats.Sample) (stats.Figure, error) { return stats.QuantileOf(sample, 0.9) })
	}
	if slices.Contains(stats.Holm(misses, c.alpha), true) {
		s.status = Failed
	}
}

// confirmStep holds the sum against launches that ran alone. The guards of the shapes do not: a batch may
// gain by what its launches share and still be within every guard when it runs alone.
func (c *comparison) confirmStep(s *shapeComparison, e *Evidence) {
	if s.settled || s.role == RoleInfo || s.status == Failed || s.tooFew || !judgesSingle(e) {
		return
	}
	alone := func(t term) bool { return t.samples.single.batches > 0 }
	if !slices.ContainsFunc(s.sum.terms, alone) {
		return
	}
	for _, t := range s.sum.terms {
		if l := &t.samples.single; alone(t) && !t.same && (l.batches != s.sum.rounds || len(l.rounds) != s.sum.rounds) {
			if s.status == Passed {
				s.status, s.unconfirmed = Open, facts.TooFewAlone{}
			}
			return
		}
	}
	asked, allowed := s.goal.Ratio(), singleAllowanceOf(e.Can())
	d := s.sum.combine(c.few, medianTime,
		func(t term) (stats.Figure, error) {
			if !alone(t) || t.same {
				return stats.QuantileOf(t.samples.ratios, 0.5)
			}
			sample, kinds := t.samples.single.shares(func(base float64) float64 { return allowed.lacking(base, asked) }, 0.05, 1.95)
			centreKinds(sample, kinds, len(t.samples.strata.kinds))
			return stats.QuantileOf(sample, 0.5)
		},
		func(t term, _, figure float64) float64 {
			if !alone(t) {
				return figure
			}
			return ratioOfShare(figure)
		})
	if d == nil {
		return
	}
	speedup := speedupOf(d, c.alpha)
	found := facts.StepAlone{Batch: s.ratio.Estimate - 1, Speedup: speedup}
	meet := d.PAbove(asked)
	if s.role == RoleGuard && d.Estimate >= asked { // it claims no gain: see singleTest
		meet = 0
	}
	switch {
	case d.PBelow(asked) <= c.alpha:
		found.Refuted = true
		s.refute(found)
	case s.status == Passed && meet > c.alpha:
		s.status, s.unconfirmed = Open, found
	}
}

// weightedSpeeds is the sums as a report shows them: with every launch cold and, where the weights name warm shapes, with those warm.
func (c *comparison) weightedSpeeds(e *Evidence) (cold, warm *WeightedSpeed) {
	for _, s := range c.steps {
		if s.shape.Context == policy.Warm {
			warm = s.weightedSpeed(e)
		} else {
			cold = s.weightedSpeed(e)
		}
	}
	return cold, warm
}

func (s *shapeComparison) weightedSpeed(e *Evidence) *WeightedSpeed {
	if s.ratio == nil {
		return nil
	}
	w := &WeightedSpeed{
		Context: s.shape.Context, Role: s.role, Status: s.status, Baseline: round(s.sum.baseline), Speedup: speedupOf(s.ratio, s.alpha), Rounds: s.sum.rounds,
		Unmatched: e.Weights.Unmatched, Tool: e.Weights.Tool, Trace: e.Weights.Trace,
	}
	if s.goal.Speedup != nil {
		w.Goal = "weighted speedup " + s.goal.Speedup.String()
	}
	w.Candidate, w.Saved = round(s.sum.baseline/(1+w.Speedup.Value)), saved(s.sum.baseline, w.Speedup)
	w.Step = e.Weights.wholeStep(s.sum.baseline, w.Speedup)
	for i, t := range s.sum.terms {
		w.Shapes = append(w.Shapes, WeightedShape{
			Shape: t.shape.Name, Launches: round(t.launches), Baseline: round(t.micros), Candidate: round(t.candidateMicros()), Share: round(s.sum.share(i)),
		})
	}
	if math.IsInf(w.Candidate, 0) {
		return nil
	}
	return w
}
