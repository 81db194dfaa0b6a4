package gates

import (
	"fmt"
	"strings"
)

// Energy is how much energy launches took. Each side repeats its launches for a while, a segment, and the two sides alternate,
// while the judge reads the device's sensors.
type Energy struct {
	Series  []EnergySeries `json:"series,omitempty"`  // of every attempt at the machine code, one after the other
	Failure *Failure       `json:"failure,omitempty"` // of the candidate; ends the measuring
	Skipped string         `json:"skipped,omitempty"` // why nothing was measured, with the remedy
	Seconds float64        `json:"seconds,omitempty"`
}

// An EnergySeries is the segments of one shape. In the Series, Order has a letter for each segment, in pairs such as "bc cb", and
// Nanos the time of a launch in it; Batch is the launches of a pass. Each pair has new inputs, the same for both sides. The outputs of
// the last pass of both sides were compared.
type EnergySeries struct {
	Series
	Segments []EnergySegment `json:"segments"`
	// Rests are segments in which everything ran that belongs to a pass, except the launches: mostly the
	// restoring of inputs. Their energy is not the launches'.
	Rests []EnergySegment `json:"rests"`
}

// An EnergySegment is passes of one side, one after the other, each with its memory restored.
type EnergySegment struct {
	Passes  int            `json:"passes"`
	Seconds float64        `json:"seconds"`           // from the beginning of the first pass to the end of the last
	Counter *SensorChanges `json:"counter,omitempty"` // of the energy counter, in joules since any moment
	Power   *SensorChanges `json:"power,omitempty"`   // of the instant power draw, in watts
}

// SensorChanges is each new value that a sensor showed during a segment, with its first one.
type SensorChanges struct {
	At     []float64 `json:"at"` // seconds since the segment began
	Values []float64 `json:"values"`
}

// EnergyPairs is the number of pairs of segments on a shape.
const EnergyPairs = 8

// Sources of an energy figure.
const (
	EnergyByCounter = "energy counter"
	EnergyByPower   = "power draw"
)

// problem is the first field that the judge cannot use.
func (e *Energy) problem(shapes map[string]bool) (field, problem string) {
	for i, s := range e.Series {
		field := fmt.Sprintf("series[%d]", i)
		if !shapes[s.Shape] {
			return field + ".shape", fmt.Sprintf("%q is not among the shapes", s.Shape)
		}
		if f, problem := s.Series.problem(); problem != "" {
			return field + "." + f, problem
		}
		if strings.ContainsRune(s.Order, SideControl) || len(s.Segments) != len(s.Nanos) {
			return field + ".segments", fmt.Sprintf("are %d, and order is %q (a letter, b or c, for each)", len(s.Segments), s.Order)
		}
		for name, list := range map[string][]EnergySegment{"segments": s.Segments, "rests": s.Rests} {
			for k, segment := range list {
				if f, problem := segment.problem(); problem != "" {
					return fmt.Sprintf("%s.%s[%d].%s", field, name, k, f), problem
				}
			}
		}
	}
	return "", ""
}

func (s EnergySegment) problem() (field, problem string) {
	switch {
	case s.Passes < 1:
		return "passes", fmt.Sprintf("is %d", s.Passes)
	case !(s.Seconds > 0):
		return "seconds", fmt.Sprintf("is %v", s.Seconds)
	case !s.Counter.ascending():
		return "counter", "is not a list of moments in ascending order, each with a value that is not negative"
	case !s.Power.ascending():
		return "power", "is not a list of moments in ascending order, each with a value that is not negative"
	}
	return "", ""
}

// ascending reports whether the list is one that a meter can have made.
func (c *SensorChanges) ascending() bool {
	if c == nil {
		return true
	}
	for i, at := range c.At {
		if at < 0 || i > 0 && at <= c.At[i-1] || i < len(c.Values) && c.Values[i] < 0 {
			return false
		}
	}
	return len(c.At) == len(c.Values)
}
