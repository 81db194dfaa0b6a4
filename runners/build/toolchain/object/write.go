package object

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/elf"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/entryname"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
)

// A linkable holds the parts of the new object file.
type linkable struct {
	machine  uint16
	sections []elf.Section // loaded ones, under the names of their classes
	relocs   [][]relocation
	symbols  []elf.Symbol // local symbols without names, then the entry, then imports from libraries
	local    int
	entry    string // the original name of the entry
}

// linkable takes over what is loaded. Every symbol that is defined in the file loses its name and
// is local; the entry gets EntrySymbol. Symbols come in the order in which relocations use them, so
// that unused definitions and their order make no difference.
func (f *objectFile) linkable(entry string) (*linkable, error) {
	start, err := f.findEntry(entry)
	if err != nil {
		return nil, err
	}
	l := &linkable{machine: f.machine, entry: f.symbols[start].Name}
	place := make([]int, len(f.sections)) // from a section of the old file to its number in the new one
	var relocs [][]relocation
	for i, s := range f.sections {
		if !f.loaded[i] {
			continue
		}
		if s.Align == 0 {
			s.Align = 1
		}
		// A group only selects one of several files' copies.
		s.Name, s.Flags = classOf(s), s.Flags&^uint64(sectionGroup)
		l.sections = append(l.sections, s)
		place[i] = len(l.sections)
		relocs = append(relocs, f.relocs[i])
	}

	var local, imported []elf.Symbol
	numbers := map[uint32]int{} // from a symbol to its index among local or imported
	for _, list := range relocs {
		for _, r := range list {
			y := f.symbols[r.symbol]
			if _, known := numbers[r.symbol]; known || int(r.symbol) == start {
				continue
			}
			if y.Section == 0 {
				numbers[r.symbol] = len(imported)
				imported = append(imported, elf.Symbol{Name: y.Name, Kind: elf.SymbolPlain, Binding: y.Binding})
			} else {
				numbers[r.symbol] = len(local)
				local = append(local, elf.Symbol{Kind: y.Kind, Section: place[y.Section], Value: y.Value})
			}
		}
	}
	if len(imported) > maxImport {
		return nil, output.Refuse("the object file wants %d functions and variables of libraries, over the limit of %d", len(imported), maxImport)
	}
	y := f.symbols[start]
	first := elf.Symbol{Name: EntrySymbol, Kind: elf.SymbolFunction, Binding: bindGlobal, Section: place[y.Section], Value: y.Value}
	l.symbols = slices.Concat([]elf.Symbol{{}}, local, []elf.Symbol{first}, imported)
	l.local = 1 + len(local)

	for _, list := range relocs {
		list = slices.Clone(list)
		for i, r := range list {
			switch {
			case int(r.symbol) == start:
				list[i].symbol = uint32(l.local)
			case f.symbols[r.symbol].Section == 0:
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
	var names []entryname.Name
	for i, y := range f.symbols {
		if y.Section == 0 || y.Binding == bindLocal || y.Name == "" || y.Name != entry && y.Kind != elf.SymbolFunction {
			continue
		}
		if places[y.Name] = append(places[y.Name], i); len(places[y.Name]) == 1 {
			if len(names) == entryname.MaxKernels {
				return 0, output.Refuse("the source defines more than %d functions: make static what is not called from outside", entryname.MaxKernels)
			}
			names = append(names, entryname.Parse(y.Name))
		}
	}
	meant := entryname.Match(parsed, names)
	switch {
	case len(meant) == 0 && len(names) == 0:
		return 0, output.Refuse("the source defines no function %s that can be called from outside: it must not be static", entryname.Quote(entry))
	case len(meant) == 0:
		return 0, output.Refuse("the source defines no function %s that can be called from outside: it must not be static, and a template must be instantiated; write the entry as one of these, or define it: %s", entryname.Quote(entry), entryname.List(parsed, names))
	case len(meant) > 1:
		return 0, output.Refuse("the source has %d functions %s: write one of them as the entry: %s", len(meant), entryname.Quote(entry), entryname.List(parsed, meant))
	case len(places[meant[0].Symbol]) > 1:
		return 0, output.Refuse("the source defines %s twice", elf.Quote(entry))
	}
	found := places[meant[0].Symbol][0]
	y := f.symbols[found]
	if y.Section == sectionAbsolute || !f.loaded[y.Section] || f.sections[y.Section].Flags&elf.SectionRuns == 0 ||
		y.Value >= f.sections[y.Section].Size || y.Kind != elf.SymbolFunction && y.Kind != elf.SymbolPlain {
		return 0, output.Refuse("%s is not a function with code of its own: define it as one", elf.Quote(entry))
	}
	return found, nil
}

// write writes the file: header, contents, relocations, symbols, names, table of sections. The same
// parts give the same bytes, and every byte belongs to a part.
func (l *linkable) write() []byte {
	le := binary.LittleEndian
	out := bytes.NewBuffer(make([]byte, elf.HeaderSize))
	var headers []elf.Section
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
	add := func(s elf.Section) {
		if s.Kind != elf.SectionNoBits && s.Kind != elf.SectionNone {
			out.Write(make([]byte, -out.Len()&7))
			s.Size = uint64(len(s.Data))
		}
		s.Offset = uint64(out.Len())
		if s.Kind != elf.SectionNoBits {
			out.Write(s.Data)
		}
		headers = append(headers, s)
	}

	add(elf.Section{})
	for _, s := range l.sections {
		s.Link, s.Info = 0, 0
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
		data := make([]byte, 0, elf.RelaSize*len(list))
		for _, r := range list {
			data = le.AppendUint64(data, r.offset)
			data = le.AppendUint32(data, r.kind)
			data = le.AppendUint32(data, r.symbol)
			data = le.AppendUint64(data, r.addend)
		}
		add(elf.Section{
			Name: ".rela" + l.sections[i].Name, Kind: elf.SectionRela, Flags: elf.SectionInfoLink, Link: table, Info: uint32(1 + i),
			Align: 8, EntrySize: elf.RelaSize, Data: data,
		})
	}
	data := make([]byte, 0, elf.SymbolSize*len(l.symbols))
	for _, y := range l.symbols {
		data = le.AppendUint32(data, name(y.Name))
		data = append(data, y.Binding<<4|y.Kind, y.Other)
		data = le.AppendUint16(data, uint16(y.Section))
		data = le.AppendUint64(data, y.Value)
		data = le.AppendUint64(data, y.Size)
	}
	add(elf.Section{Name: ".symtab", Kind: elf.SectionSymbols, Link: table + 1, Info: uint32(l.local), Align: 8, EntrySize: elf.SymbolSize, Data: data})
	for _, s := range headers {
		name(s.Name)
	}
	name(".strtab")
	add(elf.Section{Name: ".strtab", Kind: elf.SectionStrings, Align: 1, Data: names.Bytes()})

	out.Write(make([]byte, -out.Len()&7))
	start := out.Len()
	for _, s := range headers {
		h := le.AppendUint32(nil, name(s.Name))
		h = le.AppendUint32(h, s.Kind)
		for _, n := range []uint64{s.Flags, 0, s.Offset, s.Size} {
			h = le.AppendUint64(h, n)
		}
		h = le.AppendUint32(h, uint32(s.Link))
		h = le.AppendUint32(h, s.Info)
		h = le.AppendUint64(h, s.Align)
		out.Write(le.AppendUint64(h, s.EntrySize))
	}
	file := out.Bytes()
	copy(file, "\x7fELF\x02\x01\x01")
	le.PutUint16(file[16:], fileRelocatable)
	le.PutUint16(file[18:], l.machine)
	le.PutUint32(file[20:], 1)
	le.PutUint64(file[40:], uint64(start))
	le.PutUint16(file[52:], elf.HeaderSize)
	le.PutUint16(file[58:], elf.SectionHeaderSize)
	le.PutUint16(file[60:], uint16(len(headers)))
	le.PutUint16(file[62:], uint16(len(headers)-1))
	return file
}
