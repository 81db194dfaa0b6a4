package facts

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/gates/number"
)

// A Speeds is the shapes whose speed decides the gate.
type Speeds struct {
	Result     SpeedResult
	Shapes     []ShapeSpeed
	Rounds     int
	Exhausted  bool // the time budget ended the run
	CodeNumber int  // of a machine code that would pass if it were the first of the change; else 0
}

// A SpeedResult is what the speeds show.
type SpeedResult int

const (
	Proven    SpeedResult = iota
	TooSlow               // the gain that a target asks is not there
	Slower                // a guard has lost more than it may
	Undecided             // more rounds may decide
)

func (s Speeds) Sentence() string {
	shapes := join(s.Shapes, "; ")
	switch s.Result {
	case Proven:
		return "Proven: " + shapes
	case TooSlow:
		return "Too slow: " + shapes
	case Slower:
		return "Slower: " + shapes
	}
	when := ""
	if s.Exhausted {
		when = ", when the time budget was spent"
	}
	text := fmt.Sprintf("Not decided after %d rounds%s: %s", s.Rounds, when, shapes)
	if s.CodeNumber > 0 {
		text += fmt.Sprintf(". It would pass as the first machine code of this change. It is number %d, and each further machine code must pass a stricter test: it needs a larger gain or more rounds", s.CodeNumber)
	}
	return text
}

// A ShapeSpeed is the speedup on one shape, with what was asked.
type ShapeSpeed struct {
	Shape    string
	TooFew   bool // there are too few clean samples for a speedup
	Speedup  Estimate
	Asked    []Condition
	ByInputs []KindSpeed // where the kinds of input explain a miss
	Remarks  []Fact
	But      []Fact // what keeps the shape from passing although its median meets the goal
}

// A Condition is what is asked of one metric.
type Condition struct{ Metric, Asked string }

func (c Condition) String() string { return c.Metric + " " + c.Asked }

func (s ShapeSpeed) Sentence() string {
	if s.TooFew {
		return s.Shape + " has too few clean samples"
	}
	var asked []string
	for _, c := range s.Asked {
		asked = append(asked, c.String())
	}
	text := fmt.Sprintf("speedup %s on %s (asked %s)", s.Speedup, s.Shape, strings.Join(asked, " and "))
	if len(s.ByInputs) > 0 {
		text += ", by inputs " + byInputs(s.ByInputs)
	}
	for _, f := range s.Remarks {
		text += ", " + f.Sentence()
	}
	for _, f := range s.But {
		text += ", but " + f.Sentence()
	}
	return text
}

// A KindSpeed is the speedup on one kind of input.
type KindSpeed struct {
	Kind    string
	Speedup float64
}

func byInputs(all []KindSpeed) string {
	var parts []string
	for _, k := range all {
		parts = append(parts, fmt.Sprintf("%s %s", k.Kind, number.Percent(k.Speedup)))
	}
	return strings.Join(parts, ", ")
}

// A KindsApart is kinds of input that gain differently.
type KindsApart struct {
	Shape string
	Kinds []KindSpeed
}

func (k KindsApart) Sentence() string {
	return fmt.Sprintf("%s by inputs: %s", k.Shape, byInputs(k.Kinds))
}

// An OfShape is a fact about one shape.
type OfShape struct {
	Shape string
	Fact  Fact
}

func (o OfShape) Sentence() string { return o.Shape + ": " + o.Fact.Sentence() }

// A Waits is a candidate that sleeps, so that processor time does not show how long a caller waits.
type Waits struct{ Micros float64 }

func (w Waits) Sentence() string {
	return fmt.Sprintf("it waits %s longer per launch than the baseline, so the wall clock counts", number.ShortTime(w.Micros))
}

// A Capped is a gain of which one kind of input contributes more than may count.
type Capped struct {
	Most  float64 // that counts of one kind
	Kinds []string
}

func (c Capped) Sentence() string {
	return fmt.Sprintf("of which a kind of input counts for at most %s (%s gain more)", number.Percent(c.Most), strings.Join(c.Kinds, " and "))
}

// A Settled is a shape that was proven before the last round, and not timed again.
type Settled struct{ Rounds int }

func (s Settled) Sentence() string {
	return fmt.Sprintf("proven after %d rounds, and not timed in the later ones", s.Rounds)
}

// A SlowTail is a mean or a p90 below its limit.
type SlowTail struct {
	Metric  string
	Speedup Estimate
	Limit   float64
}

func (s SlowTail) Sentence() string {
	return fmt.Sprintf("the speedup of the %s is %s (at least %s: slow launches count as well)", s.Metric, s.Speedup, number.Percent(s.Limit))
}

// A SlowKind is a kind of input below its limit.
type SlowKind struct {
	Kind    string
	Speedup Estimate
	Limit   float64
}

func (s SlowKind) Sentence() string {
	return fmt.Sprintf("on %s inputs it is %s (each kind of input must reach %s)", s.Kind, s.Speedup, number.Percent(s.Limit))
}

// A TooFewAlone is a shape without enough launches that ran alone.
type TooFewAlone struct{}

func (TooFewAlone) Sentence() string { return "too few single launches were timed to confirm it" }

// A GainAlone is what a launch gains in a batch and when it runs alone.
type GainAlone struct {
	Refuted      bool // the launches that ran alone show that the goal is missed; else they do not confirm it yet
	Batch, Alone float64
	Speedup      *Estimate // alone
}

func (g GainAlone) Sentence() string {
	text := "single launches do not confirm it yet: "
	if g.Refuted {
		text = "single launches do not confirm it: "
	}
	text += fmt.Sprintf("a launch gains %.3g µs in a batch and %.3g µs on its own", g.Batch, g.Alone)
	if g.Speedup != nil {
		text += fmt.Sprintf(" (speedup %s)", *g.Speedup)
	}
	return text
}

// A MeanAlone is launches that ran alone whose mean gains less than asked.
type MeanAlone struct{ Median, Mean float64 }

func (m MeanAlone) Sentence() string {
	return fmt.Sprintf("of single launches the median gains %.3g µs and the mean %.3g µs: slow launches count as well", m.Median, m.Mean)
}

// A Detectable is how small a difference the rounds could show.
type Detectable struct {
	Shape  string
	Rounds int
	Share  float64
	Needed int // rounds that would decide; 0 where no affordable number does
}

func (d Detectable) Sentence() string {
	text := fmt.Sprintf("%s: with this noise, %d rounds can show a difference of %s from the goal", d.Shape, d.Rounds, number.Share(d.Share))
	if d.Needed > 0 {
		text += fmt.Sprintf("; about %d rounds would decide", d.Needed)
	}
	return text
}
