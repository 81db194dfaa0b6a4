package controller_test

import (
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
	"github.com/kernelgate/kernelgate/bot/sweep"
	"github.com/kernelgate/kernelgate/gates"
)

// nightly is a world whose clock stands still, and whose kernels are swept at two.
func nightly(t *testing.T, opt worldOptions) (*world, *atomic.Int64) {
	clock := &atomic.Int64{}
	clock.Store(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC).UnixNano())
	opt.now = func() time.Time { return time.Unix(0, clock.Load()).UTC() }
	opt.sweeps = []sweep.Schedule{{Repository: "*", At: 2 * time.Hour, Every: 24 * time.Hour}}
	return newWorld(t, opt), clock
}

// decisions is how many sweeps were decided on.
func (w *world) decisions() (n int) {
	w.Helper()
	_, err := w.running.journal.Replay(w.ctx, 0, func(e journal.Event) error {
		if e.Kind == "swept" {
			n++
		}
		return nil
	})
	w.no(err)
	return n
}

// sweeps waits until so many were decided on, so many were measured and everything is done, and returns their runs, newest first.
func (w *world) sweeps(decided, measured int) (all []ledger.RunRow) {
	w.Helper()
	done := func() (all []ledger.RunRow) {
		rows, err := w.running.ledger.Runs(w.ctx, ledger.RunFilter{RepoID: w.repo.ID(), Phase: change.Done})
		w.no(err)
		for _, r := range rows {
			if r.Change.Kind == change.Sweep {
				all = append(all, r)
			}
		}
		return all
	}
	w.poll("the decision on a sweep", func() bool { return w.decisions() >= decided })
	w.poll("what follows from it", func() bool { return len(done()) >= measured })
	w.settle()
	if n := w.decisions(); n != decided {
		w.Errorf("%d sweeps were decided on, want %d", n, decided)
	}
	return done()
}

// Every night the default branch is measured against how it was the last time: once, whatever happens to the bot, for several
// nights that it was away too, and not again where nothing has changed.
func TestSweep(t *testing.T) {
	w, clock := nightly(t, worldOptions{})
	first := w.repo.Head("main")
	if rows := w.sweeps(1, 1); len(rows) != 1 || rows[0].Head != first || rows[0].Runner == "" {
		t.Fatalf("the first sweep: %+v", rows)
	}
	w.no(w.running.stop())
	w.start()
	w.settle()
	if rows := w.sweeps(1, 1); len(rows) != 1 {
		t.Fatalf("after a restart on the same day: %+v", rows)
	}
	_, err := w.repo.Push("main", map[string]string{sourceFile: "// speed 0.8\n"}, "Slower")
	w.no(err)
	w.settle()
	w.no(w.running.stop())
	clock.Add(int64(3 * 24 * time.Hour))
	w.start()
	rows := w.sweeps(2, 2)
	if len(rows) != 2 || rows[0].Head != w.repo.Head("main") || rows[0].Outcome != gates.Defer || rows[0].Reason != gates.ReasonRegression || rows[0].Runner == "" {
		t.Fatalf("after three nights, of which the last counts: %+v", rows)
	}
	s, err := w.running.ledger.Change(w.ctx, rows[0].Change)
	w.no(err)
	if s.Facts.BaseSHA != first {
		t.Errorf("compared with %s, want the commit of the last sweep", s.Facts.BaseSHA)
	}
	clock.Add(int64(13*time.Hour + 59*time.Minute)) // 01:59
	clock.Add(int64(time.Minute))
	if rows := w.sweeps(3, 2); len(rows) != 2 {
		t.Errorf("a commit was swept twice: %+v", rows)
	}
	main, err := w.running.ledger.OnMain(w.ctx, w.repo.ID(), "kernels/scale", 10)
	w.no(err)
	if len(main) != 3 || main[0].Change.Kind != change.Sweep || main[2].Head != first || main[2].Change.Kind != change.Sweep {
		t.Errorf("on the default branch: %+v, want a sweep, a push and a sweep", main)
	}
	if checks := w.repo.Checks(first); len(checks) != 0 {
		t.Errorf("a sweep has checks: %+v", checks)
	}
}

// A bot that is killed after it decided on a sweep, and before anything came of it, carries it out when it is back; its job is
// of the class that goes last.
func TestSweepIsCarriedOut(t *testing.T) {
	w, _ := nightly(t, worldOptions{apart: true, absent: true, retold: true})
	j, err := journal.Open(w.ctx, journal.Options{Dir: filepath.Join(w.dir, "journal")})
	w.no(err)
	_, err = j.Append(w.ctx, "sweeps-1001", 0, "swept", map[string]any{
		"due": time.Date(2026, 5, 4, 2, 0, 0, 0, time.UTC), "repo": "olga/kernels", "branch": "main", "head": w.repo.Head("main"),
	})
	w.no(err)
	w.no(j.Close())
	w.start()
	defer func() { w.no(w.running.stop()) }()
	l, err := w.running.jobs.Lease(w.ctx, "somebody", "cpu")
	w.no(err)
	id, err := change.OfJob(l.ID)
	w.no(err)
	if l.Class != scheduler.Sweep || id.Kind != change.Sweep || id.SHA != w.repo.Head("main") || w.decisions() != 1 {
		t.Errorf("the job is %+v, after %d decisions", l.Job, w.decisions())
	}
	w.no(l.Release(w.ctx, 0))
}
