package cpu

import (
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners/gather"
)

// Blocks of quantised weights, packed formats, every width of integers in arrays and structs within structs reach a function as C has
// them, and the reference as real numbers with the dims that it asks for.
func TestAwkwardInputs(t *testing.T) {
	const text = `
version: 1
name: scale
mode: cpu
entry: scale
source: scale.c
arguments:
  - {name: w, access: in, shape: [R, C/32], fields: [{name: d, dtype: f32, init: {scale: 0.1}}, {name: qs, dtype: u8, count: 16, init: any}]}
  - {name: x, dtype: f32, access: in, shape: [C]}
  - {name: four, dtype: int4, access: in, shape: [R]}
  - {name: fp4, dtype: e2m1, access: in, shape: [R]}
  - {name: a, dtype: i8, access: in, shape: [R], init: -5..5}
  - {name: b, dtype: u8, access: in, shape: [R], init: 0..200}
  - {name: c, dtype: i16, access: in, shape: [R], init: -500..500}
  - {name: e, dtype: u16, access: in, shape: [R], init: 0..1000}
  - {name: f, dtype: i32, access: in, shape: [R], init: -9..9}
  - {name: g, dtype: u32, access: in, shape: [R], init: 0..70000}
  - {name: h, dtype: i64, access: in, shape: [R], init: -100000..100000}
  - {name: k, dtype: u64, access: in, shape: [R], init: 0..100000}
  - {name: on, dtype: bool, access: in, shape: [R]}
  - {name: y, dtype: f64, access: out, shape: [R]}
  - name: p
    access: struct
    fields: [{name: flag, dtype: bool, value: 1}, {name: size, struct: size}, {name: blocks, dtype: u16, value: C/32}]
  - {name: size, access: struct, fields: [{name: rows, dtype: i64, value: R}, {name: end, dtype: u8, array: [3, 2, 1]}]}
reference: {source: reference.c, entry: reference, dims: [C, R]}
tolerance: {abs: 0.01, rel: 0.0001}
shapes: {mission: {R: 7, C: 64}}
`
	const kernel = `#include <stdbool.h>
#include <stdint.h>
struct block { float d; uint8_t qs[16]; };
struct size { int64_t rows; uint8_t end[3]; };
struct params { bool flag; struct size size; uint16_t blocks; };
static int nibble(const uint8_t *from, int i) { return from[i / 2] >> i % 2 * 4 & 15; }
void scale(const struct block *w, const float *x, const uint8_t *four, const uint8_t *fp4, const int8_t *a, const uint8_t *b, const int16_t *c, const uint16_t *e,
           const int32_t *f, const uint32_t *g, const int64_t *h, const uint64_t *k, const bool *on, double *y, struct params p)
{
    static const float e2m1[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    if (!p.flag || p.size.end[0] != 3 || p.size.end[2] != 1)
        return;
    for (int r = 0; r < p.size.rows; r++) {
        double sum = 0;
        for (int m = 0; m < p.blocks; m++)
            for (int i = 0; i < 16; i++) {
                const struct block *q = &w[r * p.blocks + m];
                sum += q->d * ((q->qs[i] & 15) - 8) * x[32 * m + i] + q->d * ((q->qs[i] >> 4) - 8) * x[32 * m + i + 16];
            }
        int q = nibble(fp4, r), s = nibble(four, r);
        y[r] = sum + (s < 8 ? s : s - 16) + (q < 8 ? e2m1[q] : -e2m1[q - 8]) + a[r] + b[r] + c[r] + e[r] + f[r] + (double)g[r] + (double)h[r] + (double)k[r] + (on[r] ? 0.25 : 0);
    }
}
`
	const ref = `#include <stdint.h>
void reference(const double *w_d, const double *w_qs, const double *x, const double *four, const double *fp4, const double *a, const double *b, const double *c, const double *e,
               const double *f, const double *g, const double *h, const double *k, const double *on, double *y, int64_t C, int64_t R)
{
    for (int r = 0; r < R; r++) {
        y[r] = four[r] + fp4[r] + a[r] + b[r] + c[r] + e[r] + f[r] + g[r] + h[r] + k[r] + on[r] / 4;
        for (int i = 0; i < C; i++) {
            int block = r * (C / 32) + i / 32, q = w_qs[16 * block + i % 16];
            y[r] += w_d[block] * ((i % 32 < 16 ? q % 16 : q / 16) - 8) * x[i];
        }
    }
}
`
	for _, cxx := range []bool{false, true} {
		manifestYAML, source := text, kernel
		if cxx {
			manifestYAML, source = strings.Replace(text, "scale.c\n", "scale.cpp\n", 1), strings.Replace(kernel, "void scale(", "extern \"C\" void scale(", 1)
		}
		m, err := manifest.Parse("kernel.yaml", []byte(manifestYAML))
		if err != nil {
			t.Fatal(err)
		}
		p, err := policy.Parse("test.yaml", []byte(correctOnly))
		if err != nil {
			t.Fatal(err)
		}
		worker := func(old, new string) *Worker {
			if !strings.Contains(source, old) {
				t.Fatalf("no %q", old)
			}
			w := newTestWorker(t, m, p, source, strings.Replace(source, old, new, 1), time.Minute)
			w.job.Trusted = sourceFolder(t, map[string]string{"reference.c": ref})
			return w
		}
		// Other machine code, so that it is run.
		passesAndSanitizes(t, worker("sum + (s < 8", "(on[r] ? 3 : 2) + sum - 2 - on[r] + (s < 8"), p)
		if cxx {
			continue
		}
		for old, wrong := range map[string]string{"i % 2 * 4": "4 - i % 2 * 4"} {
			w := worker(old, wrong)
			e, err := gather.Gather(t.Context(), w.job, w, silent{})
			if err != nil {
				t.Fatal(err)
			}
			if v := gates.Judge(p, "test.yaml", e); v.Reason != gates.ReasonCorrectness {
				t.Errorf("%s for %s: %s (%s): %s %s", wrong, old, v.Outcome, v.Reason, v.Summary, e.Fault)
			}
		}
	}
}
