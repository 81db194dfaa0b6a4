package facts

import (
	"fmt"

	"github.com/kernelgate/kernelgate/gates/number"
)

// A Suspicious is figures that are too good to be true.
type Suspicious struct{ Why Fact }

func (s Suspicious) Sentence() string { return "Too good to be true: " + s.Why.Sentence() }

// ShowWork is the advice to it.
type ShowWork struct{}

func (ShowWork) Step(Reader) string {
	return "show that all of the work is done and timed, or ask a maintainer to comment /override with the reason"
}

// A BelowFloor is a time that the device cannot reach.
type BelowFloor struct {
	Shape         string
	Micros, Floor float64
}

func (b BelowFloor) Sentence() string {
	return fmt.Sprintf("%s takes %.4g µs, and the device needs at least %.4g µs for this work", b.Shape, b.Micros, b.Floor)
}

// A Disturbs is a candidate that slows the baseline down.
type Disturbs struct {
	Shape   string
	Slower  float64
	Allowed string
}

func (d Disturbs) Sentence() string {
	return fmt.Sprintf("the baseline is %s slower after the candidate is loaded, on %s (at most %s): the candidate slows its baseline down",
		number.Share(d.Slower), d.Shape, d.Allowed)
}

// A BringsDisturbance is a candidate with which more samples are marked as disturbed.
type BringsDisturbance struct {
	Shape        string
	With, Before float64 // shares of the samples
}

func (b BringsDisturbance) Sentence() string {
	return fmt.Sprintf("other activity on the machine disturbed %s of the samples on %s while the candidate was loaded, and %s before", number.Share(b.With), b.Shape, number.Share(b.Before))
}

// A FasterWithState is a candidate whose time depends on what an earlier launch left behind.
type FasterWithState struct {
	Shape  string
	Faster float64
}

func (f FasterWithState) Sentence() string {
	return fmt.Sprintf("the candidate is %s faster on %s when its memory is not reset between launches: its time depends on state that it keeps", number.Share(f.Faster), f.Shape)
}

// A PreparesOnce is a candidate whose first launch does work for later ones.
type PreparesOnce struct{ Shape string }

func (p PreparesOnce) Sentence() string {
	return fmt.Sprintf("on %s the first launch of a process takes longer than the later ones, by more than the baseline's first launch does: it does work that later launches skip", p.Shape)
}

// A GainUnseen is a gain that the device's clock shows and the clock on the wall does not.
type GainUnseen struct {
	Shape        string
	Wall, Device float64 // shares of the baseline's time
}

func (g GainUnseen) Sentence() string {
	return fmt.Sprintf("the wall clock does not confirm the gain on %s: it shows %s of the baseline's time, and the device's clock shows %s",
		g.Shape, number.Percent(g.Wall), number.Percent(g.Device))
}

// A KindOn is a shape with one kind of input.
type KindOn struct {
	Shape string
	Kind  string // empty where there is one kind only
}

func (k KindOn) String() string {
	if k.Kind == "" {
		return k.Shape
	}
	return fmt.Sprintf("%s with %s inputs", k.Shape, k.Kind)
}

// A BatchGainsMore is a batch that gains more than its launches do alone.
type BatchGainsMore struct {
	Inputs     KindOn
	Gain, Most float64 // in microseconds a launch: the gain in a batch, and how much of it may be lacking alone
}

func (b BatchGainsMore) Sentence() string {
	return fmt.Sprintf("on %s a launch in a batch gains %.3g µs, and a single launch gains over %.2g µs less: the launches of a batch share work", b.Inputs, b.Gain, b.Most)
}

// A BatchFaster is a new kernel whose launches take far longer alone than in a batch.
type BatchFaster struct {
	Inputs KindOn
	Micros float64 // of a launch in a batch
}

func (b BatchFaster) Sentence() string {
	return fmt.Sprintf("on %s a launch in a batch takes %.3g µs, and a single launch takes far longer: the launches of a batch share work", b.Inputs, b.Micros)
}

// An Uneven is a candidate of whose launches a few do the work of the others.
type Uneven struct{ Inputs KindOn }

func (u Uneven) Sentence() string {
	return fmt.Sprintf("on %s some launches of a process take longer than the others, by more than in the baseline: a few launches do work that the others skip", u.Inputs)
}
