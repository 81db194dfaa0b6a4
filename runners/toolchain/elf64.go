package toolchain

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// The compilers' output is ELF, and a stranger's source had a hand in it. It is read here and not with debug/elf, which
// unpacks compressed sections and makes room for what a header claims: a file of 3 MB can ask it for gigabytes. This
// reader runs in the runner's own process and can afford to, because it is dumb: it never unpacks anything, everything it returns
// is a slice of the file, and no count in the file makes it work or allocate out of proportion to the file's size. A
// process of its own in the sandbox would need all the same checks for what it sends back.

// An elfSection is one line of the table of sections, with its bytes.
type elfSection struct {
	name      string
	kind      uint32
	flags     uint64
	address   uint64
	offset    uint64
	size      uint64
	align     uint64
	entrySize uint64
	link      int
	info      uint32
	data      []byte // nil for a section that takes no room in the file
}

type elfSymbol struct {
	name    string
	kind    byte
	binding byte
	other   byte
	section int // 0: defined elsewhere
	value   uint64
	size    uint64
}

// Kinds of sections, flags of sections and kinds of symbols that objects and cubins have in common.
const (
	sectionNone    = 0
	sectionBits    = 1
	sectionSymbols = 2
	sectionStrings = 3
	sectionRela    = 4
	sectionNoBits  = 8
	sectionRel     = 9

	sectionWritable   = 0x1
	sectionAllocated  = 0x2
	sectionRuns       = 0x4
	sectionInfoLink   = 0x40
	sectionCompressed = 0x800

	symbolPlain    = 0
	symbolObject   = 1
	symbolFunction = 2
	symbolSection  = 3
	symbolFile     = 4

	// From here on the number of a symbol's section means something else.
	reservedSections = 0xff00
)

const (
	elfHeaderSize     = 64
	sectionHeaderSize = 64
	symbolSize        = 24
	relaSize          = 24

	maxNameLength = 64 << 10
)

var errNoELF = errors.New("no 64-bit little-endian ELF header")

// checkELF looks at as much of the header as both kinds of files share.
func checkELF(image []byte) error {
	if len(image) < elfHeaderSize || !bytes.HasPrefix(image, []byte("\x7fELF\x02\x01")) {
		return errNoELF
	}
	return nil
}

// readSections reads the table of sections. A section of a kind that isLoose knows may lie outside the file; it has no
// bytes then. All sections together may cover the file so many times, and no more.
func readSections(image []byte, coverage int, isLoose func(kind uint32) bool) ([]elfSection, error) {
	le := binary.LittleEndian
	start, size, count := le.Uint64(image[40:]), le.Uint16(image[58:]), int(le.Uint16(image[60:]))
	names := int(le.Uint16(image[62:]))
	if size != sectionHeaderSize || count == 0 || count >= reservedSections {
		return nil, fmt.Errorf("%d section headers of %d bytes", count, size)
	}
	headers, ok := span(image, start, uint64(count)*sectionHeaderSize)
	if !ok {
		return nil, errors.New("the section headers lie outside the file")
	}
	sections := make([]elfSection, count)
	covered := 0
	for i := range sections {
		h := headers[i*sectionHeaderSize:]
		s := elfSection{
			kind: le.Uint32(h[4:]), flags: le.Uint64(h[8:]), address: le.Uint64(h[16:]), offset: le.Uint64(h[24:]), size: le.Uint64(h[32:]),
			link: int(le.Uint32(h[40:])), info: le.Uint32(h[44:]), align: le.Uint64(h[48:]), entrySize: le.Uint64(h[56:]),
		}
		if s.kind != sectionNoBits && s.kind != sectionNone {
			if s.data, ok = span(image, s.offset, s.size); !ok && !isLoose(s.kind) {
				return nil, fmt.Errorf("section %d lies outside the file", i)
			}
			covered += len(s.data)
		}
		if covered > coverage*len(image) {
			return nil, fmt.Errorf("its sections overlap: they add up to more than %d times the file", coverage)
		}
		sections[i] = s
	}
	if names >= count {
		return nil, fmt.Errorf("section %d, with the names, does not exist", names)
	}
	table := newNames(sections[names].data, len(image))
	for i := range sections {
		if sections[i].name, ok = table.at(le.Uint32(headers[i*sectionHeaderSize:])); !ok {
			return nil, fmt.Errorf("section %d has no name", i)
		}
	}
	return sections, nil
}

// readSymbols reads a symbol table.
func readSymbols(sections []elfSection, table elfSection) ([]elfSymbol, error) {
	if table.link >= len(sections) || sections[table.link].kind != sectionStrings || len(table.data)%symbolSize != 0 {
		return nil, errors.New("no names, or half a symbol")
	}
	le := binary.LittleEndian
	names := newNames(sections[table.link].data, len(sections[table.link].data)+len(table.data))
	symbols := make([]elfSymbol, len(table.data)/symbolSize)
	for i := range symbols {
		d := table.data[i*symbolSize:]
		y := elfSymbol{
			kind: d[4] & 0xf, binding: d[4] >> 4, other: d[5], section: int(le.Uint16(d[6:])),
			value: le.Uint64(d[8:]), size: le.Uint64(d[16:]),
		}
		var ok bool
		if y.name, ok = names.at(le.Uint32(d)); !ok {
			return nil, fmt.Errorf("symbol %d has no name", i)
		}
		symbols[i] = y
	}
	return symbols, nil
}

// span is image[start:start+size], if there is so much.
func span(image []byte, start, size uint64) ([]byte, bool) {
	if start > uint64(len(image)) || size > uint64(len(image))-start {
		return nil, false
	}
	return image[start : start+size : start+size], true
}

// names is a table of strings. A million symbols may name one and the same long text, so that what is read of it is a part
// of the table and no copy, and the lengths together are held in proportion to the file.
type names struct {
	table string
	left  int
}

const maxNamesPerByte = 16

func newNames(table []byte, file int) *names {
	return &names{table: string(table), left: maxNamesPerByte * file}
}

// at is the text that starts at an offset.
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
