package cli

import (
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/runners/host/results"
)

// These functions provide the completions for `kernelgate completion bash|zsh|fish`: the kernels
// below the current folder, their variants, and policies.

// completeKernels offers the kernels that are not on the command line yet.
func completeKernels(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, m := range manifestsHere() {
		if !slices.Contains(args, m.Name) && !slices.Contains(names, m.Name) {
			names = append(names, m.Name)
		}
	}
	return names, cobra.ShellCompDirectiveDefault // a folder is allowed, too
}

// variantsOf returns the names that can be used as a variant of the kernels.
func variantsOf(kernelNames []string) []string {
	var names []string
	for _, m := range manifestsHere() {
		if len(kernelNames) == 0 || slices.Contains(kernelNames, m.Name) {
			names = append(names, m.Named()...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// manifestsHere returns the readable manifests below the current folder, in the usual layouts.
func manifestsHere() []*manifest.Manifest {
	var all []*manifest.Manifest
	for _, pattern := range []string{"*", "*/*", "*/*/*", "*/*/*/*"} {
		files, _ := filepath.Glob(filepath.Join(pattern, "*"+manifest.FileName)) // the pattern is valid
		for _, file := range files {
			if !manifest.IsManifest(filepath.ToSlash(file)) {
				continue
			}
			text, err := results.ReadAtMost(file, strict.MaxBytes)
			if err != nil {
				continue
			}
			if m, err := manifest.Parse(file, text); err == nil {
				all = append(all, m)
			}
		}
	}
	return all
}
