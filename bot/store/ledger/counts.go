package ledger

import (
	"context"
	"database/sql"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates"
)

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
