package toolchain

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A sectionRule is one way to make a section that is loaded. gcc and clang make these, and no others, of C and C++ without
// OpenMP, profiling or link-time optimisation; what else is loaded was asked for by the source.
type sectionRule struct {
	name  string // of the section, or the beginning of it up to a dot
	alone bool   // no longer names
	kinds []uint32
	flags []uint64
	drop  bool // is loaded, but can be done without
}

const (
	sectionNote   = 7
	sectionUnwind = 0x70000001 // clang's kind for .eh_frame on x86-64
	sectionMerge  = 0x10
	sectionText   = 0x20 // of strings
	sectionGroup  = 0x200
	sectionThread = 0x400

	readOnly = sectionAllocated
	readRun  = sectionAllocated | sectionRuns
	readSet  = sectionAllocated | sectionWritable
)

var sectionRules = []sectionRule{
	{name: ".text", kinds: []uint32{sectionBits}, flags: []uint64{readRun}},
	{name: ".rodata", kinds: []uint32{sectionBits}, flags: []uint64{readOnly, readOnly | sectionMerge, readOnly | sectionMerge | sectionText}},
	{name: ".data", kinds: []uint32{sectionBits}, flags: []uint64{readSet}},
	{name: ".bss", kinds: []uint32{sectionNoBits}, flags: []uint64{readSet}},
	{name: ".gcc_except_table", kinds: []uint32{sectionBits}, flags: []uint64{readOnly}},
	{name: ".eh_frame", alone: true, kinds: []uint32{sectionBits, sectionUnwind}, flags: []uint64{readOnly}},
	// Which hardware checks of branches the code would bear; without it they stay off.
	{name: ".note.gnu.property", alone: true, kinds: []uint32{sectionNote}, flags: []uint64{readOnly}, drop: true},
}

var (
	constructors = []string{".init", ".fini", ".init_array", ".fini_array", ".preinit_array", ".ctors", ".dtors"}
	directives   = []string{".gnu.warning", ".deplibs", ".linker-options", ".gnu.version", ".gnu.version_d", ".gnu.version_r", ".gnu.lto_"}
	// Kinds that belong to programs, or that give orders to a linker: arrays of constructors, dynamic tables, relocations
	// without addends, long section numbers, symbol versions, and clang's options and libraries.
	refusedKinds = []uint32{5, 6, sectionRel, 11, 14, 15, 16, 18, 0x6fff4c01, 0x6fff4c04, 0x6ffffff6, 0x6ffffffd, 0x6ffffffe, 0x6fffffff}
)

// allowed tells whether a section is to be linked. It is refused where that could do more than put bytes into memory.
func (s elfSection) allowed() (keep bool, err error) {
	switch {
	case s.flags&sectionCompressed != 0 && !(s.kind == sectionBits && strings.HasPrefix(s.name, ".debug_")):
		return false, refuseObject("section %s is compressed: only debugging sections may be", text(s.name))
	case slices.ContainsFunc(constructors, s.begins) || s.kind >= 14 && s.kind <= 16:
		return false, refuseObject("section %s holds a constructor or destructor: nothing may run but the entry, when it is called; set variables there", text(s.name))
	case slices.ContainsFunc(directives, s.begins) || slices.Contains(refusedKinds, s.kind):
		return false, refuseObject("section %s (kind %#x) gives orders to the linker: remove it", text(s.name), s.kind)
	case s.flags&sectionThread != 0:
		return false, refuseObject("section %s is thread-local: a kernel runs on one thread; use a plain variable", text(s.name))
	case s.name == ".note.GNU-stack" && s.flags&sectionRuns != 0:
		return false, refuseObject("section %s asks for an executable stack: take no address of a nested function", text(s.name))
	case s.flags&sectionAllocated == 0:
		return false, nil
	}
	i := slices.IndexFunc(sectionRules, func(r sectionRule) bool { return s.name == r.name || !r.alone && s.begins(r.name) })
	if i < 0 {
		return false, refuseObject("section %s is not one that compilers make: leave code and data in their own sections (.text, .rodata, .data, .bss)", text(s.name))
	}
	r := sectionRules[i]
	if !slices.Contains(r.kinds, s.kind) || !slices.Contains(r.flags, s.flags&^uint64(sectionGroup)) {
		return false, refuseObject("section %s has the kind %#x and the flags %#x, which compilers do not give to %s", text(s.name), s.kind, s.flags, r.name)
	}
	if s.align&(s.align-1) != 0 || s.align > maxAlign {
		return false, refuseObject("section %s wants an alignment of %d, over the limit of %d", text(s.name), s.align, maxAlign)
	}
	return !r.drop, nil
}

// begins tells whether the name is this one, or one that starts with it and a dot.
func (s elfSection) begins(with string) bool {
	rest, ok := strings.CutPrefix(s.name, with)
	return ok && (rest == "" || rest[0] == '.' || strings.HasSuffix(with, "_"))
}

// class is the name that a section is linked under. Linkers put the sections of unlikely and of hot code together, and
// relocated constants where they can be protected; all other ends of names say which function or variable it was.
func (s elfSection) class() string {
	for _, name := range []string{".text.unlikely", ".text.hot", ".text.startup", ".text.exit", ".data.rel.ro"} {
		if s.begins(name) {
			return name
		}
	}
	i := slices.IndexFunc(sectionRules, func(r sectionRule) bool { return s.begins(r.name) })
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

// checkSymbol refuses symbols that would make a linker or a loader do something, used or not.
func (f *objectFile) checkSymbol(i int, y elfSymbol) error {
	switch {
	case y.kind == symbolIndirect:
		return refuseObject("symbol %s is an indirect function (IFUNC), whose resolver would run before the entry is called: choose in the entry", text(y.name))
	case y.kind == symbolThread:
		return refuseObject("symbol %s is thread-local: a kernel runs on one thread; use a plain variable", text(y.name))
	case y.kind == symbolCommon || y.section == sectionCommon:
		return refuseObject("symbol %s is a common one: give it a value, or make it static", text(y.name))
	case y.section == sectionAbsolute:
		return nil // the source's name; refused where something refers to it
	case y.section >= len(f.sections):
		return refuseObject("symbol %s lies in section %d, which there is not", text(y.name), y.section)
	case y.section != 0 && f.loaded[y.section] && y.value > f.sections[y.section].size:
		return refuseObject("symbol %s lies outside its section %s", text(y.name), text(f.sections[y.section].name))
	case i == 0 && y != elfSymbol{}:
		return refuseObject("the first symbol is not empty")
	}
	return nil
}

// importName is what a function or variable of a library may be called. An @ would choose a version of it.
var importName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.$]*$`)

// Relocations that linkers resolve in a program without running anything: the numbers of the psABIs, first and last. Those of
// thread-local variables, copies and indirect functions are not among them.
var relocationKinds = map[uint16][][2]uint32{
	machineAMD64: {{1, 2}, {4, 4}, {9, 15}, {24, 26}, {41, 42}},
	machineARM64: {{257, 314}},
}

func (f *objectFile) checkRelocation(r relocation, target elfSection) error {
	known := slices.ContainsFunc(relocationKinds[f.machine], func(k [2]uint32) bool { return k[0] <= r.kind && r.kind <= k[1] })
	switch {
	case !known:
		return refuseObject("section %s has a relocation of kind %d, which is not known here", text(target.name), r.kind)
	case r.offset >= target.size:
		return refuseObject("section %s has a relocation at %d, outside its %d bytes", text(target.name), r.offset, target.size)
	case r.symbol == 0 || int64(r.symbol) >= int64(len(f.symbols)):
		return refuseObject("section %s has a relocation to symbol %d of %d", text(target.name), r.symbol, len(f.symbols))
	}
	y := f.symbols[r.symbol]
	switch {
	case y.kind == symbolFile || y.kind > symbolFile:
		return refuseObject("section %s refers to symbol %s of kind %d", text(target.name), text(y.name), y.kind)
	case y.section == sectionAbsolute:
		return refuseObject("section %s refers to symbol %s, a fixed address: use variables and functions", text(target.name), text(y.name))
	case y.section == 0 && (!importName.MatchString(y.name) || y.kind == symbolSection || y.binding != bindGlobal && y.binding != bindWeak):
		return refuseObject("symbol %s is to come from a library, but is not a plain name: versions and the like cannot be asked for", text(y.name))
	case y.section != 0 && !f.loaded[y.section]:
		return refuseObject("section %s refers to section %s, which is not loaded", text(target.name), text(f.sections[y.section].name))
	}
	return nil
}

// text makes a name of the file fit for a message of one line.
func text(name string) string {
	const longest = 80
	if len(name) > longest {
		name = name[:longest] + "…"
	}
	quoted := strconv.Quote(name)
	if quoted[1:len(quoted)-1] == name && name != "" && !strings.Contains(name, " ") {
		return name
	}
	return quoted
}
