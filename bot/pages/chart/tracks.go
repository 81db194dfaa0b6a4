package chart

import (
	"fmt"
	"math"
)

// A Track is what a sensor showed while a sequence was measured.
type Track struct {
	Name, Unit string
	At         []float64 // positions in the sequence, ascending
	Values     []float64
}

// Tracks draws the tracks below each other, each with a scale of its own, over the positions of a sequence of n values. So the chart
// fits below that of Order.
func Tracks(title string, n int, breaks []int, tracks []Track) string {
	const left, high, gap = 48, 34, 18
	var shown []Track
	var axes []axis
	for _, t := range tracks {
		top := float64(gap + len(shown)*(high+gap))
		if a, ok := newAxis(t.Values, top+high, top); ok && len(t.At) == len(t.Values) {
			shown, axes = append(shown, t), append(axes, a)
		}
	}
	if len(shown) == 0 {
		return nothing("tracks", title)
	}
	bottom := float64(len(shown)*(high+gap)) + 2
	place := axis{low: -0.5, high: float64(n) - 0.5, from: left, to: width - 6}
	c := begin("tracks", title, fmt.Sprintf("%d sensors.", len(shown)), width, bottom)
	for k, t := range shown {
		a := axes[k]
		c.text("unit", "start", left, a.to-5, t.Name+", "+t.Unit, width-left-6)
		low, high := extremes(t.Values)
		c.text("tick", "end", left-4, a.at(high)+4, plain(high), left-6)
		if a.at(low)-a.at(high) > lineHigh-4 {
			c.text("tick", "end", left-4, a.at(low)+4, plain(low), left-6)
		}
		c.line("axis", left, a.from, width-6, a.from)
		for _, at := range breaks {
			if at > 0 {
				c.line("grid", place.at(float64(at)-0.5), a.to, place.at(float64(at)-0.5), a.from)
			}
		}
		curve := trail{canvas: c}
		command, round := "M", -1
		for i, v := range t.Values {
			if math.IsNaN(v) || math.IsInf(v, 0) || math.IsNaN(t.At[i]) {
				command = "M"
				continue
			}
			if of := roundAt(breaks, t.At[i]); of != round {
				command, round = "M", of // time passes between two rounds
			}
			curve.to(command, place.at(t.At[i]), a.at(v))
			command = "L"
		}
		curve.draw("curve value")
	}
	return c.end()
}

// extremes is the smallest and the largest finite value.
func extremes(values []float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range finite(values) {
		low, high = min(low, v), max(high, v)
	}
	return low, high
}

// roundAt is the number of rounds that have begun at a position.
func roundAt(breaks []int, at float64) int {
	n := 0
	for _, b := range breaks {
		if float64(b) <= at {
			n++
		}
	}
	return n
}
