package toolchain

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A PTXASReport is what one or more runs of ptxas -v printed.
type PTXASReport struct {
	Entries []FunctionUsage
	// GlobalBytes is the memory that outlives a launch, the maths library's tables included, added up over
	// the sources; of several architectures, the largest.
	GlobalBytes int
	// Warnings are the messages of all warning lines, and of the info lines that carry a code such as (C7511),
	// in their order.
	Warnings []string
}

// ParsePTXAS reads the standard error of nvcc -Xptxas -v, or of ptxas -v, in the formats of CUDA 11 to 13.
//
// Each figure of an entry is the maximum over its own block and those of the functions it calls, which is
// where spills hide. ptxas prints such a function below the entry that calls it; those of relocatable code
// that come before the first entry count for every entry of the same source.
//
// nvcc's front end writes into the same log and quotes the source, so a source can print lines that look like
// those of ptxas (#pragma message "\nptxas info …"). Entries of one name and architecture are therefore
// merged by maximum too: a forged line can make an entry look worse, never better.
//
// Unknown lines are ignored. A known line whose number does not parse is an error that names the line,
// and so is a log without any entry.
func ParsePTXAS(log string) (PTXASReport, error) {
	p := newPTXASParser()
	number := 0
	for line := range strings.Lines(log) {
		number++
		if err := p.line(strings.TrimRight(line, "\r\n")); err != nil {
			return PTXASReport{}, fmt.Errorf("ptxas output line %d: %w", number, err)
		}
	}
	report := p.finish()
	if len(report.Entries) == 0 {
		return PTXASReport{}, fmt.Errorf("ptxas output: no entry function in %d lines, but -Xptxas -v output was expected; "+
			"compile with -Xptxas -v, and check that the source defines a __global__ function", number)
	}
	return report, nil
}

var (
	ptxasLine     = regexp.MustCompile(`^ptxas (info|warning)\s*: ?(.*)$`)
	ptxasCompiles = regexp.MustCompile(`^Compiling entry function '(.+)' for '(.+)'$`)
	ptxasCode     = regexp.MustCompile(`^\(C\d+\) `)
	ptxasConstant = regexp.MustCompile(`bytes cmem\[(\d{1,3})\]$`)
)

func (p *ptxasParser) line(line string) error {
	afterTitle := p.afterTitle
	p.afterTitle = false
	m := ptxasLine.FindStringSubmatch(line)
	if m == nil {
		// Only here: the front end may echo a source comment that has the same words.
		if afterTitle && strings.Contains(line, "bytes stack frame") {
			return p.figures(line)
		}
		return nil
	}
	severity, text := m[1], m[2]
	if severity == "warning" || ptxasCode.MatchString(text) {
		p.warn(text)
		return nil
	}
	if e := ptxasCompiles.FindStringSubmatch(text); e != nil {
		p.enter(e[1], e[2])
		return nil
	}
	if name, ok := strings.CutPrefix(text, "Function properties for "); ok {
		p.owner().functions[name] = true
		p.afterTitle = true
		return nil
	}
	if used, ok := strings.CutPrefix(text, "Used "); ok {
		return p.figures(used)
	}
	if first, _, _ := strings.Cut(text, ", "); strings.HasSuffix(first, "bytes gmem") {
		n, err := count(first, "bytes gmem")
		if err != nil {
			return err
		}
		p.begin(n)
	}
	return nil
}

// figures takes a list such as "87 registers, used 1 barriers, 428 bytes cmem[0]".
func (p *ptxasParser) figures(list string) error {
	u := &p.owner().usage
	for item := range strings.SplitSeq(strings.TrimSpace(list), ", ") {
		if err := figure(u, strings.TrimPrefix(item, "used ")); err != nil {
			return err
		}
	}
	return nil
}

func figure(u *FunctionUsage, item string) error {
	for _, kind := range []struct {
		unit  string
		field **int
	}{
		{"registers", &u.Registers},
		{"barriers", &u.Barriers},
		{"bytes stack frame", &u.Stack},
		{"bytes cumulative stack size", &u.Stack},
		{"bytes spill stores", &u.SpillStores},
		{"bytes spill loads", &u.SpillLoads},
		{"bytes smem", &u.StaticShared},
		{"bytes lmem", &u.Local},
	} {
		if strings.HasSuffix(item, kind.unit) {
			n, err := count(item, kind.unit)
			if err != nil {
				return err
			}
			raise(kind.field, n)
			return nil
		}
	}
	m := ptxasConstant.FindStringSubmatch(item)
	if m == nil {
		return nil
	}
	n, err := count(item, m[0])
	if err != nil {
		return err
	}
	bank, err := strconv.Atoi(m[1])
	if err != nil {
		return fmt.Errorf("%q: constant bank: %w", item, err)
	}
	u.raiseConstant(bank, n)
	return nil
}
