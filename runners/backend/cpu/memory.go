package cpu

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/kernelgate/runners/tensor"
)

// A memory is shared by the worker and one child: slots, each with the arguments of one launch. The
// child may write anywhere in it; the worker compares with copies that the child never sees.
type memory struct {
	file *os.File
	data []byte
	used int // bytes from the start that the worker has written; zeros follow
}

func newMemory(size int) (*memory, error) {
	fd, err := unix.MemfdCreate("kernelgate", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("making shared memory: %w", err)
	}
	m := &memory{file: os.NewFile(uintptr(fd), "memory")}
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		m.close()
		return nil, fmt.Errorf("making %d bytes of shared memory: %w", size, err)
	}
	// A child that shrinks the file would kill the worker by SIGBUS.
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		m.close()
		return nil, fmt.Errorf("sealing shared memory: %w", err)
	}
	if m.data, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		m.close()
		return nil, fmt.Errorf("mapping shared memory: %w", err)
	}
	return m, nil
}

func (m *memory) close() {
	if m.data != nil {
		unix.Munmap(m.data)
	}
	m.file.Close()
}

// A layout says where the arguments of one launch are in a slot, behind a table of one word per
// argument: the offset of an array in the memory, or the bits of a scalar.
type layout struct{ tensor.Layout }

func layoutOf(args []tensor.Arg) layout { return layout{tensor.NewLayout(args, 8*len(args))} }

// image returns the content of a slot before its launch: arguments, table, poison and guards.
func (l layout) image(into []byte, slot int, args []tensor.Arg) {
	l.Fill(into, args)
	for i, a := range args {
		word := into[8*i : 8*i+8]
		clear(word)
		if a.Array() {
			binary.LittleEndian.PutUint64(word, uint64(slot+l.Offsets[i]))
		} else {
			copy(word, a.Bytes)
		}
	}
}

// load writes the images of one command's slots into the memory, and clears everything else, so
// that nothing of an earlier kernel remains.
func (m *memory) load(images [][]byte) {
	at := 0
	for _, image := range images {
		at += copy(m.data[at:], image)
	}
	if m.used > at {
		clear(m.data[at:m.used])
	}
	m.used = at
}

// reveal appends one image, and returns its offset.
func (m *memory) reveal(image []byte) (first int) {
	first = m.used
	m.used += copy(m.data[first:], image)
	return first
}

// beyond reports whether a kernel wrote behind the last slot.
func (m *memory) beyond() bool {
	zeros := make([]byte, 64<<10)
	for rest := m.data[m.used:]; len(rest) > 0; {
		n := min(len(rest), len(zeros))
		if !bytes.Equal(rest[:n], zeros[:n]) {
			return true
		}
		rest = rest[n:]
	}
	return false
}

// changed returns what a kernel wrote in a slot but must not have: inputs by name, and anything
// outside its arguments.
func (l layout) changed(slot, image []byte, args []tensor.Arg) (inputs []string, outside bool) {
	own := slices.Clone(args)
	for i, a := range own {
		if a.Array() {
			own[i].Bytes = l.Array(image, i)
		}
	}
	inputs, outside = l.Changed(slot, own)
	table := 8 * len(args)
	return inputs, outside || !bytes.Equal(slot[:table], image[:table])
}
