package worker

import (
	"fmt"
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
	syscall.CloseOnExec(p.Socket)
	return &pyref.Client{To: os.NewFile(uintptr(p.To), "requests"), From: os.NewFile(uintptr(p.From), "replies"), Memory: pyref.OpenMemory(p.Memory), Socket: os.NewFile(uintptr(p.Socket), "socket"), Timeout: p.Timeout}
}

// newReference makes room on the device for what the outputs of a problem should be.
func (s *session) newReference(p *tensor.Problem) (*oracle.Reference, error) {
	if s.python != nil {
		return s.oracle.NewExpected(p)
	}
	return s.oracle.NewReference(p)
}

// expectPython has the reference's process compute what the first launch of a batch should give, and puts it on the device. The
// inputs are those of the launch. If the reference computes on the GPU, the arrays stay there.
func (s *session) expectPython(r *oracle.Reference, batch *oracle.InputBatch, original bool) error {
	arrays := caseArrays{s, batch, original}
	if !s.request.Python.OnGPU {
		want, err := s.python.Compute(r.Problem(), arrays.Read)
		if err != nil {
			return err
		}
		return r.Set(want)
	}
	at, err := s.python.ComputeOn(arrays, r.Problem())
	if err != nil {
		return err
	}
	return r.SetFrom(s.handed, at)
}

// caseArrays is what a reference in Python is given of a batch's first launch; see [pyref.GPU].
type caseArrays struct {
	*session
	batch    *oracle.InputBatch
	original bool
}

func (a caseArrays) Room(bytes int) (int64, *os.File, error) {
	if a.handed.Size >= int64(bytes) {
		return a.handed.Size, nil, nil
	}
	if a.handed.Size > 0 {
		if err := a.ctx.Unmap(a.handed); err != nil {
			return 0, nil, err
		}
	}
	shared, err := a.ctx.NewShared(int64(bytes))
	if err != nil {
		return 0, nil, fmt.Errorf("making room for the reference's arrays: %w", err)
	}
	if a.handed, err = a.ctx.Map(shared, 0); err != nil {
		return 0, nil, err
	}
	file, err := a.ctx.Export(shared)
	return a.handed.Size, file, err
}

func (a caseArrays) Write(in tensor.Seen, format manifest.DType, at int) error {
	if err := a.batch.Widen(0, in, format, a.original, a.handed.Slice(int64(at), int64(format.Bytes(in.Elements)))); err != nil {
		return err
	}
	return a.stream.Synchronize()
}

func (a caseArrays) Read(in tensor.Seen, format manifest.DType, to []byte) error {
	return a.batch.Read(0, in, format, a.original, to)
}
