package gates

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/stats"
)

// States is readings of the device, one after each block of a series. A list is empty where the device does not have the figure.
type States struct {
	ClockMHz []float64 `json:"clock_mhz,omitempty"` // of the SMs
	Watts    []float64 `json:"watts,omitempty"`
	Celsius  []float64 `json:"celsius,omitempty"`
}

// Lists returns the lists.
func (s *States) Lists() [][]float64 {
	if s == nil {
		return nil
	}
	return [][]float64{s.ClockMHz, s.Watts, s.Celsius}
}

// problem is what keeps the readings of so many blocks from being used.
func (s *States) problem(blocks int) string {
	for _, list := range s.Lists() {
		if len(list) != 0 && len(list) != blocks {
			return fmt.Sprintf("has %d readings of %d blocks", len(list), blocks)
		}
		if slices.ContainsFunc(list, func(v float64) bool { return !(v > 0) || math.IsInf(v, 0) }) {
			return "has a reading that is not above 0"
		}
	}
	return ""
}

// clockLeast is the smallest range of the clock within a round that is worth a sentence.
const clockLeast = 0.02

// clockMoved is not ok unless the clock moved so much within a round that it can explain the difference between the sides. The
// samples of a block are close together, so most of it cancels.
func clockMoved(rounds []Round, shape Shape, samples *samples) (moved facts.ClockMoved, ok bool) {
	for i, r := range rounds {
		for _, s := range r.Series {
			if s.Shape != shape.Name || s.States == nil || len(s.States.ClockMHz) < 2 {
				continue
			}
			low, high := slices.Min(s.States.ClockMHz), slices.Max(s.States.ClockMHz)
			if !ok || high/low > moved.High/moved.Low {
				moved, ok = facts.ClockMoved{Shape: shape.Label(), Round: i + 1, Low: low, High: high}, true
			}
		}
	}
	if !ok {
		return moved, false
	}
	difference := 0.0
	if ratios := slices.Concat(samples.ratios.Rounds...); len(ratios) > 0 {
		difference = math.Abs(math.Log(stats.Describe(ratios).P50))
	}
	moved.Difference = math.Expm1(difference)
	move := math.Log(moved.High / moved.Low)
	return moved, move >= clockLeast && move >= difference
}

// blocks is how many blocks the series has.
func (s Series) blocks() int { return len(strings.Fields(s.Order)) }
