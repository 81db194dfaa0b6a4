package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/bot/cli/terminal"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/serve"
	"github.com/kernelgate/kernelgate/runners/work/doctor"
)

func doctorCommand(stdout io.Writer) *cobra.Command {
	host, file := doctor.DefaultHost(), ""
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Show what this host can do, and how to fix what it cannot",
		Example: "  kernelgate doctor\n  kernelgate doctor --include cutlass=/opt/cutlass/include",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var config serve.Config
			if file != "" {
				var err error
				if config, err = serve.Load(serve.Sources{File: file, Getenv: os.Getenv}); err != nil {
					return err
				}
				host.Includes, host.Toolchains.Paths = config.Runner.Includes, config.Runner.Toolchains
			}
			findings := doctor.Run(cmd.Context(), host, lookingAt(os.Stderr))
			if len(config.Watch) > 0 {
				findings = append(findings, issuesFinding(cmd.Context(), config))
			}
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
	cmd.Flags().StringVar(&file, "config", "", "configuration file of the bot; doctor checks its runner.includes and runner.toolchains, and if the file has watch, also whether the App may write issues")
	return cmd
}

// lookingAt shows a person at a terminal what takes the time. A log has no use for it.
func lookingAt(w io.Writer) func(string) {
	if _, ok := terminal.Size(w); !ok {
		return nil
	}
	return func(what string) { fmt.Fprintf(w, "looking at %s\n", what) }
}

// issuesFinding says whether the bot may write the issues of watched kernels. It only warns, because
// everything else works without this permission.
func issuesFinding(ctx context.Context, config serve.Config) doctor.Finding {
	f := doctor.Finding{Name: "issues on GitHub", Status: doctor.Warn, Remedy: "grant the App the permission Issues: read and write, and accept it in the installation"}
	secrets, err := config.ReadSecrets(os.Getenv, func(string) {})
	var lack []string
	if err == nil && config.GitHub.AppID == 0 {
		f.Detail, f.Remedy = "a token does not say whether it may write issues", "give the token the permission Issues: read and write"
		return f
	}
	if err == nil {
		lack, err = withoutIssues(ctx, config, secrets)
	}
	switch {
	case err != nil:
		f.Detail, f.Remedy = "cannot ask GitHub: "+strings.Join(strings.Fields(err.Error()), " "), "fix github in the configuration, and run doctor again"
	case len(lack) > 0:
		f.Detail = "watch must write issues, and the App may not write issues of " + strings.Join(lack, ", ")
	default:
		f.Status, f.Detail, f.Remedy = doctor.OK, "the App may write the issues of watched kernels", ""
	}
	return f
}

func withoutIssues(ctx context.Context, config serve.Config, secrets serve.Secrets) ([]string, error) {
	gh, err := client.NewApp(config.GitHub.AppID, secrets.PrivateKey, client.Options{BaseURL: config.GitHub.APIURL, GitURL: config.GitHub.GitURL})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return gh.WithoutIssues(ctx)
}
