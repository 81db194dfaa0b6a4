package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/bot/serve"
	"github.com/kernelgate/kernelgate/policies/usage"
)

func serveCommand(stdout, stderr io.Writer) *cobra.Command {
	file, checkOnly, acceptLoss := "", false, false
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the bot: receive webhooks, publish verdicts, with a runner on this host",
		Long: "Receives webhooks from GitHub, sends kernels to runners to measure, and publishes verdicts as\n" +
			"checks and comments. You can set every key of the configuration by a flag, in the environment\n" +
			"(github.app_id is KERNELGATE_GITHUB_APP_ID) or in the file. A flag overrides the environment,\n" +
			"and the environment overrides the file. Secrets come from files, or from KERNELGATE_GITHUB_TOKEN,\n" +
			"KERNELGATE_GITHUB_PRIVATE_KEY and KERNELGATE_GITHUB_WEBHOOK_SECRET.\n\n" +
			"Exit status: 0 stopped by a signal, 2 a mistake in the configuration or a journal that has lost\n" +
			"events, 3 any other failure. A second signal stops the bot at once. SIGHUP stops nothing: it logs\n" +
			"whether a restart would change the configuration.",
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
					return usage.Errorf("--%s: every user of this host can read the command line: use --%s-file", name, name)
				}
			}
			sources := serve.Sources{File: configFile(file), Getenv: os.Getenv, Flags: flags}
			config, err := serve.Load(sources)
			if err != nil {
				return err
			}
			log := newLog(stderr, config.Log.Level, config.Log.Format)
			warn := func(text string) { log.Warn(text) }
			for _, name := range serve.Unknown(os.Environ()) {
				log.Warn("unknown environment variable: check its spelling", "name", name)
			}
			secrets, err := config.ReadSecrets(os.Getenv, warn)
			if err != nil {
				return err
			}
			if checkOnly {
				return config.Show(stdout)
			}
			if err := serve.Conceal(); err != nil {
				log.Warn("the local runner can read the memory of this process", "err", err)
			}
			secondSignalKills(cmd.Context())
			crashBySignal()
			onHangup(cmd.Context(), func() { compareConfig(log, config, sources) })
			return serve.Run(cmd.Context(), serve.Options{Config: config, Secrets: secrets, AcceptLoss: acceptLoss, Version: version(), Stderr: stderr, Log: log})
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "config", "", "configuration file (default: $"+serve.EnvConfig+", or "+serve.DefaultFile+" if it exists)")
	f.BoolVar(&checkOnly, "check-config", false, "print the configuration as read, without secrets, and exit")
	f.BoolVar(&acceptLoss, "accept-loss", false, "start although the journal has lost events that the ledger has; the old ledger is kept under a different name")
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

// compareConfig logs what a restart would change. The bot reads its configuration only when it starts: most keys belong to
// parts that other parts rely on, and a restart loses nothing.
func compareConfig(log *slog.Logger, running serve.Config, sources serve.Sources) {
	switch now, err := serve.Load(sources); {
	case err != nil:
		log.Error("SIGHUP: the bot goes on with its old configuration, and would not start with the new one", "err", err)
	case reflect.DeepEqual(now, running):
		log.Info("SIGHUP: the configuration has not changed")
	default:
		log.Warn("SIGHUP: the configuration has changed; restart the bot to use it")
	}
}

// secretFlags are flags that users may try. They get a better advice.
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

// secondSignalKills restores the default effect of signals after the first one.
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
