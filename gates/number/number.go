// Package number writes figures as people read them: times, shares, gains, amounts. It is the only place where a figure of a verdict
// becomes text, so that the same figure reads the same in a sentence, a table and a page. Package quantity reads and writes the
// values of policies.
package number

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

const (
	Dash  = "–"      // an unknown value
	Minus = "−"      // the true minus sign
	NBSP  = '\u00a0' // between a figure and its unit, which never part
)

var (
	bareUnit  = regexp.MustCompile(`([0-9])(%|us\b|KiB\b|MiB\b|B\b)`)
	bareMinus = regexp.MustCompile(`(^|[\s\x{a0}])-([0-9])`)
)

// Condition writes a policy's condition as the figures next to it are written: ">= +10%" is "≥ +10 %".
func Condition(s string) string {
	s = strings.NewReplacer(">= ", "≥"+string(NBSP), "<= ", "≤"+string(NBSP), "> ", ">"+string(NBSP), "< ", "<"+string(NBSP),
		">=", "≥", "<=", "≤").Replace(s)
	s = bareMinus.ReplaceAllString(s, "${1}"+Minus+"$2")
	s = bareUnit.ReplaceAllString(s, "$1"+string(NBSP)+"$2")
	s = strings.ReplaceAll(s, string(NBSP)+"us", string(NBSP)+"µs")
	if strings.TrimSpace(s) == "" {
		return Dash
	}
	return s
}

// Finite reports whether x is a figure at all.
func Finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// Percent is a share of change with its sign: 0.161 is "+16.1 %". Goals are
// shares that it must not be rounded onto.
func Percent(x float64, goals ...float64) string {
	s := Share(math.Abs(x), goals...)
	switch {
	case s == Dash || strings.Trim(s, "0. %"+string(NBSP)) == "":
		return s
	case x < 0:
		return Minus + s
	}
	return "+" + s
}

// Share is a fraction in percent, without a sign.
func Share(x float64, goals ...float64) string {
	p := 100 * math.Abs(x)
	var s string
	switch {
	case !Finite(p):
		return Dash
	case p == 0:
		s = "0"
	case p >= 1e6 || p < 1e-4:
		s = Significant(p, 3)
	case p >= 1000:
		s = Rounded(p, 0, nil)
	case p >= 1:
		s = Rounded(p, 1, hundredfold(goals))
	default:
		s = Rounded(p, 2, hundredfold(goals))
	}
	return s + string(NBSP) + "%"
}

// PlainShare is a fraction in percent to one decimal, with a plain space, for pages.
func PlainShare(x float64) string { return strconv.FormatFloat(100*x, 'f', 1, 64) + " %" }

func hundredfold(goals []float64) []float64 {
	out := make([]float64, len(goals))
	for i, g := range goals {
		out[i] = 100 * math.Abs(g)
	}
	return out
}

// Rounded adds decimals until x does not read like a goal that it is not: 9.97
// against a goal of 10 is no "10.0".
func Rounded(x float64, decimals int, goals []float64) string {
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

// leading is the place of the first digit of x, once it is rounded to so many digits: 2 of hundreds, −1 of tenths.
func leading(x float64, digits int) int {
	_, exponent, _ := strings.Cut(strconv.FormatFloat(x, 'e', digits-1, 64), "e")
	place, err := strconv.Atoi(exponent)
	if err != nil {
		return 0 // no figure at all
	}
	return place
}

// Significant is any figure with so many significant digits at most.
func Significant(x float64, digits int) string {
	if !Finite(x) {
		return Dash
	}
	s := strconv.FormatFloat(x, 'g', digits, 64)
	if a := math.Abs(x); strings.Contains(s, "e") && a >= 1e-4 && a < 1e6 {
		s = strconv.FormatFloat(x, 'f', 0, 64)
	}
	s = strings.NewReplacer("e-0", "e-", "e+0", "e", "e+", "e").Replace(s)
	if rest, negative := strings.CutPrefix(s, "-"); negative {
		return Minus + rest
	}
	return s
}

// Confidence keeps the digits that set a level apart from certainty.
func Confidence(x float64) string {
	for d := 2; ; d++ {
		s := strconv.FormatFloat(100*x, 'f', d, 64)
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		if s != "100" || x >= 1 || d == 8 {
			return s + string(NBSP) + "%"
		}
	}
}

// SmallShare is an error rate: two digits, however small it is.
func SmallShare(x float64) string {
	s, _ := strconv.ParseFloat(strconv.FormatFloat(100*x, 'g', 2, 64), 64)
	return strconv.FormatFloat(s, 'f', -1, 64) + string(NBSP) + "%"
}

// Seconds is a time span without needless digits.
func Seconds(seconds float64) string {
	switch {
	case !Finite(seconds) || seconds <= 0:
		return Dash
	case seconds < 0.01:
		return "0.00" + string(NBSP) + "s"
	case seconds < 120:
		return Significant(seconds, 2) + string(NBSP) + "s"
	case seconds < 7200:
		return strconv.FormatFloat(seconds/60, 'f', 0, 64) + string(NBSP) + "min"
	}
	return Significant(seconds/3600, 3) + string(NBSP) + "h"
}
