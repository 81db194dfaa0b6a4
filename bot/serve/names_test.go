package serve_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/serve"
)

const pagesToken = "a token of more than sixteen characters"

// untilPage waits until a page answers with a status.
func (w *world) untilPage(what string, look func(string) (int, string), path string, status int) {
	w.Helper()
	if err := w.hub.WaitFor(w.ctx, func() bool { got, _ := look(path); return got == status }); err != nil {
		w.Fatalf("%s: %v", what, err)
	}
}

// asOperator looks at pages with the token.
func (w *world) asOperator(s *serve.Server) func(string) (int, string) {
	return func(path string) (int, string) {
		rq, err := http.NewRequestWithContext(w.ctx, http.MethodGet, s.URL()+path, nil)
		w.no(err)
		rq.Header.Set("Authorization", "Bearer "+pagesToken)
		return w.do(rq)
	}
}

// measured has a private repository measured, and returns the addresses of what the bot knows about it.
func (w *world) measured(s *serve.Server) (page string, all []string) {
	w.Helper()
	details, err := url.Parse(w.settled(s.URL() + "/webhook").DetailsURL)
	w.no(err)
	page = details.Path
	change := strings.TrimPrefix(page, "/changes/")
	return page, []string{page, "/api/v1" + page, "/policy?change=" + change, "/api/v1/policy?change=" + change}
}

// A private repository is renamed, and its name goes to a new one. Who can read only the new one gets
// nothing of the old one, whether the bot has heard of the rename or not, and the readers of the old
// one see it under its new name.
func TestNameGoesToAnotherRepository(t *testing.T) {
	t.Parallel()
	for name, deaf := range map[string]bool{"told": false, "webhooks are lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.repo = w.private("rita")
			o := w.loginOptions()
			o.Secrets.Pages = pagesToken
			s, _ := w.start(o)
			w.no(s.Ready(w.ctx))
			page, all := w.measured(s)
			rita := w.browser(s, "rita")
			if status, _ := rita(page); status != http.StatusOK {
				t.Fatalf("rita gets %d", status)
			}
			if deaf {
				w.app.SetHook("", "")
			}
			w.no(w.repo.Rename("hidden"))
			next := w.private("eve")
			if next.FullName() != "olga/private" || next.ID() == w.repo.ID() {
				t.Fatalf("the new repository is %s, number %d", next.FullName(), next.ID())
			}
			w.no(w.hub.Quiet(w.ctx))
			eve := w.browser(s, "eve")
			for _, path := range append(all, "/kernels/olga/private", "/kernels/olga/hidden") {
				if status, body := eve(path); status != http.StatusNotFound || strings.Contains(body, "Change") {
					t.Errorf("eve: %s answers %d", path, status)
				}
			}
			for _, path := range []string{"/", "/search?q=Change", "/feed.atom", "/api/v1"} {
				if status, body := eve(path); status != http.StatusOK || strings.Contains(body, "pr-") {
					t.Errorf("eve: %s answers %d %s", path, status, body)
				}
			}
			for _, path := range all {
				if status, _ := rita(path); status != http.StatusOK {
					t.Errorf("rita: %s answers %d", path, status)
				}
			}
			if deaf {
				return
			}
			w.no(w.hub.WaitFor(w.ctx, func() bool { _, body := rita(page); return strings.Contains(body, "olga/hidden") }))
			w.repo.Delete()
			w.untilPage("the end of a deleted repository", rita, page, http.StatusNotFound)
			for _, path := range all {
				if status, _ := w.asOperator(s)(path); status != http.StatusOK {
					t.Errorf("the operator: %s answers %d", path, status)
				}
			}
		})
	}
}

// A deleted repository is open to the token only, although GitHub's webhook was lost: the next list
// of repositories does not have it. A new one with its name and its reader opens nothing.
func TestDeletedRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo = w.private("rita")
	o := w.loginOptions()
	o.Secrets.Pages, o.Pages.Public = pagesToken, []string{"olga/private"}
	s, stop := w.start(o)
	w.no(s.Ready(w.ctx))
	page, all := w.measured(s)
	if status, _ := w.get(s.URL() + page); status != http.StatusOK {
		t.Fatalf("the public page answers %d", status)
	}
	w.app.SetHook("", "")
	w.repo.Delete()
	next := w.private("rita")
	_, err := next.Push("main", map[string]string{"README.md": "Others.\n"}, "More")
	w.no(err)
	w.no(stop())
	o.Reconcile = o.Reconcile / 1000 // a resync twice a second
	s, _ = w.start(o)
	w.no(s.Ready(w.ctx))
	w.untilPage("the end of a deleted repository", func(path string) (int, string) { return w.get(s.URL() + path) }, page, http.StatusNotFound)
	rita := w.browser(s, "rita")
	for _, path := range append(all, "/kernels/olga/private") {
		if status, _ := rita(path); status != http.StatusNotFound {
			t.Errorf("rita: %s answers %d", path, status)
		}
	}
	for _, path := range all {
		if status, _ := w.asOperator(s)(path); status != http.StatusOK {
			t.Errorf("the operator: %s answers %d", path, status)
		}
	}
}

// A name under pages.public means the repository that had it when the bot first saw it. It stays
// public under its new name, and its successor is private until the operator writes its number.
func TestPublicNameGoesToAnotherRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.options()
	o.Config.URL, o.Pages.Public = "http://gate.example", []string{"Olga/Kernels"}
	s, stop := w.start(o)
	w.no(s.Ready(w.ctx))
	old, _ := w.measured(s)
	if status, _ := w.get(s.URL() + old); status != http.StatusOK {
		t.Fatalf("the public page answers %d", status)
	}
	w.no(w.repo.Rename("cuda"))
	next, err := w.hub.CreateRepo(embedded.RepoOptions{Owner: "olga", Name: "kernels", Private: true})
	w.no(err)
	_, err = next.Push("main", map[string]string{"README.md": "Secret kernels.\n"}, "Begin")
	w.no(err)
	_, err = w.app.Install(next)
	w.no(err)
	w.repo = next
	head := w.propose("README.md", "Secret plans.\n").HeadSHA()
	w.completed(head)
	secret := strings.Replace(old, old[strings.Index(old, "pr-"):], "pr-"+itoa(next.ID())+"-1", 1)
	if status, _ := w.get(s.URL() + secret); status != http.StatusNotFound {
		t.Errorf("the successor's page answers %d", status)
	}
	if status, body := w.get(s.URL() + old); status != http.StatusOK || !strings.Contains(body, "olga/cuda") {
		t.Errorf("the public page answers %d %s", status, body)
	}
	w.no(stop())
	s, stop = w.start(o)
	w.no(s.Ready(w.ctx))
	if err := w.hub.WaitFor(w.ctx, func() bool { return strings.Contains(w.log.String(), "write olga/kernels@"+itoa(next.ID())) }); err != nil {
		t.Error("the log does not tell the operator what to write")
	}
	if status, _ := w.get(s.URL() + secret); status != http.StatusNotFound {
		t.Errorf("after a restart, the successor's page answers %d", status)
	}
	w.no(stop())
	o.Pages.Public = []string{"olga/kernels@" + itoa(next.ID())}
	s, _ = w.start(o)
	w.no(s.Ready(w.ctx))
	w.untilPage("the page that the operator opened", func(path string) (int, string) { return w.get(s.URL() + path) }, secret, http.StatusOK)
	w.untilPage("the page that the operator closed", func(path string) (int, string) { return w.get(s.URL() + path) }, old, http.StatusNotFound)
}

// A user who gave up a login keeps a session under it. The session opens nothing of the user who has
// the login now.
func TestLoginGoesToAnotherUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo = w.private("rita")
	w.hub.CreateUser("eve")
	s, _ := w.start(w.loginOptions())
	w.no(s.Ready(w.ctx))
	page, _ := w.measured(s)
	eve := w.browser(s, "eve")
	w.no(w.hub.RenameAccount("eve", "evelyn"))
	w.no(w.hub.RenameAccount("rita", "eve"))
	if status, _ := eve(page); status != http.StatusNotFound {
		t.Errorf("the session of a login's former user gets %d", status)
	}
	if status, _ := w.browser(s, "eve")(page); status != http.StatusOK {
		t.Errorf("the reader under her new login gets %d", status)
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
