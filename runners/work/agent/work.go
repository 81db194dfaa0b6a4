package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/bundle"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// work takes one job from its bundle to a result that the server has accepted or no longer wants.
func (a *agent) work(ctx context.Context, l protocol.LeaseResponse) error {
	log := a.Log.With("job", l.Job, "token", l.Token, "kernel", l.Kernel)
	log.Info("job begins")
	dir := filepath.Join(a.store.work, fmt.Sprintf("%d-%s", l.Token, l.Job))
	defer os.RemoveAll(dir)
	h := a.hold(ctx, l)
	defer h.stop()
	found, err := a.measure(h, l, dir)
	var broken *diskFault
	switch cause := context.Cause(h.ctx); {
	case errors.Is(cause, ErrRefused):
		return cause
	case errors.Is(cause, errLost), errors.Is(cause, errCancelled):
		log.Info("job dropped", "reason", cause)
		return nil
	case errors.As(err, &broken):
		h.stop()
		a.returnJob(ctx, l, dir, broken.error)
		return ctx.Err()
	case err != nil: // ctx ended
		late, cancel := a.outlive(ctx)
		defer cancel()
		if err := a.client.release(late, l); err != nil {
			log.Warn("the job could not be returned; it is redelivered when its lease expires", "error", err)
		}
		return ctx.Err()
	}
	kept, err := a.store.keep(l, found)
	if ofDisk(err) && !a.lowWithout(dir) {
		fault := fmt.Sprintf("the job filled the disk of the runner: %v (write less, or give the runner a larger disk)", err)
		if err = os.RemoveAll(dir); err == nil {
			kept, err = a.store.keep(l, onlyFault(found, fault))
		}
	}
	if ofDisk(err) {
		h.stop()
		a.returnJob(ctx, l, dir, fmt.Errorf("keeping the result: %w", err))
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("keeping the result of job %s: %w (is the disk full?)", l.Job, err)
	}
	log.Info("job measured", "fault", found.Evidence.Fault)
	return a.deliver(ctx, kept)
}

// heldLease is a job for which the runner sends heartbeats.
type heldLease struct {
	// ctx ends when the job no longer belongs to this runner, with the reason as its cause.
	ctx  context.Context
	log  *runners.Log
	end  func(cause error)
	stop func()

	share func(file string) // sends a growing file to the server at intervals
}

// hold sends heartbeats until it is stopped, also while the result is being delivered. A server
// that is away does not end the job: it may return in time, and the server decides.
func (a *agent) hold(ctx context.Context, l protocol.LeaseResponse) *heldLease {
	ctx, cancel := context.WithCancelCause(ctx)
	h := &heldLease{ctx: ctx, end: cancel, log: &runners.Log{Now: a.Now}}
	var ended sync.WaitGroup
	h.stop = func() { cancel(context.Canceled); ended.Wait() }
	every := time.Duration(l.Heartbeat * float64(time.Second))
	ended.Go(func() { a.keepConnection(ctx, l, every) })
	h.share = func(file string) { ended.Go(func() { a.share(ctx, l, file) }) }
	ended.Go(func() {
		known := 0 // how much of the log the server has
		for silent := false; ; {
			select {
			case <-ctx.Done():
				return
			case <-a.After(every):
			}
			has, err := a.client.beat(ctx, l, h.log, known, a.news())
			if gone(err) {
				cancel(err)
				return
			}
			if err != nil && ctx.Err() == nil && !silent {
				a.Log.Warn("the server cannot be reached; the job continues", "job", l.Job, "error", err)
			}
			if silent = err != nil; !silent {
				known = has
			}
		}
	})
	return h
}

// shareEvery is how often a growing file is sent.
const shareEvery = 10 * time.Second

// share sends a growing file at intervals, for people who watch the search. If a transfer fails, nothing is
// lost: the result of the job has the whole file.
func (a *agent) share(ctx context.Context, l protocol.LeaseResponse, file string) {
	for sent := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-a.After(shareEvery):
		}
		data, err := os.ReadFile(file)
		if err != nil || len(data) <= sent || len(data) > protocol.MaxArtifact {
			continue
		}
		if err := a.client.artifact(ctx, l.Job, l.Token, filepath.Base(file), data); err != nil {
			a.Log.Debug("a growing file could not be sent", "job", l.Job, "file", filepath.Base(file), "error", err)
			continue
		}
		sent = len(data)
	}
}

// keepConnection lets the server notice at once when this process ends, instead of by its silence.
// It returns if the server does not support it. Whether the job still belongs to this runner is
// decided by the heartbeats.
func (a *agent) keepConnection(ctx context.Context, l protocol.LeaseResponse, every time.Duration) {
	for ctx.Err() == nil {
		asked := a.Now()
		if err := a.client.hold(ctx, l); final(err) {
			return
		}
		if a.Now().Sub(asked) >= minPoll {
			continue
		}
		select {
		case <-ctx.Done():
		case <-a.After(every):
		}
	}
}

// measure returns an outcome with evidence. A failure here becomes a fault in the evidence. Only
// the end of the job, or a failure of this host's disk, returns an error.
func (a *agent) measure(h *heldLease, l protocol.LeaseResponse, dir string) (runners.Measured, error) {
	ctx := h.ctx
	job, err := a.fetch(ctx, l, dir)
	if gone(err) {
		h.end(err)
	}
	if err == nil {
		job.Record = record{a, l, h.end}
		job.Share = h.share
		job.Provenance.Time, job.Provenance.Host, job.Provenance.Program = a.Now().UTC(), a.Host, a.Version
		var found runners.Measured
		do := a.Measure
		if l.Stage == protocol.StageBuild {
			do = a.Build
		}
		job.Builds, job.Builder = a.builds(ctx, l, dir), l.Builder
		if found, err = a.guarded(ctx, do, job, filepath.Join(dir, "scratch"), h.log); err == nil {
			return found, a.starved(found.Evidence.Fault, dir)
		}
		if starved := a.starved(err.Error(), dir); starved != nil && ctx.Err() == nil {
			return runners.Measured{}, starved
		}
	} else if ofDisk(err) && ctx.Err() == nil {
		return runners.Measured{}, &diskFault{err}
	}
	if ctx.Err() != nil {
		return runners.Measured{}, context.Cause(ctx)
	}
	e := &gates.Evidence{
		Schema: gates.EvidenceSchema, Kernel: l.Kernel, Provenance: job.Provenance, Change: job.Change, Notes: job.Notes, Fault: err.Error(),
	}
	if job.Manifest != nil {
		e.Kernel, e.Mode = job.Manifest.Name, string(job.Manifest.Mode)
	}
	e.Kernel = cmp.Or(e.Kernel, l.Job)
	return runners.Measured{Evidence: e, Open: l.Stage == protocol.StageBuild}, nil
}

// fetch downloads the bundle. It reads nothing in the bundle before its digest matches the one in
// the lease.
func (a *agent) fetch(ctx context.Context, l protocol.LeaseResponse, dir string) (runners.Job, error) {
	tree := filepath.Join(dir, "job")
	for _, d := range []string{dir, tree, filepath.Join(dir, "scratch")} {
		if err := errors.Join(os.MkdirAll(d, 0o755), os.Chmod(d, 0o755)); err != nil {
			return runners.Job{}, fmt.Errorf("creating the folder of the job: %w", err)
		}
	}
	f, err := newDownload(filepath.Join(dir, "bundle.tar.gz"))
	if err != nil {
		return runners.Job{}, err
	}
	defer f.Close()
	err = a.persist(ctx, "fetching the bundle", func() error {
		return f.attempt(func(w io.Writer) error { return a.client.bundle(ctx, l, w) })
	})
	if err != nil {
		return runners.Job{}, fmt.Errorf("fetching the bundle: %w", err)
	}
	got, err := f.rewind()
	if err != nil {
		return runners.Job{}, err
	}
	if got != l.Digest {
		return runners.Job{}, fmt.Errorf("the bundle's digest is %.12s and should be %.12s: it was damaged in transit, or belongs to a different job (rebench to send it again)", got, l.Digest)
	}
	return bundle.Read(f, tree)
}

// guarded turns a panic or a bad result of measuring into an error.
func (a *agent) guarded(ctx context.Context, do measuring, job runners.Job, scratch string, p runners.Progress) (found runners.Measured, err error) {
	defer func() {
		if r := recover(); r != nil {
			a.Log.Error("measuring panicked", "kernel", job.Manifest.Name, "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("the runner's program failed: %v (its log has more)", r)
		}
	}()
	if do == nil {
		return found, errors.New("this runner cannot do this job: a runner either compiles or measures (give it matching labels)")
	}
	if found, err = do(ctx, job, scratch, p); err != nil {
		return found, err
	}
	if found.Evidence == nil {
		return found, errors.New("the program of the runner returned no evidence")
	}
	if _, err := json.Marshal(found.Evidence); err != nil {
		return found, fmt.Errorf("the evidence cannot be written: %w", err)
	}
	return found, nil
}
