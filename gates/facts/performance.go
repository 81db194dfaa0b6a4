package facts

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/gates/number"
)

// A NothingTimed is evidence without a time.
type NothingTimed struct{}

func (NothingTimed) Sentence() string { return "nothing was timed" }

// A NoSuchShapes is shapes that the policy's goals name and the manifest does not.
type NoSuchShapes struct{ Names []string }

func (n NoSuchShapes) Sentence() string {
	return "the manifest has no shape " + strings.Join(n.Names, ", ")
}

// A NoShapes is a policy whose goals select no shape.
type NoShapes struct{}

func (NoShapes) Sentence() string {
	return "the policy's goals select no shape of the manifest, so nothing is proven"
}

// A FewRounds is a run that ended before the first interim analysis.
type FewRounds struct{ Rounds, First int }

func (f FewRounds) Sentence() string {
	return fmt.Sprintf("%d rounds were measured; the first decision is after %d", f.Rounds, f.First)
}

// A NothingGained is a change without a change of the machine code, where a gain is asked.
type NothingGained struct{ Asked string }

func (n NothingGained) Sentence() string {
	return fmt.Sprintf("Too slow: the machine code is the same as the baseline's, so nothing was gained (asked %s)", n.Asked)
}

// A NothingToMeasure is a change without a change of the machine code.
type NothingToMeasure struct{}

func (NothingToMeasure) Sentence() string { return sameCode + ": nothing to measure" }

// ChangeCode is the advice for a change without a change of the machine code.
type ChangeCode struct{}

func (ChangeCode) Step(Reader) string {
	return "change what the compiler emits: this change compiles to the baseline's machine code"
}

// StartChange is the advice where the base itself is judged.
type StartChange struct{ Kernel, Shape string }

func (s StartChange) Step(Reader) string {
	return fmt.Sprintf("this is the base itself, and there is no change to judge yet: change the kernel on a branch, or look at one case of it: kernelgate check %s --shape %s", s.Kernel, s.Shape)
}

// A NothingGainedOn is shapes that the baseline's machine code serves, where a gain is asked.
type NothingGainedOn struct {
	Shapes []string
	Asked  string // of the first of them
}

func (n NothingGainedOn) Sentence() string {
	return fmt.Sprintf("Too slow: %s runs the baseline's machine code, so nothing was gained there (asked %s)", strings.Join(n.Shapes, ", "), n.Asked)
}

// ChangeVariant is the advice to it.
type ChangeVariant struct{ Shapes []string }

func (c ChangeVariant) Step(Reader) string {
	return "change the variant that is launched for " + strings.Join(c.Shapes, ", ") + ", or choose a different variant"
}

// A NoShapeToMeasure is a choice by problem size in which the baseline's machine code serves every shape.
type NoShapeToMeasure struct{}

func (NoShapeToMeasure) Sentence() string {
	return "Every timed shape runs the baseline's machine code: nothing to measure"
}

// A FailedWhileTimed is a launch that failed under the clock.
type FailedWhileTimed struct {
	Round  int
	Detail string
}

func (f FailedWhileTimed) Sentence() string {
	return fmt.Sprintf("The kernel failed while it was timed, in round %d: %s", f.Round, f.Detail)
}

// A WrongWhileTimed is a launch that gave a wrong output under the clock.
type WrongWhileTimed struct {
	Shape   string
	Round   int
	Problem Fact
}

func (w WrongWhileTimed) Sentence() string {
	return fmt.Sprintf("The output was wrong while it was timed, on %s in round %d: %s; the kernel had passed its cases before", w.Shape, w.Round, w.Problem.Sentence())
}

// ComputeWhole is the advice to both.
type ComputeWhole struct{}

func (ComputeWhole) Step(Reader) string {
	return "make every launch compute its whole output from its inputs"
}

// A NotVerified is timed launches whose outputs the runner did not compare.
type NotVerified struct{ Round int }

func (n NotVerified) Sentence() string {
	return fmt.Sprintf("The outputs of the launches timed in round %d were not verified", n.Round)
}

// An ExistingTimed is outputs of timed launches that are wrong as the baseline's are, in a few words.
type ExistingTimed struct{ Shapes []string }

func (e ExistingTimed) Sentence() string {
	return "timed outputs on " + strings.Join(e.Shapes, ", ") + " are wrong as before"
}

// An Unfit is a runner whose samples cannot be used.
type Unfit struct{ Why Fact }

func (u Unfit) Sentence() string { return "The runner is not fit to measure: " + u.Why.Sentence() }

// TooNoisy is a machine on which the rounds of the policy cannot decide.
type TooNoisy struct {
	Shape        string
	Rounds, Most int     // so far, and by the policy
	Share        float64 // the smallest difference from the goal that all of them could show
	Enough       float64 // a difference that should show
	Needed       int     // rounds that would show it; 0 where no affordable number does
	Load         float64 // of the host, where it counts
	Cores        int
}

func (n TooNoisy) Sentence() string {
	text := fmt.Sprintf("The machine is too noisy: after %d rounds, %s varies so much that all %d rounds of the policy could only show a difference of %s from the goal, so no more were measured", n.Rounds, n.Shape, n.Most, number.Share(n.Share))
	if n.Needed > 0 {
		text += fmt.Sprintf(". With this noise, a difference of %s takes about %d rounds", number.Share(n.Enough), n.Needed)
	}
	if n.Cores > 0 && n.Load > float64(n.Cores) {
		text += fmt.Sprintf(". The load of the host was up to %.0f on %d cores", n.Load, n.Cores)
	}
	return text
}

// FreeMachine is the advice to it.
type FreeMachine struct{}

func (FreeMachine) Step(Reader) string { return "stop other work on the machine, then run again" }

// A ControlOff is two copies of the baseline that differ.
type ControlOff struct {
	Shape   string
	Control Estimate
	Allowed string
}

func (c ControlOff) Sentence() string {
	return fmt.Sprintf("the A/A control on %s is %s instead of 0: two copies of the baseline differ by more than the allowed %s", c.Shape, c.Control, c.Allowed)
}

// A CoarseClock is a clock whose steps are too large for the samples.
type CoarseClock struct {
	Shape      string
	Step, Most float64 // shares of a sample
}

func (c CoarseClock) Sentence() string {
	return fmt.Sprintf("the clock's resolution is %s of a sample on %s (at most %s can be judged); time several launches at once, or use a finer clock",
		number.Share(c.Step), c.Shape, number.Share(c.Most))
}

// A MostlyDisturbed is a shape of which most samples were disturbed.
type MostlyDisturbed struct {
	Shape            string
	Disturbed, Taken int
}

func (m MostlyDisturbed) Sentence() string {
	return fmt.Sprintf("other activity on the machine disturbed %d of %d samples on %s", m.Disturbed, m.Taken, m.Shape)
}

// A PassesWithoutDisturbed is a pass that does not hold with the samples that were marked as disturbed.
type PassesWithoutDisturbed struct {
	Samples int
	With    Fact
}

func (p PassesWithoutDisturbed) Sentence() string {
	return fmt.Sprintf("Not decided: it passes only if the %d disturbed samples are left out. With them: %s", p.Samples, p.With.Sentence())
}
