package worker

import (
	"errors"
	"fmt"
	"slices"
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

// cases runs every case: the candidate twice, or three times if it keeps state, and the baseline
// once. If the candidate's outputs vary, the baseline runs again until its outputs vary too, up to
// a limit. After a case in which the candidate fails there are no more cases, because its context
// is lost.
func (s *session) cases() error {
	var d *caseSession
	err := runners.Spend(s.spent, gates.WorkMemory, func() (err error) {
		d, err = s.openCases()
		return err
	})
	for i := 0; err == nil && i < len(s.request.Cases); i++ {
		var evidence gates.Case
		evidence, err = d.compare(s.request.Cases[i])
		if failure, fault := interleave.Failure(err); fault != nil {
			c := s.request.Cases[i]
			return fmt.Errorf("%s, seed %d, %s inputs: %w", c.Shape, c.Seed, c.Distribution, fault)
		} else if failure != nil {
			evidence.Failure = failure
			return s.send(Reply{Case: &evidence})
		}
		err = s.send(Reply{Case: &evidence})
	}
	if failure, fault := interleave.Failure(err); failure != nil && len(s.request.Cases) > 0 {
		first := s.request.Cases[0].Evidence()
		first.Failure = failure
		return s.send(Reply{Case: &first})
	} else if fault != nil {
		return fault
	}
	return s.calibrate(d)
}

// Indices of the slots that each side needs for a case.
const (
	first  = iota // the candidate's launch with its state reset; also the baseline's first launch
	second        // the same again
	kept          // the candidate's launch with the state that the others left behind
	candidateSlots
	baselineSlots = 2 // for the baseline's first launch, and for those that repeat it
)

// A caseSession holds the sides of a comparison, with memory for its largest case.
type caseSession struct {
	*session
	cand, base *side.Process
	places     oracle.Places // the candidate's slots, then the baseline's
	slots      []driver.Buffer
	regions    map[rune]scratchRegion // of the last case
	batch      *oracle.InputBatch     // the inputs of the last case
	dims       string                 // its size
}

func (s *session) openCases() (*caseSession, error) {
	d := &caseSession{session: s, regions: map[rune]scratchRegion{}, cand: s.sides[gates.SideCandidate], base: s.sides[gates.SideBaseline]}
	var shapes []manifest.Shape
	for _, c := range s.request.Cases {
		shapes = append(shapes, c.Shape)
	}
	for _, p := range s.request.Plans {
		shapes = append(shapes, p.Shape)
	}
	var addresses []driver.DevicePtr
	open := func(letter rune, p *side.Process, built side.Built, count int) error {
		if err := p.Load(built); err != nil {
			return blame(p, err)
		}
		size := 0
		for _, shape := range shapes {
			p, err := s.outline(shape)
			if err != nil {
				return err
			}
			scratch, err := s.scratchSize(letter, shape)
			if err != nil {
				return err
			}
			size = max(size, tensor.NewLayout(p.Args, 0).Size+scratch)
		}
		slots, err := s.newSlots(letter, p, 0, count, size, shapes...)
		for _, r := range slots {
			addresses = append(addresses, r.Ptr)
			d.slots = append(d.slots, r)
		}
		return err
	}
	if err := open(gates.SideCandidate, d.cand, *s.request.Candidate, candidateSlots); err != nil {
		return nil, err
	}
	if d.base != nil {
		if err := open(gates.SideBaseline, d.base, *s.request.Baseline, baselineSlots); err != nil {
			return nil, err
		}
	}
	var err error
	d.places, err = s.oracle.NewPlaces(addresses)
	return d, err
}

// drawn is prepare, and its time counts.
func (d *caseSession) drawn(p *tensor.Problem, dist distribution.Kind, seed uint64) (batch *oracle.InputBatch, err error) {
	err = runners.Spend(d.spent, gates.WorkInputs, func() error {
		batch, err = d.prepare(p, dist, seed)
		return err
	})
	return batch, err
}

// prepare draws a case into every slot and sends its shape to the sides.
func (d *caseSession) prepare(p *tensor.Problem, dist distribution.Kind, seed uint64) (*oracle.InputBatch, error) {
	batch, err := d.batchOf(p)
	if err != nil {
		return nil, err
	}
	if err := batch.Draw(dist, []uint64{seed}); err != nil {
		return nil, err
	}
	if err := batch.Scatter(d.places, 1); err != nil {
		return nil, err
	}
	for _, t := range d.regions {
		if err := t.Free(); err != nil {
			return nil, err
		}
	}
	clear(d.regions)
	for letter, slots := range map[rune][]driver.Buffer{gates.SideCandidate: d.slots[:candidateSlots], gates.SideBaseline: d.slots[candidateSlots:]} {
		if len(slots) == 0 {
			continue
		}
		t, err := d.newScratchRegion(letter, p.Shape, batch.Layout.Size, slots)
		if err != nil {
			return nil, err
		}
		d.regions[letter] = t
		if err := t.Scatter(len(slots)); err != nil {
			return nil, err
		}
	}
	if err := d.stream.Synchronize(); err != nil {
		return nil, err
	}
	for _, s := range []struct {
		letter  rune
		process *side.Process
	}{{gates.SideCandidate, d.cand}, {gates.SideBaseline, d.base}} {
		if s.process == nil {
			continue
		}
		q := problemOf(p, batch, d.regions[s.letter], 0)
		q.Share = true
		if err := s.process.Prepare(q); err != nil {
			return nil, blame(s.process, err)
		}
	}
	return batch, nil
}

// batchOf makes room for the inputs of a case, or uses that of the last one if it has the same size.
func (d *caseSession) batchOf(p *tensor.Problem) (*oracle.InputBatch, error) {
	dims := p.Shape.Dims.String()
	if d.batch != nil && d.dims == dims {
		return d.batch, nil
	}
	if d.batch != nil {
		if err := d.batch.Free(); err != nil {
			return nil, err
		}
	}
	var err error
	d.batch, err = d.oracle.NewInputBatch(p, 1)
	d.dims = dims
	return d.batch, err
}

func problemOf(p *tensor.Problem, batch *oracle.InputBatch, t scratchRegion, id int) side.Problem {
	return side.Problem{ID: id, Set: id, Dims: p.Shape.Dims, Offsets: batch.Layout.Offsets, Scratch: t.Offsets, Batch: batch.Launches}
}

// launch launches one side once in one of its slots.
func (d *caseSession) launch(p *side.Process, slot int, reset bool) error {
	return runners.Spend(d.spent, gates.WorkLaunches, func() error {
		if err := p.Ready(0, reset); err != nil {
			return blame(p, err)
		}
		_, err := p.Run(0, slot, 1, false)
		return blame(p, err)
	})
}

func (d *caseSession) compare(c Case) (gates.Case, error) {
	evidence := c.Evidence()
	p, err := d.outline(c.Shape)
	if err != nil {
		return evidence, err
	}
	batch, err := d.drawn(p, c.Distribution, c.Seed)
	if err != nil {
		return evidence, err
	}
	reference, err := d.newReference(p)
	if err != nil {
		return evidence, err
	}
	launches := []struct {
		slot  int
		reset bool
	}{{first, true}, {second, true}, {kept, false}}
	if !d.cand.State {
		launches = launches[:kept]
	}
	for _, l := range launches {
		if err := d.launch(d.cand, l.slot, l.reset); err != nil {
			return evidence, errors.Join(err, d.without(&evidence, p, batch, reference, c))
		}
	}
	slot := func(i int) oracle.Target { return oracle.TargetOf(p.Args, batch.Layout, d.places.Slice(i, 1)) }
	equal := func(a, b int) (same bool, err error) {
		err = runners.Spend(d.spent, gates.WorkComparisons, func() error {
			_, all, err := d.oracle.Compare(slot(a), slot(b), d.manifest.ToleranceOf)
			same = err == nil && all[0]
			return err
		})
		return same, err
	}
	same, err := equal(first, second)
	if err != nil {
		return evidence, err
	}
	evidence.Deterministic = &same
	if same && d.cand.State {
		same, err := equal(first, kept)
		if err != nil {
			return evidence, err
		}
		evidence.StateKept = !same
	}
	touched, err := batch.Touched(d.places.Slice(first, 1))
	if err != nil {
		return evidence, err
	}
	beside, err := d.regions[gates.SideCandidate].Touched(1)
	if err != nil {
		return evidence, err
	}
	if evidence.OutOfBounds = touched[0].Outside || beside[0]; touched[0].Input != "" {
		evidence.InputsChanged = []string{touched[0].Input}
	}
	if err := d.expect(reference, batch, c.Shape.Dims, false); err != nil {
		return evidence, err
	}
	if evidence.Errors, err = reference.Compare(slot(first), d.manifest.ToleranceOf); err != nil {
		return evidence, err
	}
	if err := d.addBaseline(&evidence, p, batch, reference); err != nil {
		return evidence, err
	}
	if evidence.Baseline != nil && !same {
		if err := d.repeat(&evidence, func() (bool, error) { return equal(candidateSlots+first, candidateSlots+second) }); err != nil {
			return evidence, err
		}
	}
	if evidence.Baseline != nil {
		parity, err := equal(first, candidateSlots)
		if err != nil {
			return evidence, err
		}
		evidence.BitParity = &parity
	}
	if c.Look {
		if err := d.dump(evidence, p, batch, reference); err != nil {
			return evidence, err
		}
	}
	if c.Unquantised {
		if err := d.expect(reference, batch, c.Shape.Dims, true); err != nil {
			return evidence, err
		}
		if evidence.EndToEnd, err = reference.Compare(slot(first), d.manifest.ToleranceOf); err != nil {
			return evidence, err
		}
		if evidence.Baseline != nil {
			if evidence.BaselineEndToEnd, err = reference.Compare(slot(candidateSlots), d.manifest.ToleranceOf); err != nil {
				return evidence, err
			}
		}
	}
	if c.Replayable(d.manifest) {
		if err := d.replay(&evidence, p, batch, reference, c); err != nil {
			return evidence, err
		}
	}
	return evidence, reference.Free()
}

// replay compares the right answer to the recording itself with that to the recording with noise. The batch then has the
// recording itself.
func (d *caseSession) replay(evidence *gates.Case, p *tensor.Problem, batch *oracle.InputBatch, reference *oracle.Reference, c Case) error {
	if err := batch.Draw(c.Distribution, []uint64{0}); err != nil {
		return err
	}
	remembered, err := d.newReference(p)
	if err != nil {
		return err
	}
	if err := d.expect(remembered, batch, c.Shape.Dims, false); err != nil {
		return err
	}
	if evidence.Replayed, err = reference.Compare(remembered.Outputs(), d.manifest.ToleranceOf); err != nil {
		return err
	}
	return remembered.Free()
}

// addBaseline adds the baseline's result on the case. The caller has already run the reference. A
// baseline that fails is not used again, because its context is lost.
func (d *caseSession) addBaseline(evidence *gates.Case, p *tensor.Problem, batch *oracle.InputBatch, reference *oracle.Reference) error {
	if d.base == nil {
		return nil
	}
	err := d.launch(d.base, first, true)
	if failed, ok := errors.AsType[*side.Failure](err); ok {
		evidence.BaselineFailure = &failed.Failure
		d.base = nil
		return nil
	}
	if err != nil {
		return err
	}
	own := d.places.Slice(candidateSlots, 1)
	touched, err := batch.Touched(own)
	if err != nil {
		return err
	}
	outside, err := d.regions[gates.SideBaseline].Touched(1)
	if err != nil {
		return err
	}
	if touched[0].Outside || outside[0] {
		evidence.BaselineFailure = new(gates.WrittenOutside())
	} else if touched[0].Input != "" {
		evidence.BaselineFailure = new(gates.InputsWritten([]string{touched[0].Input}))
	}
	evidence.Baseline, err = reference.Compare(oracle.TargetOf(p.Args, batch.Layout, own), d.manifest.ToleranceOf)
	return err
}

// repeat determines whether the baseline is deterministic on a case on which the candidate is not.
// One launch with different bits shows that it is not.
func (d *caseSession) repeat(evidence *gates.Case, equal func() (bool, error)) error {
	same := true
	for n := 0; n < runners.BaselineRepeats && same; n++ {
		err := d.launch(d.base, second, true)
		if _, ok := errors.AsType[*side.Failure](err); ok { // a failure says nothing about its bits
			d.base = nil
			return nil
		}
		if err == nil {
			same, err = equal()
		}
		if err != nil {
			return err
		}
	}
	evidence.BaselineDeterministic = &same
	return nil
}

// without runs the baseline on a case that the candidate did not survive.
func (d *caseSession) without(evidence *gates.Case, p *tensor.Problem, batch *oracle.InputBatch, reference *oracle.Reference, c Case) error {
	if d.base == nil {
		return nil
	}
	if err := d.expect(reference, batch, c.Shape.Dims, false); err != nil {
		return err
	}
	return d.addBaseline(evidence, p, batch, reference)
}

// tuningSamples is how many launches a configuration is timed by.
const tuningSamples = 15

// short is the time of one launch: roughly, or where configurations are compared the median of some that find a cold cache, by
// the GPU's clock.
func (s *session) short(p *side.Process) (time.Duration, error) {
	if !s.request.Tune {
		return p.Rough(0, first)
	}
	var all []time.Duration
	for range tuningSamples {
		if err := p.Ready(0, true); err != nil {
			return 0, err
		}
		took, err := p.Run(0, first, 1, true)
		if err != nil {
			return 0, err
		}
		all = append(all, took)
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}

// calibrate finds the time of a launch on every planned shape, of the faster
// side. A candidate that fails here will fail in the round, which tells.
func (s *session) calibrate(d *caseSession) error {
	micros := map[string]float64{}
	for _, plan := range s.request.Plans {
		p, err := s.outline(plan.Shape)
		if err != nil {
			return err
		}
		_, err = d.drawn(p, distribution.Normal, 1)
		if failure, err := interleave.Failure(err); err != nil {
			return err
		} else if failure != nil {
			break
		}
		for _, side := range []*side.Process{d.base, d.cand} {
			if side == nil {
				continue
			}
			took, err := s.short(side)
			if failure, err := interleave.Failure(blame(side, err)); err != nil {
				return err
			} else if failure != nil {
				return s.send(Reply{Micros: micros})
			}
			if had, ok := micros[plan.Shape.Name]; !ok || took.Seconds()*1e6 < had {
				micros[plan.Shape.Name] = took.Seconds() * 1e6
			}
		}
	}
	return s.send(Reply{Micros: micros, Spent: s.spent})
}
