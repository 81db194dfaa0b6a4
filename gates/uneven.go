package gates

import (
	"math"
	"slices"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// On a CPU a single time is the median over the launches of one process, and the gain alone
// is a median over processes, because waking a process costs more than a short kernel now
// and then. A median does not see what a minority of the launches does. So a kernel can let
// a few launches work for the others, or be slow in a third of the processes that run
// single launches, while its batches hide both. The means over the same launches show it.

const (
	// unevenBaseline is how many times the baseline's own unevenness, of either sign, the candidate's may be
	// larger: interrupts and cold caches hit both sides, and a baseline of which a few launches were faster
	// than the others shows the same noise.
	unevenBaseline = 1.0

	// unevenLaunches is the maximum of this allowance for a shape that passes, in launches of the baseline. A
	// larger allowance would hide launches that work for others. Short launches are allowed one microsecond
	// each, by which single launches cannot be told apart anyway (see singleAllowance).
	unevenLaunches = 2.0

	// unevenDoubt is a p-value. A shape does not pass if the p-value of its excess is smaller. The estimate alone
	// does not decide: with many kinds of input and several shapes, one of the estimates exceeds the allowance
	// on every busy machine.
	unevenDoubt = 0.25

	// unevenMost bounds, in times of the baseline, how much one process can lose: a single
	// process that was disturbed for long must not look like noise that hides all others.
	unevenMost = 4.0

	// aboveZero is added to gains that can be negative, since the bootstrap takes logarithms.
	aboveZero = 2 * unevenMost
)

// addUneven compares the time that the launches of a process took beyond their median with
// the same of the baseline, kind of input by kind of input: as 1 plus how far it is beyond
// what is allowed, as a share of a launch. The total counts, not the mean: a table that one
// launch makes for all others costs the same however many others there are.
func (s *samples) addUneven(series *Series) {
	single := series.Single
	if single == nil || len(single.MeanCandidate) == 0 {
		return
	}
	launch, baselineLaunch := stats.Describe(single.Candidate).P50, stats.Describe(single.Baseline).P50
	later, share := float64(single.Launches-1), min(launch/baselineLaunch, 1)
	most := max(unevenLaunches*baselineLaunch, 1e3*inOwnProcess.micros*later)
	type processes struct{ noise, lenient, strict, whole []float64 }
	kinds := map[int]*processes{}
	for i := range single.MeanCandidate {
		b, c := later*(single.MeanBaseline[i]-single.Baseline[i]), later*(single.MeanCandidate[i]-single.Candidate[i])
		var firstB, firstC float64
		if i < len(single.FirstCandidate) {
			firstB, firstC = single.FirstBaseline[i]-single.Baseline[i], single.FirstCandidate[i]-single.Candidate[i]
		}
		kind := s.strata.kind(series, i)
		if kinds[kind] == nil {
			kinds[kind] = &processes{}
		}
		p := kinds[kind]
		p.noise = append(p.noise, math.Abs(b+firstB))
		// A slow baseline whose later launches happened to be slower is no standard for a fast candidate. If later launches of the
		// baseline happened to be faster than their median, the candidate is still allowed the cost of a new process.
		p.lenient = append(p.lenient, c-max(b, 0)+firstC-max(firstB, 0))
		p.strict = append(p.strict, c-max(share*b, 0)+firstC-max(firstB, 0))
		p.whole = append(p.whole, single.Baseline[i]/(single.Candidate[i]+max(c+firstC, 0)))
	}
	for kind, p := range kinds {
		for len(s.uneven) <= kind {
			s.uneven = append(s.uneven, unevenSamples{})
		}
		first, noise := single.allowedFirst(), unevenBaseline*stats.Describe(p.noise).P50
		beyond := func(more []float64, allowed float64) []float64 {
			return []float64{beyondAllowed(stats.Describe(more).P50, max(allowed, first), launch)}
		}
		u := &s.uneven[kind]
		appendRound(&u.lenient, beyond(p.lenient, noise))
		appendRound(&u.strict, beyond(p.strict, min(noise, most)))
		appendRound(&u.whole, p.whole)
	}
}

// beyondAllowed is 1 plus how far a time is beyond what is allowed, as a share of a launch. The allowance is as large as the noise. So
// if it is longer than a launch, it is the unit: in units of a short launch the noise of every round would be clipped to the same
// value, and a few rounds that happened to be on one side would look like proof.
func beyondAllowed(time, allowed, launch float64) float64 {
	return 1 + clip((time-allowed)/max(launch, allowed), -0.5, 1)
}

// unevenSamples says how far the single launches of a shape exceed the allowed unevenness on one kind of input. It has a lenient and a
// strict excess.
//
// Interrupts disturb a process for as long as it runs. So a candidate that takes a tenth of the baseline's time has a tenth of its
// noise. The first launch is an exception: it has the cost of a new process. The lenient excess subtracts all of the baseline's noise.
// With this alone, a fast candidate could hide the work of several launches in the noise of a slow baseline. The strict excess
// subtracts only a tenth in this example, and a shape with a strict excess does not pass. But one interrupt takes as long in a short
// launch as in a long one. So only the lenient excess can prove that a candidate is uneven.
type unevenSamples struct {
	lenient, strict stats.Sample
	whole           stats.Sample // speedups of a single launch that did the extra work of its process
}

// An unevenTest is whether launches of a process take longer than the others by more than
// those of the baseline do, on one kind of input.
type unevenTest struct {
	exceeds bool    // the launches are probably uneven, and it matters: the shape does not pass
	proven  float64 // p-value of it
	fact    facts.Fact
}

// unevenAlone tests every kind of input. The baseline of a new kernel is a copy of itself,
// which is as uneven, so that nothing can be tested.
//
// An interrupt weighs more in a short launch than in a long one, so a much faster candidate
// often looks uneven by chance. That does not matter where a single launch that did the
// extra work of its whole process would still meet the goal.
func (s *shapeComparison) unevenAlone(draws *stats.ResamplePlan, e *Evidence, alpha float64) []unevenTest {
	var tests []unevenTest
	asked := s.goal.Ratio()
	for kind, u := range s.samples.uneven {
		lenient, strict := draw(draws, u.lenient, 0.5), draw(draws, u.strict, 0.5)
		if lenient == nil || strict == nil || e.Baseline == nil {
			continue
		}
		whole := draw(draws, u.whole, 0.5)
		harmless := asked > 0 && whole != nil && whole.PAbove(asked) <= alpha
		tests = append(tests, unevenTest{
			exceeds: strict.PAbove(1) < unevenDoubt && !harmless, proven: lenient.PAbove(1),
			fact: facts.Uneven{Inputs: s.inputsOf(kind)},
		})
	}
	return tests
}

// means is the mean time of a launch in the i-th process of each side. The start of a new process is no work of the kernel, and its
// cost differs from program to program. So of a first launch, only the time beyond that cost is added. Without it, no figure would
// show a kernel whose first launch is slow in a few processes.
func (s *Singles) means(i int) (baseline, candidate float64) {
	baseline, candidate = s.MeanBaseline[i], s.MeanCandidate[i]
	if i < len(s.FirstCandidate) {
		allowed := max(s.start(), 0) + s.allowedFirst()
		beyond := func(first, later float64) float64 { return max(first-later-allowed, 0) / max(float64(s.Launches), 1) }
		baseline += beyond(s.FirstBaseline[i], s.Baseline[i])
		candidate += beyond(s.FirstCandidate[i], s.Candidate[i])
	}
	return baseline, candidate
}

// A meanTest holds the mean gain of single launches against the goal. As with the tails of a
// batch, nobody claims that the mean is no worse, so a shape is refuted only where that is
// proven, and does not pass while the estimate lies below the limit.
type meanTest struct {
	lacks bool    // the estimate is below the limit
	miss  float64 // p-value of having missed
}

// meanAlone is that test. The limit is what the policy allows the mean of a batch. It passes
// where the policy guards no mean, or there is nothing to test.
func (s *shapeComparison) meanAlone(draws *stats.ResamplePlan, gate *policy.PerformanceGate, e *Evidence) meanTest {
	fine := meanTest{miss: 1}
	asked := s.goal.Ratio()
	if asked == 0 || e.Baseline == nil || gate.Tails == nil || gate.Tails.Mean == nil {
		return fine
	}
	limit := shareOfRatio(asked * (1 - float64(*gate.Tails.Mean)))
	l, allowed := &s.samples.single, singleAllowanceOf(e.Can())
	var gains, limits stats.Sample
	for _, pairs := range l.rounds {
		var values []float64
		for _, p := range pairs {
			if p.meanCandidate > 0 {
				base := l.baseline[p.kind]
				gain := p.meanBaseline - p.meanCandidate + allowed.lacking(base, asked)
				values = append(values, aboveZero+clip(1+gain/base, -unevenMost, 2))
			}
		}
		appendRound(&gains, values)
		appendRound(&limits, slices.Repeat([]float64{aboveZero + limit}, len(values)))
	}
	d, err := draws.MeanRatio(gains, limits)
	if err != nil || d.Estimate >= 1 {
		return fine
	}
	return meanTest{lacks: true, miss: d.PBelow(1)}
}

// meanFigures is what a launch gains alone by the median and on average.
func (s *shapeComparison) meanFigures() facts.Fact {
	var median, mean []float64
	for _, pairs := range s.samples.single.rounds {
		for _, p := range pairs {
			if p.meanCandidate > 0 {
				median, mean = append(median, p.gain()), append(mean, p.meanBaseline-p.meanCandidate)
			}
		}
	}
	return facts.MeanAlone{Median: stats.Describe(median).P50, Mean: stats.Describe(mean).Mean}
}
