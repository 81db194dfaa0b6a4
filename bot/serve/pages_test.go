package serve_test

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
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

// Who can read the repository at GitHub can read its pages, and nobody else.
func TestLoginWithGitHub(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var err error
	w.repo, err = w.hub.CreateRepo(embedded.RepoOptions{Owner: "olga", Name: "private", Private: true})
	w.no(err)
	_, err = w.repo.Push("main", map[string]string{"README.md": "Secret kernels.\n"}, "Begin")
	w.no(err)
	_, err = w.app.Install(w.repo)
	w.no(err)
	for login, role := range map[string]embedded.Role{"rita": embedded.Read, "eve": ""} {
		w.hub.CreateUser(login)
		if role != "" {
			w.no(w.repo.Grant(login, role))
		}
	}
	// The embedded GitHub has no login of its own; the code is who logs in.
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
	t.Cleanup(front.Close)
	o := w.options()
	o.GitHub.GitURL, o.GitHub.APIURL = front.URL, front.URL
	o.Config.URL, o.Pages.ClientID, o.Secrets.ClientSecret = "http://gate.example", "id", "secret"
	s, _ := w.start(o)
	w.no(s.Ready(w.ctx))
	page := "/changes/" + strings.TrimPrefix(w.settled(s.URL()+"/webhook").DetailsURL, "http://gate.example/changes/")
	if status, _ := w.get(s.URL() + page); status != http.StatusNotFound {
		t.Errorf("nobody in particular gets %d", status)
	}
	for login, want := range map[string]int{"rita": http.StatusOK, "eve": http.StatusNotFound} {
		jar, err := cookiejar.New(nil)
		w.no(err)
		browser := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		answer, err := browser.Get(s.URL() + "/login/github?to=" + page)
		w.no(err)
		answer.Body.Close()
		there, err := url.Parse(answer.Header.Get("Location"))
		w.no(err)
		if there.Path != "/login/oauth/authorize" || there.Query().Get("redirect_uri") != "http://gate.example/login/callback" {
			t.Errorf("the way to GitHub is %s", there)
		}
		answer, err = browser.Get(s.URL() + "/login/callback?code=" + login + "&state=" + there.Query().Get("state"))
		w.no(err)
		answer.Body.Close()
		if answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location") != page {
			t.Errorf("%s comes back with %s to %q", login, answer.Status, answer.Header.Get("Location"))
		}
		answer, err = browser.Get(s.URL() + page)
		w.no(err)
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%s gets %s", login, answer.Status)
		}
	}
	info, err := os.Stat(o.Data + "/session.key")
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key of sessions: %v %v", info, err)
	}
}
