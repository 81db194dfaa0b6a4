package worker

import (
	"slices"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/oracle"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/side"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// A caseSession holds the sides of a comparison, with memory for its largest case.
type caseSession struct {
	*session
	cand, base *side.Process
	memory     []driver.Buffer               // the candidate's slots, then the baseline's
	rotations  [candidateSlots]oracle.Places // of them, by turn
	turn       int
	places     oracle.Places          // of this turn
	slots      []driver.Buffer        // of this turn
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
		d.memory = append(d.memory, slots...)
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
	for turn := range d.rotations {
		var addresses []driver.DevicePtr
		for _, slot := range rotated(d.memory, turn) {
			addresses = append(addresses, slot.Ptr)
		}
		var err error
		if d.rotations[turn], err = s.oracle.NewPlaces(addresses); err != nil {
			return nil, err
		}
	}
	d.places, d.slots = d.rotations[0], d.memory
	return d, nil
}

// rotate begins a case in the slot where the last one ended.
func (d *caseSession) rotate(launches []caseLaunch) {
	d.turn = nextTurn(d.turn, launches)
	d.places, d.slots = d.rotations[d.turn], rotated(d.memory, d.turn)
}

// drawn is prepare, and its time counts.
func (d *caseSession) drawn(p *tensor.Problem, dist distribution.Kind, seed uint64) (batch *oracle.InputBatch, err error) {
	err = runners.Spend(d.spent, gates.WorkInputs, func() error {
		batch, err = d.prepare(p, dist, seed)
		return err
	})
	return batch, err
}

// differs is added to a case's seed for the input before its own, as for kernels on the CPU.
const differs = 1 << 40

// prepare draws a case into every slot and sends its shape to the sides. The slot of the candidate's
// last launches gets a different input, which refill replaces.
func (d *caseSession) prepare(p *tensor.Problem, dist distribution.Kind, seed uint64) (*oracle.InputBatch, error) {
	batch, err := d.batchOf(p)
	if err != nil {
		return nil, err
	}
	last := lastSlot(candidateLaunches(d.cand.State))
	if err := d.fill(batch, dist, seed+differs, last, last+1); err != nil {
		return nil, err
	}
	if err := d.fill(batch, dist, seed, 0, last, last+1, len(d.slots)); err != nil {
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

// fill draws a case and puts it into ranges of slots, each given by its first slot and the one behind
// its last.
func (d *caseSession) fill(batch *oracle.InputBatch, dist distribution.Kind, seed uint64, ranges ...int) error {
	if err := batch.Draw(dist, []uint64{seed}); err != nil {
		return err
	}
	for r := range slices.Chunk(ranges, 2) {
		if r[0] == r[1] {
			continue
		}
		if err := batch.Scatter(d.places.Slice(r[0], r[1]-r[0]), 1); err != nil {
			return err
		}
	}
	return nil
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

// refill puts the case's own input, poison and scratch into one of the candidate's slots.
func (d *caseSession) refill(batch *oracle.InputBatch, slot int) error {
	return runners.Spend(d.spent, gates.WorkInputs, func() error {
		if err := batch.Scatter(d.places.Slice(slot, 1), 1); err != nil {
			return err
		}
		if err := d.regions[gates.SideCandidate].ScatterOne(slot); err != nil {
			return err
		}
		return d.stream.Synchronize()
	})
}

// indexIn returns the index of a slot in the process of a side.
func (d *caseSession) indexIn(p *side.Process, slot int) int {
	if p == d.cand {
		return turned(slot, d.turn)
	}
	return slot
}

// launch launches one side once in one of its slots.
func (d *caseSession) launch(p *side.Process, slot int, reset bool) error {
	slot = d.indexIn(p, slot)
	return runners.Spend(d.spent, gates.WorkLaunches, func() error {
		if err := p.Ready(0, reset); err != nil {
			return blame(p, err)
		}
		_, err := p.Run(0, slot, 1, false)
		return blame(p, err)
	})
}
