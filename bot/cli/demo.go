package cli

import (
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/bot/demo"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
)

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
