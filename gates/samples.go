package gates

import (
	"math"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates/stats"
)

// samples is the samples of one shape in the forms that are judged. Every form is grouped by round,
// the unit of replication.
type samples struct {
	ratios         stats.Sample // baseline/candidate, a value for each block
	control        stats.Sample // baseline/control
	solo           stats.Sample // baseline with the candidate loaded / baseline before
	candidateTimes timedSample  // of the candidate, by the clock that counts
	baselineTimes  timedSample  // the baseline's in the same rounds
	clocks         clocks
	marks          marks
	strata         strata         // of ratios
	byKind         []stats.Sample // ratios of each kind of input; none where there is one kind
	single         singles
	uneven         []unevenSamples // by kind of input

	baseline, candidate []float64 // all samples in use, in microseconds, for the reader
	pairs               int
	cold                bool
	fresh               bool         // every launch had new inputs, drawn by a judge that shares nothing with the sides
	steps               []clockShare // of the clock, one for each round
}

// A timedSample is times in microseconds, each with its kind of input.
type timedSample struct {
	stats.Sample
	kinds [][]int
}

func (t *timedSample) add(micros []float64, kinds []int) {
	t.Rounds, t.kinds = append(t.Rounds, micros), append(t.kinds, kinds)
}

// byKind is the median time of each kind; 0 where it has no sample.
func (t timedSample) byKind(kinds int) []float64 {
	all := make([][]float64, kinds)
	for r, round := range t.Rounds {
		for i, micros := range round {
			all[t.kinds[r][i]] = append(all[t.kinds[r][i]], micros)
		}
	}
	medians := make([]float64, kinds)
	for k := range all {
		if len(all[k]) > 0 {
			medians[k] = stats.Describe(all[k]).P50
		}
	}
	return medians
}

// RoundTimes is the candidate's time in each round, by shape, in microseconds: the geometric mean of the round's medians on each
// kind of input.
func RoundTimes(e *Evidence) map[string][]float64 {
	all := map[string][]float64{}
	if e.Performance == nil {
		return all
	}
	for _, r := range e.Performance.Rounds {
		for _, series := range r.Series {
			counted, _ := splitKinds([]Round{{Series: []Series{series}}}, series.Shape, nil)
			s := collect(counted, series.Shape, clean)
			if micros := s.time(s.candidateTimes); micros > 0 {
				all[series.Shape] = append(all[series.Shape], micros)
			}
		}
	}
	return all
}

// RoundSpeedups is the median of baseline/candidate in one round, by shape, as the performance gate
// computes it: disturbed pairs are left out, and every kind of input has the same weight. A shape
// without an undisturbed pair is missing.
func RoundSpeedups(r Round) map[string]float64 {
	all := map[string]float64{}
	for _, series := range r.Series {
		counted, _ := splitKinds([]Round{{Series: []Series{series}}}, series.Shape, nil)
		s := collect(counted, series.Shape, clean)
		if len(s.ratios.Rounds) > 0 {
			all[series.Shape] = stats.Describe(s.ratios.Rounds[0]).P50
		}
	}
	return all
}

// centre is the sample with every kind scaled to the geometric mean of the kinds' medians.
func (t timedSample) centre(kinds int) stats.Sample {
	var s stats.Sample
	for _, round := range t.Rounds {
		s.Rounds = append(s.Rounds, slices.Clone(round))
	}
	centreKinds(s, t.kinds, kinds)
	return s
}

// A view says which samples are in use.
type view int

const (
	clean view = iota // those that nothing disturbed
	whole             // all of them, as if none were marked
)

// collect reads one shape out of rounds. In the clean view a block with a disturbed sample gives no
// pair; the evidence itself keeps all samples.
func collect(rounds []Round, shape string, v view) *samples {
	s := &samples{cold: true, fresh: true}
	batched := newKindTimes()
	for _, r := range rounds {
		for i := range r.Series {
			if r.Series[i].Shape == shape {
				s.add(&r.Series[i], v, batched)
			}
		}
	}
	s.byKind, s.clocks.wallByKind = s.strata.split(s.ratios), s.strata.split(s.clocks.wall)
	s.strata.errors = medianErrors(s.byKind)
	s.strata.medians = s.strata.centre(s.ratios)
	s.strata.centre(s.clocks.wall)
	s.single.baseline, s.single.candidate = batched.medians(len(s.strata.kinds))
	return s
}

// kindTimes is the times of both sides' blocks by kind of input, in microseconds.
type kindTimes struct{ baseline, candidate map[int][]float64 }

func newKindTimes() kindTimes { return kindTimes{map[int][]float64{}, map[int][]float64{}} }

func (t kindTimes) add(kind int, b, c side) {
	t.baseline[kind] = append(t.baseline[kind], b.mean())
	t.candidate[kind] = append(t.candidate[kind], c.mean())
}

// gain is what the candidate gains on a kind; it is not ok where nothing was timed on it.
func (t kindTimes) gain(kind int) (micros float64, ok bool) {
	if len(t.baseline[kind]) == 0 {
		return 0, false
	}
	return stats.Describe(t.baseline[kind]).P50 - stats.Describe(t.candidate[kind]).P50, true
}

func (t kindTimes) medians(kinds int) (baseline, candidate []float64) {
	for k := range kinds {
		baseline = append(baseline, stats.Describe(t.baseline[k]).P50)
		candidate = append(candidate, stats.Describe(t.candidate[k]).P50)
	}
	return baseline, candidate
}

// A side is one side's samples in a block.
type side struct {
	sum, wall float64
	n         int
	disturbed bool
}

func (s side) ok() bool          { return s.n > 0 && !s.disturbed }
func (s side) mean() float64     { return s.sum / float64(s.n) }
func (s side) wallMean() float64 { return s.wall / float64(s.n) }
func (s side) waiting() float64  { return s.wallMean() - s.mean() }
func over(a, b side) float64     { return a.mean() / b.mean() }

func (s *samples) add(series *Series, v view, batched kindTimes) {
	disturbed := series.disturbed()
	s.marks.add(series, disturbed)
	if v == whole {
		clear(disturbed)
	}
	lists := make([]float64, 5*len(series.Nanos)) // room for all that follows
	list := func() (part []float64) {
		part, lists = lists[:0:len(series.Nanos)], lists[len(series.Nanos):]
		return part
	}
	ratios, control, candidateTimes, baselineTimes, alone := list(), list(), list(), list(), list()
	var kinds, candidateKinds, baselineKinds []int
	var walls clockRound
	own := newKindTimes()
	at, number := 0, -1
	for block := range strings.FieldsSeq(series.Order) {
		number++
		kind := s.strata.kind(series, number)
		var b, c, a side
		for _, letter := range []byte(block) {
			of := &b
			switch letter {
			case SideCandidate:
				of = &c
			case SideControl:
				of = &a
			}
			micros := series.Nanos[at] / 1e3
			switch {
			case disturbed[at]:
				of.disturbed = true
			default:
				of.sum += micros
				of.n++
				if series.Wall != nil {
					of.wall += series.Wall[at] / 1e3
				}
				if letter == SideBaseline {
					baselineTimes, baselineKinds = append(baselineTimes, micros), append(baselineKinds, kind)
				} else if letter == SideCandidate {
					candidateTimes, candidateKinds = append(candidateTimes, micros), append(candidateKinds, kind)
				}
			}
			at++
		}
		if b.ok() && c.ok() {
			ratios = append(ratios, over(b, c))
			kinds = append(kinds, kind)
			batched.add(kind, b, c)
			own.add(kind, b, c)
			if series.Wall != nil {
				walls.add(kind, b, c)
			}
		}
		if b.ok() && a.ok() {
			control = append(control, over(b, a))
		}
		if b.ok() {
			alone = append(alone, b.mean())
		}
	}
	s.pairs += len(ratios)
	s.cold = s.cold && series.Cold
	s.fresh = s.fresh && series.Seed != 0
	s.baseline, s.candidate = append(s.baseline, baselineTimes...), append(s.candidate, candidateTimes...)
	appendRound(&s.ratios, ratios)
	if len(kinds) > 0 {
		s.strata.rounds = append(s.strata.rounds, kinds)
	}
	appendRound(&s.control, control)
	if len(candidateTimes) > 0 && len(baselineTimes) > 0 {
		s.candidateTimes.add(candidateTimes, candidateKinds)
		s.baselineTimes.add(baselineTimes, baselineKinds)
	}
	s.clocks.add(series, walls)
	s.addUneven(series)
	s.single.add(series, own, func(i int) int { return s.strata.kind(series, i) })
	if len(series.Solo) > 0 && len(alone) > 0 {
		p50 := stats.Describe(series.Solo).P50 / 1e3
		for i := range alone {
			alone[i] /= p50
		}
		appendRound(&s.solo, alone)
	}
	s.steps = append(s.steps, clockShareOf(series, func(block int) int { return s.strata.kind(series, block) }))
}

// disturbed marks the samples that were disturbed from outside. An index that is named twice is one
// sample.
func (s *Series) disturbed() []bool {
	marked := make([]bool, len(s.Nanos))
	for _, i := range s.Disturbed {
		marked[i] = true
	}
	return marked
}

func appendRound(s *stats.Sample, values []float64) {
	if len(values) > 0 {
		s.Rounds = append(s.Rounds, values)
	}
}

// clip bounds a value: once a figure is many times beyond its limit, further distance must not look
// like noise.
func clip(x, low, high float64) float64 {
	if math.IsNaN(x) {
		return low
	}
	return max(low, min(x, high))
}
