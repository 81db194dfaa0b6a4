package worker

import (
	"os"
	"syscall"

	"github.com/kernelgate/kernelgate/kernels/manifest"
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
	syscall.CloseOnExec(p.Memory)
	return &pyref.Client{To: os.NewFile(uintptr(p.To), "requests"), From: os.NewFile(uintptr(p.From), "replies"), Memory: pyref.OpenMemory(p.Memory), Timeout: p.Timeout}
}

// newReference makes room on the device for what the outputs of a problem should be.
func (s *session) newReference(p *tensor.Problem) (*oracle.Reference, error) {
	if s.python != nil {
		return s.oracle.NewExpected(p)
	}
	return s.oracle.NewReference(p)
}

// expectPython has the reference's process compute what the first launch of a batch should give, and puts it on the device. The
// inputs are those of the launch.
func (s *session) expectPython(r *oracle.Reference, batch *oracle.InputBatch, original bool) error {
	want, err := s.python.Compute(r.Problem(), func(in tensor.Seen, format manifest.DType, to []byte) error {
		return batch.Read(0, in, format, original, to)
	})
	if err != nil {
		return err
	}
	return r.Set(want)
}
