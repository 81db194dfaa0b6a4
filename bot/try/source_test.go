package try

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/local/localtest"
)

// TestSource checks that every form of a repository can be read: a folder in it, a linked work
// tree, a bare repository, and a clone that never checked out the default branch.
func TestSource(t *testing.T) {
	r := newRepository(t, localtest.Small())
	r.branch("faster", "Drop the volatile", localtest.SmallFast)
	r.branch("two/commits", "Triple it", localtest.SmallWrong)
	r.git("switch", "--quiet", "two/commits")
	r.commit("Double it again", map[string]string{localtest.SmallSource: localtest.SmallFast})
	r.git("branch", "merged", "main")
	tip := r.git("rev-parse", "main")
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	r.git("worktree", "add", "--quiet", at("linked"), "faster")
	r.git("clone", "--quiet", "--bare", r.dir, at("bare.git"))
	r.git("clone", "--quiet", "--branch", "faster", r.dir, at("clone"))
	r.git("-C", at("clone"), "remote", "set-head", "origin", "main")
	t.Setenv("GIT_DIR", at("elsewhere")) // as a hook of a different repository sets it
	for name, tt := range map[string]struct {
		dir, name, base string
		branches        []string
	}{
		"a folder in it": {filepath.Join(r.dir, "kernels"), "my-kernels", "refs/heads/main", []string{"faster", "two/commits"}},
		"a work tree":    {at("linked"), "linked", "refs/heads/main", []string{"faster", "two/commits"}},
		"bare":           {at("bare.git"), "bare", "refs/heads/main", []string{"faster", "two/commits"}},
		"no local main":  {at("clone"), "clone", "refs/remotes/origin/main", []string{"faster"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := openSource(t.Context(), tt.dir, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, b := range s.branches {
				names = append(names, b.name)
			}
			if d := cmp.Diff(tt.branches, names); d != "" {
				t.Errorf("the branches are different (-want +got):\n%s", d)
			}
			if want := (branch{"main", tt.base, tip}); s.base != want || s.name != tt.name {
				t.Errorf("the base of %s is %v, want %v of %s", s.name, s.base, want, tt.name)
			}
			// If there is only one commit, it names the pull request.
			for _, b := range s.branches {
				title, _, err := s.words(t.Context(), b)
				if want := map[string]string{"faster": "Drop the volatile", "two/commits": "two/commits"}[b.name]; err != nil || title != want {
					t.Errorf("the title of %s is %q, want %q: %v", b.name, title, want, err)
				}
			}
			file := at(tt.name + ".bundle")
			if err := s.bundle(t.Context(), file, append(s.branches, s.base)...); err != nil {
				t.Error(err)
			}
			if info, err := os.Stat(file); err != nil || info.Size() == 0 {
				t.Errorf("the bundle: %v, %v", info, err)
			}
		})
	}
}
