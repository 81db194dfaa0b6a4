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

const blocksManifest = `
version: 1
name: quantise
mode: cpu
entry: quantise
source: scale.c
arguments:
  - {name: x, dtype: f32, access: in, shape: [R, 32]}
  - {name: w, access: out, shape: [R], fields: [{name: id, dtype: u8}, {name: d, dtype: f32, tolerance: {rel: 1e-6}}, {name: qs, dtype: int4, count: 32, tolerance: {abs: 1}}]}
  - {name: R, dtype: i32, access: scalar, value: R}
reference: {source: reference.c, entry: reference}
tolerance: {abs: 0}
shapes: {mission: {R: 7}}
`

const blocksKernel = `#include <math.h>
#include <stdint.h>
#include <string.h>
struct block { uint8_t id; float d; uint8_t qs[16]; };
void quantise(const float *x, struct block *w, int R)
{
    for (int r = 0; r < R; r++) {
        struct block b;
        memset(&b, r, sizeof b);
        float most = 0;
        for (int i = 0; i < 32; i++)
            most = fmaxf(most, fabsf(x[32 * r + i]));
        b.id = 160 + r;
        b.d = most / 7;
        for (int i = 0; i < 32; i += 2) {
            int low = (int)rintf(x[32 * r + i] / b.d), high = (int)rintf(x[32 * r + i + 1] / b.d);
            b.qs[i / 2] = (low & 15) | (high & 15) << 4;
        }
        memcpy(&w[r], &b, sizeof b);
    }
}
`

const blocksReference = `#include <math.h>
#include <stdint.h>
void reference(const double *x, double *w_id, double *w_d, double *w_qs, int32_t R)
{
    for (int r = 0; r < R; r++) {
        double most = 0;
        for (int i = 0; i < 32; i++)
            most = fmax(most, fabs(x[32 * r + i]));
        w_id[r] = 160 + r;
        w_d[r] = most / 7;
        for (int i = 0; i < 32; i++)
            w_qs[32 * r + i] = rint(x[32 * r + i] / w_d[r]);
    }
}
`

// A kernel may write blocks of quantised numbers. Each member has its own tolerance, and what lies between members has none.
func TestBlocksWritten(t *testing.T) {
	m, err := manifest.Parse("kernel.yaml", []byte(blocksManifest))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("test.yaml", []byte(correctOnly))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ old, new, wrong string }{
		{"memset(&b, r, sizeof b)", "memset(&b, 2 * r + 1, sizeof b)", ""},
		{"most / 7", "most / 8", "w_d"},
		{"160 + r", "160 + r / 2", "w_id"},
		{"(high & 15) << 4", "(low & 15) << 4", "w_qs"},
		{"memcpy(&w[r], &b, sizeof b)", "w[r].d = b.d, memcpy(w[r].qs, b.qs, 16)", "w_id"},
	} {
		w := newTestWorker(t, m, p, blocksKernel, strings.Replace(blocksKernel, test.old, test.new, 1), time.Minute)
		w.job.Trusted = sourceFolder(t, map[string]string{"reference.c": blocksReference})
		e, err := gather.Gather(t.Context(), w.job, w, silent{})
		if err != nil {
			t.Fatal(err)
		}
		v := gates.Judge(p, "test.yaml", e)
		if test.wrong == "" {
			if v.Outcome != gates.Pass {
				t.Errorf("%s: %s (%s): %s %s", test.new, v.Outcome, v.Reason, v.Summary, e.Fault)
			}
			continue
		}
		var wrong []string
		for _, o := range e.Correctness.Cases[0].Errors.Outputs {
			if o.Bad > 0 {
				wrong = append(wrong, o.Name)
			}
		}
		if v.Reason != gates.ReasonCorrectness || !strings.Contains(strings.Join(wrong, " "), test.wrong) {
			t.Errorf("%s: %s (%s), and %s are wrong, want %s", test.new, v.Outcome, v.Reason, wrong, test.wrong)
		}
	}
}
