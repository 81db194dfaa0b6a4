package cpu

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
)

// Build compiles one side: its variant, or every variant that its choice may take.
func (w *Worker) Build(ctx context.Context, role runners.Role, side runners.Side) (gates.Build, error) {
	if side.Variant != manifest.Choice {
		b, exe, err := w.buildVariant(ctx, string(role), side)
		if exe != nil {
			w.sides[role] = exe
		}
		return b, err
	}
	m := w.job.Of(side)
	whole := &executable{variant: side.Variant, manifest: m, toggles: m.ToggleValues(side.Variant)}
	choice, err := runners.BuildParts(m, side, "", func(part runners.Side) (gates.Build, error) {
		b, exe, err := w.buildVariant(ctx, string(role)+"-"+part.Variant, part)
		if exe != nil {
			whole.parts = append(whole.parts, exe)
		}
		return b, err
	})
	choice.Arch = w.Device().Arch
	if err == nil && choice.OK {
		w.sides[role] = whole
	}
	return choice, err
}

// serving returns the program that is launched for a problem.
func (e *executable) serving(dims manifest.Dims) (*executable, error) {
	if len(e.parts) == 0 {
		return e, nil
	}
	variant, err := e.manifest.Serving(e.variant, "", dims)
	for _, part := range e.parts {
		if err == nil && part.variant == variant {
			return part, nil
		}
	}
	return nil, fmt.Errorf("the choice serves nothing at %s: %w", dims, err)
}

// programs returns every program of a side.
func (e *executable) programs() []*executable {
	switch {
	case e == nil:
		return nil
	case len(e.parts) > 0:
		return e.parts
	}
	return []*executable{e}
}

// servingSide returns a side with the variant that is launched for a problem.
func (w *Worker) servingSide(side runners.Side, dims manifest.Dims) (runners.Side, error) {
	variant, err := w.job.Of(side).Serving(side.Variant, "", dims)
	side.Variant = variant
	return side, err
}

// MachineCode shows the differences between the sides' code, program by program; a host without
// objdump leaves it out. Both sides are built.
func (w *Worker) MachineCode(ctx context.Context) *gates.MachineCode {
	d, err := toolchain.FindObjdump(ctx)
	if err != nil {
		return nil
	}
	before, after := w.sides[runners.Baseline].programs(), w.sides[runners.Candidate].programs()
	place := func(e *executable) toolchain.CodePlace {
		return toolchain.CodePlace{Path: filepath.Join(filepath.Dir(e.path), objectName)}
	}
	var pairs []toolchain.CodePair
	for i, e := range after {
		p := toolchain.CodePair{Kernel: w.job.Manifest.Entry, Candidate: place(e)}
		if len(after) > 1 {
			p.Kernel = e.variant
		}
		if len(before) == len(after) && (len(after) == 1 || before[i].variant == e.variant) {
			p.Baseline = place(before[i])
		}
		pairs = append(pairs, p)
	}
	return d.Compare(ctx, pairs)
}
