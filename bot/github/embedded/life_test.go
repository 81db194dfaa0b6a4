package embedded_test

import (
	"html"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v60/github"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

func TestLifeOfAPullRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	w.no(w.repo.Grant("bob", embedded.Write))
	w.push("faster", map[string]string{"a.cu": "two\n", "new/c.cu": "c\n"}, "faster")
	pr := w.open(embedded.PROptions{Author: "bob", Title: "Faster", Head: "faster", Draft: true})
	w.no(pr.Ready("bob"))
	w.no(pr.Label("bob", "optimisation"))
	w.no(pr.Unlabel("bob", "optimisation"))
	second := w.push("faster", map[string]string{"a.cu": "three\n"}, "faster still")
	_, err := pr.Comment("bob", "/rebench")
	w.no(err)
	w.no(pr.Edit("bob", "Faster still", "", ""))
	w.no(pr.Close("bob"))
	w.no(pr.Reopen("bob"))
	w.no(pr.Merge("bob"))
	w.quiet()

	want := []string{"ping", "installation.created", "push", "check_suite.requested", // the App and the first commit
		"push", "check_suite.requested", "pull_request.opened", "pull_request.ready_for_review",
		"pull_request.labeled", "pull_request.unlabeled", "push", "check_suite.requested", "pull_request.synchronize",
		"issue_comment.created", "pull_request.edited", "pull_request.closed", "pull_request.reopened",
		"pull_request.closed", "push", "check_suite.requested"}
	got := w.hooks.names()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	closed := last[*github.PullRequestEvent](w)
	if p := closed.PullRequest; !p.GetMerged() || p.GetMergedBy().GetLogin() != "bob" || p.Head.GetSHA() != second || closed.Installation.GetID() != w.inst.ID() {
		t.Errorf("closed event: merged %v by %s at %s, installation %d", p.GetMerged(), p.GetMergedBy().GetLogin(), p.Head.GetSHA(), closed.Installation.GetID())
	}
	if text := w.mustGit(w.repo.Dir(), "cat-file", "blob", "main:a.cu"); text != "three" {
		t.Errorf("a.cu on main after the merge: %q", text)
	}
}

// TestFilesOfAPullRequest checks the changed files in the API's answer, on the page and in the
// diff.
func TestFilesOfAPullRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	base := w.push("main", map[string]string{"old.cu": "some lines\nthat stay\nthe same\n"}, "a file to rename")
	_, err := w.repo.PushCommit(embedded.Commit{Branch: "tidy", Message: "tidy",
		Files: map[string]string{"new.cu": "some lines\nthat stay\nthe same\n", "a.cu": "one\ntwo\n", "run.sh": "#!/bin/sh\n"}, Delete: []string{"old.cu", "b.cu"}})
	w.no(err)
	opened := w.open(embedded.PROptions{Author: "alice", Title: "Tidy", Head: "tidy"})
	pr, _, err := w.person("alice").PullRequests.Get(w.ctx, "alice", "kernels", opened.Number())
	w.no(err)
	if pr.GetCommits() != 1 || pr.GetChangedFiles() != 4 || pr.GetAdditions() != 2 || pr.GetDeletions() != 1 || pr.Base.GetSHA() != base || !pr.GetMergeable() || pr.GetMergeableState() != "clean" {
		t.Errorf("pull request: %d commits, %d files, +%d -%d, base %s, %s", pr.GetCommits(), pr.GetChangedFiles(), pr.GetAdditions(), pr.GetDeletions(), pr.Base.GetSHA(), pr.GetMergeableState())
	}
	for _, path := range []string{"/pull/1/files", "/compare/main...tidy"} {
		_, _, page := w.look(w.hub.URL() + "/alice/kernels" + path)
		page = html.UnescapeString(page)
		for _, want := range []string{"a.cu (modified)", "@@ -1 +1,2 @@\n one\n+two", "b.cu (removed)", "@@ -1 +0,0 @@\n-one", "new.cu (renamed)", "run.sh (added)", "@@ -0,0 +1 @@\n+#!/bin/sh"} {
			if !strings.Contains(page, want) {
				t.Errorf("%s does not say %q", path, want)
			}
		}
		if strings.Contains(page, "old.cu (") {
			t.Errorf("%s has a renamed file twice", path)
		}
	}
	if _, _, diff := w.look(w.hub.URL() + "/alice/kernels/pull/1.diff"); !strings.Contains(diff, "rename from old.cu") {
		t.Errorf("diff:\n%s", diff)
	}
	if _, err := w.repo.OpenPR(embedded.PROptions{Author: "alice", Title: "Again", Head: "tidy"}); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("second pull request: %v", err)
	}
}

func TestForkPullRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	fork, err := w.repo.Fork("mallory")
	w.no(err)
	head, err := fork.Push("patch", map[string]string{"a.cu": "theirs\n"}, "theirs")
	w.no(err)
	pr := w.open(embedded.PROptions{Author: "mallory", Title: "Theirs", Head: "patch", HeadRepo: fork})
	w.quiet()
	opened := last[*github.PullRequestEvent](w).PullRequest
	if opened.Head.Repo.GetFullName() != "mallory/kernels" || opened.Base.Repo.GetFullName() != "alice/kernels" || !opened.Head.Repo.GetFork() || opened.GetAuthorAssociation() != "NONE" {
		t.Errorf("opened: head %s, base %s, %s", opened.Head.Repo.GetFullName(), opened.Base.Repo.GetFullName(), opened.GetAuthorAssociation())
	}
	run := w.check(w.bot(), head, "kernelgate", "action_required")
	if len(run.PullRequests) != 0 {
		t.Errorf("a check on a fork's commit names %d pull requests, want none", len(run.PullRequests))
	}
	for _, ref := range []string{"pull/1/head", "pull/1/merge"} {
		w.mustGit(w.repo.Dir(), "rev-parse", "--verify", "refs/"+ref)
	}
	next, err := fork.Push("patch", map[string]string{"a.cu": "theirs again\n"}, "again")
	w.no(err)
	w.quiet()
	if e := last[*github.PullRequestEvent](w); e.GetAction() != "synchronize" || e.GetBefore() != head || e.GetAfter() != next || pr.HeadSHA() != next {
		t.Errorf("after a push to the fork: %s %s → %s", e.GetAction(), e.GetBefore(), e.GetAfter())
	}
	if err := pr.Merge("mallory"); err == nil {
		t.Error("a stranger could merge")
	}
	w.no(pr.Merge("alice"))
}

func TestConflictAndDraftAreNotMergeable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	pr := w.opened()
	w.push("main", map[string]string{"a.cu": "elsewhere\n"}, "conflict")
	if pr.State().Mergeable {
		t.Error("a conflict counts as mergeable")
	}
	if err := pr.Merge("alice"); err == nil || !strings.Contains(err.Error(), "405 Pull Request is not mergeable") {
		t.Errorf("merge of a conflict: %v", err)
	}
	w.push("other", map[string]string{"z.cu": "z\n"}, "z")
	draft := w.open(embedded.PROptions{Title: "Draft", Head: "other", Draft: true})
	if err := draft.Merge("alice"); err == nil || !strings.Contains(err.Error(), "draft") {
		t.Errorf("merge of a draft: %v", err)
	}
}
