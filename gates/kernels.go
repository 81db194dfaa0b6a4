package gates

import "fmt"

// A figure of resources is the place of a number in them.
type figure func(*Resources) **int

// figures are those of which a higher one is worse.
var figures = []figure{
	func(r *Resources) **int { return &r.Registers },
	func(r *Resources) **int { return &r.StaticShared },
	func(r *Resources) **int { return &r.DynamicShared },
	func(r *Resources) **int { return &r.SpillStores },
	func(r *Resources) **int { return &r.SpillLoads },
	func(r *Resources) **int { return &r.Stack },
	func(r *Resources) **int { return &r.CodeSize },
	func(r *Resources) **int { return &r.BlockThreads },
}

// MaxResources is the highest of each figure of the kernels of a launch. A figure that one of them
// lacks is unknown for the launch.
func MaxResources(kernels []KernelUse) *Resources {
	most := &Resources{}
	for _, place := range figures {
		if _, n := worst(kernels, func(r *Resources) *int { return *place(r) }); n != nil {
			*place(most) = new(*n)
		}
	}
	return most
}

// uses is a side's kernels, of which most launches have one; it has no name then.
func (b *Build) uses() []KernelUse {
	switch {
	case b == nil || b.Resources == nil:
		return nil
	case len(b.Kernels) > 0:
		return b.Kernels
	}
	return []KernelUse{{Resources: *b.Resources, Line: b.EntryLine}}
}

// worst is the kernel with the highest figure, and the figure; nil where one of the kernels lacks
// it.
func worst(all []KernelUse, get func(*Resources) *int) (use KernelUse, n *int) {
	for _, u := range all {
		got := get(&u.Resources)
		if got == nil {
			return KernelUse{}, nil
		}
		if n == nil || *got > *n {
			use, n = u, got
		}
	}
	return use, n
}

// leastBlocks is the kernel of which an SM holds the fewest blocks.
func leastBlocks(all []KernelUse, arch string) (use KernelUse, blocks int, limit string, ok bool) {
	for i, u := range all {
		n, by, known := occupancyOf(&u.Resources, arch)
		if !known {
			return KernelUse{}, 0, "", false
		}
		if i == 0 || n < blocks {
			use, blocks, limit = u, n, by
		}
	}
	return use, blocks, limit, len(all) > 0
}

// Lift says what would let more blocks share a multiprocessor; "" where that is not known, and for launches of several kernels.
func (b *Build) Lift(arch string) string {
	r := b.Resources
	if r == nil || len(b.Kernels) > 0 || r.BlockThreads == nil || r.Registers == nil {
		return ""
	}
	shared := 0
	for _, part := range []*int{r.StaticShared, r.DynamicShared} {
		if part != nil {
			shared += *part
		}
	}
	return liftSentence(arch, *r.BlockThreads, *r.Registers, shared)
}

// Occupancy is how many blocks an SM holds of the kernel with the fewest, and which resource limits
// it.
func (b *Build) Occupancy(arch string) (blocks int, limit string, ok bool) {
	_, blocks, limit, ok = leastBlocks(b.uses(), arch)
	return blocks, limit, ok
}

// scratch adds the memory that a launch uses in addition to its arguments.
func (t *resourceTable) scratch(candidate, baseline *Build) {
	row := ResourceRow{Name: "scratch", Unit: "B", Candidate: toFloat(candidate.Resources.Scratch), Status: NotRun}
	if baseline != nil && baseline.Resources != nil {
		row.Baseline = toFloat(baseline.Resources.Scratch)
	}
	if row.Candidate != nil || row.Baseline != nil {
		t.rows = append(t.rows, row)
	}
}

// perKernel adds the main figures of each kernel of a launch of several, next to those of the kernel
// with the same name in the baseline. The rows above them have the worst figures, which are judged.
func (t *resourceTable) perKernel(arch string) {
	for _, u := range t.candidate {
		if u.Entry == "" {
			continue
		}
		var base *Resources
		for i := range t.baseline {
			if t.baseline[i].Entry == u.Entry {
				base = &t.baseline[i].Resources
			}
		}
		add := func(name, unit string, get func(*Resources) *int) {
			row := ResourceRow{Name: fmt.Sprintf("%s: %s", u.Entry, name), Unit: unit, Candidate: toFloat(get(&u.Resources)), Status: NotRun}
			if base != nil {
				row.Baseline = toFloat(get(base))
			}
			if row.Candidate != nil {
				t.rows = append(t.rows, row)
			}
		}
		add("registers", "", func(r *Resources) *int { return r.Registers })
		add("shared memory", "B", (*Resources).shared)
		add("spill stores", "B", func(r *Resources) *int { return r.SpillStores })
		add("blocks per SM", "", func(r *Resources) *int {
			if n, _, ok := occupancyOf(r, arch); ok {
				return &n
			}
			return nil
		})
	}
}
