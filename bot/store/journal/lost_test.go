package journal

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A stream that the server cannot read is not created again: the files on the disk stay as they are, and the error says what to do.
func TestLostStreamIsRefused(t *testing.T) {
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
	if err := os.Rename(filepath.Join(stream, "meta.inf"), filepath.Join(stream, "meta.aside")); err != nil {
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
		t.Errorf("after the repair: %+v, %v", last, err)
	}
}

// The next start completes a journal whose first start was interrupted, wherever that was.
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
