package number

import (
	"fmt"
	"math"
	"strconv"
)

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
