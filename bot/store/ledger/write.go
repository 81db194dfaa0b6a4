package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates"
)

// flush writes the batch, and begins the next one.
func (b *batch) flush(ctx context.Context) error {
	if b.events == 0 {
		return nil
	}
	seq := b.last.Seq
	if err := b.write(ctx); err != nil {
		return fmt.Errorf("writing the ledger up to event %d: %w", seq, err)
	}
	*b = batch{l: b.l}
	b.l.progress.reach(seq)
	return nil
}

func (b *batch) write(ctx context.Context) error {
	tx, err := b.l.store.Load().write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, write := range []func(context.Context, *sql.Tx) error{
		b.writeChanges, b.writeHeads, b.writeRuns, b.writeCommands, b.writeOverrides, b.writeWatched, b.writeRepositories,
	} {
		if err := write(ctx, tx); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, "UPDATE progress SET seq = ?, print = ?", b.last.Seq, printOf(b.last)); err != nil {
		return err
	}
	return tx.Commit()
}

// prepared runs f with a statement of the transaction.
func prepared(ctx context.Context, tx *sql.Tx, query string, f func(*sql.Stmt) error) error {
	stmt, err := tx.PrepareContext(ctx, query)
	if err != nil {
		return err
	}
	defer stmt.Close()
	return f(stmt)
}

func (b *batch) writeChanges(ctx context.Context, tx *sql.Tx) error {
	const query = `INSERT OR REPLACE INTO changes
		(id, kind, repo_id, repo, number, head, base, before, author, title, open, draft, merged, settled, seq, first, updated, state)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	return prepared(ctx, tx, query, func(stmt *sql.Stmt) error {
		for _, id := range b.states.keys {
			s := b.states.values[id]
			text, err := json.Marshal(s.State)
			if err != nil {
				return fmt.Errorf("change %s: %w", id, err)
			}
			f := s.Facts
			if _, err := stmt.ExecContext(ctx, id.String(), id.Kind, id.Repo, f.Repo, id.Number, f.Head, f.Base, before(s.State), f.Author, f.Title,
				f.Open, f.Draft, f.Merged, s.Settled(), s.Seq, nanos(s.First), nanos(s.at), string(text)); err != nil {
				return fmt.Errorf("change %s: %w", id, err)
			}
		}
		return nil
	})
}

// before is the commit that a push is compared with: the plan's base, since a forced push leaves the old tip behind.
func before(s *change.State) string {
	switch {
	case s.ID.Kind != change.Push:
		return ""
	case s.Plan != nil && s.Plan.Base != "":
		return s.Plan.Base
	}
	return s.Facts.BaseSHA
}

func (b *batch) writeHeads(ctx context.Context, tx *sql.Tx) error {
	if len(b.heads) == 0 {
		return nil
	}
	return prepared(ctx, tx, "INSERT OR IGNORE INTO heads (repo_id, sha, change) VALUES (?, ?, ?)", func(stmt *sql.Stmt) error {
		for _, h := range b.heads {
			if _, err := stmt.ExecContext(ctx, h.change.Repo, h.sha, h.change.String()); err != nil {
				return fmt.Errorf("head %s of %s: %w", h.sha, h.change, err)
			}
		}
		return nil
	})
}

func (b *batch) writeRuns(ctx context.Context, tx *sql.Tx) error {
	if len(b.runs.keys) == 0 {
		return nil
	}
	const query = `INSERT INTO runs
		(job, change, repo_id, kernel, folder, attempt, head, rule, phase, outcome, reason, line, device, label, runner, asked, begun, ended, evidence, verdict, side, was, against, arch, unbuildable, main)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (job) DO UPDATE SET
		phase = excluded.phase, outcome = excluded.outcome, reason = excluded.reason, line = excluded.line, rule = excluded.rule,
		device = excluded.device, runner = excluded.runner, begun = excluded.begun, ended = excluded.ended,
		evidence = excluded.evidence, verdict = excluded.verdict,
		against = excluded.against, arch = excluded.arch, unbuildable = excluded.unbuildable, main = excluded.main
		RETURNING n`
	return prepared(ctx, tx, query, func(stmt *sql.Stmt) error {
		for _, job := range b.runs.keys {
			r := b.runs.values[job]
			var result change.Result
			if r.Result != nil {
				result = *r.Result
			}
			main := r.change.Kind.OnMain() && r.change.Kind != change.Watch && !r.extra && (result.Outcome == gates.Pass || result.Outcome == gates.Defer)
			var n int64
			if err := stmt.QueryRowContext(ctx, r.Job, r.change.String(), r.change.Repo, r.Name, r.Folder, r.Attempt, r.Head, r.Rule, r.Phase,
				result.Outcome, result.Reason, result.Line, result.Device, r.Device, r.Runner, nanos(r.Asked), nanos(r.Begun), nanos(r.Ended),
				result.Evidence, result.Verdict, r.extra, r.Was, result.Against, result.Arch, result.Unbuildable, main).Scan(&n); err != nil {
				return fmt.Errorf("run %s: %w", r.Job, err)
			}
			if r.shapes {
				if err := writeShapes(ctx, tx, n, result); err != nil {
					return fmt.Errorf("run %s: %w", r.Job, err)
				}
			}
		}
		return nil
	})
}

func writeShapes(ctx context.Context, tx *sql.Tx, n int64, result change.Result) error {
	names := map[string]bool{}
	ratios := map[string]float64{}
	for name, r := range result.Ratios {
		ratios[name] = r.Value
	}
	for _, figures := range []map[string]float64{result.P50, result.Speedups, ratios} {
		for name := range figures {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if _, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO shapes (run, shape, p50, speedup, ratio, dims) VALUES (?, ?, ?, ?, ?, ?)",
			n, name, optional(result.P50, name), optional(result.Speedups, name), optional(ratios, name), result.Ratios[name].Dims); err != nil {
			return fmt.Errorf("shape %s: %w", name, err)
		}
	}
	return nil
}

func optional(m map[string]float64, name string) sql.NullFloat64 {
	v, ok := m[name]
	return sql.NullFloat64{Float64: v, Valid: ok}
}

func (b *batch) writeCommands(ctx context.Context, tx *sql.Tx) error {
	if len(b.commands.keys) == 0 {
		return nil
	}
	const query = `INSERT INTO commands (change, repo_id, id, by, text, head, answered, ok, answer, at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (change, id) DO UPDATE SET answered = excluded.answered, ok = excluded.ok, answer = excluded.answer`
	return prepared(ctx, tx, query, func(stmt *sql.Stmt) error {
		for _, key := range b.commands.keys {
			c := b.commands.values[key]
			answer, err := json.Marshal(c.Answer)
			if err != nil {
				return fmt.Errorf("the answer to command %s of %s: %w", c.ID, c.change, err)
			}
			if _, err := stmt.ExecContext(ctx, c.change.String(), c.change.Repo, c.ID, c.By, c.Request.String(), c.Head,
				c.Answered, c.OK, string(answer), nanos(c.When)); err != nil {
				return fmt.Errorf("command %s of %s: %w", c.ID, c.change, err)
			}
		}
		return nil
	})
}

func (b *batch) writeOverrides(ctx context.Context, tx *sql.Tx) error {
	for _, o := range b.overrides {
		scope, err := json.Marshal(o.For)
		if err != nil {
			return fmt.Errorf("override of %s: %w", o.change, err)
		}
		if _, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO overrides (change, command, scope, by, reason, at) VALUES (?, ?, ?, ?, ?, ?)",
			o.change.String(), o.command, string(scope), o.By, o.Reason, o.At); err != nil {
			return fmt.Errorf("override of %s: %w", o.change, err)
		}
	}
	return nil
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func clock(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos).UTC()
}
