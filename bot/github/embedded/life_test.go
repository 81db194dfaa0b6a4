package embedded_test

import (
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
	if text, err := w.repo.File("main", "a.cu"); err != nil || text != "three\n" {
		t.Errorf("a.cu on main after the merge: %q, %v", text, err)
	}
}

func TestPullRequestOverTheAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	base := w.push("main", map[string]string{"old.cu": "some lines\nthat stay\nthe same\n"}, "a file to rename")
	_, err := w.repo.PushCommit(embedded.Commit{Branch: "tidy", Message: "tidy",
		Files: map[string]string{"new.cu": "some lines\nthat stay\nthe same\n", "a.cu": "one\ntwo\n", "run.sh": "#!/bin/sh\n"}, Delete: []string{"old.cu", "b.cu"}})
	w.no(err)
	c := w.person("alice")
	pr, _, err := c.PullRequests.Create(w.ctx, "alice", "kernels", &github.NewPullRequest{Title: github.String("Tidy"), Head: github.String("tidy"), Base: github.String("main")})
	w.no(err)
	if pr.GetCommits() != 1 || pr.GetChangedFiles() != 4 || pr.GetAdditions() != 2 || pr.GetDeletions() != 1 || pr.Base.GetSHA() != base || !pr.GetMergeable() || pr.GetMergeableState() != "clean" {
		t.Errorf("pull request: %d commits, %d files, +%d -%d, base %s, %s", pr.GetCommits(), pr.GetChangedFiles(), pr.GetAdditions(), pr.GetDeletions(), pr.Base.GetSHA(), pr.GetMergeableState())
	}
	files, _, err := c.PullRequests.ListFiles(w.ctx, "alice", "kernels", 1, nil)
	w.no(err)
	got := map[string]string{}
	for _, f := range files {
		got[f.GetFilename()] = f.GetStatus() + " " + f.GetPreviousFilename() + " " + f.GetPatch()
	}
	want := map[string]string{"a.cu": "modified  @@ -1 +1,2 @@\n one\n+two", "b.cu": "removed  @@ -1 +0,0 @@\n-one",
		"new.cu": "renamed old.cu ", "run.sh": "added  @@ -0,0 +1 @@\n+#!/bin/sh"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	comparison, _, err := c.Repositories.CompareCommits(w.ctx, "alice", "kernels", "main", "tidy", nil)
	w.no(err)
	if comparison.GetStatus() != "ahead" || comparison.GetAheadBy() != 1 || len(comparison.Files) != 4 || comparison.MergeBaseCommit.GetSHA() != base {
		t.Errorf("comparison: %s by %d, %d files", comparison.GetStatus(), comparison.GetAheadBy(), len(comparison.Files))
	}
	diff, _, err := c.PullRequests.GetRaw(w.ctx, "alice", "kernels", 1, github.RawOptions{Type: github.Diff})
	w.no(err)
	if !strings.Contains(diff, "rename from old.cu") {
		t.Errorf("diff:\n%s", diff)
	}
	_, _, err = c.PullRequests.Create(w.ctx, "alice", "kernels", &github.NewPullRequest{Title: github.String("Again"), Head: github.String("tidy"), Base: github.String("main")})
	if refusal := w.wantStatus(err, 422); !strings.Contains(refusal.Errors[0].Message, "already exists") {
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
		if _, _, err := w.bot().Git.GetRef(w.ctx, "alice", "kernels", ref); err != nil {
			t.Errorf("ref %s: %v", ref, err)
		}
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
	c := w.person("alice")
	_, _, err := c.PullRequests.Merge(w.ctx, "alice", "kernels", pr.Number(), "", &github.PullRequestOptions{SHA: strings.Repeat("0", 40)})
	w.wantStatus(err, 409)
	_, _, err = c.PullRequests.Merge(w.ctx, "alice", "kernels", pr.Number(), "", nil)
	w.wantStatus(err, 405)
	w.push("other", map[string]string{"z.cu": "z\n"}, "z")
	draft := w.open(embedded.PROptions{Title: "Draft", Head: "other", Draft: true})
	if err := draft.Merge("alice"); err == nil || !strings.Contains(err.Error(), "draft") {
		t.Errorf("merge of a draft: %v", err)
	}
}
