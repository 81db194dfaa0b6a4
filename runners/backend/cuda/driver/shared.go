package driver

import (
	"fmt"
	"os"
	"unsafe"
)

// A Shared is GPU memory that several processes can map, each at a different address in its own
// context. Kernels of one process cannot reach memory that another process has mapped, unless that
// process exported it.
type Shared struct {
	handle uint64
	size   int64
}

// allocationProp is CUmemAllocationProp.
type allocationProp struct {
	kind, handles int32
	location      memLocation
	_             uintptr
	_             [8]byte
}

type memLocation struct{ kind, id int32 }

type accessDesc struct {
	location memLocation
	flags    int32
}

const (
	// CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR and
	// CU_MEM_LOCATION_TYPE_DEVICE.
	pinned, posixFD, onDevice = 1, 1, 1
	readWrite                 = 3 // CU_MEM_ACCESS_FLAGS_PROT_READWRITE
)

func (c *Context) location() memLocation { return memLocation{onDevice, c.dev.handle} }

// NewShared allocates at least this many bytes of GPU memory that can be exported.
func (c *Context) NewShared(bytes int64) (Shared, error) {
	prop := allocationProp{kind: pinned, handles: posixFD, location: c.location()}
	var step uint64
	if code := c.d.sym.cuMemGetAllocationGranularity.call(uintptr(unsafe.Pointer(&step)), uintptr(unsafe.Pointer(&prop)), 0); code != success {
		return Shared{}, c.d.newError(code, "asking for the granularity of shared memory on "+c.dev.String())
	}
	s := Shared{size: (bytes + int64(step) - 1) / int64(step) * int64(step)}
	if code := c.d.sym.cuMemCreate.call(uintptr(unsafe.Pointer(&s.handle)), uintptr(s.size), uintptr(unsafe.Pointer(&prop)), 0); code != success {
		return Shared{}, c.d.newError(code, fmt.Sprintf("allocating %d bytes of shared memory on %s", s.size, c.dev))
	}
	return s, nil
}

// Export returns a file from which another process can import the memory.
func (c *Context) Export(s Shared) (*os.File, error) {
	var fd int32
	if code := c.d.sym.cuMemExportToShareableHandle.call(uintptr(unsafe.Pointer(&fd)), uintptr(s.handle), posixFD, 0); code != success {
		return nil, c.d.newError(code, "exporting shared memory")
	}
	return os.NewFile(uintptr(fd), "gpu memory"), nil
}

// Import imports memory that another process exported. size is its size there.
func (c *Context) Import(f *os.File, size int64) (Shared, error) {
	s := Shared{size: size}
	// The descriptor is passed as the pointer's value, not behind the pointer.
	err := c.d.check(c.d.sym.cuMemImportFromShareableHandle.call(uintptr(unsafe.Pointer(&s.handle)), f.Fd(), posixFD), "importing shared memory")
	return s, err
}

// Map maps the memory into this context's address space for reading and writing, near the hint if
// that range is free. With hint 0 the driver chooses the address.
func (c *Context) Map(s Shared, hint DevicePtr) (Buffer, error) {
	at, err := c.Reserve(s.size, hint)
	if err != nil {
		return Buffer{}, err
	}
	return c.MapAt(s, at)
}

// Reserve reserves addresses at which nothing is mapped, near the hint if that range is free. A
// kernel that touches them faults until MapAt has mapped memory there.
func (c *Context) Reserve(size int64, hint DevicePtr) (at DevicePtr, err error) {
	code := c.d.sym.cuMemAddressReserve.call(uintptr(unsafe.Pointer(&at)), uintptr(size), 0, uintptr(hint), 0)
	return at, c.d.check(code, fmt.Sprintf("reserving addresses for %d bytes", size))
}

// MapAt is Map at addresses from Reserve.
func (c *Context) MapAt(s Shared, at DevicePtr) (Buffer, error) {
	if code := c.d.sym.cuMemMap.call(uintptr(at), uintptr(s.size), 0, uintptr(s.handle), 0); code != success {
		return Buffer{}, c.d.newError(code, fmt.Sprintf("mapping %d bytes of shared memory", s.size))
	}
	access := accessDesc{c.location(), readWrite}
	if code := c.d.sym.cuMemSetAccess.call(uintptr(at), uintptr(s.size), uintptr(unsafe.Pointer(&access)), 1); code != success {
		return Buffer{}, c.d.newError(code, fmt.Sprintf("opening %d bytes of shared memory", s.size))
	}
	return Buffer{at, s.size}, nil
}

// Unmap removes memory from the address space. Its addresses stay reserved.
func (c *Context) Unmap(b Buffer) error {
	return c.d.check(c.d.sym.cuMemUnmap.call(uintptr(b.Ptr), uintptr(b.Size)), fmt.Sprintf("unmapping %d bytes of shared memory", b.Size))
}

// Size returns the number of bytes.
func (s Shared) Size() int64 { return s.size }
