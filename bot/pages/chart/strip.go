package chart

import (
	"fmt"
	"math"
	"slices"
)

// mostDots limits the dots of a strip. More dots would merge into one blot, and a page has many
// strips.
const mostDots = 180

// Strip draws every value of each group as a dot in the group's row, with a bar at the median. All
// groups share the axis.
func Strip(title, unit string, groups []Group) string {
	var all []float64
	for _, g := range groups {
		all = append(all, g.Values...)
	}
	const left, high = 76, 34
	a, ok := newAxis(all, left, width-8)
	if !ok {
		return nothing("strip", title)
	}
	bottom := float64(6 + high*len(groups))
	c := begin("strip", title, medians(unit, groups), width, bottom+32)
	a.bottom(c, 4, bottom, unit, plain)
	for i, g := range groups {
		middle := 6 + high*float64(i) + high/2
		c.text("label", "end", left-6, middle+4, g.Name, left-6)
		values := finite(g.Values)
		if len(values) == 0 {
			continue
		}
		dots := trail{canvas: c}
		stride := (len(values) + mostDots - 1) / mostDots
		for k := 0; k < len(values); k += stride {
			dots.to("M", a.at(values[k]), math.Round(middle+scatter(k)*(high-12)/2))
			dots.d.WriteString("h0")
		}
		dots.draw("dots " + g.Class)
		at := a.at(Median(values))
		c.line("median "+g.Class, at, middle-high/2+3, at, middle+high/2-3)
	}
	return c.end()
}

// scatter spreads dots between −1 and 1, so that equal values remain distinguishable. It uses the
// golden ratio, whose multiples never cluster.
func scatter(k int) float64 {
	_, part := math.Modf(float64(k) * math.Phi)
	return 2*part - 1
}

func medians(unit string, groups []Group) string {
	text := "Medians:"
	for _, g := range groups {
		if values := finite(g.Values); len(values) > 0 {
			text += fmt.Sprintf(" %s %s %s of %d;", g.Name, plain(Median(values)), unit, len(values))
		}
	}
	return text[:len(text)-1] + "."
}

// Median returns the median without reordering values, or 0 if there are none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	if n := len(sorted); n%2 == 0 {
		return sorted[n/2-1]/2 + sorted[n/2]/2
	}
	return sorted[len(sorted)/2]
}

// mostSteps limits the points of a distribution's curve: a chart has fewer pixels.
const mostSteps = 100

// ECDF draws the groups' empirical distributions: for each value, the share of samples that are not
// larger. A curve further to the left is faster.
func ECDF(title, unit string, groups []Group) string {
	var all []float64
	for _, g := range groups {
		all = append(all, g.Values...)
	}
	const left, top, bottom = 40, 22, 150
	a, ok := newAxis(all, left, width-8)
	if !ok {
		return nothing("ecdf", title)
	}
	c := begin("ecdf", title, medians(unit, groups), width, bottom+32)
	shares := axis{low: 0, high: 1, from: bottom, to: top}
	shares.left(c, left, width-8, func(v float64) string { return plain(100*v) + " %" })
	a.bottom(c, top, bottom, unit, plain)
	c.legend(left, groups)
	for _, g := range groups {
		values := slices.Sorted(slices.Values(finite(g.Values)))
		if len(values) == 0 {
			continue
		}
		curve := trail{canvas: c}
		curve.to("M", a.at(values[0]), bottom)
		stride := (len(values) + mostSteps - 1) / mostSteps
		for k := 0; k < len(values); k += stride {
			k := min(k+stride-1, len(values)-1)
			curve.d.WriteString("H" + number(c.x(a.at(values[k]))) + "V" + number(c.y(shares.at(float64(k+1)/float64(len(values))))))
		}
		curve.draw("curve " + g.Class)
	}
	return c.end()
}

// legend names the groups above the chart.
func (c *canvas) legend(x float64, groups []Group) {
	room := (c.w - x) / float64(max(1, len(groups)))
	for i, g := range groups {
		at := x + room*float64(i)
		c.rect("swatch "+g.Class, at, 5, 9, 9, "")
		c.text("label", "start", at+13, 13, g.Name, room-16)
	}
}
