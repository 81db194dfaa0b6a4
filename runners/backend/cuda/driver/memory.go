package driver

import (
	"fmt"
	"runtime"
	"unsafe"
)

// A DevicePtr is an address in GPU memory. It is a number, never a Go pointer.
type DevicePtr uint64

// A Buffer is a range of GPU memory: an allocation or a part of one. Copying the struct copies no
// memory.
type Buffer struct {
	Ptr  DevicePtr
	Size int64 // bytes
}

// Slice returns the part of n bytes that starts at offset. It panics beyond the end, as slicing a
// Go slice does: a silent overrun on the GPU would corrupt neighbouring data.
func (b Buffer) Slice(offset, n int64) Buffer {
	if offset < 0 || n < 0 || offset > b.Size-n {
		panic(fmt.Sprintf("driver: slice [%d:+%d] of a GPU buffer of %d bytes", offset, n, b.Size))
	}
	return Buffer{b.Ptr + DevicePtr(offset), n}
}

// Alloc allocates GPU memory. Its content is undefined.
func (c *Context) Alloc(bytes int64) (Buffer, error) {
	var p DevicePtr
	if code := c.d.sym.cuMemAlloc.call(uintptr(unsafe.Pointer(&p)), uintptr(bytes)); code != success {
		return Buffer{}, c.d.newError(code, fmt.Sprintf("allocating %d bytes on %s", bytes, c.dev))
	}
	return Buffer{p, bytes}, nil
}

// Free frees memory from Alloc. It waits for work on the device.
func (c *Context) Free(b Buffer) error {
	return c.d.check(c.d.sym.cuMemFree.call(uintptr(b.Ptr)), fmt.Sprintf("freeing %d bytes on %s", b.Size, c.dev))
}

// ToDevice copies src to the start of dst, in order on the stream, and waits, so that no running
// copy ever uses Go memory after ToDevice has returned.
func (s *Stream) ToDevice(dst Buffer, src []byte) error {
	defer runtime.KeepAlive(src) // until the copy ends, not only until it is queued
	if err := s.toDevice(dst, src); err != nil {
		return err
	}
	return s.Synchronize()
}

// ToHost copies the start of src to dst, in order on the stream, and waits.
func (s *Stream) ToHost(dst []byte, src Buffer) error {
	defer runtime.KeepAlive(dst) // until the copy ends, not only until it is queued
	if err := s.toHost(dst, src); err != nil {
		return err
	}
	return s.Synchronize()
}

func (s *Stream) toDevice(dst Buffer, src []byte) error {
	if int64(len(src)) > dst.Size {
		return fmt.Errorf("copying %d bytes into a GPU buffer of %d bytes: allocate a larger one", len(src), dst.Size)
	}
	if code := s.d.sym.cuMemcpyHtoDAsync.call(uintptr(dst.Ptr),
		uintptr(unsafe.Pointer(unsafe.SliceData(src))), uintptr(len(src)), s.handle); code != success {
		return s.d.newError(code, fmt.Sprintf("copying %d bytes to the GPU", len(src)))
	}
	return nil
}

func (s *Stream) toHost(dst []byte, src Buffer) error {
	if int64(len(dst)) > src.Size {
		return fmt.Errorf("copying %d bytes out of a GPU buffer of %d bytes: ask for fewer", len(dst), src.Size)
	}
	if code := s.d.sym.cuMemcpyDtoHAsync.call(uintptr(unsafe.Pointer(unsafe.SliceData(dst))),
		uintptr(src.Ptr), uintptr(len(dst)), s.handle); code != success {
		return s.d.newError(code, fmt.Sprintf("copying %d bytes from the GPU", len(dst)))
	}
	return nil
}

// CopyDevice queues a copy of all of src to the start of dst, inside the GPU.
func (s *Stream) CopyDevice(dst, src Buffer) error {
	if src.Size > dst.Size {
		return fmt.Errorf("copying %d bytes into a GPU buffer of %d bytes: allocate a larger one", src.Size, dst.Size)
	}
	if code := s.d.sym.cuMemcpyDtoDAsync.call(uintptr(dst.Ptr), uintptr(src.Ptr), uintptr(src.Size), s.handle); code != success {
		return s.d.newError(code, fmt.Sprintf("copying %d bytes inside the GPU", src.Size))
	}
	return nil
}

// Fill8 queues a fill that sets every byte of b. 0xFF makes every float format a NaN.
func (s *Stream) Fill8(b Buffer, v uint8) error {
	if code := s.d.sym.cuMemsetD8Async.call(uintptr(b.Ptr), uintptr(v), uintptr(b.Size), s.handle); code != success {
		return s.d.newError(code, fmt.Sprintf("filling %d bytes on the GPU", b.Size))
	}
	return nil
}

// Fill32 queues a fill that sets every 32-bit word of b, whose size and address must be multiples
// of four.
func (s *Stream) Fill32(b Buffer, v uint32) error {
	if b.Size%4 != 0 {
		return fmt.Errorf("filling %d bytes on the GPU with 32-bit words: the size is not a multiple of four, use Fill8", b.Size)
	}
	if code := s.d.sym.cuMemsetD32Async.call(uintptr(b.Ptr), uintptr(v), uintptr(b.Size/4), s.handle); code != success {
		return s.d.newError(code, fmt.Sprintf("filling %d bytes on the GPU", b.Size))
	}
	return nil
}
