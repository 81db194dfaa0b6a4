package cpu

import (
	"context"
	"path/filepath"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/toolchain"
)

// MachineCode shows what differs between the sides' code, program by program; a host without objdump leaves it out. Both sides are built.
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
