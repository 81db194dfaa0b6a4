package cuda

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners/build/inspect"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
)

// sample adds where the profiler found the warps of a launch to the counters of its kernels, with the lines that the instructions come
// from. The lines are those of the cubin: for Triton, the lines of the Python program.
func (b *Backend) sample(ctx context.Context, l profiled, code []launchedKernel, to []gates.Counted) error {
	if len(l.kernels) != len(to) || slices.ContainsFunc(l.kernels, func(k inspect.Launch) bool { return k.Sampled == nil }) {
		return errors.New("ncu printed no samples of single instructions")
	}
	d, noLines := toolchain.FindNVDisasm(ctx, b.config.Getenv, b.cuda)
	for i, k := range l.kernels {
		s := *k.Sampled
		at := slices.IndexFunc(code, func(k launchedKernel) bool { return k.entry == l.entries[i] })
		var source map[int]toolchain.SourceLine
		if at >= 0 && noLines == nil {
			var err error
			if source, err = d.Source(ctx, code[at].place); err != nil {
				noLines = err
			}
		}
		addSamples(&to[i], s, source)
		if at >= 0 {
			b.heat(code[at].place, s)
		}
	}
	return noLines
}

// heat remembers the samples of a kernel for the next MachineCode.
func (b *Backend) heat(place toolchain.CodePlace, s inspect.Sampled) {
	if b.sampled == nil {
		b.sampled = map[toolchain.CodePlace]map[int]int{}
	}
	if b.sampled[place] == nil {
		b.sampled[place] = map[int]int{}
	}
	for _, i := range s.Instructions {
		b.sampled[place][i.At] += i.Samples
	}
}

// addSamples keeps the instructions and the lines with most samples.
func addSamples(to *gates.Counted, s inspect.Sampled, source map[int]toolchain.SourceLine) {
	to.Samples = s.All
	lines := map[toolchain.SourceLine]*gates.StalledLine{}
	reasons := map[toolchain.SourceLine]map[string]int{}
	for _, i := range s.Instructions {
		at := source[i.At]
		if i.Text != "" {
			to.Instructions = append(to.Instructions, gates.StalledInstruction{At: i.At, Text: i.Text, File: at.File, Line: at.Line, Samples: i.Samples, Reason: i.Reason})
		}
		if at.File == "" || at.Line < 1 {
			continue
		}
		if lines[at] == nil {
			lines[at], reasons[at] = &gates.StalledLine{File: at.File, Line: at.Line}, map[string]int{}
		}
		lines[at].Samples += i.Samples
		reasons[at][i.Reason] += i.Samples
	}
	for at, l := range lines {
		for reason, n := range reasons[at] {
			if most := reasons[at][l.Reason]; n > most || n == most && reason < l.Reason {
				l.Reason = reason
			}
		}
		to.Lines = append(to.Lines, *l)
	}
	slices.SortFunc(to.Lines, func(a, b gates.StalledLine) int {
		return cmp.Or(b.Samples-a.Samples, cmp.Compare(a.File, b.File), a.Line-b.Line)
	})
	slices.SortStableFunc(to.Instructions, func(a, b gates.StalledInstruction) int { return b.Samples - a.Samples })
	to.Lines = slices.Clip(to.Lines[:min(len(to.Lines), gates.MaxStalledLines)])
	to.Instructions = slices.Clip(to.Instructions[:min(len(to.Instructions), gates.MaxStalledLines)])
}
