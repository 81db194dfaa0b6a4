// Package cli implements the command line of kernelgate. Each subcommand has a file with its flags,
// its help and an example. The package parses arguments and connects the packages that do the work;
// it decides nothing itself. Run executes a call; Command returns the command tree for
// documentation tests.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kernelgate/kernelgate/bot/cli/terminal"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/policies/usage"
)

// The exit statuses of the program, for scripts.
const (
	exitPass  = 0
	exitDefer = 1
	exitInput = 2
	exitError = 3
)

// An exit passes a verdict's exit status through cobra without printing anything.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Run executes one call of the program and returns its exit status.
func Run(args []string, stdout, stderr io.Writer) int {
	stdout, stderr = terminal.NewWriter(stdout), terminal.NewWriter(stderr)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := Command(stdout, stderr)
	root.SetArgs(args)
	started := false
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	err := root.ExecuteContext(ctx)
	var status exit
	var bad usage.Error
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
	case !started: // cobra rejected the arguments
		fmt.Fprintf(stderr, "kernelgate: %v (%ssee kernelgate --help)\n", err, meantFlag(root, args, err))
		return exitInput
	default:
		fmt.Fprintln(stderr, "kernelgate:", err)
		return exitError
	}
}

// meantFlag returns the flag that an unknown one most likely means, as the beginning of an advice.
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

// Command returns the whole command tree.
func Command(stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "kernelgate",
		Short: "A gatekeeper for GPU kernels: a PASS is proven, a DEFER says what is missing",
		Long: "kernelgate builds and measures a change to a kernel and judges the evidence by a policy.\n" +
			"PASS: the change meets every requirement of the policy.\n" +
			"DEFER: not accepted yet; the verdict says what is missing.\n\n" +
			"Exit status: 0 PASS, or a verdict of a rule that does not block; 1 DEFER; 2 bad input;\n" +
			"3 ERROR (a fault of the runner or the setup).",
		Example:       "  kernelgate check    # the work tree against the base branch\n  kernelgate demo     # the bot with an embedded GitHub on this machine",
		SilenceErrors: true, SilenceUsage: true,
		Version: version(),
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.AddCommand(checkCommand(stdout, stderr), compareCommand(stdout), judgeCommand(stdout), whyCommand(stdout), weightsCommand(stdout, stderr), recordCommand(stdout), replayCommand(stdout, stderr), tuneCommand(stdout, stderr), mcpCommand(stdout, stderr), bisectCommand(stdout, stderr), demoCommand(stdout, stderr), tryCommand(stdout, stderr), initCommand(stdout), exportCommand(stdout), policyCommand(stdout, stderr), historyCommand(stdout), openCommand(stdout, stderr), doctorCommand(stdout), serveCommand(stdout, stderr), setupCommand(stdout), runnerCommand(stdout, stderr), fleetCommand(stdout), gcCommand(stdout, stderr), backupCommand(stdout, stderr), verifyCommand(stdout, stderr), restoreCommand(stdout, stderr), gpuWorkerCommand())
	return root
}

// severity is the exit status of a verdict. One that blocks nothing ends well.
func severity(v *gates.Verdict) int {
	if !v.Blocks() {
		return exitPass
	}
	if v.Outcome == gates.Defer {
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
