package object

import (
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/runners/build/toolchain/elf"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
)

// A sectionRule is one kind of loaded section. gcc and clang make these, and no others, for C and
// C++ without OpenMP, profiling or link-time optimisation. Any other loaded section was requested
// by the source.
type sectionRule struct {
	name  string // name of the section, or its prefix up to a dot
	alone bool   // no longer names
	kinds []uint32
	flags []uint64
	drop  bool // is loaded, but not needed
}

const (
	sectionUnwind = 0x70000001 // clang's kind for .eh_frame on x86-64
	sectionMerge  = 0x10
	sectionText   = 0x20 // of strings
	sectionGroup  = 0x200
	sectionThread = 0x400

	readOnly = elf.SectionAllocated
	readRun  = elf.SectionAllocated | elf.SectionRuns
	readSet  = elf.SectionAllocated | elf.SectionWritable
)

var sectionRules = []sectionRule{
	{name: ".text", kinds: []uint32{elf.SectionBits}, flags: []uint64{readRun}},
	{name: ".rodata", kinds: []uint32{elf.SectionBits}, flags: []uint64{readOnly, readOnly | sectionMerge, readOnly | sectionMerge | sectionText}},
	{name: ".data", kinds: []uint32{elf.SectionBits}, flags: []uint64{readSet}},
	{name: ".bss", kinds: []uint32{elf.SectionNoBits}, flags: []uint64{readSet}},
	{name: ".gcc_except_table", kinds: []uint32{elf.SectionBits}, flags: []uint64{readOnly}},
	{name: ".eh_frame", alone: true, kinds: []uint32{elf.SectionBits, sectionUnwind}, flags: []uint64{readOnly}},
	// Which hardware checks of branches the code supports; without this section they stay off.
	{name: ".note.gnu.property", alone: true, kinds: []uint32{elf.SectionNote}, flags: []uint64{readOnly}, drop: true},
}

var (
	constructors = []string{".init", ".fini", ".init_array", ".fini_array", ".preinit_array", ".ctors", ".dtors"}
	directives   = []string{".gnu.warning", ".deplibs", ".linker-options", ".gnu.version", ".gnu.version_d", ".gnu.version_r", ".gnu.lto_"}
	// Kinds that belong to programs, or that give orders to a linker: arrays of constructors, dynamic tables, relocations
	// without addends, long section numbers, symbol versions, and clang's options and libraries.
	refusedKinds = []uint32{5, 6, elf.SectionRel, 11, 14, 15, 16, 18, 0x6fff4c01, 0x6fff4c04, 0x6ffffff6, 0x6ffffffd, 0x6ffffffe, 0x6fffffff}
)

// allowed reports whether a section is linked. It refuses a section that could do more than put
// bytes into memory.
func allowed(s elf.Section) (keep bool, err error) {
	switch {
	case s.Flags&elf.SectionCompressed != 0 && !(s.Kind == elf.SectionBits && strings.HasPrefix(s.Name, ".debug_")):
		return false, output.Refuse("section %s is compressed: only debugging sections may be", elf.Quote(s.Name))
	case slices.ContainsFunc(constructors, s.Begins) || s.Kind >= 14 && s.Kind <= 16:
		return false, output.Refuse("section %s holds a constructor or destructor: nothing may run but the entry, when it is called; set variables there", elf.Quote(s.Name))
	case slices.ContainsFunc(directives, s.Begins) || slices.Contains(refusedKinds, s.Kind):
		return false, output.Refuse("section %s (kind %#x) gives orders to the linker: remove it", elf.Quote(s.Name), s.Kind)
	case s.Flags&sectionThread != 0:
		return false, output.Refuse("section %s is thread-local: a kernel runs on one thread; use a plain variable", elf.Quote(s.Name))
	case s.Name == ".note.GNU-stack" && s.Flags&elf.SectionRuns != 0:
		return false, output.Refuse("section %s asks for an executable stack: take no address of a nested function", elf.Quote(s.Name))
	case s.Flags&elf.SectionAllocated == 0:
		return false, nil
	}
	i := slices.IndexFunc(sectionRules, func(r sectionRule) bool { return s.Name == r.name || !r.alone && s.Begins(r.name) })
	if i < 0 {
		return false, output.Refuse("section %s is not one that compilers make: leave code and data in their own sections (.text, .rodata, .data, .bss)", elf.Quote(s.Name))
	}
	r := sectionRules[i]
	if !slices.Contains(r.kinds, s.Kind) || !slices.Contains(r.flags, s.Flags&^uint64(sectionGroup)) {
		return false, output.Refuse("section %s has the kind %#x and the flags %#x, which compilers do not give to %s", elf.Quote(s.Name), s.Kind, s.Flags, r.name)
	}
	if s.Align&(s.Align-1) != 0 || s.Align > maxAlign {
		return false, output.Refuse("section %s wants an alignment of %d, over the limit of %d", elf.Quote(s.Name), s.Align, maxAlign)
	}
	return !r.drop, nil
}

// classOf returns the name that a section is linked under. Linkers group the sections of unlikely
// and of hot code, and put relocated constants where they can be protected; other suffixes only
// name the function or variable.
func classOf(s elf.Section) string {
	for _, name := range []string{".text.unlikely", ".text.hot", ".text.startup", ".text.exit", ".data.rel.ro"} {
		if s.Begins(name) {
			return name
		}
	}
	i := slices.IndexFunc(sectionRules, func(r sectionRule) bool { return s.Begins(r.name) })
	if i < 0 {
		return ""
	}
	return sectionRules[i].name
}

const (
	symbolCommon   = 5
	symbolThread   = 6
	symbolIndirect = 10

	bindLocal  = 0
	bindGlobal = 1
	bindWeak   = 2

	sectionAbsolute = 0xfff1
	sectionCommon   = 0xfff2
)

// checkSymbol refuses symbols that would make a linker or a loader act, used or not.
func (f *objectFile) checkSymbol(i int, y elf.Symbol) error {
	switch {
	case y.Kind == symbolIndirect:
		return output.Refuse("symbol %s is an indirect function (IFUNC), whose resolver would run before the entry is called: choose in the entry", elf.Quote(y.Name))
	case y.Kind == symbolThread:
		return output.Refuse("symbol %s is thread-local: a kernel runs on one thread; use a plain variable", elf.Quote(y.Name))
	case y.Kind == symbolCommon || y.Section == sectionCommon:
		return output.Refuse("symbol %s is a common one: give it a value, or make it static", elf.Quote(y.Name))
	case y.Section == sectionAbsolute:
		return nil // the source's name; refused where something refers to it
	case y.Section >= len(f.sections):
		return output.Refuse("symbol %s lies in section %d, which there is not", elf.Quote(y.Name), y.Section)
	case y.Section != 0 && f.loaded[y.Section] && y.Value > f.sections[y.Section].Size:
		return output.Refuse("symbol %s lies outside its section %s", elf.Quote(y.Name), elf.Quote(f.sections[y.Section].Name))
	case i == 0 && y != elf.Symbol{}:
		return output.Refuse("the first symbol is not empty")
	}
	return nil
}

// importName matches the names of library functions and variables. An @ would choose a version.
var importName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.$]*$`)

// Relocations that linkers resolve in a program without running anything: the numbers of the psABIs, first and last. Those of
// thread-local variables, copies and indirect functions are not among them.
var relocationKinds = map[uint16][][2]uint32{
	machineAMD64: {{1, 2}, {4, 4}, {9, 15}, {24, 26}, {41, 42}},
	machineARM64: {{257, 314}},
}

func (f *objectFile) checkRelocation(r relocation, target elf.Section) error {
	known := slices.ContainsFunc(relocationKinds[f.machine], func(k [2]uint32) bool { return k[0] <= r.kind && r.kind <= k[1] })
	switch {
	case !known:
		return output.Refuse("section %s has a relocation of kind %d, which is not known here", elf.Quote(target.Name), r.kind)
	case r.offset >= target.Size:
		return output.Refuse("section %s has a relocation at %d, outside its %d bytes", elf.Quote(target.Name), r.offset, target.Size)
	case r.symbol == 0 || int64(r.symbol) >= int64(len(f.symbols)):
		return output.Refuse("section %s has a relocation to symbol %d of %d", elf.Quote(target.Name), r.symbol, len(f.symbols))
	}
	y := f.symbols[r.symbol]
	switch {
	case y.Kind == elf.SymbolFile || y.Kind > elf.SymbolFile:
		return output.Refuse("section %s refers to symbol %s of kind %d", elf.Quote(target.Name), elf.Quote(y.Name), y.Kind)
	case y.Section == sectionAbsolute:
		return output.Refuse("section %s refers to symbol %s, a fixed address: use variables and functions", elf.Quote(target.Name), elf.Quote(y.Name))
	case y.Section == 0 && (!importName.MatchString(y.Name) || y.Kind == elf.SymbolSection || y.Binding != bindGlobal && y.Binding != bindWeak):
		return output.Refuse("symbol %s is to come from a library, but is not a plain name: versions and the like cannot be asked for", elf.Quote(y.Name))
	case y.Section != 0 && !f.loaded[y.Section]:
		return output.Refuse("section %s refers to section %s, which is not loaded", elf.Quote(target.Name), elf.Quote(f.sections[y.Section].Name))
	}
	return nil
}
