package cuda

import (
	"errors"
	"os"

	"github.com/kernelgate/kernelgate/runners/cuda/worker"
	"github.com/kernelgate/kernelgate/runners/pyref"
)

// The worker asks the process of a reference in Python by itself, through pipes that it inherits behind its own: which launches
// are compared with the reference is not known before they are timed. One worker at a time does so.
const (
	pythonTo   = resultFD + 1
	pythonFrom = resultFD + 2
)

// pythonPipes waits for the reference and says where a worker reaches it.
func (b *Backend) pythonPipes() (*worker.Python, error) {
	p, err := b.python.Process()
	if err != nil {
		return nil, err
	}
	return &worker.Python{To: pythonTo, From: pythonFrom, Timeout: p.Timeout, PIDs: p.PIDs()}, nil
}

// pythonFiles is what a worker inherits.
func (b *Backend) pythonFiles() []*os.File {
	if b.python == nil {
		return nil
	}
	p, err := b.python.Process()
	if err != nil {
		return nil // told when the worker's request is made
	}
	return []*os.File{p.To, p.From}
}

// blamed puts a mistake of the reference that a worker has met down to whoever brings it.
func (b *Backend) blamed(err error) error {
	if mistake, ok := errors.AsType[*pyref.Mistake](err); ok && b.python != nil {
		return b.python.Blame(mistake)
	}
	return err
}
