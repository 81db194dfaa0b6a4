package checkout

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// filesBelow lists all files of a folder.
func filesBelow(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// An overlay has a commit with the new files upon all commits of a repository, which stays as it was.
func TestOverlay(t *testing.T) {
	m := mirrorOf(t)
	main := m.git(m.from, "rev-parse", "main")
	before := filesBelow(t, m.Dir())
	files := map[string]string{"one.c": "submitted", "sub/new.h": "added", "line\nbreak.c": "odd"}
	var commits []string
	for _, date := range []string{"2001-01-01T00:00:00Z", "2002-02-02T00:00:00Z"} {
		t.Setenv("GIT_AUTHOR_DATE", date)
		t.Setenv("GIT_COMMITTER_DATE", date)
		o, commit, err := m.Overlay(t.Context(), filepath.Join(t.TempDir(), "overlay.git"), main, "k/one", files)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(mirrored{T: t, Repo: o}.dismiss)
		commits = append(commits, commit)
		for name, want := range map[string]string{
			"k/one/one.c": "submitted", "k/one/sub/new.h": "added", "k/one/line\nbreak.c": "odd", "k/one/gone.c": "gone", "k/oneself/kernel.yaml": "name: oneself",
		} {
			if got, err := o.Read(t.Context(), commit, name); err != nil || string(got) != want {
				t.Errorf("%q is %q, %v; want %q", name, got, err, want)
			}
		}
		if got, err := o.Changed(t.Context(), main, commit); err != nil || !slices.Equal(got, []string{"k/one/line\nbreak.c", "k/one/one.c", "k/one/sub/new.h"}) {
			t.Errorf("it changes %q, %v", got, err)
		}
		if got, err := o.MergeBase(t.Context(), "HEAD", commit); err == nil {
			t.Errorf("it has a branch, upon %s", got)
		}
	}
	if commits[0] != commits[1] {
		t.Errorf("the same files upon the same commit are %q", commits)
	}
	if _, err := m.Resolve(t.Context(), commits[0]); !errors.As(err, new(UnknownCommit)) {
		t.Errorf("the repository knows the commit: %v", err)
	}
	if after := filesBelow(t, m.Dir()); !slices.Equal(before, after) {
		t.Errorf("the repository has the files %q, and had %q", after, before)
	}
}

// The limits of a repository that strangers write to hold for an overlay of it, too.
func TestOverlayHasLimits(t *testing.T) {
	m := mirrorOf(t)
	m.limits = &Limits{}
	*m.limits = *usual()
	m.limits.Text = 4
	o, commit, err := m.Overlay(t.Context(), filepath.Join(t.TempDir(), "overlay.git"), m.git(m.from, "rev-parse", "main"), "k/one", map[string]string{"one.c": "submitted"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(mirrored{T: t, Repo: o}.dismiss)
	if _, err := o.Read(t.Context(), commit, "k/one/one.c"); !errors.As(err, new(Refused)) {
		t.Errorf("a file beyond the limit: %v", err)
	}
}

// Git finds the objects of a linked work tree in the repository that it belongs to, and hashes may be of either kind.
func TestOverlayOfOtherRepositories(t *testing.T) {
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=x", "-c", "user.email=x@example.org"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	for _, format := range []string{"sha1", "sha256"} {
		dir := t.TempDir()
		from, linked := filepath.Join(dir, "from"), filepath.Join(dir, "linked")
		git("init", "-q", "-b", "main", "--object-format="+format, from)
		if err := os.WriteFile(filepath.Join(from, "a.c"), []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
		git("-C", from, "add", "-A")
		git("-C", from, "commit", "-qm", "first")
		git("-C", from, "worktree", "add", "-q", "-b", "topic", linked)
		for _, place := range []string{from, linked} {
			r, err := Open(t.Context(), place)
			if err != nil {
				t.Fatal(err)
			}
			o, commit, err := r.Overlay(t.Context(), filepath.Join(t.TempDir(), "overlay.git"), git("-C", from, "rev-parse", "main"), "", map[string]string{"b.c": "new"})
			if err != nil {
				t.Errorf("%s, %s: %v", format, filepath.Base(place), err)
				continue
			}
			t.Cleanup(mirrored{T: t, Repo: o}.dismiss)
			for name, want := range map[string]string{"a.c": "old", "b.c": "new"} {
				if got, err := o.Read(t.Context(), commit, name); err != nil || string(got) != want {
					t.Errorf("%s, %s: %s is %q, %v", format, filepath.Base(place), name, got, err)
				}
			}
		}
	}
}

// CommitFiles also works in the repository of a person, whose index and branch stay as they are.
func TestCommitFilesLeavesTheWorkTree(t *testing.T) {
	r := repository(t)
	look := func() string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "git", "-C", r.Dir(), "status", "--porcelain=v2", "--branch").Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	before := look()
	main, err := r.Resolve(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	commit, err := CommitFiles(t.Context(), r.Dir(), main, "k/one", map[string]string{"one.c": "submitted"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.Read(t.Context(), commit, "k/one/one.c"); err != nil || string(got) != "submitted" {
		t.Errorf("the commit has %q, %v", got, err)
	}
	if after := look(); after != before {
		t.Errorf("the work tree was\n%s\nand is\n%s", before, after)
	}
}

func TestOverlayErrors(t *testing.T) {
	m := mirrorOf(t)
	main := m.git(m.from, "rev-parse", "main")
	taken := t.TempDir()
	for name, c := range map[string]struct{ dir, parent, want string }{
		"a folder that is there":  {taken, main, "making an overlay"},
		"a commit that is absent": {filepath.Join(taken, "overlay.git"), strings.Repeat("1", 40), "git read-tree"},
	} {
		if _, _, err := m.Overlay(t.Context(), c.dir, c.parent, "k/one", map[string]string{"one.c": "x"}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if left := filesBelow(t, taken); slices.ContainsFunc(left, func(file string) bool { return filepath.Dir(file) == taken }) {
		t.Errorf("it wrote into a folder that is not its own: %q", left)
	}
}
