package mirror_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/planner/mirror"
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
		if want == "three\n" { // a second fetch brings what is new, a force push included
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

// A credential never stands on a command line, where every user of the host reads
// it, nor in the mirror's configuration.
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
