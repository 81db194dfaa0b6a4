package toolchain

import (
	"maps"
	"regexp"
)

// A ptxasParser gathers the report unit by unit. A unit is one source for one architecture; ptxas prints first its
// warnings, then the line with its global memory, then its entries.
type ptxasParser struct {
	entries map[entryKey]*ptxasEntry
	order   []*ptxasEntry
	globals map[string]int // bytes by architecture; "" for units without an entry

	warnings []string
	pending  []string // those whose unit has not begun

	unit       *ptxasUnit
	afterTitle bool // the last line was "Function properties for …"
}

type entryKey struct{ name, arch string }

// A ptxasEntry is a usage with the names of the functions whose figures went into it.
type ptxasEntry struct {
	usage     FunctionUsage
	functions map[string]bool
}

type ptxasUnit struct {
	global   int
	arch     string
	warnings []string
	entries  map[*ptxasEntry]bool
	current  *ptxasEntry
	loose    *ptxasEntry // what was printed before the first entry
}

func newPTXASParser() *ptxasParser {
	p := &ptxasParser{entries: map[entryKey]*ptxasEntry{}, globals: map[string]int{}}
	p.unit = p.newUnit(0)
	return p
}

func (p *ptxasParser) newUnit(global int) *ptxasUnit {
	u := &ptxasUnit{
		global:   global,
		warnings: p.pending,
		entries:  map[*ptxasEntry]bool{},
		loose:    &ptxasEntry{functions: map[string]bool{}},
	}
	p.pending = nil
	return u
}

func (p *ptxasParser) warn(text string) {
	p.warnings = append(p.warnings, text)
	p.pending = append(p.pending, text)
}

// begin closes the unit so far and opens the next.
func (p *ptxasParser) begin(global int) {
	p.close()
	p.unit = p.newUnit(global)
}

// enter makes the named entry the one that the following lines are about.
func (p *ptxasParser) enter(name, arch string) {
	key := entryKey{name, arch}
	e := p.entries[key]
	if e == nil {
		e = &ptxasEntry{
			usage:     FunctionUsage{Name: name, Arch: arch},
			functions: map[string]bool{name: true},
		}
		p.entries[key] = e
		p.order = append(p.order, e)
	}
	p.unit.arch = arch
	p.unit.current = e
	p.unit.entries[e] = true
}

func (p *ptxasParser) owner() *ptxasEntry {
	if p.unit.current != nil {
		return p.unit.current
	}
	return p.unit.loose
}

var ptxasSubject = regexp.MustCompile(`(?i)\b(?:entry function|function|entry) '?([^\s',]+)`)

func (p *ptxasParser) close() {
	p.globals[p.unit.arch] += p.unit.global
	byFunction := map[string][]*ptxasEntry{}
	for e := range p.unit.entries {
		e.usage.raiseAll(p.unit.loose.usage)
		maps.Copy(e.functions, p.unit.loose.functions)
		for name := range e.functions {
			byFunction[name] = append(byFunction[name], e)
		}
	}
	for _, w := range p.unit.warnings {
		m := ptxasSubject.FindStringSubmatch(w)
		if m == nil {
			continue
		}
		for _, e := range byFunction[m[1]] {
			e.usage.Warnings = append(e.usage.Warnings, w)
		}
	}
}

func (p *ptxasParser) finish() PTXASReport {
	p.unit.warnings = append(p.unit.warnings, p.pending...)
	p.close()
	r := PTXASReport{Warnings: p.warnings}
	for _, e := range p.order {
		r.Entries = append(r.Entries, e.usage)
	}
	for arch, n := range p.globals {
		if arch != "" {
			r.GlobalBytes = max(r.GlobalBytes, n)
		}
	}
	r.GlobalBytes += p.globals[""]
	return r
}
