package cuda

import (
	"context"
	"slices"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
)

// MachineCode shows the differences between the sides' code, shape by shape, because different
// shapes may launch different code. Both sides are built.
func (b *Backend) MachineCode(ctx context.Context) *gates.MachineCode {
	d, err := toolchain.FindNVDisasm(ctx, b.config.Getenv, b.cuda)
	if err != nil {
		return &gates.MachineCode{Skipped: err.Error()}
	}
	var pairs []toolchain.CodePair
	for _, name := range b.job.ShapeNames() {
		before, after := b.launched(runners.Baseline, name), b.launched(runners.Candidate, name)
		for _, p := range paired(before, after) {
			same := func(o toolchain.CodePair) bool { return o.Baseline == p.Baseline && o.Candidate == p.Candidate }
			if i := slices.IndexFunc(pairs, same); i >= 0 {
				pairs[i].Shapes = append(pairs[i].Shapes, name)
				continue
			}
			p.Shapes = []string{name}
			pairs = append(pairs, p)
		}
	}
	for i, p := range pairs {
		if len(p.Shapes) == len(b.job.ShapeNames()) {
			pairs[i].Shapes = nil
		}
	}
	for i := range pairs {
		pairs[i].Sampled.Baseline, pairs[i].Sampled.Candidate = b.sampled[pairs[i].Baseline], b.sampled[pairs[i].Candidate]
	}
	return d.Compare(ctx, pairs)
}

// A launched kernel is an entry with its code at a shape.
type launchedKernel struct {
	entry string
	code  string // of its whole image
	place toolchain.CodePlace
}

// launched returns the kernels of a side at a shape, in order.
func (b *Backend) launched(role runners.Role, shape string) []launchedKernel {
	side := b.sideOf(role)
	m := b.job.Of(side)
	s, ok := m.Shape(shape)
	if !ok {
		return nil
	}
	variant, err := m.Serving(side.Variant, b.device.Arch, s.Dims)
	if err != nil {
		return nil
	}
	k := b.made[madeCode{role, variant}]
	if k == nil {
		return nil
	}
	m = b.of(k)
	cubins, err := k.at(m, s.Dims)
	if err != nil {
		return nil
	}
	var all []launchedKernel
	add := func(entry string, cubin *toolchain.Cubin, place int) {
		all = append(all, launchedKernel{entry, cubin.Code, toolchain.CodePlace{Path: cubin.Path, Symbol: cubin.Kernels[place].Symbol}})
	}
	if !m.Specializes() {
		for i, entry := range m.Entries(variant) {
			add(entry, cubins[0], i)
		}
		return all
	}
	list, err := m.Specials(variant, s.Dims, nil, k.exact)
	for i := range list {
		if err == nil && !slices.ContainsFunc(all, func(o launchedKernel) bool { return o.entry == list[i].Entry }) {
			add(list[i].Entry, cubins[i], 0)
		}
	}
	return all
}

// paired pairs the kernels of both sides that have the same name. If each side has one kernel, they
// are a pair. Equal code is left out.
func paired(before, after []launchedKernel) []toolchain.CodePair {
	var pairs []toolchain.CodePair
	taken := make([]bool, len(after))
	for _, k := range before {
		i := slices.IndexFunc(after, func(o launchedKernel) bool { return o.entry == k.entry })
		if len(before) == 1 && len(after) == 1 {
			i = 0
		}
		p := toolchain.CodePair{Kernel: k.entry, Baseline: k.place}
		if i >= 0 {
			taken[i] = true
			p.Kernel, p.Candidate = after[i].entry, after[i].place
			if after[i].code == k.code {
				continue
			}
		}
		pairs = append(pairs, p)
	}
	for i, k := range after {
		if !taken[i] {
			pairs = append(pairs, toolchain.CodePair{Kernel: k.entry, Candidate: k.place})
		}
	}
	return pairs
}
