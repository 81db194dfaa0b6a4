package facts

import (
	"fmt"

	"github.com/kernelgate/kernelgate/gates/number"
	"github.com/kernelgate/kernelgate/policies/quantity"
)

// An Estimate is a figure with the interval that decides.
type Estimate struct {
	Value float64  `json:"value"`
	Lower *float64 `json:"lower,omitempty"` // nil where there are too few rounds
	Upper *float64 `json:"upper,omitempty"`
}

// String is the figure as a change, with its interval: +16.1 % [+15.8 %, +16.4 %].
func (e Estimate) String() string {
	if e.Lower == nil {
		return number.Percent(e.Value)
	}
	return fmt.Sprintf("%s [%s, %s]", number.Percent(e.Value), number.Percent(*e.Lower), number.Percent(*e.Upper))
}

// amount writes a figure of a resource in its unit.
func amount(n int, unit string) string {
	if unit == "B" {
		return fmt.Sprint(quantity.Bytes(n))
	}
	return fmt.Sprint(quantity.Count(n))
}
