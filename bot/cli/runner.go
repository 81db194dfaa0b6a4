package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/bot/serve"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
	"github.com/kernelgate/kernelgate/runners/work/agent"
)

func runnerCommand(stdout, stderr io.Writer) *cobra.Command {
	var c agent.Config
	var here measure.Config
	tokenFile, level, format, use, testOnly, builds := "", "info", "text", "all", false, false
	cmd := &cobra.Command{
		Use:   "runner",
		Short: "Run a runner: measure jobs for a bot, on this or a different host",
		Long: "Asks the bot for jobs, measures one job at a time on each GPU, and sends the evidence to the bot. The\n" +
			"runner has a token for that bot and no GitHub credentials. While the bot cannot be reached, the\n" +
			"runner keeps results in its state folder. With --builds it needs no GPU: it only compiles, for\n" +
			"runners that measure. If the build already decides the verdict, no runner measures.\n\n" +
			"At its start and once a day the runner runs a self-test: it measures a known kernel against itself.\n" +
			"While the self-test fails, the bot gives the runner no jobs.\n\n" +
			"Exit status: 0 stopped by a signal, or the self-test passed; 2 no token, or the bot refused the\n" +
			"runner; 3 any other failure. SIGHUP stops nothing.",
		Example: "  kernelgate runner --self-test\n  kernelgate runner --server https://kernelgate.example.com --token-file /etc/kernelgate/gpu1.token \\\n" +
			"    --name gpu1 --labels l4,gpu --state /var/lib/kernelgate-runner\n" +
			"  kernelgate runner --builds --server https://kernelgate.example.com --token-file /etc/kernelgate/build1.token --name build1",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (len(c.Servers) == 0 || tokenFile == "") && !testOnly {
				return usage.Errorf("kernelgate runner: --server and --token-file are required (see kernelgate runner --help)")
			}
			for _, server := range c.Servers {
				if !strings.HasPrefix(server, "unix://") && !strings.HasPrefix(server, "https://") && !strings.HasPrefix(server, "http://") {
					return usage.Errorf("--server: %q is not the address of a bot (write https://host, or unix:///path/to/runner.sock)", server)
				}
			}
			var err error
			if !testOnly {
				var token []byte
				if token, err = os.ReadFile(tokenFile); err != nil {
					return usage.Errorf("--token-file: %w (the operator of the bot creates a token for each runner)", err)
				}
				c.Token = strings.TrimSpace(string(token))
			}
			c.Version = version()
			if c.Name == "" {
				if c.Name, err = os.Hostname(); err != nil {
					return usage.Errorf("--name: %w (set a name)", err)
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
				return usage.Errorf("--self-test: a host that only builds has no self-test (remove --builds)")
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
			crashBySignal()
			onHangup(cmd.Context(), func() { c.Log.Info("SIGHUP: a runner has nothing to read again; restart it to change its flags") })
			for _, w := range all {
				w.agent.Log.Info("runner starts", "servers", c.Servers, "name", c.Name, "labels", w.agent.Labels, "uuid", w.here.GPU.UUID, "includes", here.Includes.Names(), "state", w.agent.StateDir)
			}
			err = runWorkers(cmd.Context(), all)
			if errors.Is(err, agent.ErrRefused) {
				return usage.Error{Err: err}
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&c.Servers, "server", nil, "address of the bot: https://host, or unix:///path/to/runner.sock on the same host; name several if several bots share a journal (required)")
	f.StringVar(&c.CA, "ca", "", "file with additional certificates to trust")
	f.StringVar(&tokenFile, "token-file", "", "file with this runner's token (required)")
	f.StringVar(&c.Name, "name", "", "name of this runner in the configuration of the bot (default: the host name)")
	f.StringSliceVar(&c.Labels, "labels", nil, "kinds of jobs to take (default: cpu; with a GPU also gpu and the name of the GPU). On a host with several GPUs, a GPU name applies only to GPUs of that name, and cpu only to the first GPU")
	f.StringVar(&c.StateDir, "state", "", "folder for the current job and for results to deliver; each runner needs a separate one")
	f.StringVar(&use, "gpus", use, "GPUs to measure on, one job on each at a time: all, none, or a list of nvidia-smi numbers and UUIDs such as 0,2")
	f.BoolVar(&testOnly, "self-test", false, "run the self-test once, print its result, and exit")
	f.BoolVar(&builds, "builds", false, "only compile, for runners with a GPU; this host needs no GPU")
	includeFlag(cmd, &here.Includes)
	toolchainFlag(cmd, &here.Toolchains)
	f.StringVar(&level, "log-level", level, "debug, info, warn or error")
	f.StringVar(&format, "log-format", format, "text or json")
	return cmd
}

// labelBuilder detects the labels of a runner that only compiles, unless they are configured.
func labelBuilder(ctx context.Context, c *agent.Config, here measure.Config) error {
	found, err := here.BuildLabels(ctx)
	if err != nil {
		return usage.Errorf("--builds: %w", err)
	}
	if len(c.Labels) == 0 {
		c.Labels = found
	}
	for _, label := range c.Labels {
		if !slices.Contains(found, label) {
			return usage.Errorf("--labels: this host cannot build for %q (it can build for %s; remove --labels)", label, strings.Join(found, ", "))
		}
	}
	return nil
}
