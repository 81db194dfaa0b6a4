package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/store/journal"
)

// A log is what was logged.
type log struct {
	mu sync.Mutex
	strings.Builder
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Builder.Write(p)
}

// String is everything that was logged until now.
func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Builder.String()
}

func (l *log) says(t *testing.T, text string) {
	t.Helper()
	if all := l.String(); !strings.Contains(all, text) {
		t.Errorf("the log does not say %q, but:\n%s", text, all)
	}
}

func openLedger(t testing.TB, file string) (*Ledger, *log) {
	t.Helper()
	log := &log{}
	l, err := Open(t.Context(), file, Options{Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, log
}

// follow follows until stop is called.
func follow(t testing.TB, l *Ledger, j Journal) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Follow(ctx, j) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("following: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

// catchUp brings in what the journal has.
func catchUp(t testing.TB, l *Ledger, j Journal) {
	t.Helper()
	stop := follow(t, l, j)
	if err := l.CaughtUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop()
}

// dump is everything in the ledger.
func dump(t testing.TB, l *Ledger) string {
	t.Helper()
	var out strings.Builder
	for _, table := range append(tables[:], "progress") {
		rows, err := l.store.Load().read.QueryContext(t.Context(), "SELECT * FROM "+table+" ORDER BY 1, 2")
		if err != nil {
			t.Fatal(err)
		}
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			row, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
			for i := range row {
				into[i] = &row[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(&out, table, row)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// built is the dump of a ledger that was made from the events at one go.
func built(t testing.TB, events []journal.Event) string {
	t.Helper()
	l, _ := openLedger(t, filepath.Join(t.TempDir(), "ledger.db"))
	catchUp(t, l, newMemory(events...))
	return dump(t, l)
}

func same(t testing.TB, want, got string) {
	t.Helper()
	if want != got {
		t.Fatalf("the ledgers differ (-want +got):\n%.4000s", cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")))
	}
}

func TestRebuildEqualsIncremental(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			w := newWorld(seed).run(120)
			want := built(t, w.events)
			file := filepath.Join(t.TempDir(), "a file?with#odd%20name.db")
			for cut := 0; cut < len(w.events); {
				cut = min(cut+1+w.r.IntN(60), len(w.events))
				l, _ := openLedger(t, file)
				j := newMemory(w.events[:max(0, cut-5)]...)
				stop := follow(t, l, j)
				for _, e := range w.events[max(0, cut-5):cut] {
					if err := l.CaughtUp(t.Context()); err != nil {
						t.Fatal(err)
					}
					j.add(e)
					if err := l.WaitFor(t.Context(), e.Seq); err != nil {
						t.Fatal(err)
					}
				}
				stop()
				if w.r.IntN(2) == 0 { // otherwise it is left open, as by a crash
					if err := l.Close(); err != nil {
						t.Fatal(err)
					}
				}
			}
			l, _ := openLedger(t, file)
			same(t, want, dump(t, l))
			catchUp(t, l, newMemory(w.events...))
			same(t, want, dump(t, l))
		})
	}
}

// The ledger's own states are those that the events add up to.
func TestStates(t *testing.T) {
	w := newWorld(11).run(200)
	l, _ := openLedger(t, filepath.Join(t.TempDir(), "ledger.db"))
	l.cache = newCache(2)
	catchUp(t, l, newMemory(w.events...))
	for _, want := range w.changes {
		got, err := l.Change(t.Context(), want.ID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(asJSON(t, want), asJSON(t, got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", want.ID, diff)
		}
		for _, r := range append(got.Runs, got.Past...) {
			rows, err := l.Runs(t.Context(), RunFilter{Change: want.ID, Folder: r.Folder, Limit: 1000})
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, row := range rows {
				if row.Job == r.Job {
					found = row.Phase == r.Phase && row.Ended.Equal(r.Ended) && (r.Result == nil || cmp.Equal(row.P50, r.Result.P50))
				}
			}
			if !found {
				t.Errorf("%s: run %s is missing or different", want.ID, r.Job)
			}
		}
	}
	// What the states have forgotten was ended all the same.
	for _, phase := range []change.Phase{change.Queued, change.Running} {
		rows, err := l.Runs(t.Context(), RunFilter{Phase: phase, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			s, _ := l.Change(t.Context(), row.Change)
			if r, ok := s.Run(row.Job); !ok || r.Phase != phase {
				t.Errorf("job %s is said to be %s", row.Job, phase)
			}
		}
	}
}

// A journal that lacks what the ledger has is refused. Whoever accepts the loss gets a ledger of what is left, and keeps the old one.
func TestOtherJournal(t *testing.T) {
	one, two := newWorld(4).run(120), newWorld(5).run(120)
	for name, events := range map[string][]journal.Event{
		"wiped": nil, "truncated": one.events[:79], "wiped and begun again": two.events[:40], "grown past": two.events,
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "ledger.db")
			l, _ := openLedger(t, file)
			catchUp(t, l, newMemory(one.events[:80]...))
			was := dump(t, l)
			for range 2 { // a restart changes nothing
				l.Close()
				l, _ = openLedger(t, file)
				for what, err := range map[string]error{"Verify": l.Verify(t.Context(), newMemory(events...)), "Follow": l.Follow(t.Context(), newMemory(events...))} {
					if !errors.Is(err, ErrLost) {
						t.Errorf("%s: %v", what, err)
					}
				}
				same(t, was, dump(t, l))
			}
			l.Close()
			l, err := Open(t.Context(), file, Options{AcceptLoss: true})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if err := l.Verify(t.Context(), newMemory(events...)); !errors.Is(err, ErrLost) {
				t.Errorf("Verify: %v", err) // the caller decides
			}
			catchUp(t, l, newMemory(events...))
			same(t, built(t, events), dump(t, l))
			kept, err := filepath.Glob(file + ".lost-*Z")
			if err != nil || len(kept) != 1 {
				t.Fatalf("kept: %v, %v", kept, err)
			}
			old, _ := openLedger(t, kept[0])
			same(t, was, dump(t, old))
		})
	}
}

func TestUnknownEvent(t *testing.T) {
	w := newWorld(6).run(50)
	events := append(w.events[:50:50],
		journal.Event{Seq: 51, Run: "runner-heartbeats", Kind: "beat", At: epoch, Data: []byte("1")},
		journal.Event{Seq: 52, Run: "pr-1-1", Kind: "exploded", At: epoch, Data: []byte("{}")})
	l, _ := openLedger(t, filepath.Join(t.TempDir(), "ledger.db"))
	err := l.Follow(t.Context(), newMemory(events...))
	if err == nil || !strings.Contains(err.Error(), "newer kernelgate") {
		t.Errorf("following: %v", err)
	}
	if err := l.WaitFor(t.Context(), 51); err != nil {
		t.Errorf("what came before: %v", err)
	}
	if err := l.WaitFor(t.Context(), 52); err == nil || !strings.Contains(err.Error(), "newer kernelgate") {
		t.Errorf("waiting for what cannot be read: %v", err)
	}
}

func TestWaiting(t *testing.T) {
	l, _ := openLedger(t, filepath.Join(t.TempDir(), "ledger.db"))
	j := newMemory()
	stop := follow(t, l, j)
	if err := l.CaughtUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Follow(t.Context(), j); err == nil {
		t.Error("two follow at once")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := l.WaitFor(ctx, 1); err == nil {
		t.Error("the first event is there before it was written")
	}
	j.add(newWorld(1).run(1).events...)
	if err := l.WaitFor(t.Context(), 1); err != nil || l.Seq() != 1 {
		t.Errorf("waiting for the first event: %v, at %d", err, l.Seq())
	}
	stop()
	l.Close()
	if err := l.WaitFor(t.Context(), 2); err == nil {
		t.Error("a closed ledger has an event that was never written")
	}
}

// The journal as it is, with its own sequences and times.
func TestRealJournal(t *testing.T) {
	j, err := journal.Open(t.Context(), journal.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	file := filepath.Join(t.TempDir(), "ledger.db")
	write := func(number int) (change.ID, uint64) {
		id := change.ID{Kind: change.Pull, Repo: 1, Number: number}
		seq, err := j.Append(t.Context(), id.String(), 0, "seen", change.Seen{Facts: change.Facts{Repo: "o/r", Open: true, Head: "h"}})
		if err != nil {
			t.Fatal(err)
		}
		return id, seq
	}
	write(1)
	l, _ := openLedger(t, file)
	catchUp(t, l, j)
	l.Close()

	l, log := openLedger(t, file)
	stop := follow(t, l, j)
	id, seq := write(2)
	if err := l.WaitFor(t.Context(), seq); err != nil {
		t.Fatal(err)
	}
	if s, err := l.Change(t.Context(), id); err != nil || s.Seq != seq || s.Facts.Repo != "o/r" {
		t.Errorf("the change is %+v, %v", s, err)
	}
	stop()
	if log.String() != "" {
		t.Errorf("the log says %s", log.String())
	}
}
