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

// status returns the newest status of a context on a commit.
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

// TestStatusIsTheDefault checks that a job reports with commit statuses unless the workflow asks
// for checks. A branch that requires the status admits only changes that pass.
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

// TestStatusOfAFork checks that a change that waits for approval is pending, and passes after the
// approval.
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

// TestStatusOfAMergeGroup checks that a merge group has a status on its own commit, which advances
// the queue.
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

// TestStatusOfTheSameHead checks that the status of a second pull request with the same head does
// not hide the verdict of the first, because a status belongs to a commit.
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

// TestStatusAfterAKilledJob checks that attempts are counted across jobs that report with statuses,
// and that a killed job leaves no pending status on a commit that is no longer the head.
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

// TestStatusWithoutCounting checks that nothing is measured if attempts cannot be counted, as long
// as a verdict could be written.
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

// TestStatusWithReadOnlyToken checks that with a read-only token only the job carries the verdict.
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

// TestUnfinishedCheckOfAnotherApp checks that a job does not conclude an unfinished check of a
// different App under the same name, and that this does not affect what the job may write.
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
