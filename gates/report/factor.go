package report

import (
	"github.com/kernelgate/kernelgate/gates"

	"github.com/kernelgate/kernelgate/gates/number"
)

// Factor is how many times as fast something is: 1.63×, 6.7×, 120×.
func Factor(x float64) string {
	if x <= 0 {
		return dash
	}
	return number.Factor(x)
}

// gainInterval is the interval of a speedup; a dash where there is none. Goals are as in Speedup.
func gainInterval(e gates.Estimate, goals ...float64) string {
	return orDash(e.Interval(goals...))
}
