package toolchain

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/internal/long"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/elf"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/entryname"
)

// recordedCubins are those of testdata/whole.cu, by architecture.
func recordedCubins(tb testing.TB) map[string][]byte {
	tb.Helper()
	paths, err := filepath.Glob("testdata/cubins/*.cubin")
	if err != nil || len(paths) == 0 {
		tb.Fatalf("no recorded cubins: %v", err)
	}
	images := map[string][]byte{}
	for _, path := range paths {
		image, err := os.ReadFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		images[strings.TrimSuffix(filepath.Base(path), ".cubin")] = image
	}
	return images
}

func TestRecordedCubins(t *testing.T) {
	for arch, image := range recordedCubins(t) {
		t.Run(arch, func(t *testing.T) {
			f, err := readCubin(image)
			if err != nil {
				t.Fatal(err)
			}
			entries := f.entries()
			for i, e := range entries {
				entries[i] = entryname.Parse(e).Bare
			}
			if diff := cmp.Diff([]string{"local", "scale"}, entries); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
			want := []Global{
				{Name: "counter", Size: 4},
				{Name: "preset", Size: 4, Initial: true},
				{Name: "$str", Size: 13, Initial: true},
			}
			got := f.globals()
			byName := func(a, b Global) int { return strings.Compare(a.Name, b.Name) }
			slices.SortFunc(want, byName)
			slices.SortFunc(got, byName)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("globals (-want +got):\n%s", diff)
			}
			if size := f.codeSize("scale"); size < 256 || size%16 != 0 {
				t.Errorf("%d bytes of instructions", size)
			}
			if size := f.codeSize("unknown"); size != 0 {
				t.Errorf("a kernel that is not there has %d bytes of instructions", size)
			}
			if foreign := f.foreign(); len(foreign) > 0 {
				t.Errorf("foreign symbols %q; printf is the driver's", foreign)
			}
		})
	}
}

// loadedBytes says of the bytes of a cubin which part they are of all that a launch can depend on, and which are for people. It
// goes by the names of sections alone.
func loadedBytes(t *testing.T, image []byte) (loaded, noise map[int]string) {
	t.Helper()
	f, err := readCubin(image)
	if err != nil {
		t.Fatal(err)
	}
	loaded, noise = map[int]string{}, map[int]string{}
	mark := func(to map[int]string, from, size int, what string) {
		for i := range size {
			to[from+i] = what
		}
	}
	le := binary.LittleEndian
	headers := int(le.Uint64(image[40:]))
	mark(loaded, 6, 26, "the header")
	mark(loaded, 48, 12, "the header") // between are the places of tables
	mark(loaded, int(le.Uint64(image[32:])), 56*int(le.Uint16(image[56:])), "segments")
	for i, s := range f.sections[1:] {
		h := headers + 64*(i+1)
		switch {
		case strings.HasPrefix(s.Name, ".debug_") || strings.HasPrefix(s.Name, ".nv_debug_") || strings.HasPrefix(s.Name, ".nv.merc.debug_") ||
			strings.HasPrefix(s.Name, ".nv.merc.nv_debug_") || s.Name == ".note.nv.tkinfo":
			mark(noise, int(s.Offset), len(s.Data), "content of "+s.Name)
		case s.Kind == elf.SectionSymbols || s.Kind == sectionMercurySymbols:
			for n, y := range f.symbols[i+1] {
				if n > 0 && y.Kind != elf.SymbolSection {
					mark(loaded, int(s.Offset)+24*n+4, 20, "symbol "+y.Name)
				}
			}
		case s.Kind == elf.SectionStrings || strings.Contains(s.Name, ".rel") && strings.Contains(s.Name, "debug_"):
		default:
			if s.Kind != elf.SectionNoBits {
				mark(loaded, int(s.Offset), len(s.Data), "content of "+s.Name)
			}
			if at := bytes.Index(s.Data, []byte{4, attributeToolkit, 4, 0}); at >= 0 && strings.Contains(s.Name, ".nv.info.") {
				delete(loaded, int(s.Offset)+at+4) // the version of the toolkit, see TestMachineCodeOfAnotherToolkit
			}
			if isRelocation(s) && s.Size == 0 {
				continue
			}
			mark(loaded, h+4, 20, "header of "+s.Name)
			mark(loaded, h+32, 32, "header of "+s.Name)
		}
	}
	return loaded, noise
}

// What a launch depends on changes the hash, bit by bit; what is for people does not.
func TestMachineCodeCovers(t *testing.T) {
	for arch, image := range recordedCubins(t) {
		t.Run(arch, func(t *testing.T) {
			if arch != "sm_90a" {
				long.Test(t)
			}
			t.Parallel()
			whole, err := machineCode(image)
			if err != nil {
				t.Fatal(err)
			}
			loaded, noise := loadedBytes(t, image)
			if len(loaded) < 4000 || len(noise) < 300 {
				t.Fatalf("%d bytes loaded, %d for people", len(loaded), len(noise))
			}
			for i := range image {
				// Where a section is taken in or left out in one piece, every eighth byte will do.
				if what := loaded[i]; i%8 != 0 && (what == "" || strings.HasPrefix(what, "content of ") && !strings.Contains(what, ".nv.info") && !strings.Contains(what, ".rel") && !strings.Contains(what, "callgraph")) {
					continue
				}
				bit := byte(1) << (i % 7)
				image[i] ^= bit
				hash, err := machineCode(image)
				image[i] ^= bit
				switch {
				case loaded[i] != "" && err == nil && hash == whole:
					t.Errorf("bit %#x of byte %d, %s, makes no difference", bit, i, loaded[i])
				case loaded[i] == "" && noise[i] != "" && hash != whole:
					t.Errorf("byte %d, %s, makes a difference (%v)", i, noise[i], err)
				}
			}
		})
	}
}

// One byte of a header or of a size, by what it stands for.
func TestMachineCodeCoversSizes(t *testing.T) {
	f, err := readCubin(recordedCubins(t)["sm_90a"])
	if err != nil {
		t.Fatal(err)
	}
	whole, err := f.machineCode()
	if err != nil {
		t.Fatal(err)
	}
	section := func(name string) *elf.Section {
		i := slices.IndexFunc(f.sections, func(s elf.Section) bool { return s.Name == name })
		if i < 0 {
			t.Fatalf("no section %s", name)
		}
		return &f.sections[i]
	}
	symbol := func(name string) *elf.Symbol {
		symbols := f.symtab()
		i := slices.IndexFunc(symbols, func(y elf.Symbol) bool { return y.Name == name })
		if i < 0 {
			t.Fatalf("no symbol %s", name)
		}
		return &symbols[i]
	}
	for _, test := range []struct {
		name   string
		change func()
		same   bool
	}{
		{"shared memory", func() { section(".nv.shared.scale").Size += 16 }, false},
		{"zeroed globals", func() { section(".nv.global").Size += 4 }, false},
		{"the code's flags", func() { section(".text.scale").Flags |= 0x100000 }, false},
		{"the entry's name", func() { section(".text.scale").Name = ".text.other" }, false},
		{"where a global lies", func() { symbol("counter").Value += 4 }, false},
		{"which of the driver's functions is called", func() { symbol("vprintf").Name = "malloc" }, false},
		{"the architecture", func() { f.flags ^= 0x100 }, false},
		{"a global's name", func() { symbol("counter").Name = "state" }, true},
		{"which section is a note", func() { f.flags ^= 0x1000000 }, false},
		{"where an unused variable lies", func() { symbol("table").Value += 4 }, false},
		{"what a symbol is", func() { symbol("table").Kind = elf.SymbolFunction }, false},
		{"whether a kernel can be launched", func() { symbol("scale").Other = 0 }, false},
		{"an allocated section for debugging", func() { section(".debug_frame").Flags |= elf.SectionAllocated }, false},
		{"a segment's rights", func() { f.segments[3].flags |= 2 }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			saved := *f
			saved.sections = slices.Clone(f.sections)
			saved.symbols = map[int][]elf.Symbol{}
			for i, symbols := range f.symbols {
				saved.symbols[i] = slices.Clone(symbols)
			}
			test.change()
			hash, err := f.machineCode()
			*f = saved
			if err != nil {
				t.Fatal(err)
			}
			if (hash == whole) != test.same {
				t.Errorf("same hash: %v, want %v", hash == whole, test.same)
			}
		})
	}
}

func TestStableName(t *testing.T) {
	for _, test := range []struct{ name, want string }{
		{"scale", "scale"},
		{".text._ZN30_GLOBAL__N__cbe22786_4_s_cu_cc5innerILi3EEEvPf", ".text._ZN_GLOBAL_5innerILi3EEEvPf"},
		{".text._ZN40_GLOBAL__N__ee0d107e_13_longername_cu_cc5innerILi3EEEvPf", ".text._ZN_GLOBAL_5innerILi3EEEvPf"},
		{"_ZN28_INTERNAL_cbe22786_4_s_cu_cc30_GLOBAL__N__cbe22786_4_s_cu_cc4privE", "_ZN_GLOBAL__GLOBAL_4privE"},
		{"_ZN999_GLOBAL__N__short", "_ZN999_GLOBAL__N__short"},
		{"_ZN3_GLOBAL__N__short", "_ZN3_GLOBAL__N__short"},
		{"9999999999999999999999_GLOBAL__N_", "9999999999999999999999_GLOBAL__N_"},
	} {
		if got := stableName(test.name); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func FuzzMachineCode(f *testing.F) {
	for _, image := range recordedCubins(f) {
		f.Add(image)
	}
	f.Fuzz(func(t *testing.T, image []byte) {
		hash, err := machineCode(image)
		again, errAgain := machineCode(image)
		if hash != again || (err == nil) != (errAgain == nil) || (err == nil) == (hash == "") {
			t.Errorf("%q (%v), then %q (%v)", hash, err, again, errAgain)
		}
		c, err := readCubin(image)
		if err != nil {
			return
		}
		for _, e := range c.entries() {
			params, _ := c.params(e)
			for i, p := range params {
				if p.Size <= 0 || p.Offset+p.Size > 1<<16 || i > 0 && p.Offset < params[i-1].Offset+params[i-1].Size {
					t.Errorf("impossible parameters %+v", params)
				}
			}
			if c.codeSize(e) > len(image) {
				t.Errorf("%q has %d bytes of instructions in a file of %d", e, c.codeSize(e), len(image))
			}
		}
		for _, g := range c.globals() {
			if g.Size < 0 {
				t.Errorf("impossible global %+v", g)
			}
		}
		c.foreign()
	})
}

// Another release that makes the same is no other code; what is no release is.
func TestMachineCodeOfAnotherToolkit(t *testing.T) {
	for arch, image := range recordedCubins(t) {
		whole, err := machineCode(image)
		if err != nil {
			t.Fatal(err)
		}
		f, err := readCubin(image)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(f.sections, func(s elf.Section) bool { return s.Name == ".nv.info.scale" })
		record := bytes.Index(f.sections[i].Data, []byte{4, attributeToolkit, 4, 0})
		if record < 0 {
			t.Fatalf("%s does not tell its toolkit", arch)
		}
		for version, same := range map[uint32]bool{129: true, 134: true, 0: false, 12: false, 1 << 20: false} {
			edited := slices.Clone(image)
			binary.LittleEndian.PutUint32(edited[int(f.sections[i].Offset)+record+4:], version)
			if code, err := machineCode(edited); err != nil || (code == whole) != same {
				t.Errorf("%s of toolkit %d: the same code is %v, want %v (%v)", arch, version, code == whole, same, err)
			}
		}
	}
}
