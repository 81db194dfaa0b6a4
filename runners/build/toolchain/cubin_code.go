package toolchain

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kernelgate/kernelgate/runners/build/toolchain/elf"
)

// machineCode hashes everything in a cubin that takes part in a launch: instructions, constants, initial values, the
// sizes of shared memory, relocations, segments, and what the driver reads about registers, stack, barriers and parameters.
// Equal hashes mean equal machine code.
//
// A section of an unknown kind is hashed, so that in doubt two cubins differ. From sm_100 on
// -lineinfo changes the hash, because the driver reads it. These parts are left out:
//
//   - debugSections and their relocations, unless they are allocated: lines, the PTX and frames for
//     debuggers and profilers. They change with a comment in the source.
//   - .note.nv.tkinfo, unless it is allocated: the names, versions and command lines of the tools.
//     Their effect on the code is hashed.
//   - the version of the toolkit, in the header of older cubins and in one attribute. With it, no
//     two compilers could ever agree. A number that is not a version is hashed.
//   - the tables of strings and symbols (noiseSections has their names). A symbol is hashed by its
//     meaning, where it is defined and where it is used, not by its number. The names of variables
//     and device functions are left out; those of entries and of the driver's functions are hashed.
//   - symbols of sections and of files: there is one for each section, including debugging ones.
//   - offsets in the file, and the order of sections, because debugging sections shift the others.
//     Each section is hashed with its name, and names must be unique.
func machineCode(image []byte) (string, error) {
	f, err := readCubin(image)
	if err != nil {
		return "", fmt.Errorf("hashing machine code: %w", err)
	}
	return f.machineCode()
}

// A codeHash is one pass over a cubin. It caches the description of a symbol, which may be used
// millions of times.
type codeHash struct {
	*cubinFile
	said map[uint64]string
}

func (f *cubinFile) machineCode() (string, error) {
	c := codeHash{f, map[uint64]string{}}
	var sums []string
	for i, s := range f.sections {
		if i == 0 || isNoise(s) || f.isNoiseRelocation(s) {
			continue
		}
		h := sha256.New()
		if err := c.hashSection(h, s); err != nil {
			return "", fmt.Errorf("hashing section %s of a cubin: %w", s.Name, err)
		}
		sums = append(sums, string(h.Sum(nil)))
	}
	slices.Sort(sums)
	whole := sha256.New()
	c.hashHeader(whole)
	for _, g := range f.segments {
		c.hashSegment(whole, g)
	}
	for _, line := range append(c.symbolLines(), sums...) {
		fmt.Fprintf(whole, "%x\n", line)
	}
	return hex.EncodeToString(whole.Sum(nil)), nil
}

// hashHeader hashes the file's header without the offsets of its tables and the number of sections.
func (c codeHash) hashHeader(h hash.Hash) {
	flags, note := c.flags, ""
	if c.abi >= 8 {
		flags, note = flags&0xffffff, c.sectionName(int(flags>>24)) // the number of .note.nv.cuinfo
	}
	head := slices.Clone(c.header[:32])
	if version := head[20:24]; c.abi < 8 && isToolkit(version) {
		clear(version)
	}
	fmt.Fprintf(h, "%x %#x %q %x\n", head, flags, note, c.header[52:60])
}

// isToolkit reports whether a word can be the version of a CUDA toolkit: 128 is 12.8.
func isToolkit(word []byte) bool {
	const oldest, newest = 90, 199
	return len(word) == 4 && binary.LittleEndian.Uint32(word) >= oldest && binary.LittleEndian.Uint32(word) <= newest
}

// hashSegment describes a segment by the sections in it. The space between them depends on their
// position in the file.
func (c codeHash) hashSegment(h hash.Hash, g cubinSegment) {
	fmt.Fprintf(h, "segment %d %#x at %#x, %#x, aligned to %d, %d more bytes, the table %v: ", g.kind, g.flags, g.address, g.place, g.align, g.size-g.fileSize, g.isTable)
	var first, last elf.Section
	for _, s := range c.sections {
		if len(s.Data) == 0 || s.Flags&elf.SectionAllocated == 0 || s.Offset < g.offset || s.Offset-g.offset > g.fileSize || s.Size > g.fileSize-(s.Offset-g.offset) {
			continue
		}
		if first.Size == 0 || s.Offset < first.Offset {
			first = s
		}
		if last.Size == 0 || s.Offset+s.Size > last.Offset+last.Size {
			last = s
		}
		fmt.Fprintf(h, "%q ", stableName(s.Name))
	}
	switch {
	case first.Size > 0:
		fmt.Fprintf(h, "%d before %q, %d behind %q\n", first.Offset-g.offset, stableName(first.Name), g.offset+g.fileSize-last.Offset-last.Size, stableName(last.Name))
	case g.isTable:
		fmt.Fprintf(h, "%d\n", g.fileSize)
	case g.fileSize == 0:
		fmt.Fprintln(h, "nothing of the file") // regardless of where it is said to begin
	default:
		fmt.Fprintf(h, "%d %d\n", g.offset, g.fileSize)
	}
}

// symbolLines describe the symbols, in alphabetical order.
func (c codeHash) symbolLines() []string {
	var lines []string
	for i, s := range c.sections {
		for number, y := range c.symbols[i] {
			if y.Kind == elf.SymbolSection || y.Kind == elf.SymbolFile || y.Section > 0 && isNoise(c.section(y.Section)) {
				continue
			}
			name := ""
			if isEntry(y) {
				name = shortened(stableName(y.Name))
			}
			lines = append(lines, fmt.Sprintf("%q: %d %d %q %s", s.Name, y.Kind, y.Binding, name, c.describe(i, uint32(number))))
		}
	}
	slices.Sort(lines)
	return lines
}

func isRelocation(s elf.Section) bool {
	return s.Kind == elf.SectionRel || s.Kind == elf.SectionRela || s.Kind == sectionMercuryRela
}

// section returns an empty section if there is none.
func (f *cubinFile) section(i int) elf.Section {
	if i < 0 || i >= len(f.sections) {
		return elf.Section{}
	}
	return f.sections[i]
}

// sectionName returns the name of the section with a number.
func (f *cubinFile) sectionName(i int) string {
	if i < 0 || i >= len(f.sections) {
		return strconv.Itoa(i)
	}
	return stableName(f.sections[i].Name)
}

func (c codeHash) hashSection(h hash.Hash, s elf.Section) error {
	fmt.Fprintf(h, "%q %d %#x %#x %d %d %d %q\n", stableName(s.Name), s.Kind, s.Flags, s.Address, s.Size, s.Align, s.EntrySize, c.sectionName(s.Link))
	switch {
	case s.Flags&elf.SectionRuns != 0 || s.Kind == sectionMercury:
		// The upper byte was the number of registers up to CUDA 12.
		fmt.Fprintf(h, "info %d %s\n", s.Info>>24, c.describe(s.Link, s.Info&0xffffff))
	case s.Flags&elf.SectionInfoLink != 0 || isRelocation(s):
		fmt.Fprintf(h, "info %q\n", c.sectionName(int(s.Info)))
	default:
		fmt.Fprintf(h, "info %d\n", s.Info)
	}
	switch s.Kind {
	case elf.SectionRel:
		return c.hashRelocations(h, s, 16)
	case elf.SectionRela, sectionMercuryRela:
		return c.hashRelocations(h, s, 24)
	case sectionInfo, sectionMercuryInfo:
		return c.hashAttributes(h, s)
	case sectionCallGraph:
		for _, word := range words(s.Data) {
			fmt.Fprintf(h, "%s\n", c.describe(s.Link, word))
		}
	default:
		h.Write(s.Data)
	}
	return nil
}

func (c codeHash) hashRelocations(h hash.Hash, s elf.Section, size int) error {
	if len(s.Data)%size != 0 {
		return malformed("half a relocation")
	}
	le := binary.LittleEndian
	for at := 0; at < len(s.Data); at += size {
		d := s.Data[at : at+size]
		fmt.Fprintf(h, "%d %d %s %x\n", le.Uint64(d), le.Uint32(d[8:]), c.describe(s.Link, le.Uint32(d[12:])), d[16:])
	}
	return nil
}

// Attributes of .nv.info whose words, or whose first word, are numbers of symbols.
const (
	attributeParameterBank = 0x0a
	attributeExterns       = 0x0f
	attributeFrameSize     = 0x11
	attributeMinStackSize  = 0x12
	attributeMaxStackSize  = 0x23
	attributeRegisters     = 0x2f
)

// attributeToolkit is the version of the toolkit.
const attributeToolkit = 0x37

// hashAttributes hashes the list of attributes in .nv.info.
func (c codeHash) hashAttributes(h hash.Hash, s elf.Section) error {
	list, err := attributes(s.Data)
	if err != nil {
		return err
	}
	for _, a := range list {
		fmt.Fprintf(h, "%x ", a.head)
		value := a.data
		if !a.sized {
			value = nil
		}
		if a.kind == attributeToolkit && isToolkit(value) {
			value = nil
		}
		numbers := 0
		switch a.kind {
		case attributeExterns:
			numbers = len(value) / 4
		case attributeParameterBank, attributeFrameSize, attributeMinStackSize, attributeMaxStackSize, attributeRegisters:
			numbers = min(1, len(value)/4)
		}
		for _, number := range words(value[:4*numbers]) {
			fmt.Fprintf(h, "%s ", c.describe(s.Link, number))
		}
		fmt.Fprintf(h, "%x\n", value[4*numbers:])
	}
	return nil
}

func words(data []byte) []uint32 {
	var list []uint32
	for ; len(data) >= 4; data = data[4:] {
		list = append(list, binary.LittleEndian.Uint32(data))
	}
	return list
}

// describe names the place of a symbol in words that do not depend on the number of symbols before
// it. A number that is not in the symbol table is described by itself.
func (c codeHash) describe(table int, number uint32) string {
	symbols := c.symbols[table]
	if uint64(number) >= uint64(len(symbols)) {
		return fmt.Sprintf("number %d", number)
	}
	key := uint64(table)<<32 | uint64(number)
	if said, ok := c.said[key]; ok {
		return said
	}
	y := symbols[number]
	where := strconv.Itoa(y.Section)
	switch {
	case y.Section == 0:
		where = strconv.Quote(shortened(y.Name))
	case y.Section < len(c.sections):
		where = "in " + strconv.Quote(shortened(stableName(c.sections[y.Section].Name)))
	}
	c.said[key] = fmt.Sprintf("%s at %d, %d bytes, %#x", where, y.Value, y.Size, y.Other)
	return c.said[key]
}

// shortened replaces a long name, which may be used often.
func shortened(name string) string {
	if len(name) <= 256 {
		return name
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(name)))
}

var localName = regexp.MustCompile(`(\d+)_(?:GLOBAL__N_|INTERNAL)_`)

// stableName removes from a mangled name what the compiler made of the path of the source, for
// functions in its anonymous namespace: _ZN30_GLOBAL__N__cbe22786_4_k_cu_sum5scaleEPf becomes
// _ZN_GLOBAL_5scaleEPf.
func stableName(name string) string {
	if !strings.Contains(name, "_GLOBAL__N_") && !strings.Contains(name, "_INTERNAL_") {
		return name
	}
	var stable strings.Builder
	for {
		m := localName.FindStringSubmatchIndex(name)
		if m == nil {
			break
		}
		// The digits may be the end of a longer number, but then the name is not a mangled one.
		length, err := strconv.Atoi(name[m[2]:m[3]])
		end := m[3] + length
		if err != nil || end > len(name) || end < m[1] {
			break
		}
		stable.WriteString(name[:m[2]] + "_GLOBAL_")
		name = name[end:]
	}
	return stable.String() + name
}
