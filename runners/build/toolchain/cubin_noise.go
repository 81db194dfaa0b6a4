package toolchain

import (
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/runners/build/toolchain/elf"
)

// noiseSections are the sections that the hash of machine code leaves out, by their exact names and
// kinds. Everything else is hashed, whatever it claims to be: a driver might find a section by its
// name that claims to be a string table.
var noiseSections = map[string]uint32{
	".strtab": elf.SectionStrings, ".shstrtab": elf.SectionStrings, ".symtab": elf.SectionSymbols, mercuryPrefix + ".symtab": sectionMercurySymbols,
	".note.nv.tkinfo": elf.SectionNote,
}

// debugSections are for debuggers and profilers. Each also has a portable form, and relocations.
var debugSections = []string{
	".debug_abbrev", ".debug_aranges", ".debug_frame", ".debug_info", ".debug_line", ".debug_loc", ".debug_macinfo", ".debug_pubnames", ".debug_pubtypes",
	".debug_ranges", ".debug_str", ".nv_debug_info_ptx", ".nv_debug_info_reg_sass", ".nv_debug_info_reg_type", ".nv_debug_line_sass", ".nv_debug_ptx_txt",
}

// mercuryPrefix is the prefix of sections in the portable form.
const mercuryPrefix = ".nv.merc"

// isNoise reports whether no part of a section takes part in a launch.
func isNoise(s elf.Section) bool {
	if s.Flags&(elf.SectionAllocated|elf.SectionRuns) != 0 {
		return false
	}
	if kind, known := noiseSections[s.Name]; known {
		return s.Kind == kind
	}
	return isDebugging(s)
}

func isDebugging(s elf.Section) bool {
	return s.Kind == elf.SectionBits && s.Flags&(elf.SectionAllocated|elf.SectionRuns) == 0 && slices.Contains(debugSections, strings.TrimPrefix(s.Name, mercuryPrefix))
}

// isNoiseRelocation reports whether a section holds only relocations of a debugging section. Its
// name must say so, too.
func (f *cubinFile) isNoiseRelocation(s elf.Section) bool {
	if !isRelocation(s) || s.Flags&(elf.SectionAllocated|elf.SectionRuns) != 0 {
		return false
	}
	of := f.section(int(s.Info))
	name, portable := strings.CutPrefix(of.Name, mercuryPrefix)
	named := s.Name == ".rel"+name || s.Name == ".rela"+name
	if portable {
		named = s.Name == mercuryPrefix+".rela"+name
	}
	return named && (isDebugging(of) || len(s.Data) == 0)
}
