package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
	"github.com/kernelgate/kernelgate/runners/host/recordings"
	"github.com/kernelgate/kernelgate/runners/work/bisect"
)

func bisectCommand(stdout, stderr io.Writer) *cobra.Command {
	opt := bisect.Options{Version: version(), Now: time.Now, Fetcher: recordings.Here(os.Getenv)}
	gpu, asJSON, percent := "", false, 0.0
	cmd := &cobra.Command{
		Use:   "bisect KERNEL GOOD..BAD",
		Short: "Find the commit that made a kernel slower or wrong",
		Long: "Compares commits of the first-parent history with GOOD, round by round in fresh processes, and halves\n" +
			"the range until one commit is left. Policy, problem, reference, compilers, shapes, inputs and secret\n" +
			"cases are the same for all commits. Commits with known machine code are not measured, and commits\n" +
			"that do not build are passed over.\n\n" +
			"Exit status: 0 a commit was found, 1 BAD is not proven to be worse, 2 bad input, 3 ERROR.",
		Example: "  kernelgate bisect sdpa_cpu v1.2..main\n" +
			"  kernelgate bisect sdpa_fp8 HEAD~64..HEAD --shapes mission --error-rate 1",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var ok bool
			opt.Kernel = args[0]
			if opt.Good, opt.Bad, ok = strings.Cut(args[1], ".."); !ok || opt.Good == "" || opt.Bad == "" {
				return usage.Errorf("%q is not a range of commits (write GOOD..BAD, such as v1.2..main)", args[1])
			}
			if percent <= 0 || percent >= 50 {
				return usage.Errorf("--error-rate %v is not a percentage between 0 and 50 (write e.g. 5)", percent)
			}
			if opt.MaxRounds < 4 {
				return usage.Errorf("--rounds %d is too few to prove anything (write 4 or more)", opt.MaxRounds)
			}
			opt.Delta = percent / 100
			if err := measureOn(&opt.Config, gpu); err != nil {
				return err
			}
			live := liveProgress(cmd.Context(), stderr)
			found, err := bisect.Run(cmd.Context(), opt, live)
			live.Clear()
			nothing := errors.Is(err, bisect.ErrNotWorse)
			if err != nil && !nothing {
				return err
			}
			if asJSON {
				err = json.NewEncoder(stdout).Encode(found)
			} else {
				_, err = fmt.Fprint(stdout, found.Text(err))
			}
			if err == nil && nothing {
				return exit(exitDefer)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.Dir, "dir", "", "folder in the repository (default: the current one)")
	policyFlag(cmd, &opt.Policy, " (default: that of GOOD)")
	f.StringSliceVar(&opt.Shapes, "shapes", nil, "shapes to time (default: those that the policy times)")
	f.Float64Var(&percent, "error-rate", 5, "probability in percent that a different commit is named")
	f.IntVar(&opt.MaxRounds, "rounds", 60, "maximum number of rounds for one commit")
	f.BoolVar(&asJSON, "json", false, "print the report as JSON")
	gpuFlag(cmd, &gpu)
	includeFlag(cmd, &opt.Includes)
	opt.Runner = measure.Auto
	return cmd
}
