package chart

import (
	"fmt"
	"math"
)

// A Narrowing is an interval after a number of rounds.
type Narrowing struct {
	Round               int
	Value, Lower, Upper float64
}

// Funnel draws an interval that narrows round by round, with its goal if it has one.
func Funnel(title string, rounds []Narrowing, goal *float64) string {
	var kept []Narrowing
	all := finite(deref(goal))
	for _, r := range rounds {
		if len(finite([]float64{r.Value, r.Lower, r.Upper})) == 3 && (len(kept) == 0 || r.Round > kept[len(kept)-1].Round) {
			kept = append(kept, r)
			all = append(all, r.Value, r.Lower, r.Upper)
		}
	}
	if len(kept) == 0 {
		return nothing("funnel", title)
	}
	const left, top, bottom = 52, 6, 84
	a, _ := newAxis(all, bottom, top)
	last := kept[len(kept)-1]
	description := fmt.Sprintf("After round %d: %s, between %s and %s", last.Round, percent(last.Value), percent(last.Lower), percent(last.Upper))
	if goal != nil {
		description += ", goal " + percent(*goal)
	}
	c := begin("funnel", title, description+".", width, bottom+18)
	a.left(c, left, width-6, gain)
	c.line("axis", left, bottom, width-6, bottom)
	place := axis{low: float64(kept[0].Round) - 0.5, high: float64(last.Round) + 0.5, from: left, to: width - 6}
	curve, pen := trail{canvas: c}, "M"
	for _, r := range kept {
		x := place.at(float64(r.Round))
		c.line("whisker value", x, a.at(r.Lower), x, a.at(r.Upper))
		curve.to(pen, x, a.at(r.Value))
		pen = "L"
	}
	curve.draw("curve value")
	if goal != nil && !math.IsNaN(*goal) {
		c.line("goal", left, a.at(*goal), width-6, a.at(*goal))
		y := a.at(*goal) - 4
		if y < lineHigh { // no room above the line
			y = a.at(*goal) + 12
		}
		c.text("unit", "end", width-8, y, "goal "+percent(*goal), 120)
	}
	c.dot("dot candidate", place.at(float64(last.Round)), a.at(last.Value), 3.5, description)
	c.text("unit", "start", left, bottom+14, fmt.Sprint("round ", kept[0].Round), 80)
	if len(kept) > 1 {
		c.text("unit", "end", width-6, bottom+14, fmt.Sprint("round ", last.Round), 80)
	}
	return c.end()
}
