package manifest

import (
	"strings"
	"testing"
)

// goodMap passes its arrays as tensor maps, the input in boxes that a toggle
// sizes.
const goodMap = `version: 1
name: copy
mode: cuda
entry: copy
arch: [sm_90, sm_90a]
source: copy.cu
arguments:
  - {name: x, dtype: bf16, access: in, shape: [S, D], tensor_map: {box: [TILE, 64], swizzle: 128, promotion: 256, fill: nan}}
  - {name: y, dtype: bf16, access: out, shape: [S, D], tensor_map: {box: [1, D]}}
launch: {grid: [S], block: [128]}
reference: {source: reference.cu, entry: reference, launch: {grid: [1], block: [32]}}
tolerance: {abs: 0.06}
shapes:
  small: {S: 32, D: 64}
  wide: {S: 96, D: 128}
toggles:
  TILE: {values: [8, 16, 512], default: 16, layer: micro}
`

var mapMistakes = []mistake{
	{"map of a scalar", goodMap, "launch:", "  - {name: n, dtype: i32, access: scalar, value: S, tensor_map: {box: [1]}}\nlaunch:", []string{
		"kernel.yaml:10:65: arguments[2].tensor_map: a scalar has none (delete it, or write access: in)",
	}},
	{"map without a box", goodMap, "{box: [1, D]}", "{swizzle: 64}", []string{
		"kernel.yaml:9:68: arguments[1].tensor_map.box: is required (write e.g. box: [1, 1, 64, D])",
	}},
	{"map of too few sizes", goodMap, "[1, D]", "[D]", []string{
		"kernel.yaml:9:74: arguments[1].tensor_map.box: has 1 of the sizes (write 2, one for each axis of shape)",
	}},
	{"map of too many axes", goodMap, "[S, D], tensor_map: {box: [1, D]}", "[1, 1, 1, 1, S, D], tensor_map: {box: [1, 1, 1, 1, 1, D]}", []string{
		"kernel.yaml:9:80: arguments[1].tensor_map: the array has 6 axes (a tensor map has at most 5; write its shape with fewer, e.g. shape: [B*H*S, D])",
	}},
	{"map with an unknown swizzle", goodMap, "swizzle: 128", "swizzle: 96", []string{
		`kernel.yaml:8:94: arguments[0].tensor_map.swizzle: "96" is not one of none, 32, 64, 128`,
	}},
	{"map with an unknown promotion", goodMap, "promotion: 256", "promotion: 512", []string{
		`kernel.yaml:8:110: arguments[0].tensor_map.promotion: "512" is not one of none, 64, 128, 256`,
	}},
	{"map with an unknown field", goodMap, "{box: [1, D]}", "{box: [1, D], interleave: 16}", []string{
		"kernel.yaml:9:82: arguments[1].tensor_map.interleave: unknown field (known here: align, box, fill, promotion, shape, strides, swizzle)",
	}},
	{"map that fills codes with NaN", goodMap, "x, dtype: bf16", "x, dtype: e4m3", []string{
		"kernel.yaml:8:121: arguments[0].tensor_map.fill: e4m3 has no NaN that a copy can write (write zero)",
	}},
	{"map with an unknown name", goodMap, "[1, D]", "[1, DD]", []string{
		`kernel.yaml:9:78: arguments[1].tensor_map.box[1]: "DD" in "DD" is not known here (known: S, D, TILE)`,
	}},
	{"map of a large box", goodMap, "default: 16", "default: 512", []string{
		`kernel.yaml:8:74: arguments[0].tensor_map.box[0]: "TILE" is 512 at shape small, S=32 D=64 (make it 256 or less)`,
	}},
	{"map of a narrow box", goodMap, "[1, D]", "[1, 4]", []string{
		`kernel.yaml:9:78: arguments[1].tensor_map.box[1]: "4" is 8 bytes at shape small, S=32 D=64 (make it a multiple of 16)`,
	}},
	{"map wider than its swizzle", goodMap, "[TILE, 64]", "[TILE, D]", []string{
		`kernel.yaml:8:80: arguments[0].tensor_map.box[1]: "D" is 256 bytes, more than the swizzle's 128 at shape wide, S=96 D=128 (make it smaller, or the swizzle wider)`,
	}},
	{"map over ragged rows", goodMap, "wide: {S: 96, D: 128}", "wide: {S: 96, D: 100}", []string{
		`kernel.yaml:8:51: arguments[0].shape[1]: "D" makes rows of 200 bytes at shape wide, S=96 D=100 (make them a multiple of 16, as a tensor map needs)`,
		`kernel.yaml:9:52: arguments[1].shape[1]: "D" makes rows of 200 bytes at shape wide, S=96 D=100 (make them a multiple of 16, as a tensor map needs)`,
	}},
	{"map of other axes", goodMap, "{box: [1, D]}", "{box: [1, D], shape: [S*D]}", []string{
		"kernel.yaml:9:74: arguments[1].tensor_map.box: has 2 of the sizes (write 1, one for each axis of shape)",
	}},
	{"map of no axes", goodMap, "{box: [1, D]}", "{box: [], shape: []}", []string{
		"kernel.yaml:9:85: arguments[1].tensor_map.shape: has 0 axes (write 1 to 5)",
	}},
	{"map of too few strides", goodMap, "{box: [1, D]}", "{box: [1, D], strides: [1]}", []string{
		"kernel.yaml:9:91: arguments[1].tensor_map.strides: has 1 strides (write 2, one for each axis of shape)",
	}},
	{"map of far elements", goodMap, "{box: [1, D]}", "{box: [1, D], strides: [D, 2]}", []string{
		`kernel.yaml:9:95: arguments[1].tensor_map.strides[1]: "2" is 2 at shape small, S=32 D=64 (make it 1: a copy takes neighbours)`,
	}},
	{"map of odd strides", goodMap, "{box: [1, D]}", "{box: [1, D], shape: [\"S-1\", D], strides: [D+1, 1]}", []string{
		`kernel.yaml:9:111: arguments[1].tensor_map.strides[0]: "D+1" is 130 bytes at shape small, S=32 D=64 (make it a multiple of 16)`,
	}},
	{"map beyond the array", goodMap, "{box: [1, D]}", "{box: [1, D], shape: [S+1, D]}", []string{
		"kernel.yaml:9:68: arguments[1].tensor_map: reaches over 2112 elements of an array of 2048 at shape small, S=32 D=64 (make shape or strides smaller)",
	}},
	{"map far beyond the array", goodMap, "{box: [1, D]}", "{box: [1, D], shape: [2147483647, D], strides: [2147483648, 1]}", []string{
		"kernel.yaml:9:68: arguments[1].tensor_map: reaches over 4611686014132420609 elements of an array of 2048 at shape small, S=32 D=64 (make shape or strides smaller)",
	}},
	{"map on an old architecture", goodMap, "[sm_90, sm_90a]", "[sm_89, sm_90]", []string{
		"kernel.yaml:8:67: arguments[0].tensor_map: variant default is built for sm_89, which has no tensor maps (write sm_90 or later in arch, or delete it)",
		"kernel.yaml:9:68: arguments[1].tensor_map: variant default is built for sm_89, which has no tensor maps (write sm_90 or later in arch, or delete it)",
	}},
	{"map in cpu mode", goodCPU, "shape: [B, H, S, D]}", "shape: [B, H, S, D], tensor_map: {box: [1, 1, 1, D]}}", []string{
		"kernel.yaml:10:73: arguments[2].tensor_map: is not read in cpu mode (delete it)",
	}},
}

func TestTiles(t *testing.T) {
	m, err := Parse("kernel.yaml", []byte(goodMap))
	if err != nil {
		t.Fatal(err)
	}
	wide, _ := m.Shape("wide")
	x, err := m.TileOf(&m.Arguments[0], wide.Dims, map[string]int{"TILE": 8})
	same(t, "x", x, Tile{Shape: []int{96, 128}, Box: []int{8, 64}, Strides: []int{128, 1}, ItemSize: 2, Swizzle: 128, Promotion: 256, NaNFill: true})
	same(t, "x's error", err, nil)
	y, err := m.TileOf(&m.Arguments[1], wide.Dims, m.ToggleValues(m.DefaultVariant))
	same(t, "y", y, Tile{Shape: []int{96, 128}, Box: []int{1, 128}, Strides: []int{128, 1}, ItemSize: 2})
	same(t, "y's error", err, nil)
}

// A map has axes of its own within the array, here every second row, and is another launch then.
func TestTileOfAView(t *testing.T) {
	m := parsed(t, goodMap)
	own := parsed(t, edited(t, goodMap, "{box: [1, D]}", "{box: [1, 1, D], shape: [2, S/4, D], strides: [S/2*D, 2*D*TILE/TILE, 1]}"))
	small, _ := own.Shape("small")
	y, err := own.TileOf(&own.Arguments[1], small.Dims, own.ToggleValues(own.DefaultVariant))
	same(t, "y", y, Tile{Shape: []int{2, 8, 64}, Box: []int{1, 1, 64}, Strides: []int{1024, 128, 1}, ItemSize: 2})
	same(t, "y's error", err, nil)
	if m.Call("default") == own.Call("default") || own.Call("default") == own.Call("default,TILE=8") {
		t.Error("another view is the same call")
	}
	apart := parsed(t, edited(t, goodMap, "{box: [1, D]}", "{box: [1, 1, D], shape: [2, S/4, D]}"))
	if apart.Launches("default") == own.Launches("default") {
		t.Error("other strides are the same launches")
	}
}

// A struct may hold tensor maps among its members, aligned as the header of CUDA has them.
func TestTensorMapInStruct(t *testing.T) {
	const text = `version: 1
name: a
mode: cuda
entry: f
source: a.cu
arch: [sm_90]
arguments:
  - {name: a, dtype: f16, access: in, shape: [M, K], tensor_map: {box: [64, 64]}}
  - {name: b, dtype: f16, access: in, shape: [N, K], tensor_map: {box: [64, 64]}}
  - {name: c, dtype: f32, access: out, shape: [M, N]}
  - {name: inner, access: struct, fields: [{name: k, dtype: i32, value: K}, {name: b, tensor_map: b}]}
  - {name: p, access: struct, fields: [{name: m, dtype: i32, value: M}, {name: a, tensor_map: a}, {name: c, pointer: c}, {name: inner, struct: inner}]}
reference: {source: r.cu, entry: r, launch: {grid: [1], block: [1]}}
tolerance: {abs: 1}
shapes: {one: {M: 64, N: 64, K: 64}}
launch: {grid: [1], block: [128]}
`
	type layout struct{ a, c, k, b, size int }
	for align, want := range map[string]layout{"128": {128, 256, 384, 512, 640}, "64": {64, 192, 256, 320, 448}} {
		m, err := Parse(FileName, []byte(strings.ReplaceAll(text, "box: [64, 64]", "box: [64, 64], align: "+align)))
		if err != nil {
			t.Fatal(err)
		}
		p, _ := m.argument("p")
		composite, _ := p.Composite(m)
		at := map[string]Part{}
		for _, part := range composite.Parts {
			at[part.Name] = part
		}
		got := layout{at["p.a"].Offset, at["p.c"].Offset, at["p.inner.k"].Offset, at["p.inner.b"].Offset, composite.Size}
		if got != want || !at["p.a"].TensorMap || at["p.inner.b"].Pointer != "b" || at["p.c"].TensorMap {
			t.Errorf("aligned to %s: %+v, want %+v: %+v", align, got, want, composite.Parts)
		}
		params := m.Parameters(nil)
		if len(params) != 1 || params[0].Name != "p" || params[0].HintSize == params[0].Size || params[0].Hint == "" {
			t.Errorf("the kernel takes %+v", params)
		}
		if got := m.DeviceReferencePrototype(); got != "__global__ void r(const float *a, const float *b, float *c);" {
			t.Errorf("the reference is %s", got)
		}
	}
	// Without an alignment it is that of CUDA 13, and the base's struct keeps its members whatever the head's boxes are.
	head := strings.Replace(text, "box: [64, 64]", "box: [32, 64]", 1)
	if m, err := Join(FileName, []byte(text), []byte(head)); err != nil || m.Parameters(nil)[0].Size != 640 {
		t.Errorf("%v", err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"{name: a, tensor_map: a}", "{name: a, tensor_map: x}", `arguments[4].fields[1].tensor_map: "x" is no argument (declare the array among the arguments, with its tensor_map)`},
		{"{name: a, tensor_map: a}", "{name: a, tensor_map: c}", "arguments[4].fields[1].tensor_map: c has no tensor_map (write it at the argument, e.g. tensor_map: {box: [64, 64]})"},
		{"{name: a, tensor_map: a}", "{name: a, tensor_map: p}", "arguments[4].fields[1].tensor_map: p has no tensor_map"},
		{"{name: a, tensor_map: a}", "{name: a, dtype: f16, tensor_map: a}", "arguments[4].fields[1].dtype: a tensor map has that of its argument (delete it)"},
		{"{name: a, tensor_map: a}", "{name: a, pointer: a}", "arguments[4].fields[1].pointer: a is passed as a tensor map (write tensor_map: a for a member that is a CUtensorMap, or delete the tensor_map of the argument)"},
		{"box: [64, 64]", "box: [64, 64], align: 32", `arguments[0].tensor_map.align: "32"`},
		{"arch: [sm_90]", "arch: [sm_89]", "variant default is built for sm_89, which has no tensor maps"},
	} {
		if _, err := Parse(FileName, []byte(strings.Replace(text, c.old, c.new, 1))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant …%s…", c.new, err, c.want)
		}
	}
}
