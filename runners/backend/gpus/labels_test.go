package gpus

import (
	"testing"

	"github.com/kernelgate/kernelgate/policies/ident"
)

func TestModelLabel(t *testing.T) {
	for name, want := range map[string]string{
		"NVIDIA L4": "l4", "NVIDIA H200": "h200", "NVIDIA L40S": "l40s", "Tesla T4": "t4", "NVIDIA A100-SXM4-80GB": "a100", "NVIDIA H100 80GB HBM3": "h100",
		"NVIDIA GeForce RTX 4090": "rtx-4090", "NVIDIA RTX 6000 Ada Generation": "rtx-6000", "": "",
	} {
		if got := modelLabel(name); got != want || want != "" && !ident.IsLabel(got) {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}
