package chart

import (
	"fmt"
	"math"
	"slices"
)

// A Ceiling is a limit of a device, in operations per second.
type Ceiling struct {
	Name  string
	FLOPs float64
}

// A Spot is a kernel on a shape: operations per byte, and operations per second.
type Spot struct {
	Name      string
	Intensity float64
	FLOPs     float64
	Class     string
	Label     string // next to the spot
	From      *Spot  // where an arrow to the spot begins
}

// Roofline draws the achieved performance below the limits of the device, on logarithmic axes. Spots with a label are named where
// there is room.
func Roofline(title string, bandwidth float64, ceilings []Ceiling, spots []Spot) string {
	var xs, ys []float64
	kept := spots[:0:0]
	for _, s := range spots {
		if x, y := math.Log10(s.Intensity), math.Log10(s.FLOPs); len(finite([]float64{x, y})) == 2 {
			xs, ys, kept = append(xs, x), append(ys, y), append(kept, s)
		}
	}
	slope := math.Log10(bandwidth)
	if len(kept) == 0 || len(finite([]float64{slope})) == 0 {
		return nothing("roofline", title)
	}
	for _, peak := range ceilings {
		if y := math.Log10(peak.FLOPs); len(finite([]float64{y})) == 1 {
			xs, ys = append(xs, y-slope), append(ys, y)
		}
	}
	const left, top, bottom, width = 52, 14, 260, trendWide
	x, _ := newAxis(xs, left, width-8)
	y, _ := newAxis(ys, bottom, top)
	c := begin("roofline", title, "Each dot is one shape; the nearer to the lines above it, the better.", width, bottom+32)
	for _, v := range (logAxis{x}).ticks() {
		at := logAxis{x}.at(v)
		c.line("grid", at, top, at, bottom)
		c.text("tick", "middle", at, bottom+12, plain(v), 80)
	}
	for _, v := range (logAxis{y}).ticks() {
		at := logAxis{y}.at(v)
		c.line("grid", left, at, width-8, at)
		c.text("tick", "end", left-4, at+4, plain(v/1e12), left-4)
	}
	c.line("axis", left, bottom, width-8, bottom)
	c.text("unit", "end", width-8, bottom+26, "FLOP per byte", 120)
	c.text("unit", "start", 2, bottom+26, "TFLOP/s, both scales logarithmic", 300)
	// The bandwidth slope, clipped to the chart at both ends.
	from, to := max(x.low, y.low-slope), min(x.high, y.high-slope)
	for _, peak := range ceilings { // the slope ends at the highest ceiling
		if v := math.Log10(peak.FLOPs); v-slope < to && highest(ceilings) == peak.FLOPs {
			to = v - slope
		}
	}
	if from < to {
		c.line("roof", x.at(from), y.at(from+slope), x.at(to), y.at(to+slope))
	}
	for _, peak := range ceilings {
		v := math.Log10(peak.FLOPs)
		if len(finite([]float64{v})) == 0 || v < y.low || v > y.high {
			continue
		}
		c.line("roof", x.at(max(v-slope, x.low)), y.at(v), x.at(x.high), y.at(v))
		c.text("tick", "end", width-8, y.at(v)-4, peak.Name, 120)
	}
	for _, s := range kept {
		c.dot("dot "+s.Class, x.at(math.Log10(s.Intensity)), y.at(math.Log10(s.FLOPs)), 4,
			fmt.Sprintf("%s: %s TFLOP/s", s.Name, plain(s.FLOPs/1e12)))
	}
	for _, s := range kept {
		if f := s.From; f != nil && len(finite([]float64{math.Log10(f.Intensity), math.Log10(f.FLOPs)})) == 2 {
			c.arrow("arrow", x.at(math.Log10(f.Intensity)), y.at(math.Log10(f.FLOPs)), x.at(math.Log10(s.Intensity)), y.at(math.Log10(s.FLOPs)))
		}
	}
	type box struct{ left, right, y float64 }
	var taken []box
	for _, s := range kept {
		at := box{left: x.at(math.Log10(s.Intensity)) + 7, y: y.at(math.Log10(s.FLOPs))}
		if at.right = at.left + textWide(s.Label); s.Label == "" || at.right > width-8 {
			continue
		}
		if slices.ContainsFunc(taken, func(b box) bool { return math.Abs(b.y-at.y) < 12 && b.left < at.right && at.left < b.right }) {
			continue
		}
		taken = append(taken, at)
		c.text("label", "start", at.left, at.y+4, s.Label, at.right-at.left+1)
	}
	return c.end()
}

func highest(ceilings []Ceiling) float64 {
	most := math.Inf(-1)
	for _, c := range ceilings {
		if !math.IsInf(c.FLOPs, 0) {
			most = max(most, c.FLOPs)
		}
	}
	return most
}
