package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/watch"
)

// Watched returns the watched kernels of a repository, sorted by folder, with one state for each device.
func (l *Ledger) Watched(ctx context.Context, repoID int64) ([]*watch.State, error) {
	return all(ctx, l, "the watched kernels", "SELECT state FROM watched WHERE repo_id = ? ORDER BY folder, name", []any{repoID}, func(rows *sql.Rows) (*watch.State, error) {
		s := &watch.State{}
		return s, rows.Scan(scanJSON{s})
	})
}

// addWatched applies an event of a watched kernel.
func (b *batch) addWatched(ctx context.Context, e journal.Event) error {
	event, err := watch.Decode(e.Writer, e.Kind, e.Data)
	if err != nil {
		return err
	}
	s, ok := b.watched.values[e.Run]
	if !ok {
		if s, err = readWatched(ctx, b.l.store.Load().write, e.Run); err != nil {
			return err
		}
	}
	b.count(e)
	if e.Seq <= s.Seq {
		return nil
	}
	s.Apply(e.Seq, event)
	b.watched.set(e.Run, s)
	return nil
}

func readWatched(ctx context.Context, db *sql.DB, name string) (*watch.State, error) {
	var text []byte
	s := &watch.State{}
	err := db.QueryRowContext(ctx, "SELECT state FROM watched WHERE name = ?", name).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the watched kernel %s: %w", name, err)
	}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("reading the watched kernel %s: %w: %w", name, errNonsense, err)
	}
	return s, nil
}

func (b *batch) writeWatched(ctx context.Context, tx *sql.Tx) error {
	for _, name := range b.watched.keys {
		s := b.watched.values[name]
		text, err := json.Marshal(s)
		if err != nil {
			return fmt.Errorf("watched kernel %s: %w", name, err)
		}
		if _, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO watched (name, repo_id, folder, state) VALUES (?, ?, ?, ?)", name, s.Repo, s.Folder, string(text)); err != nil {
			return fmt.Errorf("watched kernel %s: %w", name, err)
		}
	}
	return nil
}
