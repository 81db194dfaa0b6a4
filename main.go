// Command kernelgate is a CI gatekeeper for GPU kernels: it builds and measures
// a change, judges the evidence against a policy, and says PASS or DEFER.
//
// This file holds flags and wiring; the work is done in the packages below.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/kernelgate/kernelgate/bot/demo"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/check"
	"github.com/kernelgate/kernelgate/runners/cuda"
	"github.com/kernelgate/kernelgate/runners/cuda/worker"
	"github.com/kernelgate/kernelgate/runners/doctor"
	"github.com/kernelgate/kernelgate/runners/measure"
	"github.com/kernelgate/kernelgate/runners/progress"
	"github.com/kernelgate/kernelgate/runners/sandbox"
	"github.com/kernelgate/kernelgate/runners/toolchain"
)

// What the program's exit tells a script.
const (
	exitPass  = 0
	exitDefer = 1
	exitInput = 2
	exitError = 3
)

func main() {
	sandbox.Init()
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// An exit carries a verdict's status through cobra without printing anything.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := rootCommand(stdout, stderr)
	root.SetArgs(args)
	started := false
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	err := root.ExecuteContext(ctx)
	var status exit
	var bad check.BadInput
	switch {
	case err == nil:
		return exitPass
	case errors.As(err, &status):
		return int(status)
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "kernelgate: interrupted; what was not finished is not written")
		return exitError
	case errors.As(err, &bad):
		fmt.Fprintln(stderr, bad.Error())
		return exitInput
	case !started: // cobra did not like the words of the call
		fmt.Fprintf(stderr, "kernelgate: %v (see kernelgate --help)\n", err)
		return exitInput
	default:
		fmt.Fprintln(stderr, "kernelgate:", err)
		return exitError
	}
}

func rootCommand(stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "kernelgate",
		Short: "A gatekeeper for GPU kernels: a PASS is proven, a DEFER says what is missing",
		Long: "kernelgate builds and measures a change to a kernel, judges the evidence against a\n" +
			"policy, and says PASS or DEFER.\n\n" +
			"Exit status: 0 PASS, 1 DEFER, 2 bad input, 3 ERROR (the runner's fault).",
		Example:       "  kernelgate check    # the work tree against its merge base\n  kernelgate demo     # the whole story on this machine",
		SilenceErrors: true, SilenceUsage: true,
		Version: version(),
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(checkCommand(stdout, stderr), judgeCommand(stdout), demoCommand(stdout, stderr), policyCommand(stdout), historyCommand(stdout), doctorCommand(stdout), serveCommand(stdout, stderr), runnerCommand(stderr), gpuWorkerCommand())
	return root
}

// workerCommand starts the process that touches the GPU; people have no use for
// it.
const workerCommand = "gpu-worker"

func gpuWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use: workerCommand + " [REQUEST]", Hidden: true, Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return worker.Serve(os.Stdin, os.NewFile(cuda.ResultFD, "answers"))
			}
			// Under a profiler: the request is a file, and nobody reads the answer.
			request, err := os.Open(args[0])
			if err != nil {
				return fmt.Errorf("reading the request: %w", err)
			}
			defer request.Close()
			return worker.Serve(request, io.Discard)
		},
	}
}

func doctorCommand(stdout io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:     "doctor",
		Short:   "Say what this host can do, and how to mend what it cannot",
		Example: "  kernelgate doctor",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings := doctor.Run(cmd.Context(), doctor.DefaultHost())
			fmt.Fprint(stdout, doctor.Text(findings))
			return asExit(doctor.Exit(findings))
		},
	}
}

func checkCommand(stdout, stderr io.Writer) *cobra.Command {
	opt := check.Options{Version: version(), Now: time.Now, Getenv: os.Getenv}
	asJSON, onGitHub := false, false
	cmd := &cobra.Command{
		Use:   "check [KERNEL...]",
		Short: "Gate the work tree (or a commit) against its merge base on this machine",
		Long: "Builds base and head of every kernel that the change touches, compares outputs, takes\n" +
			"times, and judges the evidence by the base's policy (" + check.PolicyFile + ").\n" +
			"Results are written to results/<UTC time>/.\n\n" +
			"A kernel of mode cuda is measured on a GPU and nowhere else: without one, --static still\n" +
			"compiles it and judges its resources.",
		Example: "  kernelgate check\n  kernelgate check --base origin/main --label refactoring\n" +
			"  kernelgate check sdpa_cpu --baseline-variant stage1 --variant stage2\n" +
			"  kernelgate check --runner cpu        # on a host without a GPU: the CPU kernels alone\n" +
			"  kernelgate check sdpa_fp8 --rivals   # with PyTorch's times beside the candidate's",
		RunE: func(cmd *cobra.Command, args []string) error {
			opt.Kernels = args
			if onGitHub {
				return checkOnGitHub(cmd, opt, stdout, stderr)
			}
			if !slices.Contains(measure.Runners(), opt.Runner) {
				return check.BadInput{Err: fmt.Errorf("--runner: %q is not one of %s", opt.Runner, strings.Join(measure.Runners(), ", "))}
			}
			program, err := os.Executable()
			if err != nil {
				return fmt.Errorf("finding this program: %w", err)
			}
			opt.Worker = []string{program, workerCommand}
			if cache, err := toolchain.DefaultCache(os.Getenv); err == nil {
				opt.Cache = cache.Dir
			}
			status := exitPass
			checked, leftOut := 0, 0
			live := liveProgress(stderr)
			err = check.Run(cmd.Context(), opt, live, func(r check.Result) error {
				live.Clear()
				if r.LeftOut != "" {
					leftOut++
					fmt.Fprintf(stderr, "Left out: %s: %s\n", r.Kernel, r.LeftOut)
					return nil
				}
				checked++
				status = max(status, severity(r.Verdict.Outcome))
				if asJSON {
					return json.NewEncoder(stdout).Encode(r.Verdict)
				}
				fmt.Fprint(stdout, report.Terminal(r.Verdict, terminalOptions(stdout)))
				fmt.Fprintf(stdout, "\nWritten to %s\n", r.Dir)
				return nil
			})
			live.Clear()
			if err != nil {
				return err
			}
			if checked == 0 && leftOut > 0 {
				return check.BadInput{Err: fmt.Errorf("kernelgate: nothing was checked: --runner %s leaves out every kernel", opt.Runner)}
			}
			if checked == 0 && asJSON {
				return json.NewEncoder(stdout).Encode(gates.Verdict{Schema: gates.VerdictSchema, Outcome: gates.Pass, Summary: "No kernel changed."})
			}
			if checked == 0 {
				fmt.Fprintln(stdout, "PASS: no kernel changed.")
			}
			return asExit(status)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.Dir, "dir", "", "folder in the repository (default: the current one)")
	f.StringVar(&opt.Base, "base", "", "branch or commit that the change goes to (default: origin/HEAD, main or master)")
	f.StringVar(&opt.Head, "head", "", "commit to check (default: the work tree)")
	f.StringVar(&opt.Policy, "policy", "", "policy file, or one of "+strings.Join(policies.ShippedNames(), ", ")+" (default: the base's "+check.PolicyFile+")")
	f.StringVar(&opt.BaselineVariant, "baseline-variant", "", "compare with this variant of the same files instead of the base")
	f.StringVar(&opt.Variant, "variant", "", "the variant to gate, with --baseline-variant")
	f.StringSliceVar(&opt.Change.Labels, "label", nil, "label of the change, for the policy's rules")
	f.StringVar(&opt.Change.Title, "title", "", "title of the change, for the policy's rules")
	f.StringVar(&opt.Runner, "runner", measure.Auto, "which kernels to measure: cpu or cuda those of that mode alone, auto all of them")
	f.BoolVar(&opt.Rivals, "rivals", false, "time the manifest's rivals as well, for information; KERNELGATE_READ names folders that they need, e.g. a Python environment")
	f.BoolVar(&opt.Static, "static", false, "compile and judge resources alone; needs no GPU")
	f.StringVar(&opt.Arch, "arch", "", "with --static: the architecture to compile for, e.g. sm_89 (default: the manifest's first)")
	f.IntVar(&opt.Device, "device", 0, "which GPU to measure on")
	f.IntVar(&opt.Rounds, "rounds", 0, "measure at most so many rounds")
	f.StringVar(&opt.Results, "results", "", "folder for results (default: results in the repository)")
	f.BoolVar(&asJSON, "json", false, "print the verdict as JSON, a line a kernel")
	f.BoolVar(&onGitHub, "github", false, "in a job of GitHub Actions: gate the pull request or merge group of the job's event, and write checks, a comment and the step summary")
	return cmd
}

func judgeCommand(stdout io.Writer) *cobra.Command {
	policyName, format := "", "terminal"
	cmd := &cobra.Command{
		Use:     "judge EVIDENCE.json",
		Short:   "Judge stored evidence: the same evidence and policy give the same verdict for ever",
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
			switch format {
			case "terminal":
				fmt.Fprint(stdout, report.Terminal(v, terminalOptions(stdout)))
			case "markdown":
				fmt.Fprint(stdout, report.Markdown(v, report.Options{}))
			case "json":
				enc := json.NewEncoder(stdout)
				enc.SetIndent("", "  ")
				if err := enc.Encode(v); err != nil {
					return fmt.Errorf("printing the verdict: %w", err)
				}
			default:
				return check.BadInput{Err: fmt.Errorf("--format: %q is not one of terminal, markdown, json", format)}
			}
			return asExit(severity(v.Outcome))
		},
	}
	cmd.Flags().StringVar(&policyName, "policy", "", "policy file, or one of "+strings.Join(policies.ShippedNames(), ", ")+" (required)")
	cmd.Flags().StringVar(&format, "format", format, "terminal, markdown or json")
	return cmd
}

func historyCommand(stdout io.Writer) *cobra.Command {
	policyName := ""
	cmd := &cobra.Command{
		Use:     "history KERNEL",
		Short:   "The performance history of a kernel, from the evidence stored beside it",
		Long:    "Judges every KERNEL/evidence/*.json by the policy and prints, as Markdown, what each variant\ngained over the one before it, and what did not work.",
		Example: "  kernelgate history kernels/sdpa_fp8 --policy h200 > kernels/sdpa_fp8/HISTORY.md",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			policy, file, err := check.ReadPolicy(policyName)
			if err != nil {
				return err
			}
			files, err := filepath.Glob(filepath.Join(args[0], "evidence", "*.json"))
			if err != nil || len(files) == 0 {
				return check.BadInput{Err: fmt.Errorf("%s has no evidence/*.json (store evidence of kernelgate check there)", args[0])}
			}
			var verdicts []*gates.Verdict
			for _, f := range files {
				evidence, err := check.ReadEvidence(f)
				if err != nil {
					return err
				}
				verdicts = append(verdicts, gates.Judge(policy, file, evidence))
			}
			fmt.Fprint(stdout, report.History(filepath.Base(args[0]), verdicts))
			return nil
		},
	}
	cmd.Flags().StringVar(&policyName, "policy", "", "policy file, or one of "+strings.Join(policies.ShippedNames(), ", ")+" (required)")
	return cmd
}

func demoCommand(stdout, stderr io.Writer) *cobra.Command {
	opt := demo.Options{Version: version(), Seed: rand.Uint64(), Now: time.Now, Getenv: os.Getenv, Out: stdout}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the bot at work on this machine: no account, no GPU",
		Long: "Starts an embedded GitHub with a repository of one FP8 attention kernel for the CPU, and the bot\n" +
			"with its runner. The kernel's stages are opened as pull requests one after the other; each is\n" +
			"gated by real measurement, and what passes is merged. Then it waits, so that you can look around.\n\n" +
			"Exit status: 0 every verdict was the expected one, 1 not so, 3 anything else.",
		Example: "  kernelgate demo\n  kernelgate demo --once",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			live := liveProgress(stderr)
			defer live.Clear()
			opt.Live = live
			opt.Render = func(v *gates.Verdict) string { return report.Terminal(v, terminalOptions(stdout)) }
			right, err := demo.Run(cmd.Context(), opt)
			if err != nil {
				return err
			}
			if !right {
				return exit(exitDefer)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&opt.Once, "once", false, "stop at the end of the story and remove everything")
	return cmd
}

func policyCommand(stdout io.Writer) *cobra.Command {
	cmd := &cobra.Command{Use: "policy", Short: "Check and explain policies and manifests"}
	cmd.AddCommand(&cobra.Command{
		Use:     "lint FILE...",
		Short:   "Check policies, and manifests named kernel.yaml; every mistake is told at once",
		Example: "  kernelgate policy lint .github/kernelgate.yaml kernels/*/kernel.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return check.Lint(stdout, args) },
	})
	var change policies.Change
	explain := &cobra.Command{
		Use:     "explain FILE",
		Short:   "Say which rule applies to a change, and what it asks",
		Example: "  kernelgate policy explain l4 --label tensor-cores",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			policy, file, err := check.ReadPolicy(args[0])
			if err != nil {
				return err
			}
			fmt.Fprint(stdout, policy.Explain(file, change))
			return nil
		},
	}
	f := explain.Flags()
	f.StringSliceVar(&change.Labels, "label", nil, "label of the change")
	f.StringVar(&change.Branch, "branch", "main", "base branch")
	f.StringVar(&change.Title, "title", "", "title")
	f.StringSliceVar(&change.Paths, "path", nil, "changed file")
	f.StringVar(&change.Kernel, "kernel", "", "kernel's name")
	f.BoolVar(&change.Draft, "draft", false, "the pull request is a draft")
	cmd.AddCommand(explain)
	return cmd
}

func severity(o gates.Outcome) int {
	switch o {
	case gates.Pass:
		return exitPass
	case gates.Defer:
		return exitDefer
	}
	return exitError
}

func asExit(status int) error {
	if status == exitPass {
		return nil
	}
	return exit(status)
}

// A liveProgress can be taken away before something else is printed.
func liveProgress(w io.Writer) interface {
	runners.Progress
	Clear()
} {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		width, _, err := term.GetSize(int(f.Fd()))
		if err != nil {
			width = 80
		}
		return &progress.Line{Out: w, Width: width}
	}
	return &progress.Plain{Out: w}
}

func terminalOptions(w io.Writer) report.TerminalOptions {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			return report.TerminalOptions{Width: width, Colour: os.Getenv("NO_COLOR") == ""}
		}
	}
	return report.TerminalOptions{Width: 120}
}

// version is what the build knows of itself.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "kernelgate (unknown build)"
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = " " + s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+dirty"
		}
	}
	return "kernelgate " + info.Main.Version + revision + dirty
}
