package arm

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/stats"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
)

// A Field compiles and times many candidates next to the baseline; see [runners.Arms]. Its times only order candidates.
type Field struct {
	bench     *Bench
	backend   runners.Backend
	incumbent *Arm
	ready     chan struct{} // closed when the baseline is built
	failed    error         // why it is not
}

// OpenField begins to build the baseline. It returns nil if the backend cannot time candidates next to each other.
func (b *Bench) OpenField(ctx context.Context, scratch string, p runners.Progress) (*Field, error) {
	job := b.Job(*b.job.Baseline)
	// Nothing is compared with the reference, so none is started.
	job.Policy = job.Policy.WithGates(func(g *policy.Gates) { g.Correctness = nil })
	m := *job.Manifest
	m.Reference, job.Manifest = nil, &m
	if err := b.prepare(ctx, *job.Baseline); err != nil {
		return nil, err
	}
	f := &Field{bench: b}
	bench := &Bench{job: job, shapes: b.shapes, layIn: func(context.Context, runners.Side) error { return nil }, laid: map[string]bool{}}
	bench.open = func(ctx context.Context, job runners.Job, scratch string) (_ runners.Backend, err error) {
		f.backend, err = b.open(ctx, job, scratch)
		return f.backend, err
	}
	var err error
	if f.incumbent, err = bench.Open(ctx, *job.Baseline, scratch, p); err != nil {
		return nil, err
	}
	if _, err := f.backend.TimeArms(ctx, nil, nil, 0); errors.Is(err, errors.ErrUnsupported) {
		f.Close()
		return nil, nil
	}
	f.ready = make(chan struct{})
	go func() {
		defer close(f.ready)
		refusal, err := f.incumbent.Build(ctx)
		if err == nil && refusal != nil && f.incumbent.Candidate() == nil {
			err = fmt.Errorf("building the baseline: %s", refusal)
		}
		f.failed = err
	}()
	return f, nil
}

// baseline waits until the baseline is built.
func (f *Field) baseline() error {
	<-f.ready
	return f.failed
}

// Close ends everything that the field has started.
func (f *Field) Close() {
	f.incumbent.Close()
	if f.ready != nil {
		<-f.ready
	}
}

// A Built is a candidate of a field.
type Built struct {
	gates.Build
	Same     string // as Arm.Same
	Baseline bool   // the candidate and the baseline are the same
}

// Build compiles a candidate under a name, and judges what compilers can tell. It may be called from several goroutines.
func (f *Field) Build(ctx context.Context, name string, side runners.Side, scratch string) (Built, *Refusal, error) {
	a := &Arm{bench: f.bench, job: f.bench.Job(side)}
	if lacks := a.lacks(); lacks != nil {
		return Built{}, lacks, nil
	}
	if err := f.bench.prepare(ctx, side); err != nil {
		return Built{}, nil, err
	}
	build, err := f.backend.BuildArm(ctx, name, side, scratch)
	if setup, ok := errors.AsType[*runners.SetupError](err); ok && ctx.Err() == nil {
		return Built{}, &Refusal{Gate: gates.GateBuild, Reason: gates.ReasonBuild, Text: setup.Error()}, nil
	}
	if err != nil {
		return Built{}, nil, err
	}
	if err := f.baseline(); err != nil {
		return Built{}, nil, err
	}
	e := *f.incumbent.Evidence()
	e.Candidate, e.SameCode = &build, a.job.SameCode(e.Baseline, &build)
	out := Built{Build: build, Baseline: e.SameCode}
	if launch, known := a.job.Dispatch(side); known && build.OK && build.Code != "" {
		out.Same = build.Code + "\n" + launch
	}
	refusal, err := judge(a.job, &e, gates.Gate.Static)
	return out, refusal, err
}

// Drop forgets a candidate.
func (f *Field) Drop(name string) { f.backend.DropArm(name) }

// Times are what a field says about a candidate.
type Times struct {
	Refusal  *Refusal
	Differs  bool               // see runners.ArmTimes
	Speedups map[string]float64 // median of baseline/candidate, by shape
	Micros   map[string]float64 // of a launch, by shape
	Noise    float64            // standard error of the mean over the shapes of log(baseline/candidate)
}

// Time times candidates with so many samples of each on every shape.
func (f *Field) Time(ctx context.Context, names []string, samples int) ([]Times, error) {
	if err := f.baseline(); err != nil {
		return nil, err
	}
	found, err := f.backend.TimeArms(ctx, names, f.bench.shapes, samples)
	if err != nil {
		return nil, err
	}
	var all []Times
	for _, t := range found {
		all = append(all, timesOf(t))
	}
	return all, nil
}

func timesOf(t runners.ArmTimes) Times {
	if t.Failure != nil {
		return Times{Refusal: &Refusal{Gate: gates.GatePerformance, Text: t.Failure.Detail}}
	}
	out := Times{Differs: t.Differs, Speedups: map[string]float64{}, Micros: map[string]float64{}}
	variance := 0.0
	for shape, s := range t.Shapes {
		if len(s.Ratios) == 0 {
			continue
		}
		median := stats.Describe(s.Ratios).P50
		out.Speedups[shape], out.Micros[shape] = median, s.Micros
		own, n := 0.0, len(s.Ratios)
		for _, r := range s.Ratios {
			own += math.Pow(math.Log(r/median), 2)
		}
		variance += own / float64(max(n-1, 1)) / float64(n)
	}
	out.Noise = math.Sqrt(variance) / float64(max(len(t.Shapes), 1))
	return out
}
