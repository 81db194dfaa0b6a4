package mirror_test

import (
	"context"
	"errors"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/planner/mirror"
)

// A repository that gets the name of another does not get its commits, also after a restart. A renamed
// repository, and one that GitHub does not identify, lose nothing.
func TestNameGoesToAnotherRepository(t *testing.T) {
	hub, repo, o := world(t)
	named, dir := repo, t.TempDir()
	unknown := errors.New("GitHub is down")
	var failure error
	open := func() *mirror.Store {
		return &mirror.Store{Dir: dir, Origin: o, Number: func(context.Context, string) (int64, error) { return named.ID(), failure }}
	}
	s := open()
	secret := repo.Head("main")
	has := func(s *mirror.Store, sha string) bool {
		t.Helper()
		got, err := s.Fetch(t.Context(), "olga/kernels")
		if err != nil {
			t.Fatal(err)
		}
		_, err = got.Read(t.Context(), sha, "a.cu")
		return err == nil
	}
	if !has(s, secret) || !has(open(), secret) {
		t.Fatal("the repository does not have its own commit")
	}
	failure = unknown
	if _, err := s.Fetch(t.Context(), "olga/kernels"); !errors.Is(err, unknown) {
		t.Errorf("without a number: %v", err)
	}
	failure = nil
	if err := repo.Rename("hidden"); err != nil {
		t.Fatal(err)
	}
	next, err := hub.CreateRepo(embedded.RepoOptions{Owner: "olga", Name: "kernels"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := next.Push("main", map[string]string{"a.cu": "mine\n"}, "mine"); err != nil {
		t.Fatal(err)
	}
	named = next
	for i, s := range []*mirror.Store{s, open()} { // the second one after a restart
		if has(s, secret) {
			t.Errorf("store %d: the new repository has a commit of the old one", i)
		}
		if !has(s, next.Head("main")) {
			t.Errorf("store %d: the new repository does not have its own commit", i)
		}
	}
}
