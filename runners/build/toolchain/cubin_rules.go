package toolchain

import (
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/runners/build/toolchain/elf"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/entryname"
)

// A cubinRule is one kind of section that a driver loads. ptxas makes these, and no others, for
// kernels that are compiled whole. Any other section that asks to be loaded does not belong to a
// kernel.
type cubinRule struct {
	name  string // name of the section, or its prefix up to a dot
	kinds []uint32
	flags uint64 // required flags
	loose uint64 // allowed flags
}

const (
	// Up to CUDA 12 the number of a kernel's barriers is among the flags of its code.
	barrierFlags = 0x07f00000
	mercuryFlag  = 0x10000000

	segmentLoad = 1

	// maxDeviceData bounds the memory of all variables that are not in the file, which a load
	// allocates.
	maxDeviceData = 4 << 30
	// maxSharedData is more than a block of any GPU has.
	maxSharedData = 1 << 20
)

var cubinRules = []cubinRule{
	{name: ".text", kinds: []uint32{elf.SectionBits}, flags: elf.SectionAllocated | elf.SectionRuns, loose: barrierFlags | elf.SectionInfoLink},
	{name: ".nv.constant0", kinds: []uint32{elf.SectionBits}, flags: elf.SectionAllocated, loose: elf.SectionInfoLink},
	{name: ".nv.constant1", kinds: []uint32{elf.SectionBits}, flags: elf.SectionAllocated, loose: elf.SectionInfoLink},
	{name: ".nv.constant2", kinds: []uint32{elf.SectionBits}, flags: elf.SectionAllocated, loose: elf.SectionInfoLink},
	{name: ".nv.constant3", kinds: []uint32{elf.SectionBits}, flags: elf.SectionAllocated, loose: elf.SectionInfoLink},
	{name: ".nv.constant4", kinds: []uint32{elf.SectionBits}, flags: elf.SectionAllocated, loose: elf.SectionInfoLink},
	{name: ".nv.global", kinds: []uint32{elf.SectionNoBits}, flags: elf.SectionAllocated | elf.SectionWritable},
	{name: ".nv.global.init", kinds: []uint32{elf.SectionBits}, flags: elf.SectionAllocated | elf.SectionWritable},
	{name: ".nv.shared", kinds: []uint32{elf.SectionNoBits}, flags: elf.SectionAllocated | elf.SectionWritable, loose: elf.SectionInfoLink},
	{name: ".nv.local", kinds: []uint32{elf.SectionNoBits}, flags: elf.SectionAllocated | elf.SectionWritable, loose: elf.SectionInfoLink},
}

// checkLoaded refuses sections that a driver would load and that kernels do not have.
func (f *cubinFile) checkLoaded() error {
	data := uint64(0)
	for i, s := range f.sections {
		if i == 0 {
			continue
		}
		if s.Flags&elf.SectionCompressed != 0 {
			return malformed("section %s is compressed", elf.Quote(s.Name))
		}
		if s.Flags&(elf.SectionAllocated|elf.SectionRuns|elf.SectionWritable) == 0 {
			continue
		}
		if strings.HasPrefix(s.Name, ".nv.merc.") && s.Kind >= sectionNVIDIA && s.Flags&mercuryFlag != 0 && s.Flags&elf.SectionRuns == 0 {
			continue // the portable form of a section that has its own rule
		}
		if !isKnown(s) {
			return malformed("section %s (kind %#x, flags %#x) would be loaded, and no kernel has such a one", elf.Quote(s.Name), s.Kind, s.Flags)
		}
		if s.Kind != elf.SectionNoBits {
			continue
		}
		if data += min(s.Size, maxDeviceData+1); data > maxDeviceData || s.Begins(".nv.shared") && s.Size > maxSharedData {
			return malformed("section %s asks for %d bytes of memory", elf.Quote(s.Name), s.Size)
		}
	}
	return f.checkSegments()
}

func isKnown(s elf.Section) bool {
	return slices.ContainsFunc(cubinRules, func(r cubinRule) bool {
		return (s.Name == r.name || s.Begins(r.name)) && slices.Contains(r.kinds, s.Kind) && s.Flags&^r.loose == r.flags
	})
}

// checkSegments checks that a segment loads only what sections declare as loaded.
func (f *cubinFile) checkSegments() error {
	for _, g := range f.segments {
		if g.kind != segmentLoad {
			continue
		}
		for i, s := range f.sections {
			if i > 0 && len(s.Data) > 0 && s.Flags&elf.SectionAllocated == 0 && s.Offset < g.offset+g.fileSize && g.offset < s.Offset+s.Size {
				return malformed("section %s lies in a segment that is loaded, and does not say so", elf.Quote(s.Name))
			}
		}
		if g.size > maxDeviceData || g.fileSize > g.size {
			return malformed("a segment asks for %d bytes of memory", g.size)
		}
	}
	return nil
}

// checkEntries checks that a kernel's name belongs to one function, which has code.
func (f *cubinFile) checkEntries() error {
	seen := map[string]bool{}
	for _, y := range f.symtab() {
		if !isEntry(y) {
			continue
		}
		if seen[y.Name] {
			return malformed("two kernels are called %s", entryname.Quote(y.Name))
		}
		seen[y.Name] = true
		if s := f.section(y.Section); s.Name != ".text."+y.Name || s.Flags&elf.SectionRuns == 0 || y.Value >= s.Size {
			return malformed("the kernel %s has no code of its own", entryname.Quote(y.Name))
		}
	}
	return nil
}
