package main

import (
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/runners/results"
)

// What a shell offers behind `kernelgate completion bash|zsh|fish`: the kernels below the
// current folder, their variants, and policies.

// complete offers words for a flag, and files where there are none.
func complete(cmd *cobra.Command, flag string, words func() []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		if words == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return words(), cobra.ShellCompDirectiveDefault // a policy may be a file
	})
}

// completeKernels offers the kernels that have not been named yet.
func completeKernels(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, m := range manifestsHere() {
		if !slices.Contains(args, m.Name) && !slices.Contains(names, m.Name) {
			names = append(names, m.Name)
		}
	}
	return names, cobra.ShellCompDirectiveDefault // or a folder
}

// variantsOf is what can be named as a variant of the kernels.
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

// manifestsHere is the manifests below the current folder that can be read, as people lay
// them out.
func manifestsHere() []*kernels.Manifest {
	var all []*kernels.Manifest
	for _, pattern := range []string{"*", "*/*", "*/*/*", "*/*/*/*"} {
		files, _ := filepath.Glob(filepath.Join(pattern, "*"+kernels.FileName)) // the pattern is right
		for _, file := range files {
			if !kernels.IsManifest(filepath.ToSlash(file)) {
				continue
			}
			text, err := results.ReadAtMost(file, strict.MaxBytes)
			if err != nil {
				continue
			}
			if m, err := kernels.Parse(file, text); err == nil {
				all = append(all, m)
			}
		}
	}
	return all
}
