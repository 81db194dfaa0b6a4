package side

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
)

// tritonPromotion is the L2 promotion that Triton's own launcher uses, in bytes.
const tritonPromotion = 128

// An encoder makes a tensor map of a tile.
type encoder func(driver.TensorTile) (driver.TensorMap, error)

// described returns the parameters that a Triton kernel receives for an array at base that it takes
// as a tensor descriptor. They are those of make_tensordesc_arg in Triton's launcher: either a
// tensor map, or the address, shape, strides and flags; then the shape and the strides again.
func described(dtype manifest.DType, t manifest.Tile, d toolchain.Descriptor, base driver.DevicePtr, encode encoder) ([][]byte, error) {
	switch {
	case len(t.Shape) != d.Axes || len(t.Strides) != d.Axes:
		return nil, fmt.Errorf("the code takes %d axes, and the manifest has %d", d.Axes, len(t.Shape))
	case d.Map == nil && d.Flags == 0 && t.NaNFill:
		return nil, errors.New("this Triton does not fill with NaN for this GPU (write fill: zero, or install a newer one)")
	}
	var all [][]byte
	wide := func(numbers []int) {
		for _, n := range numbers {
			all = append(all, binary.NativeEndian.AppendUint64(nil, uint64(n)))
		}
	}
	if d.Map != nil {
		t.Box, t.Swizzle, t.Promotion = d.Map.Box, d.Map.Swizzle, tritonPromotion
		if len(t.Box) != d.Axes {
			return nil, fmt.Errorf("the code takes boxes of %d axes, and the manifest has %d", len(t.Box), d.Axes)
		}
		m, err := encode(tile(dtype, t, base))
		if err != nil {
			return nil, err
		}
		all = append(all, m[:])
	} else {
		all = append(all, binary.NativeEndian.AppendUint64(nil, uint64(base)))
		wide(t.Shape)
		wide(t.Strides)
		for i := range d.Flags {
			flag := byte(0)
			if i == 0 && t.NaNFill {
				flag = 1
			}
			all = append(all, []byte{flag})
		}
	}
	for _, n := range t.Shape {
		if n > math.MaxInt32 {
			return nil, fmt.Errorf("an axis of %d does not fit the 32 bits that the code takes", n)
		}
		all = append(all, binary.NativeEndian.AppendUint32(nil, uint32(n)))
	}
	wide(t.Strides)
	return all, nil
}

// descriptor calls described for an argument of a launch.
func (k *Kernel) descriptor(i int, d toolchain.Descriptor, p placed) ([][]byte, error) {
	if i >= len(k.manifest.Arguments) || k.manifest.Arguments[i].TensorMap == nil {
		return nil, fmt.Errorf("the code takes argument %d as a tensor descriptor, and the manifest does not (write its tensor_map)", i)
	}
	a := &k.manifest.Arguments[i]
	t, err := k.manifest.TileOf(a, p.dims, k.built.Toggles)
	var values [][]byte
	if err == nil {
		values, err = described(a.DType, t, d, driver.DevicePtr(p.address(i)), k.ctx.EncodeTensorMap)
	}
	if err != nil {
		return nil, fmt.Errorf("tensor descriptor of argument %s: %w", a.Name, err)
	}
	return values, nil
}

// The element formats of tensor maps. FP8 has no format there: the copies move bytes.
var tensorTypes = map[manifest.DType]driver.TensorType{
	manifest.E4M3: driver.TensorUint8, manifest.E5M2: driver.TensorUint8, manifest.I8: driver.TensorUint8, manifest.U8: driver.TensorUint8,
	manifest.F16: driver.TensorFloat16, manifest.BF16: driver.TensorBFloat16, manifest.F32: driver.TensorFloat32, manifest.F64: driver.TensorFloat64,
	manifest.Bool: driver.TensorUint8, manifest.I16: driver.TensorUint16, manifest.U16: driver.TensorUint16, manifest.U32: driver.TensorUint32, manifest.U64: driver.TensorUint64,
	manifest.I32: driver.TensorInt32, manifest.I64: driver.TensorInt64,
}

var swizzles = map[int]driver.TensorSwizzle{
	0: driver.SwizzleNone, 32: driver.Swizzle32B, 64: driver.Swizzle64B, 128: driver.Swizzle128B,
}

var promotions = map[int]driver.TensorPromotion{
	0: driver.PromoteNone, 64: driver.Promote64B, 128: driver.Promote128B, 256: driver.Promote256B,
}

// tile converts a manifest's tile, outermost axis first, into the driver's.
func tile(dtype manifest.DType, t manifest.Tile, base driver.DevicePtr) driver.TensorTile {
	out := driver.TensorTile{Type: tensorTypes[dtype], Base: base, Swizzle: swizzles[t.Swizzle], Promotion: promotions[t.Promotion], NaNFill: t.NaNFill}
	for i := len(t.Shape) - 1; i >= 0; i-- {
		out.Dims = append(out.Dims, uint64(t.Shape[i]))
		out.Box = append(out.Box, uint32(t.Box[i]))
		if i > 0 {
			out.Strides = append(out.Strides, uint64(t.Strides[i-1])*uint64(t.ItemSize))
		}
	}
	return out
}

// tensorMap returns the descriptor of an argument that lies at base. The manifest comes from the
// base branch, so a descriptor that the driver refuses is no failure of the kernel.
func (k *Kernel) tensorMap(a *manifest.Argument, dims manifest.Dims, base driver.DevicePtr) (driver.TensorMap, error) {
	t, err := k.manifest.TileOf(a, dims, k.built.Toggles)
	if err != nil {
		return driver.TensorMap{}, fmt.Errorf("tensor map of argument %s: %w", a.Name, err)
	}
	m, err := k.ctx.EncodeTensorMap(tile(a.DType, t, base))
	if err != nil {
		return driver.TensorMap{}, fmt.Errorf("tensor map of argument %s (see its box in kernel.yaml): %w", a.Name, err)
	}
	return m, nil
}
