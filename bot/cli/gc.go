package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/bot/retention"
	"github.com/kernelgate/kernelgate/bot/serve"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/gates/number"
	"github.com/kernelgate/kernelgate/policies/usage"
)

// gcOptions are the flags of gc.
type gcOptions struct {
	of     journalFlags
	days   int
	dryRun bool
}

// leastDays protects the artifacts of a pull request that was closed, and that its author may reopen.
const leastDays = 30

func gcCommand(stdout, stderr io.Writer) *cobra.Command {
	var opt gcOptions
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Delete old evidence from the journal of a bot",
		Long: "Deletes artifacts (evidence, verdicts, logs, profiles) that were written more than --days ago. It keeps\n" +
			"those of open pull requests, and of runs that ended since then. It deletes no event, so verdicts, history and\n" +
			"the counts of attempts do not change. Deleted evidence cannot be downloaded or judged again.\n\n" +
			"Stop a bot with an embedded journal before you run gc. With a NATS cluster, the bots may run. If root runs\n" +
			"gc, it works as the user that owns the journal. --dry-run reads a copy of an embedded journal in $TMPDIR.\n\n" +
			"Exit status: 0 done, 2 bad input, 3 any other failure.",
		Example: "  kernelgate gc --dry-run                                  # what would be deleted, and how many bytes\n" +
			"  kernelgate gc --config /etc/kernelgate/kernelgate.yaml --days 180\n" +
			"  kernelgate gc --data /var/lib/kernelgate --dry-run",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opt.days < leastDays {
				return usage.Errorf("--days: %d is less than %d (its author may reopen a pull request that was closed in that time)", opt.days, leastDays)
			}
			j, err := openForGC(cmd.Context(), opt, stderr)
			if err != nil {
				return err
			}
			return errors.Join(collect(cmd.Context(), j, opt, time.Now(), stdout), j.Close())
		},
	}
	opt.of.add(cmd)
	f := cmd.Flags()
	f.IntVar(&opt.days, "days", 365, "delete artifacts that are older than this number of days, at least 30")
	f.BoolVar(&opt.dryRun, "dry-run", false, "print what would be deleted, and delete nothing")
	return cmd
}

// openForGC opens the journal of a bot. It never creates one.
func openForGC(ctx context.Context, opt gcOptions, stderr io.Writer) (*journal.Journal, error) {
	config, err := opt.of.load()
	if err != nil {
		return nil, err
	}
	if len(config.NATS) == 0 {
		if err := hasJournal(config.Data); err != nil {
			return nil, err
		}
		if !opt.dryRun { // which reads a copy
			if config.Data, err = becomeOwner(config.Data, filepath.Join(config.Data, "journal")); err != nil {
				return nil, err
			}
		}
	}
	j, err := serve.OpenJournal(ctx, config, version(), opt.dryRun, newLog(stderr, "warn", "text"))
	if err != nil && len(config.NATS) == 0 {
		return nil, usage.Errorf("%w (stop the bot, or copy its data folder while it is stopped)", err)
	}
	return j, err
}

// collect prints how much each stream stores, and deletes artifacts that are too old.
func collect(ctx context.Context, j *journal.Journal, opt gcOptions, now time.Time, out io.Writer) error {
	plan, err := retention.Make(ctx, j, now.AddDate(0, 0, -opt.days))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%-18s %10s %10s  %s\n", "stream", "messages", "stored", "kept")
	for _, u := range plan.Usage {
		kept := "forever"
		switch {
		case u.Keep > 0:
			kept = fmt.Sprintf("%d days", int(u.Keep.Hours()/24))
		case u.UntilDone:
			kept = "until done"
		}
		fmt.Fprintf(out, "%-18s %10d %10s  %s\n", u.Stream, u.Messages, number.Bytes(float64(u.Bytes)), kept)
	}
	all := len(plan.Delete) + len(plan.Kept)
	fmt.Fprintf(out, "\n%d of %d artifacts are older than %d days and not in use. %d artifacts are that old and in use.\n", len(plan.Delete), all, opt.days, plan.InUse)
	if opt.dryRun {
		for _, b := range plan.Delete {
			fmt.Fprintf(out, "  %s  %9s  %s\n", b.Written.UTC().Format(time.DateOnly), number.Bytes(float64(b.Bytes)), b.Name)
		}
		_, err := fmt.Fprintf(out, "Would delete %d artifacts, %s. Nothing was deleted.\n", len(plan.Delete), number.Bytes(float64(retention.Bytes(plan.Delete))))
		return err
	}
	deleted, err := plan.Apply(ctx, j)
	fmt.Fprintf(out, "Deleted %d artifacts, %s.\n", len(deleted), number.Bytes(float64(retention.Bytes(deleted))))
	return err
}
