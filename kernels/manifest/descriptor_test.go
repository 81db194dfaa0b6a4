package manifest

import (
	"strings"
	"testing"
)

// descriptorManifest has a Triton kernel that takes two of its arrays as tensor descriptors, on GPUs with tensor maps and without.
const descriptorManifest = `version: 1
name: scale
mode: cuda
compiler: triton
entry: scale_kernel
arch: [sm_89, sm_90]
source: scale.py
arguments:
  - {name: x, dtype: f16, access: in, shape: [B, S, D], tensor_map: {box: [TILE, 64], shape: [B*S, D], fill: nan}}
  - {name: y, dtype: e4m3, access: out, shape: [B, S, D], tensor_map: {box: [1, TILE, D]}}
  - {name: n, dtype: i32, access: scalar, value: S}
toggles:
  TILE: {values: [32, 512, 24], default: 32, layer: micro}
launch: {grid: [S]}
reference: {source: reference.cu, entry: reference, launch: {grid: [S], block: [256]}}
tolerance: {abs: 0.1}
shapes:
  small: {B: 2, S: 100, D: 64}
`

// A descriptor's type has its block, which Triton compiles for, and the toggle in it need be no parameter.
func TestDescriptors(t *testing.T) {
	m := parsed(t, descriptorManifest)
	small, _ := m.Shape("small")
	for variant, want := range map[string]string{
		"default":          "tensordesc<fp16[32, 64]> tensordesc<fp8e4nv[1, 32, 64]> i32",
		"default,TILE=512": "tensordesc<fp16[512, 64]> tensordesc<fp8e4nv[1, 512, 64]> i32",
	} {
		s, err := special(m, variant, small.Dims)
		if err != nil {
			t.Fatal(err)
		}
		var types []string
		for _, a := range s.Arguments {
			types = append(types, a.Type+a.Hint)
		}
		same(t, variant, strings.Join(types, " "), want)
		same(t, "spoken", s.Spoken, []string{"TILE"})
	}
	x, err := m.TileOf(&m.Arguments[0], small.Dims, nil)
	same(t, "x", x, Tile{Shape: []int{200, 64}, Box: []int{32, 64}, Strides: []int{64, 1}, ItemSize: 2, NaNFill: true})
	same(t, "x's error", err, nil)
}

func TestDescriptorMistakes(t *testing.T) {
	for name, test := range map[string]struct {
		edits []string
		want  string
	}{
		"no power of two":  {[]string{"default: 32", "default: 24"}, `kernel.yaml:9:76: arguments[0].tensor_map.box[0]: "TILE" is 24 at shape small, B=2 S=100 D=64 (make it a power of two, as Triton needs)`},
		"a large block":    {[]string{"box: [TILE, 64]", "box: [32768, 64]"}, `arguments[0].tensor_map.box[1]: "64" makes a block of more than 1048576 elements at shape small, B=2 S=100 D=64 (make it smaller)`},
		"a narrow block":   {[]string{"box: [TILE, 64]", "box: [TILE, 4]"}, `arguments[0].tensor_map.box[1]: "4" is 8 bytes at shape small, B=2 S=100 D=64 (make it a multiple of 16)`},
		"a swizzle":        {[]string{"fill: nan", "swizzle: 128"}, "arguments[0].tensor_map.swizzle: is what compiler: triton says itself (delete it)"},
		"a promotion":      {[]string{"fill: nan", "promotion: 128"}, "arguments[0].tensor_map.promotion: is what compiler: triton says itself (delete it)"},
		"truths":           {[]string{"dtype: e4m3", "dtype: bool"}, "arguments[1].tensor_map: Triton has no descriptors of bool (delete it, or write dtype: u8)"},
		"beyond the array": {[]string{"shape: [B*S, D], fill", "shape: [B*S*2, D], fill"}, "arguments[0].tensor_map: reaches over 25600 elements of an array of 12800 at shape small"},
		"ragged rows":      {[]string{"D: 64", "D: 60"}, `"D" makes rows of 120 bytes at shape small, B=2 S=100 D=60 (make them a multiple of 16, as a tensor map needs)`},
		"another compiler": {[]string{"compiler: triton", "compiler: nvcc"}, "arguments[0].tensor_map: variant default is built for sm_89, which has no tensor maps"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("kernel.yaml", []byte(edited(t, descriptorManifest, test.edits...)))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v\nwant …%s…", err, test.want)
			}
		})
	}
}
