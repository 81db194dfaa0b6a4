package manifest

import (
	"fmt"
	"strings"
	"testing"
)

const tritonManifest = `version: 1
name: softmax
mode: cuda
compiler: triton
entry: softmax_kernel
arch: [sm_90]
source: softmax.py
arguments:
  - {name: x, dtype: f32, access: in, shape: [R, C]}
  - {name: mask, access: absent}
  - {name: y, dtype: bf16, access: out, shape: [R, C]}
  - {name: rows, dtype: i64, access: scalar, value: R}
  - {name: cols, dtype: i32, access: scalar, value: C}
  - {name: scale, dtype: f64, access: scalar, value: 1/sqrt(C)}
  - {name: causal, dtype: bool, access: scalar, value: 1}
constants: {BLOCK: pow2ceil(C), HALF: 0.5}
num_warps: WARPS
num_stages: "C > 1000 ? 4 : 2"
toggles:
  WARPS: {values: [4, 8, 6], default: 8, layer: micro}
  FAST: {values: [0, 1], default: 0, layer: micro}
launch: {grid: [R]}
reference: {source: reference.cu, entry: reference, launch: {grid: [R], block: [256]}}
tolerance: {abs: 0.1}
shapes:
  small: {R: 1, C: 1000}
  large: {R: 4096, C: 4096}
`

// special is what is known of the first kernel of a launch.
func special(m *Manifest, variant string, dims Dims) (Special, error) {
	all, err := m.Specials(variant, dims, nil, false)
	if err != nil {
		return Special{}, err
	}
	return all[0], nil
}

// What Triton's own compiler would know of a launch: see its specialize_impl.
func TestSpecial(t *testing.T) {
	text := tritonManifest
	m := parsed(t, text)
	for shape, want := range map[string]string{
		"small": "BLOCK=1024 HALF=0.5 WARPS=8 FAST=0 warps=8 stages=2 ctas=1 x:*fp32/16 mask:none/ y:*bf16/16 rows:i32/1 cols:i32/ scale:fp32/ causal:u1/",
		"large": "BLOCK=4096 HALF=0.5 WARPS=8 FAST=0 warps=8 stages=4 ctas=1 x:*fp32/16 mask:none/ y:*bf16/16 rows:i32/16 cols:i32/16 scale:fp32/ causal:u1/",
	} {
		s, _ := m.Shape(shape)
		got, err := special(m, "default", s.Dims)
		if err != nil {
			t.Fatal(err)
		}
		words := []string{fmt.Sprintf("BLOCK=%v HALF=%v WARPS=%d FAST=%d warps=%d stages=%d ctas=%d", got.Constants["BLOCK"], got.Constants["HALF"], got.Toggles["WARPS"], got.Toggles["FAST"], got.Warps, got.Stages, got.CTAs)}
		for _, a := range got.Arguments {
			words = append(words, a.Name+":"+a.Type+"/"+a.Hint)
		}
		same(t, shape, strings.Join(words, " "), want)
		same(t, "toggles that the manifest uses itself", got.Spoken, []string{"WARPS"})
		varied, err := special(m, "default,WARPS=4", s.Dims)
		if err != nil || varied.Warps != 4 || varied.Key() == got.Key() {
			t.Errorf("with WARPS=4 it has %d warps and the key %s (%v)", varied.Warps, varied.Key(), err)
		}
	}
	for value, want := range map[float64]string{1: "i32/1", 0: "i32/16", -32: "i32/16", 17: "i32/", 1 << 31: "i64/16", 1<<31 + 1: "i64/", -1<<31 - 1: "i64/"} {
		kind, hint := scalarSpecial(I64, value)
		same(t, fmt.Sprint(value), kind+"/"+hint, want)
	}
}

// What a compiler needs, and what it does not read.
func TestCompilerMistakes(t *testing.T) {
	text := tritonManifest
	for name, test := range map[string]struct {
		edits []string
		want  string
	}{
		"a block":              {[]string{"launch: {grid: [R]}", "launch: {grid: [R], block: [128]}"}, "launch.block: is what compiler: triton says itself (delete it)"},
		"shared memory":        {[]string{"launch: {grid: [R]}", "launch: {grid: [R], shared_memory: 128}"}, "launch.shared_memory: is what compiler: triton says itself (delete it)"},
		"no block":             {[]string{"compiler: triton\n", "", "softmax.py", "softmax.cu", "num_warps: WARPS\n", "", "constants: {BLOCK: pow2ceil(C), HALF: 0.5}\n", "", "num_stages: \"C > 1000 ? 4 : 2\"\n", ""}, "launch.block: is required (write e.g. block: [128])"},
		"another source":       {[]string{"softmax.py", "softmax.cu"}, `source: "softmax.cu" is no source for compiler: triton (its name must end in .py; write compiler: nvcc for this one)`},
		"Triton's of nvcc":     {[]string{"compiler: triton\n", "", "softmax.py", "softmax.cu"}, "constants: is not read with compiler: nvcc (delete it)"},
		"flags":                {[]string{"arch:", "flags: [-O3]\narch:"}, "flags: is not read with compiler: triton (delete it)"},
		"a choice":             {[]string{"arch:", "choose: [{variant: default}]\narch:"}, "choose: is not read with compiler: triton (delete it)"},
		"scratch":              {[]string{"arch:", "scratch: [{name: part, dtype: f32, shape: [R]}]\narch:"}, "scratch[0].name: no kernel is passed part (name it in the args of a launch or a step, or delete it)"},
		"a step's block":       {[]string{"launch: {grid: [R]}", "launch: {steps: [{entry: softmax_kernel, grid: [R], block: [32]}]}"}, "launch.steps[0].block: is what compiler: triton says itself (delete it)"},
		"a step of C++":        {[]string{"launch: {grid: [R]}", "launch: {steps: [{entry: ns::softmax, grid: [R]}]}"}, `launch.steps[0].entry: "ns::softmax" is no name of a Python function (write e.g. softmax_kernel)`},
		"a step's warps":       {[]string{"launch: {grid: [R]}", "launch: {steps: [{grid: [R], num_warps: 3}]}"}, `launch.steps[0].num_warps: "3" is 3 at shape small, R=1 C=1000 (make it a power of two)`},
		"a text":               {[]string{"HALF: 0.5", "HALF: silu"}, `constants.HALF: "silu" in "silu" is not known here (known: R, C, WARPS, FAST; write {text: silu} for a text, {dtype: silu} for a format)`},
		"no format":            {[]string{"HALF: 0.5", "HALF: {dtype: half}"}, `constants.HALF.dtype: "half" is no format of triton.language (write one of bfloat16, `},
		"no kind":              {[]string{"HALF: 0.5", "HALF: {string: half}"}, `constants.HALF.string: is no kind of constant (write a number, an expression, true, false, none, {text: silu} or {dtype: float16})`},
		"a list of constants":  {[]string{"HALF: 0.5", "HALF: [1, 2]"}, `constants.HALF: is no value of a constant (write a number, an expression`},
		"a long text":          {[]string{"HALF: 0.5", "HALF: {text: " + strings.Repeat("x", 201) + "}"}, `constants.HALF.text: is no text of up to 200 plain characters (write e.g. text: silu)`},
		"a constant's name":    {[]string{"HALF: 0.5", "HA-LF: 0.5"}, `constants.HA-LF: "HA-LF" is no name of a parameter (write letters, digits and _)`},
		"tuning of nothing":    {[]string{"num_warps: WARPS", "autotune: 3"}, `autotune: chooses no configuration (write autotune: {BLOCK_M: 64, num_warps: 4} for the configuration with these values, or autotune: all)`},
		"tuning and warps":     {[]string{"num_warps: WARPS", "num_warps: WARPS\nautotune: all"}, `num_warps: is what the configuration of @triton.autotune says (delete it, or write it under autotune to choose the configuration)`},
		"tuning a constant":    {[]string{"num_warps: WARPS", "autotune: {HALF: 1}", "num_stages: \"C > 1000 ? 4 : 2\"\n", ""}, `autotune.HALF: "HALF" stands under constants too (delete it there: the configuration gives it its value)`},
		"tuning a dim":         {[]string{"num_warps: WARPS", "autotune: {all: {C: 1}}", "num_stages: \"C > 1000 ? 4 : 2\"\n", ""}, `autotune.all.C: "C" is also the name of a dim, an argument, scratch or a toggle (choose another name there)`},
		"tuning by a name":     {[]string{"num_warps: WARPS", "autotune: {TILE: Z}", "num_stages: \"C > 1000 ? 4 : 2\"\n", ""}, `autotune.TILE: "Z" in "Z" is not known here`},
		"tuning the problem":   {[]string{"num_warps: WARPS", "autotune: {TILE: 64}", "num_stages: \"C > 1000 ? 4 : 2\"\n", "", "value: C}", "value: TILE}"}, `arguments[4].value: "TILE" in "TILE" is not known here`},
		"nvcc's constants":     {[]string{"compiler: triton\n", "", "softmax.py", "softmax.cu", "num_warps: WARPS\n", "", "constants: {BLOCK: pow2ceil(C), HALF: 0.5}\n", "", "num_stages: \"C > 1000 ? 4 : 2\"\n", "", "launch: {grid: [R]}", "launch: {steps: [{grid: [R], block: [32], num_warps: 3}]}"}, `launch.steps[0].num_warps: is not read with compiler: nvcc (delete it)`},
		"a set of headers":     {[]string{"arch:", "include: [<cutlass>]\narch:"}, `include[0]: "<cutlass>" is a set of headers, which Python does not import (name a folder of the repository)`},
		"a packed format":      {[]string{"dtype: f32, access: in", "dtype: int4, access: in"}, "cannot be passed to a Triton kernel yet"},
		"a build":              {[]string{"arch:", "build: [make]\narch:"}, "build: is not read with compiler: triton (delete it)"},
		"no build":             {[]string{"compiler: triton", "compiler: command"}, "build: is required with compiler: command (write e.g. build: [python3, build.py])"},
		"no such compiler":     {[]string{"compiler: triton", "compiler: gcc"}, `compiler: "gcc" is not one of nvcc, triton, ptx, command`},
		"three warps":          {[]string{"num_warps: WARPS", "num_warps: 3"}, `num_warps: "3" is 3 at shape small, R=1 C=1000 (make it a power of two)`},
		"many warps":           {[]string{"num_warps: WARPS", "num_warps: 64"}, `num_warps: "64" is 64 at shape small, R=1 C=1000 (make it 32 or less)`},
		"an unknown name":      {[]string{"pow2ceil(C)", "pow2ceil(Z)"}, `constants.BLOCK: "Z" in "pow2ceil(Z)" is not known here`},
		"a constant twice":     {[]string{"HALF: 0.5", "FAST: 1"}, `constants.FAST: "FAST" is a toggle, which is a constant already (delete it here)`},
		"a name of C++":        {[]string{"entry: softmax_kernel", "entry: ns::softmax"}, `entry: "ns::softmax" is no name of a Python function (write e.g. softmax_kernel)`},
		"a vector":             {[]string{"dtype: f64, access: scalar, value: 1/sqrt(C)", "dtype: f64, access: scalar, vector: [R, C]"}, "arguments[5]: scale cannot be passed to a Triton kernel yet"},
		"the flags of ptxas":   {[]string{"compiler: triton", "compiler: ptx\nflags: [-lineinfo]", "softmax.py", "softmax.ptx"}, `flags[0]: "-lineinfo" is not an allowed flag (allowed: -O0 to -O3`},
		"toggles of PTX":       {[]string{"compiler: triton", "compiler: ptx", "softmax.py", "softmax.ptx"}, "toggles: is not read with compiler: ptx (delete it)"},
		"a compiler for C":     {[]string{"mode: cuda", "mode: cpu"}, "compiler: is not read in cpu mode (delete it)"},
		"a toggle of no value": {[]string{"default: 8", "default: 6"}, `num_warps: "WARPS" is 6 at shape small, R=1 C=1000 (make it a power of two)`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("kernel.yaml", []byte(edited(t, text, test.edits...)))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v\nwant …%s…", err, test.want)
			}
		})
	}
}

// A change brings the files of its own compiler, and another compiler is another recipe.
func TestCompilerOfASide(t *testing.T) {
	text := tritonManifest
	m := parsed(t, text)
	for file, want := range map[string]bool{"softmax.py": true, "helpers.py": true, "softmax.cu": false, "reference.cu": false, "sub/a.py": true, "sub/deep/a.py": true, "sub/a.cu": false} {
		same(t, file, m.IsSource(file), want)
	}
	other := joined(t, text, edited(t, text, "HALF: 0.5", "HALF: 0.25"))
	if m.Recipe("default") == other.Recipe("default") {
		t.Error("another constant is the same recipe")
	}
	cuda := edited(t, text, "compiler: triton\n", "", "softmax.py", "softmax.cu", "num_warps: WARPS\n", "", "constants: {BLOCK: pow2ceil(C), HALF: 0.5}\n", "", "num_stages: \"C > 1000 ? 4 : 2\"\n", "", "launch: {grid: [R]}", "launch: {grid: [R], block: [256]}")
	if moved := joined(t, cuda, text); moved.Compiler != Triton || moved.Entry != "softmax_kernel" {
		t.Errorf("a change from CUDA to Triton is built by %s", moved.Compiler)
	}
}
