package toolchain

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/runners/build/toolchain/elf"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
)

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
		{"segments far away", "the segment headers lie outside the file", edit(32, 0xff, 0xff, 0xff, 0xff)},
		{"odd segments", "segment headers of 57 bytes", edit(54, 57)},
		{"many segments", "65535 segment headers", edit(56, 0xff, 0xff)},
		{"two sections of one name", "two sections are called .nv.constant4", bytes.Replace(good, []byte("\x00.nv.constant3\x00"), []byte("\x00.nv.constant4\x00"), 1)},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := machineCode(test.image)
			if !errors.Is(err, errNotCubin) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one that says %q", err, test.want)
			}
		})
	}
	for n := range good {
		if _, err := machineCode(good[:n]); err == nil && n < len(good)-4*56 { // program headers come last
			t.Fatalf("the first %d of %d bytes are a cubin", n, len(good))
		}
	}
}

// A function of the host beside the kernel's, for the driver to call.
func TestHostCodeIsRefused(t *testing.T) {
	good := recordedCubins(t)["sm_90a"]
	f, err := readCubin(good)
	if err != nil {
		t.Fatal(err)
	}
	inside := bytes.Clone(good)
	copy(inside[f.sections[slices.IndexFunc(f.sections, func(s elf.Section) bool { return s.Name == ".nv.compat" })].Offset:], "\x7fELF")
	for name, image := range map[string][]byte{
		".nv.host.call": bytes.Replace(good, []byte("\x00.nv.callgraph\x00"), []byte("\x00.nv.host.call\x00"), 1),
		".nv.compat":    inside,
	} {
		_, err := nvccOutput{Image: image}.read(NVCCBuild{Dir: t.TempDir(), Source: "k.cu", Entries: []string{"scale"}, Arch: "sm_90a"})
		refusal := new(output.CompileError)
		if want := "k.cu: section " + name + " of the cubin: it carries code for the host, which no kernel may bring"; !errors.As(err, &refusal) || refusal.Summary != want {
			t.Errorf("error %v (%T), want the refusal %q", err, err, want)
		}
	}
}

// Symbols, relocations and names that claim much take memory and time in proportion to the file.
func TestCubinsTakeLittleMemory(t *testing.T) {
	const symbols, relocations = 200_000, 200_000
	image := bytes.Clone(recordedCubins(t)["sm_89"])
	f, err := readCubin(image)
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	move := func(section string, size int) {
		i := slices.IndexFunc(f.sections, func(s elf.Section) bool { return s.Name == section })
		h := image[int(le.Uint64(image[40:]))+64*i:]
		le.PutUint64(h[24:], uint64(len(image)))
		le.PutUint64(h[32:], uint64(size))
		image = append(image, make([]byte, size)...)
	}
	move(".symtab", 24*symbols)
	move(".rel.nv.constant4", 16*relocations)
	names := len(image)
	move(".strtab", 60_000)
	for i := range 59_999 {
		image[names+i] = 'x'
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = machineCode(image)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, errNotCubin) {
		t.Errorf("error %v", err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
		t.Errorf("it took %d MiB", grown>>20)
	}
}
