package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
)

// An AuditFilter chooses commands; what is left out chooses all.
type AuditFilter struct {
	RepoID    int64
	Change    change.ID
	Overrides bool  // those alone that let a head pass
	Before    int64 // the N of the last entry of the page before
	Limit     int   // 50 if left out, 1000 at most
}

// An Entry is one command: who asked for what, and what came of it.
type Entry struct {
	N        int64
	Change   change.ID
	ID       string
	By       string
	Text     string // as it was written: escape it before it is shown
	Head     string // when it was asked
	At       time.Time
	Answered bool
	OK       bool
	Reply    string
	Override *change.Override // what it led to
}

// Audit is one page of the commands that were given, newest first.
func (l *Ledger) Audit(ctx context.Context, f AuditFilter) ([]Entry, error) {
	where, args := []string{"1"}, []any{}
	if f.RepoID != 0 {
		where, args = append(where, "c.repo_id = ?"), append(args, f.RepoID)
	}
	if f.Change != (change.ID{}) {
		where, args = append(where, "c.change = ?"), append(args, f.Change.String())
	}
	if f.Overrides {
		where = append(where, "o.sha IS NOT NULL")
	}
	if f.Before > 0 {
		where, args = append(where, "c.n < ?"), append(args, f.Before)
	}
	query := fmt.Sprintf(`SELECT c.n, c.change, c.id, c.by, c.text, c.head, c.at, c.answered, c.ok, c.reply, o.sha, o.by, o.reason, o.at
		FROM commands c LEFT JOIN overrides o ON o.change = c.change AND o.command = c.id
		WHERE %s ORDER BY c.n DESC LIMIT ?`, strings.Join(where, " AND "))
	return all(ctx, l, "the commands", query, append(args, pageSize(f.Limit)), func(rows *sql.Rows) (e Entry, err error) {
		var sha, by, reason, at sql.NullString
		err = rows.Scan(&e.N, scanID{&e.Change}, &e.ID, &e.By, &e.Text, &e.Head, scanTime{&e.At}, &e.Answered, &e.OK, &e.Reply, &sha, &by, &reason, &at)
		if sha.Valid {
			e.Override = &change.Override{SHA: sha.String, By: by.String, Reason: reason.String, At: at.String}
		}
		return e, err
	})
}
