package side

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
)

// launchers returns the Python with Triton, and the folder of every Triton that it has or that
// `make setup` has fetched.
func launchers(t *testing.T) (python string, folders []string) {
	t.Helper()
	found, err := toolchain.FindTriton(t.Context(), os.Getenv)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	own := filepath.Dir(found.Folder)
	fetched, err := filepath.Glob(filepath.Join(filepath.Dir(own), "triton-*"+own[strings.LastIndex(own, "-")+1:], "triton"))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range fetched {
		folders = append(folders, filepath.Dir(folder))
	}
	if !slices.Contains(folders, own) {
		folders = append(folders, own)
	}
	return found.Python, folders
}

// A launched is a descriptor and what Triton's launcher makes of it.
type launched struct {
	Address   uint64         `json:"address"`
	Size      int            `json:"size"`
	Shape     []int          `json:"shape"`
	Strides   []int          `json:"strides"`
	Block     []int          `json:"block"`
	Padding   string         `json:"padding"`
	Signature string         `json:"signature"`
	Meta      map[string]any `json:"meta"`

	dtype      manifest.DType
	descriptor toolchain.Descriptor
}

// TestDescribedAsTritonDoes checks that the parameters for a tensor descriptor are the same as
// those of Triton's launcher, one by one, and that the request for the map has the same numbers.
func TestDescribedAsTritonDoes(t *testing.T) {
	var cases []launched
	for _, e := range []struct {
		dtype manifest.DType
		name  string
		ptx   int // the number of the element type
	}{{manifest.E4M3, "fp8e4nv", 0}, {manifest.U16, "u16", 1}, {manifest.U32, "u32", 2}, {manifest.I32, "i32", 3}, {manifest.U64, "u64", 4}, {manifest.I64, "i64", 5}, {manifest.F16, "fp16", 6}, {manifest.F32, "fp32", 7}, {manifest.F64, "fp64", 9}, {manifest.BF16, "bf16", 10}} {
		for _, v := range []struct{ shape, strides, block, box []int }{
			{[]int{1000}, []int{1}, []int{512}, []int{256}},
			{[]int{100, 64}, []int{128, 1}, []int{128, 64}, []int{128, 16}},
			{[]int{3, 100, 128}, []int{128, 384, 1}, []int{1, 64, 128}, []int{1, 64, 16}},
		} {
			block, err := json.Marshal(v.block)
			if err != nil {
				t.Fatal(err)
			}
			one := launched{
				Address: 1 << 40, Size: e.dtype.Size(), Shape: v.shape, Strides: v.strides, Block: v.block, Padding: "zero", dtype: e.dtype,
				Signature: "tensordesc<" + e.name + strings.ReplaceAll(string(block), ",", ", ") + ">", descriptor: toolchain.Descriptor{Axes: len(v.shape)},
			}
			if e.dtype.Float() {
				one.Padding = "nan"
			}
			cases = append(cases, one)
			for number, width := range []int{0, 32, 64, 128} {
				one.Meta = map[string]any{"swizzle": number, "elem_size": one.Size, "elem_type": e.ptx, "block_size": v.box, "fp4_padded": false}
				one.descriptor.Map = &toolchain.Map{Box: v.box, Swizzle: width}
				cases = append(cases, one)
			}
		}
	}
	asked, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	python, folders := launchers(t)
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), python, "-I", "-B", "testdata/launcher.py", folder)
			var problem bytes.Buffer
			cmd.Stdin, cmd.Stderr = bytes.NewReader(asked), &problem
			text, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, &problem)
			}
			var answers []struct {
				Sizes  []int             `json:"sizes"`
				Values []json.RawMessage `json:"values"`
			}
			if err := json.Unmarshal(text, &answers); err != nil || len(answers) != len(cases) {
				t.Fatalf("%d answers to %d cases: %v", len(answers), len(cases), err)
			}
			for i, c := range cases {
				d := c.descriptor
				if d.Map == nil {
					// The number is compared with the code's table at compile time.
					d.Flags = len(answers[i].Sizes) - 1 - 4*d.Axes
				}
				got := []string{}
				encode := func(tile driver.TensorTile) (driver.TensorMap, error) {
					if tile.Promotion != driver.Promote128B {
						t.Errorf("%s: a map with %+v", c.Signature, tile)
					}
					got = append(got, asTriton(t, tile, c))
					return driver.TensorMap{}, nil
				}
				values, err := described(c.dtype, manifest.Tile{Shape: c.Shape, Strides: c.Strides, Box: c.Block, ItemSize: c.Size, NaNFill: c.Padding == "nan"}, d, driver.DevicePtr(c.Address), encode)
				if err != nil {
					t.Fatal(err)
				}
				var sizes []int
				for n, v := range values {
					if sizes = append(sizes, len(v)); len(v) != len(driver.TensorMap{}) {
						number, err := json.Marshal(numbers(values[n : n+1])[0])
						if err != nil {
							t.Fatal(err)
						}
						got = append(got, string(number))
					}
				}
				var want []string
				for _, v := range answers[i].Values {
					want = append(want, compact(t, v))
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s is passed (-Triton +here):\n%s", c.Signature, diff)
				}
				if diff := cmp.Diff(answers[i].Sizes, sizes); diff != "" {
					t.Errorf("%s is passed in bytes (-Triton +here):\n%s", c.Signature, diff)
				}
			}
		})
	}
}

// asTriton returns the request for a map as Triton makes it: outermost axis first, strides in
// elements.
func asTriton(t *testing.T, tile driver.TensorTile, c launched) string {
	t.Helper()
	call := map[string]any{"address": tile.Base, "swizzle": tile.Swizzle, "size": c.Size, "type": tile.Type, "padding": 0}
	if tile.NaNFill {
		call["padding"] = 1
	}
	strides := []uint64{1}
	for _, s := range tile.Strides {
		strides = append(strides, s/uint64(c.Size))
	}
	slices.Reverse(strides)
	dims, box := slices.Clone(tile.Dims), slices.Clone(tile.Box)
	slices.Reverse(dims)
	slices.Reverse(box)
	call["shape"], call["strides"], call["box"] = dims, strides, box
	text, err := json.Marshal(call)
	if err != nil {
		t.Fatal(err)
	}
	return compact(t, text)
}

// compact returns JSON in a canonical form.
func compact(t *testing.T, text []byte) string {
	t.Helper()
	var value any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err := d.Decode(&value)
	if err == nil {
		text, err = json.Marshal(value)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
