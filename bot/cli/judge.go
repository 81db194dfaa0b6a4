package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/facts"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/work/check"
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
			v.Unsteady = facts.Sentences(gates.Unsteady(evidence))
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
				return usage.Errorf("--format: %q is not one of terminal, markdown, json", format)
			}
			return asExit(severity(v))
		},
	}
	policyFlag(cmd, &policyName, " (required)")
	cmd.Flags().StringVar(&format, "format", format, "terminal, markdown or json")
	complete(cmd, "format", func() []string { return []string{"terminal", "markdown", "json"} })
	return cmd
}
