package embedded_test

import (
	"net/http"
	"testing"

	"github.com/google/go-github/v60/github"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// A number leads to its repository under every name, and only for those who may see it. A former name
// redirects to the number until a different repository takes the name. Then the redirect is gone for good.
func TestNumbersAndNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, embedded.Options{})
	repo, err := w.hub.CreateRepo(embedded.RepoOptions{Owner: "alice", Name: "secret", Private: true})
	w.no(err)
	owner, stranger := w.person("alice"), w.person("mallory")
	byNumber := func(c *github.Client, id int64) (string, error) {
		found, _, err := c.Repositories.GetByID(w.ctx, id)
		return found.GetFullName(), err
	}
	if name, err := byNumber(owner, repo.ID()); err != nil || name != "alice/secret" {
		t.Errorf("by its number: %q (%v)", name, err)
	}
	for _, id := range []int64{repo.ID(), 999999} {
		_, err := byNumber(stranger, id)
		w.wantStatus(err, http.StatusNotFound)
	}
	w.no(repo.Rename("hidden"))
	if name, err := byNumber(owner, repo.ID()); err != nil || name != "alice/hidden" {
		t.Errorf("after a rename: %q (%v)", name, err)
	}
	if found, _, err := owner.Repositories.Get(w.ctx, "alice", "secret"); err != nil || found.GetID() != repo.ID() {
		t.Errorf("the old name leads to %v (%v)", found, err)
	}
	_, _, err = stranger.Repositories.Get(w.ctx, "alice", "secret")
	w.wantStatus(err, http.StatusNotFound)
	made, _, err := owner.Issues.Create(w.ctx, "alice", "secret", &github.IssueRequest{Title: github.String("x")})
	w.no(err) // GitHub answers 307 with the number, which the client follows
	if all := repo.Issues(); len(all) != 1 || all[0].Number != made.GetNumber() {
		t.Errorf("an issue by the old name: %v, and the repository has %v", made, all)
	}
	next, err := w.hub.CreateRepo(embedded.RepoOptions{Owner: "alice", Name: "Secret"})
	w.no(err)
	if found, _, err := owner.Repositories.Get(w.ctx, "alice", "secret"); err != nil || found.GetID() != next.ID() {
		t.Errorf("the name leads to %v (%v), want the new repository", found, err)
	}
	next.Delete()
	_, _, err = owner.Repositories.Get(w.ctx, "alice", "secret")
	w.wantStatus(err, http.StatusNotFound)
	if name, err := byNumber(owner, repo.ID()); err != nil || name != "alice/hidden" {
		t.Errorf("at last: %q (%v)", name, err)
	}
	_, err = byNumber(owner, next.ID())
	w.wantStatus(err, http.StatusNotFound)
}
