package worker

import (
	"fmt"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/cuda/oracle"
	"github.com/kernelgate/kernelgate/runners/cuda/side"
	"github.com/kernelgate/kernelgate/runners/interleave"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// A tail is the scratch of a side at one shape, and its place in the side's rooms: behind the
// arguments, which lie at the same offsets on all sides.
type tail struct {
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

// newTail makes a side's scratch for a shape whose arguments take head bytes of each room.
func (s *session) newTail(letter rune, shape manifest.Shape, head int, rooms []driver.Buffer) (tail, error) {
	scratch, err := s.scratch(letter, shape)
	if err != nil {
		return tail{}, err
	}
	var t tail
	for _, at := range tensor.NewLayout(scratch, 0).Offsets {
		t.Offsets = append(t.Offsets, head+at)
	}
	t.ScratchImage, err = s.oracle.NewScratchImage(scratch, behind(rooms, head), s.litter)
	return t, err
}

// in returns the same scratch in different rooms.
func (t tail) in(rooms []driver.Buffer, head int) (tail, error) {
	var err error
	t.ScratchImage, err = t.At(behind(rooms, head))
	return t, err
}

// behind returns the addresses where scratch begins in rooms whose arguments take head bytes.
func behind(rooms []driver.Buffer, head int) []driver.DevicePtr {
	var addresses []driver.DevicePtr
	for _, r := range rooms {
		addresses = append(addresses, r.Ptr+driver.DevicePtr(head))
	}
	return addresses
}

// tailSize returns the number of bytes that scratch takes in a room.
func (s *session) tailSize(letter rune, shape manifest.Shape) (int, error) {
	scratch, err := s.scratch(letter, shape)
	if err != nil || len(scratch) == 0 {
		return 0, err
	}
	return tensor.NewLayout(scratch, 0).Size, nil
}

// newRooms makes a side's rooms. If they do not fit on the GPU and the candidate needs more scratch
// than the baseline, that is the candidate's failure.
func (s *session) newRooms(letter rune, p *side.Process, set, count, size int, shapes ...manifest.Shape) ([]driver.Buffer, error) {
	rooms, err := p.NewRooms(s.ctx, set, count, size)
	if driver.CodeOf(err) != driver.OutOfMemory {
		return rooms, err
	}
	for _, shape := range shapes {
		own, _ := s.tailSize(gates.SideCandidate, shape)
		other := 0
		if s.baseline != nil {
			other, _ = s.tailSize(gates.SideBaseline, shape)
		}
		if own > other {
			return nil, &interleave.Failed{Failure: gates.Failure{Kind: gates.FailureLaunch, Detail: fmt.Sprintf("the GPU has no room for %d launches with %d bytes of scratch each", count, own)}}
		}
	}
	return nil, fmt.Errorf("making the rooms of side %c: %w", letter, err)
}
