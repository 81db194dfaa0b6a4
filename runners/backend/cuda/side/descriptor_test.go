package side

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
)

// numbers returns the values of parameters; it shows a tensor map as a word.
func numbers(values [][]byte) []any {
	var all []any
	for _, v := range values {
		switch len(v) {
		case 1:
			all = append(all, v[0])
		case 4:
			all = append(all, binary.NativeEndian.Uint32(v))
		case 8:
			all = append(all, binary.NativeEndian.Uint64(v))
		default:
			all = append(all, strings.TrimRight(string(v), "\x00"))
		}
	}
	return all
}

// TestDescribed checks that a descriptor is passed as Triton's launcher passes it, in
// make_tensordesc_arg and fill_tma_descriptor.
func TestDescribed(t *testing.T) {
	// Every second row of 64 of a larger array, in blocks of 128 × 64 that Triton moves in two
	// parts.
	from := manifest.Tile{Shape: []int{100, 64}, Box: []int{128, 64}, Strides: []int{128, 1}, ItemSize: 4, NaNFill: true}
	var encoded driver.TensorTile
	encode := func(tile driver.TensorTile) (driver.TensorMap, error) {
		encoded = tile
		m := driver.TensorMap{}
		copy(m[:], "map")
		return m, nil
	}
	u64, u32 := func(n uint64) any { return n }, func(n uint32) any { return n }
	axes := []any{u32(100), u32(64), u64(128), u64(1)}
	address := []any{u64(4096), u64(100), u64(64), u64(128), u64(1)}
	for name, test := range map[string]struct {
		d    toolchain.Descriptor
		want []any
	}{
		"a map":     {toolchain.Descriptor{Axes: 2, Map: &toolchain.Map{Box: []int{128, 32}, Swizzle: 128}}, append([]any{"map"}, axes...)},
		"one flag":  {toolchain.Descriptor{Axes: 2, Flags: 1}, append(append(address[:5:5], byte(1)), axes...)},
		"two flags": {toolchain.Descriptor{Axes: 2, Flags: 2}, append(append(address[:5:5], byte(1), byte(0)), axes...)},
	} {
		t.Run(name, func(t *testing.T) {
			encoded = driver.TensorTile{}
			got, err := described(manifest.F32, from, test.d, 4096, encode)
			if diff := cmp.Diff(test.want, numbers(got)); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			want := driver.TensorTile{}
			if test.d.Map != nil {
				want = driver.TensorTile{
					Type: driver.TensorFloat32, Base: 4096, Dims: []uint64{64, 100}, Strides: []uint64{512}, Box: []uint32{32, 128},
					Swizzle: driver.Swizzle128B, Promotion: driver.Promote128B, NaNFill: true,
				}
			}
			if diff := cmp.Diff(want, encoded); diff != "" {
				t.Errorf("map (-want +got):\n%s", diff)
			}
		})
	}
	for want, d := range map[string]toolchain.Descriptor{
		"the code takes 3 axes, and the manifest has 2":          {Axes: 3, Flags: 1},
		"the code takes boxes of 1 axes, and the manifest has 2": {Axes: 2, Map: &toolchain.Map{Box: []int{64}}},
		"does not fill with NaN":                                 {Axes: 2},
		"no room":                                                {Axes: 2, Map: &toolchain.Map{Box: []int{64, 32}}},
	} {
		refuse := func(driver.TensorTile) (driver.TensorMap, error) { return driver.TensorMap{}, errors.New("no room") }
		if _, err := described(manifest.F32, from, d, 4096, refuse); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want …%s…", err, want)
		}
	}
	from.Shape[0], from.NaNFill = 1<<31, false
	if _, err := described(manifest.F32, from, toolchain.Descriptor{Axes: 2}, 4096, encode); err == nil || !strings.Contains(err.Error(), "does not fit the 32 bits") {
		t.Errorf("a long axis: %v", err)
	}
}
