package cuda

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// symbols returns the name of each entry in the machine code.
func symbols(c *toolchain.Cubin, entries []string) map[string]string {
	all := map[string]string{}
	for i, entry := range entries {
		all[entry] = c.Kernels[i].Symbol
	}
	return all
}

// resources joins the compiler's figures of each kernel of a launch with the launch's own, at the
// largest shape that it is launched for. If a kernel has several codes, the result is the maximum
// of each figure, and a figure that is unknown for one code is unknown.
func resources(build *gates.Build, k *codes, m *manifest.Manifest, shapes []manifest.Shape) error {
	var uses []gates.KernelUse
	for number, entry := range m.Entries(build.Variant) {
		cubins, i := k.of(entry, number)
		threads, dynamic, err := asked(m, build.Variant, entry, shapes)
		if err != nil {
			return err
		}
		size := 0
		use := gates.KernelUse{Entry: entry, Line: cubins[0].Kernels[i].Line, Resources: gates.Resources{CodeSize: &size, BlockThreads: &threads, DynamicShared: &dynamic}}
		for n, c := range cubins {
			if c.Start != nil {
				threads, dynamic = max(threads, c.Start.Block[0]*c.Start.Block[1]*c.Start.Block[2]), max(dynamic, c.Start.Shared)
			}
			u := c.Kernels[i].Usage
			size = max(size, c.Kernels[i].CodeSize)
			for _, figure := range []struct {
				into **int
				of   *int
			}{
				{&use.Registers, u.Registers}, {&use.StaticShared, u.StaticShared}, {&use.SpillStores, u.SpillStores}, {&use.SpillLoads, u.SpillLoads}, {&use.Stack, u.Stack},
			} {
				switch {
				case n == 0 || *figure.into != nil && figure.of != nil && **figure.into < *figure.of:
					*figure.into = figure.of
				case figure.of == nil:
					*figure.into = nil
				}
			}
		}
		uses = append(uses, use)
	}
	build.Resources = gates.MaxResources(uses)
	if len(uses) > 1 {
		build.Kernels = uses
	}
	var err error
	if build.Resources.Scratch, err = scratch(m, build.Variant); err != nil {
		return err
	}
	r, cubins := build.Resources, slices.Collect(maps.Values(k.cubins))
	for _, c := range cubins {
		r.Warnings = append(r.Warnings, c.Warnings...)
		for _, g := range c.Globals {
			if !g.Initial { // a variable that a launch must have written, if anything reads it
				r.Globals = append(r.Globals, fmt.Sprintf("%s (%d B)", g.Name, g.Size))
			}
		}
	}
	if len(cubins) > 1 {
		slices.Sort(r.Warnings)
		slices.Sort(r.Globals)
		r.Warnings, r.Globals = slices.Compact(r.Warnings), slices.Compact(r.Globals)
	}
	return nil
}

// scratch returns the most bytes that a launch uses in addition to its arguments; nil if it uses
// none.
func scratch(m *manifest.Manifest, variant string) (*int, error) {
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

// asked returns the largest block and the most dynamic shared memory that steps launch a kernel
// with.
func asked(m *manifest.Manifest, variant, entry string, shapes []manifest.Shape) (threads, dynamic int, err error) {
	for _, shape := range shapes {
		steps, err := m.Steps(variant, shape.Dims, nil)
		if err != nil {
			return 0, 0, err
		}
		for _, s := range steps {
			if s.Entry == entry && s.Kernel() {
				threads = max(threads, s.Block[0]*s.Block[1]*s.Block[2])
				dynamic = max(dynamic, s.SharedMemory)
			}
		}
	}
	return threads, dynamic, nil
}

// mismatched returns the first kernel of a launch whose parameters differ from what is passed.
func mismatched(c *toolchain.Cubin, m *manifest.Manifest, variant string) *mismatch {
	if start := c.Start; start != nil {
		if start.Passed != nil {
			return nil // already compared with the code
		}
		return compareParameters(c.Kernels[0], parametersOf(m, start))
	}
	entries := m.Entries(variant)
	for _, k := range m.Kernels(variant) {
		if differs := compareParameters(c.Kernels[slices.Index(entries, k.Entry)], m.Parameters(k.Args, k.Scalars...)); differs != nil {
			return differs
		}
	}
	return nil
}
