package ledger

import (
	"context"
	"database/sql"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates"
)

// decided is the runs that say something about the code, and of each change's runs
// of a kernel the last. An ERROR is the runner's and does not undo what an earlier
// attempt has shown.
const decided = `r.side = 0 AND r.outcome IN ('PASS', 'DEFER') AND NOT EXISTS (
	SELECT 1 FROM runs x WHERE x.change = r.change AND x.folder = r.folder AND x.side = 0 AND x.outcome IN ('PASS', 'DEFER') AND x.n > r.n)`

// Tried is a pull request whose last result for a kernel is DEFER.
type Tried struct {
	ID      change.ID
	Number  int
	Title   string
	Author  string
	Open    bool
	Merged  bool
	Head    string
	Outcome gates.Outcome
	Reason  gates.Reason
	Line    string
	Rule    string
	Verdict string // blob
	At      time.Time
}

// TriedBefore is what other pull requests tried with the kernel in a folder without success,
// newest first. One that passed in the end is not among them.
func (l *Ledger) TriedBefore(ctx context.Context, repoID int64, folder string, except change.ID, limit int) ([]Tried, error) {
	const query = `SELECT c.id, c.number, c.title, c.author, c.open, c.merged, r.head, r.outcome, r.reason, r.line, r.rule, r.verdict, r.ended
		FROM runs r JOIN changes c ON c.id = r.change
		WHERE r.repo_id = ? AND r.folder = ? AND c.kind = 'pr' AND c.id <> ? AND r.outcome = 'DEFER' AND ` + decided + `
		ORDER BY r.n DESC LIMIT ?`
	args := []any{repoID, folder, except.String(), pageSize(limit)}
	return all(ctx, l, "what was tried with "+folder, query, args, func(rows *sql.Rows) (t Tried, err error) {
		return t, rows.Scan(scanID{&t.ID}, &t.Number, &t.Title, &t.Author, &t.Open, &t.Merged, &t.Head,
			&t.Outcome, &t.Reason, &t.Line, &t.Rule, &t.Verdict, scanTime{&t.At})
	})
}
