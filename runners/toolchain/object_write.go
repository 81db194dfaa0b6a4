package toolchain

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/kernelgate/kernelgate/kernels/manifest"
)

// A linkable is the parts of an object file that is written here.
type linkable struct {
	machine  uint16
	sections []elfSection // loaded ones, under the names of their classes
	relocs   [][]relocation
	symbols  []elfSymbol // local ones without names, then the entry, then what is to come from libraries
	local    int
	entry    string // the name that the entry had
}

// linkable takes over what is loaded. Every symbol that is defined in the file loses its name and can be referred to from
// within alone; the entry gets EntrySymbol. Symbols come in the order in which relocations use them, so that what is defined
// beside, or in which order, makes no difference.
func (f *objectFile) linkable(entry string) (*linkable, error) {
	start, err := f.findEntry(entry)
	if err != nil {
		return nil, err
	}
	l := &linkable{machine: f.machine, entry: f.symbols[start].name}
	place := make([]int, len(f.sections)) // of a section of the file in what is written
	var relocs [][]relocation
	for i, s := range f.sections {
		if !f.loaded[i] {
			continue
		}
		if s.align == 0 {
			s.align = 1
		}
		// A group only says which of several files' copies is to be linked.
		s.name, s.flags = s.class(), s.flags&^uint64(sectionGroup)
		l.sections = append(l.sections, s)
		place[i] = len(l.sections)
		relocs = append(relocs, f.relocs[i])
	}

	var local, imported []elfSymbol
	numbers := map[uint32]int{} // of a symbol among local or imported
	for _, list := range relocs {
		for _, r := range list {
			y := f.symbols[r.symbol]
			if _, known := numbers[r.symbol]; known || int(r.symbol) == start {
				continue
			}
			if y.section == 0 {
				numbers[r.symbol] = len(imported)
				imported = append(imported, elfSymbol{name: y.name, kind: symbolPlain, binding: y.binding})
			} else {
				numbers[r.symbol] = len(local)
				local = append(local, elfSymbol{kind: y.kind, section: place[y.section], value: y.value})
			}
		}
	}
	if len(imported) > maxImport {
		return nil, refuseObject("the object file wants %d functions and variables of libraries, over the limit of %d", len(imported), maxImport)
	}
	y := f.symbols[start]
	first := elfSymbol{name: EntrySymbol, kind: symbolFunction, binding: bindGlobal, section: place[y.section], value: y.value}
	l.symbols = slices.Concat([]elfSymbol{{}}, local, []elfSymbol{first}, imported)
	l.local = 1 + len(local)

	for _, list := range relocs {
		list = slices.Clone(list)
		for i, r := range list {
			switch {
			case int(r.symbol) == start:
				list[i].symbol = uint32(l.local)
			case f.symbols[r.symbol].section == 0:
				list[i].symbol = uint32(l.local + 1 + numbers[r.symbol])
			default:
				list[i].symbol = uint32(1 + numbers[r.symbol])
			}
		}
		l.relocs = append(l.relocs, list)
	}
	return l, nil
}

// findEntry finds the function that is called, by its name in C or C++.
func (f *objectFile) findEntry(entry string) (int, error) {
	parsed, err := manifest.ParseEntry(entry)
	if err != nil {
		return 0, fmt.Errorf("the entry %w", err)
	}
	places := map[string][]int{} // of the functions that can be called from outside
	var names []functionName
	for i, y := range f.symbols {
		if y.section == 0 || y.binding == bindLocal || y.name == "" || y.name != entry && y.kind != symbolFunction {
			continue
		}
		if places[y.name] = append(places[y.name], i); len(places[y.name]) == 1 {
			if len(names) == maxKernels {
				return 0, refuseObject("the source defines more than %d functions: make static what is not called from outside", maxKernels)
			}
			names = append(names, newFunctionName(y.name))
		}
	}
	meant := matches(parsed, names)
	switch {
	case len(meant) == 0 && len(names) == 0:
		return 0, refuseObject("the source defines no function %s that can be called from outside: it must not be static", shown(entry))
	case len(meant) == 0:
		return 0, refuseObject("the source defines no function %s that can be called from outside: it must not be static, and a template must be instantiated; write the entry as one of these, or define it: %s", shown(entry), listNames(parsed, names))
	case len(meant) > 1:
		return 0, refuseObject("the source has %d functions %s: write one of them as the entry: %s", len(meant), shown(entry), listNames(parsed, meant))
	case len(places[meant[0].symbol]) > 1:
		return 0, refuseObject("the source defines %s twice", text(entry))
	}
	found := places[meant[0].symbol][0]
	y := f.symbols[found]
	if y.section == sectionAbsolute || !f.loaded[y.section] || f.sections[y.section].flags&sectionRuns == 0 ||
		y.value >= f.sections[y.section].size || y.kind != symbolFunction && y.kind != symbolPlain {
		return 0, refuseObject("%s is not a function with code of its own: define it as one", text(entry))
	}
	return found, nil
}

// write lays the file down: header, contents, relocations, symbols, names, table of sections. The same parts give the same
// bytes, and every part has its bytes.
func (l *linkable) write() []byte {
	le := binary.LittleEndian
	out := bytes.NewBuffer(make([]byte, elfHeaderSize))
	var headers []elfSection
	var names bytes.Buffer
	names.WriteByte(0)
	nameAt := map[string]uint32{"": 0}
	name := func(text string) uint32 {
		at, known := nameAt[text]
		if !known {
			at = uint32(names.Len())
			nameAt[text] = at
			names.WriteString(text + "\x00")
		}
		return at
	}
	add := func(s elfSection) {
		if s.kind != sectionNoBits && s.kind != sectionNone {
			out.Write(make([]byte, -out.Len()&7))
			s.size = uint64(len(s.data))
		}
		s.offset = uint64(out.Len())
		if s.kind != sectionNoBits {
			out.Write(s.data)
		}
		headers = append(headers, s)
	}

	add(elfSection{})
	for _, s := range l.sections {
		s.link, s.info = 0, 0
		add(s)
	}
	changed := 0
	for _, list := range l.relocs {
		if len(list) > 0 {
			changed++
		}
	}
	table := 1 + len(l.sections) + changed
	for i, list := range l.relocs {
		if len(list) == 0 {
			continue
		}
		data := make([]byte, 0, relaSize*len(list))
		for _, r := range list {
			data = le.AppendUint64(data, r.offset)
			data = le.AppendUint32(data, r.kind)
			data = le.AppendUint32(data, r.symbol)
			data = le.AppendUint64(data, r.addend)
		}
		add(elfSection{
			name: ".rela" + l.sections[i].name, kind: sectionRela, flags: sectionInfoLink, link: table, info: uint32(1 + i),
			align: 8, entrySize: relaSize, data: data,
		})
	}
	data := make([]byte, 0, symbolSize*len(l.symbols))
	for _, y := range l.symbols {
		data = le.AppendUint32(data, name(y.name))
		data = append(data, y.binding<<4|y.kind, y.other)
		data = le.AppendUint16(data, uint16(y.section))
		data = le.AppendUint64(data, y.value)
		data = le.AppendUint64(data, y.size)
	}
	add(elfSection{name: ".symtab", kind: sectionSymbols, link: table + 1, info: uint32(l.local), align: 8, entrySize: symbolSize, data: data})
	for _, s := range headers {
		name(s.name)
	}
	name(".strtab")
	add(elfSection{name: ".strtab", kind: sectionStrings, align: 1, data: names.Bytes()})

	out.Write(make([]byte, -out.Len()&7))
	start := out.Len()
	for _, s := range headers {
		h := le.AppendUint32(nil, name(s.name))
		h = le.AppendUint32(h, s.kind)
		for _, n := range []uint64{s.flags, 0, s.offset, s.size} {
			h = le.AppendUint64(h, n)
		}
		h = le.AppendUint32(h, uint32(s.link))
		h = le.AppendUint32(h, s.info)
		h = le.AppendUint64(h, s.align)
		out.Write(le.AppendUint64(h, s.entrySize))
	}
	file := out.Bytes()
	copy(file, "\x7fELF\x02\x01\x01")
	le.PutUint16(file[16:], fileRelocatable)
	le.PutUint16(file[18:], l.machine)
	le.PutUint32(file[20:], 1)
	le.PutUint64(file[40:], uint64(start))
	le.PutUint16(file[52:], elfHeaderSize)
	le.PutUint16(file[58:], sectionHeaderSize)
	le.PutUint16(file[60:], uint16(len(headers)))
	le.PutUint16(file[62:], uint16(len(headers)-1))
	return file
}
