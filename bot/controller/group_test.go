package controller_test

import (
	"fmt"
	"net/http"
	"strings"
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

// enqueued puts pull requests into one batch of main's queue, whatever their checks say, and returns the commit of the group that has
// them all. The queue waits for a check that nobody writes.
func (w *world) enqueued(prs ...*embedded.PR) string {
	w.Helper()
	w.repo.ProtectBranch("main", embedded.Protection{Checks: []embedded.RequiredCheck{{Context: "patience"}}, Queue: true, QueueSize: len(prs)})
	for _, pr := range prs {
		w.setStatus(pr.HeadSHA(), "patience", "success")
		w.no(w.repo.Enqueue("walt", pr))
	}
	heads := w.repo.QueueHeads()
	if len(heads) != len(prs) {
		w.Fatalf("the queue has %d groups of %d pull requests", len(heads), len(prs))
	}
	return heads[len(heads)-1]
}

// dequeued takes pull requests out of the queue.
func (w *world) dequeued(prs ...*embedded.PR) {
	w.Helper()
	for _, pr := range prs {
		w.no(pr.Close("walt"))
		w.no(pr.Reopen("walt"))
	}
	w.settle()
}

// setStatus writes a commit status, as a different program would.
func (w *world) setStatus(sha, name, state string) {
	w.Helper()
	body := fmt.Sprintf(`{"state": %q, "context": %q}`, state, name)
	rq, err := http.NewRequestWithContext(w.ctx, http.MethodPost, w.hub.URL()+"/api/v3/repos/olga/kernels/statuses/"+sha, strings.NewReader(body))
	w.no(err)
	rq.Header.Set("Authorization", "Bearer "+w.hub.CreateToken("olga"))
	answer, err := http.DefaultClient.Do(rq)
	w.no(err)
	answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		w.Fatalf("a status: %s", answer.Status)
	}
}

// Of a group's pull requests each has a say in the rule of the kernels that it touches,
// wherever it stands in the queue.
func TestGroupTakesTheStrictestRule(t *testing.T) {
	w := newWorld(t, worldOptions{})
	slow, tidy := map[string]string{sourceFile: "// speed 1.001\n"}, map[string]string{"kernels/scale/notes.md": "It scales.\n"}
	plain := w.change("slow", slow, "failure")
	label := w.change("tidy", tidy, "success", "refactoring")
	w.checkIn(w.repo, w.enqueued(plain, label), "failure")
	w.dequeued(plain, label)
	w.checkIn(w.repo, w.enqueued(label, plain), "failure")
	w.dequeued(label, plain)
	w.checkIn(w.repo, w.enqueued(label), "success")
	w.dequeued(label)
	again := w.change("tidier", map[string]string{sourceFile: "// speed 1.0001\n"}, "success", "refactoring")
	w.checkIn(w.repo, w.enqueued(label, again), "success")
	w.dequeued(label, again)
	// Squashed or rebased, a pull request alone is known by its content.
	w.checkIn(w.repo, w.queue(label, embedded.Commit{Files: tidy, Message: "tidy"}), "success")
}

// An override lets the kernels of its own pull request pass, and no other of the group.
func TestOverrideInAGroupOfTwo(t *testing.T) {
	w := newWorld(t, worldOptions{})
	const other = "kernels/other/scale.c"
	_, err := w.repo.Push("main", map[string]string{"kernels/other/kernel.yaml": manifestYAML, other: "// speed 1.0\n", "kernels/other/reference.c": "// the truth\n"}, "Another")
	w.no(err)
	slow := w.change("slow", map[string]string{sourceFile: "// speed 1.001\n"}, "failure")
	let := w.change("let", map[string]string{other: "// speed 1.002\n"}, "failure")
	w.reacted(let, w.comment(let, "mara", "/override it fixes a bug"), "rocket")
	w.concluded(let.HeadSHA(), "success")
	w.checkIn(w.repo, w.enqueued(slow, let), "failure")
	w.dequeued(slow, let)
	w.checkIn(w.repo, w.enqueued(let), "success")
	w.dequeued(let)
	w.reacted(slow, w.comment(slow, "mara", "/override so does this"), "rocket")
	w.concluded(slow.HeadSHA(), "success")
	w.checkIn(w.repo, w.enqueued(slow, let), "success")
}

// A commit message names no member of a group: authors write it.
func TestForgedMember(t *testing.T) {
	w := newWorld(t, worldOptions{retold: true})
	old := w.change("old", map[string]string{sourceFile: "// speed 1.001\n"}, "failure")
	w.reacted(old, w.comment(old, "mara", "/override it fixes a bug"), "rocket")
	w.concluded(old.HeadSHA(), "success")
	w.no(old.Close("walt"))
	w.settle()
	evil := w.change("evil", map[string]string{sourceFile: "// WRONG speed 0.1\n"}, "failure")
	for _, c := range []struct{ source, subject, title string }{
		{"// WRONG speed 0.1\n", fmt.Sprintf("Tidy (#%d)", old.Number()), "correctness"}, // the content is that of evil
		{"// WRONG speed 0.1\n", fmt.Sprintf("Merge pull request #%d from olga/old (#%d)", old.Number(), evil.Number()), "correctness"},
		{"// WRONG speed 0.2\n", fmt.Sprintf("Tidy (#%d)", old.Number()), "unknown pull request"},
		{"// WRONG speed 0.2\n", fmt.Sprintf("Evil (#%d)", evil.Number()), "unknown pull request"},
	} {
		head := w.queue(evil, embedded.Commit{Files: map[string]string{sourceFile: c.source}, Message: c.subject})
		if check := w.concluded(head, "failure"); !strings.Contains(check.Title, c.title) {
			t.Errorf("%q: %s", c.subject, check.Title)
		}
	}
}
