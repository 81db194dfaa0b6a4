package cpu

import (
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/kernelgate/runners/problem"
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

// A layout is where the arguments of one launch lie in a slot, with a table of
// one word per argument in front: the offset of an array in the memory, or the
// bits of a scalar.
type layout struct{ problem.Layout }

func layoutOf(args []problem.Arg) layout { return layout{problem.NewLayout(args, 8*len(args))} }

// fill writes one launch's arguments and their table into a slot.
func (l layout) fill(m *memory, slot int, args []problem.Arg) {
	s := m.data[slot : slot+l.Size]
	l.Fill(s, args)
	for i, a := range args {
		word := s[8*i : 8*i+8]
		clear(word)
		if a.Array() {
			binary.LittleEndian.PutUint64(word, uint64(slot+l.Offsets[i]))
		} else {
			copy(word, a.Bytes)
		}
	}
}

// outputs copies what the kernel wrote, before anything else happens: a thread
// of the child that goes on writing is too late.
func (l layout) outputs(m *memory, slot int) [][]byte { return l.Outputs(m.data[slot : slot+l.Size]) }

func (l layout) changed(m *memory, slot int, args []problem.Arg) (inputs []string, outside bool) {
	return l.Changed(m.data[slot:slot+l.Size], args)
}
