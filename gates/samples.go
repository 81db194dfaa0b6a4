package gates

import (
	"math"
	"strings"

	"github.com/kernelgate/kernelgate/gates/stats"
)

// samples is what the rounds say of one shape, in the forms that are judged.
// Every form is grouped by round, the unit of evidence.
type samples struct {
	ratios    stats.Sample // baseline/candidate, a value a block
	control   stats.Sample // baseline/control
	solo      stats.Sample // baseline beside the candidate / baseline alone
	latencies stats.Sample // of the candidate, in microseconds
	absolute  stats.Sample // the same, by the clock that counts
	besides   stats.Sample // the baseline's in the same rounds
	clocks    clocks
	marks     marks
	strata    strata // of ratios

	baseline, candidate []float64 // all samples in use, in microseconds, for the reader
	pairs               int
	cold                bool
	fresh               bool      // every launch had inputs of its own, drawn by a judge that shares nothing with the sides
	steps               []float64 // of the clock, as a share of the median, a value a round
}

// A view says which samples are in use.
type view int

const (
	clean view = iota // those that nothing disturbed
	whole             // all of them, as if none were marked
)

// collect reads one shape out of rounds. In the clean view a block with a spoiled
// sample gives no pair; nothing is dropped from the evidence itself.
func collect(rounds []Round, shape string, v view) *samples {
	s := &samples{cold: true, fresh: true}
	for _, r := range rounds {
		for i := range r.Series {
			if r.Series[i].Shape == shape {
				s.add(&r.Series[i], v)
			}
		}
	}
	s.strata.medians = s.strata.level(s.ratios)
	s.strata.level(s.clocks.wall)
	return s
}

// A side is one side's samples in a block.
type side struct {
	sum, wall float64
	n         int
	spoiled   bool
}

func (s side) ok() bool          { return s.n > 0 && !s.spoiled }
func (s side) mean() float64     { return s.sum / float64(s.n) }
func (s side) wallMean() float64 { return s.wall / float64(s.n) }
func (s side) waiting() float64  { return s.wallMean() - s.mean() }
func over(a, b side) float64     { return a.mean() / b.mean() }

func (s *samples) add(series *Series, v view) {
	spoiled := series.spoiled()
	s.marks.add(series, spoiled)
	if v == whole {
		clear(spoiled)
	}
	lists := make([]float64, 5*len(series.Nanos)) // room for all that follows
	list := func() (part []float64) {
		part, lists = lists[:0:len(series.Nanos)], lists[len(series.Nanos):]
		return part
	}
	ratios, control, latencies, besides, alone := list(), list(), list(), list(), list()
	var kinds []int
	var walls clockRound
	at, number := 0, -1
	for block := range strings.FieldsSeq(series.Order) {
		number++
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
			case spoiled[at]:
				of.spoiled = true
			default:
				of.sum += micros
				of.n++
				if series.Wall != nil {
					of.wall += series.Wall[at] / 1e3
				}
				if letter == SideBaseline {
					besides = append(besides, micros)
				} else if letter == SideCandidate {
					latencies = append(latencies, micros)
				}
			}
			at++
		}
		if b.ok() && c.ok() {
			ratios = append(ratios, over(b, c))
			kinds = append(kinds, s.strata.kind(series, number))
			if series.Wall != nil {
				walls.add(b, c)
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
	s.baseline, s.candidate = append(s.baseline, besides...), append(s.candidate, latencies...)
	appendRound(&s.ratios, ratios)
	if len(kinds) > 0 {
		s.strata.rounds = append(s.strata.rounds, kinds)
	}
	appendRound(&s.control, control)
	if len(latencies) > 0 && len(besides) > 0 {
		appendRound(&s.latencies, latencies)
		appendRound(&s.absolute, latencies)
		appendRound(&s.besides, besides)
	}
	s.clocks.add(series, walls)
	if len(series.Solo) > 0 && len(alone) > 0 {
		p50 := stats.Describe(series.Solo).P50 / 1e3
		for i := range alone {
			alone[i] /= p50
		}
		appendRound(&s.solo, alone)
	}
	s.steps = append(s.steps, clockStep(series))
}

// spoiled marks the samples that something outside disturbed. An index that is named
// twice is one sample.
func (s *Series) spoiled() []bool {
	marked := make([]bool, len(s.Nanos))
	for _, i := range s.Spoiled {
		marked[i] = true
	}
	return marked
}

func appendRound(s *stats.Sample, values []float64) {
	if len(values) > 0 {
		s.Rounds = append(s.Rounds, values)
	}
}

// clip keeps what is far away from being farther away: once a figure is many times
// beyond its limit, how much more must not look like noise.
func clip(x, low, high float64) float64 {
	if math.IsNaN(x) {
		return low
	}
	return max(low, min(x, high))
}
