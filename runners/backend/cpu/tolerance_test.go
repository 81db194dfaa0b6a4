package cpu

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/gather"
)

const softmaxManifest = `version: 1
name: softmax
mode: cpu
entry: softmax
flags: [-O2, -lm]
arguments:
  - {name: x, dtype: f32, access: in, shape: [R, C]}
  - {name: y, dtype: f32, access: out, shape: [R, C]}
  - {name: R, dtype: i32, access: scalar, value: R}
  - {name: C, dtype: i32, access: scalar, value: C}
reference: {source: reference.c, entry: reference}
tolerance: {abs: 1e-6, rel: 1e-3}
shapes: {small: {R: 5, C: 63}, wide: {R: 4, C: 700}}
secret: {R: 1..7, C: 1..300}
source: softmax.c
`

// softmax is a kernel with or without the maximum, and a factor on its output.
func softmax(maximum, factor string) string {
	return `#include <math.h>
#include <stdint.h>
void softmax(const float *x, float *y, int32_t R, int32_t C)
{
    for (int r = 0; r < R; r++, x += C, y += C) {
        float most = ` + maximum + `, sum = 0;
        for (int c = 0; c < C && most != 0; c++) most = x[c] > most ? x[c] : most;
        for (int c = 0; c < C; c++) sum += y[c] = expf(x[c] - most);
        for (int c = 0; c < C; c++) y[c] = y[c] / sum ` + factor + `;
    }
}
`
}

const softmaxReference = `#include <math.h>
#include <stdint.h>
void reference(const double *x, double *y, int32_t R, int32_t C)
{
    for (int r = 0; r < R; r++, x += C, y += C) {
        double most = x[0], sum = 0;
        for (int c = 0; c < C; c++) most = x[c] > most ? x[c] : most;
        for (int c = 0; c < C; c++) sum += exp(x[c] - most);
        for (int c = 0; c < C; c++) y[c] = exp(x[c] - most) / sum;
    }
}
`

// Under the policy that any repository may copy the manifest's tolerance decides: a
// softmax that is half a per cent too large, and one without the maximum, are wrong;
// an honest one is right on every kind of input.
func TestToleranceDecidesUnderTheDefaultPolicy(t *testing.T) {
	m, err := manifest.Parse("kernel.yaml", []byte(softmaxManifest))
	if err != nil {
		t.Fatal(err)
	}
	text, err := policies.Shipped("default")
	if err != nil {
		t.Fatal(err)
	}
	honest := softmax("x[0]", "")
	for _, c := range []struct {
		name, candidate, says string
	}{
		{"honest", softmax("x[0]", "+ 0.0f * sum"), ""},
		{"half a per cent too large", softmax("x[0]", "* 1.005f"), "beyond the manifest's tolerance (asked <= 0%)"},
		{"without the maximum", softmax("0", ""), "elements are NaN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, err := policy.Parse("default.yaml", text)
			if err != nil {
				t.Fatal(err)
			}
			for i := range p.Rules {
				p.Rules[i].Gates.Sanitize, p.Rules[i].Gates.Performance = nil, nil // comes behind, and takes long
			}
			e := gatherFiles(t, m, p, map[string]string{
				"base/softmax.c": honest, "base/reference.c": softmaxReference, "head/softmax.c": c.candidate,
			})
			v := gates.Judge(p, "default.yaml", e)
			if c.says == "" {
				if v.Outcome != gates.Pass || len(e.Correctness.Cases) != 2*3*5+5 {
					t.Errorf("%s (%s): %s, %d cases", v.Outcome, v.Reason, v.Summary, len(e.Correctness.Cases))
				}
				return
			}
			if v.Outcome != gates.Defer || v.Reason != gates.ReasonCorrectness || !strings.Contains(v.Summary, c.says) {
				t.Errorf("%s (%s): %s", v.Outcome, v.Reason, v.Summary)
			}
			for _, k := range e.Correctness.Cases {
				if k.Baseline == nil || k.Baseline.Bad > 0 {
					t.Errorf("the baseline is wrong too: %+v", k)
				}
			}
		})
	}
}

// gatherFiles takes the files of base and head through the policy's gates.
func gatherFiles(t *testing.T, m *manifest.Manifest, p *policy.Policy, files map[string]string) *gates.Evidence {
	t.Helper()
	root := sourceFolder(t, files)
	base := runners.Side{Dir: filepath.Join(root, "base"), Variant: m.DefaultVariant}
	job := runners.Job{Manifest: m, Policy: p, Trusted: base.Dir, Baseline: &base, Candidate: runners.Side{Dir: filepath.Join(root, "head"), Variant: m.DefaultVariant}}
	w := newWorker(t, job, Config{Scratch: t.TempDir(), LaunchTimeout: time.Minute, Getenv: func(string) string { return "" }})
	e, err := gather.Gather(t.Context(), job, w, silent{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}
