package side

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/runners/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/toolchain"
)

// tritonPromotion is what Triton's own launcher has the L2 fetch at once.
const tritonPromotion = 128

// An encoder makes a tensor map of a tile.
type encoder func(driver.TensorTile) (driver.TensorMap, error)

// described is what a kernel of Triton is passed for an array at base that it takes as a tensor descriptor, as make_tensordesc_arg of
// Triton's launcher has it: a tensor map, or the address, shape, strides and flags; then the shape and the strides once more.
func described(dtype kernels.DType, t kernels.Tile, d toolchain.Descriptor, base driver.DevicePtr, encode encoder) ([][]byte, error) {
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

// descriptor is described for an argument of a launch.
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
