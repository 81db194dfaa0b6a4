package cli

import (
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/bot/try"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/backend/gpus"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
)

func tryCommand(stdout, stderr io.Writer) *cobra.Command {
	opt := try.Options{Version: version(), Seed: rand.Uint64(), Now: time.Now, Getenv: os.Getenv, Out: stdout}
	var includes measure.IncludeSets
	cmd := &cobra.Command{
		Use:   "try [REPO]",
		Short: "Show what the bot would do with your repository, on this machine: no App, no account",
		Long: "Copies a local git repository to an embedded GitHub in a temporary folder, and opens its branches as\n" +
			"pull requests to the default branch. The bot and a runner on this machine judge them. The pages show\n" +
			"comments, checks and whether a pull request can be merged, as GitHub does. Then it waits: comment with\n" +
			"the curl command that it prints, or commit to a branch, and the bot judges the pull request again.\n" +
			"Ctrl-C removes everything except compiled kernels in the cache of kernelgate check. try only reads\n" +
			"your repository, and ignores uncommitted changes.\n\n" +
			"Exit status: 0 every pull request passes, 1 one does not, 2 bad input, 3 any other failure.",
		Example: "  kernelgate try                                  # all branches that are ahead of the default branch\n" +
			"  kernelgate try ~/src/kernels --branch faster    # one branch\n" +
			"  kernelgate try --once --label refactoring       # for scripts: exits after the last verdict",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				opt.Dir = args[0]
			}
			if err := includes.Check(); err != nil {
				return usage.Errorf("--include: %w", err)
			}
			opt.Includes, opt.Devices = includes, gpus.LabelsHere(os.Getenv, "all")
			live := liveProgress(cmd.Context(), stderr)
			defer live.Clear()
			opt.Live = live
			passed, err := try.Run(cmd.Context(), opt)
			if err != nil {
				return err
			}
			if !passed {
				return exit(exitDefer)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&opt.Branches, "branch", nil, "branch to open as a pull request; repeat the flag for more (default: all branches ahead of the base)")
	f.StringVar(&opt.Base, "base", "", "base branch of the pull requests (default: the branch of origin/HEAD, main or master)")
	f.StringSliceVar(&opt.Labels, "label", nil, "label of the pull requests, for the policy's rules")
	f.BoolVar(&opt.Once, "once", false, "exit after the last verdict and remove all files")
	includeFlag(cmd, &includes)
	toolchainFlag(cmd, &opt.Toolchains)
	complete(cmd, "base", nil)
	return cmd
}
