// Package gather gathers evidence about one kernel: it builds both sides, compares outputs and takes
// times, step by step, as far as the gates ask. [Gather] drives a backend, which measures on one kind
// of device. It judges nothing: what a backend saw goes into gates.Evidence unchanged.
package gather

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/quantity"
	"github.com/kernelgate/kernelgate/runners"
)

// Gather collects evidence until a verdict is possible. It always returns evidence: an error of the
// backend becomes its Fault. Only a cancelled context returns an error.
func Gather(ctx context.Context, job runners.Job, b runners.Backend, progress runners.Progress) (*gates.Evidence, error) {
	g := newGatherer(job, b, progress)
	if g.evidence.Fault != "" {
		return g.evidence, nil
	}
	return g.evidence, g.run(ctx)
}

// Compile collects only the evidence that compilers can give.
func Compile(ctx context.Context, job runners.Job, b runners.Backend, progress runners.Progress) (*gates.Evidence, error) {
	g := newGatherer(job, b, progress)
	if g.evidence.Fault != "" || g.evidence.Candidate != nil {
		return g.evidence, nil
	}
	return g.evidence, g.step(ctx, func() error { return g.build(ctx) })
}

func newGatherer(job runners.Job, b runners.Backend, progress runners.Progress) *gatherer {
	job.Policy = job.Asked()
	e := job.NoEvidence()
	e.Abilities, e.Device, e.Provenance.Tools = new(b.Abilities()), b.Device(), b.Tools()
	e.Recorded = job.RecordingsOnRecord()
	var err error
	if e.Shapes, err = job.ShapesToTime(b.Seed()); err != nil {
		e.Fault = err.Error()
	}
	if _, err := job.ReadRecordings(); err != nil && e.Fault == "" {
		_, e.Setup = errors.AsType[*runners.SetupError](err)
		e.Fault = err.Error()
	}
	if large := tooLarge(job, memoryLimit()); len(large) > 0 {
		e.Candidate = job.BrokenBuild(large)
	}
	if job.LacksSecret() {
		e.Notes = append(slices.Clip(e.Notes), noSecretNote)
	}
	return &gatherer{job: job, backend: b, evidence: e, progress: standingOf(job, e, progress), rule: job.Rule()}
}

// noSecretNote says why a run has no secret shape although its policy wants one.
const noSecretNote = "No secret shape was timed: the manifest has no secret ranges to draw one from, so nothing is known about the speed on sizes that it does not name."

// run takes the steps that the gates ask for, until they ask for no more.
func (g *gatherer) run(ctx context.Context) error {
	var last gates.Gate
	for {
		need := gates.Next(g.job.Policy, g.evidence)
		if need.Gate == "" || need.Gate == gates.GateProfile || need.Gate == gates.StepExplain {
			explained, err := g.explain(ctx)
			if explained && err == nil {
				continue
			}
			if err != nil || need.Gate == "" {
				return err
			}
		}
		if need.Gate != last {
			last = need.Gate
			g.stand()
		}
		start := time.Now()
		err := g.step(ctx, func() error { return g.gather(ctx, need) })
		g.took(need.Gate, time.Since(start))
		if err == nil && need.Gate == gates.GateBuild && g.job.Record != nil && g.evidence.Fault == "" {
			err = g.step(ctx, func() error { return g.recall(ctx) })
		}
		if err != nil || g.evidence.Fault != "" {
			return err
		}
	}
}

// stand brings what progress reports of the gates up to date.
func (g *gatherer) stand() {
	g.progress.now = &runners.Standing{Kernel: g.job.Manifest.Name, Kind: g.evidence.Device.Kind, Gates: gates.PartialResults(g.job.Policy, g.evidence)}
}

// took adds the time of a step.
func (g *gatherer) took(gate gates.Gate, time time.Duration) {
	if g.evidence.Took == nil {
		g.evidence.Took = map[gates.Gate]float64{}
	}
	g.evidence.Took[gate] += time.Seconds()
}

// A gatherer is one run.
type gatherer struct {
	job      runners.Job
	backend  runners.Backend
	evidence *gates.Evidence
	progress *withStanding
	rule     *policy.Rule

	cases   []gates.Case         // cases of earlier runs, to be judged together with this run's
	series  []gates.EnergySeries // of the energy that earlier runs measured
	attempt runners.Attempt      // zero before the first round
	before  int                  // rounds of earlier attempts
	spent   float64              // seconds that they took
	twice   bool                 // a new kernel was also built as its own baseline
}

// step takes one step. A failure becomes the evidence's fault. Only a cancelled context returns an
// error.
func (g *gatherer) step(ctx context.Context, do func() error) error {
	err := do()
	if ctx.Err() != nil {
		return fmt.Errorf("gathering evidence about %s: %w", g.job.Manifest.Name, context.Cause(ctx))
	}
	if err != nil {
		g.evidence.Fault = err.Error()
	}
	if setup, ok := errors.AsType[*runners.SetupError](err); ok {
		blame(g.evidence, setup)
	}
	return nil
}

func (g *gatherer) gather(ctx context.Context, need gates.Need) error {
	switch need.Gate {
	case gates.GateBuild:
		return g.build(ctx)
	case gates.GateCorrectness:
		return g.correctness(ctx)
	case gates.GateSanitize:
		return g.sanitize(ctx, g.rule.Gates.Sanitize)
	case gates.GatePerformance:
		return g.performance(ctx, need.Rounds)
	case gates.GateEnergy:
		return g.energy(ctx)
	case gates.GateProfile:
		return g.profile(ctx)
	}
	return fmt.Errorf("the %s gate asks for evidence that no runner gathers", need.Gate)
}

// limit bounds a gate's work by its timeout, and ends it with the step: anything that a backend has
// started ahead for a later step then ends too.
func limit(ctx context.Context, timeout quantity.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(timeout))
}

func (g *gatherer) build(ctx context.Context) error {
	// Anything that a backend starts ahead, such as the other side, ends with the step.
	whole, stop := context.WithCancel(ctx)
	defer stop()
	build := func(role runners.Role, side runners.Side) (*gates.Build, error) {
		g.progress.Report(runners.Event{Gate: gates.GateBuild, Text: "compiling the " + string(role)})
		within, cancel := limit(whole, g.rule.Gates.Build.Timeout)
		context.AfterFunc(whole, cancel)
		start := time.Now()
		b, err := g.backend.Build(within, role, side)
		if err != nil && ctx.Err() == nil && errors.Is(within.Err(), context.DeadlineExceeded) {
			return g.late(b, side, time.Since(start)), nil
		}
		if err != nil {
			return nil, fmt.Errorf("compiling the %s: %w", role, err)
		}
		return &b, nil
	}
	if g.job.Baseline != nil {
		b, err := build(runners.Baseline, *g.job.Baseline)
		if err != nil {
			return err
		}
		g.evidence.Baseline = b
	}
	c, err := build(runners.Candidate, g.job.Candidate)
	if err != nil {
		return err
	}
	g.evidence.Candidate = c
	g.evidence.SameCode = g.job.SameCode(g.evidence.Baseline, c)
	g.evidence.SameShapes = g.job.SameShapes(g.evidence)
	if g.job.SameWhereCompiled(g.evidence.Baseline, c) {
		g.evidence.Notes = append(slices.Clip(g.evidence.Notes), sameWhereCompiledNote)
	}
	g.noteTuning()
	g.show(whole)
	return nil
}

const sameWhereCompiledNote = "The machine code is the baseline's at every size that was compiled. The sources or the constants differ, so it may differ at other sizes, and the change counts as a different kernel."

// showTimeout bounds work whose result is only for people.
const showTimeout = time.Minute

// show records what differs between the sides' code, if both are built and it differs.
func (g *gatherer) show(ctx context.Context) {
	b, c := g.evidence.Baseline, g.evidence.Candidate
	if b != nil && b.OK && c.OK && b.Code != c.Code {
		ctx, cancel := context.WithTimeout(ctx, showTimeout)
		defer cancel()
		g.evidence.MachineCode = g.backend.MachineCode(ctx)
	}
}

// late returns a build that took longer than the policy allows, which is the side's own fault.
func (g *gatherer) late(b gates.Build, side runners.Side, took time.Duration) *gates.Build {
	b.Variant, b.OK, b.Seconds = side.Variant, false, took.Seconds()
	if v, err := g.job.Of(side).Variant(side.Variant); err == nil {
		b.Source = v.Source
	}
	b.Error = fmt.Sprintf("the build took longer than %v and was stopped (make it cheaper, or raise gates.build.timeout)", g.rule.Gates.Build.Timeout)
	return &b
}

func (g *gatherer) correctness(ctx context.Context) error {
	within, cancel := limit(ctx, g.rule.Gates.Correctness.Timeout)
	defer cancel()
	start := time.Now()
	c, err := g.backend.Correctness(within, g.rule.Gates.Correctness, g.progress)
	if err != nil {
		return fmt.Errorf("comparing outputs: %w", err)
	}
	c.Seconds = time.Since(start).Seconds()
	hideRecorded(c.Cases)
	c.Cases = slices.Concat(g.cases, c.Cases)
	g.evidence.Correctness = c
	return nil
}

func (g *gatherer) sanitize(ctx context.Context, gate *policy.SanitizeGate) error {
	within, cancel := limit(ctx, gate.Timeout)
	defer cancel()
	g.progress.Report(runners.Event{Gate: gates.GateSanitize, Text: "looking for races and bad accesses"})
	start := time.Now()
	s, err := g.backend.Sanitize(within, gate, g.progress)
	if err != nil {
		return fmt.Errorf("running the sanitizers: %w", err)
	}
	s.Seconds = time.Since(start).Seconds()
	g.evidence.Sanitize = s
	return nil
}

// performance measures rounds until there are enough for the next interim analysis, or the budget is spent.
func (g *gatherer) performance(ctx context.Context, until int) error {
	gate := g.rule.Gates.Performance
	within, cancel := limit(ctx, gate.Timeout)
	defer cancel()
	if g.evidence.Performance == nil {
		g.evidence.Performance = &gates.Performance{}
	}
	p := g.evidence.Performance
	shapes, err := g.job.TimedShapes(g.evidence)
	if err != nil {
		return err
	}
	if open := gates.OpenShapes(g.job.Policy, g.evidence); len(open) > 0 {
		shapes = slices.DeleteFunc(shapes, func(s manifest.Shape) bool { return !slices.Contains(open, s.Name) })
	}
	p.Exhausted = false // a further attempt has its own budget
	if err := g.buildOwnBaseline(within); err != nil {
		return err
	}
	for len(p.Rounds) < until {
		if p.Seconds-g.spent >= time.Duration(gate.Budget).Seconds() && len(p.Rounds)-g.before >= 2 {
			p.Exhausted = true
			return nil
		}
		if err := g.begin(ctx); err != nil {
			return err
		}
		now := g.roundEvent(p, until)
		g.progress.Report(now)
		round, err := g.round(within, shapes, withinRound{g.progress, now})
		if err != nil {
			return fmt.Errorf("measuring round %d: %w", len(p.Rounds)+1, err)
		}
		round.Attempt = g.attempt.Number
		if g.attempt.CodeNumber > 1 { // the first is not recorded
			round.CodeNumber = g.attempt.CodeNumber
		}
		p.Seconds += round.Seconds
		p.Rounds = append(p.Rounds, round)
		if round.Failure != nil {
			return nil
		}
	}
	return nil
}

// round measures one round, and how long it took.
func (g *gatherer) round(ctx context.Context, shapes []manifest.Shape, p runners.Progress) (gates.Round, error) {
	start := time.Now()
	round, err := g.backend.Round(ctx, g.rule.Gates.Performance, shapes, p)
	if err != nil {
		return gates.Round{}, err
	}
	hideRecordedSeries(round.Series)
	round.Started, round.Seconds = start.UTC(), time.Since(start).Seconds()
	return round, nil
}

// buildOwnBaseline builds a new kernel a second time as its own baseline, because every round has three
// sides.
func (g *gatherer) buildOwnBaseline(ctx context.Context) error {
	if g.job.Baseline != nil || g.twice {
		return nil
	}
	b, err := g.backend.Build(ctx, runners.Baseline, g.job.Candidate)
	if err == nil && !b.OK {
		err = errors.New(b.Error)
	}
	if err != nil {
		return fmt.Errorf("compiling the kernel a second time: %w", err)
	}
	g.twice = true
	return nil
}

// begin counts the attempt before any of its results can be seen.
func (g *gatherer) begin(ctx context.Context) (err error) {
	code, ok := runners.CodeOf(g.evidence)
	switch {
	case g.attempt.Number > 0:
	case g.job.Record == nil || !ok:
		g.attempt = runners.Attempt{Number: 1, CodeNumber: 1}
	default:
		if g.attempt, err = g.job.Record.Begin(ctx, code); err != nil {
			return fmt.Errorf("counting the attempt: %w", err)
		}
	}
	return nil
}

// roundEvent reports the interval so far, and the time left to the next interim analysis.
func (g *gatherer) roundEvent(p *gates.Performance, until int) runners.Event {
	e := runners.Event{Gate: gates.GatePerformance, Text: "measuring", Done: len(p.Rounds), Total: until, Unit: "rounds"}
	if n := len(p.Rounds); n > 0 {
		e.Left = runners.Seconds(p.Seconds / float64(n) * float64(until-n))
		if e.SoFar = gates.FindSoFar(g.rule, g.evidence); e.SoFar != nil {
			e.Detail = e.SoFar.String()
		}
	}
	return e
}

func (g *gatherer) profile(ctx context.Context) error {
	within, cancel := limit(ctx, g.rule.Gates.Profile.Timeout)
	defer cancel()
	g.progress.Report(runners.Event{Gate: gates.GateProfile, Text: "profiling"})
	p, err := g.backend.Profile(within, g.rule.Gates.Profile, g.progress)
	if err != nil {
		return fmt.Errorf("profiling: %w", err)
	}
	g.evidence.Profile = p
	return nil
}
