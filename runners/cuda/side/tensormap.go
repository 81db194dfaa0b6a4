package side

import (
	"fmt"

	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/runners/cuda/driver"
)

// The element formats of tensor maps. FP8 has none of its own: copies move
// bytes.
var tensorTypes = map[kernels.DType]driver.TensorType{
	kernels.E4M3: driver.TensorUint8, kernels.E5M2: driver.TensorUint8, kernels.I8: driver.TensorUint8, kernels.U8: driver.TensorUint8,
	kernels.F16: driver.TensorFloat16, kernels.BF16: driver.TensorBFloat16, kernels.F32: driver.TensorFloat32, kernels.F64: driver.TensorFloat64,
	kernels.Bool: driver.TensorUint8, kernels.I16: driver.TensorUint16, kernels.U16: driver.TensorUint16, kernels.U32: driver.TensorUint32, kernels.U64: driver.TensorUint64,
	kernels.I32: driver.TensorInt32, kernels.I64: driver.TensorInt64,
}

var swizzles = map[int]driver.TensorSwizzle{
	0: driver.SwizzleNone, 32: driver.Swizzle32B, 64: driver.Swizzle64B, 128: driver.Swizzle128B,
}

var promotions = map[int]driver.TensorPromotion{
	0: driver.PromoteNone, 64: driver.Promote64B, 128: driver.Promote128B, 256: driver.Promote256B,
}

// tile turns a manifest's tile, outermost axis first, into the driver's.
func tile(dtype kernels.DType, t kernels.Tile, base driver.DevicePtr) driver.TensorTile {
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

// tensorMap is the descriptor of an argument that lies at base. The manifest is
// the base's, so one that the driver refuses is no failure of the kernel.
func (k *Kernel) tensorMap(a *kernels.Argument, dims kernels.Dims, base driver.DevicePtr) (driver.TensorMap, error) {
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
