package report

import (
	"strconv"

	"github.com/kernelgate/kernelgate/gates"
)

// largeFactor is where a speedup reads better as a factor than in percent: 4.1× instead of +311.6 %.
const largeFactor = 3

// Factor is how many times as fast something is: 1.63×, 6.7×, 120×.
func Factor(x float64) string {
	decimals := 1
	switch {
	case !finite(x) || x <= 0:
		return dash
	case x < largeFactor:
		decimals = 2
	case x >= 100:
		decimals = 0
	}
	return strconv.FormatFloat(x, 'f', decimals, 64) + "×"
}

// gain is a speedup: in percent, or as a factor where it is large.
func gain(x float64) string {
	if x < largeFactor-1 {
		return percent(x)
	}
	return Factor(1 + x)
}

// gainInterval is the interval of a speedup; a dash where there is none.
func gainInterval(e gates.Estimate) string {
	bound := func(x *float64) string {
		if x == nil {
			return dash
		}
		return gain(*x)
	}
	if e.Lower == nil && e.Upper == nil {
		return dash
	}
	return "[" + bound(e.Lower) + "," + string(nbsp) + bound(e.Upper) + "]"
}
