package worker

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/oracle"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/side"
	"github.com/kernelgate/kernelgate/runners/backend/interleave"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

const (
	armMicros = 100 // that the baseline's launches of one sample take at least
	armBatch  = 16  // launches of a sample at most
	// hopeless is how many times slower than the baseline a candidate is in its first launch that is not timed any further. First
	// launches also load code, which takes less than hopelessTime.
	hopeless     = 4
	hopelessTime = 500 * time.Microsecond
)

// An Arm is a candidate of a search.
type Arm struct {
	Name  string     `json:"name"`
	Built side.Built `json:"built"`
}

// An ArmReply is what was found out about an arm.
type ArmReply struct {
	Name    string                        `json:"name"`
	Failure *gates.Failure                `json:"failure,omitempty"`
	Differs bool                          `json:"differs,omitempty"`
	Shapes  map[string]runners.ArmSamples `json:"shapes,omitempty"`
}

// arms times the arms of a search and the baseline, all in one process. An arm that fails is reported at once. If it takes the
// process with it, the task ends there, and a new worker times the others.
func (s *session) arms() error {
	f, err := s.newField()
	if err != nil {
		return err
	}
	var arms []*entrant
	for i, a := range s.request.Arms {
		e := &entrant{Arm: a, first: (i + 1) * len(f.benches)}
		err := f.enter(e)
		if failure, fault := interleave.Failure(err); fault != nil {
			return fmt.Errorf("loading %s: %w", a.Name, fault)
		} else if failure != nil {
			if err := s.send(Reply{Arm: &ArmReply{Name: a.Name, Failure: failure}}); err != nil {
				return err
			}
			if failure.Kind == gates.FailureTimeout || !f.process.Revive() || f.process.Ready(f.baseline.first, true) != nil {
				return nil
			}
			continue
		}
		arms = append(arms, e)
	}
	for range s.request.Samples {
		for _, j := range s.rng.Perm(len(f.benches)) {
			err := f.sample(f.benches[j], arms)
			failed, ok := errors.AsType[*armFailed](err)
			if !ok && err != nil {
				return err
			}
			if ok {
				return s.send(Reply{Arm: &ArmReply{Name: failed.name, Failure: &failed.failure}})
			}
		}
	}
	for _, e := range arms {
		reply := &ArmReply{Name: e.Name, Differs: e.differs, Shapes: map[string]runners.ArmSamples{}}
		for j, b := range f.benches {
			reply.Shapes[b.shape.Name] = runners.NewArmSamples(f.baseline.times[j], e.times[j])
		}
		if err := s.send(Reply{Arm: reply}); err != nil {
			return err
		}
	}
	return nil
}

// A field is the process of the arms and the memory of their launches.
type field struct {
	*session
	process  *side.Process
	baseline *entrant
	benches  []*armBench // one for each shape
}

// An entrant is an arm, or the baseline, whose code is loaded.
type entrant struct {
	Arm
	first    int // the number of its problem on the first shape
	manifest *manifest.Manifest
	differs  bool
	hopeless []bool      // by shape: it is not timed any further
	times    [][]float64 // in microseconds, by shape
}

// An armBench is the memory of one shape.
type armBench struct {
	number  int
	shape   manifest.Shape
	problem *tensor.Problem
	batch   *oracle.InputBatch
	places  oracle.Places
	slots   []driver.Buffer
	first   time.Duration // of the baseline's first launch
	kept    driver.Buffer // the baseline's outputs
	beside  oracle.Places // where kept is
}

// newField loads the baseline, and chooses by its speed how many launches make a sample.
func (s *session) newField() (*field, error) {
	f := &field{session: s, process: s.sides[gates.SideCandidate], baseline: &entrant{Arm: Arm{Name: string(runners.Baseline), Built: *s.request.Baseline}}}
	f.baseline.manifest = s.baseline
	if err := f.process.Load(f.baseline.Built); err != nil {
		return nil, fmt.Errorf("the baseline: %w", err)
	}
	for j, plan := range s.request.Plans {
		b, err := f.newBench(j, plan.Shape)
		if err != nil {
			return nil, fmt.Errorf("making room for %s: %w", plan.Shape, err)
		}
		f.benches = append(f.benches, b)
	}
	f.baseline.start(len(f.benches))
	for _, b := range f.benches {
		if err := f.prepare(f.baseline, b); err != nil {
			return nil, fmt.Errorf("the baseline: %w", err)
		}
		var err error
		if b.first, err = f.launch(f.baseline, b, 1); err != nil {
			return nil, fmt.Errorf("the baseline: %w", err)
		}
		if err := s.stream.CopyDevice(b.kept, b.slots[0].Slice(0, b.kept.Size)); err != nil {
			return nil, err
		}
	}
	return f, s.stream.Synchronize()
}

func (e *entrant) start(shapes int) {
	e.times, e.hopeless = make([][]float64, shapes), make([]bool, shapes)
}

// newBench makes the memory of a shape.
func (f *field) newBench(number int, shape manifest.Shape) (*armBench, error) {
	p, err := tensor.Outline(f.baseline.manifest, shape, f.baseline.Built.Toggles)
	if err != nil {
		return nil, err
	}
	b := &armBench{number: number, shape: shape, problem: p}
	layout := tensor.NewLayout(p.Args, 0)
	size, err := f.slotSize(shape, layout.Size)
	if err != nil {
		return nil, err
	}
	if b.slots, err = f.process.NewSlots(f.ctx, number, 1, size); err != nil {
		return nil, err
	}
	if b.batch, err = f.oracle.NewInputBatch(p, 1); err != nil {
		return nil, err
	}
	if err := f.place(b); err != nil {
		return nil, err
	}
	if err := f.prepare(f.baseline, b); err != nil {
		return nil, err
	}
	took, err := f.process.Rough(f.baseline.first+number, 0)
	if err != nil {
		return nil, err
	}
	if launches := int(min(math.Ceil(armMicros/max(took.Seconds()*1e6, 0.1)), armBatch)); launches > 1 {
		more, err := f.process.NewSlots(f.ctx, number, launches-1, size)
		if err != nil {
			return nil, err
		}
		b.slots = append(b.slots, more...)
		if err := b.batch.Free(); err != nil {
			return nil, err
		}
		if b.batch, err = f.oracle.NewInputBatch(p, launches); err != nil {
			return nil, err
		}
		if err := f.place(b); err != nil {
			return nil, err
		}
	}
	if b.kept, err = f.ctx.Alloc(int64(layout.Size)); err != nil {
		return nil, err
	}
	b.beside, err = f.oracle.NewPlaces([]driver.DevicePtr{b.kept.Ptr})
	return b, err
}

// slotSize is what the arguments of a launch and the scratch of any arm take.
func (f *field) slotSize(shape manifest.Shape, head int) (int, error) {
	most := 0
	for _, a := range append([]Arm{f.baseline.Arm}, f.request.Arms...) {
		m := f.baseline.manifest
		if a.Built.Manifest != f.baseline.Built.Manifest || len(a.Built.Picks) > 0 {
			var err error
			if m, err = a.Built.Joined(f.request.Manifest); err != nil {
				return 0, err
			}
			m = m.On(f.session.sms)
		}
		scratch, err := scratchOf(m, a.Built, shape)
		if err != nil {
			continue // that arm cannot be launched, which its turn tells
		}
		if len(scratch) > 0 {
			most = max(most, tensor.NewLayout(scratch, 0).Size)
		}
	}
	return head + most, nil
}

func scratchOf(m *manifest.Manifest, built side.Built, shape manifest.Shape) ([]tensor.Arg, error) {
	serving, err := built.Serving(m, shape.Dims)
	if err != nil {
		return nil, err
	}
	return tensor.Scratch(m, serving.Variant, shape, serving.Toggles)
}

// place draws the inputs of a shape, the same for all arms.
func (f *field) place(b *armBench) error {
	var at []driver.DevicePtr
	seeds := make([]uint64, len(b.slots))
	for i, slot := range b.slots {
		at, seeds[i] = append(at, slot.Ptr), f.rng.Uint64()>>16
	}
	var err error
	if b.places, err = f.oracle.NewPlaces(at); err != nil {
		return err
	}
	kind := distribution.Normal
	if len(f.request.Distributions) > 0 {
		kind = f.request.Distributions[0]
	}
	if err := b.batch.Draw(kind, seeds); err != nil {
		return err
	}
	if err := b.batch.Scatter(b.places, len(b.slots)); err != nil {
		return err
	}
	return f.stream.Synchronize()
}

// enter loads an arm, launches it once on every shape, and compares its outputs with the baseline's.
func (f *field) enter(e *entrant) error {
	var err error
	if e.manifest, err = e.Built.Joined(f.request.Manifest); err != nil {
		return err
	}
	e.manifest = e.manifest.On(f.session.sms)
	e.start(len(f.benches))
	if err := f.process.Load(e.Built); err != nil {
		return blame(f.process, err)
	}
	for _, b := range f.benches {
		if err := f.prepare(e, b); err != nil {
			return err
		}
		took, err := f.launch(e, b, 1)
		if err != nil {
			return err
		}
		e.hopeless[b.number] = took > hopeless*max(b.first, hopelessTime)
		if e.hopeless[b.number] {
			e.times[b.number] = append(e.times[b.number], took.Seconds()*1e6)
		}
		got, want := oracle.TargetOf(b.problem.Args, b.batch.Layout, b.places.Slice(0, 1)), oracle.TargetOf(b.problem.Args, b.batch.Layout, b.beside.Slice(0, 1))
		errors, _, err := f.oracle.Compare(got, want, interleave.Twice(f.session.manifest.ToleranceOf))
		if err != nil {
			return err
		}
		e.differs = e.differs || errors[0].Bad > 0
	}
	return nil
}

// prepare makes the side ready to launch an arm on a shape.
func (f *field) prepare(e *entrant, b *armBench) error {
	scratch, err := scratchOf(e.manifest, e.Built, b.shape)
	if err != nil {
		return &interleave.Failed{Failure: gates.Failure{Kind: gates.FailureLaunch, Detail: err.Error()}}
	}
	q := side.Problem{ID: e.first + b.number, Set: b.number, Dims: b.shape.Dims, Offsets: b.batch.Layout.Offsets, Batch: len(b.slots)}
	for _, at := range tensor.NewLayout(scratch, 0).Offsets {
		q.Scratch = append(q.Scratch, b.batch.Layout.Size+at)
	}
	return blame(f.process, f.process.Prepare(q))
}

// launch times launches of an arm on fresh inputs, from a cold cache.
func (f *field) launch(e *entrant, b *armBench, launches int) (time.Duration, error) {
	if err := b.batch.Scatter(b.places, launches); err != nil {
		return 0, err
	}
	if err := f.stream.Synchronize(); err != nil {
		return 0, err
	}
	if err := f.process.Ready(e.first+b.number, true); err != nil {
		return 0, blame(f.process, err)
	}
	took, err := f.process.Run(e.first+b.number, 0, launches, true)
	return took / time.Duration(launches), blame(f.process, err)
}

// An armFailed is the failure of an arm while it was timed.
type armFailed struct {
	name    string
	failure gates.Failure
}

func (f *armFailed) Error() string { return f.name + ": " + f.failure.Detail }

// sample times the baseline and all arms on a shape, in random order.
func (f *field) sample(b *armBench, arms []*entrant) error {
	all := append([]*entrant{f.baseline}, arms...)
	for _, i := range f.rng.Perm(len(all)) {
		e := all[i]
		if e.hopeless[b.number] {
			continue
		}
		took, err := f.launch(e, b, len(b.slots))
		failed, ok := errors.AsType[*interleave.Failed](err)
		switch {
		case ok && i > 0:
			return &armFailed{e.Name, failed.Failure}
		case err != nil:
			return fmt.Errorf("timing %s on %s: %w", e.Name, b.shape, err)
		}
		e.times[b.number] = append(e.times[b.number], cmp.Or(took.Seconds()*1e6, 1e-3))
	}
	return nil
}
