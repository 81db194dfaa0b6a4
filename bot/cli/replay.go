package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/runners/gather/measure"
	"github.com/kernelgate/kernelgate/runners/host/recordings"
	"github.com/kernelgate/kernelgate/runners/work/check"
)

func replayCommand(stdout, stderr io.Writer) *cobra.Command {
	dir, gpu, sets := "", "", measure.IncludeSets(nil)
	cmd := &cobra.Command{
		Use:   "replay RESULTS#CASE",
		Short: "Repeat one case of a check and show which elements are wrong, on both sides",
		Long: "Builds both sides of the check again and runs the case with the same inputs, secret or not. Shows\n" +
			"the first bad elements, their pattern, and what the baseline computes for them.\n" +
			"A case has a number: its position in the evidence, from 1. check prints the number. If the change\n" +
			"was not committed, replay uses the work tree as it is now.\n\n" +
			"Exit status: 0 the candidate is right in this case, 1 it is wrong, 2 bad input, 3 ERROR.",
		Example: "  kernelgate replay results/20260102T030405Z#3\n" +
			"  kernelgate replay evidence.json#12\n" +
			"  kernelgate check softmax --shape R=5,C=63 --seed 7 --inputs peaks   # a case that is in no evidence",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opt, one, err := check.Again(args[0])
			if err != nil {
				return err
			}
			opt.Dir, opt.Version, opt.Now, opt.Fetcher = dir, version(), time.Now, recordings.Here(os.Getenv)
			opt.Includes = sets
			if err := measureOn(&opt.Config, gpu); err != nil {
				return err
			}
			return repeat(cmd, opt, one, stdout, stderr)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "folder in the repository (default: the current one)")
	gpuFlag(cmd, &gpu)
	includeFlag(cmd, &sets)
	return cmd
}

// repeat shows one case.
func repeat(cmd *cobra.Command, opt check.Options, one check.One, stdout, stderr io.Writer) error {
	live := liveProgress(cmd.Context(), stderr)
	text, right, err := check.Replay(cmd.Context(), opt, one, live)
	live.Clear()
	if err != nil {
		return err
	}
	fmt.Fprint(stdout, text)
	if !right {
		return exit(exitDefer)
	}
	return nil
}

// maxReplays is the number of commands that are printed. The others differ only in the number of
// the case.
const maxReplays = 5

// printReplays prints the command that repeats each wrong case.
func printReplays(w io.Writer, r check.Result) {
	if len(r.Wrong) == 0 {
		return
	}
	fmt.Fprintln(w, "Repeat a wrong case, element by element:")
	for i, n := range r.Wrong {
		if i == maxReplays {
			fmt.Fprintf(w, "  … and %d more\n", len(r.Wrong)-i)
			break
		}
		k := r.Evidence.Correctness.Cases[n-1]
		fmt.Fprintf(w, "  kernelgate replay %s#%d   # %s, seed %d, %s inputs\n", r.Dir, n, k.Dims, k.Seed, k.Distribution)
	}
}
