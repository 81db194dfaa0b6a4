package gates

import (
	"math"
	"slices"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/stats"
)

const (
	unsteadyLeast = 0.01 // a smaller gap or drift is not worth a sentence
	groupLeast    = 0.2  // of the samples must be in the smaller of two groups
	groupGap      = 3.0  // standard deviations of a group that the gap must have
	driftLeast    = 0.9  // rank correlation between the rounds and their times
	driftRounds   = 6
)

// Unsteady says what a median hides: samples of a side that fall into two groups, times that drift from round to round, and a clock
// that moves within a round. It decides nothing. Pairs cancel a drift that both sides have.
func Unsteady(e *Evidence) []facts.Fact {
	if e.Performance == nil {
		return nil
	}
	var all []facts.Fact
	for _, shape := range e.Shapes {
		s := collect(e.Performance.Rounds, shape.Name, clean)
		if moved, found := clockMoved(e.Performance.Rounds, shape, s); found {
			all = append(all, moved)
		}
		for _, side := range []struct {
			name  string
			times timedSample
		}{{"baseline", s.baselineTimes}, {"candidate", s.candidateTimes}} {
			rounds := side.times.relative(len(s.strata.kinds))
			if apart, slow, found := twoGroups(slices.Concat(rounds...)); found {
				all = append(all, facts.TwoGroups{Side: side.name, Shape: shape.Label(), Apart: math.Expm1(apart), Slow: slow})
			}
			if change, found := drift(rounds); found {
				all = append(all, facts.Drifts{Side: side.name, Shape: shape.Label(), Change: math.Expm1(change)})
			}
		}
	}
	return all
}

// relative is the logarithm of each time over the median of its kind of input, by round.
func (t timedSample) relative(kinds int) [][]float64 {
	medians := t.byKind(kinds)
	var rounds [][]float64
	for r, round := range t.Rounds {
		var logs []float64
		for i, micros := range round {
			if median := medians[t.kinds[r][i]]; median > 0 && micros > 0 {
				logs = append(logs, math.Log(micros/median))
			}
		}
		if len(logs) > 0 {
			rounds = append(rounds, logs)
		}
	}
	return rounds
}

// twoGroups looks for a gap that is wide against the spread on both sides of it.
func twoGroups(values []float64) (apart, slow float64, found bool) {
	slices.Sort(values)
	n := len(values)
	least := max(5, int(groupLeast*float64(n)))
	at := 0
	for i := least; i <= n-least; i++ {
		if at == 0 || values[i]-values[i-1] > values[at]-values[at-1] {
			at = i
		}
	}
	if at == 0 {
		return 0, 0, false
	}
	fast, rest := stats.Describe(values[:at]), stats.Describe(values[at:])
	gap := values[at] - values[at-1]
	if gap < unsteadyLeast || gap < groupGap*max(fast.Std, rest.Std) {
		return 0, 0, false
	}
	return rest.Mean - fast.Mean, float64(n-at) / float64(n), true
}

// drift looks for a steady change of the rounds' medians.
func drift(rounds [][]float64) (change float64, found bool) {
	n := len(rounds)
	if n < driftRounds {
		return 0, false
	}
	medians := make([]float64, n)
	for r, values := range rounds {
		medians[r] = stats.Describe(values).P50
	}
	third := n / 3
	change = stats.Describe(medians[n-third:]).Mean - stats.Describe(medians[:third]).Mean
	return change, math.Abs(change) >= unsteadyLeast && math.Abs(rankCorrelation(medians)) >= driftLeast
}

// rankCorrelation is Spearman's, of values with their order.
func rankCorrelation(values []float64) float64 {
	n := float64(len(values))
	sum := 0.0
	for i, v := range values {
		rank := 0
		for _, other := range values {
			if other < v {
				rank++
			}
		}
		sum += float64((rank - i) * (rank - i))
	}
	return 1 - 6*sum/(n*(n*n-1))
}
