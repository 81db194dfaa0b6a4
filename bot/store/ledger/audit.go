package ledger

import (
	"context"
	"database/sql"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
)

// An Entry is one command: who asked for what, and what came of it.
type Entry struct {
	By       string
	Text     string // as it was written: escape it before it is shown
	Head     string // when it was asked
	At       time.Time
	OK       bool
	Reply    string
	Override *change.Override // what it led to
}

// Audit is the last commands that were given about a change, newest first.
func (l *Ledger) Audit(ctx context.Context, id change.ID, limit int) ([]Entry, error) {
	const query = `SELECT c.by, c.text, c.head, c.at, c.ok, c.reply, o.sha, o.by, o.reason, o.at
		FROM commands c LEFT JOIN overrides o ON o.change = c.change AND o.command = c.id
		WHERE c.change = ? ORDER BY c.n DESC LIMIT ?`
	return all(ctx, l, "the commands", query, []any{id.String(), pageSize(limit)}, func(rows *sql.Rows) (e Entry, err error) {
		var sha, by, reason, at sql.NullString
		err = rows.Scan(&e.By, &e.Text, &e.Head, scanTime{&e.At}, &e.OK, &e.Reply, &sha, &by, &reason, &at)
		if sha.Valid {
			e.Override = &change.Override{SHA: sha.String, By: by.String, Reason: reason.String, At: at.String}
		}
		return e, err
	})
}
