package toolchain

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	sassSection     = regexp.MustCompile(`^\s*\.section\s+"?\.text\.([^",\s]+)"?,`)
	sassLine        = regexp.MustCompile(`^\s*//## File "([^"]*)", line (\d{1,9})`)
	sassInstruction = regexp.MustCompile(`^\s*/\*([0-9a-f]{4,12})\*/\s+(.+?)\s*;`)
	sassPlace       = regexp.MustCompile(`^\s*(\.L_x_\d+):`)
	sassLabel       = regexp.MustCompile(`\.L_x_\d+`)
	sassPredicate   = regexp.MustCompile(`^@!?U?P[T0-9]\S*\s+`)
)

// parseSASS reads the output of nvdisasm -g -c: the instructions of each kernel's section, with the
// device functions that it calls. Addresses and label numbers are left out, because one more
// instruction shifts them all; so is padding. Unknown lines are skipped.
func parseSASS(text string) map[string]listing {
	all := map[string]listing{}
	function, file, number := "", "", 0
	var labels map[string]int // the index of the instruction after each
	for line := range strings.Lines(text) {
		switch {
		case strings.Contains(line, ".section\t") || strings.Contains(line, ".section "):
			function, file, number, labels = "", "", 0, map[string]int{}
			if m := sassSection.FindStringSubmatch(line); m != nil {
				function = m[1]
			}
		case function == "":
		case strings.Contains(line, "//## File"):
			if m := sassLine.FindStringSubmatch(line); m != nil {
				file = base(m[1])
				number, _ = strconv.Atoi(m[2])
			}
		default:
			if m := sassPlace.FindStringSubmatch(line); m != nil {
				labels[m[1]] = len(all[function])
			}
			m := sassInstruction.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			said := sassLabel.ReplaceAllString(m[2], ".L")
			word := mnemonic(sassPredicate.ReplaceAllString(said, ""))
			if word == "NOP" {
				continue
			}
			in := instruction{Text: instructionText(said), Class: sassClass(word), File: file, Line: number, At: address(m[1])}
			if head, behind := labels[sassLabel.FindString(m[2])]; behind && strings.HasPrefix(word, "BR") {
				in.Back = head + 1
			}
			all[function] = append(all[function], in)
		}
	}
	return all
}

// address reads a hexadecimal number of at most twelve digits.
func address(s string) int {
	at, _ := strconv.ParseInt(s, 16, 64)
	return int(at)
}

// base returns the last part of a path from untrusted code.
func base(path string) string { return clipped(filepath.Base(path)) }

// instructionText returns an instruction in one line.
func instructionText(s string) string { return clipped(strings.Join(strings.Fields(s), " ")) }

// mnemonic returns an instruction's first word up to its modifiers: LDG of LDG.E.128.
func mnemonic(s string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(s), " ")
	word, _, _ = strings.Cut(word, ".")
	return word
}

// Prefixes of NVIDIA's instructions, from the lists in the manual of the binary utilities. Loads of
// constants do not count as memory traffic.
var (
	sassBarriers = []string{"BAR", "B2R", "WARPSYNC", "WARPGROUP", "MEMBAR", "ERRBAR", "CGAERRBAR", "DEPBAR", "LDGDEPBAR", "SYNCS", "ARRIVES", "UCGABAR", "FENCE", "UTCBAR", "ACQBULK", "UTMACMDFLUSH"}
	sassMemory   = []string{"LD", "ST", "ATOM", "RED", "CCTL", "UBLK", "UTMA", "UTCCP", "SULD", "SUST", "SUATOM", "SURED", "TEX", "TLD", "TXD"}
	sassConstant = []string{"LDC", "LDCU", "LDTRAM"}
	sassUniform  = []string{"REDUX"} // arithmetic over the lanes of a warp
)

func sassClass(word string) class {
	begins := func(list []string) bool {
		return slices.ContainsFunc(list, func(name string) bool { return strings.HasPrefix(word, name) })
	}
	switch {
	case strings.HasSuffix(word, "MMA"):
		return classTensor
	case word == "MUFU":
		return classSpecial
	case begins(sassBarriers):
		return classBarrier
	case begins(sassConstant) || begins(sassUniform):
		return classOther
	case begins(sassMemory):
		return classMemory
	}
	return classOther
}

var (
	objdumpLine        = regexp.MustCompile(`^(\S.*):(\d{1,9})(?: \(discriminator \d+\))?\s*$`)
	objdumpInstruction = regexp.MustCompile(`^\s+([0-9a-f]{1,12}):\t(.+?)\s*$`)
	objdumpBranch      = regexp.MustCompile(`^(?:j[a-z]+|loop[a-z]*|b|b\.[a-z]+|cbn?z|tbn?z)\s.*?(?:0x)?([0-9a-f]{1,12}) <`)
	objdumpTarget      = regexp.MustCompile(`(?:0x)?[0-9a-f]+ <([^>+]*)[^>]*>`)
)

// parseObjdump reads the output of objdump -d -l, all functions as one.
func parseObjdump(text string) map[string]listing {
	var all listing
	file, number, behind := "", 0, map[int]int{}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if m := objdumpInstruction.FindStringSubmatch(line); m != nil {
			at := address(m[1])
			behind[at] = len(all)
			said := instructionText(objdumpTarget.ReplaceAllString(m[2], "<$1>"))
			word, operands, _ := strings.Cut(said, " ")
			if strings.HasPrefix(word, "nop") || word == "data16" || word == "cs" {
				continue
			}
			in := instruction{Text: said, Class: hostClass(word, operands), Vector: onVectors(word, operands), File: file, Line: number, At: at}
			if to := objdumpBranch.FindStringSubmatch(m[2]); to != nil {
				if head, ok := behind[address(to[1])]; ok {
					in.Back = head + 1
				}
			}
			all = append(all, in)
		} else if strings.HasPrefix(line, "Disassembly of section") {
			clear(behind) // every section begins at 0
		} else if m := objdumpLine.FindStringSubmatch(line); m != nil {
			file = base(m[1])
			number, _ = strconv.Atoi(m[2])
		}
	}
	return map[string]listing{"": all}
}

var (
	hostBarrier = regexp.MustCompile(`^(lock|[lms]fence|dmb|dsb|isb)$`)
	hostSpecial = regexp.MustCompile(`^v?(r?sqrt|div|rcp)(14|28)?[sp][sdh]$|^(fsqrt|fdiv|frecpe|frsqrte)$`)
	hostTensor  = regexp.MustCompile(`^tdp|mmla$|^[a-z]+mopa$`)
)

// Arithmetic on vectors of x86-64, by its name, and of AArch64, by its operands. Compilers use other vector instructions for scalars, too.
var (
	x86Vectors = regexp.MustCompile(`^v?((add|sub|mul|div|max|min|sqrt|h(add|sub)|dp|addsub|fn?m(add|sub)\d*)p[sdh]|dpbf16ps|p(add|sub|mul|madd|dp|max|min|avg|sad|abs)[a-z0-9]*)$`)
	armVectors = regexp.MustCompile(`^(bf|[fsu]q?)?(add|sub|mul|mla|mls|ml[as]l|mad|msb|div|max|min|abs|sqrt|dot|mull)[a-z]{0,3}2?$`)
	armLanes   = regexp.MustCompile(`\b[vz]\d+\.(\d+)?[bhsd]\b`)
)

// onVectors reports whether an instruction calculates with vectors. Those that the class of matrices has are not among them.
func onVectors(word, operands string) bool {
	return x86Vectors.MatchString(word) && strings.Contains(operands, "mm") || armVectors.MatchString(word) && armLanes.MatchString(operands)
}

// hostClass classifies x86-64 and AArch64: an instruction with an address operand accesses memory.
func hostClass(word, operands string) class {
	switch {
	case hostTensor.MatchString(word):
		return classTensor
	case hostBarrier.MatchString(word):
		return classBarrier
	case hostSpecial.MatchString(word):
		return classSpecial
	case strings.ContainsAny(operands, "([") && !strings.HasPrefix(word, "lea"):
		return classMemory
	}
	return classOther
}
