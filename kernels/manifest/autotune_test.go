package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

const tunedManifest = `version: 1
name: decode
mode: cuda
compiler: triton
arch: [sm_90]
source: decode.py
arguments:
  - {name: q, dtype: f16, access: in, shape: [S, D]}
  - {name: bias, access: absent}
  - {name: o, dtype: f32, access: out, shape: [S, D]}
  - {name: length, dtype: i32, access: scalar, value: S}
scratch: [{name: partial, dtype: f32, shape: ["ceildiv(S, BLOCK)", D]}]
constants: {CAUSAL: true, ACT: {text: silu}, OUT: {dtype: f16}, BIAS: null, WIDTH: pow2ceil(D)}
autotune: {BLOCK: "S > 100 ? 128 : 32", MODE: {text: fast}}
launch:
  steps:
    - {entry: split, grid: ["ceildiv(S, BLOCK)"], args: [q, bias, partial, length], constants: {KEYS: BLOCK/2}}
    - {memset: o}
    - {entry: combine, grid: [S], args: [partial, o], constants: {WIDTH: 8}}
reference: {source: reference.cu, entry: reference, launch: {grid: [S], block: [256]}}
tolerance: {abs: 0.1}
shapes:
  small: {S: 64, D: 60}
  large: {S: 4096, D: 64}
`

func constantsOf(s Special) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(s.Constants)) {
		words = append(words, fmt.Sprintf("%s=%v", name, s.Constants[name]))
	}
	for _, values := range []map[string]Literal{s.Literals, s.Configuration} {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			words = append(words, name+"="+values[name].String())
		}
	}
	for _, a := range s.Arguments {
		word := a.Name + ":" + a.Type + "/" + a.Hint
		if a.Value != nil {
			word += fmt.Sprintf("=%v", *a.Value)
		}
		words = append(words, word+strings.TrimSuffix(fmt.Sprint(a.Shape), "[]"))
	}
	return strings.Join(words, " ")
}

// Each kernel of a launch has its own arguments and constants, and what the configuration says is known to all expressions of the
// implementation.
func TestSpecialsOfSteps(t *testing.T) {
	m := parsed(t, tunedManifest)
	for shape, want := range map[string][]string{
		"small": {
			"KEYS=16 WIDTH=64 ACT={text: silu} BIAS=none CAUSAL=true OUT={dtype: float16} BLOCK=32 MODE={text: fast} q:*fp16/16 bias:none/ partial:*fp32/16 length:i32/16",
			"WIDTH=8 ACT={text: silu} BIAS=none CAUSAL=true OUT={dtype: float16} BLOCK=32 MODE={text: fast} partial:*fp32/16 o:*fp32/16",
		},
		"large": {
			"KEYS=64 WIDTH=64 ACT={text: silu} BIAS=none CAUSAL=true OUT={dtype: float16} BLOCK=128 MODE={text: fast} q:*fp16/16[4096 64] bias:none/ partial:*fp32/16[32 64] length:i32/16=4096",
			"WIDTH=8 ACT={text: silu} BIAS=none CAUSAL=true OUT={dtype: float16} BLOCK=128 MODE={text: fast} partial:*fp32/16[32 64] o:*fp32/16[4096 64]",
		},
	} {
		s, _ := m.Shape(shape)
		list, err := m.Specials("default", s.Dims, nil, shape == "large")
		if err != nil || len(list) != 2 || list[0].Entry != "split" || list[1].Entry != "combine" || list[0].Exact != (shape == "large") {
			t.Fatalf("%s: %+v (%v)", shape, list, err)
		}
		for i := range list {
			same(t, shape, constantsOf(list[i]), want[i])
		}
	}
	large, _ := m.Shape("large")
	steps, err := m.Steps("default", large.Dims, nil)
	if err != nil || len(steps) != 3 || steps[0].Grid != [3]int{32, 1, 1} {
		t.Errorf("the steps are %+v (%v)", steps, err)
	}
	if other := joined(t, tunedManifest, edited(t, tunedManifest, "128 : 32", "128 : 64")); other.Recipe("default") == m.Recipe("default") {
		t.Error("another choice is the same recipe")
	}
}

// A pick holds at the shape that it was made for and at sizes that are nearest to it; before there is one, the manifest's own
// values do.
func TestPicked(t *testing.T) {
	m := parsed(t, edited(t, tunedManifest, `autotune: {BLOCK: "S > 100 ? 128 : 32", MODE: {text: fast}}`, "autotune: {all: {BLOCK: 16}}"))
	grid := func(m *Manifest, length int) int {
		steps, err := m.Steps("default", Dims{{Name: "S", Value: length}, {Name: "D", Value: 64}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return steps[0].Grid[0]
	}
	same(t, "before", grid(m, 4096), 256)
	var picks []Pick
	for name, block := range map[string]float64{"small": 32, "large": 512} {
		s, _ := m.Shape(name)
		picks = append(picks, Pick{Dims: s.Dims, Values: map[string]Literal{"BLOCK": {Kind: LiteralNumber, Number: block}}})
	}
	picked := m.Picked(picks)
	for length, blocks := range map[int]int{64: 2, 96: 3, 4096: 8, 2048: 4} {
		same(t, fmt.Sprint(length), grid(picked, length), blocks)
	}
	same(t, "the manifest itself", grid(m, 4096), 256)
	if !m.TriesAll() || parsed(t, tunedManifest).TriesAll() {
		t.Error("what is tried is not told")
	}
	same(t, "in words", m.Autotune.String(), "{all: {BLOCK: 16}}")
}
