package facts

import (
	"fmt"

	"github.com/kernelgate/kernelgate/gates/number"
)

// A ClockMoved is a clock of the device that moved within a round by more than the sides differ.
type ClockMoved struct {
	Shape      string
	Round      int
	Low, High  float64 // MHz
	Difference float64 // between the sides' times, as a share
}

func (c ClockMoved) Sentence() string {
	return fmt.Sprintf("the clock moved from %.0f to %.0f MHz (%s) within round %d on %s, and the sides differ by %s: it can explain a difference between single samples; pairs cancel what both sides share",
		c.Low, c.High, number.Share(c.High/c.Low-1), c.Round, c.Shape, number.Share(c.Difference))
}
