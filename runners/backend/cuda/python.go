package cuda

import (
	"errors"
	"os"

	"github.com/kernelgate/kernelgate/runners/backend/cuda/worker"
	"github.com/kernelgate/kernelgate/runners/build/pyref"
)

// The worker talks to the process of a Python reference through inherited pipes and memory, because the
// launches to compare are known only after they were timed. One worker at a time does so.
const (
	pythonTo     = resultFD + 1
	pythonFrom   = resultFD + 2
	pythonMemory = resultFD + 3
	pythonSocket = resultFD + 4
)

// pythonPipes waits for the reference and returns the descriptors at which a worker reaches it.
func (b *Backend) pythonPipes() (*worker.Python, error) {
	p, err := b.python.Process()
	if err != nil {
		return nil, err
	}
	return &worker.Python{To: pythonTo, From: pythonFrom, Memory: pythonMemory, Socket: pythonSocket, OnGPU: p.OnGPU(), Timeout: p.Timeout, PIDs: p.PIDs()}, nil
}

// pythonFiles returns the files that a worker inherits.
func (b *Backend) pythonFiles() []*os.File {
	if b.python == nil {
		return nil
	}
	p, err := b.python.Process()
	if err != nil {
		return nil // reported when the worker's request is made
	}
	return []*os.File{p.To, p.From, p.Memory.File(), p.Socket}
}

// blamed attributes a mistake of the reference that a worker found to the base or to the change
// that brings the reference.
func (b *Backend) blamed(err error) error {
	if mistake, ok := errors.AsType[*pyref.Mistake](err); ok && b.python != nil {
		return b.python.Blame(mistake)
	}
	return err
}
