package tensor

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/tensor/safetensors"
	"github.com/kernelgate/kernelgate/runners/tensor/safetensors/safetensorstest"
)

const recordingManifest = `version: 1
name: rows
mode: cpu
entry: rows
source: rows.c
arguments:
  - {name: x, dtype: f32, access: in, shape: [B, S]}
  - {name: w, dtype: f32, access: in, shape: [B]}
  - {name: index, dtype: i32, access: in, shape: [S], init: 0..S-1}
  - {name: y, dtype: f32, access: out, shape: [B, S]}
  - {name: scale, dtype: f32, access: scalar, value: 1/sqrt(S)}
reference: {source: reference.c, entry: rows_reference}
tolerance: {abs: 0.06}
shapes: {mission: {B: 5, S: 4}}
recorded:
  decode: {file: d.safetensors, sha256: 0f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08, shape: mission, vary: {noise: 0.1, keep: [w], shuffle: [B]}}
`

func recordedTensor(d manifest.DType, name string, dtype safetensors.DType, shape []int, values ...float64) safetensors.Tensor {
	data := make([]byte, d.Bytes(len(values)))
	Encode(d, data, values)
	return safetensors.Tensor{Name: name, DType: dtype, Shape: shape, Data: data}
}

// Noise stays within what the manifest says, differs between seeds, and leaves zeros and what is kept; rows move together.
func TestRecording(t *testing.T) {
	m, err := manifest.Parse("kernel.yaml", []byte(recordingManifest))
	if err != nil {
		t.Fatal(err)
	}
	x, w := make([]float64, 20), []float64{1, 2, 3, 4, 5}
	for i := range x {
		x[i] = float64((i/4 + 1) * 100)
	}
	x[3] = 0
	good := []safetensors.Tensor{recordedTensor(manifest.F32, "x", "F32", []int{5, 4}, x...), recordedTensor(manifest.F32, "w", "F32", []int{5}, w...), recordedTensor(manifest.I32, "index", "I32", []int{4}, 3, 1, 0, 2)}
	r, err := NewRecording(m, m.Recorded[0], safetensorstest.Write(t, map[string]string{"scale": "0.5"}, good...))
	if err != nil {
		t.Fatal(err)
	}
	all := Recordings{"recorded:decode": r}
	draw := func(seed uint64) *Problem {
		p, err := all.Problem(m, m.Shapes[0], nil, "recorded:decode", seed)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := draw(0); !slices.Equal(p.Args[0].Real, x) || !slices.Equal(p.Args[1].Real, w) || !slices.Equal(p.Args[2].Real, []float64{3, 1, 0, 2}) {
		t.Errorf("seed 0 is not the recording: %v %v", p.Args[0].Real, p.Args[1].Real)
	}
	orders := map[string]bool{}
	seen := map[float64]bool{}
	for seed := uint64(1); seed < 50; seed++ {
		p := draw(seed)
		orders[fmt.Sprint(p.Args[1].Real)] = true
		zeros := 0
		for i, got := range p.Args[0].Real {
			row := p.Args[1].Real[i/4] // w is not disturbed, and says which row this was
			if got == 0 {
				zeros++
				continue
			}
			if math.Abs(got/(row*100)-1) > 0.1001 {
				t.Fatalf("seed %d: element %d is %v in row %v", seed, i, got, row)
			}
			seen[got] = true
		}
		if zeros != 1 || !slices.Equal(p.Args[2].Real, []float64{3, 1, 0, 2}) {
			t.Errorf("seed %d: %d zeros, index %v", seed, zeros, p.Args[2].Real)
		}
	}
	if len(orders) < 20 || len(seen) < 900 {
		t.Errorf("49 seeds gave %d orders and %d different values", len(orders), len(seen))
	}
	replace := func(i int, with ...safetensors.Tensor) []safetensors.Tensor {
		return slices.Concat(good[:i], with, good[i+1:])
	}
	for name, c := range map[string]struct {
		tensors []safetensors.Tensor
		want    string
	}{
		"missing":         {replace(1), "it has no tensor for the input w (record it, or write missing: draw)"},
		"another shape":   {replace(1, recordedTensor(manifest.F32, "w", "F32", []int{1, 5}, w...)), `tensor "w" has the shape [1 5], and at this shape the argument has [5]`},
		"another format":  {replace(1, recordedTensor(manifest.F16, "w", "F16", []int{5}, w...)), `tensor "w" is F16, and the argument is f32 (record it as F32)`},
		"unknown":         {append(slices.Clone(good), recordedTensor(manifest.F32, "v", "F32", []int{1}, 1)), `tensor "v" has the name of no argument`},
		"NaN":             {replace(1, recordedTensor(manifest.F32, "w", "F32", []int{5}, 1, 2, math.NaN(), 4, 5)), `tensor "w" has a NaN at element 2`},
		"infinity":        {replace(1, recordedTensor(manifest.F32, "w", "F32", []int{5}, 1, 2, 3, math.Inf(1), 5)), `tensor "w" has an infinity at element 3`},
		"index too large": {replace(2, recordedTensor(manifest.I32, "index", "I32", []int{4}, 0, 1, 77531, 3)), `tensor "index" is out of the argument's bounds at element 2`},
		"scalar":          {append(slices.Clone(good), recordedTensor(manifest.F32, "scale", "F32", []int{}, 77531)), "the scalar scale was recorded with a different value"},
	} {
		_, err := NewRecording(m, m.Recorded[0], safetensorstest.Write(t, nil, c.tensors...))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		} else if strings.Contains(err.Error(), "77531") {
			t.Errorf("%s: a value is quoted: %v", name, err)
		}
	}
}
