package gates

import (
	"slices"
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

	baseline, candidate []float64 // all clean samples in microseconds, for the reader
	pairs, spoiled      int
	cold                bool
}

// collect reads one shape out of rounds. A block with a spoiled sample gives no
// pair; nothing is dropped from the evidence itself.
func collect(rounds []Round, shape string) samples {
	s := samples{cold: true}
	for _, r := range rounds {
		for _, series := range r.Series {
			if series.Shape == shape {
				s.add(series)
			}
		}
	}
	return s
}

func (s *samples) add(series Series) {
	var ratios, control, latencies, beside []float64
	at := 0
	for block := range strings.FieldsSeq(series.Order) {
		sum, n := map[rune]float64{}, map[rune]float64{}
		spoiled := map[rune]bool{}
		for _, side := range block {
			micros := series.Nanos[at] / 1e3
			if slices.Contains(series.Spoiled, at) {
				spoiled[side] = true
				s.spoiled++
			} else {
				sum[side] += micros
				n[side]++
				s.keep(side, micros)
				if side == SideCandidate {
					latencies = append(latencies, micros)
				}
			}
			at++
		}
		mean := func(side rune) (float64, bool) { return sum[side] / n[side], n[side] > 0 && !spoiled[side] }
		b, okB := mean(SideBaseline)
		if c, ok := mean(SideCandidate); ok && okB {
			ratios = append(ratios, b/c)
		}
		if a, ok := mean(SideControl); ok && okB {
			control = append(control, b/a)
		}
		if okB {
			beside = append(beside, b)
		}
	}
	s.pairs += len(ratios)
	s.cold = s.cold && series.Cold
	appendRound(&s.ratios, ratios)
	appendRound(&s.control, control)
	appendRound(&s.latencies, latencies)
	if len(series.Solo) > 0 && len(beside) > 0 {
		alone := stats.Describe(series.Solo).P50 / 1e3
		for i := range beside {
			beside[i] /= alone
		}
		appendRound(&s.solo, beside)
	}
}

func (s *samples) keep(side rune, micros float64) {
	switch side {
	case SideBaseline:
		s.baseline = append(s.baseline, micros)
	case SideCandidate:
		s.candidate = append(s.candidate, micros)
	}
}

func appendRound(s *stats.Sample, values []float64) {
	if len(values) > 0 {
		s.Rounds = append(s.Rounds, values)
	}
}
