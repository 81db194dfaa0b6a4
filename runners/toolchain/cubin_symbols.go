package toolchain

import (
	"slices"
	"strings"
)

// symtab is the symbols of the code itself.
func (f *cubinFile) symtab() []elfSymbol {
	for i, s := range f.sections {
		if s.kind == sectionSymbols {
			return f.symbols[i]
		}
	}
	return nil
}

// entries are the kernels that the driver can launch, in alphabetical order.
func (f *cubinFile) entries() []string {
	var names []string
	for _, y := range f.symtab() {
		if y.isEntry() {
			names = append(names, y.name)
		}
	}
	slices.Sort(names)
	return names
}

func (y elfSymbol) isEntry() bool {
	return y.kind == symbolFunction && y.section != 0 && y.other&symbolEntry != 0
}

// codeSize is the bytes of an entry's instructions, with those of the functions that were compiled into it.
func (f *cubinFile) codeSize(entry string) int {
	for _, y := range f.symtab() {
		if y.isEntry() && y.name == entry {
			return len(f.section(y.section).data)
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
		section := f.section(y.section).name
		if y.kind == symbolObject && (section == ".nv.global" || section == ".nv.global.init") {
			globals = append(globals, Global{Name: y.name, Size: int(min(y.size, 1<<48)), Initial: section == ".nv.global.init"})
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
		if y.section == 0 && y.name != "" && !strings.HasPrefix(y.name, ".") && !slices.Contains(driverCalls, y.name) {
			names = append(names, y.name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
