package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/bot/serve"
	"github.com/kernelgate/kernelgate/runners/doctor"
	"github.com/kernelgate/kernelgate/runners/terminal"
)

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
