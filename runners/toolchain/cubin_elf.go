package toolchain

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// A cubinFile is the sections and symbols of a cubin, which is an ELF file. debug/elf refuses those of CUDA 13: the
// ABI byte is unknown to it, and CUDA keeps symbol numbers where ELF keeps section numbers.
//
// The file was written by a compiler that read a stranger's source, so that nothing in it is believed: every offset
// is checked, and no count makes the reader work or allocate out of proportion to the file.
type cubinFile struct {
	abi      byte
	flags    uint32 // the architecture, among others
	sections []cubinSection
	symbols  map[int][]cubinSymbol // by the index of the symbol table's section
}

type cubinSection struct {
	name      string
	kind      uint32
	flags     uint64
	size      uint64
	align     uint64
	entrySize uint64
	link      int
	info      uint32
	data      []byte // nil for a section that takes no room in the file
}

type cubinSymbol struct {
	name    string
	kind    byte
	other   byte
	section int // 0: defined elsewhere
	value   uint64
	size    uint64
}

// Kinds of sections: ELF's own, and NVIDIA's. From sm_100 on a cubin holds a second, portable form of the code
// ("Mercury") with tables of its own kinds.
const (
	sectionSymbols        = 2
	sectionStrings        = 3
	sectionRela           = 4
	sectionNoBits         = 8
	sectionRel            = 9
	sectionNVIDIA         = 0x70000000 // from here on
	sectionInfo           = 0x70000000
	sectionCallGraph      = 0x70000001
	sectionMercury        = 0x70000016 // code
	sectionMercuryRela    = 0x70000082
	sectionMercuryInfo    = 0x70000083
	sectionMercurySymbols = 0x70000085
)

const (
	sectionAllocated = 0x2 // flags of a section
	sectionRuns      = 0x4
	sectionInfoLink  = 0x40

	symbolObject   = 1 // kinds of a symbol
	symbolFunction = 2
	symbolEntry    = 0x10 // among a symbol's other bits: a __global__ function

	machineCUDA    = 190
	fileExecutable = 2

	elfHeaderSize     = 64
	sectionHeaderSize = 64
	symbolSize        = 24

	maxNameLength = 64 << 10
	maxCoverage   = 4 // sections of newer architectures share bytes, but not many times over
)

// errNotCubin wraps everything that is wrong with the form of a file.
var errNotCubin = errors.New("not a well-formed cubin")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errNotCubin, fmt.Sprintf(format, args...))
}

func readCubin(image []byte) (*cubinFile, error) {
	if len(image) < elfHeaderSize || !bytes.HasPrefix(image, []byte("\x7fELF\x02\x01")) {
		return nil, malformed("no 64-bit little-endian ELF header")
	}
	le := binary.LittleEndian
	kind, machine := le.Uint16(image[16:]), le.Uint16(image[18:])
	if machine != machineCUDA {
		return nil, malformed("it is for machine %d, not for CUDA's %d", machine, machineCUDA)
	}
	if kind != fileExecutable {
		return nil, malformed("its type is %d: it is not linked", kind)
	}
	f := &cubinFile{abi: image[8], flags: le.Uint32(image[48:]), symbols: map[int][]cubinSymbol{}}
	start, size, count := le.Uint64(image[40:]), le.Uint16(image[58:]), int(le.Uint16(image[60:]))
	names := int(le.Uint16(image[62:]))
	if size != sectionHeaderSize || count == 0 {
		return nil, malformed("%d section headers of %d bytes", count, size)
	}
	headers, ok := span(image, start, uint64(count)*sectionHeaderSize)
	if !ok {
		return nil, malformed("the section headers lie outside the file")
	}
	if err := f.readSections(image, headers); err != nil {
		return nil, err
	}
	if names >= count {
		return nil, malformed("section %d, with the names, does not exist", names)
	}
	table := f.sections[names].data
	for i := range f.sections {
		if f.sections[i].name, ok = textAt(table, le.Uint32(headers[i*sectionHeaderSize:])); !ok {
			return nil, malformed("section %d has no name", i)
		}
	}
	for i, s := range f.sections {
		if s.kind != sectionSymbols && s.kind != sectionMercurySymbols {
			continue
		}
		symbols, err := f.readSymbols(s)
		if err != nil {
			return nil, fmt.Errorf("symbol table %q: %w", s.name, err)
		}
		f.symbols[i] = symbols
	}
	return f, nil
}

func (f *cubinFile) readSections(image, headers []byte) error {
	le := binary.LittleEndian
	covered := 0
	for i := 0; i < len(headers); i += sectionHeaderSize {
		h := headers[i : i+sectionHeaderSize]
		s := cubinSection{
			kind: le.Uint32(h[4:]), flags: le.Uint64(h[8:]), size: le.Uint64(h[32:]),
			link: int(le.Uint32(h[40:])), info: le.Uint32(h[44:]), align: le.Uint64(h[48:]), entrySize: le.Uint64(h[56:]),
		}
		if s.kind != sectionNoBits && s.kind != 0 {
			var ok bool
			// NVIDIA has kinds of its own for sections that take no room.
			if s.data, ok = span(image, le.Uint64(h[24:]), s.size); !ok && s.kind < sectionNVIDIA {
				return malformed("section %d lies outside the file", i/sectionHeaderSize)
			}
			covered += len(s.data)
		}
		if covered > maxCoverage*len(image) {
			return malformed("its sections add up to more than %d times the file", maxCoverage)
		}
		f.sections = append(f.sections, s)
	}
	return nil
}

func (f *cubinFile) readSymbols(s cubinSection) ([]cubinSymbol, error) {
	if s.link >= len(f.sections) || f.sections[s.link].kind != sectionStrings || len(s.data)%symbolSize != 0 {
		return nil, malformed("no names, or half a symbol")
	}
	le := binary.LittleEndian
	names := f.sections[s.link].data
	var symbols []cubinSymbol
	for at := 0; at < len(s.data); at += symbolSize {
		d := s.data[at : at+symbolSize]
		y := cubinSymbol{
			kind: d[4] & 0xf, other: d[5], section: int(le.Uint16(d[6:])),
			value: le.Uint64(d[8:]), size: le.Uint64(d[16:]),
		}
		var ok bool
		if y.name, ok = textAt(names, le.Uint32(d)); !ok {
			return nil, malformed("symbol %d has no name", at/symbolSize)
		}
		symbols = append(symbols, y)
	}
	return symbols, nil
}

// span is image[start:start+size], if there is so much.
func span(image []byte, start, size uint64) ([]byte, bool) {
	if start > uint64(len(image)) || size > uint64(len(image))-start {
		return nil, false
	}
	return image[start : start+size], true
}

// textAt is the text in a string table that starts at an offset.
func textAt(table []byte, at uint32) (string, bool) {
	if uint64(at) >= uint64(len(table)) {
		return "", false
	}
	rest := table[at:]
	end := bytes.IndexByte(rest[:min(len(rest), maxNameLength)], 0)
	if end < 0 {
		return "", false
	}
	return string(rest[:end]), true
}
