package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// leastFree is the default of Config.LeastFree: room for a bundle, what is compiled of it, and a result.
const leastFree = 64 << 20

// disk is what a runner knows about the disk of its state folder. Its fields belong to the goroutine of the loop.
type disk struct {
	need  uint64    // free bytes that the runner needs before it takes a job
	until time.Time // for how long it needs them; later Config.LeastFree is enough, because the next job may be smaller
	after error     // the failure after which the runner takes no jobs; nil as a rule
	low   bool      // it takes none now
}

// restAfter is how long a runner with space waits after a job that did not fit.
const restAfter = 10 * time.Minute

// ofDisk reports whether an error is the fault of this host's disk. No other server and no later attempt helps, and the job
// must not wait for it.
func ofDisk(err error) bool {
	for _, sign := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS} {
		if errors.Is(err, sign) {
			return true
		}
	}
	return false
}

// A diskFault is the reason why a job is returned.
type diskFault struct{ error }

func (e *diskFault) Unwrap() error { return e.error }

// free returns the free space for this user on the disk of the state folder.
func (a *agent) free() (uint64, error) {
	var is syscall.Statfs_t
	if err := syscall.Statfs(a.store.work, &is); err != nil {
		return 0, fmt.Errorf("asking how much space %s has: %w", a.store.work, err)
	}
	return is.Bavail * uint64(is.Bsize), nil
}

// returnJob gives a job back that this host's disk cannot hold. The runner takes the next one when it has more space than now,
// with the files of the job already deleted: otherwise it would take the same job again.
func (a *agent) returnJob(ctx context.Context, l protocol.LeaseResponse, dir string, why error) {
	a.Log.Error("the disk of the state folder fails; the job is returned for a different runner", "job", l.Job, "state", a.StateDir, "error", why)
	if err := os.RemoveAll(dir); err != nil {
		a.Log.Warn("the folder of the job could not be removed", "job", l.Job, "error", err)
	}
	a.disk.after = why
	if free, err := a.free(); err == nil {
		a.disk.need, a.disk.until = free+a.LeastFree, a.Now().Add(restAfter)
	}
	late, cancel := a.outlive(ctx)
	defer cancel()
	if err := a.client.release(late, l); err != nil {
		a.Log.Warn("the job could not be returned; it is redelivered when its lease expires", "job", l.Job, "error", err)
	}
}

// diskTrouble returns why the disk cannot hold a job, or "".
func (a *agent) diskTrouble() string {
	free, err := a.free()
	if err != nil {
		return err.Error()
	}
	need := a.LeastFree
	if a.Now().Before(a.disk.until) {
		need = max(need, a.disk.need)
	}
	if free < need {
		text := fmt.Sprintf("the disk of the state folder has %d MiB left, and a job needs %d MiB: free some space there", free>>20, need>>20)
		if a.disk.after != nil {
			text += fmt.Sprintf(" (the last job ended with: %v)", a.disk.after)
		}
		return text
	}
	if a.disk.after == nil {
		return ""
	}
	// A disk may have space and fail nevertheless.
	file := filepath.Join(a.store.work, "write-test")
	err = os.WriteFile(file, make([]byte, 1<<20), 0o600)
	if err = errors.Join(err, os.Remove(file)); err != nil {
		return fmt.Sprintf("the disk of the state folder fails: %v", err)
	}
	return ""
}

// awaitDisk looks at the disk before a job is asked for. While a job would not fit, the runner leaves the fleet: it tells the
// bot why, if it can test itself to return, and asks for no job otherwise. It reports whether a job may be asked for.
func (a *agent) awaitDisk(ctx context.Context) (bool, error) {
	why := a.diskTrouble()
	if why == "" {
		if !a.disk.low {
			return true, nil
		}
		a.Log.Info("the disk of the state folder has space again; the runner takes jobs")
		a.disk = disk{}
		if a.SelfTest == nil {
			return true, nil
		}
		return true, a.test(ctx, "the disk has space again")
	}
	if !a.disk.low {
		a.Log.Error("the runner takes no jobs", "reason", why)
	}
	a.disk.low = true
	if a.SelfTest != nil {
		a.fit.mu.Lock()
		defer a.fit.mu.Unlock()
		a.fit.said.At, a.fit.said.Unfit = a.Now().UTC(), why
		return true, nil // the bot learns it, and gives no job
	}
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-a.After(lookEvery):
	}
	return false, nil
}

// lowWithout reports whether the disk would be low without the files of a job, too. If it would not, the job has filled the
// disk: that is the job's fault, and the next runner must not have to find it out.
func (a *agent) lowWithout(dir string) bool {
	free, err := a.free()
	if err != nil {
		return true
	}
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error { // what cannot be read does not count
		if err != nil {
			return fs.SkipDir
		}
		if info, err := d.Info(); err == nil {
			free += uint64(info.Sys().(*syscall.Stat_t).Blocks) * 512
		}
		return nil
	})
	return free < a.LeastFree
}

// starved returns a diskFault if a job failed because this host's disk is full of other files. Compilers and the sandbox
// report a full disk in many ways.
func (a *agent) starved(fault, dir string) error {
	if fault == "" || !a.lowWithout(dir) {
		return nil
	}
	return &diskFault{errors.New(fault)}
}

// onlyFault is a result that says no more than why there is none.
func onlyFault(found runners.Measured, fault string) runners.Measured {
	e := found.Evidence
	return runners.Measured{Open: found.Open, Evidence: &gates.Evidence{
		Schema: e.Schema, Kernel: e.Kernel, Mode: e.Mode, Provenance: e.Provenance, Change: e.Change, Device: e.Device, Fault: fault,
	}}
}
