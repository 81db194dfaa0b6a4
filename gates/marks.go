package gates

import (
	"slices"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/stats"
)

// marks counts the samples that a runner marked as disturbed from outside. A kernel can influence
// the marks: one that draws much power is throttled, and a block of slow samples that is left out
// may have been slow because of the kernel. So a pass must hold with the marked samples too, and
// marks that come with the candidate are suspicious.
type marks struct {
	taken, disturbed int // on all three sides
	// A value for each sample, 2 where it is marked and else 1: with the candidate loaded,
	// and with only the baseline loaded.
	withCandidate, withoutCandidate stats.Sample
}

func (m *marks) add(series *Series, disturbed []bool) {
	m.taken += len(disturbed)
	n := 0
	for _, marked := range disturbed {
		if marked {
			n++
		}
	}
	m.disturbed += n
	if len(series.Solo) == 0 || len(disturbed) == 0 {
		return
	}
	m.withCandidate.Rounds = append(m.withCandidate.Rounds, marked(n, len(disturbed)))
	m.withoutCandidate.Rounds = append(m.withoutCandidate.Rounds, marked(series.SoloDisturbed, len(series.Solo)))
}

// marked is a list of n values, the first so many 2 and the rest 1.
func marked(first, n int) []float64 {
	first = min(first, n)
	return append(slices.Repeat([]float64{2}, first), slices.Repeat([]float64{1}, n-first)...)
}

// markedMore is how much more often a sample may be marked with the candidate loaded than without
// it: (1 + share with) / (1 + share without).
const markedMore = 1.05

// moreWithCandidate tests whether the candidate brings more marks than there were without it.
func (m *marks) moreWithCandidate(draws *stats.ResamplePlan, shape string) suspect {
	if m.disturbed == 0 {
		return unsuspected
	}
	d, err := draws.MeanRatio(m.withCandidate, m.withoutCandidate)
	if err != nil || d.Estimate <= markedMore {
		return unsuspected
	}
	return suspect{d.PAbove(markedMore), facts.BringsDisturbance{Shape: shape, With: share(m.withCandidate), Before: share(m.withoutCandidate)}}
}

func share(s stats.Sample) float64 {
	n, marked := 0, 0
	for _, round := range s.Rounds {
		n += len(round)
		for _, v := range round {
			if v == 2 {
				marked++
			}
		}
	}
	return float64(marked) / float64(max(n, 1))
}

// fault is why the marks make the figures worthless, or nil.
func (m *marks) fault(shape string) facts.Fact {
	if 2*m.disturbed <= m.taken {
		return nil
	}
	return facts.MostlyDisturbed{Shape: shape, Disturbed: m.disturbed, Taken: m.taken}
}
