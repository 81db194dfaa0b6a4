package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
)

// policyFlag adds a flag for a policy by its file or its name. more is appended to the description.
func policyFlag(cmd *cobra.Command, to *string, more string) {
	cmd.Flags().StringVar(to, "policy", "", "policy file, or one of "+strings.Join(policies.ShippedNames(), ", ")+more)
	complete(cmd, "policy", policies.ShippedNames)
}

// includeFlag adds a flag for the sets of headers on this host.
func includeFlag(cmd *cobra.Command, sets *measure.IncludeSets) {
	cmd.Flags().StringToStringVar((*map[string]string)(sets), "include", nil, "set of headers that manifests include by name: cutlass=/opt/cutlass/include is for include: [<cutlass>]")
}

// toolchainFlag adds a flag for the additional compilers on this host.
func toolchainFlag(cmd *cobra.Command, paths *[]string) {
	cmd.Flags().StringSliceVar(paths, "toolchain", nil, "additional compiler that policies may pin: the folder of a CUDA toolkit, a folder with the package triton, or the program of a Python that has Triton")
}

// gpuFlag adds a flag that selects one GPU of this host.
func gpuFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "gpu", "", "which GPU to measure on: its number in nvidia-smi, or its UUID (default: the first)")
}

// complete offers words for a flag. Files are offered, too, unless words is nil.
func complete(cmd *cobra.Command, flag string, words func() []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		if words == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return words(), cobra.ShellCompDirectiveDefault // a policy may be a file
	})
}
