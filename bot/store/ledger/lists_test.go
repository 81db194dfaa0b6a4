package ledger

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/change"
)

// The lists that jump through indexes say what a look at everything says.
func TestLists(t *testing.T) {
	w := newWorld(3).run(3_000)
	l, ctx := filled(t, w), t.Context()
	var every []RunRow
	for before := int64(0); ; {
		page, err := l.Runs(ctx, RunFilter{Before: before, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		every, before = append(every, page...), page[len(page)-1].N
	}
	if len(every) < 300 {
		t.Fatalf("%d runs are too few to tell anything", len(every))
	}
	which := func(keep func(RunRow) bool) []RunRow {
		return slices.DeleteFunc(slices.Clone(every), func(r RunRow) bool { return !keep(r) })
	}
	same := func(what string, want, got any, err error) {
		t.Helper()
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", what, err, diff)
		}
	}
	names, err := l.RepoNames(ctx)
	var want []RepoName
	for _, s := range w.changes {
		if r := (RepoName{ID: s.ID.Repo, Name: s.Facts.Repo}); !slices.ContainsFunc(want, func(known RepoName) bool { return known.ID == r.ID && known.Name == r.Name }) {
			want = append(want, r)
		}
	}
	slices.SortFunc(want, func(a, b RepoName) int { return int(a.ID - b.ID) })
	same("repositories", want, names, err)
	for _, prefix := range []string{every[0].Head, every[0].Head[:2], every[0].Head[:len(every[0].Head)-1], "zz"} {
		got, err := l.AtHead(ctx, prefix, 1000)
		its := which(func(r RunRow) bool { return strings.HasPrefix(r.Head, prefix) })
		same("runs at "+prefix, its[:min(len(its), 1000)], append([]RunRow{}, got...), err)
	}
	for _, repo := range names {
		kernels, err := l.Kernels(ctx, repo.ID)
		var seen []string
		for _, r := range every {
			if r.Change.Repo == repo.ID && !slices.Contains(seen, r.Folder) {
				seen = append(seen, r.Folder)
			}
		}
		slices.Sort(seen)
		same("kernels", seen, kernels, err)
		for _, kernel := range kernels {
			its := which(func(r RunRow) bool { return r.Change.Repo == repo.ID && r.Folder == kernel })
			latest, err := l.Latest(ctx, repo.ID, kernel, 7)
			same("latest", its[:min(7, len(its))], latest, err)
			main := slices.DeleteFunc(slices.Clone(its), func(r RunRow) bool {
				return r.Change.Kind != change.Push || r.Extra || r.Outcome != "PASS" && r.Outcome != "DEFER"
			})
			got, err := l.OnMain(ctx, repo.ID, kernel, 5)
			if len(main) > 5 {
				main = main[:5]
			}
			if len(main) == 0 {
				main = nil
			}
			same("on main", main, got, err)
		}
	}
	busy := which(func(r RunRow) bool { return r.Phase == change.Queued || r.Phase == change.Running })
	slices.Reverse(busy)
	got, err := l.Unfinished(ctx)
	same("unfinished", busy, got, err)
	for _, r := range every[:5] {
		got, err := l.Run(ctx, r.Job)
		same("run", r, got, err)
		attempts, err := l.Attempts(ctx, r.Change)
		same("attempts", which(func(x RunRow) bool { return x.Change == r.Change }), attempts, err)
	}
	if _, err := l.Run(ctx, "none"); !IsNotFound(err) {
		t.Errorf("a job that is not there: %v", err)
	}
}
