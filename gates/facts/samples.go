package facts

import (
	"fmt"

	"github.com/kernelgate/kernelgate/gates/number"
)

// A TwoGroups is samples of a side that fall into two groups: a median between them stands for neither.
type TwoGroups struct {
	Side, Shape string
	Apart       float64 // by which share the slower group takes longer
	Slow        float64 // the share of samples in the slower group
}

func (g TwoGroups) Sentence() string {
	return fmt.Sprintf("the samples of the %s on %s fall into two groups: %s of them take %s longer", g.Side, g.Shape, number.Share(g.Slow), number.Share(g.Apart))
}

// A Drifts is a side whose time changes steadily from round to round.
type Drifts struct {
	Side, Shape string
	Change      float64 // of the time, from the first third of the rounds to the last
}

func (d Drifts) Sentence() string {
	return fmt.Sprintf("the time of the %s on %s drifts by %s from the first rounds to the last", d.Side, d.Shape, number.Percent(d.Change))
}
