package embedded_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-github/v60/github"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// git runs the real git as a user would, without this machine's configuration.
func (w *world) git(dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(w.ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=bob", "GIT_AUTHOR_EMAIL=bob@x", "GIT_COMMITTER_NAME=bob", "GIT_COMMITTER_EMAIL=bob@x")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (w *world) mustGit(dir string, args ...string) string {
	w.Helper()
	out, err := w.git(dir, args...)
	if err != nil {
		w.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
}

func withToken(url, token string) string {
	return strings.Replace(url, "http://", "http://x-access-token:"+token+"@", 1)
}

func TestGitOverHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	dir := t.TempDir()
	w.mustGit(dir, "clone", "--quiet", w.repo.CloneURL(), "work")
	work := filepath.Join(dir, "work")
	w.no(os.WriteFile(filepath.Join(work, "a.cu"), []byte("by git\n"), 0o644))
	// The file is larger than git's post buffer.
	w.no(os.WriteFile(filepath.Join(work, "big.bin"), []byte(strings.Repeat("0123456789abcdef", 1<<17)), 0o644))
	w.mustGit(work, "add", ".")
	w.mustGit(work, "commit", "--quiet", "-m", "by git")
	head := w.mustGit(work, "rev-parse", "HEAD")

	if out, err := w.git(work, "push", "origin", "HEAD:refs/heads/topic"); err == nil {
		t.Errorf("a push without credentials went through: %s", out)
	}
	if out, err := w.git(work, "push", withToken(w.repo.CloneURL(), w.hub.CreateToken("mallory")), "HEAD:refs/heads/topic"); err == nil || !strings.Contains(out, "403") {
		t.Errorf("a stranger's push: %v, %s", err, out)
	}
	mine := withToken(w.repo.CloneURL(), w.hub.CreateToken("alice"))
	w.mustGit(work, "-c", "core.compression=0", "push", "--quiet", mine, "HEAD:refs/heads/topic")
	w.quiet()
	if e := last[*github.PushEvent](w); e.GetRef() != "refs/heads/topic" || e.GetAfter() != head || e.GetSender().GetLogin() != "alice" || w.repo.Head("topic") != head {
		t.Errorf("push event: %s %s by %s", e.GetRef(), e.GetAfter(), e.GetSender().GetLogin())
	}

	pr := w.open(embedded.PROptions{Title: "By git", Head: "topic"})
	w.no(os.WriteFile(filepath.Join(work, "a.cu"), []byte("by git again\n"), 0o644))
	w.mustGit(work, "commit", "--quiet", "-am", "again")
	w.mustGit(work, "push", "--quiet", mine, "HEAD:refs/heads/topic")
	w.quiet()
	if e := last[*github.PullRequestEvent](w); e.GetAction() != "synchronize" || e.GetBefore() != head {
		t.Errorf("after the push: %s", e.GetAction())
	}

	scratch := filepath.Join(dir, "scratch")
	w.mustGit(dir, "init", "--quiet", scratch)
	token := withToken(w.repo.CloneURL(), w.inst.Token())
	w.mustGit(scratch, "fetch", "--quiet", "--depth=1", token, pr.HeadSHA()) // by SHA
	w.mustGit(scratch, "fetch", "--quiet", token, "refs/pull/1/merge")
	if got := w.mustGit(scratch, "show", "FETCH_HEAD:a.cu"); got != "by git again" {
		t.Errorf("the test merge holds %q", got)
	}
	if out, err := w.git(work, "push", mine, "HEAD:refs/pull/1/head"); err == nil {
		t.Errorf("a push to GitHub's own refs went through: %s", out)
	}
	w.mustGit(work, "push", "--quiet", mine, ":refs/heads/topic")
	if pr.State().Open {
		t.Error("the pull request outlived its branch")
	}
}

func TestGitOfPrivateRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	secret, err := w.hub.CreateRepo(embedded.RepoOptions{Owner: "alice", Name: "secret", Private: true})
	w.no(err)
	_, err = secret.Push("main", map[string]string{"a": "a"}, "first")
	w.no(err)
	dir := t.TempDir()
	for name, url := range map[string]string{"anonymous": secret.CloneURL(), "stranger": withToken(secret.CloneURL(), w.hub.CreateToken("mallory"))} {
		if _, err := w.git(dir, "ls-remote", url); err == nil {
			t.Errorf("%s can read a private repository", name)
		}
	}
	w.mustGit(dir, "ls-remote", withToken(secret.CloneURL(), w.hub.CreateToken("alice")))
}

func TestForcePush(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	pr := w.opened()
	old := pr.HeadSHA()
	_, err := w.repo.PushCommit(embedded.Commit{Branch: "faster", From: "main", Files: map[string]string{"a.cu": "rewritten\n"}, Message: "rewritten"})
	w.no(err)
	w.quiet()
	if e := last[*github.PushEvent](w); !e.GetForced() || e.GetBefore() != old || pr.HeadSHA() == old {
		t.Errorf("force push: forced %v, head %s", e.GetForced(), pr.HeadSHA())
	}
	if out := w.mustGit(w.repo.Dir(), "cat-file", "-t", old); out != "commit" {
		t.Errorf("the old head is a %s", out)
	}
}

// TestBranchesAreGits checks that the hub finds the same branches as git, whether git keeps each
// ref in a file or packs them. The repository must be a regular git repository.
func TestBranchesAreGits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	dir := w.repo.Dir()
	if got := w.mustGit(dir, "rev-parse", "--is-bare-repository", "--symbolic-full-name", "HEAD"); got != "true\nrefs/heads/main" {
		t.Errorf("git says of the repository: %s", got)
	}
	push := func(branch, text string) {
		t.Helper()
		if _, err := w.repo.Push(branch, map[string]string{"a.cu": text}, text); err != nil {
			t.Fatal(err)
		}
	}
	push("of/two/parts", "1")
	push("gone", "1")
	push("moved", "1")
	w.mustGit(dir, "pack-refs", "--all")
	push("moved", "2")
	push("young", "1")
	w.mustGit(dir, "update-ref", "-d", "refs/heads/gone")
	// Another process is about to move the branch.
	w.no(os.WriteFile(filepath.Join(dir, "refs", "heads", "young.lock"), nil, 0o644))
	push("main", "2")
	for _, name := range []string{"main", "of/two/parts", "gone", "moved", "young", "young.lock"} {
		want, _ := w.git(dir, "rev-parse", "--quiet", "--verify", "refs/heads/"+name)
		if got := w.repo.Head(name); got != want {
			t.Errorf("%s is at %q, and git says %q", name, got, want)
		}
	}
	fork, err := w.repo.Fork("bob")
	if err != nil {
		t.Fatal(err)
	}
	if got := fork.Head("of/two/parts"); got == "" || got != w.repo.Head("of/two/parts") {
		t.Errorf("the fork's is at %q", got)
	}
	if out := w.mustGit(dir, "fsck", "--strict"); strings.Contains(out, "error") {
		t.Error(out)
	}
}
