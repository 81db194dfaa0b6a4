package gates

import (
	"math"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/quantity"
)

// Short kernels are timed in batches, and the launches of a batch can share work: one launch
// computes the results of the rest, which return at once. A launch that runs alone cannot do that:
// its inputs did not exist while an earlier launch ran, and no launch follows. So a gain in a batch
// counts as far as launches that run alone confirm it.
//
// Running alone costs a launch about two microseconds more, on both sides alike. What is compared is
// therefore the difference between baseline and candidate in microseconds, for each kind of input:
// in a batch and alone it is the same, up to the higher start-up cost of a larger grid or a cluster.

// A singleAllowance is how much of a difference need not show alone, in microseconds and as
// shares of times.
type singleAllowance struct {
	micros float64 // at most so much
	share  float64 // and at most this share of the baseline's time; 0: no such bound
	start  float64 // what starting alone may cost a new kernel, of which no baseline tells
}

// Honest kernels on an H200 lacked at most 0.2 µs alone, those whose launches share work 8
// to 20 µs. Where a launch that runs alone has a process of its own, waking that is part of it.
func singleAllowanceOf(a Abilities) singleAllowance {
	if a.OwnProcesses {
		return inOwnProcess
	}
	return singleAllowance{micros: 0.5, share: 0.05, start: 5}
}

var inOwnProcess = singleAllowance{micros: 1, start: 50}

const (
	// singleOfGoal is the share of the gain that a target asks which may be lacking alone.
	singleOfGoal = 0.5

	// singleGain and singleTime are the shares of the gain in a batch and of the candidate's
	// time of which the larger, beyond the allowance, may be lacking alone before the
	// figures as a whole are too good to be true. On a CPU a kernel that is bound by memory
	// gains less on inputs that were written a moment ago.
	singleGain, singleTime = 0.25, 0.05

	// singleReach is how many times the control's offset a kind of input may count above the
	// limit. Without it a control that is far off would leave every gain undecided, however
	// large. Three of five kinds alone then come to three times the offset, which proves
	// nothing at the error rates of a policy. A single kind carries no others, so that it
	// counts as far as it takes to decide.
	singleReach, singleReachOne = 5.0, 20.0

	// singleNew is the share of its time in a batch that running alone may cost a new
	// kernel, where that is more than the allowance's start.
	singleNew = 0.25
)

// lacking is how many microseconds of the difference need not show alone, where a ratio of
// baseline to candidate is asked.
func (a singleAllowance) lacking(base, asked float64) float64 {
	most := a.micros
	if a.share > 0 {
		most = min(most, a.share*base)
	}
	if asked > 1 {
		most = min(most, singleOfGoal*(base-base/asked))
	}
	return most
}

// A singlePair is two launches that ran alone on the same inputs, and what launches of the
// same round gained in a batch on that kind of input, in microseconds.
type singlePair struct {
	kind                int
	baseline, candidate float64
	batch               float64

	meanBaseline, meanCandidate float64 // over the launches of the two processes; 0 where unknown
}

// gain is what the candidate gains alone.
func (p singlePair) gain() float64 { return p.baseline - p.candidate }

// singles is the launches of one shape that ran alone, by round, and the times of a batch
// that they are held against.
type singles struct {
	batches int // rounds whose samples are batches
	rounds  [][]singlePair
	// Medians of a launch in a batch, by kind of input.
	baseline, candidate []float64
}

func (l *singles) add(series *Series, batched kindTimes, kindOf func(int) int) {
	if series.Batch > 1 {
		l.batches++
	}
	if series.Single == nil {
		return
	}
	var pairs []singlePair
	for i := range min(len(series.Single.Baseline), len(series.Single.Candidate)) {
		kind := kindOf(i)
		if gain, ok := batched.gain(kind); ok {
			p := singlePair{kind: kind, baseline: series.Single.Baseline[i] / 1e3, candidate: series.Single.Candidate[i] / 1e3, batch: gain}
			if i < len(series.Single.MeanCandidate) {
				baseline, candidate := series.Single.means(i)
				p.meanBaseline, p.meanCandidate = baseline/1e3, candidate/1e3
			}
			pairs = append(pairs, p)
		}
	}
	if len(pairs) > 0 {
		l.rounds = append(l.rounds, pairs)
	}
}

// sample is a value for each pair, and the kinds that they are of.
func (l *singles) sample(value func(p singlePair, base float64) float64) (s stats.Sample, kinds [][]int) {
	for _, pairs := range l.rounds {
		var values []float64
		var of []int
		for _, p := range pairs {
			values, of = append(values, value(p, l.baseline[p.kind])), append(of, p.kind)
		}
		s.Rounds, kinds = append(s.Rounds, values), append(kinds, of)
	}
	return s, kinds
}

// times is the time of the candidate in each pair, in microseconds, minus the part that need not show alone. A new kernel has no
// baseline: its time alone counts, minus the cost of starting alone.
func (l *singles) times(allowed singleAllowance, isNew bool, time func(p singlePair, base float64) float64) stats.Sample {
	s, _ := l.sample(func(p singlePair, base float64) float64 {
		if isNew {
			return max(p.candidate-allowed.start, p.candidate/20)
		}
		return max(time(p, base)-allowed.lacking(base, 0), base/20)
	})
	return s
}

// starts is the time that the baseline takes alone beyond its time in a batch, by kind of input. Unlike the gain of a pair, the time
// of the candidate minus this one does not depend on how fast the baseline was in that pair.
func (l *singles) starts() map[int]float64 {
	alone := map[int][]float64{}
	for _, pairs := range l.rounds {
		for _, p := range pairs {
			alone[p.kind] = append(alone[p.kind], p.baseline)
		}
	}
	starts := map[int]float64{}
	for kind, times := range alone {
		starts[kind] = stats.Describe(times).P50 - l.baseline[kind]
	}
	return starts
}

// shares is what each pair gains as a share of the baseline's time in a batch, with what may
// be lacking, as 1 plus the share: a share is as noisy where the candidate is very fast as
// where it is not, which a ratio is not. Values are clipped, so that what is far beyond the
// limits does not look like noise.
func (l *singles) shares(lacking func(base float64) float64, low, high float64) (s stats.Sample, kinds [][]int) {
	return l.sample(func(p singlePair, base float64) float64 { return clip(1+(p.gain()+lacking(base))/base, low, high) })
}

// shareOfRatio is the gain as a share that a ratio of baseline to candidate means, and
// ratioOfShare the reverse.
func shareOfRatio(ratio float64) float64 { return 2 - 1/ratio }
func ratioOfShare(share float64) float64 { return 1 / (2 - min(share, 1.95)) }

// judgesSingle is false where a harness took the samples.
func judgesSingle(e *Evidence) bool { return e.Can().SingleLaunches }

// confirm compares the shapes that have not missed their goals with the launches that ran alone. A
// gain that those do not confirm yet leaves the shape open, and one that they refute fails it.
func (c *comparison) confirm(gate *policy.PerformanceGate, e *Evidence) {
	if !judgesSingle(e) {
		return
	}
	var misses, meanMisses []float64
	var of []*shapeComparison
	for _, s := range c.shapes {
		l := &s.samples.single
		if s.settled || s.status == Failed || len(l.rounds) == 0 { // evidence of versions that had no such launches keeps its verdict
			continue
		}
		t, ok := s.singleTest(c.few, e)
		mean := s.meanAlone(c.few, gate, e)
		switch {
		case s.status == Open: // what is not decided in a batch can be refuted all the same
		case !ok || len(l.rounds) < l.batches:
			s.status, s.unconfirmed = Open, facts.TooFewAlone{}
		case t.meet > c.alpha:
			s.status, s.unconfirmed = Open, s.gainAlone(c.alpha, false)
		case mean.lacks:
			s.status, s.unconfirmed = Open, s.meanFigures()
		default:
			for _, t := range s.unevenAlone(c.few, e, c.alpha) {
				if t.exceeds {
					s.status, s.unconfirmed = Open, t.fact
				}
			}
		}
		if ok {
			of, misses = append(of, s), append(misses, t.miss)
			meanMisses = append(meanMisses, mean.miss)
		}
	}
	for i, missed := range stats.Holm(meanMisses, c.alpha) {
		if missed {
			of[i].refute(of[i].meanFigures())
		}
	}
	for i, missed := range stats.Holm(misses, c.alpha) {
		if missed {
			of[i].refute(of[i].gainAlone(c.alpha, true))
		}
	}
}

// refute fails a shape by its launches that ran alone.
func (s *shapeComparison) refute(why facts.Fact) {
	s.status, s.unconfirmed, s.refuted = Failed, nil, why
}

// singleTest is the goal of a shape, tested on the launches that ran alone; not ok where
// they are too few to say anything. The gain of a target must be proven. A guard claims
// none, so it is held against the estimate, as tails are.
func (s *shapeComparison) singleTest(draws *stats.ResamplePlan, e *Evidence) (t test, ok bool) {
	l, allowed := &s.samples.single, singleAllowanceOf(e.Can())
	t = test{meet: 0, miss: 1}
	add := func(meet, miss float64, met bool) {
		if s.role == RoleGuard && met {
			meet = 0
		}
		t.meet, t.miss = max(t.meet, meet), min(t.miss, miss)
	}
	alone := e.Baseline == nil
	if asked := s.goal.Ratio(); asked > 0 && !alone {
		limit, most := max(shareOfRatio(asked), 0.1), 1.5 // a guard may allow more than half of the speed to be lost
		if asked > 1 {
			most = shareOfRatio(math.Pow(asked, kindShare)) // of one kind of input no more counts
			reach := singleReach
			if len(s.samples.strata.kinds) <= 1 {
				reach = singleReachOne
			}
			most = max(most, limit*(1+reach*s.runBias().Scale))
		}
		sample, kinds := l.shares(func(base float64) float64 { return allowed.lacking(base, asked) }, limit/2, most)
		centreKinds(sample, kinds, len(s.samples.strata.kinds))
		d := draw(draws, sample, 0.5)
		if d == nil {
			return t, false
		}
		d = d.With(s.runBias())
		add(d.PAbove(limit), d.PBelow(limit), d.Estimate >= limit)
	}
	within := func(b *quantity.Bound[quantity.Micros], sample stats.Sample, quantile float64) bool {
		d := draw(draws, sample, quantile)
		if d == nil {
			return false
		}
		limit := float64(b.Value)
		add(d.PBelow(limit), d.PAbove(limit), d.Estimate <= limit)
		return true
	}
	for _, b := range []*quantity.Bound[quantity.Micros]{s.goal.P50, s.goal.P90} {
		if b != nil && !within(b, l.times(allowed, alone, func(p singlePair, base float64) float64 { return base - p.gain() }), 0.5) {
			return t, false
		}
	}
	if b := s.goal.P90; b != nil && e.Can().OwnProcesses { // the p90 of launches that are no medians is noise
		start := l.starts()
		if !within(b, l.times(allowed, alone, func(p singlePair, _ float64) float64 { return p.candidate - start[p.kind] }), 0.9) {
			return t, false
		}
	}
	return t, true
}

// gainAlone is what a launch gains in a batch and alone.
func (s *shapeComparison) gainAlone(alpha float64, refuted bool) facts.Fact {
	l := &s.samples.single
	var batch, alone []float64
	for _, pairs := range l.rounds {
		for _, p := range pairs {
			batch, alone = append(batch, l.baseline[p.kind]-l.candidate[p.kind]), append(alone, p.gain())
		}
	}
	found := facts.GainAlone{Refuted: refuted, Batch: stats.Describe(batch).P50, Alone: stats.Describe(alone).P50}
	if s.alone != nil {
		found.Speedup = new(singleSpeedup(s.alone, alpha))
	}
	return found
}

// singleShare is what launches gained that ran alone, as [singles.shares] has it, for the reader;
// nil where there are none.
func (s *shapeComparison) singleShare(draws *stats.ResamplePlan) *stats.Distribution {
	sample, kinds := s.samples.single.shares(func(float64) float64 { return 0 }, 0.05, 1.95)
	centreKinds(sample, kinds, len(s.samples.strata.kinds))
	return draw(draws, sample, 0.5)
}

// singleSpeedup is that as a speedup.
func singleSpeedup(d *stats.Distribution, alpha float64) Estimate {
	lower, upper := d.Bounds(alpha)
	return Estimate{Value: round(ratioOfShare(d.Estimate) - 1), Lower: rounded(ratioOfShare(lower) - 1), Upper: rounded(ratioOfShare(upper) - 1)}
}

// overclaims tests, for every kind of input, whether a batch claims far more than launches show
// alone.
func (s *shapeComparison) overclaims(draws *stats.ResamplePlan, e *Evidence) []suspect {
	var found []suspect
	l, allowed := &s.samples.single, singleAllowanceOf(e.Can())
	for k, cand := range l.candidate {
		gain := l.baseline[k] - cand
		most := allowed.micros + max(singleGain*gain, singleTime*cand)
		beyond := func(p singlePair) float64 { return p.batch - p.gain() - most }
		fact := facts.Fact(facts.BatchGainsMore{Inputs: s.inputsOf(k), Gain: gain, Most: most})
		if e.Baseline == nil { // copies of the kernel itself are in the baseline's place
			beyond = func(p singlePair) float64 { return p.candidate - cand - max(allowed.start, singleNew*cand) }
			fact = facts.BatchFaster{Inputs: s.inputsOf(k), Micros: cand}
		}
		var sample stats.Sample
		for _, pairs := range l.rounds {
			var values []float64
			for _, p := range pairs {
				if p.kind == k {
					values = append(values, 1+clip(beyond(p)/cand, -0.5, 1))
				}
			}
			appendRound(&sample, values)
		}
		if d := draw(draws, sample, 0.5); d != nil {
			found = append(found, suspect{d.PAbove(1), fact})
		}
	}
	return found
}

// inputsOf names a shape with one of its kinds of input.
func (s *shapeComparison) inputsOf(kind int) facts.KindOn {
	return facts.KindOn{Shape: s.shape.Label(), Kind: s.samples.strata.kinds[kind]}
}
