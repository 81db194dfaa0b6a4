package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/bot/serve"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/runners/agent"
	"github.com/kernelgate/kernelgate/runners/measure"
)

func serveCommand(stdout, stderr io.Writer) *cobra.Command {
	file, checkOnly, acceptLoss := "", false, false
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the bot: webhooks in, verdicts out, with a runner on this host",
		Long: "Takes GitHub's webhooks, has kernels measured by runners, and publishes verdicts as checks\n" +
			"and comments. Every key of the configuration can be set in the environment\n" +
			"(github.app_id is KERNELGATE_GITHUB_APP_ID) and by a flag; flags go first, then the\n" +
			"environment, then the file. Secrets are read from files, or from KERNELGATE_GITHUB_TOKEN,\n" +
			"KERNELGATE_GITHUB_PRIVATE_KEY and KERNELGATE_GITHUB_WEBHOOK_SECRET.\n\n" +
			"Exit status: 0 stopped by a signal, 2 mistake in the configuration or a journal that has lost events, 3 anything else. A second signal ends it at once.",
		Example: "  kernelgate serve --config /etc/kernelgate/kernelgate.yaml\n  kernelgate serve --config kernelgate.yaml --check-config",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			flags := map[string]string{}
			for _, k := range serve.Keys() {
				if f := cmd.Flags().Lookup(k.Flag); f.Changed {
					flags[k.Flag] = f.Value.String()
				}
			}
			for _, name := range secretFlags {
				if cmd.Flags().Changed(name) {
					return strict.Mistakef("--%s: every user of this host can read a command line: use --%s-file", name, name)
				}
			}
			config, err := serve.Load(serve.Sources{File: configFile(file), Getenv: os.Getenv, Flags: flags})
			if err != nil {
				return err
			}
			log := newLog(stderr, config.Log.Level, config.Log.Format)
			warn := func(text string) { log.Warn(text) }
			for _, name := range serve.Unknown(os.Environ()) {
				log.Warn("this environment variable means nothing: is it misspelt?", "name", name)
			}
			secrets, err := config.ReadSecrets(os.Getenv, warn)
			if err != nil {
				return err
			}
			if checkOnly {
				return config.Show(stdout)
			}
			if err := serve.Conceal(); err != nil {
				log.Warn("the local runner could look into this process", "err", err)
			}
			secondSignalKills(cmd.Context())
			return serve.Run(cmd.Context(), serve.Options{Config: config, Secrets: secrets, AcceptLoss: acceptLoss, Version: version(), Stderr: stderr, Log: log})
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "config", "", "configuration file (default: $"+serve.EnvConfig+", or "+serve.DefaultFile+" if it is there)")
	f.BoolVar(&checkOnly, "check-config", false, "print what was understood, without secrets, and exit")
	f.BoolVar(&acceptLoss, "accept-loss", false, "start although the journal has lost events that the ledger knows of; the old ledger is kept under another name")
	for _, k := range serve.Keys() {
		f.String(k.Flag, "", k.Doc)
		if k.Bool {
			f.Lookup(k.Flag).NoOptDefVal = "true"
		}
	}
	for _, name := range secretFlags {
		f.String(name, "", "refused")
		f.Lookup(name).Hidden = true
	}
	return cmd
}

// secretFlags are what people try, and are told better.
var secretFlags = []string{"github-token", "github-private-key", "github-webhook-secret"}

func configFile(flag string) string {
	if flag != "" {
		return flag
	}
	if file := os.Getenv(serve.EnvConfig); file != "" {
		return file
	}
	if _, err := os.Stat(serve.DefaultFile); !errors.Is(err, fs.ErrNotExist) {
		return serve.DefaultFile
	}
	return ""
}

// secondSignalKills gives signals back their usual effect after the first.
func secondSignalKills(ctx context.Context) {
	context.AfterFunc(ctx, func() { signal.Reset(os.Interrupt, syscall.SIGTERM) })
}

func newLog(w io.Writer, level, format string) *slog.Logger {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		l = slog.LevelInfo
	}
	opt := &slog.HandlerOptions{Level: l}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, opt))
	}
	return slog.New(slog.NewTextHandler(w, opt))
}

// includeFlag is the sets of headers that this host has.
func includeFlag(cmd *cobra.Command, sets *measure.IncludeSets) {
	cmd.Flags().StringToStringVar((*map[string]string)(sets), "include", nil, "headers that manifests include by name, cutlass=/opt/cutlass/include for include: [<cutlass>]")
}

// toolchainFlag is the compilers that this host has beside the usual ones.
func toolchainFlag(cmd *cobra.Command, paths *[]string) {
	cmd.Flags().StringSliceVar(paths, "toolchain", nil, "folder of a further compiler that policies may pin: a CUDA toolkit, or one that holds the package triton; a Python that has a Triton will do")
}

func runnerCommand(stdout, stderr io.Writer) *cobra.Command {
	var c agent.Config
	var here measure.Config
	tokenFile, level, format, use, testOnly, builds := "", "info", "text", "all", false, false
	cmd := &cobra.Command{
		Use:   "runner",
		Short: "Measure for a bot on another host, or on this one",
		Long: "Asks the bot for jobs, measures them one at a time on each GPU, and brings the evidence back. It holds a\n" +
			"token for that bot and nothing of GitHub's. Results that the bot could not take are kept in\n" +
			"the state folder until it can. With --builds it needs no GPU: it compiles what others measure,\n" +
			"and where that is enough for a verdict nobody has to.\n\n" +
			"At its start and once a day it measures a known kernel against itself; one that fails this gets no\n" +
			"jobs from the bot until it passes.\n\n" +
			"Exit status: 0 stopped by a signal (or the self-test is passed), 2 no token, or refused by the bot, 3 anything else.",
		Example: "  kernelgate runner --self-test\n  kernelgate runner --server https://kernelgate.example.com --token-file /etc/kernelgate/gpu1.token \\\n" +
			"    --name gpu1 --labels l4,gpu --state /var/lib/kernelgate-runner\n" +
			"  kernelgate runner --builds --server https://kernelgate.example.com --token-file /etc/kernelgate/build1.token --name build1",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (len(c.Servers) == 0 || tokenFile == "") && !testOnly {
				return strict.Mistakef("kernelgate runner: --server and --token-file are required (see kernelgate runner --help)")
			}
			for _, server := range c.Servers {
				if !strings.HasPrefix(server, "unix://") && !strings.HasPrefix(server, "https://") && !strings.HasPrefix(server, "http://") {
					return strict.Mistakef("--server: %q is no address of a bot (write https://host, or unix:///path/to/runner.sock)", server)
				}
			}
			var err error
			if !testOnly {
				var token []byte
				if token, err = os.ReadFile(tokenFile); err != nil {
					return strict.Mistakef("--token-file: %w (the bot's operator hands a token out for each runner)", err)
				}
				c.Token = strings.TrimSpace(string(token))
			}
			c.Version = version()
			if c.Name == "" {
				if c.Name, err = os.Hostname(); err != nil {
					return strict.Mistakef("--name: %w (give one)", err)
				}
			}
			if c.StateDir == "" {
				c.StateDir = filepath.Join(serve.Defaults(os.Getenv).Data+"-runner", c.Name)
			}
			c.Log = newLog(stderr, level, format)
			here.Log, here.Name = c.Log, c.Name
			if err := measureHere(&here); err != nil {
				return err
			}
			all := []worker{{c, here}}
			switch {
			case builds && testOnly:
				return strict.Mistakef("--self-test: a host that builds measures nothing (leave --builds out)")
			case builds:
				if err := labelBuilder(cmd.Context(), &all[0].agent, here); err != nil {
					return err
				}
				all[0].agent.Build = here.Build
			default:
				picked, err := gpusFor(use)
				if err != nil {
					return err
				}
				all = workers(c, here, picked)
			}
			if testOnly {
				return testWorkers(cmd.Context(), all, stdout)
			}
			secondSignalKills(cmd.Context())
			for _, w := range all {
				w.agent.Log.Info("runner starts", "servers", c.Servers, "name", c.Name, "labels", w.agent.Labels, "uuid", w.here.GPU.UUID, "includes", here.Includes.Names(), "state", w.agent.StateDir)
			}
			err = runWorkers(cmd.Context(), all)
			if errors.Is(err, agent.ErrRefused) {
				return strict.Mistake{Err: err}
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&c.Servers, "server", nil, "the bot: https://host, or unix:///path/to/runner.sock on its own host; several where several bots share a journal (required)")
	f.StringVar(&c.CA, "ca", "", "file with certificates to trust beside the system's")
	f.StringVar(&tokenFile, "token-file", "", "file with this runner's token (required)")
	f.StringVar(&c.Name, "name", "", "the name that the bot knows the token by (default: the host's)")
	f.StringSliceVar(&c.Labels, "labels", nil, "kinds of jobs to take (default: cpu, and gpu with the GPU's name where there is one); a GPU's name is for those GPUs alone, cpu for the first")
	f.StringVar(&c.StateDir, "state", "", "folder for the job under way and results to deliver; no two runners share one")
	f.StringVar(&use, "gpus", use, "GPUs to measure on, a job on each at a time: all, none, or numbers of nvidia-smi and UUIDs, 0,2")
	f.BoolVar(&testOnly, "self-test", false, "test this host once as a runner does at its start and every day, say how it went, and exit")
	f.BoolVar(&builds, "builds", false, "compile for runners with a GPU, and measure nothing: this host needs none")
	includeFlag(cmd, &here.Includes)
	toolchainFlag(cmd, &here.Toolchains)
	f.StringVar(&level, "log-level", level, "debug, info, warn or error")
	f.StringVar(&format, "log-format", format, "text or json")
	return cmd
}

// labelBuilder finds out what a runner can take that compiles and measures nothing, unless it was told.
func labelBuilder(ctx context.Context, c *agent.Config, here measure.Config) error {
	found, err := here.BuildLabels(ctx)
	if err != nil {
		return strict.Mistakef("--builds: %w", err)
	}
	if len(c.Labels) == 0 {
		c.Labels = found
	}
	for _, label := range c.Labels {
		if !slices.Contains(found, label) {
			return strict.Mistakef("--labels: this host cannot build for %q (it has %s; leave --labels out)", label, strings.Join(found, ", "))
		}
	}
	return nil
}
