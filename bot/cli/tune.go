package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/bot/pages"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/policies/shell"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
	"github.com/kernelgate/kernelgate/runners/host/recordings"
	"github.com/kernelgate/kernelgate/runners/work/tune"
)

func tuneCommand(stdout, stderr io.Writer) *cobra.Command {
	opt := tune.Options{Version: version(), Now: time.Now, Fetcher: recordings.Here(os.Getenv)}
	gpu, epsilon, replay, listen := "", "", "", ""
	all := false
	cmd := &cobra.Command{
		Use:   "tune KERNEL",
		Short: "Search the variants and toggles of a kernel, and have the gate prove the winner",
		Long: "Compiles every point of the space that the manifest declares, on all cores, and times them next to\n" +
			"each other. The best few race: every round times each of them paired with the incumbent, and an arm\n" +
			"leaves the race when it is proven slower. The winner goes through the ordinary gate with fresh rounds\n" +
			"and inputs. In a space of more than 2,000 points a proposer chooses which are compiled.\n" +
			"The log, the verdict and a chart are in results/tune-<UTC time>/. --serve and kernelgate open show\n" +
			"them as a page, which is updated while the search runs.\n\n" +
			"Exit status: 0 the gate passes a winner, 1 nothing is proven better, 2 bad input, 3 ERROR.",
		Example: "  kernelgate tune sdpa_cpu\n" +
			"  kernelgate tune sdpa_fp8 --variant stage5 --shapes mission,long --budget 10m\n" +
			"  kernelgate tune sdpa_fp8 --variant stage6_fp8 --toggle ROW_WARPS,KEY_SPLITS --proposer grid\n" +
			"  kernelgate tune sdpa_fp8 --proposer ./propose.py --candidates 50   # any program may propose\n" +
			"  kernelgate tune sdpa_fp8 --resume results/tune-20260102T030405Z\n" +
			"  kernelgate tune --replay results/tune-20260102T030405Z/search.jsonl --proposer genetic   # no GPU needed",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 0) == (replay == "") {
				return usage.Errorf("name the kernel to search, or a log with --replay (see kernelgate tune --help)")
			}
			var err error
			if opt.Epsilon, err = parseShare(epsilon); err != nil {
				return usage.Errorf("--epsilon: %w", err)
			}
			if replay != "" {
				return replaySearch(cmd, opt, replay, all, stdout)
			}
			if opt.Candidates < 1 {
				return usage.Errorf("--candidates: %d are too few to search (write 1 or more)", opt.Candidates)
			}
			if opt.Budget <= 0 {
				return usage.Errorf("--budget: %v is no time to measure in (write e.g. 10m)", opt.Budget)
			}
			if err := measureOn(&opt.Config, gpu); err != nil {
				return err
			}
			opt.Kernel = args[0]
			if cmd.Flags().Changed("serve") {
				if err := loopbackAddress("--serve", listen); err != nil {
					return err
				}
			}
			return runSearch(cmd.Context(), opt, searchOutput{all: all, listen: listen, stdout: stdout, stderr: stderr})
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.Dir, "dir", "", "folder in the repository (default: the current one)")
	policyFlag(cmd, &opt.Policy, " (default: the repository's)")
	f.StringSliceVar(&opt.Labels, "label", nil, "label of the change, for the policy's rules")
	f.StringVar(&opt.Baseline, "baseline-variant", "", "the incumbent; toggles may follow, as in stage5,NUM_STAGES=4 (default: the default variant)")
	f.StringSliceVar(&opt.Variants, "variant", nil, "variants to search (default: all)")
	f.StringSliceVar(&opt.Toggles, "toggle", nil, "toggles to search; the others keep the variant's values (default: all)")
	f.StringSliceVar(&opt.Shapes, "shapes", nil, "shapes to race on (default: those that the policy times)")
	f.StringVar(&opt.Proposer, "proposer", "", "what suggests candidates: "+strings.Join(tune.Proposers(), ", ")+", or the path of a program with its arguments (default: all points of a small space, and local in a large one)")
	f.IntVar(&opt.Candidates, "candidates", 2000, "maximum number of candidates")
	f.DurationVar(&opt.Budget, "budget", 10*time.Minute, "maximum time until the winner of the race is known; at most half of it is for compiling and the first look")
	f.BoolVar(&opt.NoGate, "no-gate", false, "end with the winner of the race, and do not ask the gate")
	f.StringVar(&epsilon, "epsilon", "1%", "end the race when no arm can be faster than the best by more than this")
	f.IntVar(&opt.MaxRounds, "max-rounds", 0, "maximum number of rounds in which two arms are compared (default 40)")
	f.BoolVar(&opt.Exhaustive, "exhaustive", false, "measure every point of the space in all rounds and drop nothing: the truth to compare a search with")
	f.Uint64Var(&opt.Seed, "seed", 0, "seed of the search (default: a random one)")
	f.BoolVar(&opt.Retry, "retry-failed", false, "run candidates again that failed in earlier searches")
	f.StringVar(&opt.Resume, "resume", "", "folder of a search to go on with, with the options that it began with")
	f.StringVar(&replay, "replay", "", "log of a search: try a proposer on its measurements, and measure nothing")
	f.BoolVar(&all, "all", false, "show all candidates")
	f.StringVar(&listen, "serve", "", "serve a page about the search on a loopback address until Ctrl-C; --serve=127.0.0.1:8080 names one")
	f.Lookup("serve").NoOptDefVal = "127.0.0.1:0"
	f.StringVar(&opt.Runner, "runner", measure.Auto, "only kernels of mode cpu or cuda, or auto for all of them")
	includeFlag(cmd, &opt.Includes)
	gpuFlag(cmd, &gpu)
	f.StringVar(&opt.Results, "results", "", "folder for results (default: results in the repository)")
	cmd.ValidArgsFunction = completeKernels
	complete(cmd, "runner", measure.Runners)
	complete(cmd, "proposer", tune.Proposers)
	for _, flag := range []string{"variant", "baseline-variant"} {
		_ = cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return variantsOf(args), cobra.ShellCompDirectiveNoFileComp
		})
	}
	return cmd
}

// A searchOutput says how to show the results of a search.
type searchOutput struct {
	all            bool
	listen         string // address of the page; "" means none
	stdout, stderr io.Writer
}

// runSearch runs a search and prints its result. If there is a page about the search, runSearch serves it
// until Ctrl-C.
func runSearch(ctx context.Context, opt tune.Options, out searchOutput) error {
	all, stdout, stderr := out.all, out.stdout, out.stderr
	live := liveProgress(ctx, stderr)
	folder := ""
	var page error
	s, err := tune.Run(ctx, opt, live, func(dir string) {
		if folder = shown(dir); out.listen != "" {
			page = serveSearch(ctx, out.listen, dir, stderr)
		}
	})
	live.Clear()
	if page != nil {
		fmt.Fprintf(stderr, "kernelgate: there is no page about the search: %v\n", page)
	} else if err == nil && out.listen != "" {
		defer func() {
			fmt.Fprintln(stderr, "kernelgate: the page stays until Ctrl-C")
			<-ctx.Done()
		}()
	}
	if ctx.Err() != nil && folder != "" {
		fmt.Fprintf(stderr, "kernelgate: interrupted; go on with: kernelgate tune %s\n", strings.Join(resumeWords(opt, folder), " "))
		return exit(exitError)
	}
	var bad usage.Error
	if err != nil && folder != "" && !errors.As(err, &bad) {
		return fmt.Errorf("%w\nGo on with: kernelgate tune %s", err, strings.Join(resumeWords(opt, folder), " "))
	}
	if err != nil {
		return err
	}
	fmt.Fprint(stdout, s.Result.Report(tune.ReportOptions{Width: terminalOptions(stdout).Width, All: all}))
	if s.Verdict != nil {
		fmt.Fprint(stdout, "\n"+report.Terminal(s.Verdict, terminalOptions(stdout)))
	}
	if s.Result.Winner != "" {
		c := s.Result.Find(s.Result.Winner).Candidate
		fmt.Fprintf(stdout, "\nThe change to commit:\n\n%s", tune.Diff(s.ManifestFile, s.Manifest, c, s.Sources, s.PathOf))
	}
	fmt.Fprintf(stdout, "\nWritten to %s\n", folder)
	return asExit(s.Result.Exit())
}

// serveSearch serves the page of a search in the background.
func serveSearch(ctx context.Context, listen, dir string, stderr io.Writer) error {
	folder, err := pages.OpenFolder(dir, nil, nil)
	if err != nil {
		return err
	}
	logs, err := folder.Searches(ctx, pages.SearchFilter{})
	if err != nil || len(logs) == 0 {
		return fmt.Errorf("finding the log in %s: %w", dir, err)
	}
	l, err := listenPages(ctx, listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "kernelgate: the search is at http://%s/searches/%s\n", l.Addr(), logs[0].Name)
	go func() {
		if err := servePagesOn(ctx, l, folder); err != nil {
			fmt.Fprintf(stderr, "kernelgate: the page has ended: %v\n", err)
		}
	}()
	return nil
}

// shown is a folder as a user would write it.
func shown(dir string) string {
	if wd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(wd, dir); err == nil && filepath.IsLocal(rel) {
			return rel
		}
	}
	return dir
}

// resumeWords are the arguments that go on with a search.
func resumeWords(opt tune.Options, folder string) []string {
	words := []string{shell.Quote(opt.Kernel), "--resume", shell.Quote(folder)}
	for _, flag := range []struct{ name, value string }{{"--dir", opt.Dir}, {"--policy", opt.Policy}, {"--results", opt.Results}} {
		if flag.value != "" {
			words = append(words, flag.name, shell.Quote(flag.value))
		}
	}
	for _, label := range opt.Labels {
		words = append(words, "--label", shell.Quote(label))
	}
	return words
}

// replaySearch tries a proposer on the measurements of a log.
func replaySearch(cmd *cobra.Command, opt tune.Options, file string, all bool, stdout io.Writer) error {
	log, err := tune.ReadLog(file)
	if err != nil {
		return err
	}
	replay := tune.NewReplay(log)
	opt.Proposer = cmp.Or(opt.Proposer, "local")
	h := replay.Header(opt.Proposer, opt.Seed)
	if cmd.Flags().Changed("candidates") {
		h.Candidates = opt.Candidates
	}
	if cmd.Flags().Changed("budget") {
		h.Budget = opt.Budget.Seconds()
	}
	if cmd.Flags().Changed("epsilon") {
		h.Epsilon = opt.Epsilon
	}
	proposer, err := tune.NewProposer(opt.Proposer, opt.Seed)
	if err != nil {
		return err
	}
	result, err := (&tune.Search{Log: tune.MemoryLog(h), Proposer: proposer, Lab: replay}).Run(cmd.Context())
	if err != nil {
		return err
	}
	fmt.Fprint(stdout, result.Report(tune.ReportOptions{Width: terminalOptions(stdout).Width, All: all}))
	return nil
}

// parseShare reads 1% or 0.01.
func parseShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		x /= 100
	}
	if err != nil || !(x > 0 && x < 1) {
		return 0, fmt.Errorf("%q is no share (write e.g. 1%%)", text)
	}
	return x, nil
}
