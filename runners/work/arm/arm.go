// Package arm compares candidates with one baseline, step by step. A [Bench] holds what all of them
// share: the job, its baseline and the way to measure. An [Arm] is one candidate on the bench. A
// caller builds it, compares its outputs, times it round by round, and decides itself when it has
// seen enough. Searches use it: tuning races many arms, and a bisection measures one commit after
// the other.
//
// Package gates judges every step, by the job's policy. The rounds of an arm decide nothing here:
// the ordinary gate proves what a search has found.
package arm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather"
)

// A Bench compares candidates with the baseline of one job. Its methods may be called from several
// goroutines.
type Bench struct {
	job    runners.Job
	shapes []manifest.Shape
	open   Opener
	layIn  func(context.Context, runners.Side) error

	mu   sync.Mutex
	laid map[string]bool // folders that have their include sets
}

// An Opener returns the backend for a job. Builds go to scratch, and everything that the backend
// starts ends with ctx. measure.Config.Open is one.
type Opener func(ctx context.Context, job runners.Job, scratch string) (runners.Backend, error)

// A Host measures. measure.Config is one.
type Host interface {
	Open(ctx context.Context, job runners.Job, scratch string) (runners.Backend, error)
	// LayIn copies the include sets that a side names into its folder.
	LayIn(ctx context.Context, job runners.Job, side runners.Side) error
	// Measure gathers all evidence about a job.
	Measure(ctx context.Context, job runners.Job, scratch string, p runners.Progress) (runners.Measured, error)
}

// NewBench prepares a bench for the job's baseline. The arms are timed on the named shapes or, if
// none is named, on those that the policy times. A secret shape is not timed.
func NewBench(host Host, job runners.Job, shapes []string) (*Bench, error) {
	b, err := NewBenchWith(host.Open, job, shapes)
	if err == nil {
		b.layIn = func(ctx context.Context, side runners.Side) error { return host.LayIn(ctx, job, side) }
	}
	return b, err
}

// NewBenchWith is NewBench with a different way to open backends.
func NewBenchWith(open Opener, job runners.Job, shapes []string) (*Bench, error) {
	if job.Baseline == nil {
		return nil, fmt.Errorf("%s has no baseline to compare with", job.Manifest.Name)
	}
	rule := job.Rule()
	if rule.Gates.Performance == nil {
		return nil, usage.Errorf("%s: the rule %s has no performance gate, and a search needs one to time %s (add gates.performance, or name another policy)", job.PolicyFile, rule.Name, job.Manifest.Name)
	}
	b := &Bench{job: job, open: open, layIn: func(context.Context, runners.Side) error { return nil }, laid: map[string]bool{}}
	same := job
	same.Candidate = *job.Baseline
	known, err := same.ShapesOnRecord()
	if err != nil {
		return nil, err
	}
	timed := shapes
	if len(timed) == 0 {
		timed = gates.TimedShapes(rule, &gates.Evidence{Shapes: known})
	}
	for _, name := range timed {
		shape, ok := same.Timed(known, name)
		if !ok {
			return nil, usage.Errorf("%s cannot be timed on the shape %q (its baseline takes %s)", job.Manifest.Name, name, strings.Join(same.ShapeNames(), ", "))
		}
		b.shapes = append(b.shapes, shape)
	}
	if len(b.shapes) == 0 {
		return nil, usage.Errorf("%s: the rule %s times no shape that %s has (name some with --shapes)", job.PolicyFile, rule.Name, job.Manifest.Name)
	}
	return b, nil
}

// Job returns the job with a candidate.
func (b *Bench) Job(side runners.Side) runners.Job {
	job := b.job
	baseline := *b.job.Baseline
	job.Baseline, job.Candidate = &baseline, side
	return job
}

// Shapes returns the names of the shapes on which the arms are timed.
func (b *Bench) Shapes() []string {
	var names []string
	for _, s := range b.shapes {
		names = append(names, s.Name)
	}
	return names
}

// Guards returns the smallest baseline/candidate that the policy's guard allows, for each shape of the bench
// that has a guard.
func (b *Bench) Guards() map[string]float64 {
	gate := b.job.Rule().Gates.Performance
	if gate.Guard == nil || gate.Guard.Ratio() <= 0 {
		return nil
	}
	limits := map[string]float64{}
	for _, s := range b.shapes {
		if b.asks(gate.Guard, s) && !b.asks(gate.Target, s) {
			limits[s.Name] = gate.Guard.Ratio()
		}
	}
	return limits
}

// Goals returns the smallest baseline/candidate that the policy's target asks for, for each shape of the bench that has one.
func (b *Bench) Goals() map[string]float64 {
	target := b.job.Rule().Gates.Performance.Target
	if target == nil || target.Ratio() <= 0 {
		return nil
	}
	goals := map[string]float64{}
	for _, s := range b.shapes {
		if b.asks(target, s) {
			goals[s.Name] = target.Ratio()
		}
	}
	return goals
}

// asks reports whether a goal is about a shape.
func (b *Bench) asks(g *policy.Goal, s manifest.Shape) bool {
	if g == nil || !g.PerShape() {
		return false
	}
	context := policy.Cold
	if s.Warm {
		context = policy.Warm
	}
	return g.Context.Has(context) && slices.Contains(g.Shapes.Pick(b.job.Manifest.ShapeNames()), s.Listed())
}

// An Arm is one candidate on the bench. Its methods may not be called at the same time.
type Arm struct {
	bench *Bench
	job   runners.Job
	steps *gather.Steps
	end   context.CancelFunc
}

// A Refusal says why a candidate cannot go on.
type Refusal struct {
	Gate    gates.Gate   `json:"gate"`
	Reason  gates.Reason `json:"reason,omitempty"`
	Text    string       `json:"text"`              // one sentence
	Details []string     `json:"details,omitempty"` // the compiler's messages, the wrong cases
}

func (r *Refusal) String() string { return string(r.Gate) + ": " + r.Text }

// Open prepares a candidate. Its builds go to scratch, a new folder that the caller removes after
// Close.
func (b *Bench) Open(ctx context.Context, side runners.Side, scratch string, p runners.Progress) (*Arm, error) {
	if err := b.prepare(ctx, side); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		return nil, fmt.Errorf("making a folder for the builds of %s: %w", side.Variant, err)
	}
	job := b.Job(side)
	// A backend starts the sanitizers ahead of their gate, and a search asks for them only at its end.
	job.Policy = job.Policy.WithGates(func(g *policy.Gates) { g.Sanitize, g.Energy, g.Profile = nil, nil, nil })
	ctx, end := context.WithCancel(ctx)
	backend, err := b.open(ctx, job, scratch)
	if err != nil {
		end()
		return nil, err
	}
	return &Arm{bench: b, job: job, steps: gather.NewSteps(job, backend, p), end: end}, nil
}

// prepare copies include sets into the folders of both sides, once for each folder: compilers may
// already read it.
func (b *Bench) prepare(ctx context.Context, side runners.Side) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range []runners.Side{*b.job.Baseline, side} {
		dir := filepath.Clean(s.Dir)
		if b.laid[dir] {
			continue
		}
		if err := b.layIn(ctx, s); err != nil {
			return err
		}
		b.laid[dir] = true
	}
	return nil
}

// Close ends everything that the arm has started.
func (a *Arm) Close() { a.end() }

// Evidence returns what was gathered about the arm, without its rounds.
func (a *Arm) Evidence() *gates.Evidence { return a.steps.Evidence() }

// Candidate returns how the candidate was built; nil before Build.
func (a *Arm) Candidate() *gates.Build { return a.steps.Evidence().Candidate }

// Build compiles both sides and judges the gates build and ptxas. The refusal is nil if the
// candidate can go on. An error is a fault of this host, or of the baseline.
func (a *Arm) Build(ctx context.Context) (*Refusal, error) {
	if lacks := a.lacks(); lacks != nil {
		return lacks, nil
	}
	if err := a.steps.Build(ctx); err != nil {
		// The baseline builds with the same manifest, so that the fault is in this candidate: its
		// variant is not for this GPU, for example.
		if e := a.Evidence(); e.Setup && e.Candidate == nil && e.Baseline != nil && e.Baseline.OK {
			return &Refusal{Gate: gates.GateBuild, Reason: gates.ReasonBuild, Text: e.Fault}, nil
		}
		return nil, err
	}
	if b := a.Evidence().Baseline; b != nil && !b.OK {
		return nil, fmt.Errorf("the baseline %s does not build: %s", b.Variant, b.Error)
	}
	return judge(a.job, a.Evidence(), gates.Gate.Static)
}

// lacks refuses a candidate that does not take every shape of the race: its times would be about
// different work.
func (a *Arm) lacks() *Refusal {
	m := a.job.Of(a.job.Candidate)
	for _, s := range a.bench.shapes {
		if !m.Supports(a.job.Candidate.Variant, s.Dims) {
			return &Refusal{Gate: gates.GateBuild, Text: fmt.Sprintf("it does not take the shape %s (its limits leave %s out)", s.Name, s.Dims)}
		}
	}
	return nil
}

// Same identifies everything that runs: the machine code, and how it is launched at every problem
// size. Two arms of the same text are one. It is empty if that is not known.
func (a *Arm) Same() string {
	c := a.Candidate()
	launch, known := a.job.Dispatch(a.job.Candidate)
	if c == nil || !c.OK || c.Code == "" || !known {
		return ""
	}
	return c.Code + "\n" + launch
}

// Checked reports whether Check has compared the candidate's outputs.
func (a *Arm) Checked() bool {
	return a.job.Rule().Gates.Correctness == nil || a.Evidence().Correctness != nil || a.IsBaseline()
}

// IsBaseline reports whether the candidate and the baseline are the same.
func (a *Arm) IsBaseline() bool { return a.Evidence().SameCode }

// Check compares the candidate's outputs with the reference, with secret cases, and judges the
// correctness gate.
func (a *Arm) Check(ctx context.Context) (*Refusal, error) {
	if a.job.Rule().Gates.Correctness == nil || a.IsBaseline() {
		return nil, nil
	}
	if err := a.steps.Correctness(ctx); err != nil {
		return nil, err
	}
	return a.judge(gates.GateCorrectness)
}

// Sanitize runs the candidate under the sanitizers that the policy asks for, and judges their gate.
func (a *Arm) Sanitize(ctx context.Context) (*Refusal, error) {
	// The arm's own policy leaves the gate out, see Open.
	asked := a.bench.Job(a.job.Candidate)
	gate := asked.Rule().Gates.Sanitize
	if gate == nil || a.IsBaseline() {
		return nil, nil
	}
	a.job.Policy = asked.Policy
	if err := a.steps.Sanitize(ctx, gate); err != nil {
		return nil, err
	}
	return a.judge(gates.GateSanitize)
}

// judge returns a refusal if a gate whose evidence was gathered does not let the candidate go on.
func (a *Arm) judge(gate gates.Gate) (*Refusal, error) {
	return judge(a.job, a.Evidence(), func(g gates.Gate) bool { return g == gate })
}

// judge returns the first of some gates that does not let the candidate go on.
func judge(job runners.Job, e *gates.Evidence, asked func(gates.Gate) bool) (*Refusal, error) {
	judged := false
	for _, r := range gates.PartialResults(job.Policy, e) {
		if !asked(r.Gate) {
			continue
		}
		if judged = true; r.Status != gates.Passed && r.Status != gates.Informs {
			return refuse(r)
		}
	}
	if !judged {
		return &Refusal{Text: "evidence that the policy asks for is missing"}, nil
	}
	return nil, nil
}

// refuse blames the candidate for a result, unless the runner or the base is at fault.
func refuse(r gates.GateResult) (*Refusal, error) {
	if r.Reason == gates.ReasonSetup || r.Reason == gates.ReasonRunner {
		return nil, errors.New(r.Text)
	}
	refusal := &Refusal{Gate: r.Gate, Reason: r.Reason, Text: r.Text}
	for _, d := range r.Details {
		refusal.Details = append(refusal.Details, d.Text)
	}
	return refusal, nil
}

// Round times the candidate and the baseline once, pair by pair, in fresh processes. A candidate
// that fails, or whose output is wrong while it is timed, is refused. Check comes first: without its
// evidence the gates do not judge a round.
func (a *Arm) Round(ctx context.Context) (gates.Round, *Refusal, error) {
	if !a.Checked() {
		return gates.Round{}, nil, fmt.Errorf("%s is to be timed, and its outputs were not compared", a.job.Candidate.Variant)
	}
	// Whatever a backend starts ahead for the next round ends here: the next round may be a
	// different arm's.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	round, err := a.steps.Round(ctx, a.bench.shapes)
	if err != nil {
		return round, nil, err
	}
	timed := *a.Evidence()
	timed.Performance = &gates.Performance{Rounds: []gates.Round{round}}
	for _, r := range gates.PartialResults(a.job.Policy, &timed) {
		// One round is too few for any other finding than a fault.
		if r.Gate == gates.GatePerformance && r.Reason != "" && r.Reason != gates.ReasonInconclusive {
			refusal, err := refuse(r)
			return round, refusal, err
		}
	}
	return round, nil, nil
}
