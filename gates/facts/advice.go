package facts

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/gates/number"
)

// again is how a reader measures again.
func (r Reader) again() string {
	if r.Terminal {
		return "run again"
	}
	return "comment /rebench"
}

// againWith is how a reader adds so many rounds.
func (r Reader) againWith(rounds int) string {
	if r.Terminal {
		return fmt.Sprintf("run again with --rounds %d", r.Rounds+rounds)
	}
	return fmt.Sprintf("comment /rebench rounds=%d", rounds)
}

// more is how a reader measures more rounds, where nobody can tell how many it takes.
func (r Reader) more() string {
	if r.Terminal {
		return fmt.Sprintf("measure more rounds: run again with --rounds %d", 2*max(r.Rounds, 1))
	}
	return "measure more rounds: comment /rebench"
}

// MeasureMore is the advice where the time budget ended a run too early.
type MeasureMore struct{}

func (MeasureMore) Step(to Reader) string { return to.more() + ", or raise performance.budget" }

// MeasureUndisturbed is the advice where a pass does not hold with the disturbed samples.
type MeasureUndisturbed struct{}

func (MeasureUndisturbed) Step(to Reader) string {
	return "measure again on an idle machine: " + to.again()
}

// MeasureShape is the advice for a shape without enough clean samples.
type MeasureShape struct{ Shape string }

func (m MeasureShape) Step(Reader) string {
	return fmt.Sprintf("measure %s again: too few clean samples", m.Shape)
}

// AddRounds is the advice where so many more rounds would decide.
type AddRounds struct {
	Shape  string
	Rounds int
}

func (a AddRounds) Step(to Reader) string {
	return fmt.Sprintf("%s, or gain more on %s", to.againWith(a.Rounds), a.Shape)
}

// AddAgreeingRounds is the advice for a later machine code, which too few rounds prove one by one.
type AddAgreeingRounds struct {
	Shape         string
	Agree, Rounds int
	CodeNumber    int
}

func (a AddAgreeingRounds) Step(to Reader) string {
	return fmt.Sprintf("%s: %d of %d rounds meet the goal on %s, and machine code %d of this change needs more such rounds", to.again(), a.Agree, a.Rounds, a.Shape, a.CodeNumber)
}

// GainMore is the advice for a speed on the threshold.
type GainMore struct{ Shape string }

func (g GainMore) Step(Reader) string {
	return fmt.Sprintf("gain more on %s: its speedup is so close to the goal that no affordable number of rounds decides", g.Shape)
}

// An OrMeasureMore is an advice for a shape that more rounds may also decide.
type OrMeasureMore struct{ Advice Advice }

func (o OrMeasureMore) Step(to Reader) string { return o.Advice.Step(to) + ", or " + to.more() }

// BringTime is the advice with the time that a shape must come down to.
type BringTime struct {
	Shape  string
	Micros float64
}

func (b BringTime) Step(Reader) string {
	return fmt.Sprintf("bring `%s` to ≤\u00a0%s\u00a0µs", b.Shape, number.AtMost(b.Micros))
}

// BringKinds is the advice with the times that kinds of input must come down to.
type BringKinds struct {
	Shape string
	Kinds []KindLimit // none where their times are not known
}

// A KindLimit is the time that a kind of input must come down to.
type KindLimit struct {
	Kind   string
	Micros float64
}

func (b BringKinds) Step(Reader) string {
	if len(b.Kinds) == 0 {
		return fmt.Sprintf("make %s faster again on the kinds of input that became slower", b.Shape)
	}
	var steps []string
	for _, k := range b.Kinds {
		steps = append(steps, fmt.Sprintf("to ≤\u00a0%s\u00a0µs on %s inputs", number.AtMost(k.Micros), k.Kind))
	}
	return fmt.Sprintf("bring `%s` %s", b.Shape, strings.Join(steps, ", "))
}

// WinBack is the advice for a shape that lost time, where the time to reach is not known.
type WinBack struct{ Shape, Asked string }

func (w WinBack) Step(Reader) string {
	return fmt.Sprintf("make %s faster again (asked %s)", w.Shape, w.Asked)
}

// An OnUnseenSize is an advice about the secret shape, whose size the author has never seen.
type OnUnseenSize struct{ Advice Advice }

func (o OnUnseenSize) Step(to Reader) string {
	return o.Advice.Step(to) + ": this size is random, so the kernel must also be fast on sizes that the manifest does not name"
}

// TimeSizeAgain is the command that times the secret shape again.
type TimeSizeAgain struct{ Command, Dims string }

func (t TimeSizeAgain) Step(Reader) string {
	return fmt.Sprintf("time this size again with: %s --secret-shape %s", t.Command, strings.ReplaceAll(t.Dims, " ", ","))
}

// FixSlowLaunches is the advice for a slow tail.
type FixSlowLaunches struct{ Shape string }

func (f FixSlowLaunches) Step(Reader) string {
	return fmt.Sprintf("make the slow launches on %s faster: they lose what the median gains", f.Shape)
}

// GainAloneToo is the advice for a gain that only batches show.
type GainAloneToo struct{ Shape string }

func (g GainAloneToo) Step(Reader) string {
	return fmt.Sprintf("make a single launch on %s faster: a gain that only batches show does not count", g.Shape)
}
