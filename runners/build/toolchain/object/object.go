// Package object reads the object file that a C compiler made of an untrusted source. It refuses what could run outside a
// call of the kernel, writes a new file from the rest, and hashes what is loaded.
package object

import (
	"crypto/sha256"
	"fmt"

	"github.com/kernelgate/kernelgate/runners/build/toolchain/elf"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
)

// An Object is a compiled source, reduced to what may be linked.
type Object struct {
	// Image is a new object file with the same machine code: the loaded sections, what they refer
	// to, and one name, EntrySymbol. Link only this file. The compiler's own file can ask a linker
	// for libraries, for code that runs before main, or to replace functions of the C library, and
	// a linker may read it differently than this package.
	Image    []byte
	Code     string   // hash of Image: equal hashes are equal machine code
	Entry    string   // the entry's symbol in the compiler's own file
	CodeSize int      // bytes of instructions
	Globals  []string // writable data that outlives a call
}

// EntrySymbol is the entry's name in an Object's Image. So an entry with the name of a function of
// the C library does not replace that function.
const EntrySymbol = "kernelgate_entry"

const (
	maxObject = 32 << 20  // bytes of the compiler's file
	maxLoaded = 256 << 20 // bytes of all sections in memory, zeroed ones included
	maxPieces = 32 << 10  // sections
	maxLinks  = 1 << 20   // relocations
	maxImport = 4096      // functions and variables that an object may import from libraries
	maxAlign  = 64 << 10
)

// Read reads a compiler's object file of a C or C++ source. It refuses everything that would need a
// trusted linker or loader; then the error is a *CompileError, because the source is at fault.
//
// Code is equal if everything that is loaded is equal: contents, flags, alignments and sizes of all
// allocated sections in their order, every relocation with the place or the name that it refers to,
// and the entry. Debugging sections, the compiler's name, the names of sections and of defined
// symbols, and unused symbols do not count: they do not get into Image.
func Read(file, entry string) (Object, error) {
	image, err := output.ReadFile(file, maxObject)
	if err != nil {
		return Object{}, err
	}
	return parseObject(image, entry)
}

func parseObject(image []byte, entry string) (Object, error) {
	f, err := readObjectFile(image)
	if err != nil {
		return Object{}, err
	}
	l, err := f.linkable(entry)
	if err != nil {
		return Object{}, err
	}
	o := Object{Image: l.write(), Entry: l.entry, Globals: f.globals()}
	o.Code = fmt.Sprintf("%x", sha256.Sum256(o.Image))
	for _, s := range l.sections {
		if s.Flags&elf.SectionRuns != 0 {
			o.CodeSize += len(s.Data)
		}
	}
	return o, nil
}
