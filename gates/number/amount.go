package number

import (
	"math"
	"strconv"
	"strings"
)

// Amount is a figure with its unit; bytes become KiB or MiB where that reads
// better.
func Amount(x float64, unit string) string {
	if !Finite(x) {
		return Dash
	}
	if unit == "B" && math.Abs(x) >= 1<<20 {
		x, unit = x/(1<<20), "MiB"
	} else if unit == "B" && math.Abs(x) >= 1<<10 {
		x, unit = x/(1<<10), "KiB"
	}
	s := Significant(x, 4)
	switch {
	case x == math.Trunc(x) && math.Abs(x) < 1e15:
		s = strings.Replace(strconv.FormatFloat(x, 'f', 0, 64), "-", Minus, 1)
	case math.Abs(x) < 1e6 && (unit == "KiB" || unit == "MiB"):
		// Limits are mostly whole: 48.02 KiB is over 48 KiB, and must not be shown as 48 KiB.
		s = strings.Replace(Rounded(x, 1, []float64{math.Round(x)}), "-", Minus, 1)
	}
	if unit == "" {
		return s
	}
	return s + string(NBSP) + unit
}

// PlainCondition is the same with plain spaces: "≤ 48KiB" is "≤ 48 KiB".
func PlainCondition(s string) string {
	return strings.ReplaceAll(Condition(s), string(NBSP), " ")
}

// PlainAmount is the same with plain spaces, for pages.
func PlainAmount(x float64, unit string) string {
	return strings.ReplaceAll(Amount(x, unit), string(NBSP), " ")
}

// AmountOf is an amount that may be unknown.
func AmountOf(x *float64, unit string) string {
	if x == nil {
		return Dash
	}
	return Amount(*x, unit)
}

// Change is an amount before and after.
func Change(from, to *float64, unit string) string {
	if from == nil || to == nil || !Finite(*to-*from) {
		return Dash
	}
	switch d := *to - *from; {
	case d == 0:
		return "0"
	case d > 0:
		return "+" + Amount(d, unit)
	default:
		return Amount(d, unit)
	}
}

// Count is a number of things; none is unknown.
func Count(n int) string {
	if n <= 0 {
		return Dash
	}
	return strconv.Itoa(n)
}

// Plural is a count with its noun.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Bytes is a size for pages, with plain spaces: 1.5 MiB.
func Bytes(n float64) string {
	for _, unit := range []string{"B", "KiB", "MiB", "GiB"} {
		if n < 1024 || unit == "GiB" {
			return strconv.FormatFloat(math.Round(n*10)/10, 'f', -1, 64) + " " + unit
		}
		n /= 1024
	}
	return ""
}
