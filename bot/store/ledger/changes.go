package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
)

// all reads every row of a query.
func all[T any](ctx context.Context, l *Ledger, what, query string, args []any, scan func(*sql.Rows) (T, error)) ([]T, error) {
	var out []T
	store := l.store.Load()
	rows, err := store.query(ctx, query, args...)
	if err != nil {
		return nil, l.failed(store, what, err)
	}
	defer rows.Close()
	for rows.Next() {
		row, err := scan(rows)
		if err != nil {
			return nil, l.failed(store, what, err)
		}
		out = append(out, row)
	}
	if err := rows.Err(); err != nil {
		return nil, l.failed(store, what, err)
	}
	return out, nil
}

// failed names what was asked for. Damage is told to Follow, which makes the
// ledger anew.
func (l *Ledger) failed(s *store, what string, err error) error {
	if damaged(err) {
		if s == l.store.Load() {
			l.progress.update(func() { l.progress.caughtUp = false })
			select {
			case l.broken <- struct{}{}:
			default:
			}
		}
		return fmt.Errorf("reading %s from the ledger, which is damaged and is being rebuilt (ask again): %w", what, err)
	}
	return fmt.Errorf("reading %s from the ledger: %w", what, err)
}

// scanID reads a column that holds a change.
type scanID struct{ id *change.ID }

func (s scanID) Scan(value any) (err error) {
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf("a change is named by %T", value)
	}
	if *s.id, err = change.ParseID(text); err != nil {
		return fmt.Errorf("%w: %w", errNonsense, err)
	}
	return nil
}

// scanTime reads a column that holds a time.
type scanTime struct{ t *time.Time }

func (s scanTime) Scan(value any) error {
	n, ok := value.(int64)
	if !ok {
		return fmt.Errorf("a time is kept as %T", value)
	}
	*s.t = clock(n)
	return nil
}

// scanJSON reads a column of JSON.
type scanJSON struct{ into any }

func (s scanJSON) Scan(value any) error {
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf("JSON is kept as %T", value)
	}
	return json.Unmarshal([]byte(text), s.into)
}

func oneID(rows *sql.Rows) (id change.ID, err error) {
	return id, rows.Scan(scanID{&id})
}

// Unsettled is the changes that somebody has to see to, those that have waited
// longest first.
func (l *Ledger) Unsettled(ctx context.Context) ([]change.ID, error) {
	return all(ctx, l, "what is not settled", "SELECT id FROM changes WHERE NOT settled ORDER BY seq", nil, oneID)
}

// OpenChanges is every change that is open, settled or not.
func (l *Ledger) OpenChanges(ctx context.Context) ([]change.ID, error) {
	return all(ctx, l, "what is open", "SELECT id FROM changes WHERE open ORDER BY seq", nil, oneID)
}

// Unchecked is when the pull request or merge group that has waited longest for a check
// of its head last had an event; zero where there is none. One without anything to check
// is settled and does not count.
func (l *Ledger) Unchecked(ctx context.Context) (time.Time, error) {
	found, err := all(ctx, l, "what has no check", `SELECT updated FROM changes WHERE NOT settled AND open AND NOT draft AND kind <> 'push'
		AND NOT EXISTS (SELECT 1 FROM json_each(state, '$.checks') WHERE key LIKE '%@' || head) ORDER BY seq LIMIT 1`, nil,
		func(rows *sql.Rows) (at time.Time, err error) { return at, rows.Scan(scanTime{&at}) })
	if err != nil || len(found) == 0 {
		return time.Time{}, err
	}
	return found[0], nil
}

// ByHead is the changes whose head is, or was, the commit.
func (l *Ledger) ByHead(ctx context.Context, repoID int64, sha string) ([]change.ID, error) {
	return all(ctx, l, "the changes of commit "+sha, "SELECT change FROM heads WHERE repo_id = ? AND sha = ? ORDER BY change", []any{repoID, sha}, oneID)
}

// Change is a change's state, or errNotFound.
func (l *Ledger) Change(ctx context.Context, id change.ID) (*change.State, error) {
	store := l.store.Load()
	s, err := readState(ctx, store.read, id)
	if err != nil {
		return nil, l.failed(store, "a change", err)
	}
	return s, nil
}

// A ChangeRow is a change in a list.
type ChangeRow struct {
	ID           change.ID
	Title        string
	Author       string
	Head         string
	Open, Merged bool
}

// lookedThrough is how many of a repository's last changes are looked through for a text.
const lookedThrough = 2000

// FindChanges is the changes of a repository with that number, or with that text in their title or the author's name, newest first.
func (l *Ledger) FindChanges(ctx context.Context, repoID int64, text string, limit int) ([]ChangeRow, error) {
	const query = `SELECT id, title, author, head, open, merged FROM changes WHERE id = ?1
		UNION ALL SELECT id, title, author, head, open, merged FROM (
			SELECT id, title, author, head, open, merged FROM changes WHERE repo_id = ?2 ORDER BY seq DESC LIMIT ?5)
		WHERE id <> ?1 AND (title LIKE ?3 ESCAPE '\' OR author LIKE ?3 ESCAPE '\') LIMIT ?4`
	number, _ := strconv.Atoi(strings.TrimPrefix(text, "#")) // 0 of a text is no pull request
	like := "%" + strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(text) + "%"
	args := []any{change.ID{Kind: change.Pull, Repo: repoID, Number: number}.String(), repoID, like, pageSize(limit), lookedThrough}
	return all(ctx, l, "changes about "+text, query, args, func(rows *sql.Rows) (c ChangeRow, err error) {
		return c, rows.Scan(scanID{&c.ID}, &c.Title, &c.Author, &c.Head, &c.Open, &c.Merged)
	})
}

// A PullRow is an open pull request.
type PullRow struct {
	ID   change.ID
	Base string // the branch that it goes to
}

// OpenPulls is the repository's open pull requests, by number.
func (l *Ledger) OpenPulls(ctx context.Context, repoID int64) ([]PullRow, error) {
	const query = "SELECT id, base FROM changes WHERE repo_id = ? AND open AND kind = 'pr' ORDER BY number"
	return all(ctx, l, "the open pull requests", query, []any{repoID}, func(rows *sql.Rows) (p PullRow, err error) {
		return p, rows.Scan(scanID{&p.ID}, &p.Base)
	})
}
