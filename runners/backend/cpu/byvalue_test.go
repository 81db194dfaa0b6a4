package cpu

import (
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
)

// Structs, vectors, null pointers and narrow integers reach a function as C passes them.
func TestParametersByValue(t *testing.T) {
	const text = `
version: 1
name: scale
mode: cpu
entry: scale
source: scale.c
arguments:
  - name: p
    access: struct
    fields:
      - {name: x, pointer: x}
      - {name: y, pointer: y}
      - {name: bias, pointer: none}
      - {name: by, dtype: f32, value: 2}
      - {name: n, dtype: u16, value: N}
      - {name: strides, dtype: i64, array: [N, -1]}
      - {name: quad, dtype: f32, vector: [1, 2, 3, 4]}
  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
  - {name: grid, dtype: u32, access: scalar, vector: [N, 2, 3]}
  - {name: on, dtype: bool, access: scalar, value: 1}
  - {name: little, dtype: i8, access: scalar, value: -3}
  - {name: none, access: absent}
  - {name: N, dtype: i32, access: scalar, value: N}
reference: {source: reference.c, entry: reference}
tolerance: {abs: 0.001}
shapes: {mission: {N: 64}}
secret: {N: 1..3000}
limits: {N: 1..3000}
`
	const kernel = `#include <stdbool.h>
#include <stdint.h>
struct float4 { float x, y, z, w; } __attribute__((aligned(16)));
struct uint3 { unsigned x, y, z; };
struct params { const float *x; float *y; const float *bias; float by; uint16_t n; int64_t strides[2]; struct float4 quad; };
void scale(struct params p, struct uint3 grid, bool on, int8_t little, const void *none, int32_t N)
{
    if (p.bias || none || !on || little != -3 || grid.x != p.n || grid.y != 2 || grid.z != 3 || p.strides[0] != p.n || p.strides[1] != -1 || p.quad.w != 4)
        return;
    for (int i = 0; i < p.n; i++)
        p.y[i] = p.by * p.x[i];
}
`
	const ref = "#include <stdbool.h>\n#include <stdint.h>\nvoid reference(const double *x, double *y, bool on, int8_t little, int32_t N) { for (int i = 0; i < N; i++) y[i] = 2 * x[i]; }\n"
	m, err := manifest.Parse("kernel.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("test.yaml", []byte(correctOnly))
	if err != nil {
		t.Fatal(err)
	}
	w := newTestWorker(t, m, p, kernel, kernel, time.Minute)
	w.job.Trusted = sourceFolder(t, map[string]string{"reference.c": ref})
	passesAndSanitizes(t, w, p)
}
