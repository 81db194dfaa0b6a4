package side

import (
	"time"

	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
)

// A singleSlot is memory that the judge owns and this process has a handle to, and reserved addresses
// at which nothing is mapped. No kernel can reach the memory before it is mapped there.
type singleSlot struct {
	memory driver.Shared
	at     driver.DevicePtr
}

// runAlone times one launch that runs alone. The judge has written its inputs into the single slot.
// The launches before it load the code again, which the flush evicted. They have finished before
// the slot is mapped and the launch's parameters are written. So no earlier launch can have seen
// either, and the kernel must do all of the work between the two events.
func (s *server) runAlone(r run) (took time.Duration, err error) {
	p := s.problems[r.Problem]
	if r.Flush {
		if err := s.flush(); err != nil {
			return 0, err
		}
	}
	if err := all(p.launches[:r.Count]); err != nil {
		return 0, err
	}
	if err := s.kernel.Wait(); err != nil {
		return 0, err
	}
	slot, err := s.ctx.MapAt(p.singleSlot.memory, p.singleSlot.at)
	if err != nil {
		return 0, err
	}
	launch, err := p.single(slot.Ptr)
	if err != nil {
		return 0, err
	}
	if err := s.holdBack(); err != nil {
		return 0, err
	}
	if took, err = s.between(launch); err != nil {
		return 0, err
	}
	return took, s.ctx.Unmap(slot)
}
