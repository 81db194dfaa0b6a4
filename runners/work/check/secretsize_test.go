package check

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
)

// TestSecretSize checks that a given size must be one that could have been drawn.
func TestSecretSize(t *testing.T) {
	m, err := manifest.Parse("kernel.yaml", []byte(`version: 1
name: scale
mode: cpu
arguments: [{name: y, dtype: f32, access: out, shape: [N]}]
reference: {source: reference.c, entry: truth}
tolerance: {abs: 1}
shapes: {small: {N: 10}}
limits: {N: 1..100}
source: scale.c
entry: scale
`))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("policy.yaml", []byte("version: 1\ngates: {correctness: {norm_error: \"<= 1%\"}, performance: {guard: {speedup: \">= -2%\"}}}\nrules: [{name: default}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	side := runners.Side{Variant: m.DefaultVariant}
	job := runners.Job{Manifest: m, Policy: p, Baseline: &side, Candidate: side}
	for text, want := range map[string]string{
		"":      "",
		"N=11":  "",
		"N=10":  "N=10 is the size of the shape small (write it like N=10, with a size that no shape of the manifest has)",
		"N=101": "N=101 is beyond the limits of scale, variant default",
		"M=3":   `"M=3" is not a dim of the kernel with a size`,
		"N=":    `"N=" is not a dim of the kernel with a size`,
	} {
		dims, err := secretSize(job, text)
		if want == "" && (err != nil || strings.ReplaceAll(dims.String(), " ", ",") != text) {
			t.Errorf("%q: %v, %v", text, dims, err)
		}
		if want != "" && (err == nil || !strings.HasPrefix(err.Error(), "--secret-shape: "+want)) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	job.Baseline = nil
	if _, err := secretSize(job, "N=11"); err == nil || !strings.Contains(err.Error(), "no secret shape of scale is timed") {
		t.Errorf("without a baseline: %v", err)
	}
}
