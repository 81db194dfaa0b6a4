package toolchain

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/build/toolchain/output"
)

// descriptors is the kind of a matrix multiplication whose matrices are tensor descriptors, in tiles of 64 × 128 × 64.
func descriptors() manifest.Special {
	kind := special(map[string]float64{"TILE_M": 64, "TILE_N": 128, "TILE_K": 64}, 4, "a:tensordesc<fp16[64,64]> b:tensordesc<fp16[64,128]> c:tensordesc<fp16[64,128]> K:i32/16")
	for i, block := range [][]int{{64, 64}, {64, 128}, {64, 128}} {
		a := &kind.Arguments[i]
		a.Type, a.DType, a.Block = strings.ReplaceAll(a.Type, ",", ", "), manifest.F16, block
	}
	return kind
}

func descriptorBuild(t *testing.T, arch string) TritonBuild {
	t.Helper()
	return TritonBuild{
		Dir: folder(t, map[string]string{"matmul_descriptor.py": read(t, "testdata/triton/matmul_descriptor.py")}), Source: "matmul_descriptor.py", Entry: "matmul_kernel", Arch: arch, Scratch: t.TempDir(),
		Kinds: []manifest.Special{descriptors()},
	}
}

// Descriptors of the host are tensor maps for Hopper, whose boxes Triton has cut to the swizzle, and addresses with flags before.
// All of it is what the code's own table has.
func TestTritonDescriptors(t *testing.T) {
	axes := []int{4, 4, 8, 8}
	for _, c := range realTritons(t) {
		flags := map[string]int{"3.6.0": 1, "3.9.0": 2}[c.Version]
		if flags == 0 {
			continue // a Triton of this machine's own
		}
		for arch, want := range map[string]struct {
			descriptor Descriptor
			params     []int
		}{
			"sm_89": {Descriptor{Axes: 2, Flags: flags}, slices.Concat([]int{8, 8, 8, 8, 8}, slices.Repeat([]int{1}, flags), axes)},
			"sm_90": {Descriptor{Axes: 2, Map: &Map{Box: []int{64, 64}, Swizzle: 128}}, slices.Concat([]int{128}, axes)},
		} {
			t.Run(c.Version+" "+arch, func(t *testing.T) {
				t.Parallel()
				cubin := mustBuildTriton(t, cached(t, c), descriptorBuild(t, arch))[0]
				if diff := cmp.Diff(slices.Concat(slices.Repeat(want.params, 3), []int{4, 8, 8}), mapped(cubin.Kernels[0].Params, func(p Param) int { return p.Size })); diff != "" {
					t.Errorf("parameters (-want +got):\n%s", diff)
				}
				d := want.descriptor
				if diff := cmp.Diff([]Passed{{0, "tensordesc<fp16[64, 64]>", &d}, {1, "tensordesc<fp16[64, 128]>", &d}, {2, "tensordesc<fp16[64, 128]>", &d}, {3, "i32", nil}}, cubin.Start.Passed); diff != "" {
					t.Errorf("passed (-want +got):\n%s", diff)
				}
				if cubin.Kernels[0].Usage.SpillStores == nil || len(cubin.Start.Scratch) != 2 {
					t.Errorf("it is told as %+v, started as %+v", cubin.Kernels[0], cubin.Start)
				}
			})
		}
	}
}

// Every format that the manifest has descriptors of is compiled to the elements that a map would be made with, and a block that no
// box can be is cut.
func TestTritonDescriptorElements(t *testing.T) {
	const text = "import triton\n\n\n@triton.jit\ndef copy_kernel(x, y):\n    y.store([0, 0], x.load([0, 0]))\n"
	var kinds []manifest.Special
	add := func(d manifest.DType, name string, block ...int) {
		kind := special(map[string]float64{}, 4, "")
		for _, argument := range []string{"x", "y"} {
			kind.Arguments = append(kind.Arguments, manifest.SpecialArgument{Name: argument, Type: "tensordesc<" + name + "[" + strings.ReplaceAll(joined(block), " ", ", ") + "]>", DType: d, Block: block})
		}
		kinds = append(kinds, kind)
	}
	names := map[manifest.DType]string{
		manifest.E4M3: "fp8e4nv", manifest.E5M2: "fp8e5", manifest.F16: "fp16", manifest.BF16: "bf16", manifest.F32: "fp32", manifest.F64: "fp64", manifest.I8: "i8", manifest.U8: "u8",
		manifest.I16: "i16", manifest.U16: "u16", manifest.I32: "i32", manifest.U32: "u32", manifest.I64: "i64", manifest.U64: "u64",
	}
	if len(names) != len(tensorElements) {
		t.Fatalf("%d formats are tried of %d", len(names), len(tensorElements))
	}
	add(manifest.F16, "fp16", 512, 8)
	add(manifest.BF16, "bf16", 16, 32)
	add(manifest.F64, "fp64", 16, 32)
	few := kinds
	for _, d := range slices.Sorted(maps.Keys(names)) {
		add(d, names[d], 16, 32)
	}
	for i, c := range realTritons(t) {
		kinds := kinds
		if i > 0 {
			kinds = few // whose numbers are odd
		}
		t.Run(c.Version, func(t *testing.T) {
			t.Parallel()
			b := TritonBuild{Dir: folder(t, map[string]string{"copy.py": text}), Source: "copy.py", Entry: "copy_kernel", Arch: "sm_90", Scratch: t.TempDir(), Kinds: kinds}
			for i, cubin := range mustBuildTriton(t, cached(t, c), b) {
				a, d := kinds[i].Arguments[0], cubin.Start.Passed[0].Descriptor
				want := Map{Box: []int{16, min(32, 128/a.DType.Size())}, Swizzle: min(128, 32*a.DType.Size())}
				if a.Block[0] == 512 {
					want = Map{Box: []int{256, 8}}
				}
				if diff := cmp.Diff(&Descriptor{Axes: 2, Map: &want}, d); diff != "" {
					t.Errorf("%s (-want +got):\n%s", a.Type, diff)
				}
			}
		})
	}
}

// What is said of a descriptor is held against the manifest, against what GPUs have and against the code.
func TestTritonSaysOfDescriptors(t *testing.T) {
	c := realTritons(t)[0]
	read := func(arch string) (TritonBuild, nvccOutput) {
		b := descriptorBuild(t, arch)
		made, _, err := cached(t, c).outputs(t.Context(), b)
		if err != nil || made[0].Refusal != "" {
			t.Fatal(err, made)
		}
		return b, made[0]
	}
	hopper, maps := read("sm_90")
	ada, addresses := read("sm_89")
	for name, test := range map[string]struct {
		from, to string
		want     string
	}{
		"another element":     {`"elem_type": 6`, `"elem_type": 9`, "a map of a with elements of kind 9 and 2 bytes, and the manifest has f16"},
		"larger elements":     {`"elem_size": 2`, `"elem_size": 8`, "elements of kind 6 and 8 bytes"},
		"a wide swizzle":      {`"swizzle": 3`, `"swizzle": 4`, "the swizzle 4 (0 to 3 are possible)"},
		"a negative swizzle":  {`"swizzle": 3`, `"swizzle": -1`, "the swizzle -1"},
		"a narrow swizzle":    {`"swizzle": 3`, `"swizzle": 2`, "rows of 128 bytes, swizzled over 64"},
		"a large box":         {`"block_size": [64, 64]`, `"block_size": [64, 512]`, "boxes of 64 512, which 64 64 cannot be made of"},
		"a larger box":        {`"block_size": [64, 64]`, `"block_size": [128, 64]`, "boxes of 128 64, which 64 64 cannot be made of"},
		"an odd box":          {`"block_size": [64, 64]`, `"block_size": [60, 64]`, "boxes of 60 64"},
		"an empty box":        {`"block_size": [64, 64]`, `"block_size": [0, 64]`, "boxes of 0 64"},
		"a negative box":      {`"block_size": [64, 64]`, `"block_size": [-64, 64]`, "boxes of -64 64"},
		"a narrow box":        {`"block_size": [64, 64]`, `"block_size": [64, 4]`, "rows of 8 bytes"},
		"other axes":          {`"block_size": [64, 64]`, `"block_size": [64]`, "a map of a with 1 axes, and the manifest has 2"},
		"padded":              {`"fp4_padded": false`, `"fp4_padded": true`, "as padded FP4 or im2col, which kernelgate cannot make yet"},
		"another form":        {`"swizzle"`, `"interleave"`, `cannot be read: json: unknown field "interleave"`},
		"another block":       {`"tensordesc<fp16[64, 64]>"`, `"tensordesc<fp16[64, 32]>"`, "the argument a is \"tensordesc<fp16[64, 32]>\", and the manifest passes tensordesc<fp16[64, 64]>"},
		"an address":          {`"tensordesc<fp16[64, 64]>"`, `"*fp16"`, "the argument a is *fp16, and the manifest passes tensordesc<fp16[64, 64]>"},
		"a word of its own":   {`"type": "i32"`, `"type": "i32", "descriptor": {"axes": 9}`, ""},
		"many flags":          {`"flags": `, `"flags": 9`, "flags with a tensor descriptor"},
		"a descriptor of one": {`"type": "i32"`, `"type": "tensordesc<i32[1]>"`, "the argument 3 as tensordesc<i32[1]>, which cannot be passed"},
	} {
		t.Run(name, func(t *testing.T) {
			o := maps
			if o.Usage = strings.Replace(o.Usage, test.from, test.to, 1); o.Usage == maps.Usage {
				t.Fatalf("%q is not in %s", test.from, o.Usage)
			}
			cubin, err := o.readTriton(hopper, hopper.Kinds[0])
			if test.want == "" {
				if err != nil || cubin.Start.Passed[3].Descriptor != nil {
					t.Errorf("got %v, %+v", err, cubin)
				}
				return
			}
			if _, ok := err.(*output.CompileError); !ok || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v\nwant …%s…", err, test.want)
			}
		})
	}
	mustSay := func(o nvccOutput, b TritonBuild, want string) {
		t.Helper()
		_, err := o.readTriton(b, b.Kinds[0])
		if _, ok := err.(*output.CompileError); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant …%s…", err, want)
		}
	}
	// A map for code that takes addresses, and the other way around.
	mustSay(nvccOutput{Image: addresses.Image, Usage: maps.Usage}, ada, "18 parameters of tensordesc<fp16[64, 64]> (128 4 4 8 8), ")
	mustSay(nvccOutput{Image: maps.Image, Usage: addresses.Usage}, hopper, "and the code takes 18 of 128 4 4 8 8 128 4 4 8 8 128 4 4 8 8 4 8 8 bytes")
	all := strings.Index(maps.Usage, `"tensors": [`) + len(`"tensors": [`)
	end := all + strings.Index(maps.Usage[all:], "}, ")
	mustSay(nvccOutput{Image: maps.Image, Usage: maps.Usage[:all] + maps.Usage[end+len("}, "):]}, hopper, "fewer tensor maps than tensor descriptors")
	mustSay(nvccOutput{Image: maps.Image, Usage: maps.Usage[:end] + "}, " + maps.Usage[all:]}, hopper, "more tensor maps than tensor descriptors")
}

// No word about a map is believed that a launch could not keep.
func FuzzTensorSaid(f *testing.F) {
	f.Add(3, 2, 6, 64, 64, false, false)
	f.Add(0, 2, 6, 256, 8, false, false)
	f.Add(1<<62, -1, 1<<31, -1, 1<<40, true, false)
	a := descriptors().Arguments[1]
	f.Fuzz(func(t *testing.T, swizzle, size, element, rows, columns int, fp4, im2col bool) {
		for _, box := range [][]int{{rows, columns}, {columns}, {rows, columns, 1}, nil} {
			m, err := tensorSaid{Swizzle: swizzle, ElementSize: size, Element: element, Box: box, PaddedFP4: fp4, Im2col: im2col}.asMap(a)
			if err != nil {
				continue
			}
			row := 2 * m.Box[len(m.Box)-1]
			if fp4 || im2col || len(m.Box) != 2 || m.Box[0] < 1 || m.Box[0] > 64 || row < 16 || row > 256 || row%16 != 0 || m.Swizzle > 0 && row > m.Swizzle || !slices.Contains([]int{0, 32, 64, 128}, m.Swizzle) {
				t.Fatalf("a map would be made as %+v", m)
			}
		}
	})
}
