package toolchain

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A Global is a __device__ variable: memory that outlives a launch.
//
// The maths library's tables (such as __cudart_i2opi_f, which sinf brings along) are among them, and nothing but
// their names tells them from the source's own. A source may use such a name too, so none is left out here.
type Global struct {
	Name string
	Arch string // such as sm_89
	Size int    // bytes
	// Initialised is whether the module carries a first value; the others start as zero.
	Initialised bool
}

var elfHeader = regexp.MustCompile(`^64-?bit (?:ELF|elf): .*\bsm=(\d+)`)

// ParseGlobals reads the output of cuobjdump -elf and returns the objects in the sections .nv.global and
// .nv.global.init, in the order of the symbol table. Constants (__constant__) are not among them: no kernel can
// write them. None at all is no error; an output without a symbol table is.
//
// debug/elf would be shorter, but refuses what CUDA 13 writes (the ELF version byte is not 1).
func ParseGlobals(elf string) ([]Global, error) {
	var globals []Global
	var arch, table string
	sections := map[string]string{} // index as printed, without 0x → name
	number, symtabs := 0, 0
	for line := range strings.Lines(elf) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if m := elfHeader.FindStringSubmatch(line); m != nil {
			arch, table = "sm_"+m[1], ""
			clear(sections)
			continue
		}
		fields := strings.Fields(line)
		switch {
		case line == "Sections:":
			table = "sections"
		case strings.TrimSpace(line) == ".section .symtab":
			table = "symtab"
			symtabs++
		case len(fields) == 0:
			table = ""
		case table == "sections" && len(fields) == 10 && fields[0] != "Index":
			sections[fields[0]] = fields[9]
		case table == "symtab" && len(fields) == 7 && fields[0] != "index":
			g, ok, err := globalSymbol(fields, sections)
			if err != nil {
				return nil, fmt.Errorf("cuobjdump output line %d: %w", number, err)
			}
			if ok {
				g.Arch = arch
				globals = append(globals, g)
			}
		}
	}
	if symtabs == 0 {
		return nil, fmt.Errorf("cuobjdump output: no symbol table in %d lines, but -elf output was expected; "+
			"check that the file is a cubin", number)
	}
	return globals, nil
}

// globalSymbol reads a row of the symbol table: index, value, size, info, other, shndx, name.
func globalSymbol(row []string, sections map[string]string) (Global, bool, error) {
	const object = 1 // STT_OBJECT, the low half of info
	info, err := strconv.ParseUint(row[3], 0, 8)
	if err != nil {
		return Global{}, false, fmt.Errorf("symbol %q: info: %w", row[6], err)
	}
	section := sections[strings.TrimPrefix(row[5], "0x")]
	if info&0xf != object || section != ".nv.global" && section != ".nv.global.init" {
		return Global{}, false, nil
	}
	size, err := strconv.ParseUint(row[2], 0, 48)
	if err != nil {
		return Global{}, false, fmt.Errorf("symbol %q: size: %w", row[6], err)
	}
	return Global{Name: row[6], Size: int(size), Initialised: section == ".nv.global.init"}, true, nil
}
