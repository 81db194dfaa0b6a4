package toolchain

import (
	"slices"
	"strings"
)

// noiseSections are the sections that the hash of machine code leaves out, by their exact names and kinds. Everything else is
// hashed, whatever it claims to be: a section of another name that says it is a table of strings could be one that a driver finds
// by its name.
var noiseSections = map[string]uint32{
	".strtab": sectionStrings, ".shstrtab": sectionStrings, ".symtab": sectionSymbols, mercuryPrefix + ".symtab": sectionMercurySymbols,
	".note.nv.tkinfo": sectionNote,
}

// debugSections are for debuggers and profilers. Each has a portable form too, and relocations.
var debugSections = []string{
	".debug_abbrev", ".debug_aranges", ".debug_frame", ".debug_info", ".debug_line", ".debug_loc", ".debug_macinfo", ".debug_pubnames", ".debug_pubtypes",
	".debug_ranges", ".debug_str", ".nv_debug_info_ptx", ".nv_debug_info_reg_sass", ".nv_debug_info_reg_type", ".nv_debug_line_sass", ".nv_debug_ptx_txt",
}

// mercuryPrefix begins the names of sections in the portable form.
const mercuryPrefix = ".nv.merc"

// isNoise tells whether nothing of a section takes part in a launch.
func (s elfSection) isNoise() bool {
	if s.flags&(sectionAllocated|sectionRuns) != 0 {
		return false
	}
	if kind, known := noiseSections[s.name]; known {
		return s.kind == kind
	}
	return s.isDebugging()
}

func (s elfSection) isDebugging() bool {
	return s.kind == sectionBits && s.flags&(sectionAllocated|sectionRuns) == 0 && slices.Contains(debugSections, strings.TrimPrefix(s.name, mercuryPrefix))
}

// isNoiseRelocation tells whether a section holds relocations of a debugging section, or none of another. Its name says so too.
func (f *cubinFile) isNoiseRelocation(s elfSection) bool {
	if !s.isRelocation() || s.flags&(sectionAllocated|sectionRuns) != 0 {
		return false
	}
	of := f.section(int(s.info))
	name, portable := strings.CutPrefix(of.name, mercuryPrefix)
	named := s.name == ".rel"+name || s.name == ".rela"+name
	if portable {
		named = s.name == mercuryPrefix+".rela"+name
	}
	return named && (of.isDebugging() || len(s.data) == 0)
}
