// Command kernelgate is a CI gatekeeper for GPU kernels: it builds and measures
// a change, judges the evidence against a policy, and says PASS or DEFER.
//
// These files hold flags and wiring; the work is done in the packages below.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kernelgate/kernelgate/bot/demo"
	"github.com/kernelgate/kernelgate/bot/local"
	"github.com/kernelgate/kernelgate/bot/serve"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/cuda"
	"github.com/kernelgate/kernelgate/runners/doctor"
	"github.com/kernelgate/kernelgate/runners/measure"
	"github.com/kernelgate/kernelgate/runners/terminal"
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
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// An exit carries a verdict's status through cobra without printing anything.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

func run(args []string, stdout, stderr io.Writer) int {
	stdout, stderr = terminal.NewWriter(stdout), terminal.NewWriter(stderr)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := rootCommand(stdout, stderr)
	root.SetArgs(args)
	started := false
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	err := root.ExecuteContext(ctx)
	var status exit
	var bad strict.Mistake
	switch {
	case err == nil:
		return exitPass
	case errors.As(err, &status):
		return int(status)
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "kernelgate: interrupted; unfinished results are not written")
		return exitError
	case errors.As(err, &bad):
		fmt.Fprintln(stderr, bad.Error())
		return exitInput
	case !started: // cobra did not like the words of the call
		fmt.Fprintf(stderr, "kernelgate: %v (%ssee kernelgate --help)\n", err, meantFlag(root, args, err))
		return exitInput
	default:
		fmt.Fprintln(stderr, "kernelgate:", err)
		return exitError
	}
}

// meantFlag is the flag of the command that an unknown one most likely means, for the beginning of an advice.
func meantFlag(root *cobra.Command, args []string, err error) string {
	_, name, ok := strings.Cut(err.Error(), "unknown flag: --")
	if !ok {
		return ""
	}
	cmd, _, _ := root.Find(args)
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	})
	if meant := strict.Meant(name, known); meant != "" {
		return "did you mean --" + meant + "? "
	}
	return ""
}

func rootCommand(stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "kernelgate",
		Short: "A gatekeeper for GPU kernels: a PASS is proven, a DEFER says what is missing",
		Long: "kernelgate builds and measures a change to a kernel and judges the evidence by a policy.\n" +
			"PASS: the change meets every requirement of the policy.\n" +
			"DEFER: not accepted yet; the verdict says what is missing.\n\n" +
			"Exit status: 0 PASS, 1 DEFER, 2 bad input, 3 ERROR (a fault of the runner or the setup).",
		Example:       "  kernelgate check    # the work tree against the base branch\n  kernelgate demo     # the bot with an embedded GitHub on this machine",
		SilenceErrors: true, SilenceUsage: true,
		Version: version(),
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.AddCommand(checkCommand(stdout, stderr), compareCommand(stdout), judgeCommand(stdout), replayCommand(stdout, stderr), demoCommand(stdout, stderr), tryCommand(stdout, stderr), policyCommand(stdout), historyCommand(stdout), openCommand(stdout, stderr), doctorCommand(stdout), serveCommand(stdout, stderr), setupCommand(stdout), runnerCommand(stdout, stderr), fleetCommand(stdout), gpuWorkerCommand())
	return root
}

// workerCommand starts the process that touches the GPU; people have no use for
// it.
const workerCommand = "gpu-worker"

func gpuWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use: workerCommand + " [REQUEST]", Hidden: true, Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return cuda.Worker(args) },
	}
}

func doctorCommand(stdout io.Writer) *cobra.Command {
	host, file := doctor.DefaultHost(), ""
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Show what this host can do, and how to fix what it cannot",
		Example: "  kernelgate doctor\n  kernelgate doctor --include cutlass=/opt/cutlass/include",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file != "" {
				config, err := serve.Load(serve.Sources{File: file, Getenv: os.Getenv})
				if err != nil {
					return err
				}
				host.Includes, host.Toolchains.Paths = config.Runner.Includes, config.Runner.Toolchains
			}
			findings := doctor.Run(cmd.Context(), host)
			form := doctor.Form{Width: 80, Colour: coloured(stdout)}
			if width, ok := terminal.Size(stdout); ok {
				form.Width = width
			}
			fmt.Fprint(stdout, doctor.Text(findings, form))
			return asExit(doctor.Exit(findings))
		},
	}
	includeFlag(cmd, &host.Includes)
	toolchainFlag(cmd, &host.Toolchains.Paths)
	cmd.Flags().StringVar(&file, "config", "", "configuration file of the bot; doctor checks its runner.includes and runner.toolchains")
	return cmd
}

func demoCommand(stdout, stderr io.Writer) *cobra.Command {
	opt := demo.Options{Version: version(), Seed: rand.Uint64(), Now: time.Now, Getenv: os.Getenv, Out: stdout}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the bot at work on this machine: no account, no GPU",
		Long: "Starts an embedded GitHub with a repository of one FP8 attention kernel for the CPU, and the bot\n" +
			"with its runner. The demo opens the stages of the kernel as pull requests, one after the other.\n" +
			"The bot measures and judges each one, and the demo merges those that pass. Then it waits, so that\n" +
			"you can look around.\n\n" +
			"Exit status: 0 every verdict is the expected one, 1 a verdict differs, 3 any other failure.",
		Example: "  kernelgate demo\n  kernelgate demo --once",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			live := liveProgress(cmd.Context(), stderr)
			defer live.Clear()
			opt.Live = live
			opt.Render = func(v *gates.Verdict) string {
				form := terminalOptions(stdout)
				form.More = "on the pull request"
				return report.Terminal(v, form)
			}
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
	cmd.Flags().BoolVar(&opt.Once, "once", false, "exit after the last verdict and remove all files")
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

// measureHere has kernels measured by this program, on this host.
func measureHere(c *measure.Config) error {
	if err := c.Includes.Check(); err != nil {
		return strict.Mistakef("--include: %w", err)
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	c.Worker = []string{program, workerCommand}
	if cache, err := toolchain.DefaultCache(os.Getenv); err == nil {
		c.Cache = cache.Dir // without one it builds anew
	}
	return nil
}

// liveProgress can be taken away before something else is printed. On a terminal it goes on with the time until ctx ends.
func liveProgress(ctx context.Context, w io.Writer) local.Live {
	if _, ok := terminal.Size(w); !ok || os.Getenv("TERM") == "dumb" {
		return &runners.Plain{Out: w}
	}
	line := &runners.Line{Out: w, Colour: coloured(w), Now: time.Now, Width: func() int {
		width, _ := terminal.Size(w)
		return width
	}}
	go func() {
		ticks := time.NewTicker(time.Second)
		defer ticks.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
				line.Tick()
			}
		}
	}()
	return line
}

// coloured tells whether colours are welcome on a writer.
func coloured(w io.Writer) bool {
	_, ok := terminal.Size(w)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

func terminalOptions(w io.Writer) report.TerminalOptions {
	if width, ok := terminal.Size(w); ok {
		return report.TerminalOptions{Width: width, Colour: coloured(w)}
	}
	return report.TerminalOptions{Width: 120}
}

// commit is what `make build` knows of the checkout: Go itself sees none in a work tree
// of another's repository, nor without git's own folder.
var commit string

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
	if revision == "" && commit != "" {
		revision = " " + commit
	}
	return "kernelgate " + info.Main.Version + revision + dirty
}
