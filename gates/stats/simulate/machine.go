package simulate

import (
	"math"
	"math/rand/v2"
	"strings"
)

// The sides of a block, as evidence names them.
const (
	Baseline  = 'b'
	Candidate = 'c'
	Control   = 'a'
)

// A Model is a kind of noise that a machine may have. It tells no side from the other but by chance,
// so that it hides the truth and does not move it.
type Model struct {
	Name string
	// Run draws what is the same for a whole run, and gives a function that starts a round of so many
	// samples.
	Run func(rng *rand.Rand) func(samples int) DrawFactor
}

// A DrawFactor draws one sample of a round: the logarithm of a time's factor, for the side and the
// place in its block.
type DrawFactor = func(side rune, place int) float64

// A Machine makes the samples of a run whose truth is known: baseline, candidate and control
// alternate in mirrored blocks of random order.
type Machine struct {
	Model  Model
	Ratio  float64 // baseline/candidate, the truth
	Blocks int     // of a round
	Tick   float64 // of the clock, as a share of the baseline's time; 0 for a fine one
	// Alter changes a sample after it was drawn; nil for none.
	Alter func(round, block int, side rune, ns float64) float64
}

// Nanos is the baseline's time.
const Nanos = 1e5

// Samples are those of one round: a letter for each sample in blocks, and its time.
type Samples struct {
	Order string
	Nanos []float64
}

// Start starts a run: every call of the result measures one more round.
func (m Machine) Start(rng *rand.Rand) func() Samples {
	start := m.Model.Run(rng)
	round := -1
	return func() Samples {
		round++
		var text strings.Builder
		s := Samples{Nanos: make([]float64, 0, 6*m.Blocks)}
		draw := start(6 * m.Blocks)
		for block := range m.Blocks {
			order := []rune{Baseline, Candidate, Control}
			rng.Shuffle(3, func(i, k int) { order[i], order[k] = order[k], order[i] })
			order = append(order, order[2], order[1], order[0])
			if block > 0 {
				text.WriteByte(' ')
			}
			for place, side := range order {
				ns := Nanos * math.Exp(draw(side, place))
				if side == Candidate {
					ns /= m.Ratio
				}
				if m.Alter != nil {
					ns = m.Alter(round, block, side, ns)
				}
				if m.Tick > 0 {
					ns = math.Round(ns/m.Tick/Nanos) * m.Tick * Nanos
				}
				text.WriteRune(side)
				s.Nanos = append(s.Nanos, ns)
			}
		}
		s.Order = text.String()
		return s
	}
}
