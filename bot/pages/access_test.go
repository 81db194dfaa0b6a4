package pages_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/pages"
	"github.com/kernelgate/kernelgate/bot/repos"
	"github.com/kernelgate/kernelgate/bot/scheduler"
	"github.com/kernelgate/kernelgate/bot/store/ledger"
)

const pagesToken = "a token of more than sixteen characters"

// guard returns a Guard that admits by token and by GitHub. At GitHub rita can read repository 1,
// and eve her own, number 2.
func guard(hub string) *pages.Guard {
	return &pages.Guard{
		Key: []byte("the key of this server's sessions"), Token: pagesToken, Public: []string{"org/open"},
		OAuth: &oauth2.Config{ClientID: "id", ClientSecret: "secret", Endpoint: oauth2.Endpoint{AuthURL: hub + "/authorize", TokenURL: hub + "/token", AuthStyle: oauth2.AuthStyleInParams}},
		Login: func(_ context.Context, t *oauth2.Token) (pages.User, error) {
			login, ok := strings.CutPrefix(t.AccessToken, "token of ")
			if !ok {
				return pages.User{}, errors.New("unknown token")
			}
			return pages.User{ID: map[string]int64{"rita": 11, "eve": 12, "flaky": 13}[login], Login: login}, nil
		},
		CanRead: func(_ context.Context, repo ledger.RepoName, user pages.User) (bool, error) {
			if user.ID == 13 {
				return true, errors.New("GitHub is down")
			}
			return user.ID == 11 && repo.ID == 1 || user.ID == 12 && repo.ID == 2, nil
		},
		Now: func() time.Time { return epoch.Add(time.Hour) },
	}
}

// hub serves GitHub's login: the code is the login of the user.
func hub(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/token" || r.FormValue("code_verifier") == "" || r.FormValue("client_secret") != "secret" {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token": "token of ` + r.FormValue("code") + `", "token_type": "bearer"}`))
	}))
	t.Cleanup(server.Close)
	return server
}

// login performs a whole login at GitHub and returns the session cookie.
func (w *world) login(site, who string) string {
	w.Helper()
	answer, _ := w.get(site + "/login/github?to=/changes/pr-1-7")
	there, err := url.Parse(answer.Header.Get("Location"))
	w.no(err)
	trip := answer.Cookies()[0]
	if there.Path != "/authorize" || !trip.HttpOnly || trip.SameSite != http.SameSiteLaxMode {
		w.Fatalf("%s, %v", there, trip)
	}
	answer, body := w.get(site+"/login/callback?code="+who+"&state="+there.Query().Get("state"), "Cookie", trip.Name+"="+trip.Value)
	if answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location") != "/changes/pr-1-7" {
		w.Fatalf("%s to %s: %s", answer.Status, answer.Header.Get("Location"), body)
	}
	for _, c := range answer.Cookies() {
		if c.Name == "kernelgate-session" && c.HttpOnly && c.SameSite == http.SameSiteLaxMode {
			return c.Name + "=" + c.Value
		}
	}
	w.Fatal("no session")
	return ""
}

// addresses returns every route, with the names of private things.
func addresses(jobs map[string]string) []string {
	list := []string{"/changes/pr-1-7", "/kernels/org/kernels", "/kernels/org/kernels/kernels/sdpa", "/badge/org/kernels/kernels/sdpa.svg", "/policy?change=pr-1-7",
		"/compare?a=" + jobs["first"] + "&b=" + jobs["broken"], "/compare?a=1111111&b=2222222", "/runs/" + jobs["first"] + "/evidence.json", "/runs/" + jobs["first"] + "/verdict.json", "/runs/" + jobs["first"] + "/intervals.svg", "/runs/" + jobs["first"] + "/intervals.png", "/runs/" + jobs["first"] + "/preview.png",
		"/api/v1/runs/" + jobs["first"] + "/result"}
	for _, job := range jobs {
		list = append(list, "/runs/"+job)
	}
	for _, path := range slices.Clone(list) {
		if !strings.HasSuffix(path, ".json") && !strings.HasSuffix(path, ".svg") && !strings.HasSuffix(path, ".png") && !strings.HasPrefix(path, "/api/") {
			list = append(list, "/api/v1"+path)
		}
	}
	return list
}

// backPattern matches the requested address in the link back from a login.
var backPattern = regexp.MustCompile(`\?to=[^"]*`)

// TestNothingLeaks checks that private things look as if they did not exist: to anonymous visitors,
// to readers of other repositories, and to visitors with a forged session.
func TestNothingLeaks(t *testing.T) {
	w := newWorld(t)
	jobs := story(w)
	mine := w.open(change.ID{Kind: change.Pull, Repo: 2, Number: 1}, "eve/own", "Mine", "own")
	w.settle()
	w.places[mine.Runs[0].Job] = scheduler.Position{Ahead: 1, Wait: time.Minute}
	site := w.site(guard(hub(t).URL)).URL
	rita, eve := w.login(site, "rita"), w.login(site, "eve")
	body, mac, _ := strings.Cut(strings.TrimPrefix(eve, "kernelgate-session="), ".")
	forged := func(text string) string {
		return "kernelgate-session=" + base64.RawURLEncoding.EncodeToString([]byte(text)) + "." + mac
	}
	strangers := map[string][]string{
		"nobody":                  {},
		"another's reader":        {"Cookie", eve},
		"forged, old signature":   {"Cookie", forged(`{"login":"rita","until":99999999999}`)},
		"forged token":            {"Cookie", forged(`{"token":"AAAA","until":99999999999}`)},
		"no signature":            {"Cookie", "kernelgate-session=" + body + "."},
		"no point":                {"Cookie", "kernelgate-session=" + body},
		"another kind":            {"Cookie", "kernelgate-trip=" + strings.TrimPrefix(rita, "kernelgate-session=")},
		"wrong bearer":            {"Authorization", "Bearer x" + pagesToken},
		"empty bearer":            {"Authorization", "Bearer "},
		"one GitHub is silent of": {"Cookie", w.login(site, "flaky")},
	}
	private := []string{"FP8 everywhere", "Under way", "sdpa", "org/kernels", "H200", "carol", "it is late", "gpu1-job", jobs["running"]}
	for who, header := range strangers {
		for _, path := range append(addresses(jobs), "/runs/"+jobs["running"]+"/live") {
			answer, body := w.get(site+path, header...)
			if answer.StatusCode != http.StatusNotFound {
				t.Errorf("%s: %s answers %s", who, path, answer.Status)
			}
			absent := "/runs/pr-1-77-0123456789ab-1"
			named := strings.NewReplacer(jobs["first"], "X", jobs["broken"], "Y", "1111111", "X", "2222222", "Y")
			if strings.Contains(path, "/compare?") { // the form says so and repeats the input
				absent, body = "/compare?a=X&b=Y", named.Replace(body)
			}
			if strings.HasPrefix(path, "/api") {
				absent = "/api/v1" + absent
			}
			_, same := w.get(site+absent, header...)
			if backPattern.ReplaceAllString(body, "") != backPattern.ReplaceAllString(same, "") {
				t.Errorf("%s can tell %s from what is not there:\n%s\n%s", who, path, body, same)
			}
		}
		live := w.stream(site+"/live", header...)
		for _, want := range []string{"now", "runners"} {
			name, text := live()
			if name != want {
				t.Errorf("%s: /live sends %q", who, name)
			}
			for _, secret := range private {
				if strings.Contains(text, secret) {
					t.Errorf("%s: /live says %q", who, secret)
				}
			}
		}
		for _, path := range []string{"/", "/api/v1", "/feed.atom", "/compare", "/search?q=FP8", "/search?q=7", "/search?q=1111", "/api/v1/search?q=FP8", "/login", "/api/v1/openapi.json"} {
			answer, body := w.get(site+path, header...)
			for _, secret := range private {
				if strings.Contains(body, secret) {
					t.Errorf("%s: %s says %q", who, path, secret)
				}
			}
			if answer.StatusCode != http.StatusOK {
				t.Errorf("%s: %s answers %s", who, path, answer.Status)
			}
		}
	}
	for who, header := range map[string][]string{"reader": {"Cookie", rita}, "bearer": {"Authorization", "Bearer " + pagesToken}} {
		for _, path := range addresses(jobs) {
			if answer, _ := w.get(site+path, header...); answer.StatusCode != http.StatusOK {
				t.Errorf("%s: %s answers %s", who, path, answer.Status)
			}
		}
		if _, body := w.get(site+"/", header...); !strings.Contains(body, "FP8 everywhere") {
			t.Errorf("%s sees nothing", who)
		}
	}
	if name, text := w.stream(site+"/live", "Cookie", rita)(); name != "now" || !strings.Contains(text, "Under way") {
		t.Errorf("rita is sent %s %q", name, text)
	}
	for _, path := range []string{"/", "/api/v1"} {
		_, body := w.get(site+path, "Cookie", rita)
		if !strings.Contains(body, "580.1") || strings.Contains(body, "its-own-number") || strings.Contains(body, "secretive") {
			t.Errorf("rita sees of the runner: %s", body)
		}
	}
	// eve sees that a runner is busy, but not with which job.
	if _, body := w.get(site+"/", "Cookie", eve); !strings.Contains(body, "busy") || !strings.Contains(body, "Number 2 in the queue") {
		t.Errorf("eve sees %s", body)
	}
}

func TestPublicIsPublic(t *testing.T) {
	w := newWorld(t)
	jobs := story(w)
	w.tell(repos.MadePublic{Repo: 1, Name: "org/kernels"})
	g := guard("")
	g.Public = []string{"ORG/Kernels"}
	site := w.site(g).URL
	for _, path := range addresses(jobs) {
		if answer, _ := w.get(site + path); answer.StatusCode != http.StatusOK {
			t.Errorf("%s answers %s", path, answer.Status)
		}
	}
}

// TestClosed checks that without any way to log in the server serves no pages at all.
func TestClosed(t *testing.T) {
	w := newWorld(t)
	jobs := story(w)
	site := w.site(&pages.Guard{Key: []byte("k")}).URL
	for _, path := range append(addresses(jobs), "/", "/live", "/login", "/login/github", "/feed.atom", "/api/v1") {
		if answer, _ := w.get(site + path); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s answers %s", path, answer.Status)
		}
	}
}

func (w *world) post(address string, form url.Values, header ...string) *http.Response {
	w.Helper()
	return w.send(address, form.Encode(), append([]string{"Content-Type", "application/x-www-form-urlencoded"}, header...)...)
}

func (w *world) send(address, body string, header ...string) *http.Response {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), http.MethodPost, address, strings.NewReader(body))
	w.no(err)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	w.no(err)
	text, err := io.ReadAll(answer.Body)
	w.no(err)
	answer.Body.Close()
	answer.Body = io.NopCloser(bytes.NewReader(text))
	return answer
}

func TestLoginByToken(t *testing.T) {
	w := newWorld(t)
	jobs := story(w)
	g := guard("")
	g.Secure = true
	site := w.site(g).URL
	if answer := w.post(site+"/login", url.Values{"token": {"guess"}}); answer.StatusCode != http.StatusForbidden || len(answer.Cookies()) != 0 {
		t.Errorf("a wrong token: %s", answer.Status)
	}
	if answer := w.post(site+"/login", url.Values{"token": {pagesToken}}, "Sec-Fetch-Site", "cross-site"); answer.StatusCode != http.StatusForbidden {
		t.Errorf("from another site: %s", answer.Status)
	}
	answer := w.post(site+"/login", url.Values{"token": {pagesToken}, "to": {"//evil.example/x"}})
	if answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location") != "/" {
		t.Errorf("%s leads to %q", answer.Status, answer.Header.Get("Location"))
	}
	c := answer.Cookies()[0]
	if !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || !strings.HasPrefix(c.Name, "__Host-") || strings.Contains(c.Value, "token of") {
		t.Errorf("the cookie is %v", c)
	}
	cookie := c.Name + "=" + c.Value
	path := "/runs/" + jobs["first"]
	if answer, _ := w.get(site+path, "Cookie", cookie); answer.StatusCode != http.StatusOK {
		t.Errorf("logged in: %s", answer.Status)
	}
	for name, change := range map[string]func(*pages.Guard){
		"another key":   func(g *pages.Guard) { g.Key = []byte("another") },
		"another token": func(g *pages.Guard) { g.Token += "!" },
		"no token":      func(g *pages.Guard) { g.Token = "" },
		"tomorrow":      func(g *pages.Guard) { g.Now = func() time.Time { return epoch.Add(24 * time.Hour) } },
	} {
		later := guard("")
		later.Secure = true
		change(later)
		if answer, _ := w.get(w.site(later).URL+path, "Cookie", cookie); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", name, answer.Status)
		}
	}
	if answer := w.post(site+"/logout", nil, "Cookie", cookie); answer.Cookies()[0].MaxAge >= 0 {
		t.Error("logging out leaves the cookie")
	}
}

// TestLoginByGitHubRefuses checks that a login at GitHub is refused if it did not begin in this
// browser.
func TestLoginByGitHubRefuses(t *testing.T) {
	w := newWorld(t)
	site := w.site(guard(hub(t).URL)).URL
	answer, _ := w.get(site + "/login/github")
	trip := answer.Cookies()[0]
	there, err := url.Parse(answer.Header.Get("Location"))
	w.no(err)
	if there.Query().Get("code_challenge_method") != "S256" {
		t.Errorf("no challenge: %s", there)
	}
	state := there.Query().Get("state")
	for name, try := range map[string]struct{ query, cookie string }{
		"no cookie":     {"code=rita&state=" + state, ""},
		"another state": {"code=rita&state=x", trip.Name + "=" + trip.Value},
		"no state":      {"code=rita", trip.Name + "=" + trip.Value},
		"no code":       {"state=" + state, trip.Name + "=" + trip.Value},
	} {
		answer, _ := w.get(site+"/login/callback?"+try.query, "Cookie", try.cookie)
		if answer.StatusCode != http.StatusForbidden || slices.ContainsFunc(answer.Cookies(), func(c *http.Cookie) bool { return strings.HasSuffix(c.Name, "session") }) {
			t.Errorf("%s: %s", name, answer.Status)
		}
	}
}
