package toolchain

import (
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/runners/build/toolchain/elf"
)

// symtab returns the symbols of the code itself.
func (f *cubinFile) symtab() []elf.Symbol {
	for i, s := range f.sections {
		if s.Kind == elf.SectionSymbols {
			return f.symbols[i]
		}
	}
	return nil
}

// entries returns the kernels that the driver can launch, in alphabetical order.
func (f *cubinFile) entries() []string {
	var names []string
	for _, y := range f.symtab() {
		if isEntry(y) {
			names = append(names, y.Name)
		}
	}
	slices.Sort(names)
	return names
}

func isEntry(y elf.Symbol) bool {
	return y.Kind == elf.SymbolFunction && y.Section != 0 && y.Other&symbolEntry != 0
}

// codeSize returns the bytes of an entry's instructions, with those of the functions that were
// compiled into it.
func (f *cubinFile) codeSize(entry string) int {
	for _, y := range f.symtab() {
		if isEntry(y) && y.Name == entry {
			return len(f.section(y.Section).Data)
		}
	}
	return 0
}

// A Global is a __device__ variable: memory that outlives a launch.
//
// It may be a table of the maths library (such as __cudart_i2opi_f, which sinf needs). Only the
// name distinguishes these from the source's own variables, and a source may use such a name, so
// none is left out here.
type Global struct {
	Name    string
	Size    int  // bytes
	Initial bool // it has an initial value, as constant tables have; without one, it has no meaning before a store
}

// globals returns the variables in memory that outlives a launch.
func (f *cubinFile) globals() []Global {
	var globals []Global
	for _, y := range f.symtab() {
		section := f.section(y.Section).Name
		if y.Kind == elf.SymbolObject && (section == ".nv.global" || section == ".nv.global.init") {
			globals = append(globals, Global{Name: y.Name, Size: int(min(y.Size, 1<<48)), Initial: section == ".nv.global.init"})
		}
	}
	return globals
}

// driverCalls are the functions of the driver that do not change the launch.
var driverCalls = []string{"__assertfail", "free", "malloc", "vprintf"}

// foreign returns the symbols that something outside the cubin must define, except driverCalls.
// Among them are the driver's functions that launch kernels from a kernel; ptxas accepts calls of
// these by name.
func (f *cubinFile) foreign() []string {
	var names []string
	for _, y := range f.symtab() {
		// No source can define a name that starts with a dot.
		if y.Section == 0 && y.Name != "" && !strings.HasPrefix(y.Name, ".") && !slices.Contains(driverCalls, y.Name) {
			names = append(names, y.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
