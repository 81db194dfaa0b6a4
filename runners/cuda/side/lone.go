package side

import (
	"time"

	"github.com/kernelgate/kernelgate/runners/cuda/driver"
)

// A loneRoom is memory of the judge's that this process holds a handle of, and addresses
// at which nothing is mapped. No kernel can reach it before it is mapped there.
type loneRoom struct {
	memory driver.Shared
	at     driver.DevicePtr
}

// runAlone times one launch that runs alone. The judge has written its inputs into the
// lone room. The launches before it bring the code in, which the flush threw out; they
// have finished before the room is mapped and the launch's parameters are written. So no
// earlier launch can have seen either, and all of the work is done between the two events.
func (s *server) runAlone(r run) (took time.Duration, err error) {
	p := s.problems[r.Problem]
	if err := s.flush(); err != nil {
		return 0, err
	}
	if err := all(p.launches[:r.Count]); err != nil {
		return 0, err
	}
	if err := s.kernel.Wait(); err != nil {
		return 0, err
	}
	room, err := s.ctx.MapAt(p.loneRoom.memory, p.loneRoom.at)
	if err != nil {
		return 0, err
	}
	launch, err := p.lone(room.Ptr)
	if err != nil {
		return 0, err
	}
	// Everything is queued before the GPU starts: no pause of the host is measured.
	if s.gate != nil {
		if err := s.gate.Close(s.stream); err != nil {
			return 0, err
		}
	}
	if took, err = s.between(launch); err != nil {
		return 0, err
	}
	return took, s.ctx.Unmap(room)
}
