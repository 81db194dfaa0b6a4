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

// String is the figure as a change, with its interval, as stored verdicts have it: +16.1 % [+15.8 %, +16.4 %]. Reports use Gain.
func (e Estimate) String() string {
	if e.Lower == nil {
		return number.Percent(e.Value)
	}
	return fmt.Sprintf("%s [%s, %s]", number.Percent(e.Value), number.Percent(*e.Lower), number.Percent(*e.Upper))
}

// Gain is the figure in the notation for speed, with the digits that its interval allows: "+16.1 %", "6.4×", "2.9 % slower".
// Goals are gains that it must not be rounded onto.
func (e Estimate) Gain(goals ...float64) string {
	return number.Gain(e.Value, e.Lower, e.Upper, goals...)
}

// Interval is the interval in the same notation, such as "[+15.8 %, +16.4 %]"; "" where there is none.
func (e Estimate) Interval(goals ...float64) string {
	return number.GainInterval(e.Value, e.Lower, e.Upper, goals...)
}

// Words is the figure in a sentence: "16.1 % faster".
func (e Estimate) Words(goals ...float64) string {
	return number.GainWords(e.Value, e.Lower, e.Upper, goals...)
}

// Known reports whether there is a figure at all. A shape with too few samples has times and no speedup.
func (e Estimate) Known() bool {
	return number.Finite(e.Value) && e.Value > -1 && e != Estimate{}
}

// amount writes a figure of a resource in its unit.
func amount(n int, unit string) string {
	if unit == "B" {
		return fmt.Sprint(quantity.Bytes(n))
	}
	return fmt.Sprint(quantity.Count(n))
}
