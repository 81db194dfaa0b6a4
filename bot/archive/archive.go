// Package archive reads the past runs of a bot that is stopped from its data folder: their evidence,
// and the policies that they were judged by.
package archive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/policies/usage"
)

// An Archive is an open data folder. No bot can use the folder at the same time.
type Archive struct {
	journal *journal.Journal
	ledger  *ledger.Ledger
}

// Open opens a data folder. It makes no new one.
func Open(ctx context.Context, dir string) (*Archive, error) {
	store, file := filepath.Join(dir, "journal"), filepath.Join(dir, "ledger.db")
	for _, path := range []string{store, file} {
		if _, err := os.Stat(path); err != nil {
			return nil, usage.Errorf("%s is not the data folder of a bot with an embedded journal: %w", dir, err)
		}
	}
	quiet := slog.New(slog.DiscardHandler)
	j, err := journal.Open(ctx, journal.Options{Dir: store, Log: quiet})
	if err != nil {
		return nil, usage.Errorf("%w (stop the bot, or copy its data folder while it is stopped)", err)
	}
	l, err := ledger.Open(ctx, file, ledger.Options{Log: quiet})
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return &Archive{journal: j, ledger: l}, nil
}

// Close closes the folder.
func (a *Archive) Close() error { return errors.Join(a.ledger.Close(), a.journal.Close()) }

// Runs returns the newest runs of a repository that have evidence, newest first. Evidence that was
// judged again, by a different rule, is listed once. If repo is "", there must be only one
// repository.
func (a *Archive) Runs(ctx context.Context, repo string, most int) ([]ledger.RunRow, error) {
	known, err := a.ledger.RepoNames(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, r := range known {
		names = append(names, r.Name)
	}
	if repo == "" && len(names) == 1 {
		repo = names[0]
	}
	meant, found := ledger.Named(known, repo)
	switch {
	case len(names) == 0:
		return nil, usage.Errorf("the data folder has no runs")
	case repo == "":
		return nil, usage.Errorf("the data folder has runs of %d repositories, and a policy belongs to one: add --repo with one of %s", len(names), strings.Join(names, ", "))
	case !found:
		return nil, usage.Errorf("--repo: there are no runs of %q (there are runs of %s)", repo, strings.Join(names, ", "))
	}
	var rows []ledger.RunRow
	seen := map[string]bool{"": true}
	for before := int64(0); ; {
		page, err := a.ledger.Runs(ctx, ledger.RunFilter{RepoID: meant.ID, Phase: change.Done, Verdicts: true, Before: before})
		if err != nil {
			return nil, fmt.Errorf("asking the ledger: %w", err)
		}
		for _, row := range page {
			if !row.Extra && !seen[row.Evidence] {
				rows = append(rows, row)
				seen[row.Evidence] = true
			}
			before = row.N
		}
		if len(page) == 0 || len(rows) >= most {
			return rows[:min(len(rows), most)], nil
		}
	}
}

// ErrExpired says that the bot does not keep the evidence of a run any more.
var ErrExpired = errors.New("the evidence is not kept any more")

// Evidence returns the evidence of a run.
func (a *Archive) Evidence(ctx context.Context, row ledger.RunRow) (*gates.Evidence, error) {
	data, err := a.journal.Artifacts.Read(ctx, row.Evidence)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: run %s: %w", ErrExpired, row.Job, err)
	}
	return gates.ParseEvidence(row.Job, data)
}

// Policy returns the file name and the text of the policy that a run was judged by: that of the last
// plan before its verdict.
func (a *Archive) Policy(ctx context.Context, row ledger.RunRow) (file, text string, err error) {
	done := false
	_, err = a.journal.ReplayRun(ctx, row.Change.String(), func(e journal.Event) error {
		if done || e.Kind != change.KindOf(change.Planned{}) && e.Kind != change.KindOf(change.Finished{}) {
			return nil
		}
		event, err := change.DecodeFrom(e.Writer, e.Kind, e.Data)
		if err != nil {
			return err
		}
		switch event := event.(type) {
		case change.Planned:
			file, text = event.PolicyFile, event.Policy
		case change.Finished:
			done = event.Job == row.Job
		}
		return nil
	})
	if err == nil && text == "" {
		err = fmt.Errorf("run %s: the journal has no policy", row.Job)
	}
	return file, text, err
}
