package change

import (
	"fmt"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/stats"
)

// A result remembers every time, and the speedup of each target that has a baseline.
func TestNewResult(t *testing.T) {
	v := &gates.Verdict{Outcome: gates.Pass, Rule: "default", Device: gates.Device{Name: "L4"}, Comparisons: []gates.Comparison{
		{Shape: "mission", Role: gates.RoleTarget, Baseline: &stats.Summary{P50: 10}, Candidate: &stats.Summary{P50: 8}, Speedup: gates.Estimate{Value: 0.25}},
		{Shape: "new", Role: gates.RoleTarget, Candidate: &stats.Summary{P50: 7}, Speedup: gates.Estimate{Value: 0.5}},
		{Shape: "guarded", Role: gates.RoleGuard, Baseline: &stats.Summary{P50: 6}, Candidate: &stats.Summary{P50: 6}, Speedup: gates.Estimate{Value: 0.01}},
		{Shape: "same", Role: gates.RoleTarget, Same: true},
	}}
	r := NewResult(v)
	if got := fmt.Sprint(r.P50, r.Speedups); got != "map[guarded:5.9405940594059405 mission:8 new:7] map[mission:0.25]" {
		t.Errorf("got %s", got)
	}
	if r.Outcome != gates.Pass || r.Rule != "default" || r.Device != "L4" || r.Line == "" {
		t.Errorf("got %+v", r)
	}
	v.Weighted = &gates.WeightedSpeed{Role: gates.RoleTarget, Baseline: 60, Candidate: 50, Speedup: gates.Estimate{Value: 0.2}}
	if r := NewResult(v); r.P50[gates.StepLabel] != 50 || r.Speedups[gates.StepLabel] != 0.2 {
		t.Errorf("of all launches of a step: %v %v", r.P50, r.Speedups)
	}
}

func TestRunsOfOneKernel(t *testing.T) {
	for _, c := range []struct {
		a, b Run
		same bool
	}{
		{Run{KernelSpec: KernelSpec{Name: "k", Folder: "x"}}, Run{KernelSpec: KernelSpec{Name: "k", Folder: "x"}}, true},
		{Run{KernelSpec: KernelSpec{Name: "k", Folder: "x"}}, Run{KernelSpec: KernelSpec{Name: "k", Folder: "y"}}, false},
		{Run{KernelSpec: KernelSpec{Name: "k", Folder: "x"}}, Run{KernelSpec: KernelSpec{Name: "renamed", Folder: "x"}}, true},
		{Run{KernelSpec: KernelSpec{Name: "k"}}, Run{KernelSpec: KernelSpec{Name: "k", Folder: "y"}}, true},
		{Run{KernelSpec: KernelSpec{Name: "k", Folder: "x"}}, Run{KernelSpec: KernelSpec{Name: "k"}}, true},
		{Run{KernelSpec: KernelSpec{Name: "k"}}, Run{KernelSpec: KernelSpec{Name: "other", Folder: "y"}}, false},
		{Run{KernelSpec: KernelSpec{Name: "k"}}, Run{KernelSpec: KernelSpec{Name: "other"}}, false},
	} {
		if got := c.a.Same(c.b); got != c.same {
			t.Errorf("%+v and %+v: %v", c.a, c.b, got)
		}
	}
	if got := (Run{KernelSpec: KernelSpec{Name: "k (kernels/k)", Folder: "kernels/k"}}).ManifestName(); got != "k" {
		t.Errorf("the manifest's name is %q", got)
	}
	for want, r := range map[int]Run{2: {Attempt: 2}, 5: {Attempt: 2, Result: &Result{Attempt: 5}}, 3: {Attempt: 3, Result: &Result{Attempt: 1}}} {
		if got := r.Count(); got != want {
			t.Errorf("%+v is attempt %d", r, got)
		}
	}
	for phase, unfinished := range map[Phase]bool{Queued: true, Running: true, Done: false, Abandoned: false} {
		if got := (Run{Phase: phase}).Unfinished(); got != unfinished {
			t.Errorf("%s is unfinished: %v", phase, got)
		}
	}
}

// A plan depends on what a rule can ask about, and stored facts have the same key as fresh ones.
func TestWhatAPlanDependsOn(t *testing.T) {
	base := Facts{Repo: "o/r", Head: headOne, Base: "main", Open: true}
	key := base.PlanKey()
	if key != "9f1dfb539c02d5c1" {
		t.Errorf("the key is %q: plans that are stored have another", key)
	}
	for name, c := range map[string]struct {
		change func(*Facts)
		same   bool
	}{
		"no labels, once stored": {func(f *Facts) { f.Labels = []string{} }, true},
		"another time":           {func(f *Facts) { f.Updated = time.Unix(9, 0) }, true},
		"closed":                 {func(f *Facts) { f.Open = false }, true},
		"another head":           {func(f *Facts) { f.Head = headTwo }, false},
		"another base":           {func(f *Facts) { f.Base = "release" }, false},
		"another base's tip":     {func(f *Facts) { f.BaseSHA = headTwo }, false},
		"a label":                {func(f *Facts) { f.Labels = []string{"x"} }, false},
		"another title":          {func(f *Facts) { f.Title = "x" }, false},
		"a draft":                {func(f *Facts) { f.Draft = true }, false},
		"other rules":            {func(f *Facts) { f.Rules = "x" }, false},
		"members":                {func(f *Facts) { f.Members = make([]Member, 1) }, false},
	} {
		f := base
		c.change(&f)
		if got := f.PlanKey() == key; got != c.same {
			t.Errorf("%s: the same key is %v", name, got)
		}
	}
	later := base
	later.Updated = time.Unix(9, 0)
	if !base.Same(later) || !later.Same(base) {
		t.Error("another time makes other facts")
	}
	later.Title = "x"
	if base.Same(later) {
		t.Error("another title makes no other facts")
	}
}

// What is to be done: nothing for what is closed, held, or has a plan for other facts.
func TestWantedAndSettled(t *testing.T) {
	wanted := func(s *story) int { return len(s.Wanted()) }
	done := func(s *story) *story { return s.then(Published{Complete: true}) }
	s := begin(t).seen(facts(headOne))
	if !s.NeedsPlan() || s.Current() != nil || done(s).Settled() {
		t.Error("a change that was seen needs a plan")
	}
	s.plan(kernel("scale"))
	if s.NeedsPlan() || s.Current() == nil || wanted(s) != 1 || done(s).Settled() {
		t.Error("a planned kernel is wanted")
	}
	s.start("scale")
	if wanted(s) != 1 || done(s).Settled() {
		t.Error("a running kernel is wanted")
	}
	s.finish("scale", gates.Pass)
	if wanted(s) != 0 || s.Settled() {
		t.Error("what was not published is not settled")
	}
	if !done(s).Settled() {
		t.Error("nothing is left to do")
	}
	if s.then(Asked{ID: "c"}); len(s.Unanswered()) != 1 || done(s).Settled() || !s.Asked(Asked{ID: "c"}) || s.Asked(Asked{ID: "d"}) {
		t.Error("a command is unanswered")
	}
	if s.then(Answered{ID: "c"}); len(s.Unanswered()) != 0 || !done(s).Settled() {
		t.Error("a command is answered")
	}
	if s.Dropping = []string{"job"}; s.Settled() {
		t.Error("a job is to be dropped")
	}
	closed := facts(headOne)
	closed.Open = false
	s = begin(t).seen(facts(headOne)).plan(kernel("scale"))
	if s.seen(closed); wanted(s) != 0 || s.NeedsPlan() {
		t.Error("nothing is wanted of what is closed")
	}
	fork := facts(headOne)
	fork.Fork = true
	s = begin(t).seen(fork).plan(kernel("scale"))
	if !s.Held() || wanted(s) != 0 {
		t.Error("a fork waits for an approval")
	}
	s.then(Asked{ID: "c"}, Answered{ID: "c", OK: true, Effect: Effect{Approve: &ForkApproved{For: given(headOne), By: "ann"}}})
	if s.Held() || wanted(s) != 1 {
		t.Error("an approved fork is wanted")
	}
}

func TestLookups(t *testing.T) {
	s := begin(t).seen(facts(headOne)).plan(kernel("scale"), kernel("gemm"))
	r, ok := s.Run(s.job("gemm"))
	if !ok || r.Name != "gemm" {
		t.Errorf("found %+v", r)
	}
	if _, ok := s.Run("no such job"); ok {
		t.Error("found a job that is not there")
	}
	if _, ok := s.ByFolder("kernels/none"); ok {
		t.Error("found a folder that is not there")
	}
	if _, ok := s.ByFolder(""); ok {
		t.Error("found a kernel without a folder")
	}
	for word, n := range map[string]int{"kernels/scale": 1, "scale": 1, "none": 0} {
		if got := s.Meant(word); len(got) != n {
			t.Errorf("%s means %+v", word, got)
		}
	}
	s.then(Published{Checks: map[string]Posted{CheckKey("a", headOne): {ID: 1}, CheckKey("b", headOne): {ID: 2}, CheckKey("a", headTwo): {ID: 3}}})
	if got := s.ChecksOf(headOne); len(got) != 2 {
		t.Errorf("checks of the head: %+v", got)
	}
	c := s.Clone()
	c.Apply(c.Seq+1, time.Unix(1, 0), Started{Job: s.job("scale"), Token: 1})
	c.Checks["x"] = Posted{}
	if r, _ := s.ByFolder("kernels/scale"); r.Phase != Queued || len(s.Checks) != 3 {
		t.Error("a clone shares what Apply changes")
	}
}

// Old events are refused by their token, finished runs stay finished, and what was forgotten stays so.
func TestLateEvents(t *testing.T) {
	s := begin(t).seen(facts(headOne)).plan(kernel("scale"))
	job := s.job("scale")
	run := func() Run { r, _ := s.Run(job); return r }
	s.then(Started{Job: job, Token: 5, Runner: "new"}, Started{Job: job, Token: 4, Runner: "old"})
	if r := run(); r.Runner != "new" || r.Token != 5 {
		t.Errorf("an old start counts: %+v", r)
	}
	if s.then(Built{Job: job, Token: 4}); run().Compiled != nil {
		t.Error("an old build counts")
	}
	if s.then(Built{Job: job, Token: 5}); run().Compiled == nil || run().Phase != Queued || run().Runner != "" {
		t.Errorf("a build: %+v", run())
	}
	if s.then(Started{Job: job, Token: 6, Runner: "gpu"}, Built{Job: job, Token: 6}); run().Phase != Running {
		t.Error("a second build counts")
	}
	if s.then(Finished{Job: job, Token: 5}); run().Phase != Running {
		t.Error("an old result counts")
	}
	s.then(Finished{Job: job, Token: 6, Result: Result{Outcome: gates.Pass}})
	if r := run(); r.Phase != Done || r.Runner != "gpu" || r.Result.Outcome != gates.Pass {
		t.Errorf("a result: %+v", r)
	}
	s.then(Started{Job: job, Token: 7}, Finished{Job: job, Token: 7, Result: Result{Outcome: gates.Defer}})
	if r := run(); r.Phase != Done || r.Result.Outcome != gates.Pass {
		t.Errorf("what is finished changes: %+v", r)
	}
	for range maxPast + 5 {
		s.command("again", Effect{Rebench: []Rerun{{Folder: "kernels/scale", Bundle: "b"}}})
		s.Commands = nil
		job = s.job("scale")
		s.then(Started{Job: job, Token: 1}, Finished{Job: job, Token: 1})
	}
	if len(s.Past) != maxPast || s.Past[0].Attempt != 6 || s.Runs[0].Attempt != maxPast+6 {
		t.Errorf("%d past runs from attempt %d, now %d", len(s.Past), s.Past[0].Attempt, s.Runs[0].Attempt)
	}
}
