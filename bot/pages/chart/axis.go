package chart

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// An axis maps values to coordinates. It halves values before it subtracts them, so that no range
// overflows.
type axis struct {
	low, high float64 // values
	from, to  float64 // coordinates
}

// newAxis spans all values with a small margin. It ignores values that are not finite, and ok is
// false if none remain.
func newAxis(values []float64, from, to float64) (a axis, ok bool) {
	values = finite(values)
	if len(values) == 0 {
		return axis{}, false
	}
	a = axis{low: slices.Min(values), high: slices.Max(values), from: from, to: to}
	air := (a.high/2 - a.low/2) / 10
	if air == 0 {
		air = max(math.Abs(a.low)/20, math.SmallestNonzeroFloat64*100)
	}
	const most = math.MaxFloat64 / 4
	a.low, a.high = inside(a.low, -most, most), inside(a.high, -most, most)
	a.low, a.high = a.low-air/2, a.high+air/2
	return a, true
}

func (a axis) at(v float64) float64 {
	span := a.high/2 - a.low/2
	share := 0.5
	if span > 0 {
		share = inside((v/2-a.low/2)/span, 0, 1)
	}
	return a.from + share*(a.to-a.from)
}

// ticks returns a few round values within the axis.
func (a axis) ticks(most int) []float64 {
	span := a.high - a.low
	if !(span > 0) || math.IsInf(span, 0) {
		return []float64{a.low}
	}
	rough := span / float64(most)
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	step := power
	for _, times := range []float64{1, 2, 2.5, 5, 10} {
		if step = times * power; step >= rough {
			break
		}
	}
	if !(step > 0) || math.IsInf(step, 0) {
		return []float64{a.low}
	}
	var list []float64
	for i := math.Ceil(a.low / step); len(list) <= most; i++ {
		v := i * step
		if v > a.high || math.IsInf(v, 0) || len(list) > 0 && v <= list[len(list)-1] {
			break
		}
		list = append(list, v)
	}
	return list
}

// bottom draws the axis with its labels below, and grid lines across the chart.
func (a axis) bottom(c *canvas, top, y float64, unit string, write func(float64) string) {
	ticks := a.ticks(4)
	room := (a.to - a.from) / float64(max(1, len(ticks)))
	for _, v := range ticks {
		c.line("grid", a.at(v), top, a.at(v), y)
	}
	c.line("axis", a.from, y, a.to, y)
	taken := math.Inf(-1)
	for _, v := range ticks {
		label := clip(write(v), room)
		half := textWide(label) / 2
		if a.at(v)-half < taken {
			continue
		}
		taken = a.at(v) + half + charWide
		c.text("tick", "middle", a.at(v), y+12, label, room)
	}
	if unit != "" {
		c.text("unit", "end", a.to, y+26, unit, a.to-a.from)
	}
}

// left draws the axis on the left side.
func (a axis) left(c *canvas, x, right float64, write func(float64) string) {
	for _, v := range a.ticks(4) {
		c.line("grid", x, a.at(v), right, a.at(v))
		c.text("tick", "end", x-4, a.at(v)+4, write(v), x-4)
	}
}

// plain formats a value with few significant digits.
func plain(v float64) string {
	size := math.Abs(v)
	switch {
	case v == 0:
		return "0"
	case size >= 1e6 || size < 1e-3:
		return strings.Replace(strconv.FormatFloat(v, 'g', 3, 64), "e+", "e", 1)
	}
	text := strconv.FormatFloat(v, 'f', max(0, 3-int(math.Floor(math.Log10(size)))), 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return strings.Replace(text, "-", "−", 1)
}

// gain formats a speedup on an axis, in the notation of the figures: in percent below 2×.
func gain(v float64) string {
	if v < 1 {
		return percent(v)
	}
	return plain(math.Round((1+v)*1e3)/1e3) + "×"
}

// percent formats a share.
func percent(v float64) string {
	if v == 0 {
		return "0 %"
	}
	sign := "+"
	if v < 0 {
		sign = "" // plain writes the minus
	}
	// plain rounds larger values. Rounding here would round them twice.
	if v = 100 * v; math.Abs(v) < 100 {
		v = math.Round(v*100) / 100
	}
	return sign + plain(v) + " %"
}
