package pages

import (
	"html/template"

	"github.com/kernelgate/kernelgate/bot/pages/chart"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/facts"
)

// sensors are the readings that a page shows below the samples of a shape, in display order.
var sensors = []struct {
	name, unit string
	block      func(*gates.States) []float64
	round      func(*gates.Fitness) float64 // around a round; 0: unknown
}{
	{"SM clock", "MHz", func(s *gates.States) []float64 { return s.ClockMHz }, func(f *gates.Fitness) float64 { return float64(f.ClockMHz["sm"]) }},
	{"power draw", "W", func(s *gates.States) []float64 { return s.Watts }, func(f *gates.Fitness) float64 { return f.Watts }},
	{"temperature", "°C", func(s *gates.States) []float64 { return s.Celsius }, func(f *gates.Fitness) float64 { return float64(f.Celsius) }},
}

// statesOf draws what the device showed while the samples of a shape were taken: after every block or, in older evidence, before and
// after every round. It is empty where nothing was read.
func statesOf(rounds []gates.Round, shape gates.Shape, breaks []int) template.HTML {
	tracks := make([]chart.Track, len(sensors))
	for i, s := range sensors {
		tracks[i].Name, tracks[i].Unit = s.name, s.unit
	}
	n, found := 0, false
	for _, round := range rounds {
		for _, series := range round.Series {
			if series.Shape != shape.Name {
				continue
			}
			first, ends := n, blockEnds(series.Order)
			n += len(series.Nanos)
			for i, s := range sensors {
				t := &tracks[i]
				add := func(at int, value float64) {
					if value > 0 {
						t.At, t.Values, found = append(t.At, float64(at)), append(t.Values, value), true
					}
				}
				if readings := series.States; readings != nil && len(s.block(readings)) == len(ends) {
					for k, v := range s.block(readings) {
						add(first+ends[k], v)
					}
					continue
				}
				if round.Before != nil {
					add(first, s.round(round.Before))
				}
				if round.After != nil && n > first {
					add(n-1, s.round(round.After))
				}
			}
		}
	}
	if !found {
		return ""
	}
	return picture(chart.Tracks(shape.Label()+": clock, power draw and temperature", n, breaks, tracks))
}

// blockEnds returns the position of the last sample of each block.
func blockEnds(order string) (ends []int) {
	n := 0
	for i, letter := range order {
		if letter == ' ' {
			continue
		}
		if n++; i+1 == len(order) || order[i+1] == ' ' {
			ends = append(ends, n-1)
		}
	}
	return ends
}

// clockOf is the sentence about a clock that moved within a round of a shape; "" where it did not.
func clockOf(e *gates.Evidence, shape gates.Shape) string {
	for _, f := range gates.Unsteady(e) {
		if c, ok := f.(facts.ClockMoved); ok && c.Shape == shape.Label() {
			return c.Sentence()
		}
	}
	return ""
}
