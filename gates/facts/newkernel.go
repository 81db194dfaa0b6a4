package facts

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/gates/number"
)

// A NoBaseline is a new kernel that was not timed.
type NoBaseline struct {
	Asked bool // the policy bounds its time
}

func (n NoBaseline) Sentence() string {
	text := "there is no baseline: the kernel is new"
	if n.Asked {
		text += ", and nothing was timed"
	}
	return text
}

// A Times is the shapes of a new kernel whose times decide.
type Times struct {
	Result TimesResult
	Shapes []ShapeTime
	Rounds int
}

// A TimesResult is what the times of a new kernel show.
type TimesResult int

const (
	Timed          TimesResult = iota
	TimesTooLong               // beyond what the policy asks
	TimesUndecided             // more rounds may decide
)

func (t Times) Sentence() string {
	shapes := join(t.Shapes, "; ")
	switch t.Result {
	case TimesTooLong:
		return "Too slow: " + shapes
	case TimesUndecided:
		return fmt.Sprintf("Not decided after %d rounds: %s", t.Rounds, shapes)
	}
	return "Timed without a baseline: " + shapes
}

// A ShapeTime is the time on one shape, with what was asked.
type ShapeTime struct {
	Shape    string
	TooFew   bool // there are too few clean samples for a time
	Micros   float64
	Asked    []TimeAsked
	Roofline float64 // the share of the device's limit that was reached; 0 where it is not known
}

// A TimeAsked is a quantile of the time with its interval, in microseconds, and its bound.
type TimeAsked struct {
	Metric              string
	Value, Lower, Upper float64
	Asked               string
}

func (s ShapeTime) Sentence() string {
	if s.TooFew {
		return s.Shape + " has too few clean samples"
	}
	text := fmt.Sprintf("%s %.4g\u00a0µs", s.Shape, s.Micros)
	var asked []string
	for _, t := range s.Asked {
		asked = append(asked, fmt.Sprintf("%s %.4g\u00a0µs [%.4g, %.4g], asked %s", t.Metric, t.Value, t.Lower, t.Upper, t.Asked))
	}
	if len(asked) > 0 {
		text = s.Shape + " " + strings.Join(asked, " and ")
	}
	if s.Roofline > 0 {
		text += fmt.Sprintf(" (%s of the roofline)", number.Share(s.Roofline))
	}
	return text
}

// An Unreliable is times of a runner that is not fit to measure.
type Unreliable struct{ Why Fact }

func (u Unreliable) Sentence() string {
	return "The times are not reliable: " + u.Why.Sentence()
}

// BringWithin is the advice for a time beyond its bound.
type BringWithin struct{ Shape, Asked string }

func (b BringWithin) Step(Reader) string {
	return fmt.Sprintf("bring the time of %s within its limit (%s)", b.Shape, b.Asked)
}
