package cuda

import (
	"fmt"
	"slices"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/runners/tensor"
	"github.com/kernelgate/kernelgate/runners/toolchain"
)

// symbols is what the machine code calls each entry.
func symbols(c *toolchain.Cubin, entries []string) map[string]string {
	all := map[string]string{}
	for i, entry := range entries {
		all[entry] = c.Kernels[i].Symbol
	}
	return all
}

// resources joins what the compiler says of each kernel of a launch with what the launch asks for
// at the shape that asks for most of those that it serves.
func resources(build *gates.Build, c *toolchain.Cubin, m *kernels.Manifest, shapes []kernels.Shape) error {
	var uses []gates.KernelUse
	for i, entry := range m.Entries(build.Variant) {
		threads, dynamic, err := asked(m, build.Variant, entry, shapes)
		if err != nil {
			return err
		}
		k := &c.Kernels[i]
		uses = append(uses, gates.KernelUse{Entry: entry, Line: k.Line, Resources: gates.Resources{
			Registers: k.Usage.Registers, StaticShared: k.Usage.StaticShared, SpillStores: k.Usage.SpillStores, SpillLoads: k.Usage.SpillLoads,
			Stack: k.Usage.Stack, CodeSize: &k.CodeSize, BlockThreads: &threads, DynamicShared: &dynamic,
		}})
	}
	build.Resources = gates.Most(uses)
	if len(uses) > 1 {
		build.Kernels = uses
	}
	build.Resources.Warnings = c.Warnings
	var err error
	if build.Resources.Scratch, err = scratch(m, build.Variant); err != nil {
		return err
	}
	for _, g := range c.Globals {
		if g.Written {
			build.Resources.Globals = append(build.Resources.Globals, fmt.Sprintf("%s (%d B)", g.Name, g.Size))
		}
	}
	return nil
}

// scratch is the most bytes that a launch uses beside its arguments; nil where it uses none.
func scratch(m *kernels.Manifest, variant string) (*int, error) {
	if len(m.ScratchOf(variant)) == 0 {
		return nil, nil
	}
	most := 0
	for _, shape := range m.ShapesFor(variant) {
		arrays, err := tensor.Scratch(m, variant, shape, m.ToggleValues(variant))
		if err != nil {
			return nil, err
		}
		sum := 0
		for _, a := range arrays {
			sum += a.Size()
		}
		most = max(most, sum)
	}
	return &most, nil
}

// asked is the most threads a block and bytes of dynamic shared memory that steps start a kernel
// with.
func asked(m *kernels.Manifest, variant, entry string, shapes []kernels.Shape) (threads, dynamic int, err error) {
	for _, shape := range shapes {
		steps, err := m.Steps(variant, shape.Dims, nil)
		if err != nil {
			return 0, 0, err
		}
		for _, s := range steps {
			if s.Entry == entry && s.Memset == "" {
				threads = max(threads, s.Block[0]*s.Block[1]*s.Block[2])
				dynamic = max(dynamic, s.SharedMemory)
			}
		}
	}
	return threads, dynamic, nil
}

// mismatched is the first kernel of a launch that would be passed other parameters than it has.
func mismatched(c *toolchain.Cubin, m *kernels.Manifest, variant string) *mismatch {
	entries := m.Entries(variant)
	for _, k := range m.Kernels(variant) {
		if differs := compareParameters(c.Kernels[slices.Index(entries, k.Entry)], m.Parameters(k.Args)); differs != nil {
			return differs
		}
	}
	return nil
}
