package toolchain

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"strings"
)

// An Object is what an object file says of its machine code.
type Object struct {
	Code     string   // hash of everything that runs: equal hashes are equal machine code
	CodeSize int      // bytes of instructions
	Globals  []string // writable data that outlives a call
}

// ReadObject reads an ELF object file. Debugging sections, the compiler's
// name and symbols that nothing refers to are no part of the hash: a comment
// in the source does not change the code.
func ReadObject(file string) (Object, error) {
	f, err := elf.Open(file)
	if err != nil {
		return Object{}, fmt.Errorf("reading the object file: %w", err)
	}
	defer f.Close()
	var o Object
	hash := sha256.New()
	for _, s := range f.Sections {
		relocations := (s.Type == elf.SHT_RELA || s.Type == elf.SHT_REL) && allocated(f, s.Info)
		if s.Flags&elf.SHF_ALLOC == 0 && !relocations || strings.HasPrefix(s.Name, ".note") || s.Name == ".eh_frame" || s.Name == ".rela.eh_frame" {
			continue
		}
		if s.Flags&elf.SHF_EXECINSTR != 0 {
			o.CodeSize += int(s.Size)
		}
		fmt.Fprintf(hash, "%s %d %d\n", s.Name, s.Type, s.Size)
		if s.Type == elf.SHT_NOBITS {
			continue
		}
		data, err := s.Data()
		if err != nil {
			return Object{}, fmt.Errorf("reading section %s of the object file: %w", s.Name, err)
		}
		hash.Write(data)
	}
	o.Code = hex.EncodeToString(hash.Sum(nil))
	symbols, err := f.Symbols()
	if err != nil {
		return Object{}, fmt.Errorf("reading the object file's symbols: %w", err)
	}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_OBJECT && int(s.Section) < len(f.Sections) && f.Sections[s.Section].Flags&elf.SHF_WRITE != 0 {
			o.Globals = append(o.Globals, fmt.Sprintf("%s (%d B)", s.Name, s.Size))
		}
	}
	return o, nil
}

func allocated(f *elf.File, section uint32) bool {
	return int(section) < len(f.Sections) && f.Sections[section].Flags&elf.SHF_ALLOC != 0
}
