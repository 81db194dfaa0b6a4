package toolchain

import (
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
	sections []elfSection
	symbols  map[int][]elfSymbol // by the index of the symbol table's section
}

// Kinds of sections that are NVIDIA's own. From sm_100 on a cubin holds a second, portable form of the code ("Mercury")
// with tables of its own kinds.
const (
	sectionNVIDIA         = 0x70000000 // from here on
	sectionInfo           = 0x70000000
	sectionCallGraph      = 0x70000001
	sectionMercury        = 0x70000016 // code
	sectionMercuryRela    = 0x70000082
	sectionMercuryInfo    = 0x70000083
	sectionMercurySymbols = 0x70000085

	symbolEntry = 0x10 // among a symbol's other bits: a __global__ function

	machineCUDA    = 190
	fileExecutable = 2

	maxCoverage = 4 // sections of newer architectures share bytes, but not many times over
)

// errNotCubin wraps everything that is wrong with the form of a file.
var errNotCubin = errors.New("not a well-formed cubin")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errNotCubin, fmt.Sprintf(format, args...))
}

func readCubin(image []byte) (*cubinFile, error) {
	if err := checkELF(image); err != nil {
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
	f := &cubinFile{abi: image[8], flags: le.Uint32(image[48:]), symbols: map[int][]elfSymbol{}}
	var err error
	// NVIDIA has kinds of its own for sections that take no room.
	if f.sections, err = readSections(image, maxCoverage, func(kind uint32) bool { return kind >= sectionNVIDIA }); err != nil {
		return nil, malformed("%v", err)
	}
	for i, s := range f.sections {
		if s.kind != sectionSymbols && s.kind != sectionMercurySymbols {
			continue
		}
		if len(f.symbols) == 2 {
			return nil, malformed("more than two symbol tables")
		}
		if f.symbols[i], err = readSymbols(f.sections, s); err != nil {
			return nil, malformed("symbol table %q: %v", s.name, err)
		}
	}
	return f, nil
}
