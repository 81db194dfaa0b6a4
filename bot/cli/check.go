package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/backend/gpus"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
	"github.com/kernelgate/kernelgate/runners/host/recordings"
	"github.com/kernelgate/kernelgate/runners/work/check"
)

func checkCommand(stdout, stderr io.Writer) *cobra.Command {
	opt := check.Options{Version: version(), Now: time.Now, Fetcher: recordings.Here(os.Getenv)}
	asJSON, timings, onGitHub, dryRun, gpu := false, false, false, false, ""
	var compilers map[string]string
	one := check.One{Inputs: string(distribution.Normal)}
	cmd := &cobra.Command{
		Use:   "check [KERNEL...]",
		Short: "Gate the work tree (or a commit) against the base branch on this machine",
		Long: "Builds base and head of every kernel that the change touches, compares their outputs,\n" +
			"measures their times, and judges the evidence by the policy of the base (" + check.PolicyFile + ").\n" +
			"The results are in results/<UTC time>/.\n\n" +
			"A kernel of mode cuda needs a GPU. Without a GPU, --static compiles the kernel and judges its\n" +
			"resources.",
		Example: "  kernelgate check\n  kernelgate check --base origin/main --label refactoring\n" +
			"  kernelgate check sdpa_cpu --baseline-variant stage1 --variant stage2\n" +
			"  kernelgate check sdpa_fp8 --baseline-variant stage5 --variant stage5,NUM_STAGES=4 --static\n" +
			"  kernelgate check --static --toolchain new=triton@3.9.0   # every kernel with a different compiler\n" +
			"  kernelgate check --runner cpu        # only the CPU kernels, on a host without a GPU\n" +
			"  kernelgate check sdpa_fp8 --rivals   # also times PyTorch, for information\n" +
			"  kernelgate check softmax --shape R=5,C=63 --seed 7 --inputs peaks   # one case, element by element",
		RunE: func(cmd *cobra.Command, args []string) error {
			opt.Kernels = args
			if onGitHub {
				return checkOnGitHub(cmd, opt, gpu, dryRun, stdout, stderr)
			}
			if dryRun {
				return usage.Errorf("--dry-run works only with --github, because nothing else writes to GitHub (remove it, or add --github in a job of GitHub Actions)")
			}
			if !slices.Contains(measure.Runners(), opt.Runner) {
				return usage.Errorf("--runner: %q is not one of %s", opt.Runner, strings.Join(measure.Runners(), ", "))
			}
			if err := measureOn(&opt.Config, gpu); err != nil {
				return err
			}
			opt.Labels = gpus.Labels(opt.GPU.List())
			if err := compareCompilers(cmd.Context(), &opt, compilers); err != nil {
				return err
			}
			if one.Shape != "" {
				return repeat(cmd, opt, one, stdout, stderr)
			}
			for _, flag := range []string{"seed", "inputs"} {
				if cmd.Flags().Changed(flag) {
					return usage.Errorf("--%s works only with --shape, which repeats a single case (add e.g. --shape R=5,C=63)", flag)
				}
			}
			status := exitPass
			checked, leftOut := 0, 0
			var verdicts []*gates.Verdict
			live := liveProgress(cmd.Context(), stderr)
			err := check.Run(cmd.Context(), opt, live, func(r check.Result) error {
				live.Clear()
				if r.LeftOut != "" {
					leftOut++
					fmt.Fprintf(stderr, "Left out: %s: %s\n", r.Kernel, r.LeftOut)
					return nil
				}
				checked++
				verdicts = append(verdicts, r.Verdict)
				status = max(status, severity(r.Verdict))
				if asJSON {
					return json.NewEncoder(stdout).Encode(r.ForPrograms())
				}
				fmt.Fprint(stdout, report.Terminal(r.Verdict, terminalOptions(stdout)))
				if timings {
					fmt.Fprintf(stdout, "\nWhere the time went:\n\n%s", report.TerminalTimings(r.Evidence, r.Took.Seconds(), terminalOptions(stdout)))
				}
				fmt.Fprintf(stdout, "\nWritten to %s\n", r.Dir)
				printReplays(stdout, r)
				return nil
			})
			live.Clear()
			if err != nil {
				return err
			}
			if checked == 0 && leftOut > 0 {
				return usage.Errorf("kernelgate: no kernel was checked: --runner %s leaves out every kernel", opt.Runner)
			}
			if checked == 0 && asJSON {
				return json.NewEncoder(stdout).Encode(check.NothingChanged())
			}
			if table := report.TerminalCompilers(verdicts, terminalOptions(stdout)); table != "" && !asJSON {
				fmt.Fprint(stdout, "\nEvery kernel with the new compiler, worst first:\n\n"+table)
			}
			if checked == 0 {
				fmt.Fprintln(stdout, "PASS: no kernel changed.")
				if next := check.Next(cmd.Context(), opt); next != "" {
					fmt.Fprintln(stdout, next)
				}
			}
			return asExit(status)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.Dir, "dir", "", "folder in the repository (default: the current one)")
	f.StringVar(&opt.Base, "base", "", "branch or commit to compare with (default: origin/HEAD, main or master)")
	f.StringVar(&opt.Head, "head", "", "commit to check (default: the work tree)")
	policyFlag(cmd, &opt.Policy, " (default: the base's "+check.PolicyFile+")")
	f.StringVar(&opt.BaselineVariant, "baseline-variant", "", "compare with this variant of the same files instead of the base")
	f.StringVar(&opt.Variant, "variant", "", "with --baseline-variant: the variant to gate; toggles may follow either name, as in stage5,NUM_STAGES=4")
	f.StringSliceVar(&opt.Change.Labels, "label", nil, "label of the change, for the policy's rules")
	f.StringVar(&opt.Change.Title, "title", "", "title of the change, for the policy's rules")
	f.StringVar(&opt.Runner, "runner", measure.Auto, "which kernels to measure: only those of mode cpu or cuda, or auto for all of them")
	f.BoolVar(&opt.Rivals, "rivals", false, "also time the rivals of the manifest, for information; KERNELGATE_READ names folders that they need, e.g. a Python environment")
	f.BoolVar(&opt.Static, "static", false, "only compile and judge resources; needs no GPU")
	f.StringVar(&opt.Arch, "arch", "", "with --static: the architecture to compile for, e.g. sm_89 (default: all architectures of the manifest)")
	includeFlag(cmd, &opt.Includes)
	f.StringToStringVar(&compilers, "toolchain", nil, "compare two compilers on the same sources, for every kernel that they build: new=triton@3.9.0 or new=/usr/local/cuda-12.9; old=… replaces the compiler of the policy or of this host")
	gpuFlag(cmd, &gpu)
	f.IntVar(&opt.Rounds, "rounds", 0, "maximum number of rounds, below or above that of the policy")
	f.StringVar(&one.Shape, "shape", "", "repeat a single case and show its bad elements; takes dims such as R=5,C=63, or the name of a shape")
	f.StringVar(&opt.SecretShape, "secret-shape", "", "time this size as the secret shape instead of a random one, to repeat a run; takes dims such as R=5,C=63")
	f.Uint64Var(&one.Seed, "seed", 0, "with --shape: the seed of the inputs")
	f.StringVar(&one.Inputs, "inputs", one.Inputs, "with --shape: the distribution of the inputs, one of "+strict.JoinWords(distribution.All()))
	_ = cmd.RegisterFlagCompletionFunc("inputs", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var words []string
		for _, d := range distribution.All() {
			words = append(words, string(d))
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	})
	complete(cmd, "runner", measure.Runners)
	complete(cmd, "base", nil)
	cmd.ValidArgsFunction = completeKernels
	for _, flag := range []string{"variant", "baseline-variant"} {
		_ = cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return variantsOf(args), cobra.ShellCompDirectiveNoFileComp
		})
	}
	f.StringVar(&opt.Results, "results", "", "folder for results (default: results in the repository)")
	f.BoolVar(&timings, "timings", false, "also print where the time of the check went, by step and kind of work")
	f.BoolVar(&asJSON, "json", false, "print the result as JSON, one line per kernel (gates/result/result.schema.json)")
	f.BoolVar(&onGitHub, "github", false, "in a job of GitHub Actions: gate the pull request or merge group of the event, and write checks, a comment and the step summary")
	f.BoolVar(&dryRun, "dry-run", false, "with --github: print the statuses or checks and the comment instead of writing them to GitHub")
	return cmd
}

// compareCompilers parses --toolchain: which compiler builds which side.
func compareCompilers(ctx context.Context, opt *check.Options, given map[string]string) error {
	if len(given) == 0 {
		return nil
	}
	if opt.Variant != "" || opt.Base != "" {
		return usage.Errorf("--toolchain compares two compilers on the same sources: it cannot be used with --base or --variant")
	}
	for side, text := range given {
		into := map[string]*policy.Toolchains{"old": &opt.Before, "new": &opt.After}[side]
		if into == nil {
			return usage.Errorf("--toolchain: %q is not a side (write new=%s, and old=… if necessary)", side, text)
		}
		if filepath.IsAbs(text) {
			opt.Toolchains = append(opt.Toolchains, text)
		}
		kind, pin, err := toolchain.Installed{Paths: opt.Toolchains, Getenv: os.Getenv}.Named(ctx, text)
		if err != nil {
			return usage.Errorf("--toolchain %s: %w", side, err)
		}
		*into = into.With(kind, &pin)
	}
	if opt.After == (policy.Toolchains{}) {
		return usage.Errorf("--toolchain names no new compiler (add e.g. --toolchain new=%s)", strings.TrimSpace(given["old"]))
	}
	return nil
}
