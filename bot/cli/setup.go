package cli

import (
	"bufio"
	"crypto/rand"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/bot/github/app"
	"github.com/kernelgate/kernelgate/policies/usage"
)

func setupCommand(stdout io.Writer) *cobra.Command {
	opt := app.Options{Out: stdout, Random: rand.Text}
	noBrowser := false
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Create the bot's GitHub App, and write its key, its webhook secret and a configuration",
		Long: "Serves a page on a loopback address. Its button takes you to GitHub, where you confirm the App. GitHub\n" +
			"sends the browser back, and setup writes the key of the App, its webhook secret and kernelgate.yaml to\n" +
			"--dir: either all of them or none. It overwrites existing files only with --force, and it never prints\n" +
			"a secret.\n\n" +
			"If the browser cannot reach the loopback address, not even through ssh -L: copy the value of code= from\n" +
			"the address that GitHub redirected the browser to, and pass the value with --code.\n\n" +
			"Exit status: 0 the App is created, 2 a mistake in a flag, 3 any other failure.",
		Example: "  kernelgate setup --url https://gate.example.com\n" +
			"  kernelgate setup --url https://gate.example.com --org acme --name acme-gate --dir ./secrets\n" +
			"  kernelgate setup --url https://gate.example.com --github https://github.example.com",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("code") {
				if opt.Code == "-" {
					line, err := bufio.NewReader(io.LimitReader(cmd.InOrStdin(), 1024)).ReadString('\n')
					if err != nil && err != io.EOF {
						return usage.Errorf("--code: reading it: %w", err)
					}
					opt.Code = strings.TrimSpace(line)
				}
				if opt.Code == "" {
					return usage.Errorf("--code: is empty (write the value of code= in the address that GitHub redirected the browser to)")
				}
			}
			if host, err := os.Hostname(); err == nil {
				opt.Host = host
			}
			if !noBrowser {
				opt.Open = app.Browser(os.Geteuid(), os.Getenv)
			}
			secondSignalKills(cmd.Context())
			return app.Run(cmd.Context(), opt)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.URL, "url", "", "public address of the bot: https, except for a loopback address (required)")
	f.StringVar(&opt.Name, "name", "", "name of the App, at most 34 characters (default: kernelgate with the host of --url)")
	f.StringVar(&opt.Org, "org", "", "organisation that owns the App (default: your account)")
	f.StringVar(&opt.Dir, "dir", "/etc/kernelgate", "folder for the files; created with mode 700 if it does not exist")
	f.StringVar(&opt.GitHub, "github", "https://github.com", "address of GitHub or GitHub Enterprise")
	f.StringVar(&opt.Listen, "listen", "127.0.0.1:0", "loopback address for the page; port 0 picks a free one")
	f.StringVar(&opt.Code, "code", "", "code that GitHub gave to a browser on a different machine; - reads it from the standard input")
	f.BoolVar(&opt.Force, "force", false, "overwrite existing files")
	f.BoolVar(&noBrowser, "no-browser", false, "do not open a browser")
	return cmd
}
