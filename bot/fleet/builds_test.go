package fleet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/bot/store/jobs"
	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/bundle"
	"github.com/kernelgate/kernelgate/runners/work/agent"
)

// enqueueCUDA puts a job in line that may be compiled before it is measured.
func (w *world) enqueueCUDA(id string) {
	w.t.Helper()
	content := exampleBundle(w.t)
	digest := fmt.Sprintf("%x", sha256.Sum256(content))
	if _, err := w.journal.Bundles.Put(w.ctx(), digest, bytes.NewReader(content)); err != nil {
		w.t.Fatal(err)
	}
	if err := w.jobs.Enqueue(w.ctx(), jobs.Job{Job: scheduler.Job{ID: id, Labels: []string{"l4"}, Build: "build-nvcc", Kernel: "twice"}, Bundle: digest}); err != nil {
		w.t.Fatal(err)
	}
}

// newBuilds is a world with a runner that compiles, cara, beside those that measure.
func newBuilds(t *testing.T, leaseFor time.Duration) *world {
	t.Helper()
	w := newWorld(t, leaseFor)
	w.tokens["cara"] = NewCredential("cara's", "build-nvcc", "build-triton")
	w.running()
	return w
}

// build starts a runner that compiles.
func (w *world) build(b measure, change ...func(*agent.Config)) (stop func() error) {
	return w.run("cara", nil, append(change, func(c *agent.Config) { c.Build, c.Labels = b, []string{"build-nvcc"} })...)
}

var aBuild = strings.Repeat("0a", 32)

// compiled is a build of other code: somebody must measure it.
func compiled(_ context.Context, job runners.Job, scratch string, _ runners.Progress) (runners.Measured, error) {
	file := filepath.Join(scratch, runners.BuildsFile)
	err := os.MkdirAll(filepath.Join(scratch, "builds", aBuild), 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(scratch, "builds", aBuild, "kernel.cubin"), []byte("code"), 0o644)
	}
	if err == nil {
		_, err = bundle.PackBuilds(filepath.Join(scratch, "builds"), file)
	}
	return runners.Measured{Evidence: evidence(job), BuildLog: "compiled", Artifacts: []string{file}, Open: true}, err
}

// takes is a measurement that tells what was handed to it.
func takes(told chan<- string) measure {
	return func(ctx context.Context, job runners.Job, scratch string, p runners.Progress) (runners.Measured, error) {
		if job.Builds == "" {
			told <- "nothing"
		} else if data, err := os.ReadFile(filepath.Join(job.Builds, aBuild, "kernel.cubin")); err != nil {
			told <- err.Error()
		} else {
			told <- string(data) + " of " + job.Builder
		}
		return quick(ctx, job, scratch, p)
	}
}

// A job is compiled by one runner and measured by another, which gets what was compiled.
func TestBuildsAreHandedOn(t *testing.T) {
	t.Parallel()
	w := newBuilds(t, 30*time.Second)
	w.enqueueCUDA("job")
	w.build(compiled)
	if got := next(t, w.results.started, "the start"); !got.by.Builds || got.by.Name != "cara" {
		t.Errorf("started: %+v", got)
	}
	if got := next(t, w.results.built, "what was compiled"); !got.open || got.by.Name != "cara" || got.log != "compiled" || len(got.artifacts) != 0 || got.evidence.Kernel != "twice" {
		t.Errorf("built: %+v", got)
	}
	told := make(chan string, 1)
	w.run("bob", takes(told))
	if got := next(t, w.results.started, "the second start"); got.by.Builds || got.by.Name != "bob" || got.token != 2 {
		t.Errorf("started: %+v", got)
	}
	if got := next(t, told, "what bob has"); got != "code of cara" {
		t.Errorf("bob has %s", got)
	}
	if got := next(t, w.results.finished, "the result"); got.token != 2 || got.by.Name != "bob" {
		t.Errorf("finished: %+v", got)
	}
	if _, _, err := w.journal.Artifacts.Get(w.ctx(), ArtifactBlob("job", 1, runners.BuildsFile)); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("what was compiled is kept twice: %v", err)
	}
}

// What a runner compiles may be a verdict, and nobody measures it.
func TestBuildIsAVerdict(t *testing.T) {
	t.Parallel()
	w := newBuilds(t, 30*time.Second)
	w.enqueueCUDA("job")
	w.build(quick)
	if got := next(t, w.results.built, "the verdict"); got.open {
		t.Errorf("built: %+v", got)
	}
	for w.unfinished() > 0 { // Done comes after the result
		if w.ctx().Err() != nil {
			t.Fatal("the job is still in the queue")
		}
	}
}

// What goes wrong where a job is compiled, and what the runner's program does not do at all, leaves it to those who measure.
func TestBuildFails(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]measure{
		"an error": func(context.Context, runners.Job, string, runners.Progress) (runners.Measured, error) {
			return runners.Measured{}, errors.New("no compiler")
		},
		"a panic":    func(context.Context, runners.Job, string, runners.Progress) (runners.Measured, error) { panic("oh") },
		"no program": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newBuilds(t, 30*time.Second)
			w.enqueueCUDA("job")
			w.build(b, func(c *agent.Config) { c.Measure = quick })
			if got := next(t, w.results.built, "its end"); !got.open || got.evidence.Fault == "" {
				t.Errorf("built: %+v", got)
			}
			told := make(chan string, 1)
			w.run("bob", takes(told))
			if got := next(t, told, "what bob has"); got != "nothing" {
				t.Errorf("bob has %s", got)
			}
		})
	}
}

// What was tampered with in the journal, or on its way, is not used; the job is compiled where it is measured.
func TestTamperedBuilds(t *testing.T) {
	t.Parallel()
	w := newBuilds(t, 30*time.Second)
	w.enqueueCUDA("job")
	w.build(compiled)
	next(t, w.results.built, "what was compiled")
	// The lease says which it is. It is given back, for the next to come.
	var digest string
	for digest == "" {
		l, err := w.jobs.Lease(w.ctx(), "bob", "l4")
		if err != nil {
			t.Fatal(err)
		}
		digest = l.Built.Builds
		if err := l.Release(w.ctx(), 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.journal.Bundles.Put(w.ctx(), digest, strings.NewReader("something else")); err != nil {
		t.Fatal(err)
	}
	told := make(chan string, 1)
	w.run("bob", takes(told))
	if got := next(t, told, "what bob has"); got != "nothing" {
		t.Errorf("bob has %s", got)
	}
	next(t, w.results.finished, "the result")
}

// A runner that dies while it compiles holds up the job for a few beats, and costs it none of its attempts.
func TestBuilderIsKilled(t *testing.T) {
	t.Parallel()
	w := newBuilds(t, time.Hour) // the lease alone would take too long
	w.enqueueCUDA("job")
	c := &cut{}
	begun := make(chan struct{}, 1)
	w.build(func(ctx context.Context, _ runners.Job, _ string, _ runners.Progress) (runners.Measured, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return runners.Measured{}, ctx.Err()
	}, func(a *agent.Config) { a.Servers = []string{"unix://" + c.between(t, w.socket)} })
	next(t, begun, "the compiling")
	w.holding(1)
	c.sever()
	if got := next(t, w.results.built, "that it was lost"); !got.open || got.by.Name != "cara" || !strings.Contains(got.evidence.Fault, "stopped responding") {
		t.Errorf("built: %+v", got)
	}
	told := make(chan string, 1)
	w.run("bob", takes(told))
	if got := next(t, told, "what bob has"); got != "nothing" {
		t.Errorf("bob has %s", got)
	}
	if got := next(t, w.results.finished, "the result"); got.by.Name != "bob" {
		t.Errorf("finished: %+v", got)
	}
}

// Nobody gets what was compiled but the runner that measures the job, and no job that is measured is ended by what was compiled.
func TestBuildsAreTheJobsOwn(t *testing.T) {
	t.Parallel()
	w := newBuilds(t, time.Hour)
	w.enqueueCUDA("job")
	w.lease("cara", "build-nvcc", "job", 1)
	status, answer := w.request("cara's", "GET", "jobs/job/builds?token=1", nil)
	w.expect("builds before there are any", http.StatusNotFound, status, answer)
	status, answer = w.request("bob's", "GET", "jobs/job/builds?token=1", nil)
	w.expect("builds for another", http.StatusConflict, status, answer)
	res := resultOf(1)
	res.Open = true
	status, answer = w.post("cara's", "jobs/job/result", res)
	w.expect("an open result", http.StatusOK, status, answer)
	status, answer = w.post("cara's", "jobs/job/result", res)
	w.expect("the same once more", http.StatusConflict, status, answer)
	w.lease("bob", "l4", "job", 2)
	status, answer = w.request("bob's", "GET", "jobs/job/builds?token=2", nil)
	w.expect("builds where there are none", http.StatusNotFound, status, answer)
	res.Token = 2 // bob's program says that somebody else should measure it
	status, answer = w.post("bob's", "jobs/job/result", res)
	w.expect("an open result of one who measures", http.StatusOK, status, answer)
	if got := next(t, w.results.finished, "its end"); got.token != 2 {
		t.Errorf("finished: %+v", got)
	}
}
