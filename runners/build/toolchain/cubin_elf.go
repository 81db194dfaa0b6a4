package toolchain

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/kernelgate/kernelgate/runners/build/toolchain/elf"
)

// A cubinFile holds the sections and symbols of a cubin, which is an ELF file. debug/elf refuses
// those of CUDA 13: it does not know the ABI byte, and CUDA has symbol numbers where ELF has
// section numbers.
//
// A compiler that read an untrusted source wrote the file, so nothing in it is trusted: every
// offset is checked, and no count makes the reader work or allocate out of proportion to the file.
type cubinFile struct {
	header   []byte
	abi      byte
	flags    uint32 // the architecture, among others
	sections []elf.Section
	symbols  map[int][]elf.Symbol // by the index of the symbol table's section
	segments []cubinSegment
}

// A cubinSegment is one line of the table of segments.
type cubinSegment struct {
	kind, flags      uint32
	offset, fileSize uint64
	address, place   uint64 // virtual, physical
	size, align      uint64
	isTable          bool // it is the table itself
}

// NVIDIA's own kinds of sections. From sm_100 on a cubin holds a second, portable form of the code
// ("Mercury"), with additional kinds of tables.
const (
	sectionNVIDIA         = 0x70000000 // from here on
	sectionInfo           = 0x70000000
	sectionCallGraph      = 0x70000001
	sectionMercury        = 0x70000016 // code
	sectionMercuryRela    = 0x70000082
	sectionMercuryInfo    = 0x70000083
	sectionMercurySymbols = 0x70000085

	symbolEntry = 0x10 // among a symbol's other bits: a __global__ function

	segmentHeaderSize = 56

	machineCUDA    = 190
	fileExecutable = 2

	maxCoverage = 4 // sections of newer architectures share bytes, but not many times over
	maxSegments = 64
)

// errNotCubin wraps every error in the form of a file.
var errNotCubin = errors.New("not a well-formed cubin")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errNotCubin, fmt.Sprintf(format, args...))
}

func readCubin(image []byte) (*cubinFile, error) {
	if err := elf.Check(image); err != nil {
		return nil, malformed("%v", err)
	}
	le := binary.LittleEndian
	kind, machine := le.Uint16(image[16:]), le.Uint16(image[18:])
	if machine != machineCUDA {
		return nil, malformed("it is for machine %d, not for CUDA's %d", machine, machineCUDA)
	}
	if kind != fileExecutable {
		return nil, malformed("its type is %d: it is not linked", kind)
	}
	f := &cubinFile{header: image[:elf.HeaderSize], abi: image[8], flags: le.Uint32(image[48:]), symbols: map[int][]elf.Symbol{}}
	var err error
	// NVIDIA has additional kinds for sections that take no space in the file.
	if f.sections, err = elf.ReadSections(image, maxCoverage, func(kind uint32) bool { return kind >= sectionNVIDIA }); err != nil {
		return nil, malformed("%v", err)
	}
	for i, s := range f.sections {
		if s.Kind != elf.SectionSymbols && s.Kind != sectionMercurySymbols {
			continue
		}
		if len(f.symbols) == 2 || len(s.Data) > elf.MaxSymbols*elf.SymbolSize {
			return nil, malformed("more than two symbol tables, or %d symbols", len(s.Data)/elf.SymbolSize)
		}
		if f.symbols[i], err = elf.ReadSymbols(f.sections, s); err != nil {
			return nil, malformed("symbol table %q: %v", s.Name, err)
		}
	}
	if err := f.readSegments(image); err != nil {
		return nil, err
	}
	if err := f.checkSections(); err != nil {
		return nil, err
	}
	if err := f.checkLoaded(); err != nil {
		return nil, err
	}
	return f, f.checkEntries()
}

func (f *cubinFile) readSegments(image []byte) error {
	le := binary.LittleEndian
	start, size, count := le.Uint64(image[32:]), le.Uint16(image[54:]), uint64(le.Uint16(image[56:]))
	if count > maxSegments || count > 0 && size != segmentHeaderSize {
		return malformed("%d segment headers of %d bytes", count, size)
	}
	table, ok := elf.Span(image, start, count*segmentHeaderSize)
	if !ok {
		return malformed("the segment headers lie outside the file")
	}
	for ; len(table) > 0; table = table[segmentHeaderSize:] {
		g := cubinSegment{
			kind: le.Uint32(table), flags: le.Uint32(table[4:]), offset: le.Uint64(table[8:]), address: le.Uint64(table[16:]),
			place: le.Uint64(table[24:]), fileSize: le.Uint64(table[32:]), size: le.Uint64(table[40:]), align: le.Uint64(table[48:]),
		}
		if _, ok := elf.Span(image, g.offset, g.fileSize); !ok && g.kind == segmentLoad {
			return malformed("a segment lies outside the file")
		}
		g.isTable = g.offset == start
		f.segments = append(f.segments, g)
	}
	return nil
}

// errHostCode is returned for code for the host.
var errHostCode = errors.New("it carries code for the host, which no kernel may bring")

// checkSections checks that a name belongs to one section, and that no section is for the host.
// Some compilers put a whole object file of the host into .nv.host, with a function for the driver
// to call.
func (f *cubinFile) checkSections() error {
	seen := map[string]bool{}
	for i, s := range f.sections {
		if i == 0 {
			continue
		}
		name := stableName(s.Name)
		if seen[name] {
			return malformed("two sections are called %s", elf.Quote(s.Name))
		}
		seen[name] = true
		if isNoise(s) {
			continue
		}
		if s.Begins(".nv.host") || bytes.HasPrefix(s.Data, []byte("\x7fELF")) {
			return fmt.Errorf("section %s of the cubin: %w", elf.Quote(s.Name), errHostCode)
		}
	}
	return nil
}
