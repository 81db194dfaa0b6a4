package client_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/policies/policy"
)

func TestComments(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	n := w.pr.Number()
	theirs, err := w.pr.Comment("alice", "/rebench")
	w.no(err)
	id, err := w.bot.CreateComment(w.ctx, repo, n, "measuring")
	w.no(err)
	w.no(w.bot.EditComment(w.ctx, repo, id, "PASS"))
	list, err := w.bot.ListComments(w.ctx, repo, n)
	w.no(err)
	now := w.clock.Now()
	want := []client.Comment{
		{ID: theirs.ID, Author: "alice", Body: "/rebench", CreatedAt: now, UpdatedAt: now},
		{ID: id, Author: "kernelgate[bot]", Bot: true, Mine: true, Body: "PASS", CreatedAt: now, UpdatedAt: now},
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("comments (-want +got):\n%s", diff)
	}
	for range 2 { // the second call finds it deleted
		w.no(w.bot.DeleteComment(w.ctx, repo, id))
	}
	if list, err := w.bot.ListComments(w.ctx, repo, n); err != nil || len(list) != 1 {
		t.Errorf("after one was deleted there are %v (%v)", list, err)
	}
	for name, body := range map[string]string{"empty": "", "long": strings.Repeat("x", client.MaxCommentText+1)} {
		if _, err := w.bot.CreateComment(w.ctx, repo, n, body); err == nil {
			t.Errorf("%s: no error", name)
		}
		if w.bot.EditComment(w.ctx, repo, theirs.ID, body) == nil {
			t.Errorf("%s: edited", name)
		}
	}
}

// TestListsOfManyPages checks that lists continue after the first hundred entries, even if the
// cache has the first page.
func TestListsOfManyPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	for want := 1; want <= 201; want++ {
		_, err := w.pr.Comment("alice", fmt.Sprint(want))
		w.no(err)
		if want != 99 && want != 100 && want != 101 && want != 201 {
			continue
		}
		list, err := w.bot.ListComments(w.ctx, repo, w.pr.Number())
		w.no(err)
		if len(list) != want || list[want-1].Body != fmt.Sprint(want) {
			t.Errorf("%d comments, want %d", len(list), want)
		}
	}
	if w.bot.Stats().CacheHits == 0 {
		t.Error("nothing came from the cache")
	}
	if _, err := w.bot.ListComments(w.ctx, repo, 0); err == nil {
		t.Error("the comments of no pull request are listed")
	}
}

func TestReactions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	c, err := w.pr.Comment("alice", "/rebench")
	w.no(err)
	w.no(c.React("alice", "eyes"))
	for range 2 {
		w.no(w.bot.React(w.ctx, repo, c.ID, "eyes"))
	}
	w.no(w.bot.React(w.ctx, repo, c.ID, "rocket"))
	want := map[string][]string{"eyes": {"alice", "kernelgate[bot]"}, "rocket": {"kernelgate[bot]"}}
	if diff := cmp.Diff(want, w.pr.Comments()[0].Reactions); diff != "" {
		t.Errorf("reactions (-want +got):\n%s", diff)
	}
	if w.bot.React(w.ctx, repo, c.ID, "thinking") == nil {
		t.Error("an unknown reaction is no error")
	}
}

func TestPermission(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	for _, role := range []embedded.Role{embedded.Read, embedded.Triage, embedded.Write, embedded.Maintain, embedded.Admin} {
		login := "user-" + string(role)
		w.hub.CreateUser(login)
		w.no(w.repo.Grant(login, role))
		got, err := w.bot.Permission(w.ctx, repo, login)
		w.no(err)
		if got != policy.Role(role) {
			t.Errorf("%s has %s", login, got)
		}
	}
	got, err := w.bot.Permission(w.ctx, repo, "nobody[bot]")
	if err != nil || got != "none" {
		t.Errorf("who is not there has %q, %v", got, err)
	}
	if _, err := w.bot.Permission(w.ctx, "alice/elsewhere", "alice"); err == nil {
		t.Error("a repository that is not there gives roles")
	}
	if _, err := w.bot.Permission(w.ctx, repo, ""); err == nil {
		t.Error("nobody has a role")
	}
}

func TestPulls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	w.hub.CreateUser("bob")
	fork, err := w.repo.Fork("bob")
	w.no(err)
	_, err = fork.Push("patch", map[string]string{"a.cu": "three\n"}, "patch")
	w.no(err)
	second, err := w.repo.OpenPR(embedded.PROptions{Author: "bob", Title: "Patch", Head: "patch", HeadRepo: fork, Draft: true})
	w.no(err)
	st := w.pr.State()
	one := client.Pull{Number: 1, Title: "Faster", Author: "alice", Open: true, Labels: []string{"optimisation"}, HeadSHA: st.HeadSHA, HeadRepo: repo,
		BaseRef: "main", BaseRepo: repo, BaseID: w.repo.ID(), UpdatedAt: st.UpdatedAt}
	st = second.State()
	two := client.Pull{Number: 2, Title: "Patch", Author: "bob", Open: true, Draft: true, HeadSHA: st.HeadSHA, HeadRepo: "bob/kernels",
		BaseRef: "main", BaseRepo: repo, BaseID: w.repo.ID(), UpdatedAt: st.UpdatedAt}
	open, err := w.bot.OpenPulls(w.ctx, repo)
	w.no(err)
	if diff := cmp.Diff([]client.Pull{one, two}, open); diff != "" {
		t.Errorf("open (-want +got):\n%s", diff)
	}
	w.no(w.pr.Merge("alice"))
	got, err := w.bot.Pull(w.ctx, repo, 1)
	w.no(err)
	if got.Open || !got.Merged {
		t.Errorf("merged: %+v", got)
	}
	if open, err = w.bot.OpenPulls(w.ctx, repo); err != nil || len(open) != 1 {
		t.Errorf("%d are open, %v", len(open), err)
	}
	if _, err := w.bot.Pull(w.ctx, repo, 99); !client.NotFound(err) {
		t.Errorf("#99: %v", err)
	}
}

func TestReviews(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	n, head, at := w.pr.Number(), w.pr.HeadSHA(), w.clock.Now()
	if moved, err := w.bot.Retargeted(w.ctx, repo, n); err != nil || !moved.IsZero() {
		t.Errorf("moved at %v, %v", moved, err)
	}
	w.hub.CreateUser("bob")
	w.no(w.pr.Review("bob", "APPROVE", ""))
	w.no(w.pr.Review("bob", "COMMENT", "well"))
	list, err := w.bot.Reviews(w.ctx, repo, n)
	w.no(err)
	for i := range list {
		list[i].ID = 0
	}
	want := []client.Review{{Author: "bob", State: client.Approved, SHA: head, At: at}, {Author: "bob", State: "COMMENTED", SHA: head, At: at}}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("reviews (-want +got):\n%s", diff)
	}
	_, err = w.repo.Push("next", map[string]string{"NEXT": "x"}, "next")
	w.no(err)
	w.clock.Advance(time.Hour)
	w.no(w.pr.Edit("alice", "", "", "next"))
	if moved, err := w.bot.Retargeted(w.ctx, repo, n); err != nil || !moved.Equal(w.clock.Now()) {
		t.Errorf("moved at %v, %v", moved, err)
	}
}
