package toolchain

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
				entries[i] = shortName(e)
			}
			if diff := cmp.Diff([]string{"local", "scale"}, entries); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
			want := []Global{
				{Name: "counter", Arch: arch, Size: 4},
				{Name: "preset", Arch: arch, Size: 4, Initialised: true},
				{Name: "$str", Arch: arch, Size: 13, Initialised: true},
			}
			got := f.globals(arch)
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

// What a launch depends on changes the hash, byte by byte; what is for people does not.
func TestMachineCodeCovers(t *testing.T) {
	for arch, image := range recordedCubins(t) {
		f, err := readCubin(image)
		if err != nil {
			t.Fatal(err)
		}
		code := func() string {
			hash, err := f.machineCode()
			if err != nil {
				return err.Error()
			}
			return hash
		}
		whole := code()
		for _, s := range f.sections {
			if len(s.data) == 0 || s.kind == sectionStrings || s.kind == sectionSymbols || s.kind == sectionMercurySymbols {
				continue // what symbols mean shows in the sections that use them
			}
			noise := strings.Contains(s.name, "debug_") || s.name == ".note.nv.tkinfo"
			t.Run(arch+s.name, func(t *testing.T) {
				// The data are those that the file refers to.
				s.data[0] ^= 0x40
				if (code() == whole) != noise {
					t.Errorf("the same hash: %v, want %v", !noise, noise)
				}
				s.data[0] ^= 0x40
				if noise {
					return
				}
				before := sha256.New()
				if err := f.hashSection(before, s); err != nil {
					t.Fatal(err)
				}
				for i := range s.data {
					after := sha256.New()
					s.data[i] ^= 0x40
					err := f.hashSection(after, s)
					s.data[i] ^= 0x40
					if err == nil && bytes.Equal(before.Sum(nil), after.Sum(nil)) {
						t.Fatalf("byte %d of %d makes no difference", i, len(s.data))
					}
				}
			})
		}
		if code() != whole {
			t.Errorf("%s: the test has changed the file", arch)
		}
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
	section := func(name string) *elfSection {
		i := slices.IndexFunc(f.sections, func(s elfSection) bool { return s.name == name })
		if i < 0 {
			t.Fatalf("no section %s", name)
		}
		return &f.sections[i]
	}
	symbol := func(name string) *elfSymbol {
		symbols := f.symtab()
		i := slices.IndexFunc(symbols, func(y elfSymbol) bool { return y.name == name })
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
		{"shared memory", func() { section(".nv.shared.scale").size += 16 }, false},
		{"zeroed globals", func() { section(".nv.global").size += 4 }, false},
		{"the code's flags", func() { section(".text.scale").flags |= 0x100000 }, false},
		{"the entry's name", func() { section(".text.scale").name = ".text.other" }, false},
		{"where a global lies", func() { symbol("counter").value += 4 }, false},
		{"which of the driver's functions is called", func() { symbol("vprintf").name = "malloc" }, false},
		{"the architecture", func() { f.flags ^= 0x100 }, false},
		{"a global's name", func() { symbol("counter").name = "state" }, true},
		{"the place of a note", func() { f.flags ^= 0x1000000 }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			saved := *f
			saved.sections = slices.Clone(f.sections)
			saved.symbols = map[int][]elfSymbol{}
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

func TestMalformedCubins(t *testing.T) {
	good := recordedCubins(t)["sm_89"]
	edit := func(at int, with ...byte) []byte {
		image := bytes.Clone(good)
		copy(image[at:], with)
		return image
	}
	for _, test := range []struct {
		name, want string
		image      []byte
	}{
		{"empty", "no 64-bit little-endian ELF header", nil},
		{"32-bit", "no 64-bit little-endian ELF header", edit(4, 1)},
		{"another machine", "it is for machine 62", edit(18, 62)},
		{"not linked", "it is not linked", edit(16, 1)},
		{"headers elsewhere", "the section headers lie outside the file", edit(40, 0, 0, 0, 0xff)},
		{"headers far away", "the section headers lie outside the file", edit(40, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)},
		{"odd headers", "section headers of 65 bytes", edit(58, 65)},
		{"no sections", "0 section headers", edit(60, 0, 0)},
		{"no names", "does not exist", edit(62, 0xff, 0)},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := MachineCode(test.image)
			if !errors.Is(err, errNotCubin) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one that says %q", err, test.want)
			}
		})
	}
	for n := range good {
		if _, err := MachineCode(good[:n]); err == nil && n < len(good)-4*56 { // program headers come last
			t.Fatalf("the first %d of %d bytes are a cubin", n, len(good))
		}
	}
}

func FuzzMachineCode(f *testing.F) {
	for _, image := range recordedCubins(f) {
		f.Add(image)
	}
	f.Fuzz(func(t *testing.T, image []byte) {
		hash, err := MachineCode(image)
		again, errAgain := MachineCode(image)
		if hash != again || (err == nil) != (errAgain == nil) || (err == nil) == (hash == "") {
			t.Errorf("%q (%v), then %q (%v)", hash, err, again, errAgain)
		}
		c, err := readCubin(image)
		if err != nil {
			return
		}
		for _, e := range c.entries() {
			if c.codeSize(e) > len(image) {
				t.Errorf("%q has %d bytes of instructions in a file of %d", e, c.codeSize(e), len(image))
			}
		}
		for _, g := range c.globals("sm_89") {
			if g.Size < 0 {
				t.Errorf("impossible global %+v", g)
			}
		}
		c.foreign()
	})
}
