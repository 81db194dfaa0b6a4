package report

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

const (
	dash  = "–"      // an unknown value
	minus = "−"      // the true minus sign
	nbsp  = '\u00a0' // between a figure and its unit, which never part
)

func orDash[T ~string](s T) string {
	if strings.TrimSpace(string(s)) == "" {
		return dash
	}
	return string(s)
}

var (
	bareUnit  = regexp.MustCompile(`([0-9])(%|us\b|KiB\b|MiB\b|B\b)`)
	bareMinus = regexp.MustCompile(`(^|[\s\x{a0}])-([0-9])`)
)

// conditionWords writes a policy's condition the way the figures beside it are
// written: ">= +10%" is "≥ +10 %".
func conditionWords(s string) string {
	s = strings.NewReplacer(">= ", "≥"+string(nbsp), "<= ", "≤"+string(nbsp), "> ", ">"+string(nbsp), "< ", "<"+string(nbsp),
		">=", "≥", "<=", "≤").Replace(s)
	s = bareMinus.ReplaceAllString(s, "${1}"+minus+"$2")
	s = bareUnit.ReplaceAllString(s, "$1"+string(nbsp)+"$2")
	return orDash(strings.ReplaceAll(s, string(nbsp)+"us", string(nbsp)+"µs"))
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// micros is a time in microseconds, without its unit. No launch takes no time:
// zero stands for a figure that was not there. Goals are times that it must not
// seem to meet, or to miss, by rounding alone.
func micros(x float64, goals ...float64) string {
	if !finite(x) || x <= 0 {
		return dash
	}
	var decimals int
	switch {
	case x >= 1e7 || x < 1e-6:
		return significant(x, 4)
	case x >= 1e5:
	case x >= 1e4:
		decimals = 1
	case x >= 1:
		decimals = 2
	default:
		decimals = 2 - int(math.Floor(math.Log10(x)))
	}
	return rounded(x, decimals, goals)
}

// Micros is a time with its unit: "57.63 µs".
func Micros(x float64, goals ...float64) string {
	if s := micros(x, goals...); s != dash {
		return s + string(nbsp) + "µs"
	}
	return dash
}

// Percent is a share of change with its sign: 0.161 is "+16.1 %".
func Percent(x float64) string { return percent(x) }

// factorsFrom is the speedup from which on a factor reads better than a share.
const factorsFrom = 2

// Speedup is a gain: 0.161 is "+16.1 %", and a large one is a factor: 5.4 is "6.4×". Goals are gains that it must not be
// rounded onto.
func Speedup(x float64, goals ...float64) string { return SpeedupBound(x, x, goals...) }

// SpeedupBound is a bound of a gain, written as the gain itself is: one of "3.0×" has no bound of "+199.0 %".
func SpeedupBound(bound, value float64, goals ...float64) string {
	if value < factorsFrom || !finite(value) || !finite(bound) {
		return percent(bound, goals...)
	}
	var factors []float64
	for _, g := range goals {
		factors = append(factors, 1+g)
	}
	return factor(1+bound, factors...)
}

// factor is how many times as fast something is: "1.25×", "6.4×", "120×".
func factor(ratio float64, goals ...float64) string {
	switch {
	case !finite(ratio):
		return dash
	case math.Abs(ratio) >= 1e6:
		return significant(ratio, 3) + "×"
	case ratio >= 100:
		return rounded(ratio, 0, goals) + "×"
	case ratio >= 1+factorsFrom:
		return rounded(ratio, 1, goals) + "×"
	}
	return strings.Replace(rounded(ratio, 2, goals), "-", minus, 1) + "×"
}

// percent is a share of change with its sign: 0.161 is "+16.1 %". Goals are
// shares that it must not be rounded onto.
func percent(x float64, goals ...float64) string {
	s := share(math.Abs(x), goals...)
	switch {
	case s == dash || strings.Trim(s, "0. %"+string(nbsp)) == "":
		return s
	case x < 0:
		return minus + s
	}
	return "+" + s
}

// share is a fraction in percent, without a sign.
func share(x float64, goals ...float64) string {
	p := 100 * x
	var s string
	switch {
	case !finite(p):
		return dash
	case p == 0:
		s = "0"
	case math.Abs(p) >= 1e6 || math.Abs(p) < 1e-4:
		s = significant(p, 3)
	case math.Abs(p) >= 1000:
		s = rounded(p, 0, nil)
	case math.Abs(p) >= 1:
		s = rounded(p, 1, hundredfold(goals))
	default:
		s = rounded(p, 2, hundredfold(goals))
	}
	return s + string(nbsp) + "%"
}

func hundredfold(goals []float64) []float64 {
	out := make([]float64, len(goals))
	for i, g := range goals {
		out[i] = 100 * math.Abs(g)
	}
	return out
}

// rounded adds decimals until x does not read like a goal that it is not: 9.97
// against a goal of 10 is no "10.0".
func rounded(x float64, decimals int, goals []float64) string {
	for d := decimals; ; d++ {
		s := strconv.FormatFloat(x, 'f', d, 64)
		seen, _ := strconv.ParseFloat(s, 64)
		clear := true
		for _, g := range goals {
			clear = clear && (seen != g || math.Abs(x-g) <= 1e-9*math.Abs(g))
		}
		if clear || d >= decimals+4 {
			return s
		}
	}
}

// significant is any figure with so many significant digits at most.
func significant(x float64, digits int) string {
	if !finite(x) {
		return dash
	}
	s := strconv.FormatFloat(x, 'g', digits, 64)
	if a := math.Abs(x); strings.Contains(s, "e") && a >= 1e-4 && a < 1e6 {
		s = strconv.FormatFloat(x, 'f', 0, 64)
	}
	s = strings.NewReplacer("e-0", "e-", "e+0", "e", "e+", "e").Replace(s)
	if rest, negative := strings.CutPrefix(s, "-"); negative {
		return minus + rest
	}
	return s
}

// amount is a figure with its unit; bytes become KiB or MiB where that reads
// better.
func amount(x float64, unit string) string {
	if !finite(x) {
		return dash
	}
	if unit == "B" && math.Abs(x) >= 1<<20 {
		x, unit = x/(1<<20), "MiB"
	} else if unit == "B" && math.Abs(x) >= 1<<10 {
		x, unit = x/(1<<10), "KiB"
	}
	s := significant(x, 4)
	switch {
	case x == math.Trunc(x) && math.Abs(x) < 1e15:
		s = strings.Replace(strconv.FormatFloat(x, 'f', 0, 64), "-", minus, 1)
	case math.Abs(x) < 1e6 && (unit == "KiB" || unit == "MiB"):
		// Limits are mostly whole: 48.02 KiB is over 48 KiB, and must not be shown as 48 KiB.
		s = strings.Replace(rounded(x, 1, []float64{math.Round(x)}), "-", minus, 1)
	}
	if unit == "" {
		return s
	}
	return s + string(nbsp) + clean(unit)
}

// Condition is a policy's condition as the figures next to it are written, with plain spaces: "≤ 48KiB" is "≤ 48 KiB".
func Condition(s string) string {
	return strings.ReplaceAll(conditionWords(s), string(nbsp), " ")
}

// Amount is the same with plain spaces, for pages.
func Amount(x float64, unit string) string {
	return strings.ReplaceAll(amount(x, unit), string(nbsp), " ")
}

func amountOf(x *float64, unit string) string {
	if x == nil {
		return dash
	}
	return amount(*x, unit)
}

// change is an amount before and after.
func change(from, to *float64, unit string) string {
	if from == nil || to == nil || !finite(*to-*from) {
		return dash
	}
	switch d := *to - *from; {
	case d == 0:
		return "0"
	case d > 0:
		return "+" + amount(d, unit)
	default:
		return amount(d, unit)
	}
}

func count(n int) string {
	if n <= 0 {
		return dash
	}
	return strconv.Itoa(n)
}

// plural is a count with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// confidence keeps the digits that set a level apart from certainty.
func confidence(x float64) string {
	for d := 2; ; d++ {
		s := strconv.FormatFloat(100*x, 'f', d, 64)
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		if s != "100" || x >= 1 || d == 8 {
			return s + string(nbsp) + "%"
		}
	}
}

// smallShare is an error rate: two digits, however small it is.
func smallShare(x float64) string {
	s, _ := strconv.ParseFloat(strconv.FormatFloat(100*x, 'g', 2, 64), 64)
	return strconv.FormatFloat(s, 'f', -1, 64) + string(nbsp) + "%"
}

// duration is a time span without needless digits.
func duration(seconds float64) string {
	switch {
	case !finite(seconds) || seconds <= 0:
		return dash
	case seconds < 0.01:
		return "0.00" + string(nbsp) + "s"
	case seconds < 120:
		return significant(seconds, 2) + string(nbsp) + "s"
	case seconds < 7200:
		return strconv.FormatFloat(seconds/60, 'f', 0, 64) + string(nbsp) + "min"
	}
	return significant(seconds/3600, 3) + string(nbsp) + "h"
}
