package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/webhook"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

func TestRepositoriesOfAllInstallations(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	w.hub.CreateOrg("lab")
	secret, err := w.hub.CreateRepo(embedded.RepoOptions{Owner: "lab", Name: "secret", Private: true, DefaultBranch: "trunk"})
	w.no(err)
	inst, err := w.app.Install(secret)
	w.no(err)
	_, err = w.hub.CreateRepo(embedded.RepoOptions{Owner: "lab", Name: "unrelated"})
	w.no(err)
	ids, err := w.bot.Installations(w.ctx)
	w.no(err)
	var got []client.Repository
	for _, id := range ids {
		some, err := w.bot.Repositories(w.ctx, id)
		w.no(err)
		got = append(got, some...)
	}
	want := []client.Repository{{Repository: webhook.Repository{FullName: repo, ID: w.repo.ID(), DefaultBranch: "main"}},
		{Repository: webhook.Repository{FullName: "lab/secret", ID: secret.ID(), DefaultBranch: "trunk"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("repositories (-want +got):\n%s", diff)
	}
	one, err := w.bot.Repository(w.ctx, "lab/secret")
	w.no(err)
	if one != want[1] {
		t.Errorf("read alone: %+v, want %+v", one, want[1])
	}
	if n := w.wire.count("GET /repos/lab/secret/installation"); n != 0 {
		t.Error("the installation was looked up although the list had it")
	}
	inst.Uninstall()
	if gone, err := w.bot.Repositories(w.ctx, inst.ID()); err != nil || len(gone) != 0 {
		t.Errorf("an installation that is gone has %v, %v", gone, err)
	}
	_, err = w.bot.Repository(w.ctx, "lab/secret")
	if !errors.Is(err, client.ErrUnavailable) || !client.IsPermanent(err) {
		t.Errorf("a repository without the App: %v", err)
	}
}

// Whether a repository can be reached is GitHub's answer of now, of the repository with that number alone.
func TestReaches(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	reaches := func(h *client.GitHub, name string, want string) {
		t.Helper()
		if got, err := h.Reaches(w.ctx, name, w.repo.ID()); err != nil || got != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	token := w.newToken(w.hub.CreateToken("alice"), client.Options{})
	reaches(w.bot, repo, repo)
	reaches(token, repo, repo)
	w.inst.Uninstall()
	reaches(w.bot, repo, "") // although anybody may read it
	reaches(token, repo, repo)
	_, err := w.app.Install(w.repo)
	w.no(err)
	reaches(w.bot, repo, repo)
	if got, err := w.bot.Reaches(w.ctx, repo, w.repo.ID()+1); err != nil || got != "" {
		t.Errorf("another number: %q, %v", got, err)
	}
	w.no(w.repo.Rename("cuda"))
	reaches(w.bot, "alice/cuda", "alice/cuda")
	reaches(token, repo, "alice/cuda")
	w.repo.Delete()
	reaches(w.bot, "alice/cuda", "")
	reaches(token, "alice/cuda", "")
	ended, cancel := context.WithCancel(w.ctx)
	cancel()
	if got, err := token.Reaches(ended, repo, w.repo.ID()); err == nil {
		t.Errorf("without an answer: %q", got)
	}
}

func TestFailedDeliveries(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	var code atomic.Int32
	code.Store(http.StatusAccepted)
	receiver := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { rw.WriteHeader(int(code.Load())) }))
	t.Cleanup(receiver.Close)
	w.app.SetHook(receiver.URL, "secret")
	quiet := func() { w.Helper(); w.no(w.hub.Quiet(w.ctx)) }
	quiet()
	_, err := w.pr.Comment("alice", "heard")
	w.no(err)
	quiet()
	code.Store(http.StatusInternalServerError)
	_, err = w.pr.Comment("alice", "too early")
	w.no(err)
	quiet()
	for range 120 { // more than one page
		_, err = w.pr.Comment("alice", "missed")
		w.no(err)
	}
	quiet()
	list := func() (all []client.Delivery) {
		w.Helper()
		for cursor := ""; ; {
			some, next, err := w.bot.FailedDeliveries(w.ctx, cursor)
			w.no(err)
			if all = append(all, some...); next == "" {
				return all
			}
			cursor = next
		}
	}
	failed := list()
	if len(failed) != 121 || failed[0].ID < failed[120].ID || w.wire.count("GET /app/hook/deliveries") != 2 {
		t.Fatalf("%d deliveries failed in %d pages, want 121 in 2, newest first", len(failed), w.wire.count("GET /app/hook/deliveries"))
	}
	if d := failed[0]; d.Event != "issue_comment" || d.Action != "created" || d.StatusCode != 500 || !d.At.Equal(w.clock.Now()) {
		t.Errorf("the newest is %+v", d)
	}
	// The second attempt fails like the first and is listed, too. The third succeeds.
	w.no(w.bot.Redeliver(w.ctx, failed[0].ID))
	quiet()
	again := list()
	if len(again) != 122 || again[0].GUID != failed[0].GUID || again[0].ID == failed[0].ID {
		t.Fatalf("%d deliveries after one more failure, want 122 with the newest attempt first", len(again))
	}
	code.Store(http.StatusAccepted)
	w.no(w.bot.Redeliver(w.ctx, again[0].ID))
	quiet()
	if n := len(list()); n != 122 {
		t.Errorf("%d deliveries failed after one success, want 122", n)
	}
	w.refusal(w.bot.Redeliver(w.ctx, 1<<40), 404)
}

func TestWhatATokenCannotDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	h := w.newToken(w.hub.CreateToken("alice"), client.Options{})
	_, list := h.Installations(w.ctx)
	_, _, failed := h.FailedDeliveries(w.ctx, "")
	for _, err := range []error{list, failed, h.Redeliver(w.ctx, 1)} {
		if !errors.Is(err, client.ErrNeedsApp) {
			t.Errorf("got %v", err)
		}
	}
	if r, err := h.Repository(w.ctx, repo); err != nil || r.FullName != repo {
		t.Errorf("read with a token: %+v, %v", r, err)
	}
	me, err := h.Me(w.ctx)
	if err != nil || me != "alice" {
		t.Errorf("the token is of %q, %v", me, err)
	}
}

// TestTokenOfActions uses a workflow's token, from Actions or from another App. It is an
// installation token, which may not ask for its own login. The client learns the login from the
// first object that it writes.
func TestTokenOfActions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	h := w.newToken(w.inst.Token(), client.Options{Checks: true})
	me, err := h.Me(w.ctx)
	if err != nil || me != "" {
		t.Errorf("before it has written anything it is %q, %v", me, err)
	}
	_, err = w.pr.Comment("alice", "Hello")
	w.no(err)
	_, err = h.CreateComment(w.ctx, repo, w.pr.Number(), "Good day")
	w.no(err)
	for what, by := range map[string]*client.GitHub{"who wrote it": h, "who does not know its name": w.newToken(w.inst.Token(), client.Options{Checks: true})} {
		all, err := by.ListComments(w.ctx, repo, w.pr.Number())
		if err != nil || len(all) != 2 || all[0].Mine || !all[1].Mine {
			t.Errorf("%s: %+v, %v", what, all, err)
		}
	}
	h = w.newToken(w.inst.Token(), client.Options{Checks: true})
	_, err = h.CreateCheck(w.ctx, repo, client.Check{Name: "kernelgate", HeadSHA: w.pr.HeadSHA()})
	w.no(err)
	if me, err := h.Me(w.ctx); err != nil || me != "kernelgate[bot]" {
		t.Errorf("after a check it is %q, %v", me, err)
	}
	list, err := h.ListChecks(w.ctx, repo, w.pr.HeadSHA(), "kernelgate")
	if err != nil || len(list) != 1 {
		t.Errorf("%d checks, %v", len(list), err)
	}
}
