package demo

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/runners/check"
)

// The kernel's folder in the repository, and the file that every stage rewrites.
const (
	folder = "kernels/sdpa"
	source = folder + "/sdpa.c"
	readme = "README.md"
)

// firstCommit is the repository before the story: the kernel at stage 0, its
// manifest and reference, and a policy.
func firstCommit() (map[string]string, error) {
	policy, err := policies.Shipped("cpu")
	if err != nil {
		return nil, err
	}
	files := map[string]string{check.PolicyFile: string(policy), readme: "Attention kernels.\n"}
	for name, from := range map[string]string{"kernel.yaml": "kernel.yaml", "fp8.h": "fp8.h", "reference.c": "reference.c", "sdpa.c": "stage0.c"} {
		if files[folder+"/"+name], err = shipped(from); err != nil {
			return nil, err
		}
	}
	files[folder+"/kernel.yaml"], err = singleVariant(files[folder+"/kernel.yaml"])
	return files, err
}

func shipped(name string) (string, error) {
	text, err := kernels.Shipped.ReadFile("sdpa_cpu/" + name)
	if err != nil {
		return "", fmt.Errorf("reading the shipped kernel: %w", err)
	}
	return string(text), nil
}

// singleVariant makes the shipped manifest one whose only source is sdpa.c: in
// the story a change rewrites the kernel instead of adding a variant.
func singleVariant(manifest string) (string, error) {
	head, _, ok := strings.Cut(manifest, "\nvariants:")
	if !ok {
		return "", errors.New("the shipped manifest of sdpa_cpu does not end with its variants")
	}
	return head + "\nsource: sdpa.c\n", nil
}
