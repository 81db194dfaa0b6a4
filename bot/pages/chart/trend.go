package chart

import (
	"fmt"
	"math"
	"slices"
)

// A Series is one line of a trend.
type Series struct {
	Name   string
	Class  string
	Points []Point // in their order
}

// A Level is a time to compare a trend with, such as that of another implementation.
type Level struct {
	Name  string
	Value float64
}

// belowGoal is how far a chart reaches below the goal, so that there is room to meet it.
const belowGoal = 1.25

// trendWide is the width of a trend, which has a page's width to itself.
const trendWide = 960

// A History is what a trend shows. Its series share one horizontal axis of positions, which have labels; each point names its
// position.
type History struct {
	Title, Unit string
	Labels      []string
	Series      []Series
	Marks       []Mark
	Levels      []Level
	Goal        *Level // times that the next change must reach
}

// Trend draws a history. The vertical axis is logarithmic: halving a time looks the same everywhere, and devices with different
// speeds can share the chart.
func Trend(h History) string {
	title, unit, labels, series, marks, levels := h.Title, h.Unit, h.Labels, h.Series, h.Marks, h.Levels
	places := len(labels)
	var all []float64
	count := 0
	for _, s := range series {
		for _, p := range s.Points {
			count++
			for _, v := range append(deref(p.Lower, p.Upper), p.Value) {
				if v > 0 {
					all = append(all, math.Log10(v))
				}
			}
		}
	}
	shown := levels
	if h.Goal != nil {
		shown = append(slices.Clone(levels), *h.Goal, Level{Value: h.Goal.Value / belowGoal})
	}
	for _, l := range shown {
		if l.Value > 0 {
			all = append(all, math.Log10(l.Value))
		}
	}
	const left, right, top, bottom, width = 6, trendWide - 48, 30, 220, trendWide // the axis is next to the newest value
	logs, ok := newAxis(all, bottom, top)
	if !ok || places < 1 {
		return nothing("line", title)
	}
	a := logAxis{logs}
	place := axis{low: -0.5, high: float64(places) - 0.5, from: left, to: right}
	c := begin("line", title, fmt.Sprintf("%d values of %d series, in %s.", count, len(series), unit), width, bottom+36)
	if g := h.Goal; g != nil && g.Value > 0 && !math.IsInf(g.Value, 0) {
		c.rect("met", left, a.at(g.Value), right-left, bottom-a.at(g.Value), "")
	}
	for _, v := range a.ticks() {
		c.line("grid", left, a.at(v), right, a.at(v))
		c.text("tick", "start", right+4, a.at(v)+4, plain(v), width-right-4)
	}
	c.line("axis", left, bottom, right, bottom)
	c.line("axis", right, top, right, bottom)
	for _, l := range levels {
		if l.Value > 0 && !math.IsInf(l.Value, 0) {
			c.line("level", left, a.at(l.Value), right, a.at(l.Value))
			c.text("unit", "end", right-4, a.at(l.Value)-4, l.Name, 300)
		}
	}
	if g := h.Goal; g != nil && g.Value > 0 && !math.IsInf(g.Value, 0) {
		c.line("goal", left, a.at(g.Value), right, a.at(g.Value))
		c.text("unit", "end", right-4, a.at(g.Value)+13, g.Name, 400)
	}
	for _, m := range marks {
		if m.Before >= 0 && m.Before <= places {
			at := place.at(float64(m.Before) - 0.5)
			c.line("mark "+m.Class, at, top, at, bottom)
			c.dot("mark-head "+m.Class, at, top, 4, m.Text)
		}
	}
	var groups []Group
	for _, s := range series {
		groups = append(groups, Group{Name: s.Name, Class: s.Class})
	}
	c.legend(left, groups)
	for _, s := range series {
		c.series(s, place, a)
	}
	c.points(series, place, a, bottom)
	taken := math.Inf(-1)
	for i, label := range labels {
		half := textWide(label) / 2
		if at := place.at(float64(i)); at-half > taken {
			c.text("tick", "middle", at, bottom+14, label, 100)
			taken = at + half + 2*charWide
		}
	}
	c.text("unit", "end", right, bottom+30, unit, 500)
	return c.end()
}

// series draws a line with its band.
func (c *canvas) series(s Series, place axis, a logAxis) {
	for _, p := range s.Points {
		if p.Lower != nil && p.Upper != nil && *p.Lower > 0 && *p.Upper >= *p.Lower {
			x := place.at(float64(p.At))
			c.line("range "+s.Class, x, a.at(*p.Lower), x, a.at(*p.Upper))
		}
	}
	curve, pen := trail{canvas: c}, "M"
	for _, p := range s.Points {
		if !(p.Value > 0) || math.IsInf(p.Value, 0) {
			pen = "M"
			continue
		}
		curve.to(pen, place.at(float64(p.At)), a.at(p.Value))
		pen = "L"
	}
	curve.draw("curve " + s.Class)
}

// points draws the points, which are links. If there is one series, a point is hit anywhere in its column.
func (c *canvas) points(series []Series, place axis, a logAxis, bottom float64) {
	const around = 9
	wide := min(24, place.at(1)-place.at(0))
	for _, s := range series {
		for _, p := range s.Points {
			if !(p.Value > 0) || math.IsInf(p.Value, 0) {
				continue
			}
			x, y := place.at(float64(p.At)), a.at(p.Value)
			if p.Link == "" {
				c.dot("dot "+p.Class, x, y, 4, p.Hint)
				continue
			}
			fmt.Fprintf(c, `<g data-card="%s"><title>%s</title>`, escapeLines(p.Card), escape(p.Hint))
			if len(series) == 1 {
				c.rect("hit", x-wide/2, 0, wide, bottom, "")
			} else {
				c.rect("hit", x-around, y-around, 2*around, 2*around, "")
			}
			fmt.Fprintf(c, `<a href="%s" aria-label="%s">`, escape(p.Link), escape(p.Hint))
			c.dot("dot "+p.Class, x, y, 4, "")
			c.WriteString("</a></g>")
		}
	}
}

// A logAxis is an axis of logarithms to base ten.
type logAxis struct{ axis }

func (a logAxis) at(v float64) float64 { return a.axis.at(math.Log10(v)) }

// ticks returns round values: multiples of 1, 2 and 5 over decades, evenly spaced values over a
// smaller range.
func (a logAxis) ticks() []float64 {
	low, high := math.Pow(10, a.low), math.Pow(10, a.high)
	if high/low < 5 || math.IsInf(high, 0) || low == 0 {
		return axis{low: low, high: high}.ticks(4)
	}
	steps := []float64{1, 2, 5}
	switch {
	case high/low > 200:
		steps = []float64{1}
	case high/low < 12:
		steps = []float64{1, 1.5, 2, 3, 5, 7}
	}
	var list []float64
	for power := math.Floor(a.low); power <= a.high && len(list) < 12; power++ {
		for _, step := range steps {
			if v := step * math.Pow(10, power); v >= low && v <= high {
				list = append(list, v)
			}
		}
	}
	return list
}
