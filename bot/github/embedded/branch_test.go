package embedded_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// A writer may push any commit of the repository to a branch, that of a merge group included, and
// open a pull request from it. The checks of the commit count there, too.
func TestBranchAtAGroupsCommit(t *testing.T) {
	t.Parallel()
	w, _, _ := queued(t)
	w.no(w.repo.Grant("bob", embedded.Write))
	w.push("release", map[string]string{"RELEASE": "1"}, "release")
	w.repo.Protect("release", "kernelgate")
	group := w.repo.QueueHeads()[1]
	w.no(w.repo.CreateBranch("bob", "copy", group))
	w.quiet()
	pr := w.open(embedded.PROptions{Author: "bob", Title: "Copy", Head: "copy", Base: "release"})
	if pr.HeadSHA() != group {
		t.Errorf("the head is %s", pr.HeadSHA())
	}
	if why := pr.MergeRefusal("bob"); !strings.Contains(why, "expected") {
		t.Errorf("before the check: %q", why)
	}
	w.check(w.bot(), group, "kernelgate", "success")
	if why := pr.MergeRefusal("bob"); why != "" {
		t.Errorf("after the group's check: %q", why)
	}

	// Git agrees with CreateBranch.
	dir := t.TempDir()
	w.mustGit(dir, "clone", "--quiet", w.repo.CloneURL(), "work")
	work, mine := filepath.Join(dir, "work"), withToken(w.repo.CloneURL(), w.hub.CreateToken("bob"))
	w.mustGit(work, "fetch", "--quiet", "origin", group)
	w.mustGit(work, "push", "--quiet", mine, group+":refs/heads/by-git")
	if w.repo.Head("by-git") != group {
		t.Errorf("by-git is at %s", w.repo.Head("by-git"))
	}
	if out, err := w.git(work, "push", mine, group+":refs/heads/gh-readonly-queue/main/pr-9-x"); err == nil {
		t.Errorf("git pushed to a branch of the queue: %s", out)
	}
}

func TestBranchRefusals(t *testing.T) {
	t.Parallel()
	w, _, _ := queued(t)
	w.no(w.repo.Grant("bob", embedded.Write))
	w.no(w.repo.Grant("tom", embedded.Triage))
	head := w.repo.Head("main")
	branch := strings.TrimPrefix(w.groups("checks_requested")[0].MergeGroup.GetHeadRef(), "refs/heads/")
	for name, tt := range map[string]struct{ user, branch, sha, text string }{
		"without write access":  {"tom", "new", head, "403 Permission to alice/kernels.git denied to tom."},
		"a branch of the queue": {"bob", "gh-readonly-queue/main/pr-1-x", head, "422 GH006: Protected branch update failed"},
		"an existing branch":    {"bob", "main", head, "422 Reference already exists"},
		"an unknown commit":     {"bob", "new", strings.Repeat("0123456789", 4), "422 Object does not exist"},
		"a part of a commit":    {"bob", "new", head[:10], "422 The sha parameter"},
		"an option":             {"bob", "new", "--all", "422 The sha parameter"},
		"an impossible name":    {"bob", "a..b", head, "422 refs/heads/a..b is not a valid ref name."},
	} {
		if err := w.repo.CreateBranch(tt.user, tt.branch, tt.sha); err == nil || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := w.repo.Push(branch, map[string]string{"a.cu": "evil"}, "evil"); err == nil || !strings.Contains(err.Error(), "GH006") {
		t.Errorf("a push to a group: %v", err)
	}
	if err := w.repo.DeleteBranch(branch); err == nil || !strings.Contains(err.Error(), "GH006") {
		t.Errorf("the deletion of a group: %v", err)
	}
	w.repo.Archive()
	if err := w.repo.CreateBranch("bob", "new", head); err == nil || !strings.Contains(err.Error(), "archived") {
		t.Errorf("an archived repository: %v", err)
	}
}

// The owner of a fork may push any commit of the parent to the fork, and open a pull request with
// it.
func TestForksTakeCommitsOfTheParent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	fork, err := w.repo.Fork("mallory")
	w.no(err)
	again, err := fork.Fork("eve")
	w.no(err)
	w.protectQueue("main", 0)
	w.queue("one", "main")
	group := w.repo.QueueHeads()[0]
	for _, f := range []*embedded.Repo{again, fork} {
		owner, _, _ := strings.Cut(f.FullName(), "/")
		if err := f.CreateBranch("alice", "copy", group); err == nil || !strings.Contains(err.Error(), "403") {
			t.Errorf("by a stranger in %s: %v", f.FullName(), err)
		}
		w.no(f.CreateBranch(owner, "copy", group))
		pr := w.open(embedded.PROptions{Author: owner, Title: "Copy", Head: "copy", HeadRepo: f})
		if pr.HeadSHA() != group {
			t.Errorf("%s: the head is %s", f.FullName(), pr.HeadSHA())
		}
	}
	secret, err := w.hub.CreateRepo(embedded.RepoOptions{Owner: "alice", Name: "secret", Private: true})
	w.no(err)
	_, err = secret.Push("main", map[string]string{"a.cu": "one\n"}, "first")
	w.no(err)
	w.no(secret.Grant("mallory", embedded.Read))
	inner, err := secret.Fork("mallory")
	w.no(err)
	head, err := secret.Push("main", map[string]string{"a.cu": "two\n"}, "second")
	w.no(err)
	w.no(secret.Grant("mallory", embedded.None))
	if err := inner.CreateBranch("mallory", "copy", head); err == nil || !strings.Contains(err.Error(), "Object does not exist") {
		t.Errorf("a commit that mallory cannot read: %v", err)
	}
}

func TestReopen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	pr := w.opened()
	w.check(w.bot(), pr.HeadSHA(), "kernelgate", "success")
	w.no(pr.Close("alice"))
	w.hub.CreateUser("mallory")
	refused := func(name string, pr *embedded.PR, user, text string) {
		t.Helper()
		if err := pr.Reopen(user); err == nil || !strings.Contains(err.Error(), text) || pr.State().Open {
			t.Errorf("%s: %v", name, err)
		}
	}
	refused("by a stranger", pr, "mallory", "403")
	head := w.push("faster", map[string]string{"a.cu": "three\n"}, "while closed")
	w.no(pr.Reopen("alice"))
	if s := pr.State(); !s.Open || s.HeadSHA != head {
		t.Errorf("after new commits: %+v", s)
	}
	w.no(pr.Close("alice"))
	twin := w.open(embedded.PROptions{Title: "Twin", Head: "faster"})
	refused("next to its twin", pr, "alice", "already exists")
	w.no(twin.Close("alice"))
	_, err := w.repo.PushCommit(embedded.Commit{Branch: "faster", From: w.repo.Head("main"), Files: map[string]string{"a.cu": "four\n"}, Message: "rewritten"})
	w.no(err)
	refused("after a force push", pr, "alice", "force-pushed or recreated")
	w.push("other", map[string]string{"b.cu": "two\n"}, "other")
	other := w.open(embedded.PROptions{Title: "Other", Head: "other"})
	w.no(w.repo.DeleteBranch("other"))
	refused("without its branch", other, "alice", "deleted")
	w.push("third", map[string]string{"b.cu": "three\n"}, "third")
	merged := w.open(embedded.PROptions{Title: "Third", Head: "third"})
	w.no(merged.Merge("alice"))
	refused("merged", merged, "alice", "merged")
}
