package facts

import (
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/gates/number"
)

// A NoResources is a build without the compiler's figures.
type NoResources struct {
	Unlimited bool // the policy limits none of them
}

func (n NoResources) Sentence() string {
	if n.Unlimited {
		return "no resource usage was recorded, and the policy limits none"
	}
	return "no resource usage was recorded"
}

// An OfVariant is a fact about one variant of a side that chooses by problem size.
type OfVariant struct {
	Variant string
	Fact    Fact
}

func (o OfVariant) Sentence() string { return o.Variant + ": " + o.Fact.Sentence() }

// A Resource is a figure that the compiler reports.
type Resource struct {
	Name   string
	Unit   string // B for bytes
	Kernel string // of a launch of several kernels; else empty
}

func (r Resource) String() string {
	if r.Kernel == "" {
		return r.Name
	}
	return r.Name + " of " + r.Kernel
}

// An OverLimit is a figure above its limit.
type OverLimit struct {
	Resource
	Value, Limit int
}

func (o OverLimit) Sentence() string {
	return fmt.Sprintf("%s %s (at most %s)", o.Resource, amount(o.Value, o.Unit), amount(o.Limit, o.Unit))
}

// Reduce is the advice to it.
type Reduce struct {
	OverLimit
	Variant string // of a choice by problem size; else empty
}

func (r Reduce) Step(Reader) string {
	return fmt.Sprintf("cut %s by %s, to at most %s", r.Resource, amount(r.Value-r.Limit, r.Unit), amount(r.Limit, r.Unit)) + inVariant(r.Variant)
}

// A Grown is a figure that has grown by more than the policy allows.
type Grown struct {
	Resource
	Value, Baseline int
	Asked           string
}

func (g Grown) Sentence() string {
	return fmt.Sprintf("%s %s is %s more than the baseline's %s (increase %s)",
		g.Resource, amount(g.Value, g.Unit), amount(g.Value-g.Baseline, g.Unit), amount(g.Baseline, g.Unit), g.Asked)
}

// LimitIncrease is the advice to it.
type LimitIncrease struct {
	Grown
	Variant string
}

func (l LimitIncrease) Step(Reader) string {
	return fmt.Sprintf("keep the increase of %s at %s", l.Resource, l.Asked) + inVariant(l.Variant)
}

// A FewBlocks is a kernel of which an SM holds too few blocks.
type FewBlocks struct {
	Kernel    string // of a launch of several kernels; else empty
	Blocks    int
	Asked     string
	LimitedBy string
}

func (f FewBlocks) Sentence() string {
	return fmt.Sprintf("%s per SM%s (asked %s; limited by %s)", number.Plural(f.Blocks, "block"), ofKernel(f.Kernel), f.Asked, f.LimitedBy)
}

// FitMoreBlocks is the advice to it.
type FitMoreBlocks struct {
	FewBlocks
	Variant string
}

func (f FitMoreBlocks) Step(Reader) string {
	return fmt.Sprintf("reduce %s until an SM holds %s blocks%s", f.LimitedBy, f.Asked, ofKernel(f.Kernel)) + inVariant(f.Variant)
}

func ofKernel(name string) string {
	if name == "" {
		return ""
	}
	return " of " + name
}

func inVariant(name string) string {
	if name == "" {
		return ""
	}
	return " in " + name
}

// An OverBudget is a build with figures beyond their budgets.
type OverBudget struct{ Exceeded []Fact }

func (o OverBudget) Sentence() string { return "Over budget: " + join(o.Exceeded, "; ") }

// A NotRecorded is figures that the policy limits and the evidence does not have.
type NotRecorded struct {
	Resources []string
	Occupancy bool // nor can the blocks per SM be computed
}

func (n NotRecorded) Sentence() string {
	missing := n.Resources
	if n.Occupancy {
		missing = append(missing[:len(missing):len(missing)], "blocks per SM (needs registers, block size and a known architecture)")
	}
	return "not recorded: " + strings.Join(missing, ", ")
}

// A WithinBudget is a build with all its figures within their budgets.
type WithinBudget struct {
	Kernels []KernelFigures
	WorstOf int // Kernels is one entry with the worst figures of so many; else 0
}

func (w WithinBudget) Sentence() string {
	var parts []string
	for _, k := range w.Kernels {
		text := k.String()
		switch {
		case w.WorstOf > 0:
			text = fmt.Sprintf("the worst of %d kernels: %s", w.WorstOf, text)
		case k.Kernel != "":
			text = k.Kernel + ": " + text
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ") + "; within budget"
}

// A KernelFigures is the figures of a kernel that people ask for first. A nil figure was not reported.
type KernelFigures struct {
	Kernel                                            string
	Registers, Shared, Stack, CodeSize, Blocks, Spilt *int
}

func (k KernelFigures) String() string {
	var parts []string
	add := func(n *int, text func(int) string) {
		if n != nil {
			parts = append(parts, text(*n))
		}
	}
	add(k.Registers, func(n int) string { return fmt.Sprintf("%d registers", n) })
	add(k.Shared, func(n int) string { return fmt.Sprintf("%.1f KiB shared memory", float64(n)/1024) })
	if k.Registers == nil { // a processor's figures
		add(k.Stack, func(n int) string { return amount(n, "B") + " stack" })
		add(k.CodeSize, func(n int) string { return amount(n, "B") + " code size" })
	}
	add(k.Blocks, func(n int) string { return number.Plural(n, "block") + " per SM" })
	add(k.Spilt, func(n int) string { return fmt.Sprintf("%d B spilled", n) })
	return strings.Join(parts, ", ")
}

// A KeepsState is a kernel with writable memory that outlives a launch.
type KeepsState struct {
	Globals []string
	CPU     bool // it runs on a processor
}

func (k KeepsState) Sentence() string {
	memory := "device memory"
	if k.CPU {
		memory = "static variables"
	}
	return "The kernel keeps state between launches in " + memory + ": " + strings.Join(k.Globals, ", ") + "."
}
