package toolchain

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/runners/build/toolchain/elf"
)

// editSection changes the header of a section in a copy of a cubin.
func editSection(t *testing.T, image []byte, name string, edit func(h []byte)) []byte {
	t.Helper()
	f, err := readCubin(image)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(f.sections, func(s elf.Section) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("no section %s", name)
	}
	image = bytes.Clone(image)
	edit(image[int(binary.LittleEndian.Uint64(image[40:]))+64*i:])
	return image
}

// What a driver would load is what kernels have, and nothing else.
func TestUnknownSectionsAreRefused(t *testing.T) {
	le := binary.LittleEndian
	flags := func(set uint64) func([]byte) { return func(h []byte) { le.PutUint64(h[8:], le.Uint64(h[8:])|set) } }
	kind := func(k uint32) func([]byte) { return func(h []byte) { le.PutUint32(h[4:], k) } }
	size := func(n uint64) func([]byte) { return func(h []byte) { le.PutUint64(h[32:], n) } }
	for _, test := range []struct {
		name, section string
		edit          func([]byte)
		want          string
	}{
		{"a note that is loaded", ".note.nv.cuinfo", flags(elf.SectionAllocated), "section .note.nv.cuinfo (kind 0x7, flags 0x1000042) would be loaded"},
		{"a table that is written", ".nv.callgraph", flags(elf.SectionWritable), "section .nv.callgraph "},
		{"strings that run", ".strtab", flags(elf.SectionRuns), "section .strtab "},
		{"code that is written", ".text.scale", flags(elf.SectionWritable), "section .text.scale "},
		{"constants that run", ".nv.constant3", flags(elf.SectionRuns), "section .nv.constant3 "},
		{"code of another kind", ".text.scale", kind(elf.SectionNote), "section .text.scale "},
		{"globals of a kind without a rule", ".nv.global", kind(0x70000099), "section .nv.global "},
		{"a compressed section", ".nv.global.init", flags(elf.SectionCompressed), "section .nv.global.init is compressed"},
		{"a compressed section for people", ".debug_frame", flags(elf.SectionCompressed), "section .debug_frame is compressed"},
		{"variables without end", ".nv.global", size(1 << 40), "section .nv.global asks for 1099511627776 bytes of memory"},
		{"shared memory without end", ".nv.shared.scale", size(1 << 30), "section .nv.shared.scale asks for 1073741824 bytes of memory"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := readCubin(editSection(t, recordedCubins(t)["sm_90a"], test.section, test.edit))
			if !errors.Is(err, errNotCubin) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one that says %q", err, test.want)
			}
		})
	}
}

func TestSegmentsLoadWhatSectionsSay(t *testing.T) {
	le := binary.LittleEndian
	good := recordedCubins(t)["sm_90a"]
	f, err := readCubin(good)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(f.segments, func(g cubinSegment) bool { return g.kind == segmentLoad && g.fileSize > 0 })
	if i < 0 {
		t.Fatal("nothing is loaded")
	}
	hidden := f.sections[slices.IndexFunc(f.sections, func(s elf.Section) bool { return s.Name == ".nv.callgraph" })]
	for name, test := range map[string]struct {
		at   int
		with uint64
		want string
	}{
		"a section that is not": {8, hidden.Offset, "lies in a segment that is loaded, and does not say so"},
		"outside":               {8, 1 << 60, "a segment lies outside the file"},
		"memory without end":    {40, 1 << 40, "a segment asks for 1099511627776 bytes of memory"},
	} {
		t.Run(name, func(t *testing.T) {
			image := bytes.Clone(good)
			le.PutUint64(image[int(le.Uint64(image[32:]))+segmentHeaderSize*i+test.at:], test.with)
			if _, err := readCubin(image); !errors.Is(err, errNotCubin) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one that says %q", err, test.want)
			}
		})
	}
}

// Two kernels of one name, and one whose code is another's.
func TestKernelsAreTheirOwn(t *testing.T) {
	le := binary.LittleEndian
	good := recordedCubins(t)["sm_90a"]
	f, err := readCubin(good)
	if err != nil {
		t.Fatal(err)
	}
	table := f.sections[slices.IndexFunc(f.sections, func(s elf.Section) bool { return s.Kind == elf.SectionSymbols })]
	at := map[bool]int{} // of the symbol scale, and of the other kernel
	for n, y := range f.symtab() {
		if isEntry(y) {
			at[y.Name == "scale"] = int(table.Offset) + elf.SymbolSize*n
		}
	}
	twice := bytes.Clone(good)
	copy(twice[at[false]:at[false]+4], good[at[true]:])
	elsewhere := bytes.Clone(good)
	le.PutUint16(elsewhere[at[true]+6:], le.Uint16(good[at[false]+6:]))
	for name, test := range map[string]struct {
		image []byte
		want  string
	}{
		"one name":      {twice, "scale"},
		"another's":     {elsewhere, "the kernel scale has no code of its own"},
		"no parameters": {bytes.Replace(good, []byte("\x00.nv.info.scale\x00"), []byte("\x00.nv.info.scald\x00"), 1), "nothing describes the parameters of scale"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := nvccOutput{Image: test.image}.read(NVCCBuild{Dir: t.TempDir(), Source: "k.cu", Entries: []string{"scale"}, Arch: "sm_90a"})
			if !errors.Is(err, errNotCubin) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one that says %q", err, test.want)
			}
		})
	}
}

// The table of parameters is held against itself.
func TestParameterTables(t *testing.T) {
	param := func(ordinal, offset, size uint16) []byte {
		return append([]byte{4, attributeParameterV2, 12, 0, 0, 0, 0, 0}, byte(ordinal), byte(ordinal>>8), byte(offset), byte(offset>>8), byte(size), byte(size>>8), 0, 0)
	}
	older := []byte{4, attributeParameter, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x00, 0xf0, 0x11, 0x00}
	total := func(n byte) []byte { return []byte{3, attributeParamSize, n, 0} }
	for name, test := range map[string]struct {
		data [][]byte
		want []Param
		err  string
	}{
		"none":           {nil, []Param{}, ""},
		"last first":     {[][]byte{total(24), param(1, 8, 16), param(0, 0, 8)}, []Param{{0, 8}, {8, 16}}, ""},
		"the older form": {[][]byte{total(4), older}, []Param{{0, 4}}, ""},
		"unknown ones":   {[][]byte{total(8), {1, 0x99, 0, 0}, param(0, 0, 8), {4, 0x98, 2, 0, 1, 2}}, []Param{{0, 8}}, ""},
		"twice":          {[][]byte{total(8), param(0, 0, 8), older}, nil, "parameter 0 is there twice"},
		"a gap":          {[][]byte{total(24), param(0, 0, 8), param(2, 8, 8)}, nil, "parameter 1 of 2 is missing"},
		"one over one":   {[][]byte{total(24), param(0, 0, 8), param(1, 4, 8)}, nil, "lies over the one before"},
		"too long":       {[][]byte{total(8), param(0, 0, 16)}, nil, "parameters end at byte 16 of 8"},
		"no total":       {[][]byte{param(0, 0, 16)}, nil, "parameters end at byte 16 of -1"},
		"two totals":     {[][]byte{total(8), total(16)}, nil, "two sizes"},
		"no size":        {[][]byte{total(8), param(0, 0, 0)}, nil, "has no size"},
		"half":           {[][]byte{{4, attributeParameter, 12}}, nil, "half an attribute"},
		"cut":            {[][]byte{total(8), param(0, 0, 8)[:10]}, nil, "an attribute of 12 bytes, of which 6 are there"},
		"short":          {[][]byte{total(8), {4, attributeParameter, 4, 0, 0, 0, 0, 0}}, nil, "a parameter in 4 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &cubinFile{sections: []elf.Section{{}, {Name: ".nv.info.k", Kind: sectionInfo, Data: slices.Concat(test.data...)}}}
			got, err := f.params("k")
			if test.err != "" {
				if !errors.Is(err, errNotCubin) || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want one that says %q", err, test.err)
				}
				return
			}
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("%v, %v, want %v", got, err, test.want)
			}
		})
	}
}

// Whatever a cubin is made to say, reading it ends, in memory that is in proportion to the file.
func TestMutatedCubins(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	words := []uint64{0, 1, 8, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0xffffffff, 1 << 40, 1<<63 - 1, 1 << 63, 1<<64 - 1}
	for arch, good := range recordedCubins(t) {
		headers := int(binary.LittleEndian.Uint64(good[40:]))
		read, refused := 0, 0
		for range 300 {
			image := bytes.Clone(good)
			for range 1 + rng.IntN(4) {
				at := rng.IntN(len(image) - 8)
				if rng.IntN(2) == 0 && headers < len(image)-8 {
					at = headers + rng.IntN(len(image)-8-headers)
				}
				switch rng.IntN(4) {
				case 0:
					image[at] ^= 1 << rng.IntN(8)
				case 1:
					binary.LittleEndian.PutUint32(image[at&^3:], uint32(words[rng.IntN(len(words))]))
				case 2:
					binary.LittleEndian.PutUint64(image[at&^7:], words[rng.IntN(len(words))])
				default:
					from := rng.IntN(len(image) - 64)
					copy(image[at:min(at+1+rng.IntN(64), len(image))], good[from:])
				}
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := nvccOutput{Image: image}.read(NVCCBuild{Dir: "/nowhere", Source: "k.cu", Entries: []string{"scale"}, Arch: arch})
			runtime.ReadMemStats(&after)
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20+64*uint64(len(image)) {
				t.Fatalf("%s: a file of %d bytes took %d", arch, len(image), grown)
			}
			if errors.Is(err, errNotCubin) || errors.Is(err, errHostCode) {
				refused++
			} else {
				read++ // and failed for want of a report of ptxas
			}
		}
		if read == 0 || refused == 0 {
			t.Errorf("%s: %d were read and %d refused: the mutations test nothing", arch, read, refused)
		}
	}
}
