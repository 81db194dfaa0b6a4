package present

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/report"
	"github.com/kernelgate/kernelgate/policies"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
)

var (
	sha1 = strings.Repeat("a1", 20)
	sha2 = strings.Repeat("b2", 20)
	base = strings.Repeat("c3", 20)
)

// judge is the verdict on committed evidence under the shipped policy, after the
// evidence was bent by change.
func judge(t testing.TB, name string, change func(*gates.Evidence)) *gates.Verdict {
	t.Helper()
	file := filepath.Join("..", "..", "kernels", "sdpa_fp8", "evidence", name+".json")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	e, err := gates.ParseEvidence(name, data)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(e)
	}
	text, err := policies.Shipped("h200")
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("h200.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	return gates.Judge(p, "h200.yaml", e)
}

func unbuilt(e *gates.Evidence) {
	e.Correctness, e.Performance, e.Profile, e.SameCode = nil, nil, nil, false
	e.Candidate.OK, e.Candidate.Error, e.Candidate.Resources = false, "2 errors in stage1.cu", nil
	e.Candidate.Diagnostics = []gates.Diagnostic{
		{File: "stage1.cu", Line: 131, Severity: "error", Message: `identifier "cp_async_wait" is undefined`},
		{File: "../common.cuh", Line: 9, Column: 4, Severity: "error", Message: "no instance of function template \"at<float>\" matches, says @octocat"},
		{File: "/usr/include/math.h", Line: 40, Severity: "error", Message: "in a header of the system"},
	}
}

// A story is a change to which one thing after another happens.
type story struct {
	t     testing.TB
	state *change.State
	at    time.Time
	view  View
}

func tell(t testing.TB) *story { return tellOf(t, change.ID{Kind: change.Pull, Repo: 7, Number: 12}) }

func tellOf(t testing.TB, id change.ID) *story {
	s := &story{t: t, state: change.New(id), at: time.Date(2025, 3, 14, 9, 0, 0, 0, time.UTC)}
	s.view = View{
		State: s.state, Verdicts: map[string]*gates.Verdict{}, Progress: map[string]runners.LogEntry{}, Tried: map[string][]change.Tried{}, Buttons: true,
		Runners: []RunnerInfo{{Name: "h200-1", Labels: []string{"h200"}}},
	}
	return s
}

func (s *story) do(events ...change.Event) *story {
	for _, e := range events {
		s.at = s.at.Add(time.Minute)
		s.view.Now = s.at
		s.state.Apply(s.state.Seq+1, s.at, e)
	}
	return s
}

func facts(head string) change.Facts {
	return change.Facts{Repo: "example/attention", DefaultBranch: "main", Title: "Overlap copies with cp.async", Author: "ada", Open: true, Head: head, Base: "main"}
}

func (s *story) seen(bend func(*change.Facts)) *story {
	f := s.state.Facts
	if f.Head == "" {
		f = facts(sha1)
	}
	if bend != nil {
		bend(&f)
	}
	return s.do(change.Seen{Facts: f})
}

func (s *story) push(head string) *story {
	return s.seen(func(f *change.Facts) { f.Head = head })
}

// planned makes a plan of the facts as they are, for kernels of these names.
func (s *story) planned(bend func(*change.Plan), names ...string) *story {
	p := change.Plan{Key: s.state.Facts.PlanKey(), Head: s.state.Facts.Head, Base: base, Check: "kernelgate", PolicyFile: ".github/kernelgate.yaml", Forks: "after-approval"}
	for _, n := range names {
		p.Kernels = append(p.Kernels, change.Kernel{KernelSpec: change.KernelSpec{Name: n, Folder: "kernels/" + n, Rule: "default", Labels: []string{"h200"}, Sources: "s", Bundle: "b"}})
	}
	if bend != nil {
		bend(&p)
	}
	return s.do(change.Planned{Plan: p})
}

func (s *story) job(kernel string) string {
	r, ok := s.state.ByFolder("kernels/" + kernel)
	if !ok {
		s.t.Fatalf("no run of %s", kernel)
	}
	return r.Job
}

func (s *story) started(kernel string) *story {
	return s.do(change.Started{Job: s.job(kernel), Token: s.state.Seq, Runner: "h200-1"})
}

func (s *story) finished(kernel string, v *gates.Verdict) *story {
	return s.finishedJob(s.job(kernel), kernel, v)
}

func (s *story) finishedJob(job, kernel string, v *gates.Verdict) *story {
	named := *v
	named.Kernel = kernel
	rename := strings.NewReplacer(" sdpa_fp8", " "+kernel) // the evidence is of one kernel, whose name its commands have
	named.Provenance.Command, named.ToPass = rename.Replace(named.Provenance.Command), slices.Clone(named.ToPass)
	for i, step := range named.ToPass {
		named.ToPass[i] = rename.Replace(step)
	}
	if named.Provenance.Base.SHA != "" {
		named.Provenance.Base.SHA = base
	}
	s.view.Verdicts[job] = &named
	return s.do(change.Finished{Job: job, Token: s.state.Seq, Runner: "h200-1", Result: change.Result{
		Outcome: v.Outcome, Reason: v.Reason, Line: report.OneLine(&named), Rule: v.Rule, Enforce: v.Enforce, Verdict: "blob", Device: v.Device.Name}})
}

func (s *story) commanded(id, by, text string, ok bool, effect change.Effect) *story {
	return s.do(change.Asked{ID: id, Comment: 1, By: by, Request: grammar.Read(text), Head: s.state.Facts.Head},
		change.Answered{ID: id, OK: ok, Answer: change.Answer{Kind: change.AnswerExtraRun}, Effect: effect})
}

// shown gives every run a page, to everybody or not.
func (s *story) shown(public bool) *story {
	s.view.Pages, s.view.Web = map[string]Page{}, "https://github.com"
	for _, r := range s.view.State.Runs {
		p := Page{URL: "https://gate.example/runs/" + r.Job, History: "https://gate.example/kernels/example/attention/" + r.Folder}
		if public {
			p.Picture = p.URL + "/intervals.png"
		}
		s.view.Pages[r.Job] = p
	}
	return s
}
