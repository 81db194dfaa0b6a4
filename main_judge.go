package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/runners/check"
	"github.com/kernelgate/kernelgate/runners/terminal"
)

func judgeCommand(stdout io.Writer) *cobra.Command {
	policyName, format := "", "terminal"
	cmd := &cobra.Command{
		Use:     "judge EVIDENCE.json",
		Short:   "Judge stored evidence: the same evidence and policy always give the same verdict",
		Example: "  kernelgate judge results/20260102T030405Z/evidence.json --policy l4\n  kernelgate judge evidence.json --policy p.yaml --format markdown",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			policy, file, err := check.ReadPolicy(policyName)
			if err != nil {
				return err
			}
			evidence, err := check.ReadEvidence(args[0])
			if err != nil {
				return err
			}
			v := gates.Judge(policy, file, evidence)
			switch format {
			case "terminal":
				opt := terminalOptions(stdout)
				opt.More = "with --format markdown"
				fmt.Fprint(stdout, report.Terminal(v, opt))
			case "markdown":
				fmt.Fprint(stdout, report.Markdown(v, report.Options{}))
			case "json":
				enc := json.NewEncoder(stdout)
				enc.SetIndent("", "  ")
				if err := enc.Encode(v); err != nil {
					return fmt.Errorf("printing the verdict: %w", err)
				}
			default:
				return strict.Mistakef("--format: %q is not one of terminal, markdown, json", format)
			}
			return asExit(severity(v.Outcome))
		},
	}
	policyFlag(cmd, &policyName, " (required)")
	cmd.Flags().StringVar(&format, "format", format, "terminal, markdown or json")
	complete(cmd, "format", func() []string { return []string{"terminal", "markdown", "json"} })
	return cmd
}

// policyFlag is a policy by its file or its name; more says what it is for.
func policyFlag(cmd *cobra.Command, to *string, more string) {
	cmd.Flags().StringVar(to, "policy", "", "policy file, or one of "+strings.Join(policies.ShippedNames(), ", ")+more)
	complete(cmd, "policy", policies.ShippedNames)
}

func historyCommand(stdout io.Writer) *cobra.Command {
	policyName, format := "", ""
	cmd := &cobra.Command{
		Use:   "history KERNEL",
		Short: "Print the performance history of a kernel from its stored evidence",
		Long: "Judges every KERNEL/evidence/*.json by the policy and prints the gain of each variant over the previous\n" +
			"one, and the variants that did not work, with their lessons from KERNEL/kernel.yaml. A terminal gets\n" +
			"aligned columns; a file or a pipe gets Markdown.",
		Example: "  kernelgate history kernels/sdpa_fp8 --policy h200\n  kernelgate history kernels/sdpa_fp8 --policy h200 > kernels/sdpa_fp8/HISTORY.md",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if _, ok := terminal.Size(stdout); format == "" && !ok {
				format = "markdown"
			}
			var text string
			var err error
			switch format {
			case "", "terminal":
				text, err = check.TerminalHistory(args[0], policyName, terminalOptions(stdout))
			case "markdown":
				text, err = check.History(args[0], policyName)
			default:
				return strict.Mistakef("--format: %q is not one of terminal, markdown", format)
			}
			fmt.Fprint(stdout, text)
			return err
		},
	}
	policyFlag(cmd, &policyName, " (required)")
	cmd.Flags().StringVar(&format, "format", "", "terminal or markdown (default: terminal on a terminal, markdown elsewhere)")
	complete(cmd, "format", func() []string { return []string{"terminal", "markdown"} })
	return cmd
}

func policyCommand(stdout io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use: "policy", Short: "Check and explain policies and manifests",
		Example: "  kernelgate policy lint .\n  kernelgate policy explain l4 --label tensor-cores",
		Args:    cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:     "lint FILE|FOLDER...",
		Short:   "Check policies and manifests (kernel.yaml, NAME.kernel.yaml), and report all mistakes at once",
		Example: "  kernelgate policy lint .    # all policies and manifests of a repository\n  kernelgate policy lint .github/kernelgate.yaml kernels/*/kernel.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return check.Lint(stdout, args) },
	})
	var change policies.Change
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
	cmd.AddCommand(explain)
	return cmd
}
