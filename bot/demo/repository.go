package demo

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/runners/work/check"
)

// The kernel's folder in the repository, and its first source file.
const (
	folder = "kernels/sdpa"
	source = folder + "/sdpa.c"
	readme = "README.md"
)

// firstCommit returns the repository before the story: the kernel at stage 0, its manifest and
// reference, and a policy.
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

// singleVariant changes the shipped manifest to have sdpa.c as its only source.
func singleVariant(manifest string) (string, error) {
	head, err := beforeVariants(manifest)
	return head + "source: sdpa.c\n", err
}

// withVariant changes the shipped manifest to list the merged variants and a new one, which becomes
// the default. Each variant except the first has a separate file.
func withVariant(manifest string, merged []string, name string) (string, error) {
	head, err := beforeVariants(manifest)
	var b strings.Builder
	b.WriteString(head + "variants:\n")
	for i, v := range append(slices.Clip(merged), name) {
		file := v + ".c"
		if i == 0 {
			file = path.Base(source)
		}
		fmt.Fprintf(&b, "  %s: {source: %s}\n", v, file)
	}
	return b.String() + "default_variant: " + name + "\n", err
}

func beforeVariants(manifest string) (string, error) {
	head, _, ok := strings.Cut(manifest, "\nvariants:")
	if !ok {
		return "", errors.New("the shipped manifest of sdpa_cpu does not end with its variants")
	}
	return head + "\n", nil
}
