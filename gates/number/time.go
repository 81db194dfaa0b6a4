package number

import (
	"fmt"
	"math"
	"strconv"
)

// Time is a time with its unit and three significant digits: "57.6 µs", "1.39 ms". It takes microseconds. No launch takes no time:
// zero stands for a figure that was not there. Goals are times that it must not seem to meet, or to miss, by rounding alone.
func Time(micros float64, goals ...float64) string {
	figure, unit := inUnit(micros, 3, goals)
	if figure == Dash {
		return Dash
	}
	return figure + string(NBSP) + unit
}

// FromTo is a time before and after: "57.6 → 46.1 µs", "4.25 ms → 720 µs".
func FromTo(before, after float64, goals ...float64) string {
	figure, unit := inUnit(before, 3, nil)
	if _, same := inUnit(after, 3, goals); figure != Dash && unit == same {
		return figure + " → " + Time(after, goals...)
	}
	return Time(before) + " → " + Time(after, goals...)
}

// TimeAtMost is a time as an upper bound. It is rounded down, so that a time that reads the same is within it, and has four
// digits, so that it asks for little more than the bound.
func TimeAtMost(micros float64) string {
	if !Finite(micros) || micros <= 0 {
		return Dash
	}
	step := math.Pow(10, math.Floor(math.Log10(micros))-3)
	figure, unit := inUnit(math.Floor(micros/step*(1+1e-12))*step, 4, nil)
	return figure + string(NBSP) + unit
}

// inUnit is a time in the unit that fits it.
func inUnit(micros float64, digits int, goals []float64) (figure, unit string) {
	if !Finite(micros) || micros <= 0 {
		return Dash, ""
	}
	scale, unit := 1.0, "µs"
	switch place := leading(micros, digits); { // of what is shown: 999.7 µs would be 1000 µs
	case place >= 6:
		scale, unit = 1e6, "s"
	case place >= 3:
		scale, unit = 1e3, "ms"
	}
	x := micros / scale
	if x >= 1e7 || x < 1e-6 {
		return Significant(x, digits), unit
	}
	var scaled []float64
	for _, g := range goals {
		scaled = append(scaled, g/scale)
	}
	return Rounded(x, max(0, digits-1-leading(x, digits)), scaled), unit
}

// AtMost writes a time in microseconds as an upper bound. It is rounded down, so that a time that reads the same is within it.
func AtMost(micros float64) string {
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

// ShortTime writes microseconds in the unit that fits them: 12.3 ms.
func ShortTime(micros float64) string {
	switch {
	case micros >= 1e6:
		return fmt.Sprintf("%.3g s", micros/1e6)
	case micros >= 1e3:
		return fmt.Sprintf("%.3g ms", micros/1e3)
	}
	return fmt.Sprintf("%.3g µs", micros)
}

// Thousands separates the groups of a large number: 6,144.
func Thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Elapsed is a duration for pages, to a tenth where that can be seen: 12.3 s; "" where there is none.
func Elapsed(s float64) string {
	switch {
	case s <= 0 || math.IsNaN(s):
		return ""
	case s < 1:
		return fmt.Sprintf("%.0f ms", 1000*s)
	case s < 120:
		return fmt.Sprintf("%.1f s", s)
	case s < 7200:
		return fmt.Sprintf("%.0f min", s/60)
	}
	return fmt.Sprintf("%.1f h", s/3600)
}

// About is a duration for which seconds do not matter.
func About(seconds float64) string {
	switch {
	case seconds < 100:
		return fmt.Sprintf("%.0f s", max(1, seconds))
	case seconds < 6000:
		return fmt.Sprintf("%.0f min", seconds/60)
	}
	return fmt.Sprintf("%.0f h", seconds/3600)
}
