package controller_test

import (
	"fmt"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// queue delivers the merge group that a queue would make of commits on main, the last of
// them of pr, and returns its head.
func (w *world) queue(pr *embedded.PR, commits ...embedded.Commit) string {
	w.Helper()
	w.groups++
	base, branch := w.repo.Head("main"), fmt.Sprint("queue-", w.groups)
	w.app.SetHook("", "")
	for i, c := range commits {
		if c.Branch = branch; i == 0 {
			c.From = base
		}
		_, err := w.repo.PushCommit(c)
		w.no(err)
	}
	w.no(w.hub.Quiet(w.ctx))
	w.app.SetHook("http://"+w.addr+"/webhook", secret)
	head := w.repo.Head(branch)
	w.deliver("merge_group", fmt.Sprintf("00000000-0000-0000-0000-0000000000%02d", w.groups), map[string]any{
		"action": "checks_requested",
		"merge_group": map[string]any{
			"head_sha": head, "head_ref": fmt.Sprintf("refs/heads/gh-readonly-queue/main/pr-%d-%s", pr.Number(), base), "base_sha": base, "base_ref": "refs/heads/main",
		},
		"repository": map[string]any{"id": w.repo.ID(), "full_name": "olga/kernels", "default_branch": "main", "name": "kernels", "owner": map[string]any{"login": "olga"}},
		"sender":     map[string]any{"id": 3, "login": "walt", "type": "User"},
	})
	return head
}

// change opens a pull request and waits for its verdict.
func (w *world) change(branch string, files map[string]string, conclusion string, labels ...string) *embedded.PR {
	w.Helper()
	_, err := w.repo.Push(branch, files, branch)
	w.no(err)
	pr, err := w.repo.OpenPR(embedded.PROptions{Title: branch, Head: branch, Author: "walt", Labels: labels})
	w.no(err)
	w.concluded(pr.HeadSHA(), conclusion)
	return pr
}

// Of a group's pull requests each has a say in the rule of the kernels that it touches,
// wherever it stands in the queue.
func TestGroupTakesTheStrictestRule(t *testing.T) {
	w := newWorld(t, worldOptions{})
	slow, tidy := map[string]string{sourceFile: "// speed 1.001\n"}, map[string]string{"kernels/scale/notes.md": "It scales.\n"}
	plain := w.change("slow", slow, "failure")
	label := w.change("tidy", tidy, "success", "refactoring")
	as := func(pr *embedded.PR, files map[string]string) embedded.Commit {
		return embedded.Commit{Files: files, Message: fmt.Sprintf("%s (#%d)", pr.State().Title, pr.Number())}
	}
	both := w.queue(label, as(plain, slow), as(label, tidy))
	w.checkIn(w.repo, both, "failure")
	w.checkIn(w.repo, w.queue(plain, as(label, tidy), as(plain, slow)), "failure")

	// A commit that names nobody may be anybody's.
	w.checkIn(w.repo, w.queue(label, embedded.Commit{Files: slow, Message: "Slow"}, as(label, tidy)), "failure")
	// One that names a pull request of other files does not speak for these.
	docs := w.change("docs", map[string]string{"README.md": "Better.\n"}, "success", "refactoring")
	w.checkIn(w.repo, w.queue(docs, embedded.Commit{Files: slow, Message: fmt.Sprintf("Slow (#%d)", docs.Number())}), "failure")
	// A pull request alone is judged as itself, squashed or rebased.
	w.checkIn(w.repo, w.queue(label, as(label, tidy)), "success")
	w.checkIn(w.repo, w.queue(label, embedded.Commit{Files: tidy, Message: "tidy"}), "success")
	again := w.change("tidier", map[string]string{sourceFile: "// speed 1.0001\n"}, "success", "refactoring")
	w.checkIn(w.repo, w.queue(again, as(label, tidy), as(again, map[string]string{sourceFile: "// speed 1.0001\n"})), "success")
}

// An override lets the kernels of its own pull request pass, and no other of the group.
func TestOverrideInAGroupOfTwo(t *testing.T) {
	w := newWorld(t, worldOptions{})
	const other = "kernels/other/scale.c"
	_, err := w.repo.Push("main", map[string]string{"kernels/other/kernel.yaml": manifestYAML, other: "// speed 1.0\n", "kernels/other/reference.c": "// the truth\n"}, "Another")
	w.no(err)
	first, second := map[string]string{sourceFile: "// speed 1.001\n"}, map[string]string{other: "// speed 1.002\n"}
	slow := w.change("slow", first, "failure")
	let := w.change("let", second, "failure")
	w.reacted(let, w.comment(let, "mara", "/override it fixes a bug"), "rocket")
	w.concluded(let.HeadSHA(), "success")
	commits := []embedded.Commit{{Files: first, Message: fmt.Sprintf("slow (#%d)", slow.Number())}, {Files: second, Message: fmt.Sprintf("let (#%d)", let.Number())}}
	both := w.queue(let, commits...)
	w.checkIn(w.repo, both, "failure")
	w.checkIn(w.repo, w.queue(let, commits[1]), "success")
	w.reacted(slow, w.comment(slow, "mara", "/override so does this"), "rocket")
	w.concluded(slow.HeadSHA(), "success")
	commits[0].Message += " " // another commit
	commits[1].Author = "mara"
	w.checkIn(w.repo, w.queue(let, commits...), "success")
}
