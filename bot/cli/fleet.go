package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/bot/fleet"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/protocol"
	"github.com/kernelgate/kernelgate/runners/work/agent"
)

// fleetCommand manages the runners of a bot.
func fleetCommand(stdout io.Writer) *cobra.Command {
	server, tokenFile, ca, why := "http://localhost:8080", "/etc/kernelgate/operator.token", "", ""
	remote := func() (fleet.Remote, error) {
		token, err := os.ReadFile(tokenFile)
		if err != nil {
			return fleet.Remote{}, usage.Errorf("--token-file: %w (the bot's configuration names it: operator_token_file)", err)
		}
		client, base, err := agent.Dial(server, ca)
		if err != nil {
			return fleet.Remote{}, usage.Errorf("--server: %w", err)
		}
		client.Timeout = time.Minute
		return fleet.Remote{HTTP: client, Base: base, Token: strings.TrimSpace(string(token))}, nil
	}
	// each runs do for every named runner.
	each := func(use, short, example, then string, do func(fleet.Remote, context.Context, string) error) *cobra.Command {
		return &cobra.Command{Use: use + " NAME...", Short: short, Example: "  kernelgate fleet " + use + " " + example, Args: cobra.MinimumNArgs(1), RunE: func(cmd *cobra.Command, names []string) error {
			r, err := remote()
			if err != nil {
				return err
			}
			for _, name := range names {
				if err := do(r, cmd.Context(), name); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				fmt.Fprintf(stdout, "%s %s\n", name, then)
			}
			return nil
		}}
	}
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "List a bot's runners, drain them, test them and return them",
		Long: "Manages the runners of a bot. It needs the token that operator_token_file names in the configuration\n" +
			"of the bot.\n\n" +
			"A drained runner finishes its job and takes no more jobs until you return it. Restarts of the bot\n" +
			"and the runner do not change that. The bot quarantines a runner when the runner causes several\n" +
			"ERROR verdicts in a row, when its GPU reports a fault or is throttled, or when its self-test fails.\n" +
			"A passed self-test ends the quarantine, and so does kernelgate fleet return.\n" +
			"A host with several GPUs has one runner for each: gpu1/0 and gpu1/1. The name gpu1 means all of them.\n\n" +
			"Exit status: 0 done, 2 bad input, 3 the bot cannot be reached or refuses.",
		Example: "  kernelgate fleet list --server https://kernelgate.example.com\n  kernelgate fleet drain gpu1 --why 'new driver'\n  kernelgate fleet return gpu1\n  kernelgate fleet test gpu1/0",
	}
	drain := each("drain", "Let runners finish their jobs and take no more", "gpu1 --why 'new driver'", "takes no more jobs. (kernelgate fleet list shows when its current job is done.)",
		func(r fleet.Remote, ctx context.Context, name string) error { return r.Drain(ctx, name, why) })
	drain.Flags().StringVar(&why, "why", "", "the reason; kernelgate fleet list shows it")
	cmd.AddCommand(
		&cobra.Command{
			Use: "list", Short: "List the runners with their state and their job", Example: "  kernelgate fleet list --server https://kernelgate.example.com", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				r, err := remote()
				if err != nil {
					return err
				}
				all, err := r.List(cmd.Context())
				if err != nil {
					return err
				}
				return printFleet(stdout, all, time.Now())
			},
		},
		drain,
		each("test", "Make runners run their self-test before their next job", "gpu1/0", "runs its self-test before its next job. (kernelgate fleet list shows the result.)", fleet.Remote.Test),
		each("return", "Let runners take jobs again", "gpu1", "takes jobs again.", fleet.Remote.Return),
	)
	f := cmd.PersistentFlags()
	f.StringVar(&server, "server", server, "address of the bot: https://host, or http://localhost on the same host")
	f.StringVar(&tokenFile, "token-file", tokenFile, "file with the operator token")
	f.StringVar(&ca, "ca", "", "file with additional certificates to trust")
	return cmd
}

func printFleet(w io.Writer, all []fleet.Listed, now time.Time) error {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "RUNNER\tSTATE\tLABELS\tHOST\tSEEN\tJOB\tGPU\tSELF-TEST\tNOTE")
	for _, l := range all {
		seen, job := "-", "-"
		var notes []string
		if !l.LastSeen.IsZero() {
			seen = now.Sub(l.LastSeen).Round(time.Second).String() + " ago"
		}
		if l.Job != "" {
			job = fmt.Sprintf("%s for %s", l.Kernel, now.Sub(l.Since).Round(time.Second))
		}
		if l.Compiles() {
			notes = append(notes, "only builds, for other runners")
		}
		if l.Drained != nil {
			notes = append(notes, fmt.Sprintf("drained %s: %s", l.Drained.At.Format("2006-01-02 15:04"), l.Drained.Why))
		}
		if l.Quarantined != nil {
			notes = append(notes, fmt.Sprintf("quarantined %s: %s", l.Quarantined.At.Format("2006-01-02 15:04"), l.Quarantined.Why))
		}
		if l.Outdated != "" {
			notes = append(notes, l.Outdated)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.Name, l.State(now), strings.Join(l.Labels, ","), cmp.Or(l.Host, "-"), seen, job, gpuNow(l.Health), lastTest(l.Tests), strings.Join(notes, "; "))
	}
	return table.Flush()
}

// gpuNow describes the state of a GPU in one line.
func gpuNow(h *protocol.Health) string {
	if h == nil || h.GPU == nil {
		return "-"
	}
	g := h.GPU
	parts := []string{strings.TrimPrefix(g.Name, "NVIDIA ")}
	if g.SMClock > 0 {
		parts = append(parts, fmt.Sprintf("%d MHz", g.SMClock))
	}
	if g.Celsius != 0 {
		parts = append(parts, fmt.Sprintf("%d °C", g.Celsius))
	}
	if g.Watts > 0 {
		parts = append(parts, fmt.Sprintf("%.0f W", g.Watts))
	}
	return strings.Join(append(parts, g.Throttled...), " ")
}

// lastTest describes the last self-test: when it ran, and its result.
func lastTest(all []protocol.SelfTest) string {
	if len(all) == 0 {
		return "-"
	}
	t := all[len(all)-1]
	when := t.At.Format("01-02 15:04")
	if !t.Passed {
		return when + " failed"
	}
	return fmt.Sprintf("%s %+.1f %%, %.4g µs", when, 100*t.Difference, t.Micros)
}
