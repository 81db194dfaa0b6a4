package toolchain

import (
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/runners/toolchain/elf"
)

// symtab is the symbols of the code itself.
func (f *cubinFile) symtab() []elf.Symbol {
	for i, s := range f.sections {
		if s.Kind == elf.SectionSymbols {
			return f.symbols[i]
		}
	}
	return nil
}

// entries are the kernels that the driver can launch, in alphabetical order.
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

// codeSize is the bytes of an entry's instructions, with those of the functions that were compiled into it.
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
// The maths library's tables (such as __cudart_i2opi_f, which sinf brings along) are among them, and nothing but
// their names tells them from the source's own. A source may use such a name too, so none is left out here.
type Global struct {
	Name    string
	Size    int  // bytes
	Initial bool // it has an initial value, as constant tables have; without one, only a store gives it a meaning
}

// globals are the variables in memory that outlives a launch.
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

// driverCalls are the functions that the driver supplies and that leave the launch as it was asked for.
var driverCalls = []string{"__assertfail", "free", "malloc", "vprintf"}

// foreign are the symbols that something outside the cubin is to supply, but for those of driverCalls. Among them are the
// driver's own functions to launch kernels from a kernel, which ptxas lets anybody call who knows their names.
func (f *cubinFile) foreign() []string {
	var names []string
	for _, y := range f.symtab() {
		// No source can make a name with a dot in front.
		if y.Section == 0 && y.Name != "" && !strings.HasPrefix(y.Name, ".") && !slices.Contains(driverCalls, y.Name) {
			names = append(names, y.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
