package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates"
)

// What people look at is asked for with every look, however many runs there are:
// these queries read what an index leads to, and a bounded number of rows.

// IsNotFound tells that the ledger has no such change or run.
func IsNotFound(err error) bool { return errors.Is(err, errNotFound) }

// Kernels is the kernels of a repository that were ever run, by folder.
func (l *Ledger) Kernels(ctx context.Context, repoID int64) ([]string, error) {
	const query = `WITH RECURSIVE folders (name) AS (
		SELECT min(folder) FROM runs WHERE repo_id = ?1
		UNION ALL SELECT (SELECT min(folder) FROM runs WHERE repo_id = ?1 AND folder > name) FROM folders WHERE name IS NOT NULL)
		SELECT name FROM folders WHERE name IS NOT NULL`
	return all(ctx, l, "the kernels", query, []any{repoID}, func(rows *sql.Rows) (name string, err error) {
		return name, rows.Scan(&name)
	})
}

// Run is the run of a job.
func (l *Ledger) Run(ctx context.Context, job string) (RunRow, error) {
	rows, err := l.listRuns(ctx, "a run", "SELECT n FROM runs WHERE job = ?", job)
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("run %q: %w", job, errNotFound)
	}
	if err != nil {
		return RunRow{}, err
	}
	return rows[0], nil
}

// Unfinished is the runs that wait for a runner or are at one, oldest first.
func (l *Ledger) Unfinished(ctx context.Context) ([]RunRow, error) {
	rows, err := l.listRuns(ctx, "what is under way", "SELECT n FROM runs WHERE phase IN ('queued', 'running')")
	slices.Reverse(rows)
	return rows, err
}

// Attempts is all runs of a change, newest first.
func (l *Ledger) Attempts(ctx context.Context, id change.ID) ([]RunRow, error) {
	return l.listRuns(ctx, "the runs of a change", "SELECT n FROM runs WHERE change = ? ORDER BY n DESC LIMIT 500", id.String())
}

// Latest is the last runs of the kernel in a folder, newest first.
func (l *Ledger) Latest(ctx context.Context, repoID int64, folder string, limit int) ([]RunRow, error) {
	return l.listRuns(ctx, "the last runs of "+folder, "SELECT n FROM runs WHERE repo_id = ? AND folder = ? ORDER BY n DESC LIMIT ?", repoID, folder, pageSize(limit))
}

// AtHead is the last runs of commits whose id begins so, newest first.
func (l *Ledger) AtHead(ctx context.Context, prefix string, limit int) ([]RunRow, error) {
	return l.listRuns(ctx, "the runs of commit "+prefix, "SELECT n FROM runs WHERE head >= ?1 AND head < ?1 || 'g' ORDER BY n DESC LIMIT ?2", prefix, pageSize(limit))
}

// TriedBefore is what other pull requests tried with the kernel in a folder without success,
// newest first. One that passed in the end is not among them: of each one's runs of the kernel
// the last counts that says something about the code. An ERROR is the runner's and does not undo
// what an earlier attempt has shown.
func (l *Ledger) TriedBefore(ctx context.Context, repoID int64, folder string, except change.ID, limit int) ([]change.Tried, error) {
	const query = `SELECT c.number, c.title, r.outcome, r.reason, r.line, r.ended
		FROM runs r JOIN changes c ON c.id = r.change
		WHERE r.repo_id = ? AND r.folder = ? AND c.kind = 'pr' AND c.id <> ? AND r.side = 0 AND r.outcome = 'DEFER' AND NOT EXISTS (
			SELECT 1 FROM runs x WHERE x.change = r.change AND x.folder = r.folder AND x.side = 0 AND x.outcome IN ('PASS', 'DEFER') AND x.n > r.n)
		ORDER BY r.n DESC LIMIT ?`
	args := []any{repoID, folder, except.String(), pageSize(limit)}
	return all(ctx, l, "what was tried with "+folder, query, args, func(rows *sql.Rows) (t change.Tried, err error) {
		return t, rows.Scan(&t.Number, &t.Title, &t.Outcome, &t.Reason, &t.Line, scanTime{&t.At})
	})
}

// OnMain is the kernel's last runs on the default branch that decided something, newest first.
func (l *Ledger) OnMain(ctx context.Context, repoID int64, folder string, limit int) ([]RunRow, error) {
	return l.listRuns(ctx, "the history of "+folder, "SELECT n FROM runs WHERE repo_id = ? AND folder = ? AND main ORDER BY n DESC LIMIT ?", repoID, folder, pageSize(limit))
}

// listRuns reads the runs that a query names by number, newest first. The order of the
// joins is given: SQLite would rather go through all runs in the order that is asked for.
func (l *Ledger) listRuns(ctx context.Context, what, numbers string, args ...any) ([]RunRow, error) {
	query := `SELECT r.n, r.job, r.change, coalesce(nullif(p.name, ''), c.repo), c.title, r.kernel, r.folder, r.attempt, r.head, r.rule, r.phase, r.outcome, r.reason, r.line,
		r.device, r.label, r.runner, r.asked, r.begun, r.ended, r.evidence, r.verdict, r.side, c.open, c.author
		FROM (` + numbers + `) which CROSS JOIN runs r ON r.n = which.n CROSS JOIN changes c ON c.id = r.change
		LEFT JOIN repositories p ON p.id = r.repo_id ORDER BY which.n DESC`
	runs, err := all(ctx, l, what, query, args, scanRun)
	if err != nil {
		return nil, err
	}
	return runs, l.addShapes(ctx, runs)
}

// An Entry is one command: who asked for what, and what came of it.
type Entry struct {
	By       string
	Text     string // as it was written: escape it before it is shown
	Head     string // when it was asked
	At       time.Time
	OK       bool
	Answer   change.Answer
	Override *change.Override // what it led to
}

// Audit is the last commands that were given about a change, newest first.
func (l *Ledger) Audit(ctx context.Context, id change.ID, limit int) ([]Entry, error) {
	const query = `SELECT c.by, c.text, c.head, c.at, c.ok, c.answer, o.scope, o.by, o.reason, o.at
		FROM commands c LEFT JOIN overrides o ON o.change = c.change AND o.command = c.id
		WHERE c.change = ? ORDER BY c.n DESC LIMIT ?`
	return all(ctx, l, "the commands", query, []any{id.String(), pageSize(limit)}, func(rows *sql.Rows) (e Entry, err error) {
		var scope, by, reason, at sql.NullString
		err = rows.Scan(&e.By, &e.Text, &e.Head, scanTime{&e.At}, &e.OK, scanJSON{&e.Answer}, &scope, &by, &reason, &at)
		if err == nil && scope.Valid {
			e.Override = &change.Override{By: by.String, Reason: reason.String, At: at.String}
			err = json.Unmarshal([]byte(scope.String), &e.Override.For)
		}
		return e, err
	})
}

// Commanded returns the changes with an accepted command that begins with this word, the newest command first.
func (l *Ledger) Commanded(ctx context.Context, word string, limit int) ([]change.ID, error) {
	const query = `SELECT change FROM commands WHERE ok AND (text = ? OR text LIKE ? || ' %') GROUP BY change ORDER BY max(n) DESC LIMIT ?`
	return all(ctx, l, "the changes with "+word, query, []any{word, word, pageSize(limit)}, oneID)
}

// Counts is the ledger in figures, for metrics.
type Counts struct {
	Changes   int
	Open      int // pull requests and groups that are
	Unsettled int
	Phases    map[change.Phase]int
	Outcomes  map[gates.Outcome]int // of the runs that are done
}

// Counts counts what the ledger has.
func (l *Ledger) Counts(ctx context.Context) (Counts, error) {
	c := Counts{Phases: map[change.Phase]int{}, Outcomes: map[gates.Outcome]int{}}
	repos, err := all(ctx, l, "the number of changes", "SELECT count(*), total(open), total(NOT settled) FROM changes", nil, func(rows *sql.Rows) (f [3]float64, err error) {
		return f, rows.Scan(&f[0], &f[1], &f[2])
	})
	if err != nil {
		return c, err
	}
	c.Changes, c.Open, c.Unsettled = int(repos[0][0]), int(repos[0][1]), int(repos[0][2])
	type row struct {
		phase   change.Phase
		outcome gates.Outcome
		n       int
	}
	rows, err := all(ctx, l, "the number of runs", "SELECT phase, outcome, count(*) FROM runs GROUP BY phase, outcome", nil, func(rows *sql.Rows) (r row, err error) {
		return r, rows.Scan(&r.phase, &r.outcome, &r.n)
	})
	for _, r := range rows {
		c.Phases[r.phase] += r.n
		if r.outcome != "" {
			c.Outcomes[r.outcome] += r.n
		}
	}
	return c, err
}
