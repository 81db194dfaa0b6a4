package client_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// The client opens, edits and closes an issue, and an edit opens it again. The list has only the client's
// issues: no pull requests, and no issues of other authors.
func TestIssues(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	person := w.newToken(w.hub.CreateToken("alice"), client.Options{})
	_, err := person.CreateIssue(w.ctx, repo, "hers", "text")
	w.no(err)
	number, err := w.bot.CreateIssue(w.ctx, repo, "mine", "text", "kernelgate")
	w.no(err)
	w.no(w.bot.EditIssue(w.ctx, repo, number, "mine, edited", "new text"))
	id, err := w.bot.CreateComment(w.ctx, repo, number, "a comment")
	w.no(err)
	w.no(w.bot.EditComment(w.ctx, repo, id, "another"))
	list, err := w.bot.MyIssues(w.ctx, repo, "kernelgate")
	w.no(err)
	want := client.Issue{Number: number, Title: "mine, edited", Body: "new text", Open: true, Mine: true}
	if diff := cmp.Diff([]client.Issue{want}, list); diff != "" {
		t.Errorf("issues (-want +got):\n%s", diff)
	}
	w.no(w.bot.CloseIssue(w.ctx, repo, number))
	want.Open = false
	if got, err := w.bot.Issue(w.ctx, repo, number); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	w.no(w.bot.EditIssue(w.ctx, repo, number, "mine", "again"))
	shown := w.repo.Issues()
	if len(shown) != 2 || !shown[1].Open || shown[1].Body != "again" || len(shown[1].Comments) != 1 || shown[1].Comments[0].Body != "another" || shown[1].Labels[0] != "kernelgate" {
		t.Errorf("GitHub shows %+v", shown)
	}
	if number <= w.pr.Number() {
		t.Errorf("the issue has number %d, after pull request %d", number, w.pr.Number())
	}
	for name, title := range map[string]string{"no title": " ", "a long title": strings.Repeat("x", 257)} {
		if _, err := w.bot.CreateIssue(w.ctx, repo, title, "text"); err == nil {
			t.Errorf("%s: it was opened", name)
		}
		if w.bot.EditIssue(w.ctx, repo, number, title, "text") == nil {
			t.Errorf("%s: it was edited", name)
		}
	}
	if _, err := w.bot.CreateIssue(w.ctx, repo, "title", strings.Repeat("x", client.MaxCommentText+1)); err == nil {
		t.Error("a long text: it was opened")
	}
	w.no(w.repo.DeleteIssue("alice", number))
	_, err = w.bot.Issue(w.ctx, repo, number)
	_, unknown := w.bot.Issue(w.ctx, repo, 999)
	if !client.Deleted(err) || !client.Deleted(unknown) {
		t.Errorf("a deleted issue: %v; one that never was: %v", err, unknown)
	}
	w.repo.DisableIssues()
	_, err = w.bot.CreateIssue(w.ctx, repo, "title", "text")
	if e := w.refusal(err, http.StatusGone); e.Hint != "turn issues on in the settings of "+repo || !client.IsPermanent(err) {
		t.Errorf("issues that are turned off: %v", err)
	}
	if client.Deleted(err) {
		t.Error("issues that are turned off count as deleted")
	}
	if _, err := w.bot.CreateComment(w.ctx, repo, w.pr.Number(), "x"); err != nil {
		t.Errorf("the conversation of a pull request, without issues: %v", err)
	}
}

// The error for an App without the permission names the permission that the App needs.
func TestIssuesWithoutPermission(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	key, err := testKey()
	w.no(err)
	mute, err := w.hub.CreateApp(embedded.AppOptions{Slug: "mute", Key: key, Permissions: map[string]string{"metadata": "read", "issues": "read", "pull_requests": "write"}})
	w.no(err)
	_, err = mute.Install(w.repo)
	w.no(err)
	h, err := client.NewApp(mute.ID(), mute.PrivateKeyPEM(), w.options(client.Options{}))
	w.no(err)
	if lack, err := h.WithoutIssues(w.ctx); err != nil || !slices.Equal(lack, []string{"alice"}) {
		t.Errorf("%q may not write issues, %v", lack, err)
	}
	if lack, err := w.bot.WithoutIssues(w.ctx); err != nil || len(lack) != 0 {
		t.Errorf("with the permission %q may not, %v", lack, err)
	}
	_, err = h.CreateIssue(w.ctx, repo, "title", "text")
	if e := w.refusal(err, http.StatusForbidden); e.Hint != `grant the permission "Issues: read and write", and accept it in the installation` || !client.IsPermanent(err) {
		t.Errorf("%v", err)
	}
}
