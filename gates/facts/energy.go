package facts

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/gates/number"
)

// An EnergyReading is the energy of a launch of both sides by one sensor, in joules, and the change with its interval.
type EnergyReading struct {
	Source               string
	Baseline, Candidate  float64
	Change, Lower, Upper float64
}

func (r EnergyReading) words(limit float64) string {
	return fmt.Sprintf("%s → %s, %s [%s, %s]", number.Joules(r.Baseline), number.Joules(r.Candidate),
		number.Percent(r.Change, limit), number.Percent(r.Lower, limit), number.Percent(r.Upper, limit))
}

// An EnergyChange is the change on one shape, by the sensor that decides and by another one.
type EnergyChange struct {
	Shape string
	EnergyReading
	Other    *EnergyReading // nil where only one sensor was read
	Disagree bool           // their intervals do not overlap
}

// An EnergyChanges is the energy of a launch on all shapes.
type EnergyChanges struct {
	Shapes []EnergyChange
	Limit  float64
	Asked  string
}

func (e EnergyChanges) Sentence() string {
	var all []string
	for _, s := range e.Shapes {
		text := s.Shape + " " + s.words(e.Limit)
		if s.Disagree {
			text += fmt.Sprintf(" by the %s, and %s by the %s, which disagrees", s.Source, s.Other.words(e.Limit), s.Other.Source)
		}
		all = append(all, text)
	}
	return fmt.Sprintf("energy of a launch: %s (limit %s)", strings.Join(all, "; "), e.Asked)
}

// A NoEnergy is energy that was asked for and not measured.
type NoEnergy struct {
	Shape string // where the others were measured
	Why   string
}

func (n NoEnergy) Sentence() string {
	text := "the energy of a launch was not measured"
	if n.Shape != "" {
		text += " on " + n.Shape + ": too few segments have a reading of both sides"
	}
	if n.Why != "" {
		text += ": " + n.Why
	}
	return text
}

// A FailedInSegment is a launch that failed while energy was measured.
type FailedInSegment struct{ Detail string }

func (f FailedInSegment) Sentence() string {
	return "The kernel failed while its energy was measured: " + f.Detail
}

// A WrongInSegment is a launch that gave a wrong output while energy was measured.
type WrongInSegment struct {
	Shape   string
	Problem Fact
}

func (w WrongInSegment) Sentence() string {
	return fmt.Sprintf("The output was wrong while the energy was measured, on %s: %s; the kernel had passed its cases before", w.Shape, w.Problem.Sentence())
}
