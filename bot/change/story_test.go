package change

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/gates"
)

var (
	testID  = ID{Kind: Pull, Repo: 7, Number: 12}
	headOne = strings.Repeat("1", 40)
	headTwo = strings.Repeat("2", 40)
)

// A story applies events to a change, a second apart.
type story struct {
	*State
	t   *testing.T
	seq uint64
}

func begin(t *testing.T) *story { return &story{State: New(testID), t: t} }

func (s *story) at() time.Time { return time.Unix(int64(s.seq), 0).UTC() }

func (s *story) then(events ...Event) *story {
	for _, e := range events {
		s.seq += 3 // other changes have events too
		s.Apply(s.seq, s.at(), e)
	}
	return s
}

func facts(head string, labels ...string) Facts {
	return Facts{Repo: "o/r", Head: head, Base: "main", Open: true, Labels: labels}
}

// given is what a decision on a head holds for, by plans without rules.
func given(head string) Scope { return Scope{Head: head, Base: "main"} }

func (s *story) seen(f Facts) *story { return s.then(Seen{Facts: f}) }

// plan plans kernels for the facts as they are.
func (s *story) plan(kernels ...Kernel) *story {
	return s.then(Planned{Plan{Key: s.Facts.PlanKey(), Head: s.Facts.Head, Kernels: kernels}})
}

func kernel(name string) Kernel {
	return Kernel{KernelSpec: KernelSpec{Name: name, Folder: "kernels/" + name, Rule: "default", Labels: []string{"l4"}, Sources: "src-" + name, Bundle: "bundle-" + name}}
}

func kept(name string) Kernel {
	k := kernel(name)
	k.Reused = true
	return k
}

func (s *story) job(kernel string) string {
	s.t.Helper()
	r, ok := s.ByFolder("kernels/" + kernel)
	if !ok {
		s.t.Fatalf("no run of %s", kernel)
	}
	return r.Job
}

func (s *story) start(kernel string) *story {
	s.t.Helper()
	return s.then(Started{Job: s.job(kernel), Token: 1, Runner: "runner-a"})
}

func (s *story) finish(kernel string, outcome gates.Outcome) *story {
	s.t.Helper()
	return s.then(Finished{Job: s.job(kernel), Token: 1, Runner: "runner-a", Result: Result{Outcome: outcome, Line: "as measured"}})
}

func (s *story) command(id string, effect Effect) *story {
	return s.then(Asked{ID: id, By: "ann", Request: grammar.Read("/" + id), Head: s.Facts.Head}, Answered{ID: id, OK: true, Effect: effect})
}

func (s *story) published() *story { return s.then(Published{Complete: true}) }

func (s *story) dropped() *story { return s.then(Dropped{Jobs: slices.Clone(s.Dropping)}) }

// tells checks what a reader of the state sees, a line each.
func (s *story) tells(want ...string) *story {
	s.t.Helper()
	var got []string
	describe := func(list string, runs []Run) {
		for _, r := range runs {
			line := fmt.Sprintf("%s %s@%.1s #%d %s", list, r.Name, r.Head, r.Attempt, r.Phase)
			if r.Result != nil {
				line += " " + string(r.Result.Outcome)
			}
			got = append(got, line)
		}
	}
	describe("run", s.Runs)
	describe("extra", s.ExtraRuns)
	describe("search", s.Searches)
	describe("past", s.Past)
	for flag, on := range map[string]bool{
		"needs plan": s.NeedsPlan(), "held": s.Held(), "settled": s.Settled(), "overridden": s.Override != nil, "cancelled": s.Cancelled != "",
	} {
		if on {
			got = append(got, flag)
		}
	}
	if n := len(s.Wanted()); n > 0 {
		got = append(got, fmt.Sprint("wanted ", n))
	}
	if n := len(s.Dropping); n > 0 {
		got = append(got, fmt.Sprint("dropping ", n))
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("after event %d (-want +got):\n%s", s.seq, diff)
	}
	return s
}

func TestOpenPlanStartFinish(t *testing.T) {
	s := begin(t).tells("settled")
	s.seen(facts(headOne)).tells("needs plan")
	s.plan(kernel("a"), kernel("b")).tells("run a@1 #1 queued", "run b@1 #1 queued", "wanted 2")
	s.start("a").tells("run a@1 #1 running", "run b@1 #1 queued", "wanted 2")
	s.finish("a", gates.Pass).tells("run a@1 #1 done PASS", "run b@1 #1 queued", "wanted 1")
	s.start("b").finish("b", gates.Defer).tells("run a@1 #1 done PASS", "run b@1 #1 done DEFER")
	s.published().tells("run a@1 #1 done PASS", "run b@1 #1 done DEFER", "settled")

	r, ok := s.Run(s.job("a"))
	if !ok || r.Runner != "runner-a" || !r.Asked.Before(r.Begun) || !r.Begun.Before(r.Ended) {
		t.Errorf("the run of a: %+v", r)
	}
	if s.First != time.Unix(3, 0).UTC() {
		t.Errorf("first event at %v", s.First)
	}
}

func TestChangeWithoutKernels(t *testing.T) {
	begin(t).seen(facts(headOne)).plan().tells().published().tells("settled")
}

func TestPlanThatNeedsNoRunner(t *testing.T) {
	gone := kernel("a")
	gone.Result = &Result{Outcome: gates.Defer}
	begin(t).seen(facts(headOne)).plan(gone).tells("run a@1 #1 done DEFER")
}

func TestPlanOfOtherFacts(t *testing.T) {
	late := Planned{Plan{Key: facts(headOne).PlanKey(), Head: headOne, Kernels: []Kernel{kernel("a")}}}
	begin(t).seen(facts(headOne)).seen(facts(headTwo)).then(late).tells("needs plan")
}

func TestPushSupersedes(t *testing.T) {
	s := begin(t).seen(facts(headOne)).plan(kernel("a"), kernel("b"), kernel("c")).finish("c", gates.Pass).start("a")
	old := s.job("a")
	want := []string{s.job("a"), s.job("b")}
	s.seen(facts(headTwo)).tells("past a@1 #1 abandoned", "past b@1 #1 abandoned", "past c@1 #1 done PASS", "needs plan", "dropping 2")
	if diff := cmp.Diff(want, s.Dropping); diff != "" {
		t.Errorf("dropping (-want +got):\n%s", diff)
	}
	s.plan(kernel("a")).published()
	if s.Settled() {
		t.Error("settled while jobs are to be dropped")
	}
	s.dropped().tells("past a@1 #1 abandoned", "past b@1 #1 abandoned", "past c@1 #1 done PASS", "run a@2 #1 queued", "wanted 1")

	before := s.Clone()
	s.then(Finished{Job: old, Token: 9, Result: Result{Outcome: gates.Pass}}, Started{Job: old, Token: 9})
	if diff := cmp.Diff(before.Runs, s.Runs); diff != "" {
		t.Errorf("a late result changed the runs:\n%s", diff)
	}
	if diff := cmp.Diff(before.Past, s.Past); diff != "" {
		t.Errorf("a late result changed the past:\n%s", diff)
	}
}

func TestKeptAndNotKeptKernels(t *testing.T) {
	s := begin(t).seen(facts(headOne)).plan(kernel("a"), kernel("b"), kernel("c")).start("a").finish("b", gates.Pass).published()
	jobs := []string{s.job("a"), s.job("b"), s.job("c")}
	s.seen(facts(headOne, "perf")).tells("run a@1 #1 running", "run b@1 #1 done PASS", "run c@1 #1 queued", "needs plan")
	repacked := func(name string) Kernel {
		k := kept(name)
		k.Bundle = "bundle-new"
		return k
	}
	s.plan(repacked("b"), repacked("a"), kernel("c"), kept("d")).tells(
		"run a@1 #1 running", "run b@1 #1 done PASS", "run c@1 #1 queued", "run d@1 #1 queued", "past c@1 #1 abandoned", "wanted 3", "dropping 1")
	if s.job("a") != jobs[0] || s.job("b") != jobs[1] || s.job("c") == jobs[2] {
		t.Errorf("jobs %v became %v", jobs, []string{s.job("a"), s.job("b"), s.job("c")})
	}
	for folder, want := range map[string]string{"kernels/a": "bundle-a", "kernels/b": "bundle-new"} { // a is at a runner, which has its bundle
		if r, _ := s.ByFolder(folder); r.Bundle != want {
			t.Errorf("the bundle of %s is %s, want %s", folder, r.Bundle, want)
		}
	}
	s.finish("a", gates.Defer).tells(
		"run a@1 #1 done DEFER", "run b@1 #1 done PASS", "run c@1 #1 queued", "run d@1 #1 queued", "past c@1 #1 abandoned", "wanted 2", "dropping 1")
}

func TestForkIsHeld(t *testing.T) {
	fork := func(head string) Facts {
		f := facts(head)
		f.Fork = true
		return f
	}
	s := begin(t).seen(fork(headOne)).plan(kernel("a")).published().tells("run a@1 #1 queued", "held", "settled")
	repacked := kept("a")
	repacked.Bundle = "bundle-new"
	s.plan(repacked)
	if r, _ := s.ByFolder("kernels/a"); r.Bundle != "bundle-new" {
		t.Errorf("a job that nobody has got has the bundle %s", r.Bundle)
	}
	s.command("ok", Effect{Approve: &ForkApproved{For: given(headOne), By: "ann"}}).tells("run a@1 #1 queued", "wanted 1")
	s.seen(fork(headTwo)).plan(kernel("a")).dropped().tells("past a@1 #1 abandoned", "run a@2 #1 queued", "held")
	s.command("late", Effect{Approve: &ForkApproved{For: given(headOne), By: "ann"}}).tells("past a@1 #1 abandoned", "run a@2 #1 queued", "held")
	s.command("ok2", Effect{Approve: &ForkApproved{For: given(headTwo), By: "ann"}}).tells("past a@1 #1 abandoned", "run a@2 #1 queued", "wanted 1")
	s.seen(fork(headOne)).plan(kernel("a")).dropped()
	if s.Held() {
		t.Error("an approval is for a commit, and this one is approved")
	}
}

func TestCancel(t *testing.T) {
	s := begin(t).seen(facts(headOne)).plan(kernel("a"), kernel("b")).finish("a", gates.Pass).start("b")
	s.command("extra", Effect{ExtraRuns: []ExtraRun{{Folder: "kernels/a", Bundle: "x", Rebench: grammar.Rebench{Versus: "self"}}}})
	s.command("stale", Effect{Cancel: headTwo}).tells("run a@1 #1 done PASS", "run b@1 #1 running", "extra a@1 #1 queued", "wanted 2")
	s.command("cancel", Effect{Cancel: headOne}).tells("run a@1 #1 done PASS", "run b@1 #1 abandoned", "extra a@1 #1 abandoned", "dropping 2", "cancelled")

	t.Run("lasts when the plan is made anew", func(t *testing.T) {
		after := &story{State: s.Clone(), t: t, seq: s.seq}
		after.seen(facts(headOne, "perf")).dropped().plan(kept("a"), kernel("b")).tells(
			"run a@1 #1 done PASS", "run b@1 #1 abandoned", "past b@1 #1 abandoned", "extra a@1 #1 abandoned", "cancelled")
	})
	t.Run("ends with the next head", func(t *testing.T) {
		after := &story{State: s.Clone(), t: t, seq: s.seq}
		after.seen(facts(headTwo)).dropped().plan(kernel("b")).tells("past a@1 #1 done PASS", "past b@1 #1 abandoned", "run b@2 #1 queued", "wanted 1")
	})
	t.Run("ends with another attempt", func(t *testing.T) {
		after := &story{State: s.Clone(), t: t, seq: s.seq}
		after.dropped().command("again", Effect{Rebench: []Rerun{{Folder: "kernels/b", Bundle: "y"}}}).tells(
			"run a@1 #1 done PASS", "run b@1 #2 queued", "past b@1 #1 abandoned", "extra a@1 #1 abandoned", "wanted 1")
	})
}

func TestRebench(t *testing.T) {
	s := begin(t).seen(facts(headOne)).plan(kernel("a"), kernel("b")).start("a").finish("a", gates.Defer)
	first := s.job("a")
	s.command("again", Effect{Rebench: []Rerun{{Folder: "kernels/a", Bundle: "more"}, {Folder: "kernels/b", Bundle: "more"}, {Folder: "kernels/z", Bundle: "more"}}})
	s.tells("run a@1 #2 queued", "run b@1 #1 queued", "past a@1 #1 done DEFER", "wanted 2")
	a, _ := s.ByFolder("kernels/a")
	if a.Bundle != "more" || a.Runner != "" || a.Token != 0 || a.Result != nil || !a.Begun.IsZero() || !a.Ended.IsZero() || a.Job == first {
		t.Errorf("the second attempt began as %+v", a)
	}
	s.then(Finished{Job: first, Token: 5, Result: Result{Outcome: gates.Pass}}).tells("run a@1 #2 queued", "run b@1 #1 queued", "past a@1 #1 done DEFER", "wanted 2")
	s.finish("a", gates.Pass).tells("run a@1 #2 done PASS", "run b@1 #1 queued", "past a@1 #1 done DEFER", "wanted 1")
}

func TestPastIsBounded(t *testing.T) {
	s := begin(t).seen(facts(headOne)).plan(kernel("a"))
	for i := range maxPast + 5 {
		s.finish("a", gates.Defer).command(fmt.Sprint("again", i), Effect{Rebench: []Rerun{{Folder: "kernels/a"}}})
	}
	if len(s.Past) != maxPast || s.Past[0].Attempt != 6 {
		t.Errorf("%d attempts are past, the oldest is #%d", len(s.Past), s.Past[0].Attempt)
	}
}

func TestExtraRunsChangeNothing(t *testing.T) {
	extra := Effect{ExtraRuns: []ExtraRun{{Folder: "kernels/a", Bundle: "x", Rebench: grammar.Rebench{Seeds: []int64{3}}}, {Folder: "kernels/a", Bundle: "y"}, {Folder: "kernels/z"}}}
	s := begin(t).seen(facts(headOne)).plan(kernel("a")).finish("a", gates.Pass).command("extra", extra)
	s.tells("run a@1 #1 done PASS", "extra a@1 #1 queued", "extra a@1 #1 queued", "wanted 2")
	s.then(Finished{Job: s.ExtraRuns[1].Job, Result: Result{Outcome: gates.Defer}})
	s.tells("run a@1 #1 done PASS", "extra a@1 #1 queued", "extra a@1 #1 done DEFER", "wanted 1")
	if job := s.ExtraRuns[0].Job; !strings.HasSuffix(job, "-1") || job == s.ExtraRuns[1].Job {
		t.Errorf("the jobs are %s and %s", job, s.ExtraRuns[1].Job)
	}
	if id := s.ExtraRuns[0].ReportID(); id != "" {
		t.Errorf("the report of a run that is no search is %q", id)
	}
	s.seen(facts(headTwo)).tells("past a@1 #1 done PASS", "needs plan", "dropping 1")
}

// A search waits for a runner like a run, changes no verdict, and ends when a new head is pushed. /cancel
// of a search cancels no verdict.
func TestSearchesChangeNothing(t *testing.T) {
	tune := func(folder string) Effect {
		return Effect{Search: &Search{Folder: folder, Bundle: "x", Request: grammar.Read("/tune")}}
	}
	s := begin(t).seen(facts(headOne)).plan(kernel("a")).finish("a", gates.Pass).command("tune", tune("kernels/a")).command("tune2", tune("kernels/z"))
	s.tells("run a@1 #1 done PASS", "search a@1 #1 queued", "wanted 1")
	job := s.Searches[0].Job
	s.command("cancel", Effect{Cancel: headOne}).tells("run a@1 #1 done PASS", "search a@1 #1 abandoned", "dropping 1")
	s.then(Finished{Job: job, Result: Result{Outcome: gates.Pass, Report: "late"}}).tells("run a@1 #1 done PASS", "search a@1 #1 abandoned", "dropping 1")
	s.dropped().command("tune3", tune("kernels/a"))
	s.then(Finished{Job: s.Searches[1].Job, Result: Result{Outcome: gates.Pass, Report: "found"}})
	if r := s.Searches[1]; !r.Reports() || r.ReportID() != "tune3-report" || s.Searches[0].Reports() {
		t.Errorf("%+v", s.Searches)
	}
	s.then(Published{Replies: map[string]int64{"tune3-report": 7}, Complete: true})
	if r := s.Searches[1]; r.Reports() || r.Replied != 7 {
		t.Errorf("%+v", r)
	}
	s.command("tune4", tune("kernels/a")).seen(facts(headTwo))
	s.tells("past a@1 #1 done PASS", "search a@1 #1 abandoned", "search a@1 #1 done PASS", "search a@1 #1 abandoned", "needs plan", "dropping 1")
}

func TestOverrideEndsWithTheHead(t *testing.T) {
	give := func(sha string) Effect {
		return Effect{Override: &Override{For: given(sha), By: "ann", Reason: "hotfix"}}
	}
	s := begin(t).seen(facts(headOne)).plan().command("stale", give(headTwo)).tells()
	s.command("o", give(headOne)).tells("overridden")
	s.seen(facts(headOne, "perf")).plan().tells("overridden")
	s.seen(facts(headTwo)).plan().tells()
	s.seen(facts(headOne)).plan().tells()
}

func TestClosedAndReopened(t *testing.T) {
	closed := facts(headOne)
	closed.Open = false
	s := begin(t).seen(facts(headOne)).plan(kernel("a"), kernel("b")).finish("a", gates.Pass).start("b")
	s.seen(closed).tells("run a@1 #1 done PASS", "run b@1 #1 abandoned", "dropping 1")
	s.dropped().published().tells("run a@1 #1 done PASS", "run b@1 #1 abandoned", "settled")

	t.Run("what was ended is planned again", func(t *testing.T) {
		after := &story{State: s.Clone(), t: t, seq: s.seq}
		after.seen(facts(headOne)).tells("run a@1 #1 done PASS", "run b@1 #1 abandoned", "needs plan")
		after.plan(kept("a"), kernel("b")).tells("run a@1 #1 done PASS", "run b@1 #1 queued", "past b@1 #1 abandoned", "wanted 1")
	})
	t.Run("what was cancelled stays so", func(t *testing.T) {
		after := &story{State: s.Clone(), t: t, seq: s.seq}
		after.command("cancel", Effect{Cancel: headOne}).seen(facts(headOne)).tells("run a@1 #1 done PASS", "run b@1 #1 abandoned", "cancelled")
	})
	t.Run("what was done needs no other plan", func(t *testing.T) {
		begin(t).seen(facts(headOne)).plan(kernel("a")).finish("a", gates.Pass).seen(closed).seen(facts(headOne)).tells("run a@1 #1 done PASS")
	})
	if s.NeedsPlan() {
		t.Error("the clones' plans are this one's")
	}
}

func TestLeases(t *testing.T) {
	s := begin(t).seen(facts(headOne)).plan(kernel("a"))
	job := s.job("a")
	s.then(Started{Job: job, Token: 2, Runner: "second"}, Started{Job: job, Token: 1, Runner: "first"})
	s.then(Finished{Job: job, Token: 1, Runner: "first", Result: Result{Outcome: gates.Pass}}).tells("run a@1 #1 running", "wanted 1")
	s.then(Finished{Job: job, Token: 2, Result: Result{Outcome: gates.Defer}}).tells("run a@1 #1 done DEFER")
	if r, _ := s.Run(job); r.Runner != "second" {
		t.Errorf("the runner is %q", r.Runner)
	}
	s.then(Finished{Job: job, Token: 3, Result: Result{Outcome: gates.Pass}}).tells("run a@1 #1 done DEFER")
}

func TestCommands(t *testing.T) {
	ask := Asked{ID: "comment-1", By: "ann", Request: grammar.Request{Command: grammar.Explain{}}}
	s := begin(t).seen(facts(headOne)).plan().published().then(ask, ask).tells()
	if len(s.Unanswered()) != 1 {
		t.Fatalf("%d commands wait", len(s.Unanswered()))
	}
	s.then(Answered{ID: "comment-2", OK: true}, Answered{ID: "comment-1", OK: true, Answer: Answer{Kind: AnswerHelp}}, Answered{ID: "comment-1", Answer: Answer{Kind: AnswerNoCommand}})
	s.then(Published{Replies: map[string]int64{"comment-1": 99, "comment-3": 1}, Checks: map[string]Posted{"c@1": {ID: 4}}, Comment: &Posted{ID: 5}, Complete: true})
	s.tells("settled")
	want := []Command{{Asked: ask, When: time.Unix(12, 0).UTC(), Answered: true, OK: true, Answer: Answer{Kind: AnswerHelp}, Replied: 99}}
	if diff := cmp.Diff(want, s.Commands); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
	if s.Checks["c@1"].ID != 4 || s.Comment.ID != 5 {
		t.Errorf("posted: %v, %v", s.Checks, s.Comment)
	}
}

// A word means the kernel in that folder, or all of that name.
func TestMeant(t *testing.T) {
	twice := kernel("a")
	twice.Name, twice.Folder = "a (kernels/b)", "kernels/b"
	s := begin(t).seen(facts(headOne)).plan(kernel("a"), twice, kernel("c"))
	for word, want := range map[string][]string{
		"a": {"kernels/a", "kernels/b"}, "kernels/b": {"kernels/b"}, "a (kernels/b)": {"kernels/b"}, "c": {"kernels/c"}, "kernels/a": {"kernels/a"}, "b": nil, "": nil,
	} {
		var got []string
		for _, r := range s.Meant(word) {
			got = append(got, r.Folder)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q means %v, want %v", word, got, want)
		}
	}
}
