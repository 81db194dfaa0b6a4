// Package result has the form in which programs read a verdict: one versioned JSON object with the
// outcome, its reason, the speedup of each shape, what failed, what would make it pass, and where the
// evidence is. `kernelgate check --json`, the API of the pages, webhooks and the tools for agents all
// write it. It is derived from a gates.Verdict and its evidence, and decides nothing. [Redact] takes
// out everything that would tell an untrusted author about secret cases.
package result

import (
	"slices"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// Schema names the version of the format. A later version of the program may add fields to it.
const Schema = "kernelgate/result/v1"

// An Intent is what a submission asks for.
type Intent string

const (
	Probe Intent = "probe" // rounded figures on public shapes; it cannot pass
	Claim Intent = "claim" // a verdict by the whole policy, which spends error rate
)

// Intents returns all of them.
func Intents() []Intent { return []Intent{Probe, Claim} }

// Reasons that a verdict does not have.
const (
	ReasonProbe  gates.Reason = "probe"  // nothing is wrong so far, and a probe proves nothing
	ReasonBudget gates.Reason = "budget" // the error rate of the day is spent: nothing was measured
)

// A Result is a verdict for programs.
type Result struct {
	Schema  string        `json:"schema" doc:"Version of this format."`
	Kernel  string        `json:"kernel" doc:"Name of the kernel."`
	Intent  Intent        `json:"intent,omitempty" doc:"Of a submission. Absent for a change of a repository, which is judged like a claim."`
	Outcome gates.Outcome `json:"outcome" doc:"PASS: proven. DEFER: not accepted, see reason. ERROR: the runner or the setup failed, never the change."`
	Reason  gates.Reason  `json:"reason,omitempty" doc:"Why the outcome is not PASS."`
	Summary string        `json:"summary" doc:"One sentence for people."`
	Blocks  bool          `json:"blocks" doc:"Whether the verdict keeps the change from being merged."`
	Rule    string        `json:"rule,omitempty" doc:"Rule of the policy that applied."`
	Base    string        `json:"base_commit,omitempty" doc:"Commit that the change was compared with."`
	Head    string        `json:"head_commit,omitempty" doc:"Commit that was judged."`
	Device  *Device       `json:"device,omitempty" doc:"What the kernel ran on."`
	Label   string        `json:"device_label,omitempty" doc:"Device of the policy that the verdict holds for. Absent if the policy asks for one run only, or if the machine is none of its devices."`

	OtherDevices []OtherDevice `json:"other_devices,omitempty" doc:"Devices of the policy that this result says nothing about. The change has to pass on each that blocks."`

	Weighted     *Weighted `json:"weighted,omitempty" doc:"All launches of a step together, where the manifest has weights."`
	WeightedWarm *Weighted `json:"weighted_warm,omitempty" doc:"The same with warm launches of the shapes that the weights call warm. A goal must be met by both."`
	Shapes       []Shape   `json:"shapes,omitempty" doc:"Times and speedup by shape."`
	Failures     []Failure `json:"failures,omitempty" doc:"What did not meet the policy, by gate and shape."`
	ToPass       []string  `json:"to_pass,omitempty" doc:"What would make it pass, in sentences."`
	Code         string    `json:"machine_code,omitempty" doc:"Hash of the candidate's machine code."`
	Evidence     string    `json:"evidence,omitempty" doc:"Path or address of the evidence behind the verdict."`
	Replay       string    `json:"replay,omitempty" doc:"Command that repeats the run."`
	Budget       *Budget   `json:"budget,omitempty" doc:"What is left for claims."`
}

// An OtherDevice is a device of the policy that has a verdict of its own.
type OtherDevice struct {
	Label   string         `json:"label" doc:"Label of its runners."`
	Enforce policy.Enforce `json:"enforce" doc:"block: a change must pass on it. inform: its verdict blocks nothing."`
}

// A Device is what a kernel ran on.
type Device struct {
	Kind string `json:"kind" doc:"cpu or gpu."`
	Name string `json:"name"`
	Arch string `json:"arch,omitempty"`
}

// A Shape is the times on one problem size.
type Shape struct {
	Shape     string       `json:"shape" doc:"Name of the shape; secret for a size that was drawn for the run."`
	Dims      string       `json:"dims,omitempty" doc:"Its dimensions."`
	Role      gates.Role   `json:"role" doc:"target: must gain. guard: must not lose. info: decides nothing."`
	Status    gates.Status `json:"status" doc:"Whether the shape meets its goal."`
	Goal      string       `json:"goal,omitempty" doc:"What the policy asks, as it is written there."`
	Speedup   *Speedup     `json:"speedup,omitempty" doc:"Baseline/candidate - 1. Absent where nothing was compared."`
	Baseline  *float64     `json:"baseline_us,omitempty" doc:"Median time of the baseline in microseconds."`
	Candidate *float64     `json:"candidate_us,omitempty" doc:"Time of the candidate in microseconds that goes with the speedup."`
	Roofline  *float64     `json:"roofline_share,omitempty" doc:"Share of the device's limit that the candidate reaches, from 0 to 1."`
}

// A Weighted is the sum over the shapes of launches per step and time.
type Weighted struct {
	Role      gates.Role   `json:"role" doc:"target: must gain. guard: must not lose. info: decides nothing."`
	Status    gates.Status `json:"status,omitempty" doc:"Whether the sum meets its goal. Absent for info."`
	Goal      string       `json:"goal,omitempty" doc:"What the policy asks, as it is written there."`
	Speedup   *Speedup     `json:"speedup,omitempty" doc:"Baseline/candidate - 1 of the sums."`
	Baseline  *float64     `json:"baseline_us,omitempty" doc:"Time of the baseline per step in microseconds."`
	Candidate *float64     `json:"candidate_us,omitempty" doc:"Time of the candidate per step in microseconds."`
	Saved     *float64     `json:"saved_us,omitempty" doc:"Microseconds per step that the candidate saves."`
	Share     *float64     `json:"step_share,omitempty" doc:"Share of the whole step that the kernel takes in the trace, from 0 to 1."`
	Step      *Speedup     `json:"step_speedup,omitempty" doc:"What the speedup means for the whole step, if the rest of it takes as long as before."`
}

// A Speedup is an estimate with its interval, as a share: 0.1 is 10 % faster.
type Speedup struct {
	Low  *float64 `json:"low,omitempty" doc:"Lower end of the interval. Absent where there are too few rounds."`
	Mid  float64  `json:"mid" doc:"The estimate."`
	High *float64 `json:"high,omitempty" doc:"Upper end of the interval."`
}

// A Kind is a class of failures.
type Kind string

// Kinds of failures, in addition to the ways in which a launch fails (gates.FailureKind)
// and what sanitizers find (facts.FindingKind).
const (
	KindCompile          Kind = "compile"           // the compiler refused it
	KindOverLimit        Kind = "over-limit"        // a resource is beyond its bound
	KindWrongValues      Kind = "wrong-values"      // finite, and beyond the tolerance
	KindNaN              Kind = "nan"               // not a number where the reference is finite
	KindInf              Kind = "inf"               // infinite where the reference is finite
	KindUnwritten        Kind = "unwritten"         // elements that the kernel did not write
	KindNotDeterministic Kind = "not-deterministic" // two launches differ
	KindKeepsState       Kind = "keeps-state"       // a launch depends on earlier ones
	KindNotCompared      Kind = "not-compared"      // there is no output to compare
	KindFinding          Kind = "finding"           // a sanitizer's
	KindTooSlow          Kind = "too-slow"          // the goal is missed
	KindUndecided        Kind = "undecided"         // the goal is neither proven nor missed
	KindMetric           Kind = "metric"            // a profiler's figure is beyond its bound
	KindGate             Kind = "gate"              // the gate as a whole; the text says why
)

// Kinds returns all of them.
func Kinds() []Kind {
	all := []Kind{
		KindCompile, KindOverLimit, KindWrongValues, KindNaN, KindInf, KindUnwritten, KindNotDeterministic, KindKeepsState,
		KindNotCompared, KindFinding, KindTooSlow, KindUndecided, KindMetric, KindGate,
	}
	for _, k := range []gates.FailureKind{
		gates.FailureBuild, gates.FailureCrash, gates.FailureExit, gates.FailureTimeout, gates.FailureOutOfMemory, gates.FailureIllegalAddress,
		gates.FailureLaunch, gates.FailureInputs, gates.FailureOutOfBounds, gates.FailureState, gates.FailureRefused, gates.FailureOutput, gates.FailureTool,
	} {
		all = append(all, Kind(k))
	}
	for _, k := range []facts.FindingKind{
		facts.KindRace, facts.KindOutOfBounds, facts.KindMisaligned, facts.KindUninitialised, facts.KindBarrier, facts.KindUseAfterFree,
		facts.KindUndefined, facts.KindLeak, facts.KindOther,
	} {
		if !slices.Contains(all, Kind(k)) {
			all = append(all, Kind(k))
		}
	}
	return all
}

// Secret is the shape of failures on secret cases.
const Secret = "secret"

// A Failure is failures of one class at one shape.
type Failure struct {
	Gate     gates.Gate `json:"gate"`
	Shape    string     `json:"shape,omitempty" doc:"Name of the shape, or secret. Absent where the failure is not about one."`
	Kind     Kind       `json:"kind"`
	Count    int        `json:"count" doc:"How many of them."`
	FirstBad *FirstBad  `json:"first_bad,omitempty" doc:"The first of them. Absent for secret cases."`
}

// A FirstBad says where to look.
type FirstBad struct {
	Dims   string  `json:"dims,omitempty" doc:"Dimensions of the input."`
	Seed   *uint64 `json:"seed,omitempty" doc:"Seed of the input."`
	Inputs string  `json:"inputs,omitempty" doc:"Distribution of the input."`
	File   string  `json:"file,omitempty"`
	Line   int     `json:"line,omitempty"`
	Text   string  `json:"text" doc:"What is wrong, in a sentence."`
}

// A Budget is what one token may still claim about one kernel today. The n-th distinct machine code
// gets 1/(n(n+1)) of the policy's error rate, so that all claims of a day together spend at most that
// rate.
type Budget struct {
	Day       string  `json:"day" doc:"UTC, such as 2026-01-31. The next day has a new budget."`
	Claimed   int     `json:"claims_spent" doc:"Distinct machine codes that were claimed today."`
	Left      int     `json:"claims_left" doc:"Further machine codes that may be claimed today."`
	NextShare float64 `json:"next_error_rate_share" doc:"Part of the policy's error rate that the next machine code may spend, from 0 to 1."`
	Rounds    int     `json:"next_rounds_to_pass" doc:"Rounds after which the next machine code can pass at the earliest."`
	Advice    string  `json:"advice,omitempty" doc:"What to do when nothing is left."`
}
