package facts

import "fmt"

// A NothingCompared is evidence without a comparison of outputs.
type NothingCompared struct{}

func (NothingCompared) Sentence() string { return "no output was compared" }

// An ElementCount is elements of an output that no bound allows.
type ElementCount struct {
	Kind   ElementKind
	N, All int
}

// An ElementKind is what is wrong with elements of an output.
type ElementKind string

const (
	Unwritten ElementKind = "were never written"
	NaN       ElementKind = "are NaN"
	Infinite  ElementKind = "are infinite"
)

func (e ElementCount) Sentence() string {
	return fmt.Sprintf("%d of %d elements %s", e.N, e.All, e.Kind)
}

// An ErrorBound is an error beyond its bound.
type ErrorBound struct {
	Error ErrorKind
	Value float64
	Asked string
}

// An ErrorKind is one of the figures that compare an output with its reference.
type ErrorKind string

const (
	NormError ErrorKind = "norm error"
	MaxError  ErrorKind = "max |err|"
	MeanError ErrorKind = "mean |err|"
)

func (e ErrorBound) Sentence() string {
	value := fmt.Sprintf("%.4g", e.Value)
	if e.Error == NormError {
		value = fmt.Sprintf("%.3g%%", e.Value*100)
	}
	return fmt.Sprintf("%s %s (asked %s)", e.Error, value, e.Asked)
}

// A BadElements is more elements beyond the manifest's tolerance than the policy allows.
type BadElements struct {
	Bad, All int
	Share    float64
	Asked    string
}

func (b BadElements) Sentence() string {
	return fmt.Sprintf("%d of %d elements (%.3g%%) are beyond the manifest's tolerance (asked %s)", b.Bad, b.All, b.Share*100, b.Asked)
}

// An OfOutput is what is wrong with one of several outputs.
type OfOutput struct {
	Output string
	Miss   Fact
}

func (o OfOutput) Sentence() string { return o.Output + ": " + o.Miss.Sentence() }

// An EndToEnd is an error against the reference on the inputs before quantisation.
type EndToEnd struct{ Miss Fact }

func (e EndToEnd) Sentence() string { return "against the unquantised inputs: " + e.Miss.Sentence() }

// A NotDeterministic is a kernel whose output varies.
type NotDeterministic struct{}

func (NotDeterministic) Sentence() string {
	return "two launches on the same input gave different bits"
}

// A NotBitIdentical is an output that differs from the baseline's.
type NotBitIdentical struct{}

func (NotBitIdentical) Sentence() string { return "the output is not bit-identical to the baseline's" }

// An OfSeed is the problem of one case in a row of several.
type OfSeed struct {
	Seed    uint64
	Problem Fact
}

func (o OfSeed) Sentence() string { return fmt.Sprintf("seed %d: %s", o.Seed, o.Problem.Sentence()) }

// A WrongCase is a case that the candidate fails.
type WrongCase struct {
	Input
	Problem  Fact
	Baseline Fact // what is wrong with the baseline on the same input; nil where nothing is
	Existed  bool // the baseline fails at least as badly
}

func (w WrongCase) Sentence() string {
	text := fmt.Sprintf("%s: %s", w.Label(), w.Problem.Sentence())
	switch {
	case w.Existed:
		return text + " (the baseline has it as well)"
	case w.Baseline == nil:
		return text
	case w.Baseline.Sentence() == w.Problem.Sentence():
		return text + " (the baseline is wrong there too, but less)"
	}
	return fmt.Sprintf("%s (the baseline is wrong there too: %s)", text, w.Baseline.Sentence())
}

// A Reproducible is a wrong case with the flags that repeat it.
type Reproducible struct{ WrongCase }

func (r Reproducible) Sentence() string {
	return fmt.Sprintf("%s [%s]", r.WrongCase.Sentence(), r.Flags())
}

// An AsBefore is a case that fails as it did before the change.
type AsBefore struct {
	Input
	Problem Fact
}

func (a AsBefore) Sentence() string {
	return fmt.Sprintf("as before: %s: %s [%s]", a.Label(), a.Problem.Sentence(), a.Flags())
}

// A WrongOutput is a candidate that fails cases.
type WrongOutput struct {
	Cases, All int
	Existed    int // of Cases, those that the baseline fails at least as badly
	First      WrongCase
}

func (w WrongOutput) Sentence() string {
	text := fmt.Sprintf("The output is wrong in %d of %d cases; first: %s", w.Cases, w.All, w.First.Sentence())
	switch {
	case w.Existed == w.Cases:
		text += ". They were wrong before this change"
	case w.Existed > 0:
		text += fmt.Sprintf(". %d of them were wrong before this change", w.Existed)
	}
	return text
}

// A BothWrong is a baseline and a candidate that fail every case.
type BothWrong struct {
	Cases int
	First WrongCase
}

func (b BothWrong) Sentence() string {
	return fmt.Sprintf("Baseline and candidate are both wrong in every case (%d); first: %s", b.Cases, b.First.Sentence())
}

// AgreeWithReference is the advice for wrong cases.
type AgreeWithReference struct{ Command string }

func (a AgreeWithReference) Step(Reader) string {
	return "make every case agree with the reference; reproduce the first one: " + a.Command
}

// EndInTime is the advice for a launch that did not end.
type EndInTime struct{ Command string }

func (e EndInTime) Step(Reader) string {
	return "make every launch end: look for a loop that never does, a wait for another block, or far more work than the baseline has; reproduce the first one: " + e.Command
}

// FixExistingCases is the advice where the policy defers for cases that the baseline fails as well.
type FixExistingCases struct{}

func (FixExistingCases) Step(Reader) string {
	return "or fix them on the base branch first: the policy also defers for cases that were wrong before (gates.correctness.existing)"
}

// CheckManifest is the advice where both sides fail every case.
type CheckManifest struct{}

func (CheckManifest) Step(Reader) string {
	return "compare kernel.yaml with the kernel's parameters (order, dtype, shape) and the reference with what the kernel computes, and fix the mistake on the base branch"
}

// SeeForYourself is the command that shows a wrong case.
type SeeForYourself struct{ Command string }

func (s SeeForYourself) Step(Reader) string { return "reproduce it: " + s.Command }

// A StateKept is an output that depends on what earlier launches left behind.
type StateKept struct{ Input }

func (s StateKept) Sentence() string {
	return "The output depends on what earlier launches left behind: " + s.Label()
}

// KeepNothing is the advice to it.
type KeepNothing struct{}

func (KeepNothing) Step(Reader) string {
	return "compute every output from the launch's own inputs: keep nothing in device variables from one launch to the next"
}

// A CasesNotRun is cases that the policy asks for and the evidence does not have.
type CasesNotRun struct{ Missing []Fact }

func (c CasesNotRun) Sentence() string {
	return fmt.Sprintf("%d cases were not run; first: %s", len(c.Missing), c.Missing[0].Sentence())
}

// A CaseNotRun is one of them.
type CaseNotRun struct {
	Input
	SecondLaunch   bool // the case was run, but not a second time
	BaselineOutput bool // the case was run, but not by the baseline
}

func (c CaseNotRun) Sentence() string {
	switch {
	case c.SecondLaunch:
		return c.Label() + ": a second launch"
	case c.BaselineOutput:
		return c.Label() + ": the baseline's output"
	}
	return c.Label()
}

// A CasesPassed is outputs within their bounds.
type CasesPassed struct {
	Cases                       int
	MaxAbs, Norm                float64
	Deterministic, BitIdentical bool
}

func (c CasesPassed) Sentence() string {
	text := fmt.Sprintf("%d/%d cases, max |err| %.4g, norm error %.3g%%", c.Cases, c.Cases, c.MaxAbs, c.Norm*100)
	if c.Deterministic {
		text += ", deterministic"
	}
	if c.BitIdentical {
		text += ", bit-identical to the baseline"
	}
	return text
}

// A NoneWorse is a candidate that fails only cases that the baseline fails as badly.
type NoneWorse struct{ Wrong, All int }

func (n NoneWorse) Sentence() string {
	return fmt.Sprintf("%d of %d cases agree with the reference; %d fail as they did before this change (see below)", n.All-n.Wrong, n.All, n.Wrong)
}

// An ExistingCases is the same in a few words.
type ExistingCases struct{ Wrong, All int }

func (e ExistingCases) Sentence() string {
	return fmt.Sprintf("%d of %d cases fail as before", e.Wrong, e.All)
}

// A WrongBaseline is the note about a baseline that fails cases.
type WrongBaseline struct {
	Wrong, All int
	First      WrongCase
}

func (w WrongBaseline) Sentence() string {
	return fmt.Sprintf(
		"The baseline is wrong in %d of %d cases, and this change does not make them worse: fix the kernel on the base branch. The first: %s: %s.",
		w.Wrong, w.All, w.First.Label(), w.First.Problem.Sentence())
}

// A LessPrecise is the note about a candidate that is right by a narrower margin than the baseline.
type LessPrecise struct {
	Input
	Norm, Baseline float64
}

func (l LessPrecise) Sentence() string {
	return fmt.Sprintf("The candidate is less precise than the baseline: norm error %.3g%% against %.3g%% (%s).", l.Norm*100, l.Baseline*100, l.Label())
}

// A PrecisionLost is an output that is much less precise than the baseline's in every case of a shape and a distribution.
type PrecisionLost struct {
	Input          // the first of these cases
	Output         string
	Norm, Baseline float64 // norm errors in it
	Limit          string
}

func (p PrecisionLost) Sentence() string {
	return fmt.Sprintf("%s is less precise than the baseline's: norm error %.3g%% against %.3g%% (%s; asked %s times the baseline's)",
		p.Output, p.Norm*100, p.Baseline*100, p.Label(), p.Limit)
}

// A PrecisionKept is outputs that are about as precise as the baseline's.
type PrecisionKept struct{ Limit string }

func (p PrecisionKept) Sentence() string {
	return fmt.Sprintf("no output is less precise than the baseline's (norm error %s times as large)", p.Limit)
}

// KeepPrecision is the advice to a loss.
type KeepPrecision struct{ Command string }

func (k KeepPrecision) Step(Reader) string {
	return "compute as precisely as the baseline does, or let the policy allow the loss (gates.precision.loss); see the elements: " + k.Command
}

// A TestPassed is a harness's test command that succeeded.
type TestPassed struct{ Command string }

func (t TestPassed) Sentence() string {
	return fmt.Sprintf("the test command %s exited with status 0", t.Command)
}

// A StatusOnly is the note that a test command's exit status is all that is known about the output.
type StatusOnly struct{}

func (StatusOnly) Sentence() string {
	return "Only the test command's exit status says that the output is right: kernelgate compared no element, neither before nor while it timed the kernel."
}

// A TestFailed is a harness's test command that failed.
type TestFailed struct {
	Detail   string
	Baseline string // how it failed on the baseline; empty where it did not
}

func (t TestFailed) Sentence() string {
	if t.Baseline != "" {
		return fmt.Sprintf("The test command fails on both sides: %s (the baseline: %s)", t.Detail, t.Baseline)
	}
	return "The test command fails: " + t.Detail
}

// PassTest is the advice to it.
type PassTest struct{ Command string }

func (p PassTest) Step(Reader) string {
	return "make the test command exit with status 0: " + p.Command
}
