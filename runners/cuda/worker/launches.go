package worker

import (
	"github.com/kernelgate/kernelgate/runners/cuda/side"
	"github.com/kernelgate/kernelgate/runners/problem"
)

// launches runs the candidate a few times on one case, for a tool around this
// process: a profiler wants one process, and nothing is judged by what it
// computes.
func (s *session) launches() error {
	k, err := side.Load(s.ctx, s.stream, s.manifest, *s.request.Candidate, s.request.Timeout)
	if err != nil {
		return err
	}
	c := s.request.Cases[0]
	p, err := problem.New(s.manifest, c.Shape, s.request.Candidate.Toggles, c.Distribution, c.Seed)
	if err != nil {
		return err
	}
	l := problem.NewLayout(p.Args, 0)
	slot := make([]byte, l.Size)
	l.Fill(slot, p.Args)
	memory, err := s.ctx.Alloc(int64(l.Size))
	if err != nil {
		return err
	}
	launch, err := k.Prepare(0, c.Shape.Dims, p.Args, l.Offsets, memory.Ptr)
	if err != nil {
		return err
	}
	for range s.request.Launch {
		if err := s.stream.ToDevice(memory, slot); err != nil {
			return err
		}
		if err := launch(); err != nil {
			return err
		}
		if err := k.Wait(); err != nil {
			return err
		}
	}
	return nil
}
