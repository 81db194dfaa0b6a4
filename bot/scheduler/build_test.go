package scheduler

import (
	"testing"
	"time"
)

// putCUDA queues a job that may be compiled before it is measured.
func (d *desk) putCUDA(class Class, repo, author string) string {
	return d.putJob(Job{Class: class, Repo: repo, Author: author, Labels: []string{"l4"}, Build: "build-nvcc"})
}

// built hands a job on that was compiled.
func (d *desk) built(id string) {
	d.Built(id)
	d.Release(id, d.now, d.now)
}

func TestNobodyCompilesAhead(t *testing.T) {
	d := newDesk(t, nil)
	id := d.putCUDA(PullRequest, "r", "a")
	d.want("without a host that compiles", d.take("l4"), id)
}

// While somebody is here who compiles, a job is theirs first, in the order of all jobs, and then those' who measure.
func TestCompiledFirst(t *testing.T) {
	d := newDesk(t, nil)
	d.want("nothing yet", d.take("build-nvcc"), "")
	push, pull, other := d.putCUDA(Push, "r", "a"), d.putCUDA(PullRequest, "r", "a"), d.put(Push, "r", "b", "l4")
	d.want("a GPU, of what needs no compiling", d.take("l4"), other)
	d.want("a GPU that is free", d.take("l4"), "")
	d.want("whoever has another compiler", d.take("build-triton"), "")
	d.want("the most urgent", d.take("build-nvcc"), pull)
	d.want("the next", d.take("build-nvcc"), push)
	d.want("no more", d.take("build-nvcc"), "")
	d.want("a GPU while they are compiled", d.take("l4"), "")
	d.built(push)
	d.want("a GPU, of what is compiled", d.take("l4"), push)
	d.want("nobody compiles twice", d.take("build-nvcc"), "")
	d.built(pull)
	d.Release(push, d.now, d.now) // its runner stops
	d.want("a GPU again", d.take("l4"), pull)
	d.want("what was given back", d.take("l4"), push)
	d.want("both are at GPUs", d.take("build-nvcc"), "")
}

// Those who compile have too much to do: no GPU waits for that for long.
func TestGPUDoesNotWaitLongForACompiler(t *testing.T) {
	d := newDesk(t, nil)
	d.take("build-nvcc")
	id := d.putCUDA(PullRequest, "r", "a")
	gpu := &Waiter{Labels: []string{"l4"}}
	d.Ask(gpu)
	offers, again := d.Match(d.now)
	if len(offers) != 0 || !again.Equal(d.byID[id].Queued.Add(keptFor)) {
		t.Fatalf("at once: %v, and again at %v", offers, again)
	}
	// Who compiles and asks at that moment goes first all the same.
	d.now = again
	builder := &Waiter{Labels: []string{"build-nvcc"}}
	d.Ask(builder)
	if offers, _ = d.Match(d.now); len(offers) != 1 || offers[0].To != builder {
		t.Fatalf("with both: %v", offers)
	}
	d.Decline(id, time.Time{})
	if offers, _ = d.Match(d.now); len(offers) != 1 || offers[0].To != gpu {
		t.Fatalf("without: %v", offers)
	}
}

// Somebody who compiled and is gone for good holds up nothing that comes then.
func TestCompilerIsGone(t *testing.T) {
	d := newDesk(t, nil)
	d.take("build-nvcc")
	d.now = d.now.Add(hereFor)
	id := d.putCUDA(PullRequest, "r", "a")
	d.want("at once", d.take("l4"), id)
}

// A job whose compiling was lost goes on to those who measure, with all of their attempts, and whoever asks for what is lost hears of
// it.
func TestLostCompiling(t *testing.T) {
	d := newDesk(t, nil)
	id := d.putCUDA(PullRequest, "r", "a")
	lose := func(labels ...string) {
		t.Helper()
		d.want("taken", d.take(labels...), id)
		d.Ack(id)
		d.now = d.now.Add(48 * time.Hour)
	}
	lose("build-nvcc")
	d.want("nobody compiles it once more", d.take("build-nvcc"), "")
	lost := &Waiter{}
	d.Ask(lost)
	if offers, _ := d.Match(d.now); len(offers) != 1 || offers[0].To != lost {
		t.Fatalf("of what is lost: %v", offers)
	}
	d.Lease(id, "", nil, 0, d.now, d.now.Add(time.Hour))
	d.Release(id, d.now, d.now)
	lose("l4")
	lose("l4")
	lose("l4")
	d.want("a fourth GPU", d.take("l4"), "")
	d.want("nobody compiles it", d.take("build-nvcc"), "")
}

// To compile takes none of a repository's GPU minutes, and waits for none.
func TestCompilingIsFree(t *testing.T) {
	d := newDesk(t, Limits{"*": {GPUTime: time.Hour}})
	d.Book(Use{Repo: "r", Label: "build-nvcc", Ended: d.now, Took: 10 * time.Hour})
	id := d.putCUDA(PullRequest, "r", "a")
	d.want("compiled", d.take("build-nvcc"), id)
	d.now = d.now.Add(3 * time.Hour)
	d.built(id)
	d.want("measured", d.take("l4"), id)
	d.now = d.now.Add(2 * time.Hour)
	d.Remove(id, true, d.now)
	next := d.putCUDA(PullRequest, "r", "a")
	d.want("beyond the limit, compiled", d.take("build-nvcc"), next)
	d.built(next)
	d.want("beyond the limit, measured", d.take("l4"), "")
}

// A policy that names such a label as a device gets nobody to measure who cannot.
func TestCompilersNeverMeasure(t *testing.T) {
	d := newDesk(t, nil)
	d.put(PullRequest, "r", "a", "build-nvcc")
	d.want("to measure", d.take("build-nvcc"), "")
}
