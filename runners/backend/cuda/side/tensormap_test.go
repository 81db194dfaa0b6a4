package side

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
)

func TestTile(t *testing.T) {
	for _, c := range []struct {
		name  string
		dtype manifest.DType
		from  manifest.Tile
		want  driver.TensorTile
	}{
		{"four axes", manifest.E4M3, manifest.Tile{Shape: []int{2, 8, 512, 64}, Box: []int{1, 1, 128, 64}, Strides: []int{262144, 32768, 64, 1}, ItemSize: 1, Swizzle: 64, Promotion: 128},
			driver.TensorTile{Type: driver.TensorUint8, Base: 4096, Dims: []uint64{64, 512, 8, 2}, Strides: []uint64{64, 32768, 262144}, Box: []uint32{64, 128, 1, 1},
				Swizzle: driver.Swizzle64B, Promotion: driver.Promote128B}},
		{"every second row", manifest.BF16, manifest.Tile{Shape: []int{8, 64}, Box: []int{4, 64}, Strides: []int{128, 1}, ItemSize: 2},
			driver.TensorTile{Type: driver.TensorBFloat16, Base: 4096, Dims: []uint64{64, 8}, Strides: []uint64{256}, Box: []uint32{64, 4}}},
		{"one axis", manifest.F32, manifest.Tile{Shape: []int{1000}, Box: []int{256}, Strides: []int{1}, ItemSize: 4, NaNFill: true},
			driver.TensorTile{Type: driver.TensorFloat32, Base: 4096, Dims: []uint64{1000}, Box: []uint32{256}, NaNFill: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, tile(c.dtype, c.from, 4096)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
