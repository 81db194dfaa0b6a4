package ledger

import (
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkRebuild makes a ledger of 100,000 events about some 5,000 changes, and
// then opens it as it is: warm/rebuild says what a restart costs.
func BenchmarkRebuild(b *testing.B) {
	w := newWorld(1).run(100_000)
	j := newMemory(w.events...)
	var rebuild, warm time.Duration
	b.ResetTimer()
	for b.Loop() {
		file := filepath.Join(b.TempDir(), "ledger.db")
		began := time.Now()
		l, _ := openLedger(b, file)
		catchUp(b, l, j)
		rebuild += time.Since(began)
		l.Close()

		began = time.Now()
		l, _ = openLedger(b, file)
		catchUp(b, l, j)
		if _, err := l.Unsettled(b.Context()); err != nil {
			b.Fatal(err)
		}
		warm += time.Since(began)
		l.Close()
	}
	b.ReportMetric(float64(len(w.events)*b.N)/rebuild.Seconds(), "events/s")
	b.ReportMetric(float64(len(w.changes)), "changes")
	b.ReportMetric(float64(warm.Milliseconds())/float64(b.N), "warm-ms")
	b.ReportMetric(warm.Seconds()/rebuild.Seconds(), "warm/rebuild")
}

// BenchmarkQueries asks a ledger of 100,000 events.
func BenchmarkQueries(b *testing.B) {
	w := newWorld(1).run(100_000)
	l, _ := openLedger(b, filepath.Join(b.TempDir(), "ledger.db"))
	catchUp(b, l, newMemory(w.events...))
	ctx, last := b.Context(), w.changes[len(w.changes)-1]
	for name, ask := range map[string]func() error{
		"Unsettled":   func() error { _, err := l.Unsettled(ctx); return err },
		"ByHead":      func() error { _, err := l.ByHead(ctx, last.ID.Repo, last.Facts.Head); return err },
		"Change":      func() error { _, err := l.Change(ctx, last.ID); return err },
		"OpenPulls":   func() error { _, err := l.OpenPulls(ctx, 1); return err },
		"TriedBefore": func() error { _, err := l.TriedBefore(ctx, 1, "kernels/gemm", last.ID, 5); return err },
		"OnMain":      func() error { _, err := l.OnMain(ctx, 1, "kernels/gemm", 100); return err },
		"Runs":        func() error { _, err := l.Runs(ctx, RunFilter{RepoID: 1, Folder: "kernels/gemm"}); return err },
		"RepoNames":   func() error { _, err := l.RepoNames(ctx); return err },
		"Counts":      func() error { _, err := l.Counts(ctx); return err },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := ask(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkLive is the time from an event's writing to its being in the ledger.
func BenchmarkLive(b *testing.B) {
	w := newWorld(2).run(5_000)
	j := newMemory()
	l, _ := openLedger(b, filepath.Join(b.TempDir(), "ledger.db"))
	follow(b, l, j)
	if err := l.CaughtUp(b.Context()); err != nil {
		b.Fatal(err)
	}
	n := 0
	for b.Loop() {
		if n == len(w.events) {
			w.run(n + 5_000)
		}
		j.add(w.events[n])
		n++
		if err := l.WaitFor(b.Context(), uint64(n)); err != nil {
			b.Fatal(err)
		}
	}
}
