package number

import (
	"math"
	"strconv"
	"strings"
)

// There is one notation for speed, in sentences, tables, charts and pages:
//
//	+16.1 %        a gain below 2×
//	6.41×          a gain from 2× on
//	2.9 % slower   a loss of speed
//	1.75× slower   a loss from 1.5× on: it takes 1.75 times as long
//
// A loss becomes a factor earlier than a gain, because a speed that is 43 % lower and a time that is 75 % longer are the same loss,
// and a reader cannot tell which of the two a percentage means. Below 1.5× the two are close, and the percentage is that of the speed, as
// in policies. A figure has three significant digits, and none that its interval makes meaningless.
const (
	// Slower ends a loss. It never parts from the figure, not even at the end of a line.
	Slower = string(NBSP) + "slower"

	factorsFrom     = 2.0
	lossFactorsFrom = 1.5
)

// Speedup is a gain without an interval: 0.161 is "+16.1 %". Goals are gains that it must not be rounded onto.
func Speedup(x float64, goals ...float64) string { return Gain(x, nil, nil, goals...) }

// Gain is a gain with the digits that its interval allows; its bounds may be nil.
func Gain(value float64, lower, upper *float64, goals ...float64) string {
	return notationOf(value, lower, upper).value(value, goals)
}

// Gains are gains that are read side by side, such as those of a row: if one of the losses is a factor, all losses are.
func Gains(all []Bounded) []string {
	kind := share
	for _, b := range all {
		if kindOf(b.Value) == lossFactor {
			kind = lossFactor
		}
	}
	texts := make([]string, len(all))
	for i, b := range all {
		own := kindOf(b.Value)
		if b.Value < 0 && own == share {
			own = kind
		}
		texts[i] = notationIn(own, b.Value, b.Lower, b.Upper).value(b.Value, nil)
	}
	return texts
}

// A Bounded is a gain with its interval, whose bounds may be nil.
type Bounded struct {
	Value        float64
	Lower, Upper *float64
}

// GainInterval is the interval of a gain in the notation of the gain: "[+15.8 %, +16.4 %]", "[6.35×, 6.47×]". A dash is an unknown
// bound. It is "" where both are unknown.
func GainInterval(value float64, lower, upper *float64, goals ...float64) string {
	if lower == nil && upper == nil {
		return ""
	}
	n := notationOf(value, lower, upper)
	bound := func(x *float64) string {
		if x == nil {
			return Dash
		}
		return n.bound(*x, goals)
	}
	first, last := lower, upper
	if n.kind == lossFactor { // the smaller loss first
		first, last = upper, lower
	}
	return "[" + bound(first) + "," + string(NBSP) + bound(last) + "]"
}

// GainWords is a gain within a sentence: "16.1 % faster", "6.41× faster", "2.9 % slower".
func GainWords(value float64, lower, upper *float64, goals ...float64) string {
	s := Gain(value, lower, upper, goals...)
	if value > 0 && s != Dash {
		return strings.TrimPrefix(s, "+") + " faster"
	}
	return s
}

// Reach is half the width of an interval around a gain: "±40 %".
func Reach(lower, upper float64) string {
	p := 100 * (upper - lower) / 2
	if !Finite(p) {
		return Dash
	}
	decimals := 1
	switch {
	case p >= 10:
		decimals = 0
	case p < 0.1:
		decimals = 2
	}
	return "±" + strconv.FormatFloat(p, 'f', decimals, 64) + string(NBSP) + "%"
}

// P is the p-value of a test: "p < 0.001", "p = 0.03".
func P(p float64) string {
	switch space := string(NBSP); {
	case !Finite(p):
		return Dash
	case p < 0.001:
		return "p" + space + "<" + space + "0.001"
	default:
		return "p" + space + "=" + space + Significant(p, 2)
	}
}

type kindOfGain int

const (
	share kindOfGain = iota
	gainFactor
	lossFactor
)

// A notation is how a gain and its bounds are written.
type notation struct {
	kind     kindOfGain
	decimals int
}

func notationOf(value float64, lower, upper *float64) notation {
	return notationIn(kindOf(value), value, lower, upper)
}

func kindOf(value float64) kindOfGain {
	switch ratio := 1 + value; {
	case !Finite(ratio) || ratio <= 0:
	case ratio >= factorsFrom:
		return gainFactor
	case 1/ratio >= lossFactorsFrom:
		return lossFactor
	}
	return share
}

// notationIn gives a gain of one kind the digits that its interval allows.
func notationIn(kind kindOfGain, value float64, lower, upper *float64) notation {
	n := notation{kind: kind}
	n.decimals = n.decimalsOf(value)
	if lower == nil || upper == nil {
		return n
	}
	if half := math.Abs(n.figure(*upper)-n.figure(*lower)) / 2; Finite(half) && half > 0 {
		n.decimals = min(n.decimals, max(0, int(math.Ceil(-math.Log10(half/3))))) // ±1.3 has a decimal, and ±4 has none
	}
	return n
}

// decimalsOf is those that make three significant digits. A share below 1 % has two decimals.
func (n notation) decimalsOf(value float64) int {
	shown := math.Abs(n.figure(value))
	if shown < 1 {
		return 2
	}
	return max(0, 2-leading(shown, 3))
}

// figure is the number that a gain is written with.
func (n notation) figure(x float64) float64 {
	switch n.kind {
	case gainFactor:
		return 1 + x
	case lossFactor:
		return 1 / (1 + x)
	}
	return 100 * x
}

func (n notation) figures(goals []float64) []float64 {
	var all []float64
	for _, g := range goals {
		all = append(all, math.Abs(n.figure(g)))
	}
	return all
}

func (n notation) value(x float64, goals []float64) string {
	s := n.bound(x, goals)
	switch {
	case s == Dash:
	case n.kind == lossFactor:
		s += Slower
	case strings.HasPrefix(s, Minus):
		s = strings.TrimPrefix(s, Minus) + Slower
	}
	return s
}

// bound is a gain without words; one in percent has its sign.
func (n notation) bound(x float64, goals []float64) string {
	figure := n.figure(x)
	if !Finite(figure) {
		return Dash
	}
	digits := Significant(math.Abs(figure), 3)
	if a := math.Abs(figure); a < 1e6 {
		digits = Rounded(a, n.decimals, n.figures(goals))
	}
	sign := ""
	switch {
	case strings.Trim(digits, "0.") == "":
	case figure < 0:
		sign = Minus
	case n.kind == share:
		sign = "+"
	}
	if n.kind == share {
		return sign + digits + string(NBSP) + "%"
	}
	return sign + digits + "×"
}

// Factor is how many times as fast something is in all: "1.25×", "6.41×", "120×".
func Factor(ratio float64) string {
	n := notation{kind: gainFactor}
	n.decimals = n.decimalsOf(ratio - 1)
	return n.bound(ratio-1, nil)
}
