package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates"
)

// Pages of lists.
const (
	defaultLimit = 50
	maxLimit     = 1000
)

func pageSize(limit int) int {
	if limit <= 0 {
		return defaultLimit
	}
	return min(limit, maxLimit)
}

// A RunFilter chooses runs; what is left out chooses all.
type RunFilter struct {
	RepoID  int64
	Change  change.ID
	Folder  string // of the kernel
	Phase   change.Phase
	Outcome gates.Outcome
	// Verdicts leaves out the runs of watches, because nobody sees their verdicts.
	Verdicts bool
	Before   int64 // the N of the last run of the page before
	Limit    int   // 50 if left out, 1000 at most
}

// A RunRow is one attempt at one kernel. Its JSON is the API's, with what is for everybody
// who may see the run.
type RunRow struct {
	N        int64              `json:"-"` // counts runs as they were asked for
	Job      string             `json:"job"`
	Change   change.ID          `json:"-"`
	Repo     string             `json:"repository"`
	Kernel   string             `json:"kernel"`           // as it is shown
	Folder   string             `json:"folder"`           // which kernel it is
	Title    string             `json:"title,omitempty"`  // of the change
	Author   string             `json:"author,omitempty"` // of the change
	Open     bool               `json:"open,omitempty"`   // the change is a pull request or a merge group that is
	Attempt  int                `json:"attempt"`
	Head     string             `json:"head"`
	Rule     string             `json:"rule,omitempty"`
	Phase    change.Phase       `json:"phase"`
	Outcome  gates.Outcome      `json:"outcome,omitempty"` // empty while there is none
	Reason   gates.Reason       `json:"reason,omitempty"`
	Line     string             `json:"line,omitempty"`
	Device   string             `json:"device,omitempty"`
	Label    string             `json:"device_label,omitempty"` // the device of the policy that the run is for
	Runner   string             `json:"runner,omitempty"`
	Extra    bool               `json:"extra,omitempty"` // for information
	Asked    time.Time          `json:"asked,omitzero"`
	Begun    time.Time          `json:"begun,omitzero"`
	Ended    time.Time          `json:"ended,omitzero"`
	P50      map[string]float64 `json:"p50_us,omitempty"`
	Speedups map[string]float64 `json:"speedup,omitempty"`
	Evidence string             `json:"-"` // blob
	Verdict  string             `json:"-"` // blob
}

// Runs is one page of runs, newest first.
func (l *Ledger) Runs(ctx context.Context, f RunFilter) ([]RunRow, error) {
	where, args := []string{"1"}, []any{}
	add := func(set bool, condition string, arg any) {
		if set {
			where, args = append(where, condition), append(args, arg)
		}
	}
	add(f.RepoID != 0, "repo_id = ?", f.RepoID)
	add(f.Change != change.ID{}, "change = ?", f.Change.String())
	add(f.Folder != "", "folder = ?", f.Folder)
	add(f.Phase != "", "phase = ?", f.Phase)
	add(f.Outcome != "", "outcome = ?", f.Outcome)
	add(f.Verdicts, "change NOT LIKE ?", string(change.Watch)+"-%")
	add(f.Before > 0, "n < ?", f.Before)
	numbers := "SELECT n FROM runs WHERE " + strings.Join(where, " AND ") + " ORDER BY n DESC LIMIT ?"
	return l.listRuns(ctx, "runs", numbers, append(args, pageSize(f.Limit))...)
}

func scanRun(rows *sql.Rows) (r RunRow, err error) {
	return r, rows.Scan(&r.N, &r.Job, scanID{&r.Change}, &r.Repo, &r.Title, &r.Kernel, &r.Folder, &r.Attempt, &r.Head, &r.Rule, &r.Phase,
		&r.Outcome, &r.Reason, &r.Line, &r.Device, &r.Label, &r.Runner, scanTime{&r.Asked}, scanTime{&r.Begun}, scanTime{&r.Ended},
		&r.Evidence, &r.Verdict, &r.Extra, &r.Open, &r.Author)
}

// addShapes gives runs their figures.
func (l *Ledger) addShapes(ctx context.Context, runs []RunRow) error {
	ns := make([]int64, len(runs))
	for i, r := range runs {
		ns[i] = r.N
	}
	p50, speedups, err := l.shapes(ctx, ns)
	for i, r := range runs {
		runs[i].P50, runs[i].Speedups = p50[r.N], speedups[r.N]
	}
	return err
}

// shapes is the figures of runs, by their n.
func (l *Ledger) shapes(ctx context.Context, ns []int64) (p50, speedups map[int64]map[string]float64, err error) {
	list, err := json.Marshal(ns)
	if err != nil {
		return nil, nil, err
	}
	type row struct {
		n            int64
		shape        string
		p50, speedup sql.NullFloat64
	}
	rows, err := all(ctx, l, "the figures of runs", "SELECT run, shape, p50, speedup FROM shapes WHERE run IN (SELECT value FROM json_each(?))",
		[]any{string(list)}, func(rows *sql.Rows) (r row, err error) {
			return r, rows.Scan(&r.n, &r.shape, &r.p50, &r.speedup)
		})
	p50, speedups = map[int64]map[string]float64{}, map[int64]map[string]float64{}
	put := func(into map[int64]map[string]float64, r row, v sql.NullFloat64) {
		if !v.Valid {
			return
		}
		if into[r.n] == nil {
			into[r.n] = map[string]float64{}
		}
		into[r.n][r.shape] = v.Float64
	}
	for _, r := range rows {
		put(p50, r, r.p50)
		put(speedups, r, r.speedup)
	}
	return p50, speedups, err
}
