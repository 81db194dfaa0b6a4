package actions_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/runners"
)

// status is the newest of a context on a commit.
func (w *world) status(sha, context, state string) embedded.Status {
	w.Helper()
	for _, s := range w.repo.Statuses(sha) {
		if s.Context == context {
			if s.State != state {
				w.Errorf("the status %s is %s (%s), want %s", context, s.State, s.Description, state)
			}
			return s
		}
	}
	w.Errorf("there is no status %s, want %s", context, state)
	return embedded.Status{}
}

// Unless the workflow asks for checks, a job reports by commit statuses. A branch that requires
// the status lets in what passes and nothing else.
func TestStatusIsTheDefault(t *testing.T) {
	for name, report := range map[string]string{"unless said": "", "said": "status"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, mayWrite)
			w.report = report
			w.repo.ProtectBranch("main", embedded.Protection{Checks: []embedded.RequiredCheck{{Context: "kernelgate"}}})
			slow := w.propose("slower", source("speed 1.02"), embedded.PROptions{})
			w.must(w.act("pull_request"), "DEFER", "too-slow", 1)
			w.status(slow.HeadSHA(), "kernelgate", "failure")
			w.status(slow.HeadSHA(), "kernelgate / scale", "failure")
			if slow.Merge("walt") == nil {
				t.Error("a change that is too slow was merged")
			}
			fast := w.propose("faster", source("speed 1.3"), embedded.PROptions{})
			w.must(w.act("pull_request"), "PASS", "", 0)
			s := w.status(fast.HeadSHA(), "kernelgate", "success")
			if want := w.hub.URL() + "/olga/kernels/actions/runs/78?pr=2&"; !strings.HasPrefix(s.TargetURL, want) || s.Creator != "github-actions[bot]" {
				t.Errorf("the status by %s leads to %s, want %s…", s.Creator, s.TargetURL, want)
			}
			if n := len(w.repo.Checks(fast.HeadSHA())); n != 0 {
				t.Errorf("%d checks next to the status; GitHub would require both", n)
			}
			w.no(fast.Merge("walt"))
		})
	}
}

// What waits for a person is pending, and passes once somebody has spoken.
func TestStatusOfAFork(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	w.report = "status"
	fork, err := w.repo.Fork("eve")
	w.no(err)
	pr := w.propose("theirs", source("speed 1.3"), embedded.PROptions{HeadRepo: fork, Author: "eve"})
	w.must(w.act("pull_request"), "DEFER", "approval", 1)
	w.status(pr.HeadSHA(), "kernelgate", "pending")
	_, err = pr.Comment("walt", "/ok-to-test "+pr.HeadSHA())
	w.no(err)
	w.must(w.act("issue_comment"), "PASS", "", 0)
	w.status(pr.HeadSHA(), "kernelgate", "success")
}

// A merge group has a status on its own commit, by which the queue goes on.
func TestStatusOfAMergeGroup(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	w.report = "status"
	w.repo.ProtectBranch("main", embedded.Protection{Checks: []embedded.RequiredCheck{{Context: "kernelgate"}}, Queue: true})
	pr := w.propose("faster", source("speed 1.3"), embedded.PROptions{})
	w.must(w.act("pull_request"), "PASS", "", 0)
	w.no(w.repo.Enqueue("walt", pr))
	head := w.repo.QueueHeads()[0]
	w.must(w.act("merge_group"), "PASS", "", 0)
	w.status(head, "kernelgate", "success")
	if !pr.State().Merged {
		t.Error("the queue did not merge")
	}
}

// A status belongs to a commit: that of a second pull request with the same head must not hide
// what the first deserves.
func TestStatusOfTheSameHead(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	w.report = "status"
	gated, other := w.sameHead()
	s := w.status(gated.HeadSHA(), "kernelgate", "failure")
	w.holds(s.Description, "#1 has the same head: DEFER (correctness)")
	w.no(gated.Close("walt"))
	w.no(other.Label("walt", "again"))
	w.must(w.act("pull_request"), "PASS", "no-policy", 0)
	w.status(gated.HeadSHA(), "kernelgate", "success")
}

// Attempts are counted across jobs that report by statuses, and a job that was killed leaves no
// status pending on a commit that is the head no longer.
func TestStatusAfterAKilledJob(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	w.report = "status"
	all := w.attempts()
	killed := w.killed()
	w.status(killed, "kernelgate", "pending")
	w.status(killed, "kernelgate / scale", "pending")
	w.documented()
	w.counted("after a killed job", all, 2, 3)
	w.status(killed, "kernelgate", "error")
	w.status(killed, "kernelgate / scale", "error")
}

// Attempts that cannot be counted are not made, as long as a verdict could be written.
func TestStatusWithoutCounting(t *testing.T) {
	may := maps.Clone(mayWrite)
	may["checks"] = "read"
	w := newWorld(t, nil, may)
	w.report = "status"
	all := w.attempts()
	pr := w.propose("faster", source("speed 1.3"), embedded.PROptions{})
	j := w.act("pull_request")
	w.must(j, "ERROR", "runner", 3)
	w.holds(j.summary, "the workflow must grant checks: write")
	w.status(pr.HeadSHA(), "kernelgate", "error")
	w.counted("without the right to count", all)
}

// A token that may only read leaves the verdict to the job.
func TestStatusWithReadOnlyToken(t *testing.T) {
	w := newWorld(t, nil, mayRead)
	w.report = "status"
	pr := w.propose("slower", source("speed 1.02"), embedded.PROptions{})
	j := w.act("pull_request")
	w.must(j, "DEFER", "too-slow", 1)
	w.holds(j.summary, "statuses: write", "Commit statuses: read and write")
	if n := len(w.repo.Statuses(pr.HeadSHA())) + len(pr.Comments()); n != 0 {
		t.Errorf("%d things were written", n)
	}
}

// A check that a different App left unfinished under the same name is not ours to conclude. It
// takes nothing away from what this job may write.
func TestUnfinishedCheckOfAnotherApp(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	all := w.attempts()
	scripted := w.measure
	pr := w.propose("faster", source("speed 1.3"), embedded.PROptions{})
	actions := w.token
	w.token = w.tokenOf("my-gate", mayWrite)
	w.measure = func(context.Context, runners.Job, string, runners.Progress) (runners.Measured, error) {
		panic("killed")
	}
	func() {
		defer func() { _ = recover() }()
		w.act("pull_request")
	}()
	if c, _ := w.repo.Check(pr.HeadSHA(), "kernelgate / scale"); c.Status != "in_progress" {
		t.Fatalf("the other App's check is %s", c.Status)
	}
	w.token, w.measure = actions, scripted
	j := w.act("pull_request")
	w.must(j, "PASS", "", 0)
	w.check(pr.HeadSHA(), "kernelgate", "success")
	w.check(pr.HeadSHA(), "kernelgate / scale", "success")
	if strings.Contains(j.summary, "Not written to GitHub") {
		t.Errorf("the job says that it could not write:\n%s", j.summary)
	}
	if n := len(w.repo.Checks(pr.HeadSHA())); n != 4 {
		t.Errorf("%d checks, want two by each App", n)
	}
	if !slices.ContainsFunc(w.repo.Checks(w.repo.Head("main")), func(c embedded.Check) bool { return strings.Contains(c.Name, " attempts by ") }) {
		t.Error("the attempt was not counted")
	}
	if len(*all) != 1 {
		t.Errorf("measured in the attempts %v, want one", *all)
	}
}
