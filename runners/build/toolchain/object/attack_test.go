package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
)

// marks says of every byte of an object file whether it is loaded or surely not, as another reader of ELF sees it.
type marks struct{ loaded, debug map[int]string }

func marksOf(t *testing.T, image []byte) marks {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		t.Fatal(err)
	}
	m := marks{loaded: map[int]string{}, debug: map[int]string{}}
	mark := func(to map[int]string, from, size uint64, what string) {
		for i := range size {
			to[int(from+i)] = what
		}
	}
	headers := binary.LittleEndian.Uint64(image[40:])
	field := func(section int, at, size uint64, what string) {
		mark(m.loaded, headers+uint64(section)*64+at, size, fmt.Sprintf("%s of %s", what, f.Sections[section].Name))
	}
	var table, names *elf.Section
	for _, s := range f.Sections {
		if s.Type == elf.SHT_SYMTAB {
			table, names = s, f.Sections[s.Link]
		}
	}
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	used := map[uint32]bool{}
	for i, s := range f.Sections {
		loaded := s.Flags&elf.SHF_ALLOC != 0 && s.Name != ".note.gnu.property"
		relocates := s.Type == elf.SHT_RELA && f.Sections[s.Info].Flags&elf.SHF_ALLOC != 0
		switch {
		case loaded || relocates:
			field(i, 4, 4, "kind")
			field(i, 32, 8, "size")
			if s.Type != elf.SHT_NOBITS && s.Size > 0 {
				mark(m.loaded, s.Offset, s.Size, "content of "+s.Name)
			}
		case strings.HasPrefix(s.Name, ".debug_") || strings.HasPrefix(s.Name, ".rela.debug_"):
			mark(m.debug, s.Offset, s.FileSize, "content of "+s.Name)
		}
		if loaded {
			field(i, 8, 8, "flags")
			field(i, 48, 8, "alignment")
			field(i, 56, 8, "entry size")
		}
		if relocates {
			field(i, 40, 8, "link and info")
			data, err := s.Data()
			if err != nil {
				t.Fatal(err)
			}
			for at := 0; at < len(data); at += 24 {
				used[binary.LittleEndian.Uint32(data[at+12:])] = true
			}
		}
	}
	for i, y := range symbols {
		if !used[uint32(i+1)] && y.Name != "scale" {
			continue
		}
		at := table.Offset + uint64(i+1)*24
		what := "symbol " + y.Name
		mark(m.loaded, at+6, 2, "section of "+what)
		if y.Section != elf.SHN_UNDEF {
			mark(m.loaded, at+8, 8, "value of "+what)
		}
		if y.Section == elf.SHN_UNDEF || y.Name == "scale" {
			mark(m.loaded, at, 4, "name of "+what)
			start := binary.LittleEndian.Uint32(image[at:])
			mark(m.loaded, names.Offset+uint64(start), uint64(len(y.Name))+1, "text of "+what)
		}
	}
	mark(m.loaded, 4, 2, "class of the file")
	mark(m.loaded, 16, 4, "type and machine of the file")
	return m
}

// Whatever bit is turned over: in what is loaded it makes another code or a refusal, in debugging sections it makes no
// difference, and elsewhere it makes no panic.
func TestEveryBitOfWhatIsLoaded(t *testing.T) {
	for name, flags := range map[string][]string{"whole.c": {"-O2", "-g"}, "whole.cc": {"-O1"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			image := wholeObject(t, name, flags...)
			code := mustParse(t, image).Code
			m := marksOf(t, image)
			if len(m.loaded) < 2000 || name == "whole.c" && len(m.debug) < 1000 {
				t.Fatalf("%d bytes loaded, %d for debugging", len(m.loaded), len(m.debug))
			}
			for i := range image {
				bits := []byte{1 << (i % 7)}
				if i%4 != 0 && m.loaded[i] == "" {
					continue
				}
				if name == "whole.c" && m.loaded[i] != "" && !strings.HasPrefix(m.loaded[i], "content") {
					bits = []byte{1, 2, 4, 8, 16, 32, 64, 128}
				}
				for _, bit := range bits {
					image[i] ^= bit
					o, err := parseObject(image, "scale")
					image[i] ^= bit
					switch what := m.loaded[i]; {
					case strings.HasPrefix(what, "alignment") && image[i] == 1 && bit == 1: // none, which is the same
					case strings.HasPrefix(what, "flags") && i%8 == 1 && bit == 2: // of a group, which are several files' affair
					case what != "" && err == nil && o.Code == code:
						t.Errorf("bit %#x of byte %d, %s, makes no difference", bit, i, what)
					case m.debug[i] != "" && (err != nil || o.Code != code):
						t.Errorf("byte %d, %s, makes another code (%v)", i, m.debug[i], err)
					}
					if refusal := new(output.CompileError); err != nil && (!errors.As(err, &refusal) || strings.Contains(refusal.Summary, "\n")) {
						t.Fatalf("byte %d: %v (%T) does not blame the source in one line", i, err, err)
					}
				}
			}
		})
	}
}

// Files that no assembler writes.
func TestMalformedObjects(t *testing.T) {
	good := wholeObject(t, "whole.c", "-O2")
	f, err := elf.NewFile(bytes.NewReader(good))
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	headers := int(le.Uint64(good[40:]))
	number := func(name string) int {
		i := slices.IndexFunc(f.Sections, func(s *elf.Section) bool { return s.Name == name })
		if i < 0 {
			t.Fatalf("no section %s", name)
		}
		return i
	}
	header := func(name string) int { return headers + 64*number(name) }
	content := func(name string) int { return int(f.Sections[number(name)].Offset) }
	symbol := func(name string) int {
		symbols, err := f.Symbols()
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(symbols, func(y elf.Symbol) bool { return y.Name == name })
		if i < 0 {
			t.Fatalf("no symbol %s", name)
		}
		return content(".symtab") + 24*(i+1)
	}
	edit := func(at int, with ...byte) []byte {
		image := bytes.Clone(good)
		copy(image[at:], with)
		return image
	}
	far := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	overlapping := bytes.Clone(good)
	for i := range f.Sections[1:] {
		if s := f.Sections[i+1]; s.Type == elf.SHT_PROGBITS {
			le.PutUint64(overlapping[headers+64*(i+1)+24:], 0)
			le.PutUint64(overlapping[headers+64*(i+1)+32:], uint64(len(good)))
		}
	}
	for name, test := range map[string]struct {
		image []byte
		want  string
	}{
		"empty":                            {nil, "no 64-bit little-endian ELF header"},
		"32-bit":                           {edit(4, 1), "no 64-bit little-endian ELF header"},
		"an executable":                    {edit(16, 2), "ELF type 2"},
		"another machine":                  {edit(18, 3), "machine 3"},
		"headers far away":                 {edit(40, far...), "the section headers lie outside the file"},
		"no sections":                      {edit(60, 0, 0), "0 section headers"},
		"65,535 sections":                  {edit(60, 0xff, 0xff), "65535 section headers"},
		"no names":                         {edit(62, 0xfe, 0xfe), "does not exist"},
		"a section beyond the end":         {edit(header(".rodata")+32, far[:4]...), "lies outside the file"},
		"offset and size overflow":         {edit(header(".rodata")+24, far...), "lies outside the file"},
		"overlapping sections":             {overlapping, "its sections overlap"},
		"endless zeros":                    {edit(header(".bss")+32, far...), "section .bss brings what is loaded to more than"},
		"a section that relocates zeros":   {edit(header(".rela.text.scale")+44, byte(number(".bss"))), "section .bss takes no room in the file, but is relocated"},
		"a section relocated twice":        {edit(header(".rela.eh_frame")+44, byte(number(".text.scale"))), "section .text.scale is relocated by two sections"},
		"relocations by other symbols":     {edit(header(".rela.text.scale")+40, byte(number(".text.scale"))), "holds no relocations of the usual form"},
		"half a relocation":                {edit(header(".rela.text.scale")+32, 23, 0), "holds no relocations of the usual form"},
		"a relocation beyond the end":      {edit(content(".rela.text.scale"), far...), "section .text.scale has a relocation at 18446744073709551615, outside its"},
		"a relocation to nothing":          {edit(content(".rela.text.scale")+12, 0, 0, 0, 0), "has a relocation to symbol 0 of"},
		"a relocation to no symbol":        {edit(content(".rela.text.scale")+12, far[:4]...), "has a relocation to symbol 4294967295 of"},
		"a copy relocation":                {edit(content(".rela.text.scale")+8, 5, 0, 0, 0), "a relocation of kind 5, which is not known"},
		"an indirect relocation":           {edit(content(".rela.text.scale")+8, 37, 0, 0, 0), "a relocation of kind 37, which is not known"},
		"no symbol table":                  {edit(header(".symtab")+4, 1), "has no symbols"},
		"half a symbol":                    {edit(header(".symtab")+32, 25, 0), "half a symbol"},
		"symbols without names":            {edit(header(".symtab")+40, 0), "no names"},
		"two symbol tables":                {edit(header(".strtab")+4, 2), "2 symbol tables"},
		"a name beyond the end":            {edit(symbol("sinf"), far[:4]...), "has no name"},
		"a symbol of no section":           {edit(symbol("scale")+6, 0xfe, 0xfe), "symbol scale lies in section 65278, which there is not"},
		"a symbol beyond its section":      {edit(symbol("scale")+8, far...), "symbol scale lies outside its section .text.scale"},
		"an entry at the end of its code":  {edit(symbol("scale")+8, le.AppendUint64(nil, f.Sections[number(".text.scale")].Size)...), "scale is not a function with code of its own"},
		"an entry among data":              {edit(symbol("scale")+6, byte(number(".rodata"))), "is not a function with code of its own"},
		"an indirect entry":                {edit(symbol("scale")+4, 0x1a), "symbol scale is an indirect function"},
		"a fixed address":                  {edit(symbol("shared_counter")+6, 0xf1, 0xff), "refers to symbol shared_counter, a fixed address"},
		"a name with a version":            {bytes.Replace(good, []byte("\x00strlen\x00"), []byte("\x00str@en\x00"), 1), "symbol str@en is to come from a library"},
		"a name with a line":               {bytes.Replace(good, []byte("\x00sinf\x00"), []byte("\x00s\nnf\x00"), 1), `symbol "s\nnf" is to come from a library`},
		"a first symbol that is one":       {edit(content(".symtab")+8, 1), "the first symbol is not empty"},
		"a kind that is known to nobody":   {edit(header(".rodata")+4, 0x77), "section .rodata has the kind 0x77"},
		"an alignment that is no power":    {edit(header(".rodata")+48, 3), "section .rodata wants an alignment of 3"},
		"long section numbers":             {edit(header(".strtab")+4, 18), "gives orders to the linker"},
		"a table that is also what it has": {edit(header(".symtab")+4, 3), "has no symbols"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseObject(test.image, "scale")
			refusal := new(output.CompileError)
			if !errors.As(err, &refusal) || !strings.Contains(refusal.Summary, test.want) {
				t.Errorf("error %v (%T), want a refusal that says %q", err, err, test.want)
			}
		})
	}
	for n := range good {
		if _, err := parseObject(good[:n], "scale"); err == nil {
			t.Fatalf("the first %d of %d bytes are an object file", n, len(good))
		}
	}
}

// A file has a limit before it is read, and what is read takes memory in proportion to it.
func TestObjectsTakeLittleMemory(t *testing.T) {
	large := filepath.Join(t.TempDir(), "kernel.o")
	if err := errors.Join(os.WriteFile(large, nil, 0o644), os.Truncate(large, maxObject+1)); err != nil {
		t.Fatal(err)
	}
	// Each of a hundred thousand symbols has the same name of 60,000 letters.
	image := wholeObject(t, "whole.c", "-O2")
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		t.Fatal(err)
	}
	headers := binary.LittleEndian.Uint64(image[40:])
	for i, s := range f.Sections {
		h := image[headers+uint64(i)*64:]
		switch s.Type {
		case elf.SHT_SYMTAB:
			binary.LittleEndian.PutUint64(h[24:], uint64(len(image)))
			binary.LittleEndian.PutUint64(h[32:], 24*100_000)
		case elf.SHT_STRTAB:
			if s.Name == ".strtab" {
				binary.LittleEndian.PutUint64(h[24:], uint64(len(image)+24*100_000))
				binary.LittleEndian.PutUint64(h[32:], 60_001)
			}
		}
	}
	image = slices.Concat(image, make([]byte, 24*100_000), bytes.Repeat([]byte("x"), 60_000), []byte{0})
	many, tooMany := relocations(t, maxLinks-8), relocations(t, maxLinks+1)
	for name, test := range map[string]struct {
		parse func() error
		want  string
		most  uint64
	}{
		"too large":        {func() error { _, err := Read(large, "scale"); return err }, "over the limit of 33554432", 1 << 20},
		"long names":       {func() error { _, err := parseObject(image, "scale"); return err }, "has no name", 16 << 20},
		"many relocations": {func() error { _, err := parseObject(many, "scale"); return err }, "", 10 * 24 * maxLinks},
		"too many":         {func() error { _, err := parseObject(tooMany, "scale"); return err }, "brings the relocations to more than", 4 * 24 * maxLinks},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := test.parse()
			runtime.ReadMemStats(&after)
			if refusal := new(output.CompileError); test.want != "" && (!errors.As(err, &refusal) || !strings.Contains(refusal.Summary, test.want)) || test.want == "" && err != nil {
				t.Errorf("error %v (%T), want one that says %q", err, err, test.want)
			}
			if grown := after.TotalAlloc - before.TotalAlloc; grown > test.most {
				t.Errorf("it took %d MiB, more than %d", grown>>20, test.most>>20)
			}
		})
	}
}

// relocations is an object file with so many of them, each to the entry.
func relocations(t *testing.T, count int) []byte {
	t.Helper()
	image := compiled(t, "k.c", "void scale(void); void *self[2] = {scale, scale}; void scale(void) { }\n")
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(f.Sections, func(s *elf.Section) bool { return strings.HasPrefix(s.Name, ".rela.data") })
	one := bytes.Clone(image[f.Sections[i].Offset:][:24])
	h := image[binary.LittleEndian.Uint64(image[40:])+64*uint64(i):]
	binary.LittleEndian.PutUint64(h[24:], uint64(len(image)))
	binary.LittleEndian.PutUint64(h[32:], uint64(count*24))
	return append(image, bytes.Repeat(one, count)...)
}
