// Package simulate makes synthetic samples for the gate's own error rates: ratios
// whose truth is known, with the noise that rounds of fresh processes show, made up
// or recorded. Nothing it makes is ever judged as measured.
package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/kernelgate/kernelgate/gates/stats"
)

// Noise is relative noise in two layers, both as standard deviations of the
// logarithm: 0.01 is about 1 %.
type Noise struct {
	Between float64 // of rounds, normal
	Within  float64 // of pairs in a round
	Dof     float64 // Student's t degrees of freedom of the pairs, above 2; 0 means normal
}

// Ratios draws rounds of so many pairs each around the truth, which is the
// median of every value drawn. Noise that has no standard deviation panics.
func (n Noise) Ratios(rng *rand.Rand, truth float64, rounds, pairs int) stats.Sample {
	pair := n.pair(rng)
	s := stats.Sample{Rounds: make([][]float64, rounds)}
	for r := range s.Rounds {
		round := n.Between * rng.NormFloat64()
		s.Rounds[r] = make([]float64, pairs)
		for p := range s.Rounds[r] {
			s.Rounds[r][p] = truth * math.Exp(round+n.Within*pair())
		}
	}
	return s
}

// pair draws with standard deviation 1.
func (n Noise) pair(rng *rand.Rand) func() float64 {
	if n.Dof == 0 {
		return rng.NormFloat64
	}
	if !(n.Dof > 2) {
		panic(fmt.Sprintf("simulate: %v degrees of freedom leave the noise without a standard deviation; use more than 2, or 0 for normal noise", n.Dof))
	}
	scale := math.Sqrt((n.Dof - 2) / n.Dof)
	return distuv.StudentsT{Sigma: scale, Nu: n.Dof, Src: rng}.Rand
}
