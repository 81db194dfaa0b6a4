package driver

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"unsafe"
)

// blockAlign is the strictest alignment that a parameter can need: a tensor map's.
const blockAlign = 128

// Args are a kernel's parameters, in the order of its declaration. The zero value is an empty list.
// The methods append and return the list, so that calls chain:
//
//	args := new(driver.Args).Pointer(x.Ptr).Pointer(y.Ptr).Int32(n)
//
// A list can be launched any number of times: the driver copies the values on each launch, and on
// each capture into a graph. Two goroutines must not use a list at the same time.
type Args struct {
	data   []byte  // the values, each at an offset that is a multiple of its alignment
	params []Param // the place of each value in data
	block  []byte  // data at its final, aligned address; nil until sealed
	values []unsafe.Pointer
}

// A Param is the place of one parameter: in a list of arguments, or in the kernel's parameter
// space.
type Param struct {
	Offset int
	Size   int
}

// Pointer appends an address in GPU memory.
func (a *Args) Pointer(p DevicePtr) *Args { return a.Uint64(uint64(p)) }

// Int32 appends an int.
func (a *Args) Int32(v int32) *Args {
	return a.raw(binary.NativeEndian.AppendUint32(nil, uint32(v)), 4)
}

// Uint64 appends an unsigned long long.
func (a *Args) Uint64(v uint64) *Args { return a.raw(binary.NativeEndian.AppendUint64(nil, v), 8) }

// TensorMap appends a descriptor that the kernel takes as a
// const __grid_constant__ CUtensorMap.
func (a *Args) TensorMap(m TensorMap) *Args { return a.raw(m[:], blockAlign) }

// Bytes appends any other value, such as a struct or a half, as it lies in memory. align is its
// alignment in C, a power of two of at most 128. Bytes panics on any other alignment and on an
// empty value: those are mistakes in the program, not in its input.
func (a *Args) Bytes(v []byte, align int) *Args {
	if len(v) == 0 || align < 1 || align > blockAlign || align&(align-1) != 0 {
		panic(fmt.Sprintf("driver: a parameter of %d bytes aligned to %d", len(v), align))
	}
	return a.raw(v, align)
}

func (a *Args) raw(v []byte, align int) *Args {
	offset := (len(a.data) + align - 1) &^ (align - 1)
	a.data = append(a.data, make([]byte, offset-len(a.data))...)
	a.data = append(a.data, v...)
	a.params = append(a.params, Param{offset, len(v)})
	a.block = nil
	return a
}

// seal gives the values their final addresses and returns the array of pointers to them that a
// launch takes, or nil if there are no parameters.
func (a *Args) seal() *unsafe.Pointer {
	if len(a.params) == 0 {
		return nil
	}
	if a.block == nil {
		room := make([]byte, len(a.data)+blockAlign-1)
		skip := int(-uintptr(unsafe.Pointer(&room[0])) & (blockAlign - 1))
		a.block = room[skip : skip+len(a.data)]
		copy(a.block, a.data)
		a.values = make([]unsafe.Pointer, len(a.params))
		for i, p := range a.params {
			a.values[i] = unsafe.Pointer(&a.block[p.Offset])
		}
	}
	return &a.values[0]
}

// pin stops the garbage collector from moving the values that the array from seal points to, while
// C follows the pointers in it.
func (a *Args) pin(p *runtime.Pinner) {
	if len(a.params) > 0 {
		p.Pin(&a.block[0])
	}
}

// check compares the list with the kernel's declaration. Without this check the driver would read
// past a value that is too short, into the worker's memory.
func (a *Args) check(want []Param) error {
	if len(a.params) != len(want) {
		return fmt.Errorf("the kernel takes %d parameters and %d were given: compare the manifest's arguments with the kernel's declaration",
			len(want), len(a.params))
	}
	for i, w := range want {
		if got := a.params[i].Size; got != w.Size {
			return fmt.Errorf("parameter %d is %d bytes and the kernel declares %d: compare the manifest's arguments with the kernel's declaration",
				i, got, w.Size)
		}
	}
	return nil
}
