package client_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// TestErrorsSayWhatToDo checks the messages that a user reads who has to fix the problem.
func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	key, err := testKey()
	w.no(err)
	meek, err := w.hub.CreateApp(embedded.AppOptions{Slug: "meek", Key: key, Permissions: map[string]string{"metadata": "read"}})
	w.no(err)
	_, err = meek.Install(w.repo)
	w.no(err)
	poor, err := client.NewApp(meek.ID(), meek.PrivateKeyPEM(), w.options(client.Options{}))
	w.no(err)
	unknown, err := client.NewApp(4711, w.app.PrivateKeyPEM(), w.options(client.Options{}))
	w.no(err)
	late := w.options(client.Options{})
	late.Now = func() time.Time { return w.clock.Now().Add(-time.Hour) }
	slow, err := client.NewApp(w.app.ID(), w.app.PrivateKeyPEM(), late)
	w.no(err)
	w.hub.CreateUser("mallory")
	stranger := w.newToken(w.hub.CreateToken("mallory"), client.Options{})
	sha := w.pr.HeadSHA()
	nowhere := strings.Repeat("0", 40)
	only := func(_ any, err error) error { return err }
	tests := map[string]struct {
		err    error
		status int
		text   string
	}{
		"a permission is missing": {only(poor.CreateCheck(w.ctx, repo, client.Check{Name: "k", HeadSHA: sha})), 403,
			`create a check run in alice/kernels: GitHub answered 403: Resource not accessible by integration; grant the permission "Checks: read and write", and accept it in the installation`},
		"not installed": {only(w.bot.OpenPulls(w.ctx, "alice/other")), 404,
			`list the open pull requests in alice/other: find the App's installation in alice/other: GitHub answered 404: Not Found; check that it exists and that the App is installed on alice/other`},
		"no such pull request": {only(w.bot.Pull(w.ctx, repo, 99)), 404,
			`read #99 in alice/kernels: GitHub answered 404: Not Found; check that it exists and that the App is installed on alice/kernels`},
		"no such App": {only(unknown.Me(w.ctx)), 404,
			`ask GitHub which App this is: GitHub answered 404: Integration not found; check the App's id`},
		"a clock an hour behind": {only(slow.Me(w.ctx)), 401,
			`ask GitHub which App this is: GitHub answered 401: 'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires; set this machine's clock`},
		"a bad token": {only(w.newToken("ghp_x", client.Options{}).Pull(w.ctx, repo, 1)), 401,
			`read #1 in alice/kernels: GitHub answered 401: Bad credentials; the token is wrong, expired or revoked: make a new one`},
		"a token without write access": {stranger.SetStatus(w.ctx, repo, sha, client.Status{Context: "c", State: "success"}), 403,
			`set the status of ` + sha + ` in alice/kernels: GitHub answered 403: Resource not accessible by personal access token; give the token the scope "repo" or the permission "Commit statuses: read and write", and its owner write access`},
		"no such commit": {only(w.bot.CreateCheck(w.ctx, repo, client.Check{Name: "k", HeadSHA: nowhere})), 422,
			`create a check run in alice/kernels: GitHub answered 422: No commit found for SHA: ` + nowhere},
		"not a repository": {only(w.bot.Pull(w.ctx, "kernels", 1)), 0,
			`read #1: "kernels" is not a repository; write it as owner/name`},
		"too long": {only(w.bot.CreateComment(w.ctx, repo, 1, strings.Repeat("x", 65537))), 0,
			`comment on #1 in alice/kernels: the comment has 65537 bytes, GitHub takes 65536; shorten it`},
	}
	for name, tt := range tests {
		e, ok := errors.AsType[*client.Error](tt.err)
		if !ok || e.Status != tt.status {
			t.Errorf("%s: got %v, want status %d", name, tt.err, tt.status)
			continue
		}
		if e.Error() != tt.text {
			t.Errorf("%s:\n got %s\nwant %s", name, e, tt.text)
		}
		if errors.Is(e, client.ErrUnknown) {
			t.Errorf("%s: is in doubt", name)
		}
	}
}

func TestLimitThatOutlastsTheContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{ContentPerMinute: 1})
	_, err := w.bot.CreateComment(w.ctx, repo, 1, "first")
	w.no(err)
	ctx, cancel := context.WithTimeout(w.ctx, 30*time.Second)
	defer cancel()
	_, err = w.bot.CreateComment(ctx, repo, 1, "second")
	e, ok := errors.AsType[*client.Error](err)
	if !ok || !errors.Is(err, client.ErrLimited) || errors.Is(err, client.ErrUnknown) || !e.RetryAt.Equal(w.clock.Now().Add(time.Minute)) {
		t.Errorf("got %v", err)
	}
	if len(w.pr.Comments()) != 1 {
		t.Errorf("%d comments", len(w.pr.Comments()))
	}
}

// TestContextThatEndsDuringAWrite checks that a write in flight is uncertain when its context ends,
// although go-github reports only the context's error.
func TestContextThatEndsDuringAWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	ctx, cancel := context.WithCancel(w.ctx)
	h := w.newApp(client.Options{Transport: roundTrip(func(rq *http.Request) (*http.Response, error) {
		if !strings.HasSuffix(rq.URL.Path, "/comments") {
			return w.wire.RoundTrip(rq)
		}
		cancel()
		<-rq.Context().Done()
		return nil, rq.Context().Err()
	})})
	_, err := h.CreateComment(ctx, repo, 1, "slow")
	if !errors.Is(err, client.ErrUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
