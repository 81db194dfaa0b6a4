package mirror_test

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/planner/mirror"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

type origin struct{ base, token string }

func (o origin) CloneURL(repo string) string { return o.base + "/" + repo + ".git" }
func (o origin) GitCredential(context.Context, string) (string, string, error) {
	return "x-access-token", o.token, nil
}

func world(t *testing.T) (*embedded.Server, *embedded.Repo, origin) {
	t.Helper()
	hub, err := embedded.New(embedded.Options{Dir: t.TempDir(), Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hub.Close() })
	repo, err := hub.CreateRepo(embedded.RepoOptions{Owner: "olga", Name: "kernels", Private: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := repo.Push("main", map[string]string{"a.cu": "one\n"}, "one"); err != nil {
		t.Fatal(err)
	}
	return hub, repo, origin{hub.URL(), hub.CreateToken("olga")}
}

func TestFetch(t *testing.T) {
	_, repo, o := world(t)
	s := &mirror.Store{Dir: t.TempDir(), Origin: o}
	if _, err := repo.Push("faster", map[string]string{"a.cu": "two\n"}, "two"); err != nil {
		t.Fatal(err)
	}
	pr, err := repo.OpenPR(embedded.PROptions{Author: "olga", Title: "Faster", Head: "faster"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"two\n", "three\n"} {
		if want == "three\n" { // a second fetch gets new commits, after a force push, too
			if _, err := repo.PushCommit(embedded.Commit{Branch: "faster", From: repo.Head("main"), Files: map[string]string{"a.cu": want}, Message: "three"}); err != nil {
				t.Fatal(err)
			}
		}
		got, err := s.Fetch(t.Context(), "olga/kernels", "refs/pull/1/head")
		if err != nil {
			t.Fatal(err)
		}
		if text, err := got.Read(t.Context(), pr.HeadSHA(), "a.cu"); err != nil || string(text) != want {
			t.Errorf("the head's a.cu is %q (%v), want %q", text, err, want)
		}
		if _, err := got.Read(t.Context(), "refs/heads/main", "b.cu"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a file that is not there: %v", err)
		}
	}
}

func TestRefused(t *testing.T) {
	_, _, o := world(t)
	dir := t.TempDir()
	for name, c := range map[string]struct {
		origin origin
		repo   string
	}{
		"another's token":  {origin{o.base, "ghp_wrong"}, "olga/kernels"},
		"no such one":      {o, "olga/none"},
		"out of the store": {o, "../olga"},
		"an option":        {o, "-c/x"},
	} {
		_, err := (&mirror.Store{Dir: dir, Origin: c.origin}).Fetch(t.Context(), c.repo)
		if err == nil {
			t.Errorf("%s: fetched", name)
			continue
		}
		if strings.Contains(err.Error(), c.origin.token) {
			t.Errorf("%s: the error tells the token: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(dir), "olga.git")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was made outside of the store: %v", err)
	}
}

// TestCredentialLeavesNoTrace checks that a credential is neither on a command line, where every
// user of the host could read it, nor in the mirror's configuration.
func TestCredentialLeavesNoTrace(t *testing.T) {
	_, _, o := world(t)
	s := &mirror.Store{Dir: t.TempDir(), Origin: o}
	if _, err := s.Fetch(t.Context(), "olga/kernels"); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(s.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), o.token) {
			t.Errorf("%s holds the token", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestLargePullRequest checks that a pull request is fetched only up to the limit, the repository's
// own branches without a limit, and that an aborted fetch leaves nothing on the disk.
func TestLargePullRequest(t *testing.T) {
	hub, repo, o := world(t)
	s := &mirror.Store{Dir: t.TempDir(), Origin: o, Most: 1 << 20}
	noise := make([]byte, 5<<18) // more than Most, and incompressible
	rand.NewChaCha8([32]byte{1}).Read(noise)
	if _, err := repo.Push("main", map[string]string{"own.bin": string(noise)}, "large"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Fetch(t.Context(), "olga/kernels"); err != nil {
		t.Fatalf("the repository's own: %v", err)
	}
	hub.CreateUser("eve")
	if err := repo.Grant("eve", embedded.Read); err != nil {
		t.Fatal(err)
	}
	fork, err := repo.Fork("eve")
	if err != nil {
		t.Fatal(err)
	}
	rand.NewChaCha8([32]byte{2}).Read(noise)
	if _, err := fork.PushCommit(embedded.Commit{Branch: "bomb", Author: "eve", Files: map[string]string{"b.bin": string(noise)}, Message: "x"}); err != nil {
		t.Fatal(err)
	}
	if _, err := repo.OpenPR(embedded.PROptions{Author: "eve", Title: "Bomb", Head: "bomb", HeadRepo: fork}); err != nil {
		t.Fatal(err)
	}
	var refused checkout.Refused
	if _, err := s.Fetch(t.Context(), "olga/kernels", "refs/pull/1/head"); !errors.As(err, &refused) || !strings.Contains(refused.Why, "more than 1 MiB") {
		t.Errorf("a large pull request: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(s.Dir, "olga", "kernels.git", "objects", "pack", "tmp_*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	s.Most = 0
	if _, err := s.Fetch(t.Context(), "olga/kernels", "refs/pull/1/head"); err != nil {
		t.Errorf("with the usual limit: %v", err)
	}
}
