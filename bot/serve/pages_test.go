package serve_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/serve"
)

// settled proposes a change of documents and waits for its check.
func (w *world) settled(hook string) embedded.Check {
	w.Helper()
	w.app.SetHook(hook, secret)
	return w.completed(w.propose("README.md", "Kernels, and nothing else.\n").HeadSHA())
}

// What the bot links to is there for everybody, where the configuration says so.
func TestLinksLeadToPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.options()
	o.Config.URL, o.Pages.Public = "https://gate.example/", []string{"Olga/Kernels"}
	s, _ := w.start(o)
	w.no(s.Ready(w.ctx))
	c := w.settled(s.URL() + "/webhook")
	path, ok := strings.CutPrefix(c.DetailsURL, "https://gate.example/")
	if !ok || !strings.HasPrefix(path, "changes/pr-") {
		t.Fatalf("the check leads to %q", c.DetailsURL)
	}
	status, body := w.get(s.URL() + "/" + path)
	if status != http.StatusOK || !strings.Contains(body, "Nothing was measured for this change") || !strings.Contains(body, "olga/kernels") {
		t.Errorf("%s answers %d %s", path, status, body)
	}
	if status, _ := w.get(s.URL() + "/"); status != http.StatusOK {
		t.Errorf("the first page answers %d", status)
	}
	if status, body := w.get(s.URL() + "/healthz"); status != http.StatusOK || body != "ok\n" {
		t.Errorf("/healthz answers %d %q", status, body)
	}
}

// Unless it says so, there are no pages and no links.
func TestPagesArePrivate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.options()
	o.Config.URL = "https://gate.example"
	s, _ := w.start(o)
	w.no(s.Ready(w.ctx))
	if c := w.settled(s.URL() + "/webhook"); c.DetailsURL != "" && strings.Contains(c.DetailsURL, "gate.example") {
		t.Errorf("the check leads to %q, where nobody can go", c.DetailsURL)
	}
	for _, path := range []string{"/", "/changes/pr-1-1", "/login", "/api/v1", "/feed.atom"} {
		if status, _ := w.get(s.URL() + path); status != http.StatusNotFound {
			t.Errorf("%s answers %d", path, status)
		}
	}
}

// private creates a private repository olga/private with the App, which one user can read.
func (w *world) private(reader string) *embedded.Repo {
	w.Helper()
	r, err := w.hub.CreateRepo(embedded.RepoOptions{Owner: "olga", Name: "private", Private: true})
	w.no(err)
	_, err = r.Push("main", map[string]string{"README.md": "Secret kernels.\n"}, "Begin")
	w.no(err)
	_, err = w.app.Install(r)
	w.no(err)
	w.hub.CreateUser(reader)
	w.no(r.Grant(reader, embedded.Read))
	return r
}

// loginOptions is a server with login. The embedded GitHub has no login of its own; the code is who
// logs in.
func (w *world) loginOptions() serve.Options {
	w.Helper()
	behind, err := url.Parse(w.hub.URL())
	w.no(err)
	proxy := httputil.NewSingleHostReverseProxy(behind)
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/login/oauth/access_token" {
			proxy.ServeHTTP(rw, r)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(rw, `{"access_token": %q, "token_type": "bearer"}`, w.hub.CreateToken(r.FormValue("code")))
	}))
	w.Cleanup(front.Close)
	o := w.options()
	o.GitHub.GitURL, o.GitHub.APIURL = front.URL, front.URL
	o.Config.URL, o.Pages.ClientID, o.Secrets.ClientSecret = "http://gate.example", "id", "secret"
	return o
}

// browser logs in and returns how to look at a page.
func (w *world) browser(s *serve.Server, login string) func(path string) (status int, body string) {
	w.Helper()
	jar, err := cookiejar.New(nil)
	w.no(err)
	browser := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	get := func(path string) (*http.Response, string) {
		answer, err := browser.Get(s.URL() + path)
		w.no(err)
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		w.no(err)
		return answer, string(body)
	}
	answer, _ := get("/login/github?to=/search")
	there, err := url.Parse(answer.Header.Get("Location"))
	w.no(err)
	if there.Path != "/login/oauth/authorize" || there.Query().Get("redirect_uri") != "http://gate.example/login/callback" {
		w.Errorf("the way to GitHub is %s", there)
	}
	answer, _ = get("/login/callback?code=" + login + "&state=" + there.Query().Get("state"))
	if answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location") != "/search" {
		w.Errorf("%s comes back with %s to %q", login, answer.Status, answer.Header.Get("Location"))
	}
	return func(path string) (int, string) {
		answer, body := get(path)
		return answer.StatusCode, body
	}
}

// Who can read the repository at GitHub can read its pages, and nobody else.
func TestLoginWithGitHub(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hub.CreateUser("eve")
	w.repo = w.private("rita")
	o := w.loginOptions()
	s, _ := w.start(o)
	w.no(s.Ready(w.ctx))
	page := "/changes/" + strings.TrimPrefix(w.settled(s.URL()+"/webhook").DetailsURL, "http://gate.example/changes/")
	if status, _ := w.get(s.URL() + page); status != http.StatusNotFound {
		t.Errorf("nobody in particular gets %d", status)
	}
	for login, want := range map[string]int{"rita": http.StatusOK, "eve": http.StatusNotFound} {
		if status, _ := w.browser(s, login)(page); status != want {
			t.Errorf("%s gets %d", login, status)
		}
	}
	info, err := os.Stat(o.Data + "/session.key")
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key of sessions: %v %v", info, err)
	}
}
