package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/runners/check"
	"github.com/kernelgate/kernelgate/runners/terminal"
)

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
