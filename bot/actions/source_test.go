package actions

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

type anywhere struct{ url string }

func (a anywhere) CloneURL(string) string { return a.url }
func (a anywhere) GitCredential(context.Context, string) (string, string, error) {
	return "", "", nil
}

func git(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v: %s", args[0], err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestMirrorBorrows checks that objects are borrowed from a full checkout and not from a shallow or
// missing one, and that the copy is complete in every case.
func TestMirrorBorrows(t *testing.T) {
	t.Parallel()
	server, err := embedded.New(embedded.Options{Dir: filepath.Join(t.TempDir(), "hub")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	repo, err := server.CreateRepo(embedded.RepoOptions{Owner: "olga", Name: "kernels"})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two", "three"} {
		if _, err := repo.Push("main", map[string]string{"a": text}, text); err != nil {
			t.Fatal(err)
		}
	}
	full, shallow := filepath.Join(t.TempDir(), "full"), filepath.Join(t.TempDir(), "shallow")
	git(t, "clone", "--quiet", repo.Dir(), full)
	git(t, "clone", "--quiet", "--depth", "1", "file://"+repo.Dir(), shallow)
	for _, test := range []struct {
		name, checkout string
		lends          bool
	}{{"full", full, true}, {"shallow", shallow, false}, {"none", t.TempDir(), false}} {
		t.Run(test.name, func(t *testing.T) {
			scratch := t.TempDir()
			store, err := mirrorOf(t.Context(), scratch, test.checkout, "olga/kernels", anywhere{repo.CloneURL()})
			if err != nil {
				t.Fatal(err)
			}
			copied, err := store.Fetch(t.Context(), "olga/kernels")
			if err != nil {
				t.Fatal(err)
			}
			if n := git(t, "-C", copied.Dir(), "rev-list", "--count", "main"); n != "3" {
				t.Errorf("the copy has %s commits, want 3", n)
			}
			counts := git(t, "-C", copied.Dir(), "count-objects", "-v")
			fetched := !strings.Contains(counts, "count: 0\n") || !strings.Contains(counts, "in-pack: 0\n")
			if fetched == test.lends {
				t.Errorf("objects were fetched: %v, and the checkout lends them: %v\n%s", fetched, test.lends, counts)
			}
		})
	}
}
