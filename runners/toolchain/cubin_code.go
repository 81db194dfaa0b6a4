package toolchain

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// MachineCode hashes everything in a cubin that takes part in a launch: instructions, constants, initial values, the
// sizes of shared memory, relocations, and what the driver reads about registers, stack and parameters. Equal hashes
// are equal machine code.
//
// What is left out is known to be for people and debuggers alone: lines, the source's name, the compiler's command
// line, the names and numbers of symbols. A section of an unknown kind is taken in, so that a doubt makes two
// cubins differ, never agree. From sm_100 on -lineinfo itself makes a difference, since the driver is told of it.
func MachineCode(image []byte) (string, error) {
	f, err := readCubin(image)
	if err != nil {
		return "", fmt.Errorf("hashing machine code: %w", err)
	}
	return f.machineCode()
}

func (f *cubinFile) machineCode() (string, error) {
	var sums []string
	for i, s := range f.sections {
		if i == 0 || s.isNoise() || s.isRelocation() && (len(s.data) == 0 || f.section(int(s.info)).isNoise()) {
			continue
		}
		h := sha256.New()
		if err := f.hashSection(h, s); err != nil {
			return "", fmt.Errorf("hashing section %s of a cubin: %w", s.name, err)
		}
		sums = append(sums, string(h.Sum(nil)))
	}
	// Debugging sections shift the others about.
	slices.Sort(sums)
	whole := sha256.New()
	flags := f.flags
	if f.abi >= 8 {
		flags &= 0xffffff // above lies the number of the section .note.nv.cuinfo
	}
	fmt.Fprintf(whole, "%d %#x\n", f.abi, flags)
	for _, sum := range sums {
		io.WriteString(whole, sum)
	}
	return hex.EncodeToString(whole.Sum(nil)), nil
}

func (s elfSection) isNoise() bool {
	switch s.kind {
	case sectionSymbols, sectionMercurySymbols, sectionStrings:
		return true
	}
	if s.flags&(sectionAllocated|sectionRuns) != 0 {
		return false
	}
	name := strings.TrimPrefix(s.name, ".nv.merc")
	return strings.HasPrefix(name, ".debug_") || strings.HasPrefix(name, ".nv_debug_") || name == ".note.nv.tkinfo"
}

func (s elfSection) isRelocation() bool {
	return s.kind == sectionRel || s.kind == sectionRela || s.kind == sectionMercuryRela
}

// section is an empty one where there is none.
func (f *cubinFile) section(i int) elfSection {
	if i < 0 || i >= len(f.sections) {
		return elfSection{}
	}
	return f.sections[i]
}

func (f *cubinFile) hashSection(h hash.Hash, s elfSection) error {
	fmt.Fprintf(h, "%s %d %#x %d %d %d\n", stableName(s.name), s.kind, s.flags, s.size, s.align, s.entrySize)
	switch {
	case s.flags&sectionRuns != 0 || s.kind == sectionMercury:
		// The upper byte was the number of registers up to CUDA 12.
		fmt.Fprintf(h, "info %d %s\n", s.info>>24, f.describe(s.link, s.info&0xffffff))
	case s.flags&sectionInfoLink != 0 || s.isRelocation():
		fmt.Fprintf(h, "info %s\n", stableName(f.section(int(s.info)).name))
	default:
		fmt.Fprintf(h, "info %d\n", s.info)
	}
	switch s.kind {
	case sectionRel:
		return f.hashRelocations(h, s, 16)
	case sectionRela, sectionMercuryRela:
		return f.hashRelocations(h, s, 24)
	case sectionInfo, sectionMercuryInfo:
		return f.hashAttributes(h, s)
	case sectionCallGraph:
		for _, word := range words(s.data) {
			fmt.Fprintf(h, "%s\n", f.describe(s.link, word))
		}
	default:
		h.Write(s.data)
	}
	return nil
}

func (f *cubinFile) hashRelocations(h hash.Hash, s elfSection, size int) error {
	if len(s.data)%size != 0 {
		return malformed("half a relocation")
	}
	le := binary.LittleEndian
	for at := 0; at < len(s.data); at += size {
		d := s.data[at : at+size]
		fmt.Fprintf(h, "%d %d %s %x\n", le.Uint64(d), le.Uint32(d[8:]), f.describe(s.link, le.Uint32(d[12:])), d[16:])
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

// hashAttributes takes the list of attributes in .nv.info: each has a format, a name, and either a value of two bytes or
// a size of two bytes and so many bytes.
func (f *cubinFile) hashAttributes(h hash.Hash, s elfSection) error {
	const sized = 4
	for d := s.data; len(d) > 0; {
		if len(d) < 4 {
			return malformed("half an attribute")
		}
		head, value := d[:4], []byte(nil)
		d = d[4:]
		if head[0] == sized {
			size := int(binary.LittleEndian.Uint16(head[2:]))
			if size > len(d) {
				return malformed("an attribute of %d bytes, of which %d are there", size, len(d))
			}
			value, d = d[:size], d[size:]
		}
		fmt.Fprintf(h, "%x ", head)
		numbers := 0
		switch head[1] {
		case attributeExterns:
			numbers = len(value) / 4
		case attributeParameterBank, attributeFrameSize, attributeMinStackSize, attributeMaxStackSize, attributeRegisters:
			numbers = min(1, len(value)/4)
		}
		for _, number := range words(value[:4*numbers]) {
			fmt.Fprintf(h, "%s ", f.describe(s.link, number))
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

// describe says which place a symbol stands for, in words that do not depend on how many symbols come before it.
// What is no symbol of the table is described by its number.
func (f *cubinFile) describe(table int, number uint32) string {
	symbols := f.symbols[table]
	if uint64(number) >= uint64(len(symbols)) {
		return fmt.Sprintf("number %d", number)
	}
	y := symbols[number]
	where := strconv.Itoa(y.section)
	switch {
	case y.section == 0:
		where = strconv.Quote(y.name)
	case y.section < len(f.sections):
		where = stableName(f.sections[y.section].name)
	}
	return fmt.Sprintf("%s at %d, %d bytes, %#x", where, y.value, y.size, y.other)
}

var localName = regexp.MustCompile(`(\d+)_(?:GLOBAL__N_|INTERNAL)_`)

// stableName takes out of a mangled name what the compiler made of the path of the source, for the functions in its
// anonymous namespace: _ZN30_GLOBAL__N__cbe22786_4_k_cu_sum5scaleEPf becomes _ZN_GLOBAL_5scaleEPf.
func stableName(name string) string {
	var stable strings.Builder
	for {
		m := localName.FindStringSubmatchIndex(name)
		if m == nil {
			break
		}
		// The digits may be the end of a longer number, but then the name is no mangled one.
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
