package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// smallDisk mounts a disk of 4 MiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("small", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("mounting a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// A job that fills the disk itself is judged as the fault that it is, and the runner goes on: otherwise one pull request could
// send every runner out of the fleet.
func TestJobFillsTheDisk(t *testing.T) {
	state := smallDisk(t)
	f := newFake(t)
	c := f.config()
	c.StateDir, c.LeastFree = state, 1<<20
	fill := func(scratch string) error {
		return os.WriteFile(filepath.Join(scratch, "large"), bytes.Repeat([]byte("full"), 2<<20), 0o600)
	}
	for i, measure := range []func(context.Context, runners.Job, string, runners.Progress) (runners.Measured, error){
		func(_ context.Context, _ runners.Job, scratch string, _ runners.Progress) (runners.Measured, error) {
			return runners.Measured{}, fmt.Errorf("building: %w", fill(scratch))
		},
		func(_ context.Context, job runners.Job, scratch string, _ runners.Progress) (runners.Measured, error) {
			e := found(job)
			e.Fault = fmt.Sprint("the compiler failed: ", fill(scratch))
			return runners.Measured{Evidence: e}, nil
		},
		func(_ context.Context, job runners.Job, scratch string, _ runners.Progress) (runners.Measured, error) {
			_ = fill(scratch) // it does not notice
			return runners.Measured{Evidence: found(job), BuildLog: strings.Repeat("log", 1000)}, nil
		},
	} {
		c.Measure = measure
		stop, _ := f.run(c)
		f.hand("job", uint64(i+1))
		if e := f.resultOf(uint64(i + 1)); !strings.Contains(e.Fault, "no space left") {
			t.Errorf("%d: fault %q", i, e.Fault)
		}
		c.Measure = quick
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
	if len(f.released) > 0 {
		t.Errorf("%d jobs were returned", len(f.released))
	}
	stop, _ := f.run(c)
	f.hand("job", 9)
	if e := f.resultOf(9); e.Fault != "" {
		t.Errorf("afterwards: fault %q", e.Fault)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// A runner whose disk is full returns its job at once, leaves the fleet and says why. When the disk has space again it tests
// itself and takes jobs, without a restart.
func TestFullDisk(t *testing.T) {
	state := smallDisk(t)
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
