package chart

import "math"

// Margins draws each interval as a picture in the size of a table's cell, all on one scale, with the goals in one column. The
// background is tinted where the goal is met. The scale is logarithmic in the distance from the goal: a gain of 1 % can be seen
// next to one of 700 %. What has no goal or no value is "".
func Margins(rows []Interval) []string {
	const w, h, edge = 132, 16, 5
	all := []float64{0}
	for _, r := range rows {
		if r.drawable() {
			for _, v := range append(finite(deref(r.Lower, r.Upper)), r.Value) {
				all = append(all, r.distance(v))
			}
		}
	}
	a, _ := newAxis(all, edge, w-edge)
	// The goal stays off the edges, so that both of its sides can be seen.
	a.low, a.high = min(a.low, -a.high/6), max(a.high, -a.low/6)
	pictures := make([]string, len(rows))
	for i, r := range rows {
		if !r.drawable() {
			continue
		}
		c := beginSmall("margin", w, h)
		goal, y := a.at(0), float64(h)/2
		c.rect("met", goal, 0, w-goal, h, "")
		c.line("goal", goal, 0, goal, h)
		if r.Lower != nil && r.Upper != nil && len(finite([]float64{*r.Lower, *r.Upper})) == 2 {
			c.line("whisker "+r.Class, a.at(r.distance(*r.Lower)), y, a.at(r.distance(*r.Upper)), y)
		}
		c.dot("dot "+r.Class, a.at(r.distance(r.Value)), y, 3.5, "")
		pictures[i] = c.end()
	}
	return pictures
}

func (r Interval) drawable() bool {
	return r.Goal != nil && len(finite([]float64{*r.Goal, r.Value})) == 2
}

// distance is how far a value is from the goal, on the scale of Margins.
func (r Interval) distance(v float64) float64 {
	const finest = 0.01 // differences up to this are drawn in proportion
	d := v - *r.Goal
	return math.Copysign(math.Log1p(min(math.Abs(d), 1e6)/finest), d)
}
