package jobs

import (
	"errors"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/scheduler"
)

// enqueueCUDA queues a job that may be compiled before it is measured.
func enqueueCUDA(t *testing.T, j *world, id string) {
	t.Helper()
	if err := j.Enqueue(testContext(t), Job{Job: scheduler.Job{ID: id, Labels: []string{"l4"}, Build: "build-nvcc", Kernel: "k"}, Bundle: "bundle of " + id}); err != nil {
		t.Fatal(err)
	}
}

// What was compiled is known after a restart, as is that a job is being compiled, and whose lease that was.
func TestBuiltOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	ctx, o := testContext(t), options{Dir: t.TempDir()}
	j := open(t, o)
	enqueueCUDA(t, j, "a")
	enqueueCUDA(t, j, "b")
	a, b := lease(t, j, "build-nvcc", "a", 1), lease(t, j, "build-nvcc", "b", 1)
	if !a.Compiles() || a.Label != "build-nvcc" || a.Built != nil {
		t.Errorf("to compile: %+v", a)
	}
	if err := a.HandOn(ctx, "digest"); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{"extend": a.Extend(ctx), "finish": a.Done(ctx), "hand on": a.HandOn(ctx, "other")} {
		if !errors.Is(err, ErrLeaseLost) {
			t.Errorf("%s after it was handed on: %v", what, err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = open(t, o)
	again := attach(t, j, b, "ann")
	if !again.Compiles() {
		t.Errorf("after a restart: %+v", again)
	}
	measured := lease(t, j, "l4", "a", 2)
	if measured.Compiles() || measured.Label != "l4" || measured.Built == nil || *measured.Built != (Built{By: "ann", Builds: "digest"}) {
		t.Errorf("to measure: %+v of %+v", measured, measured.Built)
	}
	if err := again.HandOn(ctx, ""); err != nil {
		t.Fatal(err)
	}
	if err := measured.Release(ctx, 0); err != nil {
		t.Fatal(err)
	}
	// It stays so when it is given back.
	for _, id := range []string{"a", "b"} {
		l := lease(t, j, "l4", id, map[string]uint64{"a": 3, "b": 2}[id])
		if l.Compiles() || l.Built == nil || l.Built.By != "ann" || (l.Built.Builds == "digest") != (id == "a") {
			t.Errorf("%s once more: %+v of %+v", id, l, l.Built)
		}
		if err := l.Done(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// A lease to compile that runs out is no loss of those who measure: whoever asks for what is lost gets the job, and hands it on.
func TestLostCompiling(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	j := open(t, options{LeaseFor: 50 * time.Millisecond})
	enqueueCUDA(t, j, "a")
	gone := lease(t, j, "build-nvcc", "a", 1)
	l, err := j.Lost(ctx)
	if err != nil || l.ID != "a" || len(l.Losses) != 0 || l.Built == nil || *l.Built != (Built{By: "ann", Lost: true}) {
		t.Fatalf("%v: %+v of %+v", err, l, l.Built)
	}
	if err := gone.HandOn(ctx, "late"); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("the one who was lost: %v", err)
	}
	if err := l.Release(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if l := lease(t, j, "l4", "a", 3); l.Compiles() || len(l.Losses) != 0 || l.Built.Builds != "" {
		t.Errorf("to measure: %+v", l)
	}
}
