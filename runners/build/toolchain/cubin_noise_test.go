package toolchain

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/kernelgate/kernelgate/runners/build/toolchain/elf"
)

// A section that is added to a cubin shows in the hash, or the cubin is refused, whatever the section is called and whatever kind
// it claims to be. Only debugging sections of known names may come and go.
func TestHiddenSections(t *testing.T) {
	const kernel = "scale"
	noInfo := func(*cubinFile) uint32 { return 0 }
	numberOf := func(name string) func(*cubinFile) uint32 {
		return func(f *cubinFile) uint32 {
			return uint32(slices.IndexFunc(f.sections, func(s elf.Section) bool { return s.Name == name }))
		}
	}
	for arch, image := range recordedCubins(t) {
		before, err := machineCode(image)
		if err != nil {
			t.Fatal(err)
		}
		f, err := readCubin(image)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name   string
			kind   uint32
			info   func(*cubinFile) uint32
			unseen bool
		}{
			{".text.k2", elf.SectionStrings, noInfo, false},
			{".nv.info.k2", elf.SectionStrings, noInfo, false},
			{".nv.constant3.k2", elf.SectionStrings, noInfo, false},
			{".text." + kernel, elf.SectionStrings, noInfo, false}, // twice
			{".strtab", elf.SectionStrings, noInfo, false},         // twice
			{".strtab2", elf.SectionStrings, noInfo, false},
			{".rela.text.k2", elf.SectionRela, numberOf(".strtab"), false},
			{".rela.text.k2", elf.SectionRela, numberOf(".shstrtab"), false},
			{".rela.text.k2", elf.SectionRela, numberOf(".debug_frame"), false},
			{".debug_code", elf.SectionBits, noInfo, false},
			{".nv_debug_code", elf.SectionBits, noInfo, false},
			{".debug_str", elf.SectionStrings, noInfo, false},
			{".debug_macinfo", sectionInfo, noInfo, false},
			{".note.nv.tkinfo.k2", elf.SectionNote, noInfo, false},
			{".debug_macinfo", elf.SectionBits, noInfo, true},
			{".nv.merc.debug_macinfo", elf.SectionBits, noInfo, true},
		} {
			if c.unseen && slices.ContainsFunc(f.sections, func(s elf.Section) bool { return s.Name == c.name }) {
				continue
			}
			after, err := machineCode(withSection(t, image, c.name, c.kind, c.info(f)))
			if c.unseen && (err != nil || after != before) || !c.unseen && err == nil && after == before {
				t.Errorf("%s: %s of kind %#x: the same hash %v, %v", arch, c.name, c.kind, after == before, err)
			}
		}
	}
}

// withSection adds a section of 48 bytes to a cubin.
func withSection(t *testing.T, image []byte, name string, kind, info uint32) []byte {
	t.Helper()
	le := binary.LittleEndian
	f, err := readCubin(image)
	if err != nil {
		t.Fatal(err)
	}
	out := bytes.Clone(image)
	pad := func() {
		for len(out)%16 != 0 {
			out = append(out, 0)
		}
	}
	start, count, names := le.Uint64(out[40:]), int(le.Uint16(out[60:])), int(le.Uint16(out[62:]))
	headers := bytes.Clone(out[start : start+uint64(count)*64])
	table := bytes.Clone(f.sections[names].Data)
	at := uint32(len(table))
	table = append(append(table, name...), 0)
	pad()
	le.PutUint64(headers[names*64+24:], uint64(len(out)))
	le.PutUint64(headers[names*64+32:], uint64(len(table)))
	out = append(out, table...)
	pad()
	header := make([]byte, 64)
	le.PutUint32(header, at)
	le.PutUint32(header[4:], kind)
	le.PutUint64(header[24:], uint64(len(out)))
	le.PutUint64(header[32:], 48)
	le.PutUint32(header[44:], info)
	le.PutUint64(header[48:], 4)
	out = append(out, bytes.Repeat([]byte{0x41}, 48)...)
	pad()
	le.PutUint64(out[40:], uint64(len(out)))
	le.PutUint16(out[60:], uint16(count+1))
	return append(append(out, headers...), header...)
}
