package object

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/kernelgate/kernelgate/runners/build/toolchain/elf"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
)

// An objectFile is the parsed content of a compiler's object file: all sections, with a mark for
// those that are loaded, and the symbols.
type objectFile struct {
	machine  uint16
	sections []elf.Section
	loaded   []bool // by section
	symbols  []elf.Symbol
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

// readObjectFile parses and checks a file. In its result every index and every offset is valid.
func readObjectFile(image []byte) (*objectFile, error) {
	if err := elf.Check(image); err != nil {
		return nil, output.Refuse("the compiler's output is no object file: %v", err)
	}
	le := binary.LittleEndian
	f := &objectFile{machine: le.Uint16(image[18:]), relocs: map[int][]relocation{}}
	kind, abi := le.Uint16(image[16:]), image[7]
	// GNU's ABI is that of ELF with unique symbols, which C++ has.
	if kind != fileRelocatable || f.machine != machineAMD64 && f.machine != machineARM64 || abi != 0 && abi != 3 || le.Uint32(image[48:]) != 0 {
		return nil, output.Refuse("the compiler's output is no object file of x86-64 or arm64: ELF type %d, machine %d, ABI %d", kind, f.machine, abi)
	}
	var err error
	// An assembler writes every section once.
	if f.sections, err = elf.ReadSections(image, 1, func(uint32) bool { return false }); err != nil {
		return nil, output.Refuse("the object file is malformed: %v", err)
	}
	if len(f.sections) > maxPieces {
		return nil, output.Refuse("the object file has %d sections, over the limit of %d: split the source", len(f.sections), maxPieces)
	}
	if err := f.readLoaded(); err != nil {
		return nil, err
	}
	table := slices.IndexFunc(f.sections, func(s elf.Section) bool { return s.Kind == elf.SectionSymbols })
	if table < 0 {
		return nil, output.Refuse("the object file has no symbols: write a function in the source")
	}
	if n := len(f.sections[table].Data) / elf.SymbolSize; n > elf.MaxSymbols {
		return nil, output.Refuse("the object file has %d symbols, over the limit of %d: split the source", n, elf.MaxSymbols)
	}
	if f.symbols, err = elf.ReadSymbols(f.sections, f.sections[table]); err != nil {
		return nil, output.Refuse("the object file is malformed: symbol table: %v", err)
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
		keep, err := allowed(s)
		if err != nil {
			return err
		}
		if s.Kind == elf.SectionSymbols {
			tables++
		}
		if f.loaded[i] = keep; !keep {
			continue
		}
		if s.Size > maxLoaded || total+s.Size > maxLoaded {
			return output.Refuse("section %s brings what is loaded to more than %d bytes: take large arrays as arguments", elf.Quote(s.Name), maxLoaded)
		}
		total += s.Size
	}
	if tables > 1 {
		return output.Refuse("the object file has %d symbol tables", tables)
	}
	return nil
}

func (f *objectFile) readRelocations(table int) error {
	le := binary.LittleEndian
	total := 0
	for _, s := range f.sections {
		if s.Kind != elf.SectionRela || int64(s.Info) >= int64(len(f.sections)) || !f.loaded[s.Info] {
			continue // of debugging sections
		}
		target := f.sections[s.Info]
		_, twice := f.relocs[int(s.Info)]
		switch {
		case s.Link != table || s.EntrySize != elf.RelaSize || len(s.Data)%elf.RelaSize != 0:
			return output.Refuse("section %s holds no relocations of the usual form", elf.Quote(s.Name))
		case twice:
			return output.Refuse("section %s is relocated by two sections", elf.Quote(target.Name))
		case target.Kind == elf.SectionNoBits:
			return output.Refuse("section %s takes no room in the file, but is relocated", elf.Quote(target.Name))
		}
		if total += len(s.Data) / elf.RelaSize; total > maxLinks {
			return output.Refuse("section %s brings the relocations to more than %d: split the source", elf.Quote(s.Name), maxLinks)
		}
		list := make([]relocation, len(s.Data)/elf.RelaSize)
		for i := range list {
			d := s.Data[i*elf.RelaSize:]
			r := relocation{offset: le.Uint64(d), kind: le.Uint32(d[8:]), symbol: le.Uint32(d[12:]), addend: le.Uint64(d[16:])}
			if err := f.checkRelocation(r, target); err != nil {
				return err
			}
			list[i] = r
		}
		f.relocs[int(s.Info)] = list
	}
	return nil
}

// globals lists the variables that a call can write, by their symbols, and the parts of writable
// sections without a symbol: data without a label also outlives a call.
func (f *objectFile) globals() []string {
	named := map[int][]elf.Symbol{}
	for _, y := range f.symbols {
		if y.Section > 0 && y.Section < len(f.sections) && y.Kind == elf.SymbolObject {
			named[y.Section] = append(named[y.Section], y)
		}
	}
	var list []string
	for i, s := range f.sections {
		if !f.loaded[i] || s.Flags&elf.SectionWritable == 0 || classOf(s) == ".data.rel.ro" {
			continue
		}
		symbols := named[i]
		slices.SortStableFunc(symbols, func(a, b elf.Symbol) int { return int(int64(a.Value) - int64(b.Value)) })
		end, unnamed := uint64(0), uint64(0)
		gap := func(to uint64) {
			// Less than the alignment is padding.
			if to > end && to-end >= max(s.Align, 16) {
				unnamed += to - end
			}
		}
		for _, y := range symbols {
			gap(y.Value)
			end = max(end, y.Value+y.Size)
			list = append(list, fmt.Sprintf("%s (%d B)", elf.Quote(y.Name), y.Size))
		}
		if gap(s.Size); unnamed > 0 {
			list = append(list, fmt.Sprintf("%s without a name (%d B)", classOf(s), unnamed))
		}
	}
	return list
}
