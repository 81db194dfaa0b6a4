package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners/work/check"
)

func policyCommand(stdout, stderr io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use: "policy", Short: "Check, explain and try policies; check manifests",
		Example: "  kernelgate policy lint .\n  kernelgate policy explain l4 --label tensor-cores\n  kernelgate policy simulate new.yaml",
		Args:    cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:     "lint FILE|FOLDER...",
		Short:   "Check policies and manifests (kernel.yaml, NAME.kernel.yaml), and report all mistakes at once",
		Example: "  kernelgate policy lint .    # all policies and manifests of a repository\n  kernelgate policy lint .github/kernelgate.yaml kernels/*/kernel.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return check.Lint(stdout, args) },
	})
	var change policy.Change
	explain := &cobra.Command{
		Use:     "explain [FILE]",
		Short:   "Show which rule applies to a change, and what the rule requires (default: the policy of this repository)",
		Example: "  kernelgate policy explain\n  kernelgate policy explain l4 --label tensor-cores",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := check.PolicyHere(cmd.Context(), args)
			if err != nil {
				return err
			}
			policy, file, err := check.ReadPolicy(name)
			if err != nil {
				return err
			}
			fmt.Fprint(stdout, policy.Explain(file, change))
			return nil
		},
	}
	f := explain.Flags()
	f.StringSliceVar(&change.Labels, "label", nil, "label of the change")
	f.StringVar(&change.Branch, "branch", "main", "base branch of the change")
	f.StringVar(&change.Title, "title", "", "title of the change")
	f.StringSliceVar(&change.Paths, "path", nil, "a file that the change edits")
	f.StringVar(&change.Kernel, "kernel", "", "name of the kernel")
	f.BoolVar(&change.Draft, "draft", false, "the pull request is a draft")
	cmd.AddCommand(explain, simulateCommand(stdout, stderr))
	return cmd
}
