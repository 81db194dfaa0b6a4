package actions_test

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

const nothingAsked = "version: 1\ndevices: [cpu]\ngates: {}\nrules: [{name: default}]\n"

// maintainer gives mara the role that may approve.
func (w *world) maintainer() {
	w.Helper()
	w.hub.CreateUser("mara")
	w.no(w.repo.Grant("mara", embedded.Maintain))
}

// TestRulesWait checks that a change of the rules waits for approval in a workflow, too, and that
// every job finds the approval in the conversation.
func TestRulesWait(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	w.maintainer()
	pr := w.propose("easy", map[string]string{".github/kernelgate.yaml": nothingAsked}, embedded.PROptions{})
	head := pr.HeadSHA()
	waits := w.act("pull_request")
	w.must(waits, "DEFER", "rules", 1)
	w.check(head, "kernelgate", "action_required")
	w.golden("rules-wait", waits, pr)
	for _, test := range []struct{ name, who, text string }{
		{"the author", "walt", "/approve-policy " + head},
		{"a reader", "rita", "/approve-policy " + head},
		{"a short name", "mara", "/approve-policy " + head[:12]},
		{"another commit", "mara", "/approve-policy " + w.repo.Head("main")},
	} {
		_, err := pr.Comment(test.who, test.text)
		w.no(err)
		w.must(w.act("issue_comment"), "", "", 0)
		w.must(w.act("pull_request"), "DEFER", "rules", 1)
		w.check(head, "kernelgate", "action_required")
	}
	_, err := pr.Comment("mara", "/approve-policy "+head)
	w.no(err)
	w.must(w.act("issue_comment"), "PASS", "no-kernel", 0)
	w.holds(w.check(head, "kernelgate", "success").Summary, "**Approved** by @&#8203;mara")
	w.must(w.act("pull_request"), "PASS", "no-kernel", 0) // found in the conversation

	_, err = w.repo.Push("easy", map[string]string{"README.md": "More.\n"}, "more")
	w.no(err)
	w.must(w.act("pull_request"), "DEFER", "rules", 1)
}

// TestPushersDoNotApproveTheirPush checks that the account that pushed the head cannot approve it
// in a workflow either.
func TestPushersDoNotApproveTheirPush(t *testing.T) {
	w := newWorld(t, map[string]string{"CODEOWNERS": "/.github/ @mara\n"}, mayWrite)
	w.maintainer()
	pr := w.propose("easy", map[string]string{"README.md": "More.\n"}, embedded.PROptions{})
	_, err := w.repo.PushCommit(embedded.Commit{Branch: "easy", Author: "mara", Files: map[string]string{".github/kernelgate.yaml": nothingAsked}, Message: "Ask nothing"})
	w.no(err)
	_, err = pr.Comment("mara", "/approve-policy "+pr.HeadSHA())
	w.no(err)
	w.must(w.act("issue_comment"), "", "", 0)
	if all := pr.Comments(); !strings.Contains(all[len(all)-1].Body, "You pushed `"+pr.HeadSHA()+"`") {
		t.Errorf("the last comment says %s", all[len(all)-1].Body)
	}
	w.no(pr.Review("mara", "APPROVE", ""))
	w.must(w.act("pull_request"), "DEFER", "rules", 1)
	w.check(pr.HeadSHA(), "kernelgate", "action_required")
}

// TestRulesOfAManifest checks that a manifest belongs to the rules. A stricter manifest passes
// without approval, and a failing kernel keeps failing.
func TestRulesOfAManifest(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	w.maintainer()
	edited := func(abs string) map[string]string {
		return map[string]string{"kernels/scale/kernel.yaml": strings.Replace(manifest, "abs: 0.1", "abs: "+abs, 1)}
	}
	wide := w.propose("wide", edited("99"), embedded.PROptions{Labels: []string{"refactoring"}})
	w.must(w.act("pull_request"), "DEFER", "rules", 1)
	w.check(wide.HeadSHA(), "kernelgate", "action_required")
	_, err := wide.Comment("mara", "/approve-policy "+wide.HeadSHA())
	w.no(err)
	w.must(w.act("issue_comment"), "PASS", "", 0)
	w.propose("narrow", edited("0.05"), embedded.PROptions{Labels: []string{"refactoring"}})
	w.must(w.act("pull_request"), "PASS", "", 0)
	w.propose("slow", edited("98"), embedded.PROptions{})
	w.must(w.act("pull_request"), "DEFER", "too-slow", 1)
}

// TestRulesInAMergeGroup checks that a merge group may change the rules only if its pull request
// may.
func TestRulesInAMergeGroup(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	w.maintainer()
	w.repo.ProtectBranch("main", embedded.Protection{Checks: []embedded.RequiredCheck{{Context: "kernelgate"}}, Queue: true})
	pr := w.propose("easy", map[string]string{".github/kernelgate.yaml": nothingAsked}, embedded.PROptions{})
	said, err := pr.Comment("mara", "/approve-policy "+pr.HeadSHA())
	w.no(err)
	w.must(w.act("issue_comment"), "PASS", "no-kernel", 0)
	w.no(w.repo.Enqueue("olga", pr))
	head := w.repo.QueueHeads()[0]
	w.no(said.Edit("mara", "I take it back."))
	w.must(w.act("merge_group"), "DEFER", "rules", 1)
	w.check(head, "kernelgate", "action_required")
	if pr.State().Merged {
		t.Error("the queue merged what nobody approves")
	}
}

// TestApprovedRulesInAMergeGroup checks that an approved change of the rules passes the queue.
func TestApprovedRulesInAMergeGroup(t *testing.T) {
	w := newWorld(t, nil, mayWrite)
	w.maintainer()
	w.repo.ProtectBranch("main", embedded.Protection{Checks: []embedded.RequiredCheck{{Context: "kernelgate"}}, Queue: true})
	pr := w.propose("easy", map[string]string{".github/kernelgate.yaml": nothingAsked}, embedded.PROptions{})
	_, err := pr.Comment("mara", "/approve-policy "+pr.HeadSHA())
	w.no(err)
	w.must(w.act("issue_comment"), "PASS", "no-kernel", 0)
	w.no(w.repo.Enqueue("olga", pr))
	w.must(w.act("merge_group"), "PASS", "no-kernel", 0)
	if !pr.State().Merged {
		t.Error("the queue did not merge")
	}
}

// TestCodeOwnersReview checks that a code owner's review counts in a workflow, too. Reviews by
// others start nothing, and a dismissed review no longer counts.
func TestCodeOwnersReview(t *testing.T) {
	w := newWorld(t, map[string]string{"CODEOWNERS": "/.github/ @carl @walt\n"}, mayWrite)
	w.maintainer()
	w.hub.CreateUser("carl")
	w.no(w.repo.Grant("carl", embedded.Write))
	pr := w.propose("easy", map[string]string{".github/kernelgate.yaml": nothingAsked}, embedded.PROptions{})
	w.must(w.act("pull_request"), "DEFER", "rules", 1)
	review := func(who, event, verdict, reason string, exit int) {
		t.Helper()
		w.no(pr.Review(who, event, "Words."))
		w.must(w.act("pull_request_review"), verdict, reason, exit)
	}
	review("mara", "APPROVE", "", "", 0)
	review("rita", "REQUEST_CHANGES", "", "", 0)
	w.check(pr.HeadSHA(), "kernelgate", "action_required")
	review("carl", "APPROVE", "PASS", "no-kernel", 0)
	w.holds(w.check(pr.HeadSHA(), "kernelgate", "success").Summary, "**Approved** by @&#8203;carl")
	review("carl", "COMMENT", "", "", 0)
	review("rita", "REQUEST_CHANGES", "", "", 0)
	w.must(w.act("pull_request"), "PASS", "no-kernel", 0) // found again
	review("carl", "REQUEST_CHANGES", "DEFER", "rules", 1)
	w.check(pr.HeadSHA(), "kernelgate", "action_required")
	review("carl", "APPROVE", "PASS", "no-kernel", 0)
	w.no(pr.Dismiss("mara", "carl"))
	w.must(w.act("pull_request_review"), "DEFER", "rules", 1)
	w.check(pr.HeadSHA(), "kernelgate", "action_required")
	review("carl", "APPROVE", "PASS", "no-kernel", 0)

	_, err := w.repo.Push("easy", map[string]string{"README.md": "More.\n"}, "more")
	w.no(err)
	w.must(w.act("pull_request"), "DEFER", "rules", 1)
}

// TestCodeOwnersReviewInAMergeGroup checks that a review also lets a merge group change the rules.
func TestCodeOwnersReviewInAMergeGroup(t *testing.T) {
	w := newWorld(t, map[string]string{"CODEOWNERS": "* @carl\n"}, mayWrite)
	w.hub.CreateUser("carl")
	w.no(w.repo.Grant("carl", embedded.Write))
	w.repo.ProtectBranch("main", embedded.Protection{Checks: []embedded.RequiredCheck{{Context: "kernelgate"}}, Queue: true})
	pr := w.propose("easy", map[string]string{".github/kernelgate.yaml": nothingAsked}, embedded.PROptions{})
	w.no(pr.Review("carl", "APPROVE", ""))
	w.must(w.act("pull_request_review"), "PASS", "no-kernel", 0)
	w.no(w.repo.Enqueue("olga", pr))
	w.must(w.act("merge_group"), "PASS", "no-kernel", 0)
	if !pr.State().Merged {
		t.Error("the queue did not merge")
	}
}

// TestApprovalEndsWithAnotherBase checks that an approval for one branch does not hold for another,
// nor after the pull request is moved back.
func TestApprovalEndsWithAnotherBase(t *testing.T) {
	w := newWorld(t, map[string]string{"CODEOWNERS": "* @carl\n"}, mayWrite)
	w.maintainer()
	w.hub.CreateUser("carl")
	w.no(w.repo.Grant("carl", embedded.Write))
	_, err := w.repo.Push("next", map[string]string{"README.md": "Next.\n"}, "Another branch")
	w.no(err)
	fork, err := w.repo.Fork("eve")
	w.no(err)
	_, err = fork.Push("fast", source("speed 1.5"), "fast")
	w.no(err)
	rules := w.propose("easy", map[string]string{".github/kernelgate.yaml": nothingAsked}, embedded.PROptions{})
	approvals := map[string]func(pr *embedded.PR){
		"pull_request_review": func(pr *embedded.PR) { w.no(pr.Review("carl", "APPROVE", "")) },
		"issue_comment": func(pr *embedded.PR) {
			_, err := pr.Comment("mara", "/approve-policy "+pr.HeadSHA())
			w.no(err)
		},
	}
	to := "next"
	for event, approve := range approvals {
		w.later.Add(60)
		approve(rules)
		w.must(w.act(event), "PASS", "no-kernel", 0)
		w.later.Add(60)
		for range 2 { // to the other base and back again
			w.no(rules.Edit("walt", "", "", to))
			w.must(w.act("pull_request"), "DEFER", "rules", 1)
			w.check(rules.HeadSHA(), "kernelgate", "action_required")
			to = map[string]string{"next": "main", "main": "next"}[to]
		}
	}
	code, err := w.repo.OpenPR(embedded.PROptions{Author: "eve", Title: "fast", Head: "fast", HeadRepo: fork})
	w.no(err)
	w.must(w.act("pull_request"), "DEFER", "approval", 1)
	w.later.Add(60)
	_, err = code.Comment("walt", "/ok-to-test "+code.HeadSHA())
	w.no(err)
	w.must(w.act("issue_comment"), "PASS", "", 0)
	w.later.Add(60)
	w.no(code.Edit("eve", "", "", "next"))
	w.must(w.act("pull_request"), "DEFER", "approval", 1)
	w.check(code.HeadSHA(), "kernelgate", "action_required")
	w.later.Add(60)
	_, err = code.Comment("walt", "/ok-to-test "+code.HeadSHA())
	w.no(err)
	w.must(w.act("issue_comment"), "PASS", "", 0)
}

// TestAutomaticBaseChangeEndsApprovals checks that an approval ends when GitHub changes the base
// because the old base was merged and deleted. No event reports that change.
func TestAutomaticBaseChangeEndsApprovals(t *testing.T) {
	w := newWorld(t, map[string]string{"CODEOWNERS": "* @carl\n"}, mayWrite)
	w.maintainer()
	w.hub.CreateUser("carl")
	w.no(w.repo.Grant("carl", embedded.Write))
	for approved, approve := range map[string]func(pr *embedded.PR){
		"by a comment": func(pr *embedded.PR) {
			_, err := pr.Comment("mara", "/approve-policy "+pr.HeadSHA())
			w.no(err)
		},
		"by a review": func(pr *embedded.PR) { w.no(pr.Review("carl", "APPROVE", "")) },
	} {
		branch := strings.ReplaceAll(approved, " ", "-")
		parent := w.propose(branch, map[string]string{branch + ".md": "Words.\n"}, embedded.PROptions{})
		_, err := w.repo.PushCommit(embedded.Commit{Branch: branch + "-child", From: parent.HeadSHA(), Files: map[string]string{".github/kernelgate.yaml": nothingAsked}, Message: "Ask nothing", Author: "walt"})
		w.no(err)
		child, err := w.repo.OpenPR(embedded.PROptions{Author: "walt", Title: "Ask nothing", Head: branch + "-child", Base: branch})
		w.no(err)
		w.later.Add(60)
		approve(child)
		w.must(w.act("pull_request"), "PASS", "no-kernel", 0)
		w.later.Add(60)
		w.no(parent.Merge("walt"))
		w.no(w.repo.DeleteBranch(branch))
		w.no(child.Label("walt", "stacked "+approved)) // any event causes a new look
		w.must(w.act("pull_request"), "DEFER", "rules", 1)
		w.check(child.HeadSHA(), "kernelgate", "action_required")
	}
}
