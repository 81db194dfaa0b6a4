package facts

import (
	"fmt"

	"github.com/kernelgate/kernelgate/gates/number"
)

// A CodeSizes is the machine code of both sides, in bytes.
type CodeSizes struct {
	Before, After int
	Limit         string // of the growth
}

// Growth is the share by which the code grew; it is negative for less code.
func (c CodeSizes) Growth() float64 { return float64(c.After-c.Before) / float64(c.Before) }

func (c CodeSizes) Sentence() string {
	return fmt.Sprintf("machine code %s → %s, %s (limit %s)", amount(c.Before, "B"), amount(c.After, "B"), number.Percent(c.Growth()), c.Limit)
}
