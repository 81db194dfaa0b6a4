package report

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
)

// barCells is how wide a bar is.
const barCells = 18

// bars draws the interval of every comparison against its goal, all in one scale and
// with the goals in one column:
//
//	┆      ├──●─┤
//	┆ ├●┤
//
// What is left of the goal has missed it, what crosses it is not decided. The scale is
// logarithmic in the distance from the goal, so that a gain of 1 % is still seen
// beside one of 700 %. What cannot be drawn is "".
func bars(rows []gates.Comparison) []string {
	spans := make([]span, len(rows))
	var left, right float64
	for i, c := range rows {
		spans[i] = spanOf(c)
		if s := spans[i]; s.drawn {
			left, right = max(left, -s.lower), max(right, s.upper)
		}
	}
	// The side on which nothing lies keeps one cell: the goal is seen as a line.
	goal := 1
	if left > 0 {
		goal = min(max(int(math.Round(barCells*left/(left+right))), 4), barCells-2)
		if right > 0 {
			goal = min(goal, barCells-5)
		}
	}
	out := make([]string, len(rows))
	for i, s := range spans {
		if s.drawn {
			out[i] = s.bar(goal, left, right)
		}
	}
	return out
}

// A span is an interval as logarithmic distances from its goal.
type span struct {
	lower, value, upper float64
	drawn               bool
}

func spanOf(c gates.Comparison) span {
	goal, ok := speedupGoal(c.Goal)
	if !ok || !measured(c) || !number.Finite(c.Speedup.Value) {
		return span{}
	}
	at := func(x *float64) float64 {
		if x == nil || !number.Finite(*x) {
			x = &c.Speedup.Value
		}
		d := *x - goal
		if math.Abs(d) < 1e-12 {
			return 0
		}
		return math.Copysign(math.Log1p(min(math.Abs(d), 1e6)/0.01), d)
	}
	s := span{lower: at(c.Speedup.Lower), value: at(&c.Speedup.Value), upper: at(c.Speedup.Upper), drawn: true}
	s.lower, s.upper = min(s.lower, s.value), max(s.upper, s.value)
	return s
}

func (s span) bar(goal int, left, right float64) string {
	// A value that meets the goal is to the right of it, however close: no bar contradicts a verdict.
	cell := func(d float64) int {
		if d < 0 {
			return goal - 1 - int(math.Round(d/-left*float64(goal-1)))
		}
		if right == 0 {
			return goal + 1
		}
		return goal + 1 + int(math.Round(d/right*float64(barCells-goal-2)))
	}
	cells := []rune(strings.Repeat(string(nbsp), barCells))
	from, to := cell(s.lower), cell(s.upper)
	for i := from; i <= to; i++ {
		cells[i] = '─'
	}
	cells[from], cells[to] = '├', '┤'
	cells[goal], cells[cell(s.value)] = '┆', '●'
	return string(cells)
}

// speedupText and reductionText find what a goal asks of the paired ratio.
var (
	speedupText   = regexp.MustCompile(`speedup >=? *([+-]?\d+(?:\.\d+)?)%`)
	reductionText = regexp.MustCompile(`latency reduction >=? *([+-]?\d+(?:\.\d+)?)%`)
)

// speedupGoal is the speedup that a goal asks for. A goal that bounds only a time has none.
func speedupGoal(goal string) (float64, bool) {
	asked, ok := math.Inf(-1), false
	if m := speedupText.FindStringSubmatch(goal); m != nil {
		if x, err := strconv.ParseFloat(m[1], 64); err == nil {
			asked, ok = x/100, true
		}
	}
	if m := reductionText.FindStringSubmatch(goal); m != nil {
		if x, err := strconv.ParseFloat(m[1], 64); err == nil && x < 100 {
			asked, ok = max(asked, 1/(1-x/100)-1), true
		}
	}
	return asked, ok && number.Finite(asked)
}
