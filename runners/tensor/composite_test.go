package tensor

import (
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/distribution"
)

const paramsManifest = `
version: 1
name: forward
mode: cpu
source: k.c
entry: forward
arguments:
  - name: p
    access: struct
    fields:
      - {name: q, pointer: q}
      - {name: heads, dtype: u8, value: 7}
      - {name: scale, dtype: f32, value: 0.5}
      - {name: strides, dtype: i16, array: [-1, S]}
      - {name: bias, pointer: none}
      - {name: pair, dtype: u32, vector: [1, 2]}
      - {name: out, pointer: out}
  - {name: q, dtype: f32, access: in, shape: [S]}
  - {name: out, dtype: f32, access: out, shape: [S]}
  - {name: flag, dtype: bool, access: scalar, value: 1}
  - {name: quad, dtype: u16, access: scalar, vector: [1, 2, 3, 65535]}
  - {name: none, access: absent}
  - {name: big, dtype: u64, access: scalar, value: 1099511627776}
reference: {source: r.c, entry: r}
tolerance: {abs: 1}
shapes: {one: {S: 16}}
`

// TestPassedBytes checks the bytes of every parameter that is passed by value, with the addresses
// of arrays filled in.
func TestPassedBytes(t *testing.T) {
	m, err := manifest.Parse("kernel.yaml", []byte(paramsManifest))
	if err != nil {
		t.Fatal(err)
	}
	shape, _ := m.Shape("one")
	p, err := NewProblem(m, shape, nil, distribution.Normal, 1)
	if err != nil {
		t.Fatal(err)
	}
	address := func(arg int) uint64 { return 0x1111111111111100 + uint64(arg) }
	var got []string
	for _, a := range p.Args {
		if a.Inside || a.Array() {
			continue
		}
		got = append(got, a.Name+" "+hex.EncodeToString(a.Passed(p.Args, address)))
		if a.Alignment()&(a.Alignment()-1) != 0 || len(a.Passed(p.Args, address))%a.Alignment() != 0 {
			t.Errorf("%s: %d bytes aligned to %d", a.Name, len(a.Passed(p.Args, address)), a.Alignment())
		}
	}
	want := []string{
		"p 0111111111111111" + "07000000" + "0000003f" + "ffff1000" + "00000000" + "0000000000000000" + "0100000002000000" + "0211111111111111",
		"flag 01", "quad 010002000300ffff", "none 0000000000000000", "big 0000000000010000",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// The code's parameter table has the same number and sizes.
	params, i := m.Parameters(nil), 0
	for _, a := range p.Args {
		if a.Inside {
			continue
		}
		size := 8
		if !a.Array() {
			size = len(a.Passed(p.Args, address))
		}
		if params[i].Name != a.Name || params[i].Size != size {
			t.Errorf("parameter %d is %+v, and %s of %d bytes is passed", i, params[i], a.Name, size)
		}
		i++
	}
	if i != len(params) {
		t.Errorf("%d of %d parameters are passed", i, len(params))
	}
	var names []string
	for _, a := range p.ReferenceArgs(false) {
		names = append(names, a.Name)
	}
	if strings.Join(names, " ") != "q out flag big" {
		t.Errorf("the reference is given %s", names)
	}
}

// TestSettingsPassed checks that settings are passed by the side's own toggles, that the reference
// receives none of them, and that a tensor map's place in a struct is left to the side.
func TestSettingsPassed(t *testing.T) {
	m, err := manifest.Parse("kernel.yaml", []byte(`
version: 1
name: a
mode: cuda
entry: f
source: a.cu
arch: [sm_90]
toggles: {SPLITS: {values: [1, 4], default: 1, layer: structure}}
arguments:
  - {name: x, dtype: f16, access: in, shape: [S, S], tensor_map: {box: [16, 16]}}
  - {name: y, dtype: f32, access: out, shape: [S]}
  - {name: rows, dtype: i32, access: scalar, value: S}
  - {name: splits, dtype: i32, access: scalar, setting: SPLITS}
  - {name: p, access: struct, fields: [{name: x, tensor_map: x}, {name: y, pointer: y}, {name: tiles, dtype: u8, settings: [S/SPLITS, SPLITS]}]}
reference: {source: r.cu, entry: r, launch: {grid: [1], block: [1]}}
tolerance: {abs: 1}
shapes: {one: {S: 16}}
launch: {grid: [SPLITS], block: [1]}
`))
	if err != nil {
		t.Fatal(err)
	}
	shape, _ := m.Shape("one")
	for splits, want := range map[int][2]string{1: {"01000000", "1001"}, 4: {"04000000", "0404"}} {
		p, err := NewProblem(m, shape, map[string]int{"SPLITS": splits}, distribution.Normal, 1)
		if err != nil {
			t.Fatal(err)
		}
		address := func(arg int) uint64 { return 0x1111111111111100 + uint64(arg) }
		if got := hex.EncodeToString(p.Args[3].Passed(p.Args, address)); got != want[0] {
			t.Errorf("splits is %s, want %s", got, want[0])
		}
		got := hex.EncodeToString(p.Args[4].Passed(p.Args, address))
		if len(got) != 512 || got != strings.Repeat("00", 128)+"0111111111111111"+want[1]+strings.Repeat("00", 118) || p.Args[4].Alignment() != 128 {
			t.Errorf("the struct is %s, want %s behind the tensor map", got, want[1])
		}
		if parts := p.Args[4].Parts; !parts[0].TensorMap || parts[0].Arg != 0 || parts[1].TensorMap {
			t.Errorf("its parts are %+v", parts)
		}
		var names []string
		for _, a := range p.Reference() {
			names = append(names, a.Name)
		}
		if strings.Join(names, " ") != "x y rows" {
			t.Errorf("the reference is given %s", names)
		}
	}
}

// TestIntegersKeepTheirLimits checks that every integer width keeps its limits.
func TestIntegersKeepTheirLimits(t *testing.T) {
	for d, limits := range map[manifest.DType][2]float64{
		manifest.I16: {math.MinInt16, math.MaxInt16}, manifest.U16: {0, math.MaxUint16}, manifest.U32: {0, math.MaxUint32}, manifest.U64: {0, 1 << 63}, manifest.Bool: {0, 1},
	} {
		for _, x := range limits {
			data, back := make([]byte, d.Size()), make([]float64, 1)
			Encode(d, data, []float64{x})
			if Decode(d, back, data); back[0] != x {
				t.Errorf("%s: %v became %v", d, x, back[0])
			}
		}
		data, back := make([]byte, d.Size()), make([]float64, 1)
		Encode(d, data, []float64{-1e30})
		if Decode(d, back, data); back[0] != limits[0] {
			t.Errorf("%s: −10³⁰ became %v", d, back[0])
		}
		Encode(d, data, []float64{math.NaN()})
		if Decode(d, back, data); back[0] != 0 {
			t.Errorf("%s: NaN became %v", d, back[0])
		}
	}
}
