package ledger

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A full disk ends nobody: the ledger says that it is behind, and catches up when there is space again, without a new start.
func TestFullDisk(t *testing.T) {
	disk := filepath.Join(t.TempDir(), "disk")
	if err := errors.Join(os.Mkdir(disk, 0o700), syscall.Mount("small", disk, "tmpfs", 0, "size=8m")); err != nil {
		t.Skipf("mounting a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	w := newWorld(5).run(3000)
	l, log := openLedger(t, filepath.Join(disk, "ledger.db"))
	j := newMemory(w.events[:50]...)
	stop := follow(t, l, j)
	if err := l.CaughtUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, bytes.Repeat([]byte("full"), 4<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	j.add(w.events[50:]...)
	for !strings.Contains(log.String(), "cannot be written") {
		select {
		case <-t.Context().Done():
			t.Fatal(log.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if l.CaughtUp(soon) == nil {
		t.Error("the ledger has caught up, on a full disk")
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := l.WaitFor(t.Context(), uint64(len(w.events))); err != nil {
		t.Fatal(err)
	}
	stop()
	same(t, built(t, w.events), dump(t, l))
}
