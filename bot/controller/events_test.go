package controller_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
)

// Code from a fork reaches a runner only at a commit that somebody approved.
func TestForkWaitsForApproval(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	fork, err := w.repo.Fork("eve")
	w.no(err)
	_, err = fork.PushCommit(embedded.Commit{Branch: "faster", Author: "eve", Files: map[string]string{"kernels/scale/scale.c": "// speed 1.4\n"}, Message: "Faster"})
	w.no(err)
	pr, err := w.repo.OpenPR(embedded.PROptions{Author: "eve", Title: "From afar", Head: "faster", HeadRepo: fork})
	w.no(err)
	first := pr.HeadSHA()
	w.concluded(first, "action_required")
	w.golden("fork-waiting", []*embedded.PR{pr})
	w.reacted(pr, w.comment(pr, "eve", "/ok-to-test "+first), "confused")
	w.settle() // the reply stands before the next comment
	w.reacted(pr, w.comment(pr, "walt", "/ok-to-test 0123456789"), "confused")
	w.settle() // the reply stands before the next comment
	w.reacted(pr, w.comment(pr, "walt", "/rebench"), "confused")
	w.settle() // the reply stands before the next comment
	if c, _ := w.repo.Check(first, "kernelgate"); c.Conclusion != "action_required" {
		t.Fatalf("the check became %s without approval", c.Conclusion)
	}
	w.reacted(pr, w.comment(pr, "walt", "/ok-to-test "+first[:10]), "confused")
	w.settle()                                    // the reply stands before the next comment
	w.said(pr, "comment `/ok-to-test "+first+"`") // to copy
	if c, _ := w.repo.Check(first, "kernelgate"); c.Conclusion != "action_required" {
		t.Fatalf("the check became %s by half an id", c.Conclusion)
	}
	w.reacted(pr, w.comment(pr, "walt", "/ok-to-test "+first), "rocket")
	w.concluded(first, "success")
	_, err = fork.PushCommit(embedded.Commit{Branch: "faster", Author: "eve", Files: map[string]string{"kernels/scale/scale.c": "// speed 1.5\n"}, Message: "Faster still"})
	w.no(err)
	w.concluded(pr.HeadSHA(), "action_required")
	if err := pr.Merge("olga"); err == nil {
		t.Error("a new push of a fork was merged unseen")
	}
	w.golden("fork", []*embedded.PR{pr}, first)
}

func TestMergeQueue(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	w.repo.ProtectBranch("main", embedded.Protection{Checks: []embedded.RequiredCheck{{Context: "kernelgate"}}, Queue: true})
	pr := w.propose("faster", "// speed 1.3\n", embedded.PROptions{Title: "Faster"})
	w.concluded(pr.HeadSHA(), "success")
	w.no(w.repo.Enqueue("olga", pr))
	heads := w.repo.QueueHeads()
	if len(heads) != 1 {
		t.Fatalf("the queue has %d groups", len(heads))
	}
	w.concluded(heads[0], "success")
	w.until("the merge", func() bool { return pr.State().Merged })
	w.golden("merge-queue", nil, heads[0])
}

// An override is for the commits that were looked at, on their way through the
// queue too.
func TestOverrideInTheMergeQueue(t *testing.T) {
	w := newWorld(t, worldOptions{})
	w.repo.ProtectBranch("main", embedded.Protection{Checks: []embedded.RequiredCheck{{Context: "kernelgate"}}, Queue: true})
	pr := w.propose("slow", "// speed 1.0001\n", embedded.PROptions{Title: "No gain"})
	w.concluded(pr.HeadSHA(), "failure")
	if err := w.repo.Enqueue("olga", pr); err == nil {
		t.Error("a deferred pull request entered the queue")
	}
	w.reacted(pr, w.comment(pr, "mara", "/override it fixes a bug"), "rocket")
	w.concluded(pr.HeadSHA(), "success")
	w.no(w.repo.Enqueue("olga", pr))
	w.until("the merge", func() bool { return pr.State().Merged })
}

func TestClosedWhileRunning(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	pr := w.propose("held", "// HOLD speed 1.5\n", embedded.PROptions{Title: "Held"})
	w.until("a running check", func() bool {
		c, _ := w.repo.Check(pr.HeadSHA(), "kernelgate")
		return c.Status == "in_progress" && strings.Contains(c.Summary+c.Text+c.Title, "round")
	})
	w.no(pr.Close("walt"))
	w.concluded(pr.HeadSHA(), "cancelled")
	w.golden("closed", []*embedded.PR{pr})
	close(w.hold)
	w.no(pr.Reopen("walt"))
	w.concluded(pr.HeadSHA(), "success")
}

func TestBaseWithoutPolicy(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true, noPolicy: true})
	plain := w.propose("faster", "// speed 1.3\n", embedded.PROptions{Title: "Faster"})
	w.concluded(plain.HeadSHA(), "success")
	_, err := w.repo.Push("gate", map[string]string{".github/kernelgate.yaml": policyYAML, "kernels/scale/scale.c": "// speed 1.01\n"}, "A gate")
	w.no(err)
	pr, err := w.repo.OpenPR(embedded.PROptions{Author: "walt", Title: "A gate", Head: "gate"})
	w.no(err)
	w.said(pr, "DEFER") // what the head's policy would say
	w.concluded(pr.HeadSHA(), "success")
	w.golden("no-policy", []*embedded.PR{plain, pr})
}

func TestBrokenPolicy(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	_, err := w.repo.Push("main", map[string]string{".github/kernelgate.yaml": strings.Replace(policyYAML, "pairs: 20", "pears: 20", 1)}, "Oops")
	w.no(err)
	pr := w.propose("faster", "// speed 1.3\n", embedded.PROptions{Title: "Faster"})
	w.concluded(pr.HeadSHA(), "failure")
	w.golden("broken-policy", []*embedded.PR{pr})
}

// A change cannot choose an old base to be judged by its milder rules, edit the
// gate it goes through, or shake it off by moving the kernel.
func TestNoWayAroundTheGate(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	old := w.repo.Head("main")
	_, err := w.repo.Push("main", map[string]string{".github/kernelgate.yaml": strings.Replace(policyYAML, "+10%", "+50%", 1)}, "Ask for more")
	w.no(err)
	_, err = w.repo.PushCommit(embedded.Commit{Branch: "early", From: old, Author: "walt", Message: "early", Files: map[string]string{
		"kernels/scale/scale.c": "// speed 1.3\n", ".github/kernelgate.yaml": strings.Replace(policyYAML, "+10%", "+1%", 1),
	}})
	w.no(err)
	early, err := w.repo.OpenPR(embedded.PROptions{Author: "walt", Title: "An early base", Head: "early"})
	w.no(err)
	w.concluded(early.HeadSHA(), "failure")
	_, err = w.repo.PushCommit(embedded.Commit{Branch: "moved", Author: "walt", Message: "moved", Delete: []string{
		"kernels/scale/kernel.yaml", "kernels/scale/scale.c", "kernels/scale/reference.c",
	}})
	w.no(err)
	moved, err := w.repo.OpenPR(embedded.PROptions{Author: "walt", Title: "Away", Head: "moved"})
	w.no(err)
	w.concluded(moved.HeadSHA(), "failure")
	w.reacted(moved, w.comment(moved, "walt", "/rebench"), "confused")
	_, err = w.repo.PushCommit(embedded.Commit{Branch: "renamed", Author: "walt", Message: "renamed", Delete: []string{
		"kernels/scale/kernel.yaml", "kernels/scale/scale.c", "kernels/scale/reference.c",
	}, Files: map[string]string{"kernels/zoom/kernel.yaml": manifestYAML, "kernels/zoom/scale.c": "// speed 9\n", "kernels/zoom/reference.c": "// the truth\n"}})
	w.no(err)
	renamed, err := w.repo.OpenPR(embedded.PROptions{Author: "walt", Title: "Elsewhere", Head: "renamed"})
	w.no(err)
	w.concluded(renamed.HeadSHA(), "failure")
	w.settle()
	if n := len(w.repo.Checks(renamed.HeadSHA())); n != 3 {
		t.Errorf("%d checks for a kernel that was moved, want the required one, the old one's and the new one's", n)
	}
	w.golden("no-way-around", []*embedded.PR{early, moved})
}

// A repository that cannot be read is told on the check, and the bot goes on once
// it can be.
func TestUnreadableRepository(t *testing.T) {
	w := newWorld(t, worldOptions{})
	w.settle()
	mirrors := filepath.Join(w.dir, "mirrors")
	w.no(os.MkdirAll(mirrors, 0o700))
	inTheWay := filepath.Join(mirrors, "olga")
	w.no(os.WriteFile(inTheWay, nil, 0o600))
	pr := w.propose("faster", "// speed 1.3\n", embedded.PROptions{Title: "Faster"})
	w.until("the trouble on the check", func() bool {
		c, _ := w.repo.Check(pr.HeadSHA(), "kernelgate")
		return c.Status == "in_progress" && strings.Contains(c.Title, "cannot be read") && strings.Contains(c.Summary, "pr-1001-1")
	})
	w.no(os.Remove(inTheWay))
	w.concluded(pr.HeadSHA(), "success")
}

// With a personal token there are no check runs: statuses stand in for them.
func TestPersonalToken(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true, pat: true})
	pr := w.propose("faster", "// speed 1.3\n", embedded.PROptions{Title: "Faster"})
	status := func(sha, state string) {
		w.Helper()
		w.until("a status "+state, func() bool {
			for _, s := range w.repo.Statuses(sha) {
				if s.Context == "kernelgate" && s.State == state {
					return true
				}
			}
			return false
		})
	}
	status(pr.HeadSHA(), "success")
	slow := w.propose("slow", "// speed 1.01\n", embedded.PROptions{Title: "Slow"})
	status(slow.HeadSHA(), "failure")
	w.golden("token", []*embedded.PR{pr, slow})
	if err := slow.Merge("olga"); err == nil {
		t.Error("a deferred pull request was merged")
	}
	w.no(pr.Merge("olga"))
}

// What a merge brings to the default branch was measured already.
func TestMergeIsHistory(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	pr := w.propose("faster", "// speed 1.3\n", embedded.PROptions{Title: "Faster"})
	w.concluded(pr.HeadSHA(), "success")
	w.settle()
	judged := w.running.bot.Counts().Judged
	w.no(pr.Merge("olga"))
	w.settle()
	points, err := w.running.ledger.OnMain(w.ctx, w.repo.ID(), "kernels/scale", 10)
	w.no(err)
	if len(points) != 1 || points[0].Head != w.repo.Head("main") || points[0].P50["mission"] > 80 {
		t.Errorf("the history is %+v, want the merge with about 77 µs", points)
	}
	runs, err := w.running.ledger.Runs(w.ctx, ledger.RunFilter{RepoID: w.repo.ID(), Folder: "kernels/scale"})
	w.no(err)
	for _, r := range runs {
		if r.Change.Kind == change.Push && (r.Runner != "" || w.running.bot.Counts().Judged != judged+1) {
			t.Errorf("the merge was measured again by %q", r.Runner)
		}
	}
}

// What reaches the default branch is measured for the history.
func TestHistory(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	_, err := w.repo.Push("main", map[string]string{"kernels/scale/scale.c": "// speed 1.2\n"}, "Faster")
	w.no(err)
	w.settle()
	points, err := w.running.ledger.OnMain(w.ctx, w.repo.ID(), "kernels/scale", 10)
	w.no(err)
	if len(points) != 1 || points[0].Head != w.repo.Head("main") || points[0].P50["mission"] < 80 || points[0].P50["mission"] > 87 {
		t.Errorf("the history is %+v, want one point of about 83 µs", points)
	}
}
