package toolchain

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A ptxasReport is what one or more runs of ptxas -v printed.
type ptxasReport struct {
	Entries []FunctionUsage
	// Warnings are the messages of all warning lines, and of the info lines that carry a code such as (C7511),
	// in their order.
	Warnings []string
}

// readPTXAS reads the standard error of nvcc -Xptxas -v, or of ptxas -v, in the formats of CUDA 11 to 13.
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
func readPTXAS(log string) (ptxasReport, error) {
	p := ptxasParser{entries: map[entryKey]*FunctionUsage{}}
	number := 0
	for line := range strings.Lines(log) {
		number++
		if err := p.line(strings.TrimRight(line, "\r\n")); err != nil {
			return ptxasReport{}, fmt.Errorf("ptxas output line %d: %w", number, err)
		}
	}
	report := ptxasReport{Warnings: p.warnings}
	for _, e := range p.order {
		report.Entries = append(report.Entries, *e)
	}
	if len(report.Entries) == 0 {
		return ptxasReport{}, fmt.Errorf("ptxas output: no entry function in %d lines, but -Xptxas -v output was expected; "+
			"compile with -Xptxas -v, and check that the source defines a __global__ function", number)
	}
	return report, nil
}

var (
	ptxasLine     = regexp.MustCompile(`^ptxas (info|warning)\s*: ?(.*)$`)
	ptxasCompiles = regexp.MustCompile(`^Compiling entry function '(.+)' for '(.+)'$`)
	ptxasCode     = regexp.MustCompile(`^\(C\d+\) `)
)

// A ptxasParser gathers the report source by source. Of each, ptxas prints first the line with its global memory, then its entries.
type ptxasParser struct {
	entries  map[entryKey]*FunctionUsage
	order    []*FunctionUsage
	warnings []string

	current    *FunctionUsage // nil before the source's first entry
	loose      FunctionUsage  // what was printed before that
	afterTitle bool           // the last line was "Function properties for …"
}

type entryKey struct{ name, arch string }

// enter makes the named entry the subject of the following lines.
func (p *ptxasParser) enter(name, arch string) {
	key := entryKey{name, arch}
	if p.entries[key] == nil {
		p.entries[key] = &FunctionUsage{Name: name, Arch: arch}
		p.order = append(p.order, p.entries[key])
	}
	p.current = p.entries[key]
	p.current.raiseAll(p.loose)
}

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
		p.warnings = append(p.warnings, text)
		return nil
	}
	if e := ptxasCompiles.FindStringSubmatch(text); e != nil {
		p.enter(e[1], e[2])
		return nil
	}
	if strings.HasPrefix(text, "Function properties for ") {
		p.afterTitle = true
		return nil
	}
	if used, ok := strings.CutPrefix(text, "Used "); ok {
		return p.figures(used)
	}
	if first, _, _ := strings.Cut(text, ", "); strings.HasSuffix(first, "bytes gmem") {
		p.current, p.loose = nil, FunctionUsage{} // of the next source
	}
	return nil
}

// figures reads a list such as "87 registers, used 1 barriers, 428 bytes cmem[0]". Barriers,
// constant memory and local memory are ignored.
func (p *ptxasParser) figures(list string) error {
	u := p.current
	if u == nil {
		u = &p.loose
	}
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
		{"bytes stack frame", &u.Stack},
		{"bytes cumulative stack size", &u.Stack},
		{"bytes spill stores", &u.SpillStores},
		{"bytes spill loads", &u.SpillLoads},
		{"bytes smem", &u.StaticShared},
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
	return nil
}

// A FunctionUsage is what the tools report about one kernel entry; a nil field was not printed.
type FunctionUsage struct {
	Name string // as the linker knows it
	Arch string // such as sm_89; empty if the tool did not say

	Registers    *int // per thread
	Stack        *int // bytes, with what its callees need if the tool knows that
	SpillStores  *int // bytes
	SpillLoads   *int // bytes
	StaticShared *int // bytes; dynamic shared memory belongs to the launch and is never printed
}

// raise sets a field to n unless it is higher already.
func raise(field **int, n int) {
	if *field == nil || **field < n {
		*field = &n
	}
}

// raiseAll takes every figure of other that is higher.
func (u *FunctionUsage) raiseAll(other FunctionUsage) {
	for _, f := range []struct {
		to   **int
		from *int
	}{
		{&u.Registers, other.Registers},
		{&u.Stack, other.Stack},
		{&u.SpillStores, other.SpillStores},
		{&u.SpillLoads, other.SpillLoads},
		{&u.StaticShared, other.StaticShared},
	} {
		if f.from != nil {
			raise(f.to, *f.from)
		}
	}
}

// count reads the number before unit. Old releases print the program's own bytes and the system's as "8228+16".
func count(item, unit string) (int, error) {
	sum := 0
	for part := range strings.SplitSeq(strings.TrimSpace(strings.TrimSuffix(item, unit)), "+") {
		// 48 bits are more than any GPU's memory, and leave room to add up.
		n, err := strconv.ParseUint(part, 10, 48)
		if err != nil {
			return 0, fmt.Errorf("%q: want a count of %s: %w", item, unit, err)
		}
		sum += int(n)
	}
	return sum, nil
}
