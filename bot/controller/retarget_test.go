package controller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/planner"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// An author chooses the base of a pull request, and so the policy. A decision that is given for one base must not hold for another.

// ownRules makes a branch of walt's with more lines in its policy. Without lines it has no policy.
func (w *world) ownRules(branch, lines string) {
	w.Helper()
	c := embedded.Commit{Branch: branch, From: w.repo.Head("main"), Author: "walt", Message: "My own rules", Delete: []string{policyFile}}
	if lines != "" {
		c.Delete, c.Files = nil, map[string]string{policyFile: policyYAML + lines}
	}
	_, err := w.repo.PushCommit(c)
	w.no(err)
}

// bringTo opens a pull request of walt's to a base.
func (w *world) bringTo(base, source string) *embedded.PR {
	w.Helper()
	_, err := w.repo.PushCommit(embedded.Commit{Branch: "evil", From: w.repo.Head("main"), Author: "walt", Message: "Faster", Files: map[string]string{sourceFile: source}})
	w.no(err)
	pr, err := w.repo.OpenPR(embedded.PROptions{Title: "Faster", Head: "evil", Base: base, Author: "walt"})
	w.no(err)
	return pr
}

// retargeted gives a pull request a different base, and waits for its conclusion there.
func (w *world) retargeted(pr *embedded.PR, base, conclusion string) embedded.Check {
	w.Helper()
	w.no(pr.Edit("walt", pr.State().Title, "", base))
	w.settle()
	c := w.concluded(pr.HeadSHA(), conclusion)
	if base != "main" { // only main is protected
		return c
	}
	if err := pr.Merge("walt"); conclusion != "success" && err == nil {
		w.Fatal("merged")
	}
	return c
}

func TestOverrideOfAnotherBase(t *testing.T) {
	w := newWorld(t, worldOptions{})
	w.ownRules("mine", "commands: {override: write}\n")
	pr := w.bringTo("mine", "// speed 0.5\n")
	w.concluded(pr.HeadSHA(), "failure")
	w.reacted(pr, w.comment(pr, "walt", "/override mine"), "rocket")
	w.concluded(pr.HeadSHA(), "success")
	c := w.retargeted(pr, "main", "failure")
	if text := "`/override` by"; !strings.Contains(c.Summary, text) || !strings.Contains(c.Summary, "it was given for the base branch `mine`") {
		t.Errorf("the check does not say that the override is void: %s", c.Summary)
	}
	// Nor does it come back.
	w.retargeted(pr, "mine", "failure")
	w.retargeted(pr, "main", "failure")
	w.golden("override-of-another-base", []*embedded.PR{pr})
}

func TestApprovalOfAnotherBase(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	w.hub.CreateUser("wes")
	w.no(w.repo.Grant("wes", embedded.Write))
	w.ownRules("mine", "commands: {approve-policy: write}\n")
	loose := strings.Replace(policyYAML, `speedup: ">= +10%"`, `speedup: ">= -90%"`, 1)
	_, err := w.repo.PushCommit(embedded.Commit{Branch: "evil", From: w.repo.Head("main"), Author: "walt", Message: "Loosen", Files: map[string]string{policyFile: loose}})
	w.no(err)
	pr, err := w.repo.OpenPR(embedded.PROptions{Title: "Loosen", Head: "evil", Base: "mine", Author: "walt"})
	w.no(err)
	w.concluded(pr.HeadSHA(), "action_required")
	w.reacted(pr, w.comment(pr, "wes", "/approve-policy "+pr.HeadSHA()), "rocket")
	w.concluded(pr.HeadSHA(), "success")
	w.retargeted(pr, "main", "action_required")
}

func TestForkApprovalOfAnotherBase(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	w.ownRules("mine", "commands: {ok-to-test: read}\n")
	_, err := w.repo.Push("main", map[string]string{policyFile: policyYAML + "forks: {run: never}\ncommands: {ok-to-test: admin}\n"}, "Never forks")
	w.no(err)
	w.settle()
	fork, err := w.repo.Fork("eve")
	w.no(err)
	_, err = fork.Push("evil", map[string]string{sourceFile: "// speed 1.5\n"}, "Evil")
	w.no(err)
	pr, err := w.repo.OpenPR(embedded.PROptions{Title: "Evil", Head: "evil", HeadRepo: fork, Base: "mine", Author: "eve"})
	w.no(err)
	w.concluded(pr.HeadSHA(), "action_required")
	w.reacted(pr, w.comment(pr, "rita", "/ok-to-test "+pr.HeadSHA()), "rocket")
	w.settle()
	c := w.retargeted(pr, "main", "action_required")
	if !strings.Contains(c.Title, "Code from forks is not run here") {
		t.Errorf("the check says %q", c.Title)
	}
}

// stuckMirrors fails to fetch while it is stuck.
type stuckMirrors struct {
	planner.Mirrors
	stuck *atomic.Bool
}

func (m stuckMirrors) FetchHead(ctx context.Context, repo, head string, refs ...string) (*checkout.Repo, error) {
	if m.stuck.Load() {
		return nil, errors.New("the plan is slow or fails")
	}
	return m.Mirrors.FetchHead(ctx, repo, head, refs...)
}

// The check of a head is pending from the moment that the bot knows of a new base, before it plans, also if a closed pull request
// with the same head had passed.
func TestGreenEndsBeforeThePlan(t *testing.T) {
	for _, second := range []bool{false, true} {
		t.Run(fmt.Sprintf("second %v", second), func(t *testing.T) {
			var stuck atomic.Bool
			w := newWorld(t, worldOptions{retold: second, look: func(m planner.Mirrors) planner.Mirrors { return stuckMirrors{m, &stuck} }})
			w.ownRules("mine", "")
			pr := w.bringTo("mine", "// WRONG speed 0.1\n")
			w.concluded(pr.HeadSHA(), "success")
			w.settle()
			stuck.Store(true)
			if second {
				w.no(pr.Close("walt"))
				var err error
				pr, err = w.repo.OpenPR(embedded.PROptions{Title: "Again", Head: "evil", Base: "main", Author: "walt"})
				w.no(err)
			} else {
				w.no(pr.Edit("walt", "Faster", "", "main"))
			}
			w.until("the old conclusion is retracted", func() bool {
				c, _ := w.repo.Check(pr.HeadSHA(), "kernelgate")
				return c.Status == "in_progress" && pr.MergeRefusal("walt") != ""
			})
			stuck.Store(false)
			w.concluded(pr.HeadSHA(), "failure")
		})
	}
}

// Evidence of a device that the base does not allow is not used, whoever changed the devices.
func TestDeviceOfAnotherBase(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	w.ownRules("mine", "# mine\n")
	pr := w.propose("faster", "// speed 1.5\n", embedded.PROptions{Title: "Faster"})
	w.concluded(pr.HeadSHA(), "success")
	other := w.bringTo("mine", "// speed 1.6\n")
	w.concluded(other.HeadSHA(), "success")
	_, err := w.repo.Push("main", map[string]string{policyFile: strings.Replace(policyYAML, "devices: [cpu]", "devices: [h200]", 1)}, "Another device")
	w.no(err)
	w.no(other.Edit("walt", "Faster", "", "main"))
	for _, one := range []*embedded.PR{pr, other} {
		w.until("a runner is missing", func() bool {
			c, _ := w.repo.Check(one.HeadSHA(), "kernelgate")
			return c.Status == "in_progress" && strings.Contains(c.Title+c.Summary, "h200")
		})
		if one.MergeRefusal("walt") == "" {
			t.Errorf("#%d was never measured on an h200", one.Number())
		}
	}
}

// The commit of a merge group has one check, whoever opens a pull request with it.
func TestGroupsHeadInAPullRequest(t *testing.T) {
	for _, branch := range []string{"the queue's", "a writer's"} {
		t.Run(branch, func(t *testing.T) {
			w := newWorld(t, worldOptions{retold: branch != "the queue's"})
			w.repo.ProtectBranch("main", embedded.Protection{Checks: []embedded.RequiredCheck{{Context: "kernelgate"}}, Queue: true})
			w.ownRules("mine", "")
			pr := w.bringTo("mine", "// HOLD speed 0.1\n") // a wrong kernel would not be held: it is never timed
			w.until("it passes there", func() bool { c, _ := w.repo.Check(pr.HeadSHA(), "kernelgate"); return c.Conclusion == "success" })
			w.no(pr.Edit("walt", "Faster", "", "main"))
			w.no(w.repo.Enqueue("walt", pr)) // before the bot has the webhook
			group := w.repo.QueueHeads()[0]
			w.until("the group is being measured", func() bool { c, _ := w.repo.Check(group, "kernelgate"); return c.Status == "in_progress" })
			head := fmt.Sprintf("gh-readonly-queue/main/pr-%d-%s", pr.Number(), w.repo.Head("main"))
			if branch != "the queue's" {
				head = "look"
				w.no(w.repo.CreateBranch("walt", head, group))
			}
			second, err := w.repo.OpenPR(embedded.PROptions{Title: "Look", Head: head, Base: "mine", Author: "walt"})
			w.no(err)
			w.until("the second pull request is read", func() bool {
				for _, c := range w.repo.Checks(group) {
					if c.Conclusion == "success" {
						t.Fatalf("the commit of the group passes: %s, %s: %s", c.Name, c.Title, c.Summary)
					}
				}
				c, _ := w.repo.Check(group, "kernelgate")
				return strings.Contains(c.Title, "A merge group has the same head")
			})
			close(w.hold)
			w.until("the verdict on the group", func() bool { return len(w.repo.QueueHeads()) == 0 })
			if pr.State().Merged || second.State().Merged {
				t.Error("merged")
			}
		})
	}
}

// A stranger's pull request with somebody else's head, or with the commit of a merge group, blocks nobody.
func TestStrangerBlocksNobody(t *testing.T) {
	w := newWorld(t, worldOptions{})
	pr := w.propose("faster", "// speed 1.5\n", embedded.PROptions{Title: "Faster"})
	w.concluded(pr.HeadSHA(), "success")
	fork, err := w.repo.Fork("eve")
	w.no(err)
	other, err := w.repo.OpenPR(embedded.PROptions{Title: "Mine", Head: "faster", HeadRepo: fork, Base: "main", Author: "eve"})
	w.no(err)
	w.settle()
	c := w.concluded(pr.HeadSHA(), "success")
	if refusal := pr.MergeRefusal("walt"); refusal != "" {
		t.Errorf("refused by %s: %s", c.Title, refusal)
	}
	w.no(other.Close("eve"))
	group := w.enqueued(pr)
	w.no(fork.CreateBranch("eve", "copy", group))
	_, err = w.repo.OpenPR(embedded.PROptions{Title: "Copy", Head: "copy", HeadRepo: fork, Base: "main", Author: "eve"})
	w.no(err)
	w.settle()
	w.concluded(group, "success")
	w.setStatus(group, "patience", "success")
	w.until("the merge", func() bool { return pr.State().Merged })
}
