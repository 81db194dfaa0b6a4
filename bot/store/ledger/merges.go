package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"

	"github.com/kernelgate/kernelgate/bot/highwater"
)

// maxRenames bounds how many names of a kernel are followed.
const maxRenames = 20

// Merges is what is known of the merges of the kernel in a folder, under the names that it had before
// too. It follows from events, as everything here does.
func (l *Ledger) Merges(ctx context.Context, repoID int64, folder string) (highwater.History, error) {
	h := highwater.History{Before: map[string]string{}, Unbuildable: map[highwater.OnBranch]bool{}}
	rows, err := l.mergesOf(ctx, repoID, folder)
	if err != nil {
		return h, err
	}
	pushes, err := all(ctx, l, "the pushes", "SELECT head, before FROM changes WHERE repo_id = ? AND kind = 'push'", []any{repoID}, func(rows *sql.Rows) (p [2]string, err error) {
		return p, rows.Scan(&p[0], &p[1])
	})
	if err != nil {
		return h, err
	}
	for _, p := range pushes {
		h.Before[p[0]] = p[1]
	}
	if err := l.addRatios(ctx, rows); err != nil {
		return h, err
	}
	for _, r := range rows {
		h.Merges = append(h.Merges, r.Merge)
	}
	const query = "SELECT DISTINCT r.against, c.base, r.label FROM runs r JOIN changes c ON c.id = r.change WHERE r.repo_id = ? AND r.folder = ? AND r.unbuildable"
	broken, err := all(ctx, l, "baselines that did not build", query, []any{repoID, folder}, func(rows *sql.Rows) (at highwater.OnBranch, err error) {
		return at, rows.Scan(&at.Commit, &at.Branch, &at.Label)
	})
	for _, at := range broken {
		h.Unbuildable[at] = true
	}
	return h, err
}

// A mergeRow is a push's run of the kernel.
type mergeRow struct {
	highwater.Merge
	n   int64
	was string
}

// mergesOf is the runs of a kernel on the default branch in the order of their events, those under earlier names first.
func (l *Ledger) mergesOf(ctx context.Context, repoID int64, folder string) ([]mergeRow, error) {
	const query = `SELECT r.n, r.was, r.head, r.folder, c.base, r.against, r.label, r.device, r.arch, r.outcome, r.ended
		FROM runs r JOIN changes c ON c.id = r.change
		WHERE r.repo_id = ? AND r.folder = ? AND r.change LIKE 'push-%' AND r.side = 0 AND r.phase <> 'abandoned' AND r.n < ? ORDER BY r.n`
	var found []mergeRow
	until := int64(1) << 62
	for range maxRenames {
		rows, err := all(ctx, l, "the merges of "+folder, query, []any{repoID, folder, until}, func(rows *sql.Rows) (m mergeRow, err error) {
			return m, rows.Scan(&m.n, &m.was, &m.Commit, &m.Folder, &m.Branch, &m.Against, &m.Label, &m.Device.Name, &m.Device.Arch, &m.Outcome, scanTime{&m.At})
		})
		if err != nil {
			return nil, err
		}
		// What was in the folder before another kernel was moved there is not this one.
		if i := lastRenamed(rows); i >= 0 {
			found = append(rows[i:], found...)
			folder, until = rows[i].was, rows[i].n
			continue
		}
		return append(rows, found...), nil
	}
	return found, nil
}

func lastRenamed(rows []mergeRow) int {
	for i, r := range slices.Backward(rows) {
		if r.was != "" {
			return i
		}
	}
	return -1
}

func (l *Ledger) addRatios(ctx context.Context, rows []mergeRow) error {
	at, ns := map[int64]int{}, []int64{}
	for i, r := range rows {
		at[r.n], ns = i, append(ns, r.n)
	}
	list, err := json.Marshal(ns)
	if err != nil {
		return err
	}
	type row struct {
		n     int64
		shape highwater.Shape
		ratio float64
	}
	ratios, err := all(ctx, l, "the ratios of merges", "SELECT run, shape, dims, ratio FROM shapes WHERE ratio IS NOT NULL AND run IN (SELECT value FROM json_each(?))",
		[]any{string(list)}, func(rows *sql.Rows) (r row, err error) {
			return r, rows.Scan(&r.n, &r.shape.Name, &r.shape.Dims, &r.ratio)
		})
	for _, r := range ratios {
		m := &rows[at[r.n]].Merge
		if m.Ratios == nil {
			m.Ratios = map[highwater.Shape]float64{}
		}
		m.Ratios[r.shape] = r.ratio
	}
	return err
}
