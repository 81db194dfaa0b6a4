package simulate

import (
	"math"
	"math/rand/v2"

	"github.com/kernelgate/kernelgate/gates/stats"
)

// A RecordedControl is the A/A control of one recorded run on one shape: the logarithms of its
// blocks' ratios by round, around 0, and how far the run was off as a whole.
type RecordedControl struct {
	Shape  string
	Rounds [][]float64
	Offset float64
}

// NewRecordedControl takes the ratios of a control. It is not ok if they are too few for a median.
func NewRecordedControl(shape string, ratios stats.Sample) (c RecordedControl, ok bool) {
	draws, err := stats.NewResamplePlan(stats.MinResamples, 1)
	if err != nil {
		return c, false
	}
	centre, err := draws.Quantile(ratios, 0.5)
	if err != nil || !(centre.Estimate > 0) {
		return c, false
	}
	c = RecordedControl{Shape: shape, Offset: math.Log(centre.Estimate)}
	for _, round := range ratios.Rounds {
		var logs []float64
		for _, ratio := range round {
			logs = append(logs, math.Log(ratio)-c.Offset)
		}
		c.Rounds = append(c.Rounds, logs)
	}
	return c, true
}

// Recorded makes a model from recorded controls. A simulated run takes whole rounds of one record for
// the candidate and of another on the same shape for the control. If offsets is true, each is also
// off by what a run on that shape was seen to be off.
func Recorded(name string, records []RecordedControl, offsets bool) Model {
	byShape := map[string][]RecordedControl{}
	for _, r := range records {
		byShape[r.Shape] = append(byShape[r.Shape], r)
	}
	return Model{name, func(rng *rand.Rand) func(int) DrawFactor {
		alike := byShape[records[rng.IntN(len(records))].Shape]
		of, offset := map[rune]RecordedControl{}, map[rune]float64{}
		for _, side := range []rune{Candidate, Control} {
			of[side] = alike[rng.IntN(len(alike))]
			if offsets {
				offset[side] = alike[rng.IntN(len(alike))].Offset
			}
		}
		return func(int) DrawFactor {
			round := map[rune][]float64{}
			for _, side := range []rune{Candidate, Control} {
				rounds := of[side].Rounds
				round[side] = rounds[rng.IntN(len(rounds))]
			}
			block := map[rune]float64{}
			return func(side rune, place int) float64 {
				if side == Baseline {
					return 0
				}
				// Both samples of a side in a block have the block's ratio.
				if place < 3 {
					block[side] = round[side][rng.IntN(len(round[side]))]
				}
				return -block[side] - offset[side]
			}
		}
	}}
}
