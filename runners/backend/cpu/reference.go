package cpu

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/pyref"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/object"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// reference builds the reference once. If it does not compile, the base is at fault, or a change
// that brings a new kernel.
func (w *Worker) reference(ctx context.Context) (*executable, error) {
	if w.ref != nil {
		return w.ref, nil
	}
	m := w.job.Manifest
	trusted := toolchain.Compile{Dir: w.job.Trusted, Source: m.Reference.Source, Tree: w.job.Tree(runners.Side{Manifest: m}), In: toolchain.Here}
	made, err := w.compile(ctx, "reference", "object", trusted, m.Reference.Entry, []string{"-O2"})
	if err != nil {
		return nil, w.referenceFault(err, "does not compile: %w", err)
	}
	if err := w.checkReference(ctx); err != nil {
		return nil, err
	}
	sample, err := tensor.NewProblem(m, m.Shapes[0], m.ToggleValues(m.DefaultVariant), "zero", 0)
	if err != nil {
		return nil, err
	}
	exe, err := w.link(ctx, "reference", made.info, stub(m.ReferencePrototype(object.EntrySymbol), object.EntrySymbol, sample.ReferenceArgs(false), 1))
	if err != nil {
		return nil, w.referenceFault(err, "does not link: %w", err)
	}
	w.ref = &executable{path: exe, threads: 1}
	return w.ref, nil
}

// referenceFault attributes the compiler's errors about the reference to the side that brings it.
// Any other error is nobody's fault.
func (w *Worker) referenceFault(err error, format string, args ...any) error {
	if _, ok := errors.AsType[*output.CompileError](err); ok {
		return w.job.ReferenceErrorf(format, args...)
	}
	return fmt.Errorf("the reference %s %w", w.job.Manifest.Reference.Source, fmt.Errorf(format, args...))
}

// CheckReference builds the reference, and compares its parameters with the manifest. A reference
// in Python also computes the outputs of a small shape. A run that compares outputs does the same.
func (w *Worker) CheckReference(ctx context.Context) (note string, err error) {
	switch m := w.job.Manifest; {
	case m.Reference == nil:
		return "", nil
	case m.Reference.Python():
		return w.python.Check(ctx, w.job.Of(w.job.Candidate), w.job.Candidate.Variant)
	}
	_, err = w.reference(ctx)
	return "", err
}

// A truth computes the expected outputs of a problem.
type truth interface {
	// expected returns every output, in the order of the manifest. With original, the inputs are
	// those before quantisation.
	expected(p *tensor.Problem, original bool) ([][]float64, error)
	close()
}

// openReference starts the process that computes the expected outputs; size is the memory that a
// reference in C needs.
func (w *Worker) openReference(ctx context.Context, size int) (truth, error) {
	if w.python != nil {
		return pythonTruth{w.python}, nil
	}
	ref, err := w.reference(ctx)
	if err != nil {
		return nil, err
	}
	c, err := startChild(ctx, ref.path, size, ref.threads, w.config.LaunchTimeout)
	if err != nil {
		return nil, err
	}
	return compiledTruth{w.job, c}, nil
}

// pythonTruth is the reference's process, which lives as long as the check.
type pythonTruth struct{ process *pyref.Reference }

func (t pythonTruth) expected(p *tensor.Problem, original bool) ([][]float64, error) {
	return t.process.Expected(p, original)
}

func (t pythonTruth) close() {}

// compiledTruth is a reference in C, in a separate process.
type compiledTruth struct {
	job   runners.Job
	child *child
}

func (t compiledTruth) close() { t.child.close() }

func (t compiledTruth) expected(p *tensor.Problem, original bool) ([][]float64, error) {
	args := p.ReferenceArgs(original)
	l := layoutOf(args)
	failure, err := t.child.run(l, args)
	if err != nil {
		return nil, err
	}
	if failure != nil {
		return nil, t.job.ReferenceErrorf("failed: %s", failure.Detail)
	}
	var want [][]float64
	for _, out := range l.Outputs(t.child.memory.data[:l.Size]) {
		if out == nil {
			continue
		}
		values := make([]float64, len(out)/8)
		for i := range values {
			values[i] = math.Float64frombits(binary.LittleEndian.Uint64(out[8*i:]))
		}
		want = append(want, values)
	}
	return want, nil
}
