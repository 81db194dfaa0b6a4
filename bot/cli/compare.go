package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/host/results"
	"github.com/kernelgate/kernelgate/runners/work/check"
)

func compareCommand(stdout io.Writer) *cobra.Command {
	policyName := ""
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare two results: the time of each shape with its significance, and all other differences",
		Long: "Compares the candidates of two results of check: two folders below results, or two evidence files\n" +
			"with --policy. The comparison gives no verdict, because a gate compares only within one run.",
		Example: "  kernelgate compare results/20260102T030405Z results/20260103T030405Z\n  kernelgate compare evidence/stage5.json evidence/stage6.json --policy h200",
		Args:    cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			policy, file, err := optionalPolicy(policyName)
			if err != nil {
				return err
			}
			var runs [2]report.Result
			for i, arg := range args {
				if runs[i], err = readRun(arg, policy, file); err != nil {
					return err
				}
			}
			_, err = fmt.Fprint(stdout, report.CompareRuns(runs[0], runs[1], terminalOptions(stdout)))
			return err
		},
	}
	policyFlag(cmd, &policyName, " to judge both by (default: use the verdict.json next to each evidence file)")
	return cmd
}

// optionalPolicy reads a policy; it returns nil if none is named.
func optionalPolicy(name string) (*policy.Policy, string, error) {
	if name == "" {
		return nil, "", nil
	}
	return check.ReadPolicy(name)
}

// readRun reads a folder of results or a file of evidence. If there is no policy, it also reads the
// verdict next to it.
func readRun(path string, policy *policy.Policy, policyFile string) (report.Result, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "evidence.json")
	}
	e, err := check.ReadEvidence(path)
	if err != nil {
		return report.Result{}, err
	}
	if policy != nil {
		return report.Result{Evidence: e, Verdict: gates.Judge(policy, policyFile, e)}, nil
	}
	beside := filepath.Join(filepath.Dir(path), "verdict.json")
	data, err := results.Read(beside)
	if err != nil {
		return report.Result{}, usage.Errorf("reading the verdict of %s: %w (--policy judges it again)", path, err)
	}
	var v gates.Verdict
	if err := json.Unmarshal(data, &v); err != nil {
		return report.Result{}, usage.Errorf("%s is not a verdict: %w (--policy judges the evidence again)", beside, err)
	}
	return report.Result{Evidence: e, Verdict: &v}, nil
}
