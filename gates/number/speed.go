package number

import (
	"math"
	"strings"
)

// factorsFrom is the speedup from which on a factor reads better than a share.
const factorsFrom = 2

// Speedup is a gain: 0.161 is "+16.1 %", and a large one is a factor: 5.4 is "6.4×". Goals are gains that it must not be
// rounded onto.
func Speedup(x float64, goals ...float64) string { return SpeedupBound(x, x, goals...) }

// SpeedupBound is a bound of a gain, written as the gain itself is: one of "3.0×" has no bound of "+199.0 %".
func SpeedupBound(bound, value float64, goals ...float64) string {
	if value < factorsFrom || !Finite(value) || !Finite(bound) {
		return Percent(bound, goals...)
	}
	var factors []float64
	for _, g := range goals {
		factors = append(factors, 1+g)
	}
	return Factor(1+bound, factors...)
}

// Factor is how many times as fast something is: "1.25×", "6.4×", "120×".
func Factor(ratio float64, goals ...float64) string {
	switch {
	case !Finite(ratio):
		return Dash
	case math.Abs(ratio) >= 1e6:
		return Significant(ratio, 3) + "×"
	case ratio >= 100:
		return Rounded(ratio, 0, goals) + "×"
	case ratio >= 1+factorsFrom:
		return Rounded(ratio, 1, goals) + "×"
	}
	return strings.Replace(Rounded(ratio, 2, goals), "-", Minus, 1) + "×"
}
