package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/number"
)

// An Overview sums up the shapes of a run.
type Overview struct {
	Shapes, Met, Missed, Open int
	Mean                      float64           // geometric mean of the speedups
	Tightest                  *gates.Comparison // closest to its goal, or farthest below it
}

// OverviewOf is nil for fewer than two shapes.
func OverviewOf(rows []gates.Comparison) *Overview {
	o, logs, least := &Overview{}, 0.0, math.Inf(1)
	for i, c := range rows {
		if c.Baseline == nil || c.Candidate == nil || !(c.Speedup.Value > -1) {
			continue
		}
		o.Shapes++
		logs += math.Log1p(c.Speedup.Value)
		switch c.Status {
		case gates.Passed:
			o.Met++
		case gates.Failed:
			o.Missed++
		case gates.Open:
			o.Open++
		}
		if m := Margin(c); m < least {
			o.Tightest, least = &rows[i], m
		}
	}
	if o.Shapes < 2 {
		return nil
	}
	o.Mean = math.Expm1(logs / float64(o.Shapes))
	return o
}

// Margin is how much faster than its goal a shape is at least, or +Inf if it has no goal.
func Margin(c gates.Comparison) float64 {
	goal, ok := speedupGoal(c.Goal)
	if !ok || c.Baseline == nil || goal <= -1 {
		return math.Inf(1)
	}
	least := c.Speedup.Value
	if c.Speedup.Lower != nil {
		least = *c.Speedup.Lower
	}
	return (1+least)/(1+goal) - 1
}

// Words returns the overview as a sentence.
func (o *Overview) Words() string {
	text := number.Plural(o.Shapes, "shape")
	if o.Met+o.Missed+o.Open > 0 {
		text = fmt.Sprintf("%d of %s %s", o.Met, text, either(o.Met, "meets its goal", "meet their goals"))
		if o.Missed > 0 {
			text += fmt.Sprintf(", %d %s", o.Missed, either(o.Missed, "misses it", "miss it"))
		}
		if o.Open > 0 {
			text += fmt.Sprintf(", %d %s undecided", o.Open, either(o.Open, "is", "are"))
		}
	}
	text += fmt.Sprintf(". Geometric mean %s", number.Speedup(o.Mean))
	if c := o.Tightest; c != nil {
		goal, _ := speedupGoal(c.Goal)
		text += fmt.Sprintf("; tightest on %s: %s (%s)", c.Label(), c.Speedup.Gain(goal), strings.TrimPrefix(goalWords(c.Goal), "speedup "))
	}
	return text + "."
}

func either(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}
