package chart

import (
	"fmt"
	"math"
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
}

// Roofline draws the achieved performance below the limits of the device, on logarithmic axes.
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
	const left, top, bottom = 48, 10, 170
	x, _ := newAxis(xs, left, width-8)
	y, _ := newAxis(ys, bottom, top)
	c := begin("roofline", title, "Each dot is one shape; the nearer to the lines above it, the better.", width, bottom+32)
	power := func(v float64) string { return plain(math.Round(math.Pow(10, v)*100) / 100) }
	x.bottom(c, top, bottom, "FLOP per byte", power)
	y.left(c, left, width-8, func(v float64) string { return plain(math.Round(math.Pow(10, v-12)*1000) / 1000) })
	c.text("unit", "start", 2, bottom+26, "TFLOP/s", 80)
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
