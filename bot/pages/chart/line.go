package chart

import (
	"fmt"
	"math"
)

// A Point is one value of a line.
type Point struct {
	Value float64
	Lower *float64 // lower end of the band
	Upper *float64
	Class string
	Hint  string // shown on hover
	Link  string // target of a click, relative to this server
	At    int    // its position in a trend
	Card  string // lines of the card shown next to it
}

// A Mark is a vertical line before the point with that index.
type Mark struct {
	Before int
	Text   string
	Class  string
}

// A Sequence holds the values of several groups in the order of measurement, so that drift becomes
// visible.
type Sequence struct {
	Groups []Group // names and classes
	// Values has, by group, a value at each position, or NaN if it belongs to a different group.
	Values [][]float64
	Breaks []int // positions where a round begins
}

// Order draws a sequence as dots from left to right.
func Order(title, unit string, s Sequence) string {
	var all []float64
	n := 0
	for _, values := range s.Values {
		all = append(all, values...)
		n = max(n, len(values))
	}
	const left, top, bottom = 48, 22, 150
	a, ok := newAxis(all, bottom, top)
	if !ok || len(s.Values) > len(s.Groups) {
		return nothing("order", title)
	}
	place := axis{low: -0.5, high: float64(n) - 0.5, from: left, to: width - 6}
	c := begin("order", title, fmt.Sprintf("%d places in %d rounds.", n, len(s.Breaks)), width, bottom+20)
	a.left(c, left, width-6, plain)
	c.line("axis", left, bottom, width-6, bottom)
	for _, at := range s.Breaks {
		if at > 0 {
			c.line("grid", place.at(float64(at)-0.5), top, place.at(float64(at)-0.5), bottom)
		}
	}
	c.legend(left, s.Groups)
	for g, values := range s.Values {
		count := len(finite(values))
		stride, seen := (count+mostDots-1)/mostDots, 0
		dots := trail{canvas: c}
		for i, v := range values {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				continue
			}
			if seen++; (seen-1)%stride == 0 {
				dots.to("M", math.Round(place.at(float64(i))), a.at(v))
				dots.d.WriteString("h0")
			}
		}
		dots.draw("dots " + s.Groups[g].Class)
	}
	c.text("unit", "start", left, bottom+15, "first sample", 100)
	c.text("unit", "end", width-6, bottom+15, "last · "+unit, 200)
	return c.end()
}

// Spark draws a line in the size of a word.
func Spark(title string, values []float64) string {
	const w, h = 96, 22
	a, ok := newAxis(values, h-4, 4)
	if !ok {
		c := begin("spark", title+": no data", "", w, h)
		return c.end()
	}
	place := axis{low: 0, high: float64(max(1, len(values)-1)), from: 4, to: w - 4}
	c := begin("spark", title, "", w, h)
	curve, pen := trail{canvas: c}, "M"
	last := math.NaN()
	lastAt := 0
	for i, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		curve.to(pen, place.at(float64(i)), a.at(v))
		pen, last, lastAt = "L", v, i
	}
	curve.draw("curve value")
	c.dot("dot value", place.at(float64(lastAt)), a.at(last), 2.5, "")
	return c.end()
}
