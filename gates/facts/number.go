package facts

import (
	"fmt"
	"math"
	"strconv"
	"strings"

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
		return signed(e.Value)
	}
	return fmt.Sprintf("%s [%s, %s]", signed(e.Value), signed(*e.Lower), signed(*e.Upper))
}

// percent writes a share the way people read it: 16.1 %.
func percent(share float64) string {
	text := strconv.FormatFloat(math.Abs(share)*100, 'f', decimals(share), 64)
	return text + "\u00a0%"
}

// signed writes a change with its sign.
func signed(change float64) string {
	if text := percent(change); strings.Trim(text, "0.\u00a0%") == "" {
		return text
	}
	if change < 0 {
		return "−" + percent(change)
	}
	return "+" + percent(change)
}

func decimals(share float64) int {
	switch size := math.Abs(share) * 100; {
	case size < 1:
		return 2
	case size < 1000:
		return 1
	}
	return 0
}

// atMost writes a time in microseconds as an upper bound. It is rounded down, so that a time that reads the same is within it.
func atMost(micros float64) string {
	decimals := 2
	switch {
	case micros >= 1e4:
		decimals = 1
	case micros < 1:
		decimals = min(2-int(math.Floor(math.Log10(micros))), 9)
	}
	unit := math.Pow(10, float64(decimals))
	return strconv.FormatFloat(math.Floor(micros*unit)/unit, 'f', decimals, 64)
}

// duration writes microseconds the way people read them.
func duration(micros float64) string {
	switch {
	case micros >= 1e6:
		return fmt.Sprintf("%.3g s", micros/1e6)
	case micros >= 1e3:
		return fmt.Sprintf("%.3g ms", micros/1e3)
	}
	return fmt.Sprintf("%.3g µs", micros)
}

// plural is a count with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// thousands separates the groups of a large number: 6,144.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// amount writes a figure of a resource in its unit.
func amount(n int, unit string) string {
	if unit == "B" {
		return fmt.Sprint(quantity.Bytes(n))
	}
	return fmt.Sprint(quantity.Count(n))
}
