package controller_test

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

const nothingAsked = "version: 1\ndevices: [cpu]\ngates: {}\nrules: [{name: default}]\n"

// edit opens a pull request that changes a file.
func (w *world) edit(branch, file, text string, opt embedded.PROptions) *embedded.PR {
	w.Helper()
	_, err := w.repo.Push(branch, map[string]string{file: text}, branch)
	w.no(err)
	if opt.Head, opt.Title = branch, branch; opt.Author == "" {
		opt.Author = "walt"
	}
	pr, err := w.repo.OpenPR(opt)
	w.no(err)
	return pr
}

// A change that asks for nothing any more is no change of documents: it is told, with the
// verdicts that would have been others, and waits for somebody who may say so.
func TestPolicyThatAsksNothing(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	slow := w.propose("slower", "// speed 1.02\n", embedded.PROptions{Title: "Slower"})
	w.concluded(slow.HeadSHA(), "failure")
	pr := w.edit("easy", ".github/kernelgate.yaml", nothingAsked, embedded.PROptions{})
	head := pr.HeadSHA()
	c := w.concluded(head, "action_required")
	if c.Title != "The change loosens the rules: waits for /approve-policy by someone with maintain access" || !strings.Contains(c.Summary, "DEFER (too-slow)") {
		t.Errorf("the check says %q: %s", c.Title, c.Summary)
	}
	if err := pr.Merge("olga"); err == nil {
		t.Fatal("the policy was taken away in silence")
	}
	for _, no := range []struct{ who, text string }{
		{"walt", "/approve-policy " + head}, // a writer, and the author
		{"rita", "/approve-policy " + head},
		{"eve", "/approve-policy " + head},
		{"mara", "/approve-policy " + head[:12]},
		{"mara", "/approve-policy " + slow.HeadSHA()},
		{"mara", "> /approve-policy " + head},
	} {
		said := w.comment(pr, no.who, no.text)
		if !strings.HasPrefix(no.text, ">") {
			w.reacted(pr, said, "confused")
		}
		w.concluded(head, "action_required")
	}
	w.reacted(pr, w.comment(pr, "olga", "/override it is late"), "rocket") // of the gates, not of the rules
	w.concluded(head, "action_required")
	w.reacted(pr, w.comment(pr, "mara", "/approve-policy "+head), "rocket")
	if c := w.concluded(head, "success"); !strings.Contains(c.Summary, "**Approved** by @&#8203;mara") {
		t.Errorf("the check does not say who approved it: %s", c.Summary)
	}
	w.golden("policy-approved", []*embedded.PR{pr})
	_, err := w.repo.Push("easy", map[string]string{"README.md": "And more.\n"}, "more")
	w.no(err)
	w.concluded(pr.HeadSHA(), "action_required") // the word was about another head
	if err := pr.Merge("olga"); err == nil {
		t.Fatal("an approval held for another head")
	}
	w.reacted(pr, w.comment(pr, "mara", "/approve-policy "+pr.HeadSHA()), "rocket")
	w.concluded(pr.HeadSHA(), "success")
	w.no(pr.Merge("olga"))
}

// Nobody approves their own change, but for an administrator.
func TestAuthorsDoNotApproveThemselves(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	for who, may := range map[string]bool{"mara": false, "olga": true} {
		pr := w.edit("by-"+who, ".github/kernelgate.yaml", nothingAsked+"# "+who+"\n", embedded.PROptions{Author: who})
		w.concluded(pr.HeadSHA(), "action_required")
		said := w.comment(pr, who, "/approve-policy "+pr.HeadSHA())
		if may {
			w.reacted(pr, said, "rocket")
			w.concluded(pr.HeadSHA(), "success")
			continue
		}
		w.reacted(pr, said, "confused")
		w.said(pr, "You are the author of this change")
		w.concluded(pr.HeadSHA(), "action_required")
	}
}

// Whoever pushed the head does not approve it either, by a command or as a code owner, although the pull request is
// somebody else's.
func TestPushersDoNotApproveTheirPush(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	_, err := w.repo.Push("main", map[string]string{"CODEOWNERS": "/.github/ @mara\n"}, "owners")
	w.no(err)
	pr := w.edit("easy", "README.md", "Kernels.\n", embedded.PROptions{Author: "walt"})
	w.concluded(pr.HeadSHA(), "success")
	push := func(who string) {
		_, err := w.repo.PushCommit(embedded.Commit{Branch: "easy", Author: who, Files: map[string]string{".github/kernelgate.yaml": nothingAsked + "# " + who + "\n"}, Message: "Ask nothing"})
		w.no(err)
		w.concluded(pr.HeadSHA(), "action_required")
	}
	push("mara")
	w.no(pr.Review("mara", "APPROVE", ""))
	w.reacted(pr, w.comment(pr, "mara", "/approve-policy "+pr.HeadSHA()), "confused")
	w.said(pr, "You pushed `"+pr.HeadSHA()+"`")
	w.settle()
	w.concluded(pr.HeadSHA(), "action_required")
	push("walt")
	w.reacted(pr, w.comment(pr, "mara", "/approve-policy "+pr.HeadSHA()), "rocket")
	w.concluded(pr.HeadSHA(), "success")
}

// What only tightens passes by itself, and is told.
func TestPolicyThatTightens(t *testing.T) {
	w := newWorld(t, worldOptions{})
	fast := w.propose("faster", "// speed 1.3\n", embedded.PROptions{Title: "Faster"})
	w.concluded(fast.HeadSHA(), "success")
	pr := w.edit("strict", ".github/kernelgate.yaml", strings.Replace(policyYAML, "+10%", "+50%", 1), embedded.PROptions{})
	c := w.concluded(pr.HeadSHA(), "success")
	if c.Title != "No kernel changed; the rules are tightened" || !strings.Contains(c.Summary, "needs no approval") {
		t.Errorf("the check says %q: %s", c.Title, c.Summary)
	}
	w.reacted(pr, w.comment(pr, "mara", "/approve-policy "+pr.HeadSHA()), "confused")
	w.golden("policy-tightened", []*embedded.PR{pr})
	w.no(pr.Merge("olga"))
}

// The manifest and the reference are rules too; a kernel that fails stays failing.
func TestManifestThatLoosens(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	for name, files := range map[string]map[string]string{
		"tolerance": {"kernels/scale/kernel.yaml": strings.Replace(manifestYAML, "abs: ", "abs: 9", 1)},
		"reference": {"kernels/scale/reference.c": "// a lie\n"},
	} {
		for file, text := range files {
			if name == "tolerance" && text == manifestYAML {
				t.Fatal("the manifest has no tolerance")
			}
			plain := w.edit(name, file, text, embedded.PROptions{})
			w.concluded(plain.HeadSHA(), "failure") // the same machine code gains nothing
			w.said(plain, "Changes to the rules")
			w.no(plain.Label("walt", "refactoring"))
			c := w.concluded(plain.HeadSHA(), "action_required")
			if !strings.Contains(c.Summary, file) {
				t.Errorf("%s: %s", name, c.Summary)
			}
			if err := plain.Merge("olga"); err == nil {
				t.Fatalf("%s: merged in silence", name)
			}
			w.comment(plain, "mara", "/approve-policy "+plain.HeadSHA())
			w.concluded(plain.HeadSHA(), "success")
		}
	}
}

// A fork's author changes the rules no more than anybody else.
func TestForkThatLoosens(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	fork, err := w.repo.Fork("eve")
	w.no(err)
	head, err := fork.PushCommit(embedded.Commit{Branch: "easy", Author: "eve", Files: map[string]string{".github/kernelgate.yaml": nothingAsked}, Message: "Easy"})
	w.no(err)
	pr, err := w.repo.OpenPR(embedded.PROptions{Author: "eve", Title: "Easy", Head: "easy", HeadRepo: fork})
	w.no(err)
	w.concluded(head, "action_required")
	w.reacted(pr, w.comment(pr, "walt", "/ok-to-test "+head), "rocket") // of its code, not of its rules
	w.concluded(head, "action_required")
	w.reacted(pr, w.comment(pr, "eve", "/approve-policy "+head), "confused")
	w.concluded(head, "action_required")
	w.comment(pr, "mara", "/approve-policy "+head)
	w.concluded(head, "success")
}

// With a personal token the required status is pending until somebody has approved.
func TestPolicyWithAToken(t *testing.T) {
	w := newWorld(t, worldOptions{pat: true, retold: true})
	pr := w.edit("easy", ".github/kernelgate.yaml", nothingAsked, embedded.PROptions{})
	status := func(state string) {
		t.Helper()
		w.until(state, func() bool {
			for _, s := range w.repo.Statuses(pr.HeadSHA()) {
				if s.Context == "kernelgate" {
					return s.State == state && (state != "pending" || strings.Contains(s.Description, "waits for /approve-policy"))
				}
			}
			return false
		})
		w.settle()
	}
	status("pending")
	w.comment(pr, "walt", "/approve-policy "+pr.HeadSHA())
	status("pending")
	if err := pr.Merge("olga"); err == nil {
		t.Fatal("merged in silence")
	}
	w.comment(pr, "mara", "/approve-policy "+pr.HeadSHA())
	status("success")
	w.no(pr.Merge("olga"))
}

// A word is about what its author could read: where the pull request goes to another
// branch, or that branch gets other rules, it is void.
func TestApprovalOfOtherRules(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	mild := strings.Replace(policyYAML, "+10%", "+9%", 1)
	_, err := w.repo.Push("side", map[string]string{".github/kernelgate.yaml": mild}, "A branch with milder rules")
	w.no(err)
	pr := w.edit("easy", ".github/kernelgate.yaml", strings.Replace(policyYAML, "+10%", "+8%", 1), embedded.PROptions{Base: "side"})
	w.concluded(pr.HeadSHA(), "action_required")
	w.comment(pr, "mara", "/approve-policy "+pr.HeadSHA())
	w.concluded(pr.HeadSHA(), "success")
	w.no(pr.Edit("walt", "easy", "", "main"))
	w.concluded(pr.HeadSHA(), "action_required")
	w.comment(pr, "mara", "/approve-policy "+pr.HeadSHA())
	w.concluded(pr.HeadSHA(), "success")
	_, err = w.repo.Push("main", map[string]string{".github/kernelgate.yaml": strings.Replace(policyYAML, "+10%", "+40%", 1)}, "Ask for more")
	w.no(err)
	w.concluded(pr.HeadSHA(), "action_required")
}

// What was approved goes through the merge queue; a group is asked nothing twice.
func TestApprovedRulesInTheMergeQueue(t *testing.T) {
	w := newWorld(t, worldOptions{})
	w.repo.ProtectBranch("main", embedded.Protection{Checks: []embedded.RequiredCheck{{Context: "kernelgate"}}, Queue: true})
	pr := w.edit("easy", ".github/kernelgate.yaml", nothingAsked, embedded.PROptions{})
	w.concluded(pr.HeadSHA(), "action_required")
	if err := w.repo.Enqueue("olga", pr); err == nil {
		t.Error("what nobody approved entered the queue")
	}
	w.comment(pr, "mara", "/approve-policy "+pr.HeadSHA())
	w.concluded(pr.HeadSHA(), "success")
	w.no(w.repo.Enqueue("olga", pr))
	w.until("the merge", func() bool { return pr.State().Merged })
}
