package jobs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/bot/store/journal"
)

func enqueue(t *testing.T, j *world, id string, labels ...string) {
	t.Helper()
	if err := j.Enqueue(testContext(t), Job{Job: scheduler.Job{ID: id, Labels: labels, Kernel: "k"}, Bundle: "bundle of " + id}); err != nil {
		t.Fatal(err)
	}
}

func lease(t *testing.T, j *world, label, wantID string, wantToken uint64) *Lease {
	t.Helper()
	l, err := j.Lease(testContext(t), "ann", label)
	if err != nil {
		t.Fatal(err)
	}
	if l.ID != wantID || l.Token != wantToken || l.Bundle != "bundle of "+wantID || l.Label != label {
		t.Fatalf("leased %+v as %s with token %d; want %s with %d", l.Job, l.Label, l.Token, wantID, wantToken)
	}
	return l
}

func unfinished(j *world) int { return len(j.line.statuses()) }

func TestQueue(t *testing.T) {
	t.Parallel()
	j := open(t, options{})
	ctx := testContext(t)
	for range 2 {
		enqueue(t, j, "a", "l4") // the second time for nothing
	}
	enqueue(t, j, "b", "l4")
	enqueue(t, j, "c", "h200")
	a := lease(t, j, "l4", "a", 1)
	enqueue(t, j, "a", "l4") // nor while a runner has it

	queues := j.Backlogs()
	want := []Backlog{{Label: "h200", Waiting: 1}, {Label: "l4", Waiting: 1, Leased: 1}}
	if diff := cmp.Diff(want, queues, cmpopts.IgnoreFields(Backlog{}, "Oldest")); diff != "" {
		t.Fatal(diff)
	}
	if h200, l4 := queues[0], queues[1]; !l4.Oldest.Before(h200.Oldest) || l4.Oldest.IsZero() {
		t.Errorf("oldest: %v before %v?", l4.Oldest, h200.Oldest)
	}

	if err := a.Done(ctx); err != nil {
		t.Fatal(err)
	}
	if err := a.Done(ctx); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("done twice: %v, want ErrLeaseLost", err)
	}
	b := lease(t, j, "l4", "b", 1)
	if err := b.Release(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if err := b.Done(ctx); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("done after release: %v, want ErrLeaseLost", err)
	}
	if err := lease(t, j, "l4", "b", 2).Done(ctx); err != nil {
		t.Fatal(err)
	}
	if n := unfinished(j); n != 1 {
		t.Errorf("%d jobs are left, want 1", n)
	}
	enqueue(t, j, "a", "l4") // gone, so this is a new one
	lease(t, j, "l4", "a", 2)
}

func TestEnqueueRefuses(t *testing.T) {
	t.Parallel()
	j := open(t, options{})
	for name, job := range map[string]Job{
		"a subject as its id": {Job: scheduler.Job{ID: "a.b", Labels: []string{"l4"}}, Bundle: "b"},
		"a pattern as label":  {Job: scheduler.Job{ID: "a", Labels: []string{"l4", "*"}}, Bundle: "b"},
		"no label":            {Job: scheduler.Job{ID: "a"}, Bundle: "b"},
		"no bundle":           {Job: scheduler.Job{ID: "a", Labels: []string{"l4"}}},
	} {
		if err := j.Enqueue(testContext(t), job); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if _, err := j.Lease(testContext(t), "ann"); err == nil {
		t.Error("a lease of no label was given")
	}
}

func TestLeaseWaitsAndGivesUp(t *testing.T) {
	t.Parallel()
	j := open(t, options{})
	ctx, cancel := context.WithCancel(testContext(t))
	ended := make(chan error, 1)
	go func() { _, err := j.Lease(ctx, "ann", "l4"); ended <- err }()
	cancel()
	if err := next(t, ended); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
	got := waits(t, j, "ann", "l4")
	enqueue(t, j, "a", "l4")
	if l := next(t, got); l == nil || l.ID != "a" {
		t.Errorf("leased %+v", l)
	}
}

// waits asks for a job, and returns when it is known to be waiting.
func waits(t *testing.T, j *world, holder string, labels ...string) <-chan *Lease {
	t.Helper()
	before := waiting(j)
	got := make(chan *Lease, 1)
	go func() {
		l, err := j.Lease(testContext(t), holder, labels...)
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	for ctx := testContext(t); waiting(j) == before; {
		if ctx.Err() != nil {
			t.Fatal("nobody waits")
		}
		<-time.After(time.Millisecond)
	}
	return got
}

func waiting(j *world) int {
	j.line.mu.Lock()
	defer j.line.mu.Unlock()
	return len(j.line.waiting)
}

// A job of several labels goes to whoever waits with the most wanted of them, though another came first, and to any where
// there is no choice.
func TestMostWantedLabelFirst(t *testing.T) {
	t.Parallel()
	j := open(t, options{})
	ctx := testContext(t)
	l4, any, h200 := waits(t, j, "l", "l4"), waits(t, j, "x", "cpu", "l4"), waits(t, j, "h", "h200")
	enqueue(t, j, "a", "h200", "l4")
	if l := next(t, h200); l.Label != "h200" {
		t.Errorf("taken as %s", l.Label)
	}
	enqueue(t, j, "b", "h200", "l4")
	if l := next(t, l4); l.Label != "l4" || l.ID != "b" {
		t.Errorf("%s taken as %s", l.ID, l.Label)
	}
	want := []Backlog{{Label: "h200", Leased: 1}, {Label: "l4", Leased: 1}}
	if diff := cmp.Diff(want, j.Backlogs(), cmpopts.IgnoreFields(Backlog{}, "Oldest")); diff != "" {
		t.Error(diff)
	}
	enqueue(t, j, "c", "tpu", "gpu")
	want = append([]Backlog{{Label: "gpu", Waiting: 1}}, append(want, Backlog{Label: "tpu", Waiting: 1})...)
	if diff := cmp.Diff(want, j.Backlogs(), cmpopts.IgnoreFields(Backlog{}, "Oldest")); diff != "" {
		t.Error(diff)
	}
	if ok, err := j.Cancel(ctx, "c"); err != nil || !ok {
		t.Error(ok, err)
	}
	enqueue(t, j, "d", "cpu")
	if l := next(t, any); l.ID != "d" {
		t.Errorf("leased %s", l.ID)
	}
}

// However many runners of whatever label ask at once, a job is at one of them, and every job is done once.
func TestManyRunnersOneJob(t *testing.T) {
	t.Parallel()
	j := open(t, options{})
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	const jobs = 60
	var mu sync.Mutex
	at, done := map[string]int{}, map[string]int{}
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			for {
				l, err := j.Lease(ctx, fmt.Sprint("r", i), []string{"l4", "h200", "cpu"}[i%3])
				if err != nil {
					return
				}
				mu.Lock()
				if at[l.ID]++; at[l.ID] != 1 {
					t.Errorf("%s is at %d runners", l.ID, at[l.ID])
				}
				mu.Unlock()
				if i%4 == 0 && l.Token == 1 {
					mu.Lock()
					at[l.ID]--
					mu.Unlock()
					err = l.Release(testContext(t), 0)
				} else if err = l.Done(testContext(t)); err == nil {
					mu.Lock()
					if done[l.ID]++; len(done) == jobs {
						cancel()
					}
					mu.Unlock()
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range jobs {
		enqueue(t, j, fmt.Sprint("j", i), "h200", "l4", "cpu")
	}
	all.Wait()
	for id, n := range done {
		if n != 1 {
			t.Errorf("%s was done %d times", id, n)
		}
	}
	if len(done) != jobs || unfinished(j) != 0 {
		t.Errorf("%d done, %d left", len(done), unfinished(j))
	}
}

func TestExpiredLeaseGoesToAnother(t *testing.T) {
	t.Parallel()
	j := open(t, options{LeaseFor: 50 * time.Millisecond})
	ctx := testContext(t)
	enqueue(t, j, "a", "l4", "h200")
	zombie := lease(t, j, "l4", "a", 1)
	heir := lease(t, j, "h200", "a", 2) // blocks until the first has run out

	for name, act := range map[string]func() error{
		"extend":  func() error { return zombie.Extend(ctx) },
		"done":    func() error { return zombie.Done(ctx) },
		"release": func() error { return zombie.Release(ctx, 0) },
	} {
		if err := act(); !errors.Is(err, ErrLeaseLost) {
			t.Errorf("the late %s: %v, want ErrLeaseLost", name, err)
		}
	}
	if n := unfinished(j); n != 1 {
		t.Errorf("%d jobs are left after the zombie's efforts, want 1", n)
	}
	if err := heir.Done(ctx); err != nil {
		t.Error(err)
	}
	if n := unfinished(j); n != 0 {
		t.Errorf("%d jobs are left, want 0", n)
	}
}

// A job whose runners are never heard of again is handed out three times, restarts of the bot or not, and then to whoever
// asks for what is lost. A runner that gives it back is not counted.
func TestLostTooOften(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	o := options{Dir: t.TempDir(), LeaseFor: 50 * time.Millisecond, Now: func() time.Time { return now }}
	j := open(t, o)
	ctx := testContext(t)
	enqueue(t, j, "a", "l4")
	for token := range uint64(5) {
		if err := lease(t, j, "l4", "a", token+1).Release(ctx, 0); err != nil {
			t.Fatal(err)
		}
	}
	first := lease(t, j, "l4", "a", 6)
	now = now.Add(time.Minute)
	if err := first.Extend(ctx); err != nil {
		t.Fatal(err)
	}
	taken(t, j, lease(t, j, "l4", "a", 7))
	lease(t, j, "l4", "a", 8) // the answer is lost, and the bot with it
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = open(t, o)
	taken(t, j, lease(t, j, "l4", "a", 9))
	late := waits(t, j, "late", "l4")
	lost, err := j.Lost(ctx)
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	want := []Expiry{{"ann", begun, now}, {"ann", now, now}, {"ann", now, now}}
	if diff := cmp.Diff(want, lost.Losses); diff != "" || lost.ID != "a" || lost.Token != 10 {
		t.Errorf("lost %s with token %d: %s", lost.ID, lost.Token, diff)
	}
	if _, err := j.Attach(ctx, "a", first.Token, "ann"); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("a result of long ago: %v", err)
	}
	// Nobody could write it down: it stays lost.
	if err := lost.Release(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if lost, err = j.Lost(ctx); err != nil || len(lost.Losses) != 3 {
		t.Fatal(lost, err)
	}
	if err := lost.Done(ctx); err != nil {
		t.Error(err)
	}
	enqueue(t, j, "a", "l4") // anew
	if l := next(t, late); l == nil || len(l.Losses) != 0 {
		t.Errorf("leased %+v", l)
	}
}

// taken says what a runner does that has heard of its lease.
func taken(t *testing.T, j *world, l *Lease) {
	t.Helper()
	if _, err := j.Attach(testContext(t), l.ID, l.Token, "ann"); err != nil {
		t.Fatal(err)
	}
}

// What no runner ever spoke of was perhaps lost on its way to it, and is not held against the job; but not for ever, for a
// runner may die of the answer.
func TestLeasesThatNobodySpokeOf(t *testing.T) {
	t.Parallel()
	j := open(t, options{LeaseFor: 20 * time.Millisecond})
	enqueue(t, j, "a", "l4")
	unread := 0
	for token := uint64(1); unread < unreadAtMost+3; token++ {
		l := lease(t, j, "l4", "a", token)
		if want := max(0, unread-unreadAtMost); len(l.Losses) != want {
			t.Errorf("%d losses before the lease %d, want %d", len(l.Losses), l.Token, want)
		}
		if token != 3 {
			unread++
			continue
		}
		if err := l.Release(testContext(t), 0); err != nil { // which forgets nothing
			t.Fatal(err)
		}
	}
	lost, err := j.Lost(testContext(t))
	if err != nil || len(lost.Losses) != 3 {
		t.Fatal(lost, err)
	}
}

// A crash between the record and the message's end must not bring the job back.
func TestRecordCountsWithoutTheMessage(t *testing.T) {
	t.Parallel()
	for _, state := range []leaseState{finished, cancelled} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			o := options{Dir: t.TempDir()}
			j := open(t, o)
			enqueue(t, j, "a", "l4")
			if err := lease(t, j, "l4", "a", 1).end(testContext(t), leaseRecord{State: state}); err != nil {
				t.Fatal(err)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			j = open(t, o)
			if n := unfinished(j); n != 0 {
				t.Errorf("%d jobs are left", n)
			}
			enqueue(t, j, "a", "l4")
			lease(t, j, "l4", "a", 2)
		})
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	j := open(t, options{})
	ctx := testContext(t)
	enqueue(t, j, "waits", "l4", "h200")
	if ok, err := j.Cancel(ctx, "waits"); err != nil || !ok {
		t.Errorf("cancel a waiting job: %v, %v", ok, err)
	}
	if ok, err := j.Cancel(ctx, "waits"); err != nil || ok {
		t.Errorf("cancel it again: %v, %v", ok, err)
	}

	enqueue(t, j, "runs", "l4", "h200")
	l := lease(t, j, "h200", "runs", 1)
	if ok, err := j.Cancel(ctx, "runs"); err != nil || !ok {
		t.Errorf("cancel a running job: %v, %v", ok, err)
	}
	if err := l.Extend(ctx); !errors.Is(err, ErrCancelled) {
		t.Errorf("extend: %v, want ErrCancelled", err)
	}
	if err := l.Done(ctx); !errors.Is(err, ErrCancelled) {
		t.Errorf("done: %v, want ErrCancelled", err)
	}
	if n := unfinished(j); n != 0 {
		t.Errorf("%d jobs are left, want 0", n)
	}
	enqueue(t, j, "runs", "l4") // wanted after all
	again := lease(t, j, "l4", "runs", 2)
	if err := l.Done(ctx); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("done by the first: %v, want ErrLeaseLost", err)
	}
	if err := again.Done(ctx); err != nil {
		t.Error(err)
	}
}

// A stored message that is not a job is removed, and the jobs next to it are served.
func TestMessageThatIsNotAJob(t *testing.T) {
	t.Parallel()
	o := options{Dir: t.TempDir()}
	j := open(t, o)
	ctx := testContext(t)
	for id, data := range map[string]string{
		"a": `{"bundle":"abc","kernel":"k","labels":["l4"]}`, "junk": `junk`, "nobody": `{"bundle":"abc","kernel":"k"}`,
	} {
		if _, err := j.stored.PutJob(ctx, "l4", id, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = open(t, o)
	l, err := j.Lease(ctx, "ann", "l4")
	if err != nil {
		t.Fatal(err)
	}
	if l.Queued.IsZero() {
		t.Error("nobody knows since when it waits")
	}
	l.Queued = time.Time{}
	if diff := cmp.Diff(Job{Job: scheduler.Job{ID: "a", Labels: []string{"l4"}, Kernel: "k"}, Bundle: "abc"}, l.Job); diff != "" {
		t.Error(diff)
	}
	left := 0
	if err := j.stored.EachJob(ctx, func(journal.StoredJob) error { left++; return nil }); err != nil || left != 1 {
		t.Errorf("%d messages, %v", left, err)
	}
}

// What jobs have cost is known after a restart: a limit of a day cannot be had twice, and the next job of a kernel is
// expected to take as long as the last.
func TestCostsOutliveTheProcess(t *testing.T) {
	t.Parallel()
	o := options{Dir: t.TempDir(), Limits: scheduler.Limits{"o/r": {GPUTime: time.Nanosecond}}}
	j := open(t, o)
	ctx := testContext(t)
	put := func(id, repo string) {
		t.Helper()
		if err := j.Enqueue(ctx, Job{Job: scheduler.Job{ID: id, Labels: []string{"l4"}, Kernel: "k", Class: scheduler.PullRequest, Repo: repo, Author: "ada"}, Bundle: "bundle of " + id}); err != nil {
			t.Fatal(err)
		}
	}
	put("a", "o/r")
	if err := lease(t, j, "l4", "a", 1).Done(ctx); err != nil {
		t.Fatal(err)
	}
	put("b", "O/R")
	put("c", "o/other")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = open(t, o)
	c := lease(t, j, "l4", "c", 1) // b came first, and is held back
	if place, ok := j.Position("b"); !ok || place.Held == nil || place.Held.Until.IsZero() {
		t.Errorf("b's place: %+v, %v", place, ok)
	}
	if c.Repo != "o/other" || c.Author != "ada" || c.Class != scheduler.PullRequest {
		t.Errorf("%+v", c.Job)
	}
	put("d", "o/r")
	if ok, err := j.Cancel(ctx, "d"); err != nil || !ok {
		t.Error(ok, err)
	}
}

// A job of one repository does not wait for the many of another that came before it.
func TestRepositoriesTakeTurns(t *testing.T) {
	t.Parallel()
	j := open(t, options{})
	ctx := testContext(t)
	for _, id := range []string{"a1", "a2", "a3", "b1"} {
		if err := j.Enqueue(ctx, Job{Job: scheduler.Job{ID: id, Labels: []string{"l4"}, Repo: "o/" + id[:1]}, Bundle: "bundle of " + id}); err != nil {
			t.Fatal(err)
		}
	}
	lease(t, j, "l4", "a1", 1)
	lease(t, j, "l4", "b1", 1)
	lease(t, j, "l4", "a2", 1)
}

// Of two bots that tidy up after a job each may find that the other was faster. (On a cluster: see TestCluster.)
func TestTidiedUpTwice(t *testing.T) {
	t.Parallel()
	tidiesUpTwice(t, open(t, options{}))
}

func tidiesUpTwice(t *testing.T, j *world) {
	t.Helper()
	enqueue(t, j, "twice", "l4")
	seq := j.line.get("twice").seq
	for range 2 {
		if err := j.stored.DeleteJob(testContext(t), seq); err != nil {
			t.Error(err)
		}
	}
}
