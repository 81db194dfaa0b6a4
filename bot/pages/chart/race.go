package chart

import (
	"fmt"

	notation "github.com/kernelgate/kernelgate/gates/number"
)

// A RacePoint is a speedup at a moment of a search.
type RacePoint struct {
	Seconds float64
	Speedup float64
	Name    string // for the hint
	Leads   bool   // drawn in the colour of the candidate
}

// Race draws a search over the seconds of measuring. A line with steps shows the best speedup so far, and a
// dot shows each arm at the moment of its last timing.
func Race(title string, best, arms []RacePoint) string {
	all, times := []float64{0}, []float64{0}
	for _, p := range append(append([]RacePoint(nil), best...), arms...) {
		if len(finite([]float64{p.Seconds, p.Speedup})) == 2 {
			all, times = append(all, p.Speedup), append(times, p.Seconds)
		}
	}
	if len(times) == 1 {
		return nothing("race", title)
	}
	const left, top, bottom, width = 56, 8, 180, trendWide
	a, _ := newAxis(all, bottom, top)
	across, _ := newAxis(times, left, width-6)
	across.low = 0
	description := "Nothing is measured yet."
	if len(best) > 0 {
		last := best[len(best)-1]
		description = fmt.Sprintf("After %s s of measuring the best is %s at %s.", plain(last.Seconds), last.Name, notation.Speedup(last.Speedup))
	}
	c := begin("race", title, description, width, bottom+30)
	a.left(c, left, width-6, gain)
	across.bottom(c, top, bottom, "s of measuring", plain)
	c.line("zero", left, a.at(0), width-6, a.at(0))
	for _, p := range arms {
		class := "dot"
		if p.Leads {
			class = "dot candidate"
		}
		if len(finite([]float64{p.Seconds, p.Speedup})) == 2 {
			c.dot(class, across.at(p.Seconds), a.at(p.Speedup), 3, p.Name+" "+notation.Speedup(p.Speedup))
		}
	}
	curve, pen := trail{canvas: c}, "M"
	y := 0.0
	for _, p := range best {
		if len(finite([]float64{p.Seconds, p.Speedup})) < 2 {
			continue
		}
		if pen == "L" {
			curve.to(pen, across.at(p.Seconds), y)
		}
		y = a.at(p.Speedup)
		curve.to(pen, across.at(p.Seconds), y)
		pen = "L"
	}
	curve.draw("curve value")
	return c.end()
}
