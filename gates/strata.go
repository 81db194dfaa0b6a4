package gates

import (
	"math"
	"slices"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/stats"
)

// strata is the kind of input, or stratum, of each block of each round. A kernel may take a
// different path for each kind of input and gain more on one than on the next. The median of all
// blocks would then be that of the kinds in the middle, and jump from one to the next with the
// noise. So every kind has the same weight: the figure is the geometric mean of the kinds' medians,
// and a ratio is compared only with those of its kind.
type strata struct {
	kinds   []string
	rounds  [][]int   // of a round's blocks, in the order of its ratios
	medians []float64 // of the ratios, by kind
	errors  []float64 // standard errors of the medians, as shares of them; nil where unknown
}

// kind is the number of a block's distribution.
func (s *strata) kind(series *Series, block int) int {
	name := ""
	if n := len(series.Distributions); n > 0 {
		name = series.Distributions[block%n]
	}
	if i := slices.Index(s.kinds, name); i >= 0 {
		return i
	}
	s.kinds = append(s.kinds, name)
	return len(s.kinds) - 1
}

// split is the ratios of each kind.
func (s *strata) split(sample stats.Sample) []stats.Sample {
	if len(s.kinds) < 2 || len(sample.Rounds) != len(s.rounds) {
		return nil
	}
	byKind := make([]stats.Sample, len(s.kinds))
	for r, ratios := range sample.Rounds {
		of := make([][]float64, len(s.kinds))
		for i, ratio := range ratios {
			k := s.rounds[r][i]
			of[k] = append(of[k], ratio)
		}
		for k := range of {
			appendRound(&byKind[k], of[k])
		}
	}
	return byKind
}

// centre scales the ratios of all kinds to the geometric mean of the kinds' medians. It returns the
// medians; with one kind it changes nothing.
func (s *strata) centre(sample stats.Sample) []float64 {
	if len(sample.Rounds) != len(s.rounds) {
		return nil
	}
	return centreKinds(sample, s.rounds, len(s.kinds))
}

// centreKinds is level for a sample whose values are of the given kinds.
func centreKinds(sample stats.Sample, kinds [][]int, n int) []float64 {
	if n < 2 {
		return nil
	}
	byKind := make([][]float64, n)
	for r, ratios := range sample.Rounds {
		for i, ratio := range ratios {
			byKind[kinds[r][i]] = append(byKind[kinds[r][i]], ratio)
		}
	}
	medians, mean, present := make([]float64, n), 0.0, 0
	for k, ratios := range byKind {
		if len(ratios) > 0 {
			medians[k] = stats.Describe(ratios).P50
			mean += math.Log(medians[k])
			present++
		}
	}
	centre := math.Exp(mean / float64(present))
	for r, ratios := range sample.Rounds {
		for i := range ratios {
			ratios[i] *= centre / medians[kinds[r][i]]
		}
	}
	return medians
}

// medianErrors estimates the standard error of each kind's median from the median deviation, which a few disturbed samples
// do not move.
func medianErrors(byKind []stats.Sample) []float64 {
	errors := make([]float64, len(byKind))
	for k, one := range byKind {
		ratios := slices.Concat(one.Rounds...)
		if len(ratios) == 0 {
			continue
		}
		median := stats.Describe(ratios).P50
		for i, ratio := range ratios {
			ratios[i] = math.Abs(ratio/median - 1)
		}
		// 1.4826 makes a median deviation a standard deviation, and √(π/2) that of a mean the one of a median.
		errors[k] = 1.4826 * math.Sqrt(math.Pi/2) * stats.Describe(ratios).P50 / math.Sqrt(float64(len(ratios)))
	}
	return errors
}

// differsBy is how many standard errors apart two kinds must be to be shown side by side. Among the
// ten pairs of five kinds, noise exceeds it in about one shape of forty.
const differsBy = 3

// differs reports whether the kinds of input have speedups that a reader should see side by side: two of them are more than 2 %
// and more than the noise apart.
func (s *strata) differs() bool {
	for i, a := range s.medians {
		for j, b := range s.medians {
			noise := 0.0
			if s.errors != nil {
				noise = differsBy * math.Hypot(s.errors[i], s.errors[j])
			}
			if a > 0 && b > 0 && b/a > 1+max(0.02, noise) {
				return true
			}
		}
	}
	return false
}

// speedups is the speedup on every kind.
func (s *strata) speedups() []facts.KindSpeed {
	var all []facts.KindSpeed
	for k, name := range s.kinds {
		if s.medians[k] > 0 {
			all = append(all, facts.KindSpeed{Kind: name, Speedup: s.medians[k] - 1})
		}
	}
	return all
}
