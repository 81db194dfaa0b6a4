package embedded_test

import (
	"errors"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// refusal returns the status and message of an error answer, or zero if there is no error.
func (w *world) refusal(err error) (int, string) {
	w.Helper()
	if err == nil {
		return 0, ""
	}
	refused, ok := errors.AsType[*github.ErrorResponse](err)
	if !ok {
		w.Fatal(err)
	}
	return refused.Response.StatusCode, refused.Message
}

// TestLagOfCommits checks that checks and statuses do not know a commit for some time after a push,
// or after a pull request from a fork brought it.
func TestLagOfCommits(t *testing.T) {
	w := newWorld(t, embedded.Options{Lag: embedded.Lag{Commits: 10 * time.Second}})
	w.clock.Advance(time.Minute)
	fork, err := w.repo.Fork("eve")
	w.no(err)
	_, err = fork.PushCommit(embedded.Commit{Branch: "faster", Author: "eve", Files: map[string]string{"a.cu": "two\n"}, Message: "two"})
	w.no(err)
	w.clock.Advance(time.Minute) // the base repository does not know about the fork's push
	far := w.open(embedded.PROptions{Author: "eve", Title: "From afar", Head: "faster", HeadRepo: fork})
	near := w.push("near", map[string]string{"a.cu": "three\n"}, "three")
	main := w.repo.Head("main")
	c := w.bot()
	calls := map[string]func(sha string) error{
		"create a check": func(sha string) error {
			_, _, err := c.Checks.CreateCheckRun(w.ctx, "alice", "kernels", github.CreateCheckRunOptions{Name: "kernelgate", HeadSHA: sha})
			return err
		},
		"list checks": func(sha string) error {
			_, _, err := c.Checks.ListCheckRunsForRef(w.ctx, "alice", "kernels", sha, nil)
			return err
		},
		"set a status": func(sha string) error {
			_, _, err := w.person("alice").Repositories.CreateStatus(w.ctx, "alice", "kernels", sha, &github.RepoStatus{State: github.String("success")})
			return err
		},
	}
	begun := w.clock.Now()
	for _, after := range []time.Duration{0, 6 * time.Second, 10 * time.Second} {
		w.clock.Advance(begun.Add(after).Sub(w.clock.Now()))
		for name, call := range calls {
			for _, sha := range []string{far.HeadSHA(), near, main} {
				status, message := w.refusal(call(sha))
				want, says := 0, ""
				switch {
				case sha == main || after == 10*time.Second:
				case after == 0:
					want, says = http.StatusNotFound, "Not Found"
				default:
					want, says = http.StatusUnprocessableEntity, "No commit found for SHA: "+sha
				}
				if status != want || message != says {
					t.Errorf("after %v: %s of %.8s: %d %q, want %d %q", after, name, sha, status, message, want, says)
				}
			}
		}
	}
}

// TestLagOfPulls checks that the API shows single pull requests and lists as they were some time
// ago.
func TestLagOfPulls(t *testing.T) {
	w := newWorld(t, embedded.Options{})
	w.push("old", map[string]string{"b.cu": "two\n"}, "two")
	old := w.open(embedded.PROptions{Title: "Old", Head: "old"})
	w.hub.SetLag(embedded.Lag{Pulls: 10 * time.Second})
	pr := w.opened()
	second := w.push("old", map[string]string{"b.cu": "three\n"}, "three")
	w.no(old.Edit("alice", "Newer", "", ""))
	c := w.bot()
	shows := func(when string, n int, want string) {
		t.Helper()
		p, _, err := c.PullRequests.Get(w.ctx, "alice", "kernels", n)
		got := ""
		if status, _ := w.refusal(err); status != 0 {
			got = http.StatusText(status)
		} else {
			got = p.GetState() + " " + p.GetTitle() + " " + p.GetHead().GetSHA()
		}
		if got != want {
			t.Errorf("%s: #%d is %q, want %q", when, n, got, want)
		}
		all, _, err := c.PullRequests.List(w.ctx, "alice", "kernels", nil)
		w.no(err)
		listed := "Not Found"
		for _, p := range all {
			if p.GetNumber() == n {
				listed = p.GetState() + " " + p.GetTitle() + " " + p.GetHead().GetSHA()
			}
		}
		if strings.HasPrefix(want, "closed") {
			want = "Not Found"
		}
		if listed != want {
			t.Errorf("%s: #%d is listed as %q, want %q", when, n, listed, want)
		}
	}
	shows("at once", pr.Number(), "Not Found")
	_, _, err := c.Issues.CreateComment(w.ctx, "alice", "kernels", pr.Number(), &github.IssueComment{Body: github.String("Hello.")})
	if status, message := w.refusal(err); status != http.StatusNotFound || message != "Not Found" {
		t.Errorf("a comment: %d %q", status, message)
	}
	w.clock.Advance(10 * time.Second)
	shows("later", pr.Number(), "open Faster "+pr.HeadSHA())
	shows("later", old.Number(), "open Newer "+second)
	w.no(pr.Close("alice"))
	third := w.push("old", map[string]string{"b.cu": "four\n"}, "four")
	shows("right after", pr.Number(), "open Faster "+pr.HeadSHA())
	shows("right after", old.Number(), "open Newer "+second)
	w.clock.Advance(10 * time.Second)
	shows("in the end", pr.Number(), "closed Faster "+pr.HeadSHA())
	shows("in the end", old.Number(), "open Newer "+third)
}

// TestLagOfRefs checks that git fetches branches and pull request refs as they were some time ago.
func TestLagOfRefs(t *testing.T) {
	w := newWorld(t, embedded.Options{Lag: embedded.Lag{Refs: 10 * time.Second}})
	w.clock.Advance(time.Minute)
	refs := func() string {
		t.Helper()
		url := strings.Replace(w.repo.CloneURL(), "http://", "http://x:"+w.hub.CreateToken("alice")+"@", 1)
		out, err := exec.CommandContext(w.ctx, "git", "ls-remote", url, "refs/heads/*", "refs/pull/*/head").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var names []string
		for line := range strings.Lines(string(out)) {
			sha, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
			names = append(names, name+"="+sha[:8])
		}
		return strings.Join(names, " ")
	}
	before := "refs/heads/main=" + w.repo.Head("main")[:8]
	pr := w.opened()
	if got := refs(); got != before {
		t.Errorf("at once: %s, want %s", got, before)
	}
	w.clock.Advance(10 * time.Second)
	head := pr.HeadSHA()[:8]
	opened := "refs/heads/faster=" + head + " " + before + " refs/pull/1/head=" + head
	if got := refs(); got != opened {
		t.Errorf("later: %s, want %s", got, opened)
	}
	w.no(w.repo.DeleteBranch("faster"))
	if got := refs(); got != opened {
		t.Errorf("right after: %s, want %s", got, opened)
	}
	// A clone now gets the replica's refs, with their objects.
	url := strings.Replace(w.repo.CloneURL(), "http://", "http://x:"+w.hub.CreateToken("alice")+"@", 1)
	if out, err := exec.CommandContext(w.ctx, "git", "clone", "--quiet", "--branch=faster", url, t.TempDir()).CombinedOutput(); err != nil {
		t.Errorf("cloning what is deleted, and not yet at the replica: %v: %s", err, out)
	}
	w.clock.Advance(10 * time.Second)
	if got, want := refs(), before+" refs/pull/1/head="+head; got != want {
		t.Errorf("in the end: %s, want %s", got, want)
	}
}

// TestAutomaticBaseChange deletes base branches. If the branch's own pull request was merged,
// GitHub changes the base of the pull requests that target it, without a webhook. Otherwise it
// closes them.
func TestAutomaticBaseChange(t *testing.T) {
	w := newWorld(t, embedded.Options{RetargetPulls: true})
	w.push("parent", map[string]string{"a.cu": "two\n"}, "two")
	parent := w.open(embedded.PROptions{Title: "Parent", Head: "parent"})
	_, err := w.repo.PushCommit(embedded.Commit{Branch: "child", From: w.repo.Head("parent"), Files: map[string]string{"b.cu": "two\n"}, Message: "child"})
	w.no(err)
	child := w.open(embedded.PROptions{Title: "Child", Head: "child", Base: "parent"})
	w.push("other", map[string]string{"a.cu": "three\n"}, "three")
	w.push("late", map[string]string{"b.cu": "three\n"}, "three")
	late := w.open(embedded.PROptions{Title: "Late", Head: "late", Base: "other"})
	w.no(parent.Merge("alice"))
	w.quiet()
	told := len(w.app.Hook().Deliveries())
	w.no(w.repo.DeleteBranch("parent"))
	w.no(w.repo.DeleteBranch("other"))
	w.quiet()
	c := w.bot()
	p, _, err := c.PullRequests.Get(w.ctx, "alice", "kernels", child.Number())
	w.no(err)
	if p.GetState() != "open" || p.GetBase().GetRef() != "main" || p.GetBase().GetSHA() != w.repo.Head("main") {
		t.Errorf("the child is %s and goes to %s at %s", p.GetState(), p.GetBase().GetRef(), p.GetBase().GetSHA())
	}
	if late.State().Open {
		t.Error("the pull request to a branch that nobody merged is open")
	}
	var events []string
	all := w.app.Hook().Deliveries() // newest first
	for _, d := range slices.Backward(all[:len(all)-told]) {
		events = append(events, d.Event+"."+d.Action)
	}
	if got := strings.Join(events, " "); got != "push. push. pull_request.closed" {
		t.Errorf("told of %s", got)
	}
	list, _, err := c.Issues.ListIssueEvents(w.ctx, "alice", "kernels", child.Number(), nil)
	w.no(err)
	if len(list) != 1 || list[0].GetEvent() != "automatic_base_change_succeeded" {
		t.Errorf("the child's events are %v", list)
	}
}

// TestSuiteAdoption checks that each workflow run has a suite, and that a check created by a
// workflow may be in any of them.
func TestSuiteAdoption(t *testing.T) {
	w := newWorld(t, embedded.Options{})
	sha := w.opened().HeadSHA()
	c := w.bot()
	suites := map[int64]bool{}
	for _, job := range []string{"build", "lint", "gate"} {
		suites[w.repo.StartWorkflow(w.app, sha, job).Suite()] = true
	}
	adopted := map[int64]bool{}
	for range 20 {
		_, _, err := c.Checks.CreateCheckRun(w.ctx, "alice", "kernels", github.CreateCheckRunOptions{Name: "kernelgate", HeadSHA: sha})
		w.no(err)
		made, _ := w.repo.Check(sha, "kernelgate")
		adopted[made.Suite()] = true
	}
	if len(suites) != 3 || len(adopted) < 2 {
		t.Errorf("%d suites, of which %d have adopted a check", len(suites), len(adopted))
	}
}
