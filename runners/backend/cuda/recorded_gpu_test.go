package cuda

import (
	"crypto/sha256"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/tensor"
	"github.com/kernelgate/kernelgate/runners/tensor/safetensors"
	"github.com/kernelgate/kernelgate/runners/tensor/safetensors/safetensorstest"
)

// A kernel that saturates where only recorded inputs go, and one that answers from what it knows of the recording, are deferred;
// an honest one passes on the recording itself and with noise.
func TestRecordedOnGPU(t *testing.T) {
	needsGPU(t)
	needsCompiler(t)
	const n = 1 << 16
	values := make([]float64, n)
	for i := range values {
		values[i] = math.Sin(float64(i))
		if i%97 == 0 {
			values[i] = 60
		}
	}
	data := make([]byte, 4*n)
	tensor.Encode(manifest.F32, data, values)
	file := safetensorstest.Write(t, nil, safetensors.Tensor{Name: "x", DType: "F32", Shape: []int{n}, Data: data})
	text := fmt.Sprintf(`version: 1
name: recorded
mode: cuda
entry: k
arch: [sm_89, sm_90]
source: scale.cu
arguments:
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
  - {name: n, dtype: i32, access: scalar, value: N}
launch: {grid: ["ceildiv(N, 256)"], block: [256]}
reference: {source: reference.cu, entry: reference, launch: {grid: ["ceildiv(N, 256)"], block: [256]}}
tolerance: {abs: 1e-5, rel: 1e-5}
shapes: {mission: {N: %d}}
recorded: {decode: {file: d.safetensors, sha256: %x, shape: mission, vary: {noise: 0.1}}}
`, n, sha256.Sum256(file))
	const policy = `version: 1
gates:
  correctness: {shapes: all, seeds: [0, 1], distributions: [normal, recorded], norm_error: "<= 0.1%"}
rules: [{name: default}]
`
	const (
		reference = `extern "C" __global__ void reference(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 2 * x[i]; }`
		right     = `extern "C" __global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i] + x[i]; }`
	)
	for name, c := range map[string]struct {
		edit    [2]string
		outcome gates.Outcome
	}{
		"right":     {[2]string{"", ""}, gates.Pass},
		"saturates": {[2]string{"x[i] + x[i]", "2 * fminf(x[i], 16)"}, gates.Defer},
		"knows it":  {[2]string{"x[i] + x[i]", "x[i] > 16 ? 120 : 2 * x[i]"}, gates.Defer},
	} {
		t.Run(name, func(t *testing.T) {
			candidate := strings.Replace(right, c.edit[0], c.edit[1], 1)
			e, v := trial{manifest: text, policy: policy, baseline: right, candidate: candidate, reference: reference, recorded: map[string][]byte{"decode": file}}.gather(t)
			if v.Outcome != c.outcome {
				t.Errorf("%s (%s): %s %s", v.Outcome, v.Reason, v.Summary, e.Fault)
			}
		})
	}
}
