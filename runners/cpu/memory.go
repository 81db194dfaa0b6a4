package cpu

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/kernelgate/runners/problem"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

const (
	alignment = 64
	guardSize = 256 // between arrays: a write beyond an array's end lands here and is seen
	guardByte = 0xC3
)

// A memory is what the worker shares with one child: slots, each with the
// arguments of one launch. The child may scribble anywhere in it; the worker
// compares with copies that the child never sees.
type memory struct {
	file *os.File
	data []byte
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
	// A child that shrinks the file would kill the worker with SIGBUS.
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

// A layout is where the arguments of one shape lie in a slot.
type layout struct {
	args    []problem.Arg
	offsets []int // of arrays, from the slot's start
	size    int   // of a slot
}

func layoutOf(args []problem.Arg) layout {
	l := layout{args: args, offsets: make([]int, len(args))}
	at := align(8*len(args)) + guardSize
	for i, a := range args {
		if a.Array() {
			l.offsets[i] = at
			at += align(a.Size()) + guardSize
		}
	}
	l.size = align(at)
	return l
}

func align(n int) int { return (n + alignment - 1) / alignment * alignment }

// fill writes one launch's arguments into a slot: inputs as given, outputs
// poisoned, guards around them.
func (l layout) fill(m *memory, slot int, args []problem.Arg) {
	s := m.data[slot : slot+l.size]
	for i := range s {
		s[i] = guardByte
	}
	for i, a := range args {
		word := s[8*i : 8*i+8]
		clear(word)
		if !a.Array() {
			copy(word, a.Bytes)
			continue
		}
		binary.LittleEndian.PutUint64(word, uint64(slot+l.offsets[i]))
		if array := l.array(m, slot, i); a.Reads() {
			copy(array, a.Bytes)
		} else {
			tensor.Poison(a.DType, array)
		}
	}
}

func (l layout) array(m *memory, slot, arg int) []byte {
	at := slot + l.offsets[arg]
	return m.data[at : at+l.args[arg].Size()]
}

// outputs copies what the kernel wrote, before anything else happens: a thread
// of the child that goes on writing is too late.
func (l layout) outputs(m *memory, slot int) [][]byte {
	out := make([][]byte, len(l.args))
	for i, a := range l.args {
		if a.Array() && a.Writes() {
			out[i] = bytes.Clone(l.array(m, slot, i))
		}
	}
	return out
}

// changed tells what the kernel wrote and must not: inputs by name, and memory
// outside its arguments. Everything that is not an output must still be what
// fill wrote, byte for byte.
func (l layout) changed(m *memory, slot int, args []problem.Arg) (inputs []string, outside bool) {
	at := 8 * len(args)
	guard := func(to int) {
		for _, b := range m.data[slot+at : slot+to] {
			outside = outside || b != guardByte
		}
	}
	for i, a := range args {
		if !a.Array() {
			continue
		}
		guard(l.offsets[i])
		at = l.offsets[i] + a.Size()
		if !a.Writes() && !bytes.Equal(l.array(m, slot, i), a.Bytes) {
			inputs = append(inputs, a.Name)
		}
	}
	guard(l.size)
	return inputs, outside
}
