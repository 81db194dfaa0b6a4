package worker

import (
	"fmt"
	"os"
	"syscall"

	"github.com/kernelgate/kernelgate/runners/backend/cuda/oracle"
	"github.com/kernelgate/kernelgate/runners/build/pyref"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// client speaks to the reference's process; nil where there is none. The sides, which this process starts, do not inherit the
// pipes.
func (p *Python) client() *pyref.Client {
	if p == nil {
		return nil
	}
	syscall.CloseOnExec(p.To)
	syscall.CloseOnExec(p.From)
	return &pyref.Client{To: os.NewFile(uintptr(p.To), "requests"), From: os.NewFile(uintptr(p.From), "replies"), Timeout: p.Timeout}
}

// newReference makes room on the device for what the outputs of a problem should be.
func (s *session) newReference(p *tensor.Problem) (*oracle.Reference, error) {
	if s.python != nil {
		return s.oracle.NewExpected(p)
	}
	return s.oracle.NewReference(p)
}

// expectPython has the reference's process compute what the first launch of a batch should give, and puts it on the device. The
// inputs are drawn again on the host; they must be the bits that the launch has.
func (s *session) expectPython(r *oracle.Reference, batch *oracle.InputBatch, original bool) error {
	dist, seed := batch.Drawn(0)
	p, err := tensor.NewProblem(s.candidate, r.Shape(), s.request.Candidate.Toggles, dist, seed)
	if err != nil {
		return err
	}
	name, err := batch.Differs(0, p)
	if err != nil {
		return err
	}
	if name != "" {
		return fmt.Errorf("the input %s of %s, seed %d, %s inputs, has other bits on the GPU than on the host: the GPU's memory or its compiler is faulty", name, p.Shape, seed, dist)
	}
	want, err := s.python.Expected(p, original)
	if err != nil {
		return err
	}
	return r.Set(want)
}
