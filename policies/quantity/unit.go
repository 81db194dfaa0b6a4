package quantity

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// unit says how one type of quantity is read and written. Editors accept the pattern, and the
// parser sees only texts that match it, so that the two agree.
type unit struct {
	noun, example string
	pattern       *regexp.Regexp
	parse         func(string) (float64, bool)
	format        func(float64) string
	bare          map[string]any // schema of a value without a unit, or nil
}

// A figure is written in digits: no hexadecimal, no exponent, no infinity.
const figure = `([0-9]+(\.[0-9]*)?|\.[0-9]+)`

// maxWhole is the limit up to which a float64 represents every whole number.
const maxWhole = 1 << 53

var (
	countPattern    = regexp.MustCompile(`^\+?[0-9]+$`)
	bytesPattern    = regexp.MustCompile(`^\+?` + figure + ` *([KMG]i?B|B)?$`)
	percentPattern  = regexp.MustCompile(`^[+-]?` + figure + ` *%$`)
	durationPattern = regexp.MustCompile(`^(` + figure + `(ms|s|m|h))+$`)
	microsPattern   = regexp.MustCompile(`^` + figure + ` *(ns|us|µs|μs|ms|s)$`)
	numberPattern   = regexp.MustCompile(`^[+-]?` + figure + `([eE][+-]?[0-9]+)? *%?$`)
	figurePattern   = regexp.MustCompile(`^[+-]?` + figure + `$`)
)

func unitOf(v any) unit {
	whole := map[string]any{"type": "integer", "minimum": 0}
	switch v.(type) {
	case Count:
		return unit{"a number", "128", countPattern, parseWhole, formatFigure, whole}
	case Bytes:
		return unit{"a size", "48KiB", bytesPattern, parseWhole, formatBytes, whole}
	case Percent:
		return unit{"a percentage", "10%", percentPattern, parsePercent, func(f float64) string { return shifted(f, 2) + "%" }, nil}
	case Duration:
		return unit{"a time", "30s", durationPattern, parseDuration, formatDuration, nil}
	case Micros:
		return unit{"a latency", "5us", microsPattern, parseMicros, func(f float64) string { return formatFigure(f) + "us" }, nil}
	case Number:
		return unit{"a number", "0.06", numberPattern, parseNumber, formatNumber, map[string]any{"type": "number"}}
	}
	panic(fmt.Sprintf("quantity: no unit for %T", v))
}

// remedy returns what to write instead of a text: the text with its missing sign, or an example.
func (u unit) remedy(text string) string {
	if u.pattern == percentPattern && figurePattern.MatchString(text) {
		f, err := strconv.ParseFloat(text, 64)
		switch {
		case err != nil:
		case f != 0 && -1 < f && f < 1:
			return shifted(f, 2) + "% or " + text + "%"
		default:
			return text + "%"
		}
	}
	return "e.g. " + u.example
}

// bound returns a condition to write instead of one whose figure is a mistake.
func (u unit) bound(relation, text string) string {
	remedy, example := strings.CutPrefix(u.remedy(text), "e.g. ")
	first, second, two := strings.Cut(remedy, " or ")
	quoted := fmt.Sprintf("\"%s %s\"", relation, first)
	switch {
	case example:
		return "e.g. " + quoted
	case two:
		return fmt.Sprintf("%s or \"%s %s\"", quoted, relation, second)
	}
	return quoted
}

// title returns the name of a value in references and editors.
func (u unit) title() string {
	if u.pattern == countPattern {
		return "whole number"
	}
	return strings.TrimPrefix(u.noun, "a ")
}

func (u unit) read(text string) (float64, bool) {
	if !u.pattern.MatchString(text) {
		return 0, false
	}
	return u.parse(text)
}

// miss says what a text is not, if the noun alone would be wrong: -5 is a number, but not a count.
func (u unit) miss(text string) string {
	if u.pattern == countPattern && figurePattern.MatchString(text) {
		return "a whole number from 0 to 2^53 - 1"
	}
	return u.noun
}

func parseFloat(digits string) (float64, bool) {
	f, err := strconv.ParseFloat(digits, 64)
	return f, err == nil
}

func parseNumber(s string) (float64, bool) {
	return parseFloat(strings.TrimRight(s, " %"))
}

// parsePercent, like parseMicros, scales in decimal, by the exponent: 7% divided by 100 would not
// be the 0.07 that a reader writes.
func parsePercent(s string) (float64, bool) {
	return parseFloat(strings.TrimRight(s, " %") + "e-2")
}

func parseMicros(s string) (float64, bool) {
	digits := strings.TrimRight(s, "nuµμms ")
	exponent := map[string]string{"ns": "e-3", "ms": "e3", "s": "e6"}[strings.TrimLeft(s[len(digits):], " ")]
	return parseFloat(digits + exponent)
}

// byteUnits begins with the units in which sizes are written.
var byteUnits = []struct {
	suffix string
	factor float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1}}

// parseWhole parses a whole number, in bytes if a unit follows it.
func parseWhole(s string) (float64, bool) {
	for _, u := range byteUnits {
		if digits, ok := strings.CutSuffix(s, u.suffix); ok {
			f, ok := parseFloat(strings.TrimRight(digits, " "))
			f *= u.factor
			return f, ok && f < maxWhole && f == math.Trunc(f)
		}
	}
	return 0, false
}

func parseDuration(s string) (float64, bool) {
	d, err := time.ParseDuration(s)
	return float64(d), err == nil && d > 0 && d < maxWhole
}

// formatFigure writes only the digits that a figure needs.
func formatFigure(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// formatNumber does the same with an exponent if there would be many zeros.
func formatNumber(f float64) string {
	if a := math.Abs(f); a != 0 && (a < 1e-5 || a >= 1e15) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	return formatFigure(f)
}

// shifted writes f · 10^places exactly, by moving the decimal point.
func shifted(f float64, places int) string {
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	sign := ""
	if strings.HasPrefix(mantissa, "-") {
		sign, mantissa = "-", mantissa[1:]
	}
	digits := strings.Replace(mantissa, ".", "", 1)
	e, err := strconv.Atoi(exponent)
	if err != nil {
		return formatFigure(f) // not a finite number
	}
	switch point := 1 + e + places; {
	case f == 0:
		return "0"
	case point <= 0:
		return sign + "0." + strings.Repeat("0", -point) + digits
	case point >= len(digits):
		return sign + digits + strings.Repeat("0", point-len(digits))
	default:
		return sign + digits[:point] + "." + digits[point:]
	}
}

// formatBytes uses the largest unit that gives a whole number, or a small number of halves.
func formatBytes(f float64) string {
	for _, u := range slices.Backward(byteUnits[:3]) {
		a, whole := math.Abs(f), math.Mod(f, u.factor) == 0
		if a >= u.factor && (whole || a < 100*u.factor && math.Mod(2*f, u.factor) == 0) {
			return formatFigure(f/u.factor) + u.suffix
		}
	}
	return formatFigure(f) + "B"
}

// formatDuration writes 10m and 0.5ms, where the standard library writes 10m0s and a unit that this
// package does not read.
func formatDuration(f float64) string {
	if f > 0 && f < float64(time.Millisecond) {
		return shifted(f, -6) + "ms"
	}
	text := time.Duration(f).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
