package ledger

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/store/journal"
)

func TestCrash(t *testing.T) {
	w := newWorld(3).run(200)
	want := built(t, w.events)
	dir := t.TempDir()
	l, _ := openLedger(t, filepath.Join(dir, "ledger.db"))
	j := newMemory(w.events[:100]...)
	follow(t, l, j)
	if err := l.CaughtUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, cut := range []int{101, 130, 170} {
		j.add(w.events[len(j.events):cut]...)
		if err := l.WaitFor(t.Context(), uint64(cut)); err != nil {
			t.Fatal(err)
		}
		after := filepath.Join(dir, fmt.Sprint("after", i, ".db"))
		for _, end := range []string{"", "-wal"} {
			data, err := os.ReadFile(filepath.Join(dir, "ledger.db"+end))
			if err != nil {
				t.Fatal(err)
			}
			if end == "-wal" && i == 1 {
				data = data[:len(data)-100] // the machine went down in the middle of a write
			}
			if err := os.WriteFile(after+end, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		again, log := openLedger(t, after)
		catchUp(t, again, newMemory(w.events...))
		same(t, want, dump(t, again))
		if strings.Contains(log.String(), "rebuilt") {
			t.Errorf("cut %d: a crash is no reason to start over: %s", cut, log.String())
		}
	}
}

// A stopping is a journal that is told to stop in the middle of a replay.
type stopping struct {
	*memory
	after uint64
	stop  func()
}

func (s *stopping) Replay(ctx context.Context, after uint64, apply func(journal.Event) error) (uint64, error) {
	return s.memory.Replay(ctx, after, func(e journal.Event) error {
		if e.Seq == s.after {
			s.stop()
		}
		return apply(e)
	})
}

// What was applied and not written when the bot stopped is applied again.
func TestStopInTheMiddle(t *testing.T) {
	w := newWorld(12).run(200)
	l, _ := openLedger(t, filepath.Join(t.TempDir(), "ledger.db"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := l.Follow(ctx, &stopping{newMemory(w.events...), 100, cancel}); err != nil {
		t.Fatal(err)
	}
	if l.Seq() != 0 {
		t.Fatalf("event %d was written", l.Seq())
	}
	catchUp(t, l, newMemory(w.events...))
	same(t, built(t, w.events), dump(t, l))
}
