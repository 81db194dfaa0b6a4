package toolchain

import (
	"slices"
	"strings"
)

// A cubinRule is one kind of section that a driver loads. ptxas makes these, and no others, of kernels that are compiled whole;
// what else asks to be loaded is no kernel's.
type cubinRule struct {
	name  string // of the section, or the beginning of it up to a dot
	kinds []uint32
	flags uint64 // what must be there
	loose uint64 // what may be there as well
}

const (
	// Up to CUDA 12 the number of a kernel's barriers is among the flags of its code.
	barrierFlags = 0x07f00000
	mercuryFlag  = 0x10000000

	segmentLoad = 1

	// maxDeviceData is the memory of all variables that are not in the file, which a load takes.
	maxDeviceData = 4 << 30
	// maxSharedData is more than any GPU's block has.
	maxSharedData = 1 << 20
)

var cubinRules = []cubinRule{
	{name: ".text", kinds: []uint32{sectionBits}, flags: sectionAllocated | sectionRuns, loose: barrierFlags | sectionInfoLink},
	{name: ".nv.constant0", kinds: []uint32{sectionBits}, flags: sectionAllocated, loose: sectionInfoLink},
	{name: ".nv.constant1", kinds: []uint32{sectionBits}, flags: sectionAllocated, loose: sectionInfoLink},
	{name: ".nv.constant2", kinds: []uint32{sectionBits}, flags: sectionAllocated, loose: sectionInfoLink},
	{name: ".nv.constant3", kinds: []uint32{sectionBits}, flags: sectionAllocated, loose: sectionInfoLink},
	{name: ".nv.constant4", kinds: []uint32{sectionBits}, flags: sectionAllocated, loose: sectionInfoLink},
	{name: ".nv.global", kinds: []uint32{sectionNoBits}, flags: sectionAllocated | sectionWritable},
	{name: ".nv.global.init", kinds: []uint32{sectionBits}, flags: sectionAllocated | sectionWritable},
	{name: ".nv.shared", kinds: []uint32{sectionNoBits}, flags: sectionAllocated | sectionWritable, loose: sectionInfoLink},
	{name: ".nv.local", kinds: []uint32{sectionNoBits}, flags: sectionAllocated | sectionWritable, loose: sectionInfoLink},
}

// checkLoaded refuses sections that a driver would load and that kernels do not have.
func (f *cubinFile) checkLoaded() error {
	data := uint64(0)
	for i, s := range f.sections {
		if i == 0 {
			continue
		}
		if s.flags&sectionCompressed != 0 {
			return malformed("section %s is compressed", text(s.name))
		}
		if s.flags&(sectionAllocated|sectionRuns|sectionWritable) == 0 {
			continue
		}
		if strings.HasPrefix(s.name, ".nv.merc.") && s.kind >= sectionNVIDIA && s.flags&mercuryFlag != 0 && s.flags&sectionRuns == 0 {
			continue // the portable form of a section that has its own rule
		}
		if !s.isKnown() {
			return malformed("section %s (kind %#x, flags %#x) would be loaded, and no kernel has such a one", text(s.name), s.kind, s.flags)
		}
		if s.kind != sectionNoBits {
			continue
		}
		if data += min(s.size, maxDeviceData+1); data > maxDeviceData || s.begins(".nv.shared") && s.size > maxSharedData {
			return malformed("section %s asks for %d bytes of memory", text(s.name), s.size)
		}
	}
	return f.checkSegments()
}

func (s elfSection) isKnown() bool {
	return slices.ContainsFunc(cubinRules, func(r cubinRule) bool {
		return (s.name == r.name || s.begins(r.name)) && slices.Contains(r.kinds, s.kind) && s.flags&^r.loose == r.flags
	})
}

// checkSegments sees to it that a segment loads nothing but what sections say is loaded.
func (f *cubinFile) checkSegments() error {
	for _, g := range f.segments {
		if g.kind != segmentLoad {
			continue
		}
		for i, s := range f.sections {
			if i > 0 && len(s.data) > 0 && s.flags&sectionAllocated == 0 && s.offset < g.offset+g.fileSize && g.offset < s.offset+s.size {
				return malformed("section %s lies in a segment that is loaded, and does not say so", text(s.name))
			}
		}
		if g.size > maxDeviceData || g.fileSize > g.size {
			return malformed("a segment asks for %d bytes of memory", g.size)
		}
	}
	return nil
}

// checkEntries sees to it that a kernel's name stands for one function, with code of its own.
func (f *cubinFile) checkEntries() error {
	seen := map[string]bool{}
	for _, y := range f.symtab() {
		if !y.isEntry() {
			continue
		}
		if seen[y.name] {
			return malformed("two kernels are called %s", shown(y.name))
		}
		seen[y.name] = true
		if s := f.section(y.section); s.name != ".text."+y.name || s.flags&sectionRuns == 0 || y.value >= s.size {
			return malformed("the kernel %s has no code of its own", shown(y.name))
		}
	}
	return nil
}
