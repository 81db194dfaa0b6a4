package mirror_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/kernelgate/kernelgate/bot/planner/mirror"
	"github.com/kernelgate/kernelgate/runners/host/checkout"
)

// TestBranchBecomesFolder deletes one of feature and feature/x and pushes the other. Git keeps a
// branch as a file, so both cannot exist together. A fetch must add the new branch and remove the
// old one.
func TestBranchBecomesFolder(t *testing.T) {
	for _, names := range [][2]string{{"feature", "feature/x"}, {"feature/x", "feature"}} {
		t.Run(fmt.Sprintf("%s to %s", names[0], names[1]), func(t *testing.T) {
			t.Parallel()
			_, repo, o := world(t)
			s := &mirror.Store{Dir: t.TempDir(), Origin: o}
			if _, err := repo.Push(names[0], map[string]string{"a.cu": "two\n"}, "two"); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Fetch(t.Context(), "olga/kernels"); err != nil {
				t.Fatal(err)
			}
			if err := repo.DeleteBranch(names[0]); err != nil {
				t.Fatal(err)
			}
			if _, err := repo.Push(names[1], map[string]string{"a.cu": "three\n"}, "three"); err != nil {
				t.Fatal(err)
			}
			got, err := s.Fetch(t.Context(), "olga/kernels")
			if err != nil {
				t.Fatal(err)
			}
			if sha, err := got.Resolve(t.Context(), "refs/heads/"+names[1]); err != nil || sha != repo.Head(names[1]) {
				t.Errorf("%s is %s (%v), want %s", names[1], sha, err, repo.Head(names[1]))
			}
			_, err = got.Resolve(t.Context(), "refs/heads/"+names[0])
			if _, unknown := errors.AsType[checkout.UnknownCommit](err); !unknown {
				t.Errorf("%s is still there: %v", names[0], err)
			}
		})
	}
}
