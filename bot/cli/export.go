package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/work/scaffold"
)

func exportCommand(stdout io.Writer) *cobra.Command {
	var opt scaffold.TraceOptions
	var flashinfer bool
	cmd := &cobra.Command{
		Use:   "export --flashinfer-trace RESULTS",
		Short: "Print results in the format of another tool",
		Long: "Prints the results of a check as FlashInfer-Bench traces: one line of JSON for each shape that was\n" +
			"compared and timed, or that failed. RESULTS is a folder of results or an evidence.json. The latency is\n" +
			"the median. The baseline's stands in for reference_latency_ms: kernelgate does not time the reference.\n" +
			"max_relative_error is the norm of the error divided by the norm of the expected output.\n\n" +
			"Exit status: 0 printed, 2 bad input, 3 any other failure.",
		Example: "  kernelgate export --flashinfer-trace results/20260102T030405Z --workloads rmsnorm.jsonl",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if !flashinfer {
				return usage.Errorf("say which format: --flashinfer-trace")
			}
			run, err := readRun(args[0], nil, "")
			if err != nil {
				return err
			}
			traces, err := scaffold.Traces(run.Evidence, run.Verdict, opt)
			if err != nil {
				return err
			}
			enc := json.NewEncoder(stdout)
			for _, t := range traces {
				if err := enc.Encode(t); err != nil {
					return fmt.Errorf("printing a trace: %w", err)
				}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVar(&flashinfer, "flashinfer-trace", false, "FlashInfer-Bench's traces (required)")
	f.StringVar(&opt.Definition, "definition", "", "name of the definition (default: the kernel's name)")
	f.StringVar(&opt.Solution, "solution", "", "name of the solution (default: kernelgate_ and the head's commit)")
	f.StringArrayVar(&opt.Workloads, "workloads", nil, "JSONL file of the definition's workloads, whose uuids the traces get; repeat the flag for more")
	return cmd
}
