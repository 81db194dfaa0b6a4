package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(rq *http.Request) (*http.Response, error) { return f(rq) }

func TestJWTStaysWithinGitHubsTenMinutes(t *testing.T) {
	t.Parallel()
	for name, skew := range map[string]time.Duration{"right": 0, "a minute ahead": time.Minute, "a minute behind": -time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, client.Options{}, embedded.Limits{})
			var claims jwt.RegisteredClaims
			opt := w.options(client.Options{Transport: roundTrip(func(rq *http.Request) (*http.Response, error) {
				_, _, err := jwt.NewParser().ParseUnverified(strings.TrimPrefix(rq.Header.Get("Authorization"), "Bearer "), &claims)
				w.no(err)
				return w.wire.RoundTrip(rq)
			})})
			opt.Now = func() time.Time { return w.clock.Now().Add(skew) }
			h, err := client.NewApp(w.app.ID(), w.app.PrivateKeyPEM(), opt)
			w.no(err)
			me, err := h.Me(w.ctx)
			w.no(err)
			if me != w.app.Login() {
				t.Errorf("the App is %q, want %q", me, w.app.Login())
			}
			if life := claims.ExpiresAt.Sub(claims.IssuedAt.Time); life > 10*time.Minute {
				t.Errorf("the JWT lives for %v", life)
			}
		})
	}
}

func TestInstallationTokensAreSharedAndRenewedInTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	tokens := func(want int, when string) {
		t.Helper()
		_, err := w.bot.Pull(w.ctx, repo, w.pr.Number())
		w.no(err)
		if got := w.wire.count("access_tokens"); got != want {
			t.Errorf("%s: %d tokens were made, want %d", when, got, want)
		}
	}
	tokens(1, "first")
	tokens(1, "at once")
	w.clock.Advance(54 * time.Minute)
	tokens(1, "six minutes before the end")
	w.clock.Advance(time.Minute)
	tokens(2, "five minutes before the end")
	if n := w.wire.count("/installation"); n < 1 || w.wire.count("GET /repos/alice/kernels/installation") != 1 {
		t.Errorf("the installation was looked up %d times", n)
	}
}

func TestRevokedTokenIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	_, err := w.bot.Pull(w.ctx, repo, w.pr.Number())
	w.no(err)
	w.hub.RevokeToken(strings.TrimPrefix(w.wire.auth(), "Bearer "))
	// A write is repeated, too: a refused request was not executed.
	_, err = w.bot.CreateComment(w.ctx, repo, w.pr.Number(), "hello")
	w.no(err)
	if n := len(w.pr.Comments()); n != 1 {
		t.Errorf("%d comments, want 1", n)
	}
}

func TestRenewalFailsWhileTheOldTokenLives(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	_, err := w.bot.Pull(w.ctx, repo, w.pr.Number())
	w.no(err)
	w.clock.Advance(56 * time.Minute)
	w.hub.SetFaults(embedded.Faults{Rate: 1, Kinds: []embedded.FaultKind{embedded.ServerError}, Only: func(r *http.Request) bool { return strings.Contains(r.URL.Path, "access_tokens") }})
	if _, err := w.bot.Pull(w.ctx, repo, w.pr.Number()); err != nil {
		t.Errorf("with a token that lives: %v", err)
	}
	w.clock.Advance(4 * time.Minute)
	_, err = w.bot.CreateComment(w.ctx, repo, w.pr.Number(), "hello")
	w.refusal(err, 500)
	if errors.Is(err, client.ErrUnknown) {
		t.Errorf("a comment that was never sent: %v", err)
	}
}

func TestAppThatIsInstalledAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	_, err := w.bot.Pull(w.ctx, repo, w.pr.Number())
	w.no(err)
	_, _, err = w.bot.GitCredential(w.ctx, repo)
	w.no(err)
	w.inst.Uninstall()
	_, err = w.bot.Pull(w.ctx, repo, w.pr.Number())
	if e := w.refusal(err, 404); !strings.Contains(e.Error(), "installed on alice/kernels") {
		t.Errorf("uninstalled: %v", err)
	}
	_, err = w.app.Install(w.repo)
	w.no(err)
	_, err = w.bot.CreateComment(w.ctx, repo, w.pr.Number(), "back")
	w.no(err)
	_, _, err = w.bot.GitCredential(w.ctx, repo)
	w.no(err)
}

func TestReinstallationBetweenTwoCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	_, err := w.bot.Pull(w.ctx, repo, w.pr.Number())
	w.no(err)
	_, _, err = w.bot.GitCredential(w.ctx, repo)
	w.no(err)
	w.inst.Uninstall()
	_, err = w.app.Install(w.repo)
	w.no(err)
	_, err = w.bot.CreateComment(w.ctx, repo, w.pr.Number(), "as if nothing had happened")
	w.no(err)
	w.clock.Advance(time.Hour)
	_, _, err = w.bot.GitCredential(w.ctx, repo)
	w.no(err)
}

// A token for git that ends before its time is replaced once git reports it, and a late report of an old token changes
// nothing.
func TestGitCredentialThatEndsEarly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	credential := func() string {
		t.Helper()
		_, token, err := w.bot.GitCredential(w.ctx, repo)
		w.no(err)
		return token
	}
	first := credential()
	if again := credential(); again != first {
		t.Error("a token that works was replaced")
	}
	w.inst.Uninstall() // which ends its tokens
	_, err := w.app.Install(w.repo)
	w.no(err)
	w.bot.GitRefused(repo, first)
	second := credential()
	if second == first {
		t.Error("a token that git was refused with is given again")
	}
	w.bot.GitRefused(repo, first)
	if third := credential(); third != second {
		t.Error("a late report replaced a token that works")
	}
	w.newToken("ghp_any", client.Options{}).GitRefused(repo, "ghp_any") // there is no other
}

// The local clock may be behind GitHub's: a token's life is counted from its issue.
func TestTokenLifeWithASlowClock(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	slow := func() time.Time { return w.clock.Now().Add(-8 * time.Minute) }
	bot, err := client.NewApp(w.app.ID(), w.app.PrivateKeyPEM(), client.Options{BaseURL: w.hub.URL(), Now: slow, Sleep: w.clock.Sleep})
	w.no(err)
	_, first, err := bot.GitCredential(w.ctx, repo)
	w.no(err)
	w.clock.Advance(56 * time.Minute) // the written end is 12 minutes away by the slow clock
	_, second, err := bot.GitCredential(w.ctx, repo)
	w.no(err)
	if second == first {
		t.Error("a token is given whose end is less than five minutes away")
	}
}

func TestGitCredentialReadsOneRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	secret, err := w.hub.CreateRepo(embedded.RepoOptions{Owner: "alice", Name: "secret", Private: true})
	w.no(err)
	_, err = secret.Push("main", map[string]string{"a": "a\n"}, "first")
	w.no(err)
	w.inst.Uninstall()
	_, err = w.app.Install(w.repo, secret)
	w.no(err)
	_, err = w.bot.OpenPulls(w.ctx, "alice/secret") // the App itself can read both
	w.no(err)
	user, token, err := w.bot.GitCredential(w.ctx, repo)
	w.no(err)
	if got := w.bot.CloneURL(repo); got != w.repo.CloneURL() {
		t.Errorf("clone from %s, want %s", got, w.repo.CloneURL())
	}
	git := func(args ...string) error {
		cmd := exec.CommandContext(w.ctx, "git", args...)
		cmd.Env = append(cmd.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ASKPASS=true")
		return cmd.Run()
	}
	with := func(url string) string { return strings.Replace(url, "://", "://"+user+":"+token+"@", 1) }
	dir := t.TempDir()
	w.no(git("clone", "-q", with(w.bot.CloneURL(repo)), filepath.Join(dir, "kernels")))
	if git("clone", "-q", with(w.bot.CloneURL("alice/secret")), filepath.Join(dir, "secret")) == nil {
		t.Error("the credential reads another private repository")
	}
	if git("-C", filepath.Join(dir, "kernels"), "push", "-q", with(w.bot.CloneURL(repo)), "HEAD:refs/heads/new") == nil {
		t.Error("the credential pushes")
	}
	personal := w.newToken("ghp_any", client.Options{})
	if _, token, err := personal.GitCredential(w.ctx, repo); err != nil || token != "ghp_any" {
		t.Errorf("with a token: %q, %v", token, err)
	}
}

func TestBadCredentialsAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func() (*client.GitHub, error){
		"no key":        func() (*client.GitHub, error) { return client.NewApp(1, []byte("not PEM"), client.Options{}) },
		"no App":        func() (*client.GitHub, error) { return client.NewApp(0, nil, client.Options{}) },
		"no token":      func() (*client.GitHub, error) { return client.NewToken(" ", client.Options{}) },
		"two tokens":    func() (*client.GitHub, error) { return client.NewToken("ghp_a ghp_b", client.Options{}) },
		"wrong address": func() (*client.GitHub, error) { return client.NewToken("ghp_a", client.Options{BaseURL: "ftp://x"}) },
	} {
		if _, err := open(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestTokenStaysWithTheAPI checks that a redirect to a different host does not carry the token
// there.
// TestRefusedKeyUsesUpNoLimit checks that a key that GitHub has refused for a while works as soon as GitHub accepts it.
// GitHub counts a request with wrong credentials for its address, which has 60 an hour, and its headers say so.
func TestRefusedKeyUsesUpNoLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, client.Options{}, embedded.Limits{})
	w.app.RefuseKey(true)
	before := w.clock.Now()
	for range 70 {
		if err := w.bot.Check(w.ctx); err == nil {
			t.Fatal("a refused key is accepted")
		}
	}
	w.app.RefuseKey(false)
	w.no(w.bot.Check(w.ctx))
	if waited := w.clock.Now().Sub(before); waited > 0 {
		t.Errorf("the client waited for %v", waited)
	}
}

func TestTokenStaysWithTheAPI(t *testing.T) {
	t.Parallel()
	leaked := make(chan string, 1)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leaked <- r.Header.Get("Authorization")
	}))
	t.Cleanup(other.Close)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusFound)
	}))
	t.Cleanup(api.Close)
	h, err := client.NewToken("ghp_secret", client.Options{BaseURL: api.URL})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = h.Pull(context.Background(), repo, 1)
	if got := <-leaked; got != "" {
		t.Errorf("another host was sent %q", got)
	}
}
