package main

import (
	"bufio"
	"crypto/rand"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/bot/github/app"
	"github.com/kernelgate/kernelgate/policies/strict"
)

func setupCommand(stdout io.Writer) *cobra.Command {
	opt := app.Options{Out: stdout, Random: rand.Text}
	noBrowser := false
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Make the bot's GitHub App, and write its key, its webhook secret and a configuration",
		Long: "Shows a page on the loopback with a button that takes you to GitHub, where you agree to the App. GitHub\n" +
			"sends the browser back, and the App's key, its webhook secret and kernelgate.yaml are written to --dir:\n" +
			"all of them or none, and never over files that are there without --force. Secrets are neither printed\n" +
			"nor shown.\n\n" +
			"Where no browser can reach the loopback, not even through ssh -L, hand over with --code what GitHub put\n" +
			"behind code= into the address that it sent a browser to.\n\n" +
			"Exit status: 0 made, 2 mistake in a flag, 3 anything else.",
		Example: "  kernelgate setup --url https://gate.example.com\n" +
			"  kernelgate setup --url https://gate.example.com --org acme --name acme-gate --dir ./secrets\n" +
			"  kernelgate setup --url https://gate.example.com --github https://github.example.com",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("code") {
				if opt.Code == "-" {
					line, err := bufio.NewReader(io.LimitReader(cmd.InOrStdin(), 1024)).ReadString('\n')
					if err != nil && err != io.EOF {
						return strict.Mistakef("--code: reading it: %w", err)
					}
					opt.Code = strings.TrimSpace(line)
				}
				if opt.Code == "" {
					return strict.Mistakef("--code: is empty (write what stands behind code= in the address that GitHub sent a browser to)")
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
	f.StringVar(&opt.URL, "url", "", "the bot's public address: https, unless it is on the loopback (required)")
	f.StringVar(&opt.Name, "name", "", "the App's name, at most 34 characters (default: kernelgate with the host of --url)")
	f.StringVar(&opt.Org, "org", "", "the organisation that shall own the App (default: you)")
	f.StringVar(&opt.Dir, "dir", "/etc/kernelgate", "folder for the files; made with mode 700 if it is not there")
	f.StringVar(&opt.GitHub, "github", "https://github.com", "GitHub, or GitHub Enterprise's address")
	f.StringVar(&opt.Listen, "listen", "127.0.0.1:0", "address on the loopback for the page; port 0 is a free one")
	f.StringVar(&opt.Code, "code", "", "exchange a code that a browser brought back elsewhere; - reads it from the standard input")
	f.BoolVar(&opt.Force, "force", false, "overwrite files that are there")
	f.BoolVar(&noBrowser, "no-browser", false, "do not open a browser")
	return cmd
}
