package chart

import (
	"fmt"
	"math"
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

// trendWide is the width of a trend, which has a page's width to itself.
const trendWide = 960

// Trend draws several series on one horizontal axis of positions, which have labels. Each point names its position.
// The vertical axis is logarithmic: halving a time looks the same everywhere, and devices with
// different speeds can share the chart.
func Trend(title, unit string, labels []string, series []Series, marks []Mark, levels []Level) string {
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
	for _, l := range levels {
		if l.Value > 0 {
			all = append(all, math.Log10(l.Value))
		}
	}
	const left, top, bottom, width = 52, 30, 220, trendWide
	logs, ok := newAxis(all, bottom, top)
	if !ok || places < 1 {
		return nothing("line", title)
	}
	a := logAxis{logs}
	place := axis{low: -0.5, high: float64(places) - 0.5, from: left, to: width - 6}
	c := begin("line", title, fmt.Sprintf("%d values of %d series, in %s.", count, len(series), unit), width, bottom+36)
	for _, v := range a.ticks() {
		c.line("grid", left, a.at(v), width-6, a.at(v))
		c.text("tick", "end", left-4, a.at(v)+4, plain(v), left-4)
	}
	c.line("axis", left, bottom, width-6, bottom)
	for _, l := range levels {
		if l.Value > 0 && !math.IsInf(l.Value, 0) {
			c.line("level", left, a.at(l.Value), width-6, a.at(l.Value))
			c.text("unit", "end", width-8, a.at(l.Value)-4, l.Name, 300)
		}
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
	taken := math.Inf(-1)
	for i, label := range labels {
		half := textWide(label) / 2
		if at := place.at(float64(i)); at-half > taken {
			c.text("tick", "middle", at, bottom+14, label, 100)
			taken = at + half + 2*charWide
		}
	}
	c.text("unit", "end", width-6, bottom+30, unit+", logarithmic scale; commits from the oldest to the newest", 500)
	return c.end()
}

// series draws a line with its band and its points, which are links.
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
	for _, p := range s.Points {
		if !(p.Value > 0) || math.IsInf(p.Value, 0) {
			continue
		}
		if p.Link != "" {
			fmt.Fprintf(c, `<a href="%s" aria-label="%s" data-card="%s">`, escape(p.Link), escape(p.Hint), escapeLines(p.Card))
		}
		c.dot("dot "+p.Class, place.at(float64(p.At)), a.at(p.Value), 4, p.Hint)
		if p.Link != "" {
			c.WriteString("</a>")
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
