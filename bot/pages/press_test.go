package pages_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/grammar"
	"github.com/kernelgate/kernelgate/bot/pages"
	"github.com/kernelgate/kernelgate/bot/pages/browser"
)

// pressed is an Actor that records calls.
type pressed struct {
	mu  sync.Mutex
	all []string
	no  error
}

func (p *pressed) Press(_ context.Context, id change.ID, press, by, head string, c grammar.Command) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, fmt.Sprintf("%s asks %v of %s at %.8s", by, c, id, head))
	return p.no
}

func (p *pressed) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.all
	p.all = nil
	return all
}

var fieldPattern = regexp.MustCompile(`<input type="hidden" name="([a-z]+)" value="([^"]*)">`)

// form returns the fields of a page's buttons, as a visitor gets them.
func (w *world) form(page string, header ...string) url.Values {
	w.Helper()
	_, body := w.get(page, header...)
	_, body, found := strings.Cut(body, `<form class="buttons"`)
	if !found {
		return nil
	}
	body, _, _ = strings.Cut(body, "</form>")
	fields := url.Values{}
	for _, m := range fieldPattern.FindAllStringSubmatch(body, -1) {
		fields.Set(m[1], html.UnescapeString(m[2]))
	}
	return fields
}

// TestPress checks that a button press is passed on with the visitor's login, and with the head and
// kernel that the visitor saw. The same form sent twice has the same id.
func TestPress(t *testing.T) {
	w := newWorld(t)
	jobs := story(w)
	actor := &pressed{}
	w.actor = actor
	site := w.site(guard(hub(t).URL)).URL
	rita := w.login(site, "rita")
	for page, c := range map[string]struct{ what, id, want string }{
		"/changes/pr-1-7":          {"rebench", "pr-1-7", "rita asks /rebench of pr-1-7 at "},
		"/runs/" + jobs["broken"]:  {"rebench", "pr-1-7", "rita asks /rebench kernels/sdpa of pr-1-7 at "},
		"/runs/" + jobs["running"]: {"cancel", "pr-1-8", "rita asks /cancel of pr-1-8 at "},
	} {
		fields := w.form(site+page, "Cookie", rita)
		fields.Set("what", c.what)
		answer := w.post(site+"/changes/"+c.id+"/press", fields, "Cookie", rita, "Sec-Fetch-Site", "same-origin")
		if to := answer.Header.Get("Location"); answer.StatusCode != http.StatusSeeOther || to != "/changes/"+c.id+"?noted="+c.what+"#asked" {
			t.Errorf("%s: %s to %q", page, answer.Status, to)
		}
		if got := actor.take(); len(got) != 1 || !strings.HasPrefix(got[0], c.want) {
			t.Errorf("%s: %q", page, got)
		}
	}
	if _, body := w.get(site+"/changes/pr-1-7?noted=rebench", "Cookie", rita); !strings.Contains(body, "/rebench is noted") {
		t.Error("nobody says that it is noted")
	}
	if _, body := w.get(site+"/changes/pr-1-7?noted=evil", "Cookie", rita); strings.Contains(body, "evil") {
		t.Error("the page says what its address says")
	}
	// There is nothing to cancel, and there are no buttons on main or on an older head.
	if _, body := w.get(site+"/changes/pr-1-7", "Cookie", rita); strings.Contains(body, `value="cancel"`) {
		t.Error("what is done can be cancelled")
	}
	if w.form(site+"/runs/"+jobs["stage1"], "Cookie", rita) != nil {
		t.Error("a push can be measured again by a button")
	}
}

// TestPressRefuses checks that other visitors are refused, and so are forms of another session.
func TestPressRefuses(t *testing.T) {
	w := newWorld(t)
	story(w)
	closed := w.open(change.ID{Kind: change.Pull, Repo: 1, Number: 11}, "org/kernels", "Closed", "sdpa")
	shut := closed.Facts
	shut.Open = false
	w.write(closed, change.Seen{Facts: shut})
	w.settle()
	actor := &pressed{}
	w.actor = actor
	site := w.site(guard(hub(t).URL)).URL
	rita, eve := w.login(site, "rita"), w.login(site, "eve")
	token := func() string {
		c := w.post(site+"/login", url.Values{"token": {pagesToken}}).Cookies()[0]
		return c.Name + "=" + c.Value
	}()
	fields := w.form(site+"/changes/pr-1-7", "Cookie", rita)
	if fields == nil {
		t.Fatal("rita has no buttons")
	}
	for who, header := range map[string][]string{"nobody": nil, "another's reader": {"Cookie", eve}, "who has the token": {"Cookie", token}, "a bearer": {"Authorization", "Bearer " + pagesToken}} {
		if w.form(site+"/changes/pr-1-7", header...) != nil {
			t.Errorf("%s has buttons", who)
		}
	}
	_, mac, _ := strings.Cut(rita, ".")
	forged := "kernelgate-session=" + base64.RawURLEncoding.EncodeToString([]byte(`{"login":"rita","until":99999999999}`)) + "." + mac
	with := func(name, value string) url.Values {
		f := url.Values{}
		for k, v := range fields {
			f[k] = slices.Clone(v)
		}
		f.Set("what", "rebench")
		if name != "" {
			f.Set(name, value)
		}
		return f
	}
	const mine, there = "same-origin", "/changes/pr-1-7/press"
	for name, c := range map[string]struct {
		path   string
		fields url.Values
		header []string
		status int
	}{
		"nobody":                    {there, with("", ""), nil, http.StatusNotFound},
		"another's reader":          {there, with("", ""), []string{"Cookie", eve}, http.StatusNotFound},
		"a forged session":          {there, with("", ""), []string{"Cookie", forged}, http.StatusNotFound},
		"who has the token":         {there, with("", ""), []string{"Cookie", token}, http.StatusForbidden},
		"a bearer":                  {there, with("", ""), []string{"Authorization", "Bearer " + pagesToken}, http.StatusForbidden},
		"another site":              {there, with("", ""), []string{"Cookie", rita, "Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		"another site, old browser": {there, with("", ""), []string{"Cookie", rita, "Origin", "https://evil.example"}, http.StatusForbidden},
		"no proof":                  {there, with("proof", ""), []string{"Cookie", rita, "Sec-Fetch-Site", mine}, http.StatusForbidden},
		"another's proof":           {there, with("proof", "AAAA"), []string{"Cookie", rita, "Sec-Fetch-Site", mine}, http.StatusForbidden},
		"no number":                 {there, with("press", "../x"), []string{"Cookie", rita, "Sec-Fetch-Site", mine}, http.StatusForbidden},
		"another thing":             {there, with("what", "override"), []string{"Cookie", rita, "Sec-Fetch-Site", mine}, http.StatusBadRequest},
		"another kernel":            {there, with("kernel", "kernels/other"), []string{"Cookie", rita, "Sec-Fetch-Site", mine}, http.StatusBadRequest},
		"an older head":             {there, with("head", strings.Repeat("0", 40)), []string{"Cookie", rita, "Sec-Fetch-Site", mine}, http.StatusConflict},
		"a closed change":           {"/changes/pr-1-11/press", with("head", shut.Head), []string{"Cookie", rita, "Sec-Fetch-Site", mine}, http.StatusConflict},
		"a change that is not":      {"/changes/pr-1-99/press", with("", ""), []string{"Cookie", rita, "Sec-Fetch-Site", mine}, http.StatusNotFound},
		"too much":                  {there, with("press", strings.Repeat("A", 10_000)), []string{"Cookie", rita, "Sec-Fetch-Site", mine}, http.StatusForbidden},
	} {
		if answer := w.post(site+c.path, c.fields, c.header...); answer.StatusCode != c.status {
			t.Errorf("%s: %s", name, answer.Status)
		}
		if got := actor.take(); len(got) > 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
	if answer, _ := w.get(site+there, "Cookie", rita); answer.StatusCode != http.StatusNotFound && answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a link presses: %s", answer.Status)
	}
	actor.no = pages.Refused("Another of the bots does the work now.")
	answer := w.post(site+there, with("", ""), "Cookie", rita, "Sec-Fetch-Site", mine)
	if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusConflict || !strings.Contains(string(text), string(actor.no.(pages.Refused))) {
		t.Errorf("what the bot refuses: %s, %v", answer.Status, err)
	}
	w.actor = nil
	if answer := w.post(w.site(guard("")).URL+there, with("", ""), "Cookie", rita); answer.StatusCode == http.StatusSeeOther {
		t.Errorf("where nobody can act: %s", answer.Status)
	}
}

// TestPressInBrowser checks that the buttons look right and work in a browser.
func TestPressInBrowser(t *testing.T) {
	w := newWorld(t)
	jobs := story(w)
	actor := &pressed{}
	w.actor = actor
	site := w.site(signedIn{}).URL
	b := browser.Open(t)
	b.Everything(site + "/changes/pr-1-8")
	tab := b.Tab(browser.Look{Width: 320, Height: 640})
	tab.Go(site + "/runs/" + jobs["running"])
	browser.Eval[any](tab, `document.querySelector("button[value=cancel]").focus()`)
	tab.Follow(browser.KeyEnter)
	if says := tab.Text("main"); !strings.Contains(says, "/cancel is noted") {
		t.Errorf("the page says %s", says)
	}
	if got := actor.take(); len(got) != 1 || !strings.HasPrefix(got[0], "rita asks /cancel of pr-1-8") {
		t.Errorf("%q", got)
	}
	for _, c := range tab.Complaints() {
		t.Error(c)
	}
}

// signedIn is an Access that treats everybody as rita.
type signedIn struct{ pages.Everybody }

func (signedIn) Viewer(r *http.Request) pages.Viewer {
	v := pages.Everybody{}.Viewer(r)
	v.Login, v.Member, v.Proof = "rita", true, "proof"
	return v
}
