package agent

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/runners/protocol"
)

// A runner whose disk is full returns its job at once, leaves the fleet and says why. When the disk has space again it tests
// itself and takes jobs, without a restart.
func TestFullDisk(t *testing.T) {
	state := t.TempDir()
	if err := syscall.Mount("small", state, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("mounting a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(state, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	for _, tests := range []bool{true, false} {
		t.Run(fmt.Sprintf("tests itself: %v", tests), func(t *testing.T) {
			f := newFake(t)
			c := f.config()
			c.StateDir, c.LeastFree = state, 1<<10
			h := &host{now: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)}
			if tests {
				h.on(&c)
			}
			ballast := filepath.Join(state, "ballast")
			stop, _ := f.run(c)
			next(t, f.asked, "the first question")
			if err := os.WriteFile(ballast, bytes.Repeat([]byte("full"), 2<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("the disk is not full: %v", err)
			}
			f.hand("job", 1)
			if got := next(t, f.released, "the job's return"); got != "job" {
				t.Errorf("%s was returned", got)
			}
			before := 0
			if tests {
				if ask := next(t, f.asked, "a question without space"); ask.Health == nil || !strings.Contains(ask.Health.Unfit, "disk of the state folder") || !strings.Contains(ask.Health.Unfit, "no space left") {
					t.Errorf("it asks with %+v", ask.Health)
				}
				before, _ = h.counts()
				f.jobs <- protocol.LeaseResponse{Test: "in quarantine"} // no self-test can pass now
				next(t, f.asked, "a question in quarantine")
				if now, _ := h.counts(); now != before {
					t.Error("it tests itself on a full disk")
				}
			}
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
			if tests {
				f.jobs <- protocol.LeaseResponse{}
			}
			if ask := next(t, f.asked, "a question with space"); tests && (ask.Health.Unfit != "" || !ask.Health.Test.Passed) {
				t.Errorf("it asks with %+v", ask.Health)
			}
			if now, _ := h.counts(); tests && now != before+1 {
				t.Errorf("%d self-tests", now-before)
			}
			f.hand("job", 2)
			if r, e := f.result(); r.Token != 2 || e.Fault != "" {
				t.Errorf("token %d, fault %q", r.Token, e.Fault)
			}
			f.answer("lease", http.StatusNoContent)
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}
