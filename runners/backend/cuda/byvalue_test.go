package cuda

import (
	"os"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/gates"
)

// The layout of a struct, of vectors and of narrow scalars is the one of nvcc's own parameter table, in sizes and in offsets.
func TestByValueAsNVCCHasIt(t *testing.T) {
	needsCompiler(t)
	const list = `  - {name: x, dtype: f32, access: in, shape: [N]}
  - {name: y, dtype: f32, access: out, shape: [N]}
  - {name: on, dtype: bool, access: scalar, value: 1}
  - {name: little, dtype: i16, access: scalar, value: -3}
  - {name: grid, dtype: u32, access: scalar, vector: [N, 1, 1]}
  - {name: quad, dtype: f32, access: scalar, vector: [1, 2, 3, 4]}
  - {name: bytes, dtype: u8, access: scalar, vector: [1, 2]}
  - {name: missing, access: absent}
  - name: p
    access: struct
    fields:
      - {name: x, pointer: x}
      - {name: heads, dtype: u8, value: 7}
      - {name: scale, dtype: f32, value: 0.5}
      - {name: shape, dtype: i64, array: [N, 1, 1]}
      - {name: bias, pointer: none}
      - {name: quad, dtype: f32, vector: [1, 2, 3, 4]}
      - {name: tail, dtype: bool, value: 0}
  - {name: N, dtype: u64, access: scalar, value: N}
`
	const source = `#include <stdint.h>
namespace ns {
struct Params { const float* x; uint8_t heads; float scale; int64_t shape[3]; const float* bias; float4 quad; bool tail; };
template <int By> __global__ void scale(float* y, bool on, short little, uint3 grid, float4 quad, uchar2 bytes, const float* missing, Params p, unsigned long long N)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N && on && !missing) y[i] = By * p.x[i] * p.scale + little + grid.y + quad.z + bytes.y + p.shape[1] + p.quad.w + p.tail + p.heads;
}
}
`
	text, err := os.ReadFile("testdata/kernel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), "arguments:\n")
	_, after, _ := strings.Cut(rest, "launch:\n")
	manifest := strings.Replace(before, "entry: scale", "entry: ns::scale<2>", 1) + "arguments:\n" + list + "launch:\n" + after
	for _, arch := range []string{"sm_89", "sm_90"} {
		e, v := trial{manifest: manifest, policy: onlyBuilt, baseline: source, candidate: source, arch: arch}.gather(t)
		if v.Outcome != gates.Pass {
			t.Fatalf("%s: %s (%s): %s\n%+v", arch, v.Outcome, v.Reason, v.Summary, e.Candidate.Diagnostics)
		}
	}
	// A field too few is seen, and the table has the offsets of both.
	e, _ := trial{manifest: strings.Replace(manifest, "      - {name: shape, dtype: i64, array: [N, 1, 1]}\n", "", 1), policy: onlyBuilt, baseline: source, candidate: source, arch: "sm_90"}.gather(t)
	if d := e.Candidate.Diagnostics; e.Candidate.OK || len(d) != 9 || d[7].Message != "parameter 7: in the code 80 bytes at offset 64; in the manifest p (struct): 64 bytes at offset 64" {
		t.Errorf("%s\n%+v", e.Candidate.Error, d)
	}
	for i, d := range e.Candidate.Diagnostics[:8] {
		code, manifest, _ := strings.Cut(strings.TrimPrefix(d.Message, "parameter "), "; in the manifest ")
		if at := code[strings.Index(code, " at offset "):]; !strings.HasSuffix(manifest, at) {
			t.Errorf("parameter %d lies elsewhere: %s", i, d.Message)
		}
	}
}
