package cpu

import (
	"context"
	"errors"
	"fmt"

	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/tensor"
	"github.com/kernelgate/kernelgate/runners/toolchain"
	"github.com/kernelgate/kernelgate/runners/toolchain/object"
	"github.com/kernelgate/kernelgate/runners/toolchain/output"
)

// reference builds the reference once. That it compiles is the duty of the base, or of a change that brings a new kernel.
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

// referenceFault blames whoever brings the reference for what a compiler says about it, and nobody for anything else.
func (w *Worker) referenceFault(err error, format string, args ...any) error {
	if _, ok := errors.AsType[*output.CompileError](err); ok {
		return w.job.ReferenceErrorf(format, args...)
	}
	return fmt.Errorf("the reference %s %w", w.job.Manifest.Reference.Source, fmt.Errorf(format, args...))
}

// CheckReference builds the reference, and holds its parameters against the manifest. A run that compares outputs does so too.
func (w *Worker) CheckReference(ctx context.Context) error {
	if w.job.Manifest.Reference == nil {
		return nil
	}
	_, err := w.reference(ctx)
	return err
}
