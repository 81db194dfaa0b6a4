package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
)

func whyCommand(stdout io.Writer) *cobra.Command {
	var policyName string
	asJSON := false
	cmd := &cobra.Command{
		Use:   "why RESULTS",
		Short: "Explain why a kernel became faster or slower, from stored evidence",
		Long: "Explains the results of a check from the profiles of both sides: what limits each side, which counters moved\n" +
			"beyond the noise of the baseline, and the mechanism behind the difference. RESULTS is a folder of results or\n" +
			"an evidence.json with its verdict.json next to it. The rules are in docs/why.md.\n\n" +
			"Exit status: 0 printed, 2 bad input, 3 any other failure.",
		Example: "  kernelgate why results/20260102T030405Z\n  kernelgate why results/20260102T030405Z --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			policy, file, err := optionalPolicy(policyName)
			if err != nil {
				return err
			}
			run, err := readRun(args[0], policy, file)
			if err != nil {
				return err
			}
			run.Verdict.Why = gates.Explain(run.Evidence, run.Verdict.Comparisons)
			if !asJSON {
				_, err := fmt.Fprint(stdout, report.TerminalWhy(run.Verdict, terminalOptions(stdout)))
				return err
			}
			enc := json.NewEncoder(stdout)
			enc.SetIndent("", "  ")
			if err := enc.Encode(gates.WithMachineCode(run.Verdict)); err != nil {
				return fmt.Errorf("printing the explanation: %w", err)
			}
			return nil
		},
	}
	policyFlag(cmd, &policyName, " that judges the evidence again (default: the verdict next to it)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
