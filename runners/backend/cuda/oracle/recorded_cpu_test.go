package oracle

import (
	"fmt"
	"math"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/tensor"
	"github.com/kernelgate/kernelgate/runners/tensor/safetensors"
	"github.com/kernelgate/kernelgate/runners/tensor/safetensors/safetensorstest"
)

const recordedManifest = `version: 1
name: recorded
mode: cuda
entry: f
source: f.cu
arch: [sm_90]
launch: {grid: [1], block: [32]}
arguments:
  - %s
  - {name: y, dtype: f32, access: out, shape: [B]}
  - {name: z, dtype: f32, access: in, shape: [B, S]}
reference: {source: r.cu, entry: r, launch: {grid: [1], block: [32]}}
tolerance: {abs: 0.1}
shapes: {one: {B: 3, S: 7, D: 5}}
recorded:
  decode: {file: d.safetensors, sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08, shape: one, vary: {noise: %s, keep: [%s], shuffle: [%s]}, missing: draw}
`

// The device gives recorded inputs the very bits of the host: as they are, with noise, in other orders, quantised, clamped to
// their bounds, and with the inputs that the file does not have.
func TestDeviceRecordsAsTheHost(t *testing.T) {
	run := onCPU(t)
	for name, c := range map[string]struct {
		arg, noise, keep, shuffle, dtype string
		as                               manifest.DType
	}{
		"plain":       {"{name: x, dtype: f32, access: in, shape: [B, S, D]}", "0.1", "", "", "F32", manifest.F32},
		"shuffled":    {"{name: x, dtype: f16, access: in, shape: [B, S, D]}", "0.25", "", "B, S", "F16", manifest.F16},
		"last axis":   {"{name: x, dtype: bf16, access: in, shape: [B, S, D]}", "0.25", "", "S, D", "BF16", manifest.BF16},
		"kept":        {"{name: x, dtype: f64, access: in, shape: [B, S, D]}", "0.25", "x", "B", "F64", manifest.F64},
		"fp8":         {"{name: x, dtype: e4m3, access: in, shape: [B, S, D]}", "0.5", "", "", "F8_E4M3", manifest.E4M3},
		"integers":    {"{name: x, dtype: i32, access: in, shape: [B, S, D], init: -9..9}", "0.25", "", "S", "I32", manifest.I32},
		"bounded":     {"{name: x, dtype: f32, access: in, shape: [B, S, D], init: -2..2}", "0.5", "", "", "F32", manifest.F32},
		"infinities":  {"{name: x, dtype: f32, access: in, shape: [B, S, D], infinities: true}", "0.5", "", "", "F32", manifest.F32},
		"quantised":   {"{name: x, dtype: e4m3, access: in, shape: [B, S, D], quantize: {per: [S], scale: s}}\n  - {name: s, dtype: f32, access: in, shape: [S]}", "0.25", "", "B", "F32", manifest.F32},
		"not in file": {"{name: x, dtype: f32, access: in, shape: [B, S, D]}", "0.5", "", "", "", manifest.F32},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := manifest.Parse("kernel.yaml", fmt.Appendf(nil, recordedManifest, c.arg, c.noise, c.keep, c.shuffle))
			if err != nil {
				t.Fatal(err)
			}
			values := make([]float64, 3*7*5)
			for i := range values {
				values[i] = 2 * math.Sin(float64(i*i))
			}
			values[1], values[2], values[3] = 0, math.Copysign(0, -1), 2
			if name == "infinities" {
				values[4] = math.Inf(-1)
			}
			if name == "fp8" {
				values[5] = 448 // with noise, beyond the format
			}
			var tensors []safetensors.Tensor
			if c.dtype != "" {
				data := make([]byte, c.as.Bytes(len(values)))
				tensor.Encode(c.as, data, values)
				tensors = append(tensors, safetensors.Tensor{Name: "x", DType: safetensors.DType(c.dtype), Shape: []int{3, 7, 5}, Data: data})
			}
			r, err := tensor.NewRecording(m, m.Recorded[0], safetensorstest.Write(t, nil, tensors...))
			if err != nil {
				t.Fatal(err)
			}
			outline, err := tensor.Outline(m, m.Shapes[0], nil)
			if err != nil {
				t.Fatal(err)
			}
			in := input{member: -1, groups: outline.Args[0].Groups.Groups}
			compareInputOf(t, run, m, outline, tensor.Recordings{"recorded:decode": r}, "recorded:decode", in, []uint64{0, 3, 1 << 47})
		})
	}
}
