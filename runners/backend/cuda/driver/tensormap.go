package driver

import (
	"fmt"
	"slices"
	"unsafe"
)

// A TensorMap is a CUtensorMap: the opaque descriptor by which the bulk copies of Hopper and later
// GPUs find a tile of a tensor. Pass it with [Args.TensorMap].
type TensorMap [128]byte

// A TensorType is a CUtensorMapDataType.
type TensorType int32

const (
	TensorUint8    TensorType = 0
	TensorUint16   TensorType = 1
	TensorUint32   TensorType = 2
	TensorInt32    TensorType = 3
	TensorUint64   TensorType = 4
	TensorInt64    TensorType = 5
	TensorFloat16  TensorType = 6
	TensorFloat32  TensorType = 7
	TensorFloat64  TensorType = 8
	TensorBFloat16 TensorType = 9
)

// A TensorSwizzle is a CUtensorMapSwizzle: how a tile's rows are spread over the banks of shared
// memory.
type TensorSwizzle int32

const (
	SwizzleNone TensorSwizzle = 0
	Swizzle32B  TensorSwizzle = 1
	Swizzle64B  TensorSwizzle = 2
	Swizzle128B TensorSwizzle = 3
)

// A TensorPromotion is a CUtensorMapL2promotion: how many bytes L2 fetches at once.
type TensorPromotion int32

const (
	PromoteNone TensorPromotion = 0
	Promote64B  TensorPromotion = 1
	Promote128B TensorPromotion = 2
	Promote256B TensorPromotion = 3
)

// A TensorTile describes a tensor in GPU memory and the box that one bulk copy moves. Dimensions
// are listed from the innermost, contiguous one outwards.
type TensorTile struct {
	Type    TensorType
	Base    DevicePtr // a multiple of 16
	Dims    []uint64  // elements; one to five dimensions
	Strides []uint64  // bytes, of every dimension except the innermost; multiples of 16
	Box     []uint32  // elements, at most 256 in each dimension

	Swizzle   TensorSwizzle
	Promotion TensorPromotion
	// NaNFill fills elements outside the tensor with NaN instead of zero.
	NaNFill bool
}

// EncodeTensorMap builds the descriptor of a tile. The driver checks the sizes; for a bad one it
// returns invalidValue.
func (c *Context) EncodeTensorMap(t TensorTile) (TensorMap, error) {
	rank := len(t.Dims)
	switch {
	case rank < 1 || rank > 5:
		return TensorMap{}, fmt.Errorf("encoding a tensor map of %d dimensions: it must have one to five", rank)
	case len(t.Strides) != rank-1 || len(t.Box) != rank:
		return TensorMap{}, fmt.Errorf("encoding a tensor map of %d dimensions: give %d strides and %d box sizes, not %d and %d",
			rank, rank-1, rank, len(t.Strides), len(t.Box))
	case c.d.sym.cuTensorMapEncodeTiled == 0:
		return TensorMap{}, c.d.missing("cuTensorMapEncodeTiled", "encoding a tensor map")
	}
	// The driver requires that the descriptor is aligned to 64 bytes (128 from CUDA 13 on).
	var room [len(TensorMap{}) + blockAlign - 1]byte
	skip := -uintptr(unsafe.Pointer(&room)) & (blockAlign - 1)
	const noInterleave = 0
	nan := uintptr(0)
	if t.NaNFill {
		nan = 1
	}
	steps := [5]uint32{1, 1, 1, 1, 1}
	// A tensor of rank one has no strides, but the driver still requires a valid address.
	strides := slices.Concat(t.Strides, []uint64{0})
	code := c.d.sym.cuTensorMapEncodeTiled.call(
		uintptr(unsafe.Pointer(&room[skip])), uintptr(t.Type), uintptr(rank), uintptr(t.Base),
		uintptr(unsafe.Pointer(&t.Dims[0])), uintptr(unsafe.Pointer(&strides[0])),
		uintptr(unsafe.Pointer(&t.Box[0])), uintptr(unsafe.Pointer(&steps[0])),
		noInterleave, uintptr(t.Swizzle), uintptr(t.Promotion), nan)
	if code != success {
		return TensorMap{}, c.d.newError(code, fmt.Sprintf("encoding a tensor map of %d dimensions", rank))
	}
	return TensorMap(room[skip:]), nil
}

// missing returns the error for an entry point that this driver is too old to have.
func (d *Driver) missing(name, op string) *Error {
	return &Error{
		Code: notSupported,
		Name: notSupported.String(),
		Text: "this driver has no " + name + ": upgrade the NVIDIA driver",
		Op:   op,
	}
}
