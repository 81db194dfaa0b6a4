package worker

import (
	"fmt"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/oracle"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/side"
	"github.com/kernelgate/kernelgate/runners/backend/interleave"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// A scratchRegion is the scratch of a side at one shape, and its place in the side's slots: behind the
// arguments, which lie at the same offsets on all sides.
type scratchRegion struct {
	*oracle.ScratchImage
	Offsets []int
}

// scratch returns the arrays that a side's launch uses in addition to its arguments.
func (s *session) scratch(letter rune, shape manifest.Shape) ([]tensor.Arg, error) {
	m, built := s.candidate, s.request.Candidate
	if letter != gates.SideCandidate {
		m, built = s.baseline, s.request.Baseline
	}
	serving, err := built.Serving(m, shape.Dims)
	if err != nil && letter == gates.SideCandidate {
		return nil, &interleave.Failed{Failure: gates.Failure{Kind: gates.FailureLaunch, Detail: fmt.Sprintf("the choice serves nothing at %s: %v", shape.Dims, err)}}
	}
	if err != nil {
		return nil, err
	}
	return tensor.Scratch(m, serving.Variant, shape, serving.Toggles)
}

// newScratchRegion makes a side's scratch for a shape whose arguments take head bytes of each slot.
func (s *session) newScratchRegion(letter rune, shape manifest.Shape, head int, slots []driver.Buffer) (scratchRegion, error) {
	scratch, err := s.scratch(letter, shape)
	if err != nil {
		return scratchRegion{}, err
	}
	var t scratchRegion
	for _, at := range tensor.NewLayout(scratch, 0).Offsets {
		t.Offsets = append(t.Offsets, head+at)
	}
	t.ScratchImage, err = s.oracle.NewScratchImage(scratch, behind(slots, head), s.litter)
	return t, err
}

// in returns the same scratch in different slots.
func (t scratchRegion) in(slots []driver.Buffer, head int) (scratchRegion, error) {
	var err error
	t.ScratchImage, err = t.At(behind(slots, head))
	return t, err
}

// behind returns the addresses where scratch begins in slots whose arguments take head bytes.
func behind(slots []driver.Buffer, head int) []driver.DevicePtr {
	var addresses []driver.DevicePtr
	for _, r := range slots {
		addresses = append(addresses, r.Ptr+driver.DevicePtr(head))
	}
	return addresses
}

// scratchSize returns the number of bytes that scratch takes in a slot.
func (s *session) scratchSize(letter rune, shape manifest.Shape) (int, error) {
	scratch, err := s.scratch(letter, shape)
	if err != nil || len(scratch) == 0 {
		return 0, err
	}
	return tensor.NewLayout(scratch, 0).Size, nil
}

// newSlots makes a side's slots. If they do not fit on the GPU and the candidate needs more scratch
// than the baseline, that is the candidate's failure.
func (s *session) newSlots(letter rune, p *side.Process, set, count, size int, shapes ...manifest.Shape) ([]driver.Buffer, error) {
	slots, err := p.NewSlots(s.ctx, set, count, size)
	if driver.CodeOf(err) != driver.OutOfMemory {
		return slots, err
	}
	for _, shape := range shapes {
		own, _ := s.scratchSize(gates.SideCandidate, shape)
		other := 0
		if s.baseline != nil {
			other, _ = s.scratchSize(gates.SideBaseline, shape)
		}
		if own > other {
			return nil, &interleave.Failed{Failure: gates.Failure{Kind: gates.FailureLaunch, Detail: fmt.Sprintf("the GPU has no room for %d launches with %d bytes of scratch each", count, own)}}
		}
	}
	return nil, fmt.Errorf("making the slots of side %c: %w", letter, err)
}
