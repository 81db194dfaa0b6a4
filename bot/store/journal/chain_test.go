package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const eventBlock = "jetstream/$G/streams/EVENTS/msgs/1.blk"

// storied makes a journal with five events of two runs: events 1, 3 and 5 of a, 2 and 4 of b.
func storied(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "journal")
	j := open(t, Options{Dir: dir})
	last := map[string]uint64{}
	for i, run := range []string{"a", "b", "a", "b", "a"} {
		seq, err := j.Append(testContext(t), run, last[run], "kind", fmt.Sprintf("payload-%d", i+1))
		if err != nil {
			t.Fatal(err)
		}
		last[run] = seq
	}
	if r, err := j.Verify(testContext(t)); err != nil || r.Err() != nil || r.Events != 5 || r.Last != 5 {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// flip damages an event on the disk.
func flip(t *testing.T, dir string, seq int) {
	t.Helper()
	file := filepath.Join(dir, eventBlock)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(data, fmt.Appendf(nil, "payload-%d", seq))
	if at < 0 {
		t.Fatalf("event %d is not in %s", seq, file)
	}
	for i := range 8 {
		data[at+i] ^= 0xff
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Flipped bytes are noticed by every reader and by Verify, wherever they are. Once the loss is accepted, readers leave the
// event out, and its run can be written again.
func TestFlippedBytes(t *testing.T) {
	t.Parallel()
	for seq := 1; seq <= 5; seq++ {
		t.Run(fmt.Sprint("event ", seq), func(t *testing.T) {
			t.Parallel()
			ctx := testContext(t)
			dir := storied(t)
			flip(t, dir, seq)
			j := open(t, Options{Dir: dir, answerIn: 1e9})
			count := 0
			apply := func(Event) error { count++; return nil }
			damaged := fmt.Sprintf("event %d ", seq)
			if _, err := j.Replay(ctx, 0, apply); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), damaged) {
				t.Errorf("Replay after %d events: %v", count, err)
			}
			r, err := j.Verify(ctx)
			if err != nil || !errors.Is(r.Err(), ErrDamaged) || !strings.Contains(r.Err().Error(), damaged) {
				t.Errorf("Verify: %+v, %v", r, err)
			}
			if _, err := j.Backup(ctx, new(bytes.Buffer)); !errors.Is(err, ErrDamaged) {
				t.Errorf("Backup: %v", err)
			}
			if lost, err := j.AcceptLosses(ctx); err != nil || !lost {
				t.Fatal(lost, err)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}

			j = open(t, Options{Dir: dir, answerIn: 1e9})
			if lost, err := j.AcceptLosses(ctx); err != nil || lost {
				t.Errorf("the accepted loss is found again: %v, %v", lost, err)
			}
			for _, run := range []string{"a", "b"} {
				last, err := j.ReplayRun(ctx, run, func(Event) error { return nil })
				if err != nil {
					t.Fatalf("run %s: %v", run, err)
				}
				if _, err := j.Append(ctx, run, last, "kind", "new"); err != nil {
					t.Fatalf("run %s after %d: %v", run, last, err)
				}
				if _, err := j.ReplayRun(ctx, run, func(Event) error { return nil }); err != nil {
					t.Errorf("run %s: %v", run, err)
				}
			}
			count = 0
			if last, err := j.Replay(ctx, 0, apply); err != nil || last != 7 || count != 6 {
				t.Errorf("%d events up to %d: %v", count, last, err)
			}
			if r, err := j.Verify(ctx); err != nil || r.Err() != nil || r.Events != 6 {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// A server without its index cuts a damaged block off. The events after the damage are gone, and the file beside the journal
// tells.
func TestCutOffEvents(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	dir := storied(t)
	flip(t, dir, 3)
	if err := os.Remove(filepath.Join(dir, "jetstream/$G/streams/EVENTS/msgs/index.db")); err != nil {
		t.Fatal(err)
	}
	j := open(t, Options{Dir: dir})
	err := j.CheckEnd(ctx)
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "event 5 is missing") {
		t.Fatal(err)
	}
	if lost, err := j.AcceptLosses(ctx); err != nil || !lost {
		t.Error(lost, err)
	}
	if err := j.CheckEnd(ctx); err != nil {
		t.Error(err)
	}
}

// An event that was exchanged for a different one, with a server that does not notice.
func TestForgedEvents(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	for name, forge := range map[string]func(m *stored){
		"data":   func(m *stored) { m.data = []byte(`"other"`) },
		"kind":   func(m *stored) { m.header.Set(headerKind, "other") },
		"time":   func(m *stored) { m.header.Set(headerAt, "2026-01-01T00:00:00Z") },
		"run":    func(m *stored) { m.subject = "events.b" },
		"linked": func(m *stored) { m.header.Set(headerChain, "."+hashOf("", m.subject, m.header, m.data)) },
		"none":   func(m *stored) { m.header.Del(headerChain) },
	} {
		t.Run(name, func(t *testing.T) {
			j := open(t, Options{})
			var seq uint64
			for i := range 3 {
				var err error
				if seq, err = j.Append(ctx, "a", seq, "kind", i); err != nil {
					t.Fatal(err)
				}
			}
			list, _, err := j.page(ctx, "EVENTS", "", 1, 10)
			if err != nil || len(list) != 3 {
				t.Fatal(list, err)
			}
			forge(&list[1])
			c := j.newChain(1)
			c.whole, c.tails = true, map[string]string{}
			var found []Finding
			for _, m := range list {
				found = append(found, c.check(m)...)
			}
			if len(found) == 0 || found[0].Seq != 2 {
				t.Errorf("found %v", found)
			}
			if _, err := j.applyAll(ctx, j.newChain(0), list[1:2], 1, func(Event) error { return nil }); name != "linked" && !errors.Is(err, ErrDamaged) {
				t.Errorf("a reader of one event: %v", err)
			}
		})
	}
}

// Writers of many runs, each of which forgets and finds the last hash, make chains that verify.
func TestChainsOfManyRuns(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	j := open(t, Options{})
	done := make(chan error, 8)
	for g := range 8 {
		go func() {
			var seq uint64
			for i := range 20 {
				run := fmt.Sprintf("run-%d", g)
				if i%3 == 0 {
					j.tails.Remove(run)
				}
				var err error
				if seq, err = j.Append(ctx, run, seq, "kind", i); err != nil {
					done <- err
					return
				}
				if _, err := j.Append(ctx, run, seq-1, "kind", "stale"); seq > 1 && !errors.Is(err, ErrConflict) {
					done <- fmt.Errorf("a stale writer: %w", err)
					return
				}
			}
			done <- nil
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if r, err := j.Verify(ctx); err != nil || r.Err() != nil || r.Events != 160 {
		t.Errorf("%+v, %v", r, err)
	}
	for g := range 8 {
		if _, err := j.ReplayRun(context.WithoutCancel(ctx), fmt.Sprintf("run-%d", g), func(Event) error { return nil }); err != nil {
			t.Error(err)
		}
	}
}
