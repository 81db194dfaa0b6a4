// Package elf reads the tables of 64-bit ELF files: sections and symbols. The files are the output of compilers, and an
// untrusted source shaped them, so the reader allocates nothing out of proportion to the size of the file.
package elf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
)

// debug/elf is not used here: it unpacks compressed sections and allocates what a header claims, so
// a file of 3 MB can make it allocate gigabytes. This reader can run in the runner's own process:
// it never unpacks anything, everything that it returns is a slice of the file, and no count in the
// file makes it work or allocate out of proportion to the file's size.

// A Section is one row of the table of sections, with its bytes.
type Section struct {
	Name      string
	Kind      uint32
	Flags     uint64
	Address   uint64
	Offset    uint64
	Size      uint64
	Align     uint64
	EntrySize uint64
	Link      int
	Info      uint32
	Data      []byte // nil for a section that takes no space in the file
}

type Symbol struct {
	Name    string
	Kind    byte
	Binding byte
	Other   byte
	Section int // 0: defined in a different file
	Value   uint64
	Size    uint64
}

// Kinds of sections, flags of sections and kinds of symbols that objects and cubins have in common.
const (
	SectionNone    = 0
	SectionBits    = 1
	SectionSymbols = 2
	SectionStrings = 3
	SectionRela    = 4
	SectionNote    = 7
	SectionNoBits  = 8
	SectionRel     = 9

	SectionWritable   = 0x1
	SectionAllocated  = 0x2
	SectionRuns       = 0x4
	SectionInfoLink   = 0x40
	SectionCompressed = 0x800

	SymbolPlain    = 0
	SymbolObject   = 1
	SymbolFunction = 2
	SymbolSection  = 3
	SymbolFile     = 4

	// From here on the number of a symbol's section means something else.
	reservedSections = 0xff00
)

const (
	HeaderSize        = 64
	SectionHeaderSize = 64
	SymbolSize        = 24
	RelaSize          = 24

	maxNameLength = 64 << 10
)

var errNoELF = errors.New("no 64-bit little-endian ELF header")

// Check checks the part of the header that both kinds of files share.
func Check(image []byte) error {
	if len(image) < HeaderSize || !bytes.HasPrefix(image, []byte("\x7fELF\x02\x01")) {
		return errNoELF
	}
	return nil
}

// ReadSections reads the table of sections. A section of a kind that isLoose accepts may be outside
// the file; then it has no bytes. All sections together may cover the file only so many times.
func ReadSections(image []byte, coverage int, isLoose func(kind uint32) bool) ([]Section, error) {
	le := binary.LittleEndian
	start, size, count := le.Uint64(image[40:]), le.Uint16(image[58:]), int(le.Uint16(image[60:]))
	names := int(le.Uint16(image[62:]))
	if size != SectionHeaderSize || count == 0 || count >= reservedSections {
		return nil, fmt.Errorf("%d section headers of %d bytes", count, size)
	}
	headers, ok := Span(image, start, uint64(count)*SectionHeaderSize)
	if !ok {
		return nil, errors.New("the section headers lie outside the file")
	}
	sections := make([]Section, count)
	covered := 0
	for i := range sections {
		h := headers[i*SectionHeaderSize:]
		s := Section{
			Kind: le.Uint32(h[4:]), Flags: le.Uint64(h[8:]), Address: le.Uint64(h[16:]), Offset: le.Uint64(h[24:]), Size: le.Uint64(h[32:]),
			Link: int(le.Uint32(h[40:])), Info: le.Uint32(h[44:]), Align: le.Uint64(h[48:]), EntrySize: le.Uint64(h[56:]),
		}
		if s.Kind != SectionNoBits && s.Kind != SectionNone {
			if s.Data, ok = Span(image, s.Offset, s.Size); !ok && !isLoose(s.Kind) {
				return nil, fmt.Errorf("section %d lies outside the file", i)
			}
			covered += len(s.Data)
		}
		if covered > coverage*len(image) {
			return nil, fmt.Errorf("its sections overlap: they add up to more than %d times the file", coverage)
		}
		sections[i] = s
	}
	if names >= count {
		return nil, fmt.Errorf("section %d, with the names, does not exist", names)
	}
	table := newNames(sections[names].Data, len(image))
	for i := range sections {
		if sections[i].Name, ok = table.at(le.Uint32(headers[i*SectionHeaderSize:])); !ok {
			return nil, fmt.Errorf("section %d has no name", i)
		}
	}
	return sections, nil
}

// ReadSymbols reads a symbol table.
func ReadSymbols(sections []Section, table Section) ([]Symbol, error) {
	if table.Link >= len(sections) || sections[table.Link].Kind != SectionStrings || len(table.Data)%SymbolSize != 0 {
		return nil, errors.New("no names, or half a symbol")
	}
	le := binary.LittleEndian
	names := newNames(sections[table.Link].Data, len(sections[table.Link].Data)+len(table.Data))
	symbols := make([]Symbol, len(table.Data)/SymbolSize)
	for i := range symbols {
		d := table.Data[i*SymbolSize:]
		y := Symbol{
			Kind: d[4] & 0xf, Binding: d[4] >> 4, Other: d[5], Section: int(le.Uint16(d[6:])),
			Value: le.Uint64(d[8:]), Size: le.Uint64(d[16:]),
		}
		var ok bool
		if y.Name, ok = names.at(le.Uint32(d)); !ok {
			return nil, fmt.Errorf("symbol %d has no name", i)
		}
		symbols[i] = y
	}
	return symbols, nil
}

// Span returns image[start:start+size], if the image is that long.
func Span(image []byte, start, size uint64) ([]byte, bool) {
	if start > uint64(len(image)) || size > uint64(len(image))-start {
		return nil, false
	}
	return image[start : start+size : start+size], true
}

// names is a table of strings. A million symbols may name the same long text, so a name is a slice
// of the table and not a copy, and the total length is limited in proportion to the file.
type names struct {
	table string
	left  int
}

const maxNamesPerByte = 16

func newNames(table []byte, file int) *names {
	return &names{table: string(table), left: maxNamesPerByte * file}
}

// at returns the text that starts at an offset.
func (n *names) at(offset uint32) (string, bool) {
	if uint64(offset) >= uint64(len(n.table)) {
		return "", false
	}
	rest := n.table[offset:]
	end := strings.IndexByte(rest[:min(len(rest), maxNameLength)], 0)
	if n.left -= end; end < 0 || n.left < 0 {
		return "", false
	}
	return rest[:end], true
}

// Begins reports whether the name is this one, or starts with it and a dot.
func (s Section) Begins(with string) bool {
	rest, ok := strings.CutPrefix(s.Name, with)
	return ok && (rest == "" || rest[0] == '.' || strings.HasSuffix(with, "_"))
}

// Quote makes a name of the file fit into a message of one line.
func Quote(name string) string { return output.Quote(name, 80, false) }

// MaxSymbols bounds the symbols of a file.
const MaxSymbols = 256 << 10
