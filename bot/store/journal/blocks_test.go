package journal

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// The server keeps messages in blocks. One that is killed when it has made a new block, and before that has a message, must
// find all events when it starts again, and those that it writes then. That is so of a journal of before, too, whose older
// blocks are compressed.
func TestKilledBetweenBlocks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx := testContext(t)
	msgs := filepath.Join(dir, "jetstream", "$G", "streams", "EVENTS", "msgs")
	blocks := func() (all []string) {
		found, err := filepath.Glob(filepath.Join(msgs, "*.blk"))
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(found, func(a, b string) int { return len(a) - len(b) })
		return found
	}
	text := strings.Repeat("a kernel that is faster than the one before it ", 2000)
	written := uint64(0)
	write := func(j *Journal) {
		t.Helper()
		seq, err := j.Append(ctx, "run", written, "kind", text)
		if err != nil {
			t.Fatal(err)
		}
		written = seq
	}
	session := func(do func(*Journal)) {
		t.Helper()
		j, err := Open(ctx, Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		do(j)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	session(func(j *Journal) { // as it was written before: compressed
		cfg := j.events.CachedInfo().Config
		cfg.Compression = jetstream.S2Compression
		if _, err := j.js.UpdateStream(ctx, cfg); err != nil {
			t.Fatal(err)
		}
		for len(blocks()) < 2 {
			write(j)
		}
	})
	session(func(j *Journal) {
		for len(blocks()) < 3 {
			write(j)
		}
	})
	// The kill: the newest block is there, and its first message, which nobody was told of, is not.
	all := blocks()
	if err := errors.Join(os.Truncate(all[len(all)-1], 0), os.RemoveAll(filepath.Join(msgs, "index.db"))); err != nil {
		t.Fatal(err)
	}
	written--
	session(func(j *Journal) { write(j) })
	if err := os.RemoveAll(filepath.Join(msgs, "index.db")); err != nil {
		t.Fatal(err)
	}
	session(func(j *Journal) {
		seen := uint64(0)
		last, err := j.Replay(ctx, 0, func(e Event) error {
			if seen++; e.Seq != seen {
				t.Errorf("event %d is the %dth", e.Seq, seen)
			}
			return nil
		})
		if err != nil || last != written {
			t.Errorf("read up to %d of %d: %v", last, written, err)
		}
	})
}

// A stream that the server cannot read is not made anew: what is on the disk stays there, and whoever starts the bot is told.
func TestWhatIsLostIsTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx := testContext(t)
	j := open(t, Options{Dir: dir})
	if _, err := j.Append(ctx, "run", 0, "kind", 1); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	stream := filepath.Join(dir, "jetstream", "$G", "streams", "EVENTS")
	block := filepath.Join(stream, "msgs", "1.blk")
	was, err := os.ReadFile(block)
	if err != nil || len(was) == 0 {
		t.Fatalf("%d bytes of events: %v", len(was), err)
	}
	refused := func(says string) {
		t.Helper()
		if j, err := Open(ctx, Options{Dir: dir}); err == nil {
			t.Error("opened", j.Close())
		} else if !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "restore the journal from a backup") {
			t.Errorf("%v, want %q", err, says)
		}
	}
	if err := os.WriteFile(block, append([]byte("cmp\x01\x20"), was...), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("unpack the newest events")
	if err := errors.Join(os.WriteFile(block, was, 0o600), os.Rename(filepath.Join(stream, "meta.inf"), filepath.Join(stream, "meta.aside"))); err != nil {
		t.Fatal(err)
	}
	refused("has lost EVENTS")
	if is, err := os.ReadFile(block); err != nil || !slices.Equal(is, was) {
		t.Errorf("the events on the disk were touched: %v", err)
	}
	if err := os.Rename(filepath.Join(stream, "meta.aside"), filepath.Join(stream, "meta.inf")); err != nil {
		t.Fatal(err)
	}
	if last, err := open(t, Options{Dir: dir}).Last(ctx, "run"); err != nil || last.Seq != 1 {
		t.Errorf("after it was mended: %+v, %v", last, err)
	}
}

// A journal whose first start was cut short is completed by the next, wherever that was.
func TestFirstStartCutShort(t *testing.T) {
	t.Parallel()
	url := external(t).ClientURL()
	j := open(t, Options{URL: url})
	for i, name := range slices.Backward(order) {
		if err := j.js.DeleteStream(testContext(t), name); err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			open(t, Options{URL: url})
			for _, made := range slices.Backward(order[i+1:]) {
				if err := j.js.DeleteStream(testContext(t), made); err != nil {
					t.Fatal(err)
				}
			}
			if err := j.js.DeleteStream(testContext(t), name); err != nil {
				t.Fatal(err)
			}
		}
	}
}
