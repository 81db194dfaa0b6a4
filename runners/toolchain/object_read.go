package toolchain

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// An objectFile is what is read of a compiler's object file: all sections, with those marked that are loaded, and the
// symbols.
type objectFile struct {
	machine  uint16
	sections []elfSection
	loaded   []bool // by section
	symbols  []elfSymbol
	relocs   map[int][]relocation // by the section that they change
}

type relocation struct {
	offset uint64
	kind   uint32
	symbol uint32
	addend uint64
}

const (
	fileRelocatable = 1

	machineAMD64 = 62
	machineARM64 = 183
)

// readObjectFile reads and refuses; what it returns holds together: every index and every offset is good.
func readObjectFile(image []byte) (*objectFile, error) {
	if err := checkELF(image); err != nil {
		return nil, refuseObject("the compiler's output is no object file: %v", err)
	}
	le := binary.LittleEndian
	f := &objectFile{machine: le.Uint16(image[18:]), relocs: map[int][]relocation{}}
	kind, abi := le.Uint16(image[16:]), image[7]
	// GNU's ABI is that of ELF with unique symbols, which C++ has.
	if kind != fileRelocatable || f.machine != machineAMD64 && f.machine != machineARM64 || abi != 0 && abi != 3 || le.Uint32(image[48:]) != 0 {
		return nil, refuseObject("the compiler's output is no object file of x86-64 or arm64: ELF type %d, machine %d, ABI %d", kind, f.machine, abi)
	}
	var err error
	// An assembler lays every section down once.
	if f.sections, err = readSections(image, 1, func(uint32) bool { return false }); err != nil {
		return nil, refuseObject("the object file is malformed: %v", err)
	}
	if len(f.sections) > maxPieces {
		return nil, refuseObject("the object file has %d sections, over the limit of %d: split the source", len(f.sections), maxPieces)
	}
	if err := f.readLoaded(); err != nil {
		return nil, err
	}
	table := slices.IndexFunc(f.sections, func(s elfSection) bool { return s.kind == sectionSymbols })
	if table < 0 {
		return nil, refuseObject("the object file has no symbols: write a function in the source")
	}
	if n := len(f.sections[table].data) / symbolSize; n > maxSymbols {
		return nil, refuseObject("the object file has %d symbols, over the limit of %d: split the source", n, maxSymbols)
	}
	if f.symbols, err = readSymbols(f.sections, f.sections[table]); err != nil {
		return nil, refuseObject("the object file is malformed: symbol table: %v", err)
	}
	for i, y := range f.symbols {
		if err := f.checkSymbol(i, y); err != nil {
			return nil, err
		}
	}
	return f, f.readRelocations(table)
}

func (f *objectFile) readLoaded() error {
	f.loaded = make([]bool, len(f.sections))
	total := uint64(0)
	tables := 0
	for i, s := range f.sections {
		keep, err := s.allowed()
		if err != nil {
			return err
		}
		if s.kind == sectionSymbols {
			tables++
		}
		if f.loaded[i] = keep; !keep {
			continue
		}
		if s.size > maxLoaded || total+s.size > maxLoaded {
			return refuseObject("section %s brings what is loaded to more than %d bytes: take large arrays as arguments", text(s.name), maxLoaded)
		}
		total += s.size
	}
	if tables > 1 {
		return refuseObject("the object file has %d symbol tables", tables)
	}
	return nil
}

func (f *objectFile) readRelocations(table int) error {
	le := binary.LittleEndian
	total := 0
	for _, s := range f.sections {
		if s.kind != sectionRela || int64(s.info) >= int64(len(f.sections)) || !f.loaded[s.info] {
			continue // of debugging sections
		}
		target := f.sections[s.info]
		_, twice := f.relocs[int(s.info)]
		switch {
		case s.link != table || s.entrySize != relaSize || len(s.data)%relaSize != 0:
			return refuseObject("section %s holds no relocations of the usual form", text(s.name))
		case twice:
			return refuseObject("section %s is relocated by two sections", text(target.name))
		case target.kind == sectionNoBits:
			return refuseObject("section %s takes no room in the file, but is relocated", text(target.name))
		}
		if total += len(s.data) / relaSize; total > maxLinks {
			return refuseObject("section %s brings the relocations to more than %d: split the source", text(s.name), maxLinks)
		}
		list := make([]relocation, len(s.data)/relaSize)
		for i := range list {
			d := s.data[i*relaSize:]
			r := relocation{offset: le.Uint64(d), kind: le.Uint32(d[8:]), symbol: le.Uint32(d[12:]), addend: le.Uint64(d[16:])}
			if err := f.checkRelocation(r, target); err != nil {
				return err
			}
			list[i] = r
		}
		f.relocs[int(s.info)] = list
	}
	return nil
}

// globals lists the variables that a call can write, by their symbols, and what of the writable sections has none: data that
// an assembler laid down without a label outlives a call too.
func (f *objectFile) globals() []string {
	named := map[int][]elfSymbol{}
	for _, y := range f.symbols {
		if y.section > 0 && y.section < len(f.sections) && y.kind == symbolObject {
			named[y.section] = append(named[y.section], y)
		}
	}
	var list []string
	for i, s := range f.sections {
		if !f.loaded[i] || s.flags&sectionWritable == 0 || s.class() == ".data.rel.ro" {
			continue
		}
		symbols := named[i]
		slices.SortStableFunc(symbols, func(a, b elfSymbol) int { return int(int64(a.value) - int64(b.value)) })
		end, unnamed := uint64(0), uint64(0)
		gap := func(to uint64) {
			// Less than the alignment is padding.
			if to > end && to-end >= max(s.align, 16) {
				unnamed += to - end
			}
		}
		for _, y := range symbols {
			gap(y.value)
			end = max(end, y.value+y.size)
			list = append(list, fmt.Sprintf("%s (%d B)", text(y.name), y.size))
		}
		if gap(s.size); unnamed > 0 {
			list = append(list, fmt.Sprintf("%s without a name (%d B)", s.class(), unnamed))
		}
	}
	return list
}
