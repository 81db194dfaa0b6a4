package pyref

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// maxArrays bounds the arrays of one case. The memory is not used before something is written there.
const maxArrays = 16 << 30

// A Memory holds the arrays of one case: the process of a reference and whoever asks it both map it, so that no array passes
// through a pipe. Its size is fixed, so that the reference can neither use more memory nor take away what is being read.
type Memory struct {
	file *os.File
	data []byte // the part that is mapped
}

// newMemory makes a memory that other processes may inherit.
func newMemory() (*Memory, error) {
	fd, err := unix.MemfdCreate("arrays", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("making memory for the reference's arrays: %w", err)
	}
	m := OpenMemory(fd)
	if err = unix.Ftruncate(fd, maxArrays); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err != nil {
		m.file.Close()
		return nil, fmt.Errorf("making memory for the reference's arrays: %w", err)
	}
	return m, nil
}

// OpenMemory is the memory that a process has inherited as a descriptor.
func OpenMemory(fd int) *Memory { return &Memory{file: os.NewFile(uintptr(fd), "arrays")} }

// File is what another process inherits.
func (m *Memory) File() *os.File { return m.file }

// room maps the first so many bytes.
func (m *Memory) room(size int) ([]byte, error) {
	if size > maxArrays {
		return nil, &Mistake{Text: fmt.Sprintf("would need %.3g GiB for the arrays of one case, and has %d (make the shape smaller)", float64(size)/(1<<30), maxArrays>>30)}
	}
	if size > len(m.data) {
		if err := m.unmap(); err != nil {
			return nil, err
		}
		data, err := unix.Mmap(int(m.file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return nil, fmt.Errorf("mapping the reference's arrays: %w", err)
		}
		m.data = data
	}
	return m.data[:size], nil
}

func (m *Memory) unmap() error {
	if m.data == nil {
		return nil
	}
	err := unix.Munmap(m.data)
	m.data = nil
	if err != nil {
		return fmt.Errorf("unmapping the reference's arrays: %w", err)
	}
	return nil
}

func (m *Memory) close() error {
	if err := m.unmap(); err != nil {
		return err
	}
	return m.file.Close()
}
