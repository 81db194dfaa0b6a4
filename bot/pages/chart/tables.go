package chart

import (
	"fmt"
	"math"
)

// A Bar compares one number before and after.
type Bar struct {
	Label  string
	Before *float64
	After  *float64
	Text   string // the numbers as text
	Class  string // result
}

// Bars draws a pair of bars per row. Each row has its own scale, because registers and bytes have
// no common one.
func Bars(title string, rows []Bar) string {
	if len(rows) == 0 {
		return nothing("bars", title)
	}
	const high = 34
	c := begin("bars", title, "", width, float64(4+high*len(rows)))
	for i, r := range rows {
		top := 4 + high*float64(i)
		// The numbers matter most, so a long label is truncated to leave room for them.
		figures := min(textWide(r.Text), width-4)
		c.text("label", "start", 2, top+11, r.Label, max(10*charWide, width-4-figures-charWide))
		c.text("figure "+r.Class, "end", width-2, top+11, r.Text, width-4)
		most := 0.0
		for _, v := range finite(deref(r.Before, r.After)) {
			most = max(most, math.Abs(v))
		}
		long := func(v *float64) float64 {
			if v == nil || most == 0 || math.IsNaN(*v) {
				return 0
			}
			return inside(math.Abs(*v)/most, 0, 1) * (width - 4)
		}
		c.rect("bar baseline", 2, top+15, long(r.Before), 5, "")
		c.rect("bar candidate", 2, top+21, long(r.After), 5, "")
	}
	return c.end()
}

// A Cell is one cell of a grid.
type Cell struct {
	Class string // result; empty leaves the cell blank
	Hint  string
}

// A GridRow holds the cells of one row, in the order of the columns.
type GridRow struct {
	Label string
	Cells []Cell
}

// Grid draws one cell for each row and column. The hints of the cells name the columns; only the
// first and the last column have a label.
func Grid(title string, columns []string, rows []GridRow) string {
	if len(rows) == 0 || len(columns) == 0 {
		return nothing("grid-map", title)
	}
	const left, top, high = 150, 18, 18
	wide := min(24, (width-left-4)/float64(len(columns)))
	bad := 0
	for _, r := range rows {
		for _, cell := range r.Cells {
			if cell.Class == "fail" {
				bad++
			}
		}
	}
	c := begin("grid-map", title, fmt.Sprintf("%d rows, %d columns, %d fields failed.", len(rows), len(columns), bad), width, float64(top+high*len(rows)+4))
	end := left + wide*float64(len(columns))
	c.text("tick", "start", left, 12, columns[0], end-left)
	if last := columns[len(columns)-1]; len(columns) > 1 && textWide(columns[0]+" "+last) < end-left {
		c.text("tick", "end", end, 12, last, end-left)
	}
	for i, r := range rows {
		y := top + high*float64(i)
		c.text("label", "end", left-6, y+12, r.Label, left-8)
		for k, cell := range r.Cells {
			if k >= len(columns) || cell.Class == "" {
				continue
			}
			c.rect("cell "+cell.Class, left+wide*float64(k)+1, y+1, wide-2, high-3, cell.Hint)
		}
	}
	return c.end()
}

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
			fmt.Sprintf("%s: %s TFLOP/s at %s FLOP per byte", s.Name, plain(s.FLOPs/1e12), plain(s.Intensity)))
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
